#include "policy/device_facts.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "jitney/error.hpp"

namespace jitney::policy {

// Shared memory: CUDA C++ Programming Guide, table "Technical Specifications per Compute
// Capability". SM counts: T4, A100, A10, L40S, H100/H200, B200, RTX PRO 6000.
DeviceFacts typical_facts(Arch arch) noexcept {
    const auto facts = [arch](int sm_count, int block_kib, int sm_kib) {
        return DeviceFacts{arch, sm_count, block_kib * 1024, sm_kib * 1024};
    };
    if (arch.number < 80) return facts(40, 64, 64);
    if (arch.number == 80) return facts(108, 163, 164);
    if (arch.number == 87) return facts(16, 163, 164);
    if (arch.number < 89) return facts(72, 99, 100);
    if (arch.number == 89) return facts(142, 99, 100);
    if (arch.number < 100) return facts(132, 227, 228);
    if (arch.number < 120) return facts(148, 227, 228);
    return facts(188, 99, 100);
}

DeviceFacts facts_named(std::string_view arch) {
    const std::optional<Arch> parsed = parse_arch(arch);
    if (!parsed) {
        throw Error(
            ErrorCode::invalid_argument,
            fmt::format("'{}' is not an arch: give one such as sm_80, sm_89, sm_90a, sm_100 or "
                        "sm_120",
                        arch));
    }
    if (const std::string why = why_not_looked_up(*parsed); !why.empty()) {
        throw Error(ErrorCode::invalid_argument, why);
    }
    if (!is_known(*parsed)) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("this version knows no GPU of {}: give an arch such as sm_80, "
                                "sm_89, sm_90a, sm_100 or sm_120, or ask on the GPU itself",
                                arch));
    }
    return typical_facts(*parsed);
}

}  // namespace jitney::policy
