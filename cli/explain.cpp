// jitney explain OP: which specialization a problem gets, in which geometry, and why not the
// others.
#include "jitney/explain.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/attention_problem.hpp"
#include "cli/backend_choice.hpp"
#include "cli/command.hpp"
#include "cli/errors.hpp"
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

void print_explanation(const Explanation& explanation, bool json) {
    const bool found = !explanation.chosen.empty();
    if (json) {
        Json candidates = Json::array();
        for (const ExplainedCandidate& each : explanation.candidates) {
            candidates.push_back(
                {{"kernel", each.kernel}, {"accepted", each.accepted}, {"reason", each.reason}});
        }
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
                    {"candidates", std::move(candidates)}});
        return;
    }
    if (found) {
        Table facts({"chosen", explanation.chosen});
        facts.add({"grid", fmt::format("{}", fmt::join(explanation.grid, " x "))});
        facts.add({"block", fmt::format("{}", fmt::join(explanation.block, " x "))});
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
    } else if (explanation.candidates.empty()) {
        print("chosen  nothing: there is nothing to compute\n");
    } else {
        print(fmt::format("chosen  nothing: no kernel runs this on {}\n", explanation.arch));
    }
    if (explanation.candidates.empty()) return;
    Table table({"candidate", "accepted", "reason"});
    for (const ExplainedCandidate& each : explanation.candidates)
        table.add({each.kernel, each.accepted ? "yes" : "no", each.reason});
    print("\n" + table.text());
}

template <class Problem>
int explain_problem(const Options<Problem>& options, bool json) {
    if (!options.arch.empty() && options.device >= 0) {
        refuse("--arch and --device both name what to explain for: leave one of them out");
    }
    std::optional<Scope> scope;
    if (!options.force.empty()) scope.emplace(options.force);
    const Device device = {DeviceType::cuda, options.device < 0 ? 0 : options.device};
    const auto args = options.problem.arguments(device);
    print_explanation(explain(args, options.arch), json);
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
    add_operation(group, request, "fp8-quantize",
                  "Casting to an 8-bit floating format, of the shape given",
                  std::make_shared<Options<Fp8QuantizeProblem>>());
    add_operation(group, request, "fp8-gemm", "A product of FP8 matrices, of the shapes given",
                  std::make_shared<Options<Fp8GemmProblem>>());
}

}  // namespace jitney::cli
