#include "cli/command.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

namespace jitney::cli {

CLI::App& add_group(CLI::App& parent, Request& request, const std::string& name,
                    const std::string& description) {
    CLI::App* const group = parent.add_subcommand(name, description);
    group->set_help_flag("-h,--help", "Print this help and exit");
    group->add_flag("--json", request.json, "Print one JSON object on standard output");
    group->allow_extras();  // application.cpp says what is wrong with them
    return *group;
}

CLI::App& add_command(CLI::App& parent, Request& request, const std::string& name,
                      const std::string& description, Action action) {
    CLI::App& command = add_group(parent, request, name, description);
    command.callback([&request, action = std::move(action)] { request.action = action; });
    return command;
}

std::string command_of(const OperationInfo& operation) {
    std::string name = operation.name;
    std::ranges::replace(name, '_', '-');
    return name;
}

}  // namespace jitney::cli
