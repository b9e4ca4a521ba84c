#include "tests/emulator/kernels/attention_launch.hpp"

#include <algorithm>

#include "runtime/tensor_map.hpp"
#include "tests/emulator/kernels/emulated_driver.hpp"
#include "tests/support/made_params.hpp"

namespace jitney::emulator {
namespace {

bool takes_maps(const policy::AttentionChoice& choice) {
    return choice.spec.kernel == policy::KernelId::attn_prefill_wgmma;
}

}  // namespace

AttentionLaunch::AttentionLaunch(const AttentionArgs& args, const policy::AttentionProblem& problem,
                                 const policy::AttentionChoice& choice, void* scratch,
                                 void* counters)
    : choice_(choice) {
    params_.attention = make_params(args, problem, choice, scratch, counters);
    if (!takes_maps(choice)) return;
    use_emulated_driver();
    form_wgmma_params(params_, args, problem, choice);
    set_wgmma_addresses(params_, args, choice, runtime::addresses_lead_maps(), counters);
}

bool AttentionLaunch::make_work_map(tests::Random& random) {
    WorkMapParams map = make_map_params(params_.attention, choice_);
    launch_choice(choice_.work_map->spec, choice_.work_map->geometry, &map, random);
    return std::find(map.tile_batch, map.tile_batch + map.slots, -1) != map.tile_batch + map.slots;
}

void AttentionLaunch::make_mask_bits(tests::Random& random) {
    launch_choice(choice_.mask_bits->spec, choice_.mask_bits->geometry, &params_.attention, random);
}

void AttentionLaunch::run(tests::Random& random, const Blocks& blocks) {
    void* params = &params_.attention;
    if (takes_maps(choice_)) {
        // Heads take turns in bands of so many, which is a matter of time alone.
        params_.heads_at_a_time = static_cast<int>(random.integer(1, choice_.heads_at_a_time));
        params = &params_;
    }
    launch_choice(choice_.spec, choice_.geometry, params, random, blocks);
}

}  // namespace jitney::emulator
