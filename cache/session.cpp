#include "cache/session.hpp"

#include <fmt/format.h>

#include "cache/publish.hpp"
#include "cache/sweep.hpp"
#include "cache/usage.hpp"

namespace jitney::cache {

Session::Session(const Options& options, FileSystem& file_system, pid_t own_process,
                 Session* own_parent)
    : process(own_process),
      parent(own_parent),
      files(file_system),
      max_bytes(options.max_bytes),
      warnings(options.warn) {
    if (!options.private_root.empty()) {
        layers.push_back(std::make_unique<Layer>(files, options.private_root, Role::writable,
                                                 warnings, options.trusts(options.private_root)));
    }
    for (const std::string& root : options.readonly_roots) {
        layers.push_back(
            std::make_unique<Layer>(files, root, Role::readonly, warnings, options.trusts(root)));
    }
}

Layer* Session::writable() {
    return !layers.empty() && layers[0]->role() == Role::writable ? layers[0].get() : nullptr;
}

bool Session::is_rejected(const EntryName& name, const Digest& checksum) {
    const std::lock_guard guard(mutex_);
    return rejected_.contains({name.file(), checksum});
}

void Session::add_rejected(const EntryName& name, const Digest& checksum) {
    const std::lock_guard guard(mutex_);
    rejected_.insert({name.file(), checksum});
}

std::optional<VerifiedEntry> Session::load(Layer& layer, const EntryName& name,
                                           const std::string& material) {
    const std::string path = fmt::format("{}/{}/{}", layer.root(), name.shard(), name.file());
    const ReadFile file = layer.read(name.shard(), name.file());
    if (!file.present) {
        if (!file.refusal.empty()) {
            warnings.once(fmt::format("cache entry {} is not used: it {}", path, file.refusal));
        }
        return std::nullopt;
    }
    Decoded<VerifiedEntry> decoded = decode_as(file.bytes, name);
    if (!decoded) {
        if (decoded.flaw == Flaw::corrupt) {
            const bool own = layer.role() == Role::writable;
            warnings.once(
                fmt::format("cache entry {} is damaged: {}; it is {} and will be compiled "
                            "again",
                            path, decoded.reason, own ? "removed" : "left out"));
            if (const Handle shard = layer.open_shard(name.shard()); own && shard) {
                layer.remove(shard, name.file(), file.identity);
            }
        }
        return std::nullopt;
    }
    // Two keys of one digest: as good as never, and a miss all the same.
    if (decoded.value->entry.material != material) return std::nullopt;
    if (is_rejected(name, decoded.value->checksum)) return std::nullopt;
    mark_used(layer, file);
    return std::move(decoded.value);
}

bool Session::keep(const Entry& entry) {
    Layer* const layer = writable();
    if (layer == nullptr || max_bytes == 0) return false;
    if (const std::string why = unencodable(entry); !why.empty()) {
        warnings.once("a compiled kernel is not kept in the cache: " + why);
        return false;
    }
    const EntryName name = name_of(entry);
    const std::string bytes = encode(entry);
    if (bytes.size() > max_bytes) {
        warnings.once(
            fmt::format("a compiled kernel is not kept in the cache: its {} bytes are more than "
                        "the cache may hold (JITNEY_CACHE_MAX_BYTES, {})",
                        bytes.size(), max_bytes));
        return false;
    }
    // The same bytes would be rejected again by the next process.
    const auto head = decode_head(bytes, bytes.size());
    if (is_rejected(name, head.value->checksum)) return false;
    const auto warn = [&](const std::string& why) {
        warnings.once(fmt::format("compiled kernels are not kept: cache directory {} {}",
                                  layer->root(), why));
    };
    if (const std::string why = reserve(*layer, bytes.size(), max_bytes); !why.empty()) {
        warn(why);
        return false;
    }
    const Publication published = publish(*layer, name, bytes);
    if (!published.error.empty()) warn(published.error);
    return published.done;
}

}  // namespace jitney::cache
