// jitney doctor: what Jitney finds on this machine, and what mends what it does not.
#include "cli/doctor.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/errors.hpp"

namespace jitney::cli {

void Diagnosis::fact(std::string name, std::string value) {
    facts.push_back({std::move(name), std::move(value)});
}

namespace {

std::string verdict_of(const Diagnosis& diagnosis) {
    if (diagnosis.gpu && diagnosis.compiler) {
        return "kernels are compiled and run on the GPU";
    }
    if (diagnosis.gpu && diagnosis.cached) {
        return "kernels that are in the cache run on the GPU; nothing can be compiled";
    }
    if (diagnosis.compiler) {
        return "prewarm compiles for any architecture; calls run on the CPU, by the reference "
               "backend";
    }
    return "calls run on the CPU, by the reference backend";
}

int examine(bool json) {
    Diagnosis diagnosis;
    examine_compiler(diagnosis);
    examine_driver(diagnosis);
    examine_cache(diagnosis);
    examine_environment(diagnosis);
    if (diagnosis.gpu && !diagnosis.compiler && !diagnosis.cached) {
        diagnosis.fault(
            "there is a GPU, and neither a compiler nor a compiled kernel for it: mend NVRTC, or "
            "import a cache that jitney prewarm filled on another machine");
    }

    std::size_t faults = 0;
    for (const Finding& finding : diagnosis.findings)
        faults += finding.fault ? 1 : 0;
    const std::string verdict = verdict_of(diagnosis);
    if (json) {
        Json problems = Json::array();
        for (const Finding& finding : diagnosis.findings)
            problems.push_back({{"fault", finding.fault}, {"message", finding.text}});
        Json result = {{"ok", faults == 0}, {"verdict", verdict}};
        result.update(diagnosis.json);
        result["problems"] = std::move(problems);
        print_json(result);
    } else {
        Table table({"verdict", verdict});
        for (auto& row : diagnosis.facts)
            table.add(row);
        print(table.text());
        for (const Finding& finding : diagnosis.findings)
            print_sentence(fmt::format("{}: {}", finding.fault ? "fault" : "note", finding.text));
    }
    if (faults == 0) return kSuccess;
    print_error(fmt::format("doctor found {} fault{}", faults, plural(faults)));
    return kFailure;
}

}  // namespace

void add_doctor(CLI::App& root, Request& request) {
    add_command(root, request, "doctor",
                "Examine the driver, the GPUs, NVRTC, the cache and the environment; fails only "
                "where something that is there does not work",
                examine);
}

}  // namespace jitney::cli
