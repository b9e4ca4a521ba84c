// Random problems for the policy, from everyday ones to those that fill 32 bits.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "operations/attention/choose.hpp"
#include "operations/rotary/choose.hpp"
#include "tests/support/random.hpp"

namespace jitney::policy {

// Between 1 and `most`, small values as likely as large ones.
int random_count(tests::Random& random, int most = std::numeric_limits<int>::max());

// A GPU of some arch, with some number of SMs.
DeviceFacts random_facts(tests::Random& random);

// What stays the same while a model is served: heads, head_dim, format, masks, alignment.
AttentionProblem random_attention_shape(tests::Random& random);
// Counts of any size.
AttentionProblem random_attention(tests::Random& random);
RotaryProblem random_rotary(tests::Random& random);

std::string text_of(const AttentionProblem& problem);
std::string text_of(const RotaryProblem& problem);
std::string text_of(const DeviceFacts& facts);

}  // namespace jitney::policy
