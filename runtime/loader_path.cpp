#include "runtime/loader_path.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>

#include "runtime/environment.hpp"

namespace jitney::runtime {
namespace {

namespace fs = std::filesystem;

// The format that glibc has written since 2.2: a header, then entries, then the strings, whose
// offsets count from the header.
constexpr std::string_view kCacheMagic = "glibc-ld.so.cache1.1";
constexpr std::size_t kCacheHeaderBytes = 48;
constexpr std::size_t kCacheEntryBytes = 24;

// The flags of an entry that this process could load.
#if defined(__x86_64__)
constexpr std::uint32_t kLibraryFlags = 0x0303;
#elif defined(__aarch64__)
constexpr std::uint32_t kLibraryFlags = 0x0a03;
#else
#error "the loader's cache is known for x86_64 and aarch64"
#endif

std::uint32_t word_at(std::string_view bytes, std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

std::optional<std::string_view> string_at(std::string_view bytes, std::size_t at) {
    if (at >= bytes.size()) return std::nullopt;
    const std::size_t end = bytes.find('\0', at);
    if (end == std::string_view::npos) return std::nullopt;
    return bytes.substr(at, end - at);
}

// LD_LIBRARY_PATH, the run path of this code, and the default directories.
struct LoaderDirectories {
    std::vector<std::string> searched;
    std::vector<std::string> defaults;  // these come after the cache
};

// The loader does not tell which of its directories are the default ones.
bool is_default(const std::string& directory) {
    for (const std::string_view root : {"/lib", "/lib64", "/usr/lib", "/usr/lib64"}) {
        if (directory == root) return true;
        if (directory.rfind(std::string(root) + "/", 0) == 0) return true;
    }
    return false;
}

// Whether LD_LIBRARY_PATH names the directory; the loader does not tell that either.
bool is_of_environment(const std::string& directory) {
    const auto same = [&directory](const std::string& part) {
        return fs::path(part + "/").lexically_normal() ==
               fs::path(directory + "/").lexically_normal();
    };
    const std::string list = environment("LD_LIBRARY_PATH").value_or("");
    const std::vector<std::string> parts = parts_of_path(list);
    return std::any_of(parts.begin(), parts.end(), same);
}

LoaderDirectories loader_directories() {
    LoaderDirectories directories;
    static const char anchor = 0;
    Dl_info info{};
    link_map* map = nullptr;
    if (dladdr1(&anchor, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) {
        return directories;
    }
    Dl_serinfo size{};
    if (dlinfo(map, RTLD_DI_SERINFOSIZE, &size) != 0) return directories;
    const auto buffer = std::make_unique<std::uint64_t[]>(size.dls_size / 8 + 1);
    auto* paths = reinterpret_cast<Dl_serinfo*>(buffer.get());
    *paths = size;
    if (dlinfo(map, RTLD_DI_SERINFO, paths) != 0) return directories;
    const Dl_serpath* first = &paths->dls_serpath[0];
    for (unsigned i = 0; i < paths->dls_cnt; ++i) {
        const std::string directory = first[i].dls_name;
        (is_default(directory) ? directories.defaults : directories.searched).push_back(directory);
    }
    return directories;
}

std::string read_file(const char* path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::string path_of_loaded(const char* soname) {
    void* handle = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) return {};
    std::string path;
    link_map* map = nullptr;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) path = map->l_name;
    dlclose(handle);
    return path;
}

std::vector<std::string> paths_in_loader_cache(std::string_view cache, std::string_view soname) {
    std::vector<std::string> paths;
    const std::size_t start = cache.find(kCacheMagic);
    if (start == std::string_view::npos) return paths;
    cache.remove_prefix(start);
    if (cache.size() < kCacheHeaderBytes) return paths;
    const std::size_t count = word_at(cache, kCacheMagic.size());
    if (count > (cache.size() - kCacheHeaderBytes) / kCacheEntryBytes) return paths;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t entry = kCacheHeaderBytes + i * kCacheEntryBytes;
        if (word_at(cache, entry) != kLibraryFlags) continue;
        if (string_at(cache, word_at(cache, entry + 4)) != soname) continue;
        if (const auto path = string_at(cache, word_at(cache, entry + 8))) {
            paths.emplace_back(*path);
        }
    }
    return paths;
}

std::vector<LoaderPath> paths_in_loader_directories(const char* soname) {
    static const LoaderDirectories directories = loader_directories();
    static const std::string cache = read_file("/etc/ld.so.cache");
    std::vector<LoaderPath> paths;
    for (const std::string& directory : directories.searched) {
        paths.push_back({directory + "/" + soname, !is_of_environment(directory)});
    }
    for (std::string& path : paths_in_loader_cache(cache, soname)) {
        paths.push_back({std::move(path)});
    }
    for (const std::string& directory : directories.defaults) {
        paths.push_back({directory + "/" + soname});
    }
    return paths;
}

}  // namespace jitney::runtime
