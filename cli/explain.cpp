// jitney explain OP: which specialization a problem gets, in which geometry, and why not the
// others.
#include "jitney/explain.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <variant>

#include "cli/append_kv_problem.hpp"
#include "cli/attention_problem.hpp"
#include "cli/backend_choice.hpp"
#include "cli/command.hpp"
#include "cli/errors.hpp"
#include "cli/field_problem.hpp"
#include "cli/linear_problem.hpp"
#include "cli/merge_states_problem.hpp"
#include "cli/output.hpp"
#include "cli/problem.hpp"
#include "jitney/backend.hpp"
#include "jitney/operations.hpp"

namespace jitney::cli {

namespace {

template <class Problem>
struct Options {
    Problem problem{};
    std::string arch;
    std::string force;
    int device = -1;
};

void print_table(const Json& candidates) {
    if (candidates.empty()) return;
    Table table({"candidate", "accepted", "reason"});
    for (const Json& each : candidates)
        table.add({each["kernel"], each["accepted"] ? "yes" : "no", each["reason"]});
    print("\n" + table.text());
}

void print_nothing(const Json& explanation) {
    if (explanation["candidates"].empty()) {
        print("chosen  nothing: there is nothing to compute\n");
    } else {
        print(fmt::format("chosen  nothing: no kernel runs this on {}\n",
                          explanation["arch"].get<std::string>()));
    }
}

std::string sizes_of(const Json& sizes) {
    return fmt::format("{}", fmt::join(sizes.get<std::vector<unsigned>>(), " x "));
}

std::string bytes_of(const Json& bytes) {
    return fmt::format("{} bytes", bytes.get<std::size_t>());
}

void print_one(const Json& explanation) {
    Table facts({"chosen", explanation["chosen"]});
    facts.add({"grid", sizes_of(explanation["grid"])});
    facts.add({"block", sizes_of(explanation["block"])});
    facts.add({"shared memory", bytes_of(explanation["shared_bytes"]) + " a block"});
    facts.add({"splits", explanation["splits"].dump()});
    if (explanation["batch_invariant"]) {
        facts.add({"batch-invariant",
                   fmt::format("parts of at least {} keys", explanation["split_keys"].dump())});
    }
    facts.add({"workspace", bytes_of(explanation["workspace_bytes"])});
    for (const Json& spec : explanation["before"])
        facts.add({"goes ahead", spec});
    print(facts.text());
}

void print_launches(const Json& explanation) {
    Table table({"launched", "grid", "block", "shared memory>", "splits>", "workspace>"});
    for (const Json& each : explanation["launches"]) {
        table.add({each["spec"], sizes_of(each["grid"]), sizes_of(each["block"]),
                   each["shared_bytes"].dump(), each["splits"].dump(),
                   each["workspace_bytes"].dump()});
    }
    print(table.text());
    print("workspace of the call: " + bytes_of(explanation["workspace_bytes"]) + "\n");
}

void print_explanation(const std::string& text, bool json) {
    const Json explanation = Json::parse(text);
    if (json) return print_json(explanation);
    const bool several = explanation.contains("launches");
    if (several ? explanation["launches"].empty() : explanation["chosen"].is_null()) {
        print_nothing(explanation);
    } else if (several) {
        print_launches(explanation);
    } else {
        print_one(explanation);
    }
    print_table(explanation["candidates"]);
}

template <class Args>
std::string explained(const Args& args, const std::string& arch) {
    return json_of(explain(args, arch));
}
std::string explained(const MergeStatesCall& call, const std::string& arch) {
    return explained(call.arguments(), arch);
}
std::string explained(const FieldProblem::Call& call, const std::string& arch) {
    return explain_operation(call.operation, call.args->args(), arch);
}
template <class... Args>
std::string explained(const std::variant<Args...>& calls, const std::string& arch) {
    return std::visit([&](const auto& args) { return explained(args, arch); }, calls);
}

template <class Problem>
int explain_problem(const Options<Problem>& options, bool json) {
    if (!options.arch.empty() && options.device >= 0) {
        refuse("--arch and --device both name what to explain for: leave one of them out");
    }
    std::optional<Scope> scope;
    if (!options.force.empty()) scope.emplace(options.force);
    const Device device = {DeviceType::cuda, options.device < 0 ? 0 : options.device};
    print_explanation(explained(options.problem.arguments(device), options.arch), json);
    return kSuccess;
}

template <class Problem>
void add_problem(CLI::App& group, Request& request, const OperationInfo& operation,
                 Options<Problem> made = {}) {
    const auto options = std::make_shared<Options<Problem>>(std::move(made));
    CLI::App& command =
        add_command(group, request, command_of(operation), operation.does,
                    [options](bool json) { return explain_problem(*options, json); });
    options->problem.add_to(command);
    command.add_option("--arch", options->arch, "For a common GPU of this architecture: sm_90a")
        ->type_name("ARCH");
    add_integer(command, "--device", options->device, 0, 63, "For this GPU (0)");
    if constexpr (requires { options->problem.logits; }) {
        options->problem.logits.add_to(command, "With the logits function in this file");
        add_force(command, operation, options->force, "As where this kernel is asked for by name");
    }
}

// Those whose problems are told in fewer words than their fields.
using AddProblem = void (*)(CLI::App& group, Request& request, const OperationInfo& operation);
template <class Problem>
constexpr AddProblem kShort =
    [](CLI::App& group, Request& request, const OperationInfo& operation) {
        add_problem<Problem>(group, request, operation);
    };
const std::map<std::string_view, AddProblem> kShortProblems = {
    {"attention", kShort<AttentionProblem>},      {"rotary", kShort<RotaryProblem>},
    {"append_kv", kShort<AppendKvProblem>},       {"merge_states", kShort<MergeStatesProblem>},
    {"fp8_quantize", kShort<Fp8QuantizeProblem>}, {"fp8_gemm", kShort<Fp8GemmProblem>},
    {"fp8_linear", kShort<Fp8LinearProblem>}};

}  // namespace

void add_explain(CLI::App& root, Request& request) {
    CLI::App& group = add_group(root, request, "explain",
                                "Say which specialization a problem gets, and why not the others");
    for (const OperationInfo& operation : operations()) {
        const auto told = kShortProblems.find(operation.name);
        if (told != kShortProblems.end()) {
            told->second(group, request, operation);
        } else {
            add_problem<FieldProblem>(group, request, operation, {FieldProblem(operation), {}, {}});
        }
    }
}

}  // namespace jitney::cli
