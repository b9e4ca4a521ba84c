// Files being written. Each has a name of its own beside the one that it gets when it is whole, and
// its writer holds its lock: one that nobody holds was left by a process that was stopped.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cache/held_file.hpp"
#include "cache/layer.hpp"

namespace jitney::cache {

// A temporary file or a lock file older than this has no owner, where the file system can't tell by
// locks whether it has.
inline constexpr std::int64_t kStaleAfter = 3600;

// Bundles are written in directories of the user's, where other programs have files too.
inline constexpr std::string_view kBundleTempPrefix = ".jitney-export-";

// Whether a name has exactly the form that names of temporary files have behind their prefix.
bool is_temporary(std::string_view name, std::string_view prefix);

// A new file of its own, its lock held; empty, with errno, where there can be none.
struct Temporary {
    std::string name;
    HeldFile file;

    // `directory` is a descriptor, or AT_FDCWD with a place such as "some/where/".
    static Temporary create(FileSystem& files, int directory, const std::string& place,
                            std::string_view prefix, mode_t mode);
};

enum class Writer {
    writing,
    none,
    gone  // so is the file
};

// Whether somebody writes a file under the name of a temporary one, and, with `remove`, removes it
// where nobody does: then the answer is `gone`. `now` is by the clock of the file system.
Writer writer_of(FileSystem& files, int directory, const std::string& name, std::int64_t now,
                 bool remove);

// Removes what stopped exports left in a directory; "" is the current one.
void reap_bundles(FileSystem& files, const std::string& place);

}  // namespace jitney::cache
