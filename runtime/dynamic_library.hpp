// Libraries that are opened while the program runs, and where they are looked for:
//   1. the environment variable, a full path; where it is set, nothing else is tried
//   2. beside the code: the directory of the library or program that holds this code, then
//      ../lib, ../cuda/lib and ../cuda/lib64 from there
//   3. the loader's path: libraries that the process has loaded already, LD_LIBRARY_PATH,
//      the run path of the code, the loader's cache, its default directories
//   4. the toolkit's usual places: CUDA_HOME, CUDA_PATH, /usr/local/cuda, /opt/cuda
//   5. the packages of a Python in use, and the libraries of CONDA_PREFIX
// What the environment names (1, LD_LIBRARY_PATH, CUDA_HOME, CUDA_PATH), what the system's loader
// is set up with, and what is loaded already is believed. In every other place a file is used only
// if nobody but the user and the superuser can have put it there (cache/trust.hpp).
// Finding a library does not open it.
#pragma once

#include <functional>
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
    // Where packages of Python have it, from their directory: "nvidia/cu13/lib". Empty: not tried.
    std::span<const char* const> packages = {};
};

struct FoundLibrary {
    std::string path;
    std::string how;  // which step of the search found it: "JITNEY_LIBNVRTC", "the loader's path"
    bool checked = false;  // it stands where nothing but who may write there speaks for it
    std::string refusal =
        {};  // why it is not to be trusted, and so not used; empty where it is used
};

// The files that exist, in the order of the search, those that are refused among them. A variable
// that is set gives exactly one, whether that file exists or not.
std::vector<FoundLibrary> find_libraries(const LibrarySearch& search);

// What was refused, and why, and what to do.
std::string text_of_refusal(const LibrarySearch& search, const FoundLibrary& refused);

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

// Why an opened library is of no use; empty where it is.
using Objection = std::function<std::string(const DynamicLibrary&)>;

// Opens the first of the libraries that find_libraries(search) found, in whatever order they are
// given here, that can be opened and meets no objection. One that is refused and stands before it
// is a warning, once.
OpenedLibrary open_library(const LibrarySearch& search, const std::vector<FoundLibrary>& found,
                           const Objection& objection = {});

}  // namespace jitney::runtime
