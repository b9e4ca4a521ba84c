// jitney explain OP: which specialization a problem gets, in which geometry, and why not the
// others.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/arguments.hpp"
#include "cli/backend_choice.hpp"
#include "cli/command.hpp"
#include "cli/errors.hpp"
#include "cli/field_problem.hpp"
#include "cli/output.hpp"
#include "jitney/backend.hpp"
#include "jitney/operations.hpp"

namespace jitney::cli {

namespace {

struct Options {
    FieldProblem problem;
    std::string arch;
    std::string force;
    int device = -1;

    explicit Options(const OperationInfo& operation) : problem(operation) {}
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

int explain_problem(const Options& options, bool json) {
    if (!options.arch.empty() && options.device >= 0) {
        refuse("--arch and --device both name what to explain for: leave one of them out");
    }
    std::optional<Scope> scope;
    if (!options.force.empty()) scope.emplace(options.force);
    const auto call =
        options.problem.call({DeviceType::cuda, options.device < 0 ? 0 : options.device});
    print_explanation(
        explain_operation(call->operation().name, call->arguments()->args(), options.arch), json);
    return kSuccess;
}

}  // namespace

void add_explain(CLI::App& root, Request& request) {
    CLI::App& group = add_group(root, request, "explain",
                                "Say which specialization a problem gets, and why not the others");
    for (const OperationInfo& operation : operations()) {
        const auto options = std::make_shared<Options>(operation);
        CLI::App& command =
            add_command(group, request, command_of(operation), operation.does,
                        [options](bool json) { return explain_problem(*options, json); });
        options->problem.add_to(command);
        command
            .add_option("--arch", options->arch, "For a common GPU of this architecture: sm_90a")
            ->type_name("ARCH");
        add_integer(command, "--device", options->device, 0, 63, "For this GPU (0)");
        add_force(command, operation, options->force, "As where this kernel is asked for by name");
    }
}

}  // namespace jitney::cli
