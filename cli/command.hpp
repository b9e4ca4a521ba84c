// How subcommands join the command line: each adds its options and says what it does.
#pragma once

#include <functional>
#include <string>

#include "jitney/operations.hpp"

namespace CLI {
class App;
}

namespace jitney::cli {

// What a subcommand does once its options are read; the exit status.
using Action = std::function<int(bool json)>;

// What the command line asked for.
struct Request {
    bool json = false;
    Action action;
};

// A subcommand that acts, or one that has subcommands of its own. Both take --json and --help.
CLI::App& add_command(CLI::App& parent, Request& request, const std::string& name,
                      const std::string& description, Action action);
CLI::App& add_group(CLI::App& parent, Request& request, const std::string& name,
                    const std::string& description);

// The name of an operation's command, "append-kv".
std::string command_of(const OperationInfo& operation);

// One a file.
void add_prewarm(CLI::App& root, Request& request);
void add_run(CLI::App& root, Request& request);
void add_explain(CLI::App& root, Request& request);
void add_cache(CLI::App& root, Request& request);
void add_doctor(CLI::App& root, Request& request);
void add_bench(CLI::App& root, Request& request);
void add_ops(CLI::App& root, Request& request);

}  // namespace jitney::cli
