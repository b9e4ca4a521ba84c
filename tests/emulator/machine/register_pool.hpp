// The registers of a block, as setmaxnreg moves them between its warps.
#pragma once

#include <string>
#include <vector>

namespace jitney::emulator {

class RegisterPool {
  public:
    static constexpr unsigned kRegisters = 65536;  // of an SM
    static constexpr unsigned kLanes = 32;

    // Warps begin with as many a thread as all of them can have; what is over is nobody's.
    void begin(unsigned warps) {
        const unsigned most = kRegisters / (warps * kLanes) / 8 * 8;
        of_warp_.assign(warps, most < 256 ? most : 255);
        free_ = 0;
        changes_.assign(warps, {});
    }

    // Why a warp may not ask for that, if so. All warps of a warpgroup ask for the same, in turn.
    std::string ask(unsigned warp, unsigned count, bool takes);
    // False: there are not enough yet.
    bool take(unsigned warp, unsigned count) {
        const unsigned more = (count - of_warp_[warp]) * kLanes;
        if (more > free_) return false;
        free_ -= more;
        of_warp_[warp] = count;
        return true;
    }
    void give(unsigned warp, unsigned count) {
        free_ += (of_warp_[warp] - count) * kLanes;
        of_warp_[warp] = count;
    }

  private:
    std::vector<unsigned> of_warp_;  // a thread
    unsigned free_ = 0;
    std::vector<std::vector<unsigned>> changes_;  // what each warp asked for
};

}  // namespace jitney::emulator
