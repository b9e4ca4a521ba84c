#include "cache/scan.hpp"

#include <fmt/format.h>

#include <cerrno>

namespace jitney::cache {

namespace {

void scan_shard(Layer& layer, const std::string& shard, Scan* found) {
    const std::string path = fmt::format("{}/{}", layer.root(), shard);
    std::string why;
    const Handle opened = layer.open_shard(shard, false, &why);
    if (!why.empty()) found->gaps.directories.push_back({path, why});
    if (!opened) return;
    std::vector<std::string> names;
    if (layer.files().list(opened.get(), &names) != 0) {
        found->gaps.directories.push_back({path, "can't be listed: " + error_text(errno)});
    }
    for (std::string& name : names) {
        struct stat status {};
        if (layer.files().stat_at(opened.get(), name.c_str(), &status) == 0) {
            found->files.push_back(
                {shard, std::move(name), status.st_mode & S_IFMT, FileIdentity(status)});
        } else if (errno != ENOENT) {
            found->gaps.files.push_back(
                {fmt::format("{}/{}", path, name), "can't be examined: " + error_text(errno)});
        }
    }
}

}  // namespace

Scan scan(Layer& layer) {
    Scan found;
    const auto directory = layer.open();
    if (!directory) {
        std::string why = layer.refusal();
        if (why.empty()) why = layer.trouble();
        if (!why.empty()) found.gaps.directories.push_back({layer.root(), why});
        return found;
    }
    found.exists = true;
    std::vector<std::string> names;
    if (layer.files().list(directory->get(), &names) != 0) {
        found.gaps.directories.push_back({layer.root(), "can't be listed: " + error_text(errno)});
    }
    for (const std::string& name : names) {
        if (is_shard(name)) scan_shard(layer, name, &found);
    }
    return found;
}

std::string path_of(const Layer& layer, const ScannedFile& file) {
    return fmt::format("{}/{}/{}", layer.root(), file.shard, file.name);
}

}  // namespace jitney::cache
