#include "operations/fp8_linear/update.hpp"

namespace jitney::policy {
namespace {

constexpr int kThreads = 256;

}  // namespace

Fp8UpdateChoice choose_fp8_update(const DeviceFacts& facts) {
    Fp8UpdateChoice choice;
    choice.spec = spec_of(KernelId::fp8_update, facts.arch, {{"threads", kThreads}});
    choice.geometry.block[0] = kThreads;
    choice.geometry.programmatic = has_programmatic_launches(facts);
    choice.geometry.shared_bytes = shared_bytes(choice.spec);
    return choice;
}

}  // namespace jitney::policy
