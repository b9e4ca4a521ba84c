// Scenarios: test cases marked doctest::skip() that run in a process of their own, since a process
// opens its driver, reads its environment and finds its cache once.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace jitney::tests {

// A directory of this process, removed with the object.
class TemporaryDirectory {
  public:
    TemporaryDirectory();
    ~TemporaryDirectory();
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    const std::string& path() const { return path_; }
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  private:
    std::string path_;
};

using Variables = std::vector<std::pair<std::string, std::string>>;

struct Ended {
    int status = -1;
    std::string output;  // stdout and stderr
    // The scenario ran, and every check in it held.
    bool passed() const;
    // What it printed after "NAME: " on a line of its own; empty where it did not.
    std::string value(const std::string& name) const;
    // How often the text occurs in the output.
    int count(const std::string& text) const;
};

class Child {
  public:
    // The environment is this process's without JITNEY_, FAKE_ and CUDA_ variables, but for the
    // seed of the run, and these, which replace others of their name: the last one counts.
    Child(const std::string& scenario, const Variables& variables,
          const std::string& directory = ".", const std::string& program = "");
    Child(Child&& other) noexcept;
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child();
    Ended wait();

  private:
    int process_ = -1;
    int output_ = -1;
};

inline Ended run(const std::string& scenario, const Variables& variables) {
    return Child(scenario, variables).wait();
}

// The variables of a process with the fake driver, the fake compiler and that cache.
Variables fakes(const std::string& cache_directory, const Variables& more = {});

std::string own_program();
std::string fake_path(const std::string& file);
std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& text);
bool is_mapped(const std::string& file);  // into this process

}  // namespace jitney::tests

// Requires that a scenario passes; shows its output where it does not.
#define REQUIRE_PASSED(ended) REQUIRE_MESSAGE((ended).passed(), (ended).output)
