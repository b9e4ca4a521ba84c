// The state of the cache of compiled kernels on disk, and what its upkeep did (cache.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace jitney::cache {

// A file or directory of the cache that is not used, and why.
struct BadEntry {
    std::string path;
    std::string reason;
    std::string mend = {};  // of a directory that lacks trust
};

// Files and directories that could not be looked at, for want of trust or because of an error:
// "can't be listed: Too many open files" follows the name of each. What else was found is not all
// that is there.
struct Gaps {
    std::vector<BadEntry> directories;
    std::vector<BadEntry> files;

    bool empty() const { return directories.empty() && files.empty(); }
};

// How a layer stands. `refusal` says why it is not used; a root that does not exist is not an
// error: the private one is made when there is something to keep.
struct LayerState {
    std::string root;
    bool writable = false;
    bool exists = false;
    std::string refusal;
    std::string mend;               // of a refusal for want of trust
    bool trusted = false;           // JITNEY_CACHE_TRUST names it
    std::vector<BadEntry> refused;  // directories in it that are not used, or can't be listed
    std::vector<BadEntry> unread;   // files in it that can't be looked at
    std::uint64_t entries = 0;      // those that list() shows
    std::uint64_t bytes = 0;
    std::vector<BadEntry> damaged;     // files under an entry's name whose heads are no entry's
    std::uint64_t other_versions = 0;  // entries of another schema
    std::uint64_t temps = 0;           // files being written, and those left by stopped processes
    std::uint64_t temp_bytes = 0;
    std::uint64_t abandoned_temps = 0;  // of them, those that nobody writes any more
};

struct Statistics {
    std::vector<LayerState> layers;  // in the order of look-up
    std::uint64_t entries = 0;       // of all layers
    std::uint64_t bytes = 0;
    std::uint64_t damaged = 0;
    std::uint64_t other_versions = 0;
    std::uint64_t temps = 0;
    std::uint64_t temp_bytes = 0;
    std::uint64_t abandoned_temps = 0;
    std::uint64_t max_bytes = 0;  // of the private layer
};

struct Verification {
    std::uint64_t checked = 0;
    std::vector<BadEntry> bad;
    std::uint64_t bad_that_stay = 0;   // of them, those that nothing here replaces
    std::uint64_t other_versions = 0;  // not of `checked`: entries of another schema
    Gaps gaps;
};

struct Removal {
    std::uint64_t removed_entries = 0;
    std::uint64_t removed_bytes = 0;
    std::uint64_t removed_temps = 0;
    std::uint64_t removed_temp_bytes = 0;
    std::uint64_t entries = 0;  // that remain
    std::uint64_t bytes = 0;
    std::uint64_t temps = 0;  // that remain: other processes write them
    std::uint64_t temp_bytes = 0;
    std::vector<BadEntry> stuck;  // what takes an entry's place, is none, and can't be removed
    Gaps gaps;
};

struct ImportReport {
    std::uint64_t imported = 0;  // are in the cache now, and were not before
    std::uint64_t present = 0;   // were there already
    std::uint64_t left_out = 0;  // did not fit under the size cap beside those before them
    std::vector<BadEntry> bad;   // path is "entry N" of the bundle
};

}  // namespace jitney::cache
