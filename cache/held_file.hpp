// A file that this process holds a lock of. A child made by fork shares what its parent has open,
// and with it the lock, which would outlive the parent: so every such file is known here, and a
// child closes its copies before it does anything else.
#pragma once

#include <memory>
#include <string>

#include "cache/file_system.hpp"

namespace jitney::cache {

class HeldFile {
  public:
    HeldFile() = default;
    HeldFile(HeldFile&&) noexcept = default;
    HeldFile& operator=(HeldFile&& other) noexcept;
    ~HeldFile() { close(); }

    // Empty, and errno set, where the file can't be opened.
    static HeldFile open(FileSystem& files, int directory, const std::string& name, int flags,
                         mode_t mode = 0);

    // -1 where it is closed, as every one is that a child of fork inherited.
    int get() const { return file_ ? *file_ : -1; }
    explicit operator bool() const { return get() >= 0; }
    // Returns 0, or the errno of close: data that the file system could not keep.
    int close();

  private:
    FileSystem* files_ = nullptr;
    std::unique_ptr<int> file_;  // at an address that the list of all of them knows
};

}  // namespace jitney::cache
