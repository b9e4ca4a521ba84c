// Where the system's loader would find a library, answered without opening it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace jitney::runtime {

// The path of a library that the process has loaded under that soname; empty where it has not.
std::string path_of_loaded(const char* soname);

struct LoaderPath {
    std::string path;
    bool of_run_path = false;  // of this code, rather than LD_LIBRARY_PATH's or the system's
};

// Its paths in the loader's search path and cache, in the loader's order.
std::vector<LoaderPath> paths_in_loader_directories(const char* soname);

// The paths that the bytes of a loader's cache (/etc/ld.so.cache) give for a soname on this
// machine's architecture. Bytes of no known format give none.
std::vector<std::string> paths_in_loader_cache(std::string_view cache, std::string_view soname);

}  // namespace jitney::runtime
