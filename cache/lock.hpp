// Locks of files, by which processes share work and tell what is still in use. The kernel releases
// them with their holder (and a forked child keeps none: cache/held_file.hpp), waits are bounded,
// and nothing is wrong without them.
#pragma once

#include <chrono>

#include "cache/held_file.hpp"
#include "cache/layer.hpp"

namespace jitney::cache {

// The outcome of a try to lock an open file that a name stands for.
enum class LockTry {
    held,     // it is locked now, and the name still stands for it
    busy,     // another process, or another part of this one, holds it
    gone,     // it is locked, and the name stands for it no more
    no_locks  // the file system has none; errno says why
};
LockTry try_lock(FileSystem& files, int directory, const std::string& name, int file);

// The lock of a name in a directory of the private layer.
class NamedLock {
  public:
    NamedLock() = default;
    NamedLock(const NamedLock&) = delete;
    NamedLock& operator=(const NamedLock&) = delete;
    ~NamedLock() { release(); }

    // Waits up to `timeout`; false when it was not had, because of the time or because the
    // directory or its file system has no locks. `directory` stays open meanwhile.
    bool acquire(Layer& layer, int directory, const std::string& name,
                 std::chrono::milliseconds timeout);
    void release();

    // The file, open for reading and writing.
    int get() const { return file_.get(); }
    explicit operator bool() const { return static_cast<bool>(file_); }

  private:
    bool open(Layer& layer, int directory, const std::string& name);

    FileSystem* files_ = nullptr;
    HeldFile file_;
};

// While one process compiles a key, the others wait for it.
class KeyLock {
  public:
    KeyLock() = default;
    KeyLock(const KeyLock&) = delete;
    KeyLock& operator=(const KeyLock&) = delete;
    ~KeyLock() { release(); }

    bool acquire(Layer& layer, const Digest& digest, std::chrono::milliseconds timeout);
    void release();

    // Removes the file of a lock that nobody holds any more.
    static void reap(Layer& layer, const Handle& shard, const std::string& name);

  private:
    FileSystem* files_ = nullptr;
    Handle shard_;
    std::string name_;
    NamedLock lock_;
};

}  // namespace jitney::cache
