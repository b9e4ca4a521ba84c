#include "tests/api/fake_gpu.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>

#include "tests/api/software_kernels.hpp"

namespace jitney::tests {

fake::Cuda& fake_cuda() {
    void* library = dlopen(std::getenv("JITNEY_LIBCUDA"), RTLD_NOW | RTLD_LOCAL);
    void* symbol = library != nullptr ? dlsym(library, "fake_cuda") : nullptr;
    if (symbol == nullptr) throw std::runtime_error("no fake driver");
    return *static_cast<fake::Cuda*>(symbol);
}

Variables fake_gpu(const TemporaryDirectory& cache, const Variables& more) {
    Variables all = fakes(cache.path(), {{"FAKE_CUDA_MEMORY", "host"}});
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

fake::Cuda& start_software_gpu() {
    fake::Cuda& fake = fake_cuda();
    fake.kernel = &run_software_kernel;
    return fake;
}

}  // namespace jitney::tests
