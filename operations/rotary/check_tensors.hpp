// The checks of the tensors of a rotation, which other operations do on their way too.
#pragma once

#include "jitney/rotary.hpp"
#include "operations/tensor_checks.hpp"

namespace jitney::checks {

// A tensor to rotate, [batch, length, heads, head_dim], and where the result goes.
void check_rotated(const Named& q, const Named& x, const Named& out, Data data);
void check_tables(const Named& q, const Named& cos, const Named& sin, Data data);
// Without positions there is a row of cos for each row of x.
void check_table_length(const Named& x, const Named& cos);
void check_positions(const Named& q, const Named& positions, Data data);
void check_style(RotaryStyle style);

}  // namespace jitney::checks
