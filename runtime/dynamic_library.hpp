// Libraries that are opened while the program runs, and where they are looked for:
//   1. the environment variable, a full path; where it is set, nothing else is tried
//   2. beside the code: the directory of the library or program that holds this code, then
//      ../lib, ../cuda/lib and ../cuda/lib64 from there
//   3. the loader's path: libraries that the process has loaded already, LD_LIBRARY_PATH,
//      the loader's cache, its default directories
//   4. the toolkit's usual places: CUDA_HOME, CUDA_PATH, /usr/local/cuda, /opt/cuda
// Finding a library does not open it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace jitney::runtime {

struct LibrarySearch {
    const char* name = "";                 // for sentences: "NVRTC"
    const char* variable = "";             // "JITNEY_LIBNVRTC"
    std::span<const char* const> sonames;  // the preferred one first
    bool toolkit = false;                  // whether the toolkit's places are tried
};

struct FoundLibrary {
    std::string path;
    std::string how;  // which step of the search found it: "JITNEY_LIBNVRTC", "the loader's path"
};

// The files that exist, in the order of the search. A variable that is set gives exactly one,
// whether that file exists or not.
std::vector<FoundLibrary> find_libraries(const LibrarySearch& search);

// An open library, closed with the object unless kept.
class DynamicLibrary {
  public:
    DynamicLibrary() = default;
    DynamicLibrary(DynamicLibrary&& other) noexcept;
    DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;
    ~DynamicLibrary();

    // Nothing where it can't be opened; error says why.
    static DynamicLibrary open(const std::string& path, std::string* error);

    explicit operator bool() const noexcept { return handle_ != nullptr; }
    const std::string& path() const noexcept { return path_; }
    void* symbol(const char* name) const noexcept;
    // Leaves it open until the process ends.
    void keep() noexcept { handle_ = nullptr; }

  private:
    void* handle_ = nullptr;
    std::string path_;
};

struct OpenedLibrary {
    DynamicLibrary library;  // none where the search found nothing that can be opened
    FoundLibrary found;
    std::string error;  // one sentence, where there is none: what was tried, and what to do
};

// Opens the first library of the search that can be opened.
OpenedLibrary open_library(const LibrarySearch& search);

}  // namespace jitney::runtime
