#include "tests/runtime/child.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string_view>

extern char** environ;

namespace jitney::tests {
namespace {

namespace fs = std::filesystem;

bool is_inherited(std::string_view variable) {
    if (variable.starts_with("JITNEY_TEST_SEED=")) return true;
    for (const std::string_view prefix : {"JITNEY_", "FAKE_", "CUDA_", "LD_LIBRARY_PATH="}) {
        if (variable.substr(0, prefix.size()) == prefix) return false;
    }
    return true;
}

// "NAME=VALUE" of what is inherited and of the variables. A variable replaces an inherited one and
// any before it: were a name there twice, getenv would find the first and the later have no effect.
std::vector<std::string> environment_with(const Variables& variables) {
    std::map<std::string, std::string> values;
    for (char** each = environ; *each != nullptr; ++each) {
        if (!is_inherited(*each)) continue;
        const std::string_view text = *each;
        const std::size_t equals = text.find('=');
        if (equals == std::string_view::npos) continue;
        values.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
    for (const auto& [name, value] : variables)
        values.insert_or_assign(name, value);
    std::vector<std::string> environment;
    for (const auto& [name, value] : values) {
        environment.push_back(name);
        environment.back() += '=' + value;
    }
    return environment;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts)
        pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
    path_ = (fs::temp_directory_path() / "jitney-test-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
}

TemporaryDirectory::~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

bool Ended::passed() const {
    // "[doctest] test cases:  1 |  1 passed | 0 failed": a name that matches nothing runs nothing.
    const std::string mark = "test cases:";
    const std::size_t at = output.rfind(mark);
    if (status != 0 || at == std::string::npos) return false;
    int ran = 0;
    int succeeded = 0;
    const int read = std::sscanf(output.c_str() + at + mark.size(), "%d | %d", &ran, &succeeded);
    return read == 2 && ran == 1 && succeeded == 1;
}

std::string Ended::value(const std::string& name) const {
    const std::string mark = "\n" + name + ": ";
    const std::string text = "\n" + output;
    const std::size_t at = text.find(mark);
    if (at == std::string::npos) return {};
    const std::size_t first = at + mark.size();
    return text.substr(first, text.find('\n', first) - first);
}

int Ended::count(const std::string& text) const {
    int found = 0;
    for (std::size_t at = output.find(text); at != std::string::npos;
         at = output.find(text, at + text.size())) {
        ++found;
    }
    return found;
}

Child::Child(const std::string& scenario, const Variables& variables, const std::string& directory,
             const std::string& program) {
    std::string name = (fs::temp_directory_path() / "jitney-child-XXXXXX").string();
    output_ = mkostemp(name.data(), O_CLOEXEC);
    if (output_ < 0) throw std::runtime_error("mkostemp failed");
    unlink(name.c_str());

    const std::string executable = program.empty() ? own_program() : program;
    std::vector<std::string> arguments = {executable, "--no-skip", "--no-colors",
                                          "--test-case=" + scenario};
    std::vector<std::string> environment = environment_with(variables);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output_, 1);
    posix_spawn_file_actions_adddup2(&actions, output_, 2);
    posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
    const int error = posix_spawn(&process_, executable.c_str(), &actions, nullptr,
                                  pointers_to(arguments).data(), pointers_to(environment).data());
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::runtime_error("can't start " + executable);
}

Child::Child(Child&& other) noexcept
    : process_(std::exchange(other.process_, -1)), output_(std::exchange(other.output_, -1)) {}

Child::~Child() {
    if (process_ > 0) waitpid(process_, nullptr, 0);
    if (output_ >= 0) close(output_);
}

Ended Child::wait() {
    Ended ended;
    waitpid(process_, &ended.status, 0);
    process_ = -1;
    lseek(output_, 0, SEEK_SET);
    char buffer[4096];
    for (ssize_t n; (n = read(output_, buffer, sizeof buffer)) > 0;) {
        ended.output.append(buffer, static_cast<std::size_t>(n));
    }
    return ended;
}

Variables fakes(const std::string& cache_directory, const Variables& more) {
    Variables all = {{"JITNEY_LIBCUDA", fake_path("libcuda.so.1")},
                     {"JITNEY_LIBNVRTC", fake_path("libnvrtc.so.13")},
                     {"JITNEY_CACHE_DIR", cache_directory}};
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

std::string own_program() {
    return fs::read_symlink("/proc/self/exe").string();
}

std::string fake_path(const std::string& file) {
    return std::string(FAKES_DIRECTORY) + "/" + file;
}

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}

bool is_mapped(const std::string& file) {
    return read_file("/proc/self/maps").find(file) != std::string::npos;
}

}  // namespace jitney::tests
