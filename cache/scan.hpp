// What stands in a layer, and what of it could not be looked at: a list that leaves something out
// says so.
#pragma once

#include <string>
#include <vector>

#include "cache/entry.hpp"
#include "cache/layer.hpp"

namespace jitney::cache {

struct ScannedFile {
    std::string shard;
    std::string name;
    mode_t kind = 0;  // S_IFREG, S_IFDIR, ...
    FileIdentity identity;

    bool is_regular() const { return S_ISREG(kind); }
};

struct Scan {
    bool exists =
        false;  // the root was opened; if not, and it is there, it is the first of the gaps
    std::vector<ScannedFile> files;
    Gaps gaps;
};

// Every name in every shard. A root that does not exist has none.
Scan scan(Layer& layer);

std::string path_of(const Layer& layer, const ScannedFile& file);

}  // namespace jitney::cache
