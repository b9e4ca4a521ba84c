#include "cli/application.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/errors.hpp"
#include "cli/output.hpp"

namespace jitney::cli {

namespace {

// A standard stream that the caller closed would otherwise be the number of the next file that is
// opened, and messages would land in it. Writing to this stand-in fails, as it should.
void hold_standard_streams() {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(stream, F_GETFD) == -1 && errno == EBADF) {
            [[maybe_unused]] const int held = ::open("/dev/null", O_RDONLY);
        }
    }
}

std::vector<std::string> names_of_subcommands(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
        names.push_back(each->get_name());
    return names;
}

// The chain of subcommands that the command line names, the root first.
std::vector<const CLI::App*> chain_of(const CLI::App& root) {
    std::vector<const CLI::App*> chain{&root};
    while (!chain.back()->get_subcommands().empty())
        chain.push_back(chain.back()->get_subcommands().front());
    return chain;
}

// "jitney cache list"
std::string path_of(const std::vector<const CLI::App*>& chain) {
    std::string path;
    for (const CLI::App* each : chain)
        path += (path.empty() ? "" : " ") + each->get_name();
    return path;
}

// What is on the command line and belongs nowhere.
void refuse_extras(const std::vector<const CLI::App*>& chain) {
    std::vector<const CLI::App*> to_here;
    for (const CLI::App* app : chain) {
        to_here.push_back(app);
        const std::vector<std::string> extras = app->remaining();
        if (extras.empty()) continue;
        const std::string& extra = extras.front();
        const std::string path = path_of(to_here);
        const std::vector<std::string> names = names_of_subcommands(*app);
        if (extra.starts_with('-')) {
            refuse(fmt::format("{} has no option {}; see {} --help", path, extra, path));
        }
        if (names.empty()) {
            refuse(fmt::format("{} takes no argument \"{}\"; see {} --help", path, extra, path));
        }
        refuse(fmt::format("{} has no subcommand \"{}\"; it has {}", path, extra,
                           fmt::join(names, ", ")));
    }
}

void build(CLI::App& root, Request& request, bool& version) {
    root.set_help_flag("-h,--help", "Print this help and exit");
    root.add_flag("--version", version, "Print the version and exit");
    root.add_flag("--json", request.json, "Print one JSON object on standard output");
    root.allow_extras();
    root.footer(
        "Every command takes --json and --help. Exit status: 0; 2 where the command line\n"
        "or an input is wrong; 1 where anything else fails.");
    add_prewarm(root, request);
    add_ops(root, request);
    add_run(root, request);
    add_explain(root, request);
    add_cache(root, request);
    add_doctor(root, request);
    add_bench(root, request);
}

void print_version(bool json) {
    if (json) {
        print_json({{"version", JITNEY_VERSION}});
    } else {
        print(fmt::format("jitney {}\n", JITNEY_VERSION));
    }
}

int run_command(int argc, const char* const* argv) {
    Request request;
    bool version = false;
    CLI::App root("Attention, rotary and FP8 kernels for NVIDIA GPUs, compiled just in time.",
                  "jitney");
    build(root, request, version);
    try {
        root.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        print(root.help());
        return kSuccess;
    } catch (const CLI::ParseError& error) {
        const auto chain = chain_of(root);
        refuse_extras(chain);
        refuse(fmt::format("{}; see {} --help", error.what(), path_of(chain)));
    }
    if (version) {
        print_version(request.json);
        return kSuccess;
    }
    const auto chain = chain_of(root);
    refuse_extras(chain);
    if (!request.action) {
        refuse(fmt::format("{} needs a subcommand: {}; see {} --help", path_of(chain),
                           fmt::join(names_of_subcommands(*chain.back()), ", "), path_of(chain)));
    }
    return request.action(request.json);
}

}  // namespace

int run(int argc, const char* const* argv) noexcept {
    hold_standard_streams();
    try {
        const int status = run_command(argc, argv);
        flush_output();
        return status;
    } catch (const std::exception& error) {
        return report(error);
    }
}

}  // namespace jitney::cli
