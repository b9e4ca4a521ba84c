#include "tests/emulator/kernels/lines.hpp"

#include "tests/emulator/kernels/registry.hpp"
#include "tests/emulator/machine/instrumented.hpp"

namespace jitney::emulator {

std::vector<Covered> covered_lines(policy::KernelId kernel) {
    std::vector<Covered> lines;
    for (const std::string& line : compiled_lines()) {
        const Covered covered = parse_covered(line);
        const bool logits = covered.attention && !covered.attention->logits.empty();
        if (covered.spec.kernel == kernel && !logits) lines.push_back(covered);
    }
    return lines;
}

std::vector<Covered> logits_lines() {
    std::vector<Covered> lines;
    for (const std::string& line : compiled_lines()) {
        const Covered covered = parse_covered(line);
        if (covered.attention && !covered.attention->logits.empty()) lines.push_back(covered);
    }
    return lines;
}

int some_sms(const Covered& covered, tests::Random& random) {
    const policy::KernelId kernel = covered.attention->kernel;
    if (kernel == policy::KernelId::attn_prefill_wgmma)
        return static_cast<int>(random.integer(1, 4));
    return is_decode(kernel) ? static_cast<int>(random.integer(1, 6) * random.integer(1, 6)) : 0;
}

int problems_a_line(int problems) {
    return kInstrumented ? problems : (problems + 3) / 4;
}

}  // namespace jitney::emulator
