#include "tests/c_abi/fake_driver.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "tests/runtime/fake_cuda.hpp"

namespace {

// The library that JITNEY_LIBCUDA names is the one that is opened already.
fake::Cuda& driver() {
    static fake::Cuda* const found = [] {
        const char* path = std::getenv("JITNEY_LIBCUDA");
        void* library = path != nullptr ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
        void* symbol = library != nullptr ? dlsym(library, "fake_cuda") : nullptr;
        if (symbol == nullptr) {
            std::fputs("JITNEY_LIBCUDA does not name the fake driver\n", stderr);
            std::exit(2);
        }
        return static_cast<fake::Cuda*>(symbol);
    }();
    return *found;
}

}  // namespace

int fake_launches(void) {
    return driver().launches;
}

int fake_allocations(void) {
    return driver().allocations;
}

void* fake_stream(void) {
    return driver().launch.stream;
}

void fake_capture(int capturing) {
    driver().capture_status = capturing;
}
