// The policy's answer as JSON, in the form that `jitney explain --json` prints.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <vector>

#include "api/c_abi_explain.hpp"

#include "api/c_abi_arguments.hpp"
#include "api/c_abi_error.hpp"
#include "api/json_text.hpp"
#include "jitney/explain.hpp"
#include "jitney/fp8_linear.hpp"
#include "operations/refuse.hpp"

namespace jitney::c_abi {
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
        R"("batch_invariant":{},"split_keys":{},"workspace_bytes":{},"candidates":[{}]}})",
        quoted(explanation.arch),
        explanation.chosen.empty() ? std::string("null") : quoted(explanation.chosen),
        fmt::join(explanation.grid, ","), fmt::join(explanation.block, ","),
        explanation.shared_bytes, explanation.splits, explanation.batch_invariant,
        explanation.split_keys, explanation.workspace_bytes, candidates_of(explanation.candidates));
}

namespace {

// `question` asks the C++ API.
template <class Question>
jitney_status explain_call(const char** json, const Question& question) noexcept {
    return guarded([&] {
        if (json == nullptr) checks::refuse("json is null: point it to where the text shall go");
        *json = nullptr;
        thread_local std::string shown;
        shown = json_of(question());
        *json = shown.c_str();
    });
}

std::string_view arch_of(const char* arch) {
    return arch != nullptr ? std::string_view(arch) : std::string_view();
}

}  // namespace
}  // namespace jitney::c_abi

extern "C" {

using namespace jitney;
using namespace jitney::c_abi;

jitney_status jitney_explain_attention(const jitney_attention_args* args, const char* arch,
                                       const char** json) {
    return explain_call(json, [&] { return explain(arguments(args), arch_of(arch)); });
}

jitney_status jitney_explain_rotary(const jitney_rotary_args* args, const char* arch,
                                    const char** json) {
    return explain_call(json, [&] { return explain(arguments(args), arch_of(arch)); });
}

jitney_status jitney_explain_append_kv(const jitney_append_kv_args* args, const char* arch,
                                       const char** json) {
    return explain_call(json, [&] { return explain(arguments(args), arch_of(arch)); });
}

jitney_status jitney_explain_merge_states(const jitney_merge_states_args* args, const char* arch,
                                          const char** json) {
    return explain_call(json, [&] {
        MergeParts parts;
        return explain(arguments(args, parts), arch_of(arch));
    });
}

jitney_status jitney_explain_fp8_quantize(const jitney_fp8_quantize_args* args, const char* arch,
                                          const char** json) {
    return explain_call(json, [&] { return explain(arguments(args), arch_of(arch)); });
}

jitney_status jitney_explain_fp8_gemm(const jitney_fp8_gemm_args* args, const char* arch,
                                      const char** json) {
    return explain_call(json, [&] { return explain(arguments(args), arch_of(arch)); });
}

jitney_status jitney_explain_fp8_linear(const jitney_fp8_linear_args* args, const char* arch,
                                        const char** json) {
    return explain_call(json, [&] { return explain(arguments(args), arch_of(arch)); });
}

jitney_status jitney_explain_fp8_linear_backward(const jitney_fp8_linear_backward_args* args,
                                                 const char* arch, const char** json) {
    return explain_call(json, [&] { return explain(arguments(args), arch_of(arch)); });
}

}  // extern "C"
