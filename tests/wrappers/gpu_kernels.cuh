// What shows on a GPU alone, because it is a matter of what runs at the same time.
namespace jitney::wrappers {

#if __CUDA_ARCH__ >= 800

// Copies of the last group come from memory that no cache has: a wait that leaves it out is over
// before they are all there. out: how many words had not come yet, a thread.
__global__ void wait_for_all_but_one(const unsigned* in, unsigned* out) {
    constexpr unsigned kCopies = 64;
    const unsigned threads = blockDim.x;
    const unsigned i = threadIdx.x;
    unsigned* const shared = reinterpret_cast<unsigned*>(shared_memory());
    for (unsigned word = i; word < 4 * kCopies * threads; word += threads)
        shared[word] = 0xffffffffu;
    __syncthreads();
    cp_async_commit();
    for (unsigned copy = 0; copy < kCopies; ++copy) {
        cp_async_16(shared_address(shared + 4 * (copy * threads + i)),
                    in + 4 * ((copy * gridDim.x + blockIdx.x) * threads + i), true);
    }
    cp_async_commit();
    cp_async_wait<1>();
    unsigned missing = 0;
    for (unsigned copy = kCopies; copy > 0; --copy) {
        const volatile unsigned* word = shared + 4 * ((copy - 1) * threads + i);
        missing += *word == 0xffffffffu ? 1u : 0u;
    }
    cp_async_wait<0>();
    out[global_thread()] = missing;
}

#endif

// Two grids, the second of which may begin before the first has ended. The first lets it begin, and
// waits until it has; it gives up after a while. flags: [seen by the first, begun, done, seen
// done].
__global__ void first_grid(const unsigned*, unsigned* flags) {
    release_next_grid();
    volatile unsigned* const begun = flags + 1;
    unsigned seen = 0;
    for (unsigned i = 0; i < 200000 && seen == 0; ++i)
        seen = *begun;
    flags[0] = seen;
    for (unsigned i = 0; i < 20000; ++i)
        seen += *begun;
    flags[2] = seen == 0 ? 1 : 2;
}
__global__ void second_grid(const unsigned*, unsigned* flags) {
    atomicExch(flags + 1, 1u);
    wait_for_previous_grid();
    const volatile unsigned* const done = flags + 2;
    flags[3] = *done != 0 ? 1 : 0;
}

}  // namespace jitney::wrappers
