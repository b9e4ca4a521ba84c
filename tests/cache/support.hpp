// What the tests of the cache share: a temporary root, a sample key and entry, a log of warnings,
// file systems that fail, and children that are killed.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cache/file_system.hpp"
#include "cache/store.hpp"

namespace jitney::cache::testing {

inline constexpr const char* kCompiler = "nvrtc13.0";

// Where a test's directory is: `memory` is for tests that make thousands, where the machine has
// such a place.
enum class Place { disk, memory };

// A new directory, removed with everything in it unless the test failed.
class TempDir {
  public:
    explicit TempDir(Place place = Place::disk);
    TempDir(const TempDir&) = delete;
    TempDir& operator=(const TempDir&) = delete;
    ~TempDir();

    const std::string& path() const { return path_; }
    std::string operator/(std::string_view name) const;

  private:
    std::string path_;
};

class WarningLog {
  public:
    Warn sink();
    std::vector<std::string> all() const;
    std::size_t count() const { return all().size(); }
    bool mentions(std::string_view text) const;

  private:
    mutable std::mutex mutex_;
    std::vector<std::string> said_;
};

// Does not wait for the disk: what these tests ask is not whether the disk keeps its word.
class QuickFiles : public FileSystem {
  public:
    int fsync(int) override { return 0; }
};

Options options_for(const std::string& root);

Key sample_key(std::string_view variant = "128");
std::string payload_for(std::string_view variant, std::size_t bytes = 600);
Entry sample_entry(std::string_view variant = "128", std::string_view compiler = kCompiler);

// get_or_compute of a sample, and whether it came out right.
struct Got {
    bool right = false;
    bool computed = false;
};
Got get(Store& store, std::string_view variant = "128");

std::string path_of(const std::string& root, const Key& key, std::string_view compiler = kCompiler);

std::string read_file(const std::string& path);
void write_file(const std::string& path, std::string_view bytes);
bool exists(const std::string& path);
// Moves the times of a file by that many seconds from now.
void set_age(const std::string& path, long seconds_ago);
void set_time(const std::string& path, long seconds_since_1970);
unsigned mode_of(const std::string& path);
std::vector<std::string> names_under(const std::string& root, std::string_view prefix = "");
std::size_t open_descriptors();

// Runs `body` in a child process and returns its exit status: what body returned, 128 + the signal
// that ended it, or 255 for an exception. A child that hangs is ended by SIGALRM.
int in_child(const std::function<int()>& body, unsigned seconds = 100);
int start_child(const std::function<int()>& body, unsigned seconds = 100);
int wait_child(int process);

// Runs `body` in a child that is not the superuser, which may do anything; `root` is given to it.
int as_plain_user(const std::string& root, const std::function<int()>& body);

}  // namespace jitney::cache::testing
