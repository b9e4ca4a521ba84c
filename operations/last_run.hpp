// What the thread's last call ran, kept so that noting it costs a copy of a few words.
#pragma once

#include "policy/spec.hpp"

namespace jitney {

void note_nothing_ran() noexcept;
void note_reference_ran() noexcept;
void note_ran(const policy::Spec& spec) noexcept;

}  // namespace jitney
