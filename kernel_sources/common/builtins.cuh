// What the compiler gives every kernel: threadIdx, blockIdx, barriers, shuffles, votes, atomics.
// On the device there is nothing to declare; the one thing to name is the block's dynamic shared
// memory, of which every kernel carves its own layout.
#pragma once

#define JITNEY_DEVICE __device__ __forceinline__

namespace jitney {

// The start of the block's dynamic shared memory, aligned to 1024 bytes, as the
// widest swizzle of the copy engine wants it.
JITNEY_DEVICE char* shared_memory() {
    extern __shared__ __align__(1024) char jitney_shared_memory[];
    return jitney_shared_memory;
}

// Says that an access of so many bytes at once is about to come: a GPU refuses an address that is
// no multiple of it, and the machine that tests run this code on reports where.
template <int bytes>
JITNEY_DEVICE void expect_aligned(const void*) {}

// Has a value computed here, not where it is used: what it was made of can give way to other things
// between the two.
JITNEY_DEVICE void settle(unsigned& value) {
    asm volatile("" : "+r"(value));
}

// blockIdx.x and threadIdx.x, read anew at each call: what was derived from them before, or in
// another round of a loop, need not stay in registers to be known.
JITNEY_DEVICE int reread_block_index() {
    int index;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(index));
    return index;
}
JITNEY_DEVICE int reread_thread_index() {
    int index;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
    return index;
}

}  // namespace jitney
