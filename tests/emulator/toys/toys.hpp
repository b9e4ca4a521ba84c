// Small kernels, right ones and deliberately wrong ones, that show what the machine notices.
#pragma once

#include <initializer_list>

#include "tests/emulator/machine/launch.hpp"

namespace jitney::toys {

using emulator::Kernel;

struct ReverseParams {
    const float* in;
    float* out;
};
extern const Kernel reverse;  // a block reverses its floats in shared memory
extern const Kernel reverse_without_barrier;
extern const Kernel reverse_in_place_too_early;  // writes back before all have read
extern const Kernel reverse_past_the_end;
extern const Kernel reads_what_nobody_wrote;
extern const Kernel warp_exchange;  // lanes swap through shared memory, with __syncwarp
extern const Kernel warp_exchange_without_barrier;
extern const Kernel rotates_by_shuffle;
extern const Kernel shuffles_from_outside;

struct BarrierParams {
    int* out;
};
extern const Kernel half_a_barrier;        // half of the threads come to it
extern const Kernel early_exit;            // one thread exits before it
extern const Kernel barriers_on_branches;  // a warp comes to two different ones
extern const Kernel half_a_warp;
extern const Kernel mixed_collectives;
extern const Kernel groups_of_warps;  // two named barriers
extern const Kernel groups_without_barrier;

struct SumParams {
    const float* in;
    float* partial;
    unsigned* done;
    float* out;
    int count;
};
extern const Kernel notes_arrivals;  // partial: the blocks in the order in which they came
extern const Kernel sum_by_last_block;
extern const Kernel sum_by_last_block_too_early;  // counts itself before it wrote its part

struct CopyParams {
    const float* in;
    float* out;
    int count;
    int offset;
};
extern const Kernel copies_in_two_stages;
extern const Kernel waits_for_too_few;
extern const Kernel reads_before_the_wait;
extern const Kernel forgets_to_wait;
extern const Kernel copies_to_a_misaligned_place;
extern const Kernel copies_over_what_others_read;
extern const Kernel plain_copy;         // out[i] = in[i + offset] for the first `count` threads
extern const Kernel vector_copy;        // four floats a thread at once, read from `offset` on
extern const Kernel vector_copy_to;     // or written there
extern const Kernel word_copy;          // one float a thread, `offset` bytes off
extern const Kernel asynchronous_copy;  // cp.async of four floats; of nothing where count is 0

// Plain copies that wait for the grid before, in time or too late.
extern const Kernel waits_for_the_grid;
extern const Kernel reads_before_the_grid;
extern const Kernel copies_before_the_grid;  // cp.async
extern const Kernel counts_before_the_grid;  // an atomic
extern const Kernel exits_before_the_grid;   // the threads that have nothing to do

struct ProductParams {
    const unsigned short* a;  // 16 x 16
    const unsigned short* b;  // 16 x 8, in memory 8 x 16 where it is loaded transposed
    float* out;               // 16 x 8
};
extern const Kernel product_bf16;
extern const Kernel product_fp16;
extern const Kernel product_bf16_transposed;
struct Fp8ProductParams {
    const unsigned* a;  // 16 rows of 32 E4M3
    const unsigned* b;  // 8 columns of 32 E5M2
    float* c;           // [16, 8], to which the product is added
};
extern const Kernel product_fp8;
extern const Kernel product_in_the_same_banks;
extern const Kernel product_on_a_branch;

}  // namespace jitney::toys
