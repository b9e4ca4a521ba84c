#include "tests/runtime/tiny.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>

namespace jitney::tests {

int tiny_descriptions = 0;

runtime::KernelSource tiny_source(const std::string& arch, int factor) {
    runtime::KernelSource source;
    const std::string n = std::to_string(factor);
    source.specialization = "tiny_scale<factor=" + n + ">@" + arch;
    source.arch = arch;
    source.translation_unit = "#include \"tiny/scale.cuh\"\n";
    source.function = "scale<" + n + ">";
    source.shared_bytes = 1024 * factor;
    return source;
}

runtime::KernelKey tiny_key(int arch, int factor) {
    runtime::KernelKey key;
    key.words[0] = static_cast<std::uint64_t>(arch);
    key.words[1] = static_cast<std::uint64_t>(factor);
    return key;
}

runtime::Describe tiny_describe() {
    return {[](const void*, const runtime::KernelKey& key) {
                ++tiny_descriptions;
                const auto arch = static_cast<int>(key.words[0]);
                return tiny_source("sm_" + std::to_string(arch) + (arch == 90 ? "a" : ""),
                                   static_cast<int>(key.words[1]));
            },
            nullptr};
}

fake::Cuda& fake_cuda() {
    void* library = dlopen(std::getenv("JITNEY_LIBCUDA"), RTLD_NOW | RTLD_LOCAL);
    void* symbol = library != nullptr ? dlsym(library, "fake_cuda") : nullptr;
    if (symbol == nullptr) throw std::runtime_error("no fake driver");
    return *static_cast<fake::Cuda*>(symbol);
}

}  // namespace jitney::tests
