// Puts a file into a layer so that every reader sees all of it or nothing, whenever this process
// or the machine stops.
#pragma once

#include <string>
#include <string_view>

#include "cache/layer.hpp"
#include "cache/temporary.hpp"

namespace jitney::cache {

struct Publication {
    bool done = false;
    std::string error;  // why not; empty where a warning has said it already
};

Publication publish(Layer& layer, const EntryName& name, std::string_view bytes);

// For a file outside of the cache too (a bundle): the same steps beside its place.
class AtomicFile {
  public:
    // Opens a temporary file in `directory` (a descriptor, or AT_FDCWD with a place such as
    // "some/where/"). An object without a file has error() set.
    AtomicFile(FileSystem& files, int directory, const std::string& place, mode_t mode,
               std::string_view prefix = kTempPrefix);
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
    Temporary temp_;      // whose lock is held until the file has its name
    bool named_ = false;  // the temporary name exists
    Handle file_;         // what is written through, and closed before it is renamed
    std::string error_;
};

}  // namespace jitney::cache
