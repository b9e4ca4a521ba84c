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

std::string json_of(const ExplainedCandidate& candidate) {
    return fmt::format(R"({{"kernel":{},"accepted":{},"reason":{}}})", quoted(candidate.kernel),
                       candidate.accepted, quoted(candidate.reason));
}

std::string json_of(const ExplainedLaunch& launch) {
    return fmt::format(R"({{"spec":{},"grid":[{}],"block":[{}],"shared_bytes":{},"splits":{},)"
                       R"("workspace_bytes":{}}})",
                       quoted(launch.spec), fmt::join(launch.grid, ","),
                       fmt::join(launch.block, ","), launch.shared_bytes, launch.splits,
                       launch.workspace_bytes);
}

template <class Value>
std::string list_of(const std::vector<Value>& values) {
    return json_list(values, [](const Value& value) { return json_of(value); });
}

}  // namespace

std::string json_of(const ExplainedLaunches& explanation) {
    return fmt::format(R"({{"arch":{},"launches":{},"workspace_bytes":{},"candidates":{}}})",
                       quoted(explanation.arch), list_of(explanation.launches),
                       explanation.workspace_bytes, list_of(explanation.candidates));
}

std::string json_of(const Explanation& explanation) {
    return fmt::format(
        R"({{"arch":{},"chosen":{},"grid":[{}],"block":[{}],"shared_bytes":{},"splits":{},)"
        R"("batch_invariant":{},"split_keys":{},"workspace_bytes":{},"before":{},"candidates":{}}})",
        quoted(explanation.arch),
        explanation.chosen.empty() ? std::string("null") : quoted(explanation.chosen),
        fmt::join(explanation.grid, ","), fmt::join(explanation.block, ","),
        explanation.shared_bytes, explanation.splits, explanation.batch_invariant,
        explanation.split_keys, explanation.workspace_bytes, quoted_list(explanation.before),
        list_of(explanation.candidates));
}

}  // namespace jitney
