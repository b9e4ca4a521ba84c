#include "operations/no_kernel.hpp"

#include <fmt/format.h>

#include <string>

#include "jitney/error.hpp"

namespace jitney {

void refuse_or_warn(const std::vector<policy::Candidate>& candidates, const Decision& decision,
                    std::string_view operation) {
    std::string reason;
    for (const policy::Candidate& candidate : candidates) {
        if (candidate.kernel == *decision.kernel) reason = policy::reason_text(candidate);
    }
    if (!decision.strict) return warn_not_forced(*decision.kernel, reason);
    throw Error(ErrorCode::unsupported,
                fmt::format("{} can't run this call: {}; name another kernel, or let jitney::{} "
                            "choose",
                            policy::info(*decision.kernel).name, reason, operation));
}

void throw_none(const std::vector<policy::Candidate>& candidates, std::string_view operation,
                std::string_view device, std::string_view otherwise) {
    // A call that takes several kernels may lack one of them alone.
    std::vector<policy::Candidate> refused;
    for (const policy::Candidate& candidate : candidates) {
        if (!candidate.accepted()) refused.push_back(candidate);
    }
    if (refused.size() == 1) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("{} can't run on {}: {}; {}", policy::info(refused[0].kernel).name,
                                device, policy::reason_text(refused[0]), otherwise));
    }
    std::string reasons;
    for (const policy::Candidate& candidate : refused) {
        if (!reasons.empty()) reasons += "; ";
        reasons += fmt::format("{}: {}", policy::info(candidate.kernel).name,
                               policy::reason_text(candidate));
    }
    throw Error(ErrorCode::unsupported, fmt::format("no {} kernel can run this call on {} ({}): {}",
                                                    operation, device, reasons, otherwise));
}

void refuse_host(std::string_view called, std::string_view operation) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{} runs on a GPU, and the tensors are in host memory: copy them to a "
                            "GPU, or call jitney::{}",
                            called, operation));
}

}  // namespace jitney
