#include "policy/fp8_update.hpp"

namespace jitney::policy {
namespace {

constexpr int kThreads = 256;

}  // namespace

Fp8UpdateChoice choose_fp8_update(const DeviceFacts& facts) {
    Fp8UpdateChoice choice;
    choice.spec.kernel = KernelId::fp8_update;
    choice.spec.arch_number = facts.arch.number;
    choice.spec.arch_suffix = facts.arch.suffix;
    choice.spec.values = {kThreads};
    choice.geometry.block[0] = kThreads;
    choice.geometry.shared_bytes = fp8_update_shared_bytes(choice.spec);
    return choice;
}

int fp8_update_shared_bytes(const Spec& spec) noexcept {
    return value_of(spec, "threads") / 32 * 4;
}

}  // namespace jitney::policy
