#include "tests/emulator/kernels/launch_choice.hpp"

#include <string>

#include "tests/emulator/kernels/registry.hpp"
#include "tests/emulator/machine/fault.hpp"

namespace jitney::emulator {

void launch_choice(const policy::Spec& spec, const policy::Geometry& geometry, void* params,
                   tests::Random& random, const Blocks& blocks) {
    const Kernel* kernel = find_compiled(policy::text_of(spec));
    REQUIRE(kernel != nullptr);
    const auto dim3 = [](const std::array<unsigned, 3>& sizes) {
        return runtime::Dim3{sizes[0], sizes[1], sizes[2]};
    };
    runtime::LaunchShape shape;
    shape.grid = dim3(geometry.grid);
    shape.block = dim3(geometry.block);
    shape.cluster = dim3(geometry.cluster);
    shape.shared_bytes = geometry.shared_bytes;
    shape.programmatic_dependent = geometry.programmatic;
    void* arguments[] = {params};
    try {
        launch(*kernel, shape, arguments,
               {.seed = random.bits(), .order = blocks.order, .only = blocks.only});
    } catch (const Fault& fault) {
        FAIL(std::string(fault.what()));
    }
}

}  // namespace jitney::emulator
