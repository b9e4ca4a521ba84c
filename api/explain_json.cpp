// The policy's answer as JSON, in the form that `jitney explain --json` prints.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <vector>

#include "api/json_text.hpp"
#include "jitney/operations.hpp"

namespace jitney {
namespace {

std::string candidates_of(const std::vector<ExplainedCandidate>& all) {
    std::string candidates;
    for (const ExplainedCandidate& each : all) {
        if (!candidates.empty()) candidates += ',';
        candidates += fmt::format(R"({{"kernel":{},"accepted":{},"reason":{}}})",
                                  quoted(each.kernel), each.accepted, quoted(each.reason));
    }
    return candidates;
}

}  // namespace

std::string json_of(const ExplainedLaunches& explanation) {
    std::string launches;
    for (const ExplainedLaunch& each : explanation.launches) {
        if (!launches.empty()) launches += ',';
        launches +=
            fmt::format(R"({{"spec":{},"grid":[{}],"block":[{}],"shared_bytes":{},"splits":{},)"
                        R"("workspace_bytes":{}}})",
                        quoted(each.spec), fmt::join(each.grid, ","), fmt::join(each.block, ","),
                        each.shared_bytes, each.splits, each.workspace_bytes);
    }
    return fmt::format(R"({{"arch":{},"launches":[{}],"workspace_bytes":{},"candidates":[{}]}})",
                       quoted(explanation.arch), launches, explanation.workspace_bytes,
                       candidates_of(explanation.candidates));
}

std::string json_of(const Explanation& explanation) {
    return fmt::format(
        R"({{"arch":{},"chosen":{},"grid":[{}],"block":[{}],"shared_bytes":{},"splits":{},)"
        R"("batch_invariant":{},"split_keys":{},"workspace_bytes":{},"before":{},"candidates":[{}]}})",
        quoted(explanation.arch),
        explanation.chosen.empty() ? std::string("null") : quoted(explanation.chosen),
        fmt::join(explanation.grid, ","), fmt::join(explanation.block, ","),
        explanation.shared_bytes, explanation.splits, explanation.batch_invariant,
        explanation.split_keys, explanation.workspace_bytes, quoted_list(explanation.before),
        candidates_of(explanation.candidates));
}

}  // namespace jitney
