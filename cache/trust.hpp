// Whose files Jitney acts on. Whoever can change a kernel's entry, a library or any directory above
// them can run code under the user's name. So all of it has to belong to the user or to the
// superuser, and nobody else may write to it. The cache and the search for libraries both ask here.
#pragma once

#include <string>

#include "cache/file_io.hpp"

namespace jitney::cache {

enum class Owner { user, user_or_superuser };

// Why what has this status may not be trusted; empty if it may. `file`, where there is one, is its
// descriptor: a group may write where the user is its one member, and only a descriptor shows
// whether an access list lets others in as well.
std::string distrust(FileSystem& files, const struct stat& status, Owner owner, int file = -1);

// What a walk along a path came to.
struct Reached {
    Handle handle;  // of the path's end, for looking at it (O_PATH); empty where it wasn't reached
    struct stat status {};
    std::string refusal;  // why a step above the end is not to be trusted: "lies below ..."
    int error = 0;        // why it wasn't reached, where nothing was refused: an errno
    Handle directory;     // the last directory that was reached and checked, above the end
    std::string directory_path;
    bool shared_directory = false;  // others can put names into it: /tmp, whose sticky bit keeps
                                    // them from changing the names that are not theirs
    bool at_link = false;           // it is missing, and a symbolic link leads to it
    bool creating = false;          // the error is that of making a directory
};

struct Walk {
    bool create = false;   // makes missing directories, with mode 0700, below trusted ones alone
    bool vouched = false;  // the user answers for the path: owners and modes are not looked at
};

// Goes from the root of the file system to the end of an absolute path, step by step, each step
// relative to the directory that was just opened and checked, so that nothing can be swapped
// between check and use. A symbolic link has to belong to the user or to the superuser, and what it
// leads to is walked in the same way. The end itself is left for the caller to judge.
Reached walk_to(FileSystem& files, const std::string& path, Walk walk = {});

// Why the regular file at the path, or anything above it, is not to be trusted as code; empty if it
// is. A file that is missing is not to be trusted either.
std::string distrust_of_code(FileSystem& files, const std::string& path);

}  // namespace jitney::cache
