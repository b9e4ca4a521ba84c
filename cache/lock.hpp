// A lock that saves work between processes: while one compiles a key, the others wait for it. The
// kernel releases it with its holder, waits are bounded, and nothing is wrong without it.
#pragma once

#include <chrono>

#include "cache/layer.hpp"

namespace jitney::cache {

class KeyLock {
  public:
    KeyLock() = default;
    KeyLock(const KeyLock&) = delete;
    KeyLock& operator=(const KeyLock&) = delete;
    ~KeyLock() { release(); }

    // Waits up to `timeout` for the lock of `digest`; false when it was not had, because of the
    // time or because the directory or its file system has no locks.
    bool acquire(Layer& layer, const Digest& digest, std::chrono::milliseconds timeout);
    void release();

    // Removes the file of a lock that nobody holds any more.
    static void reap(Layer& layer, const Handle& shard, const std::string& name);

  private:
    FileSystem* files_ = nullptr;
    Handle shard_;
    Handle file_;
    std::string name_;
};

}  // namespace jitney::cache
