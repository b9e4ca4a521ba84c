// Puts a file into a layer so that every reader sees all of it or nothing, whenever this process
// or the machine stops.
#pragma once

#include <string>
#include <string_view>

#include "cache/layer.hpp"

namespace jitney::cache {

// Why it was not published; empty when it was.
std::string publish(Layer& layer, const EntryName& name, std::string_view bytes);

// For a file outside of the cache (a bundle): the same steps beside `path`.
class AtomicFile {
  public:
    // Opens a temporary file in `directory` (a descriptor, or AT_FDCWD with a prefix such as
    // "some/where/"). An object without a file has error() set.
    AtomicFile(FileSystem& files, int directory, std::string prefix, mode_t mode);
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;
    ~AtomicFile();

    bool write(std::string_view bytes);
    // Makes the bytes durable and gives them their name.
    bool commit(const std::string& name);
    const std::string& error() const { return error_; }

  private:
    bool fail(const char* what, int error);

    FileSystem& files_;
    int directory_;
    std::string temp_;
    Handle file_;
    bool named_ = false;  // the temporary name exists
    std::string error_;
};

}  // namespace jitney::cache
