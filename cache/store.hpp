// The cache on disk: compiled kernels under their keys, in a private directory and in read-only
// layers. Any fault of it costs a compile, never a wrong result, a crash or a hang.
//
// A Store may be used from any thread. Nothing here throws for what stands on disk; compute's own
// exceptions pass through.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/entry.hpp"
#include "cache/key.hpp"
#include "cache/options.hpp"
#include "jitney/cache_state.hpp"

namespace jitney::cache {

class Session;

// A verified entry and where it stands.
struct Hit {
    std::shared_ptr<const Entry> entry;
    Digest checksum;
    std::size_t layer = 0;  // of LayerState's order
    std::string path;
};

// The entries of one key, best first: those of the preferred compiler, then the newest compiler
// first; of one compiler cubin before ptx, and the private layer before the read-only ones.
// Each is read and verified when it is asked for. Must not outlive its Store.
class Candidates {
  public:
    std::optional<Hit> next();

  private:
    friend class Store;
    struct Place {
        std::size_t layer;
        EntryName name;
    };
    // With `others` false, only those of the preferred compiler.
    Candidates(Session& session, Key key, std::string preferred, bool others = true);
    void add_named(const std::string& compiler);
    void add_others();

    Session& session_;
    Key key_;
    std::string preferred_;
    bool others_;  // still to be looked for
    std::vector<Place> places_;
    std::size_t at_ = 0;
};

enum class Origin { private_layer, readonly_layer, other_thread, computed };

struct Outcome {
    std::shared_ptr<const Entry> entry;
    Origin origin = Origin::computed;
    std::optional<Hit> hit;  // when it came from a layer: what reject() takes
    bool kept = false;       // when it was computed, here or by that thread: whether it is on disk
};

struct Record {
    std::string specialization;
    Digest digest;
    std::string compiler;
    PayloadKind kind = PayloadKind::cubin;
    std::string material;
    std::uint64_t bytes = 0;     // of the file
    std::int64_t last_used = 0;  // seconds since 1970, to within an hour
    std::size_t layer = 0;
    std::string path;
};

class Store {
  public:
    explicit Store(Options options);
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;
    ~Store();

    const Options& options() const { return options_; }

    // `compiler` is the preferred one, such as nvrtc13.0; it may be empty.
    Candidates find(const Key& key, std::string_view compiler = {});

    // The caller could not use a verified entry (the driver refuses it): it is removed from the
    // private layer, and not offered again by this Store in any layer.
    void reject(const Hit& hit);

    // The entry of exactly this compiler (any, when it is empty), from a layer or from `compute`,
    // which runs once for all threads and, where locks work, all processes that ask together.
    // `compute` fills in compiler, lowered_name, kind and payload. It may throw: then the next who
    // waits computes, and nothing is kept.
    Outcome get_or_compute(const Key& key, std::string_view compiler,
                           const std::function<Entry()>& compute);

    // Keeps an entry of the key in the private layer; false when it could not, after a warning.
    bool put(const Key& key, Entry entry);

    // Why nothing could be kept in the private directory, of which there has to be one: asked by
    // writing there, which leaves nothing behind. Empty where something could.
    std::string why_unwritable();

    // For the command line. Order: by layer, then by specialization. What could not be looked at is
    // added to `gaps`.
    std::vector<Record> list(Gaps* gaps = nullptr);
    Statistics stat();
    Verification verify();
    Removal prune(std::uint64_t max_bytes);
    Removal clear();

    // Writes the entries of the records into one file, and returns how many are in it. Entries that
    // vanished are left out; so are those that are damaged or can't be read, which `left_out` then
    // names. Throws jitney::Error if the file can't be written. What stands at `path` is replaced,
    // whatever it is.
    std::uint64_t export_bundle(const std::string& path, const std::vector<Record>& records,
                                std::vector<BadEntry>* left_out = nullptr);

    // Publishes the sound entries of the file, as many as the size cap holds beside each other.
    // Throws jitney::Error if the file can't be read, is no bundle, or there is no private layer to
    // import into.
    ImportReport import_bundle(const std::string& path);

  private:
    Session& session();

    const Options options_;
    std::atomic<Session*> session_;
};

}  // namespace jitney::cache
