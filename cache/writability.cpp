// Whether the private directory can be written: known only by writing.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "cache/publish.hpp"
#include "cache/session.hpp"
#include "cache/store.hpp"

namespace jitney::cache {

namespace {

constexpr std::string_view kSample = "written to see whether it can be; removed at once\n";

std::string why_no_file(Layer& layer, const Handle& directory) {
    AtomicFile file(layer.files(), directory.get(), {}, 0600);
    file.write(kSample);
    return file.error();
}

// In the deepest directory above it that exists.
std::string why_not_created(Layer& layer) {
    FileSystem& files = layer.files();
    const Reached reached = walk_to(files, layer.root(), {false, layer.vouched()});
    if (reached.at_link) return "it leads through a symbolic link to what does not exist";
    if (reached.handle) return {};  // made meanwhile
    const std::string name = fmt::format("{}{}", kTempPrefix, ::getpid());
    const int directory = reached.directory.get();
    if (reached.error != ENOENT || directory < 0) return "it " + error_text(reached.error);
    if (files.mkdir(directory, name.c_str(), 0700) != 0) {
        return fmt::format("it can't be created in {}: {}", reached.directory_path,
                           error_text(errno));
    }
    files.rmdir(directory, name.c_str());
    return {};
}

}  // namespace

std::string Store::why_unwritable() {
    Session& current = session();
    Layer* const layer = current.writable();
    if (layer == nullptr) return "no directory is named";
    const auto directory = layer->open();
    if (const std::string refusal = layer->refusal(); !refusal.empty()) return "it " + refusal;
    if (current.max_bytes == 0) return "JITNEY_CACHE_MAX_BYTES is 0";
    return directory ? why_no_file(*layer, *directory) : why_not_created(*layer);
}

}  // namespace jitney::cache
