// jitney explain OP: which specialization a problem gets, in which geometry, and why not the
// others.
#include "jitney/explain.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <variant>

#include "cli/append_kv_problem.hpp"
#include "cli/attention_problem.hpp"
#include "cli/backend_choice.hpp"
#include "cli/command.hpp"
#include "cli/errors.hpp"
#include "cli/linear_problem.hpp"
#include "cli/merge_states_problem.hpp"
#include "cli/output.hpp"
#include "cli/problem.hpp"
#include "jitney/backend.hpp"

namespace jitney::cli {

namespace {

template <class Problem>
struct Options {
    Problem problem;
    std::string arch;
    std::string force;
    int device = -1;
};

Json json_of(const std::vector<ExplainedCandidate>& candidates) {
    Json all = Json::array();
    for (const ExplainedCandidate& each : candidates) {
        all.push_back(
            {{"kernel", each.kernel}, {"accepted", each.accepted}, {"reason", each.reason}});
    }
    return all;
}

void print_table(const std::vector<ExplainedCandidate>& candidates) {
    if (candidates.empty()) return;
    Table table({"candidate", "accepted", "reason"});
    for (const ExplainedCandidate& each : candidates)
        table.add({each.kernel, each.accepted ? "yes" : "no", each.reason});
    print("\n" + table.text());
}

void print_nothing(const std::string& arch, const std::vector<ExplainedCandidate>& candidates) {
    if (candidates.empty()) {
        print("chosen  nothing: there is nothing to compute\n");
    } else {
        print(fmt::format("chosen  nothing: no kernel runs this on {}\n", arch));
    }
}

std::string text_of(const std::array<unsigned, 3>& sizes) {
    return fmt::format("{}", fmt::join(sizes, " x "));
}

void print_explanation(const Explanation& explanation, bool json) {
    const bool found = !explanation.chosen.empty();
    if (json) {
        print_json({{"arch", explanation.arch},
                    {"chosen", found ? Json(explanation.chosen) : Json(nullptr)},
                    {"grid", explanation.grid},
                    {"block", explanation.block},
                    {"shared_bytes", explanation.shared_bytes},
                    {"splits", explanation.splits},
                    {"batch_invariant", explanation.batch_invariant},
                    {"split_keys", explanation.split_keys},
                    {"workspace_bytes", explanation.workspace_bytes},
                    {"before", explanation.before},
                    {"candidates", json_of(explanation.candidates)}});
        return;
    }
    if (found) {
        Table facts({"chosen", explanation.chosen});
        facts.add({"grid", text_of(explanation.grid)});
        facts.add({"block", text_of(explanation.block)});
        facts.add({"shared memory", fmt::format("{} bytes a block", explanation.shared_bytes)});
        facts.add({"splits", std::to_string(explanation.splits)});
        if (explanation.batch_invariant) {
            facts.add({"batch-invariant",
                       fmt::format("parts of at least {} keys", explanation.split_keys)});
        }
        facts.add({"workspace", fmt::format("{} bytes", explanation.workspace_bytes)});
        for (const std::string& spec : explanation.before)
            facts.add({"goes ahead", spec});
        print(facts.text());
    } else {
        print_nothing(explanation.arch, explanation.candidates);
    }
    print_table(explanation.candidates);
}

void print_explanation(const ExplainedLaunches& explanation, bool json) {
    if (json) {
        Json launches = Json::array();
        for (const ExplainedLaunch& each : explanation.launches) {
            launches.push_back({{"spec", each.spec},
                                {"grid", each.grid},
                                {"block", each.block},
                                {"shared_bytes", each.shared_bytes},
                                {"splits", each.splits},
                                {"workspace_bytes", each.workspace_bytes}});
        }
        print_json({{"arch", explanation.arch},
                    {"launches", std::move(launches)},
                    {"workspace_bytes", explanation.workspace_bytes},
                    {"candidates", json_of(explanation.candidates)}});
        return;
    }
    if (explanation.launches.empty()) {
        print_nothing(explanation.arch, explanation.candidates);
    } else {
        Table table({"launched", "grid", "block", "shared memory>", "splits>", "workspace>"});
        for (const ExplainedLaunch& each : explanation.launches) {
            table.add({each.spec, text_of(each.grid), text_of(each.block),
                       std::to_string(each.shared_bytes), std::to_string(each.splits),
                       std::to_string(each.workspace_bytes)});
        }
        print(table.text());
        print(fmt::format("workspace of the call: {} bytes\n", explanation.workspace_bytes));
    }
    print_table(explanation.candidates);
}

template <class Args>
void explain_call(const Args& args, const std::string& arch, bool json) {
    print_explanation(explain(args, arch), json);
}
void explain_call(const MergeStatesCall& call, const std::string& arch, bool json) {
    explain_call(call.arguments(), arch, json);
}
template <class... Args>
void explain_call(const std::variant<Args...>& calls, const std::string& arch, bool json) {
    std::visit([&](const auto& args) { explain_call(args, arch, json); }, calls);
}

template <class Problem>
int explain_problem(const Options<Problem>& options, bool json) {
    if (!options.arch.empty() && options.device >= 0) {
        refuse("--arch and --device both name what to explain for: leave one of them out");
    }
    std::optional<Scope> scope;
    if (!options.force.empty()) scope.emplace(options.force);
    const Device device = {DeviceType::cuda, options.device < 0 ? 0 : options.device};
    explain_call(options.problem.arguments(device), options.arch, json);
    return kSuccess;
}

template <class Problem>
CLI::App& add_operation(CLI::App& group, Request& request, const std::string& name,
                        const std::string& description,
                        const std::shared_ptr<Options<Problem>>& options) {
    CLI::App& command = add_command(group, request, name, description, [options](bool json) {
        return explain_problem(*options, json);
    });
    options->problem.add_to(command);
    command.add_option("--arch", options->arch, "For a common GPU of this architecture: sm_90a")
        ->type_name("ARCH");
    add_integer(command, "--device", options->device, 0, 63, "For this GPU (0)");
    return command;
}

}  // namespace

void add_explain(CLI::App& root, Request& request) {
    CLI::App& group = add_group(root, request, "explain",
                                "Say which specialization a problem gets, and why not the others");
    const auto attention = std::make_shared<Options<AttentionProblem>>();
    CLI::App& command =
        add_operation(group, request, "attention", "Attention, of the shapes given", attention);
    attention->problem.logits.add_to(command, "With the logits function in this file");
    add_force(command, attention->force, "As where this kernel is asked for by name");
    add_operation(group, request, "rotary", "Rotary position embedding, of the shapes given",
                  std::make_shared<Options<RotaryProblem>>());
    add_operation(group, request, "append-kv", "Appending new keys and values to a cache",
                  std::make_shared<Options<AppendKvProblem>>());
    add_operation(group, request, "merge-states", "Merging partial results of attention",
                  std::make_shared<Options<MergeStatesProblem>>());
    add_operation(group, request, "fp8-quantize",
                  "Casting to an 8-bit floating format, of the shape given",
                  std::make_shared<Options<Fp8QuantizeProblem>>());
    add_operation(group, request, "fp8-gemm", "A product of FP8 matrices, of the shapes given",
                  std::make_shared<Options<Fp8GemmProblem>>());
    add_operation(group, request, "fp8-linear",
                  "A linear layer on FP8, of the shapes given: all that a call launches",
                  std::make_shared<Options<Fp8LinearProblem>>());
}

}  // namespace jitney::cli
