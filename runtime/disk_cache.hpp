// The cache on disk of this process, as the environment says it.
#pragma once

#include <string>

#include "cache/store.hpp"

namespace jitney::runtime {

cache::Store& disk_cache();

// Its directories, for sentences: "~/.cache/jitney and /opt/kernels".
std::string disk_cache_places();

// The compiler whose entries are taken first: that of the NVRTC at hand, where its file name tells
// the version and compiling is allowed; else empty, which prefers the newest.
std::string preferred_compiler();

}  // namespace jitney::runtime
