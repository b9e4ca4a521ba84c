// What a Store holds in one process: open layers, warnings given, keys being computed. A child
// made by fork starts its own, since a thread of the parent may have held any of these locks.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cache/entry.hpp"
#include "cache/flights.hpp"
#include "cache/layer.hpp"
#include "cache/options.hpp"

namespace jitney::cache {

class Session {
  public:
    Session(const Options& options, FileSystem& file_system, pid_t process, Session* parent);

    // Reads, checks and marks as used one entry of one layer; nothing when it is not there, is not
    // what it should be, or was rejected.
    std::optional<VerifiedEntry> load(Layer& layer, const EntryName& name,
                                      const std::string& material);

    // Keeps the entry if it can; every reason not to is a warning.
    bool keep(const Entry& entry);

    bool is_rejected(const EntryName& name, const Digest& checksum);
    void add_rejected(const EntryName& name, const Digest& checksum);

    // The layer that may be written; null when there is none.
    Layer* writable();

    const pid_t process;
    Session* const parent;  // kept alive, never used: the session before the fork
    FileSystem& files;
    const std::uint64_t max_bytes;
    Warnings warnings;
    std::vector<std::unique_ptr<Layer>> layers;  // in the order of look-up
    Flights flights;

  private:
    std::mutex mutex_;
    std::set<std::pair<std::string, Digest>> rejected_;
};

}  // namespace jitney::cache
