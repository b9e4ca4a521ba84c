// A file system whose n-th call fails, is cut short, or is the last thing its process does.
#pragma once

#include <cerrno>
#include <csignal>
#include <string>
#include <vector>

#include "tests/cache/support.hpp"

namespace jitney::cache::testing {

class FaultyFiles : public FileSystem {
  public:
    enum class Mode { none, once, from_then_on, kill_before, kill_after };

    Mode mode = Mode::none;
    long at = 0;  // the number of the call, from 0
    int error = EIO;
    std::string only;  // counts only calls of this name, if there is one
    bool half_writes = false;
    std::vector<std::string> calls;  // the names of the calls that counted

    int open(int directory, const char* name, int flags, mode_t mode_bits) override {
        return call("open", [&] { return FileSystem::open(directory, name, flags, mode_bits); });
    }
    int close(int file) override {
        // The descriptor is gone even when close reports a fault.
        const int result = FileSystem::close(file);
        return call("close", [&] { return result; });
    }
    ssize_t read(int file, void* bytes, std::size_t count) override {
        return call("read", [&] { return FileSystem::read(file, bytes, part(count)); });
    }
    ssize_t write(int file, const void* bytes, std::size_t count) override {
        return call("write", [&] { return FileSystem::write(file, bytes, part(count)); });
    }
    int fsync(int) override {
        return call("fsync", [] { return 0; });
    }
    int rename(int directory, const char* from, const char* to) override {
        return call("rename", [&] { return FileSystem::rename(directory, from, to); });
    }
    int unlink(int directory, const char* name) override {
        return call("unlink", [&] { return FileSystem::unlink(directory, name); });
    }
    int mkdir(int directory, const char* name, mode_t mode_bits) override {
        return call("mkdir", [&] { return FileSystem::mkdir(directory, name, mode_bits); });
    }
    int rmdir(int directory, const char* name) override {
        return call("rmdir", [&] { return FileSystem::rmdir(directory, name); });
    }
    int read_link(int link, std::string* target) override {
        return call("read_link", [&] { return FileSystem::read_link(link, target); });
    }
    int stat(int file, struct stat* result) override {
        return call("stat", [&] { return FileSystem::stat(file, result); });
    }
    int stat_at(int directory, const char* name, struct stat* result) override {
        return call("stat_at", [&] { return FileSystem::stat_at(directory, name, result); });
    }
    int list(int directory, std::vector<std::string>* names) override {
        return call("list", [&] { return FileSystem::list(directory, names); });
    }
    int touch(int file) override {
        return call("touch", [&] { return FileSystem::touch(file); });
    }
    int flock(int file, int operation) override {
        return call("flock", [&] { return FileSystem::flock(file, operation); });
    }

  private:
    std::size_t part(std::size_t count) const {
        return half_writes && count > 1 ? count / 2 : count;
    }

    template <class Body>
    auto call(const char* name, Body body) -> decltype(body()) {
        if (!only.empty() && only != name) return body();
        const long number = static_cast<long>(calls.size());
        calls.emplace_back(name);
        if (number == at && mode == Mode::kill_before) ::raise(SIGKILL);
        if ((number == at && mode == Mode::once) || (number >= at && mode == Mode::from_then_on)) {
            errno = error;
            return -1;
        }
        const auto result = body();
        if (number == at && mode == Mode::kill_after) ::raise(SIGKILL);
        return result;
    }
};

}  // namespace jitney::cache::testing
