// test_gpu [doctest's options]. Exit status 77: there is no GPU, nothing was tested.
//   JITNEY_GPU_TESTS=quick     leaves out most of the large grids
//   JITNEY_GPU_TESTS=all       tries what no GPU has been seen to pass, too
//   JITNEY_CACHE_DIR           where kernels are kept; else a directory of this run, removed after
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "jitney/error.hpp"
#include "runtime/device.hpp"
#include "runtime/driver.hpp"

namespace {

constexpr int kSkipped = 77;

// Makes the directory; empty where the caller has named one.
std::filesystem::path own_cache() {
    if (std::getenv("JITNEY_CACHE_DIR") != nullptr) return {};
    std::string name = (std::filesystem::temp_directory_path() / "jitney-gpu-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
        std::perror("mkdtemp");
        std::exit(1);
    }
    setenv("JITNEY_CACHE_DIR", name.c_str(), 1);
    return name;
}

}  // namespace

int main(int argc, char** argv) {
    if (!jitney::runtime::driver_available()) {
        std::printf("skipped: %s\n", jitney::runtime::driver_status().problem.c_str());
        return kSkipped;
    }
    const std::filesystem::path cache = own_cache();
    int result = 1;
    try {
        std::printf("card: %s\n", jitney::runtime::current_device(0).name.c_str());
        result = doctest::Context(argc, argv).run();
    } catch (const jitney::Error& error) {
        std::fprintf(stderr, "error: %s\n", error.what());
    }
    if (!cache.empty() && result == 0) std::filesystem::remove_all(cache);
    return result;
}
