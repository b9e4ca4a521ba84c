#include "tests/emulator/kernels/lines.hpp"

#include "tests/emulator/kernels/registry.hpp"
#include "tests/emulator/machine/instrumented.hpp"

namespace jitney::emulator {

std::vector<Covered> covered_lines(policy::KernelId kernel) {
    std::vector<Covered> lines;
    for (const std::string& line : compiled_lines()) {
        const Covered covered = parse_covered(line);
        if (covered.spec.kernel == kernel) lines.push_back(covered);
    }
    return lines;
}

int problems_a_line(int problems) {
    return kInstrumented ? problems : (problems + 3) / 4;
}

}  // namespace jitney::emulator
