#include <doctest/doctest.h>

#include "policy/kernels.hpp"
#include "tests/emulator/kernels/lines.hpp"
#include "tests/emulator/kernels/registry.hpp"

namespace jitney::emulator {

TEST_CASE("every kernel of the registry runs on the CPU") {
    for (const policy::KernelInfo& kernel : policy::kernels()) {
        const std::vector<Covered> lines = covered_lines(kernel.id);
        CHECK_MESSAGE(!lines.empty(), kernel.name, " has no line in covered.txt");
        // A line that the policy answers differently now was written for another specialization.
        for (const Covered& covered : lines)
            CHECK(find_compiled(policy::text_of(covered.spec)) != nullptr);
    }
}

}  // namespace jitney::emulator
