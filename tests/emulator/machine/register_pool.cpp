#include "tests/emulator/machine/register_pool.hpp"

#include <fmt/format.h>

namespace jitney::emulator {

std::string RegisterPool::ask(unsigned warp, unsigned count, bool takes) {
    if (count % 8 != 0 || count < 24 || count > 256) {
        return fmt::format("asks for {} registers, where multiples of 8 from 24 to 256 can be had",
                           count);
    }
    if (takes ? count < of_warp_[warp] : count > of_warp_[warp]) {
        return fmt::format("{} registers up to {}, and has {}", takes ? "takes" : "gives", count,
                           of_warp_[warp]);
    }
    std::vector<unsigned>& own = changes_[warp];
    own.push_back(count);
    for (unsigned other = warp / 4 * 4; other < warp / 4 * 4 + 4 && other < changes_.size();
         ++other) {
        if (changes_[other].size() < own.size() || changes_[other][own.size() - 1] == count)
            continue;
        return fmt::format("asks for {} registers where warp {} of its warpgroup asked for {}",
                           count, other, changes_[other][own.size() - 1]);
    }
    return {};
}

}  // namespace jitney::emulator
