// The kernels of an attention call with the parameters that the library gives them.
#pragma once

#include "operations/attention/fill.hpp"
#include "tests/emulator/kernels/launch_choice.hpp"

namespace jitney::emulator {

class AttentionLaunch {
  public:
    // `scratch` and `counters` are what choice.workspace asks for; null where that is nothing.
    AttentionLaunch(const AttentionArgs& args, const policy::AttentionProblem& problem,
                    const policy::AttentionChoice& choice, void* scratch, void* counters);

    // Whether the map of packed queries has slots without work; it is made first.
    bool make_work_map(tests::Random& random);
    void make_mask_bits(tests::Random& random);
    void run(tests::Random& random, const Blocks& blocks = {});

  private:
    const policy::AttentionChoice& choice_;
    PrefillWgmmaParams params_{};  // of which the other kernels take `attention`
};

}  // namespace jitney::emulator
