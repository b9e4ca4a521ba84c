// Small kernels on Hopper's instructions, right ones and deliberately wrong ones.
#pragma once

#include "kernel_sources/common/tensor_map.h"
#include "tests/emulator/machine/launch.hpp"

namespace jitney::toys {

using emulator::Kernel;

struct HandOverParams {
    unsigned* out;
    int rounds;
};
// A warp hands `rounds` times 32 numbers to another through two places in shared memory; the other
// writes them to out.
extern const Kernel hands_over;
extern const Kernel hands_over_reading_a_phase_early;
extern const Kernel hands_over_for_one_arrival_less;
extern const Kernel hands_over_for_one_arrival_more;
extern const Kernel hands_over_arriving_twice;
extern const Kernel hands_over_into_a_place_in_use;
extern const Kernel hands_over_by_a_barrier_of_now;  // that nobody told the other warp of
extern const Kernel reads_a_barrier;
// Two warps come to a named barrier and go on, two others wait there, and read what they wrote; the
// other way round the first read what the others write later.
extern const Kernel comes_and_goes_on;
extern const Kernel comes_and_reads_on;
// Three warpgroups, of which one gives registers and the others take them.
extern const Kernel shares_registers;
extern const Kernel takes_more_than_given;
extern const Kernel gives_more_than_it_has;

struct BoxParams {
    TensorMapBits map;
    unsigned* out;
    int bytes;  // of a box
    int corner[4];
};
// A box of 4 dimensions into shared memory, and the words that lie there then to out.
extern const Kernel brings_a_box;
extern const Kernel brings_a_box_and_reads_at_once;
extern const Kernel brings_a_box_and_waits_for_the_phase_before;
extern const Kernel brings_a_box_expecting_more;
extern const Kernel brings_a_box_expecting_less;
extern const Kernel brings_a_box_by_a_hidden_barrier;  // that was made without a fence
extern const Kernel brings_a_box_over_one_that_is_read;
extern const Kernel brings_a_box_over_unfenced_words;
extern const Kernel brings_a_box_and_ends;
extern const Kernel brings_a_box_to_a_misaligned_place;
extern const Kernel brings_a_box_by_no_map;
// Words i of shared memory, which are i, as a box to global memory.
extern const Kernel takes_a_box_away;
extern const Kernel takes_a_box_away_without_a_fence;
extern const Kernel takes_a_box_away_fenced_too_late;
extern const Kernel takes_a_box_away_and_overwrites_it;
extern const Kernel takes_a_box_away_and_ends;
extern const Kernel takes_a_box_away_and_leaves_the_group_open;

struct RunParams {
    const unsigned* in;
    unsigned* out;
    int words;
};
extern const Kernel copies_runs;  // in to shared memory to out

struct MulticastParams {
    TensorMapBits map;
    unsigned* out;  // of each block what it got
    int bytes;
    int rounds;
};
// In clusters of two blocks each brings half of a box to both, `rounds` times.
extern const Kernel multicasts;
extern const Kernel multicasts_to_itself;             // and the other waits for ever
extern const Kernel multicasts_into_use;              // does not wait for the other's readers
extern const Kernel multicasts_before_they_are_made;  // the barriers of the other block
extern const Kernel ends_before_the_other;            // that reaches into its memory
extern const Kernel waits_for_the_cluster_twice;

struct ExchangeParams {
    float* out;
};
extern const Kernel exchanges_numbers;  // with the other block of a cluster of two
extern const Kernel exchanges_without_a_barrier;
extern const Kernel looks_at_its_peer;  // the same by loads
extern const Kernel looks_without_a_barrier;

struct WarpgroupParams {
    const unsigned short* a;  // 64 rows of 64
    const unsigned short* b;  // 32 columns of 64
    float* out;               // [64, 32]
};
// A warpgroup multiplies a by b, bf16.
extern const Kernel multiplies;
extern const Kernel multiplies_registers;
extern const Kernel multiplies_and_reads_at_once;
extern const Kernel multiplies_and_settles_at_once;
extern const Kernel multiplies_and_waits_for_too_few;
extern const Kernel multiplies_without_a_fence;  // between the threads' words and the product
extern const Kernel multiplies_without_a_barrier;
extern const Kernel multiplies_without_beginning;
extern const Kernel multiplies_and_changes_c;
extern const Kernel multiplies_and_changes_a;     // in registers
extern const Kernel multiplies_and_overwrites_b;  // in shared memory
extern const Kernel multiplies_on_a_branch;
extern const Kernel multiplies_and_ends;
extern const Kernel multiplies_what_has_not_landed;
extern const Kernel multiplies_past_the_end;

}  // namespace jitney::toys
