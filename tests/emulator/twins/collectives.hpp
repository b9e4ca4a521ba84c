// Barriers, shuffles and votes, as rendezvous of the machine. Stricter than a GPU: a lane that
// has exited, or does not exist, can't be named; a shuffle may not read a lane that takes no part.
#pragma once

#include <cstdint>
#include <cstring>

#include "tests/emulator/machine/device.hpp"

#define threadIdx (::jitney::emulator::builtins->thread_index)
#define blockIdx (::jitney::emulator::builtins->block_index)
#define blockDim (::jitney::emulator::builtins->block_size)
#define gridDim (::jitney::emulator::builtins->grid_size)
#define warpSize 32

namespace jitney::emulator {

// What a lane brings to a shuffle, and takes from it.
struct Shuffle {
    std::uint64_t value = 0;
    std::uint64_t result = 0;
    int source = 0;
};
std::uint64_t shuffle(const char* kind, unsigned mask, Shuffle operand, Where where);

struct Vote {
    bool value = false;
    unsigned result = 0;
};
// The lanes that voted yes.
unsigned vote(const char* kind, unsigned mask, bool value, Where where);
// The bits that any lane brings.
unsigned united_bits(const char* kind, unsigned mask, unsigned bits, Where where);
// How many threads of the block voted yes.
unsigned block_vote(const char* kind, bool value, Where where);

template <class T>
T shuffle_value(const char* kind, unsigned mask, T value, int source, int width, Where where) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    if (width < 1 || width > 32 || (width & (width - 1)) != 0) {
        fault("shuffles over a width that is not a power of two up to 32", where);
    }
    Shuffle operand;
    std::memcpy(&operand.value, &value, sizeof value);
    operand.source = source;
    const std::uint64_t bits = shuffle(kind, mask, operand, where);
    T result;
    std::memcpy(&result, &bits, sizeof result);
    return result;
}

inline int lane() {
    const Builtins& own = *builtins;
    return static_cast<int>(
        (own.thread_index.x +
         own.block_size.x * (own.thread_index.y + own.block_size.y * own.thread_index.z)) %
        32);
}

}  // namespace jitney::emulator

inline void __syncthreads(jitney::emulator::Where where = jitney::emulator::Where::here()) {
    jitney::emulator::block_collective("__syncthreads", nullptr, nullptr, where);
}

inline int __syncthreads_count(int predicate,
                               jitney::emulator::Where where = jitney::emulator::Where::here()) {
    return static_cast<int>(
        jitney::emulator::block_vote("__syncthreads_count", predicate != 0, where));
}

inline int __syncthreads_or(int predicate,
                            jitney::emulator::Where where = jitney::emulator::Where::here()) {
    return jitney::emulator::block_vote("__syncthreads_or", predicate != 0, where) != 0;
}

inline int __syncthreads_and(int predicate,
                             jitney::emulator::Where where = jitney::emulator::Where::here()) {
    return jitney::emulator::block_vote("__syncthreads_and", predicate == 0, where) == 0;
}

inline void __syncwarp(unsigned mask = 0xffffffffu,
                       jitney::emulator::Where where = jitney::emulator::Where::here()) {
    jitney::emulator::warp_collective({.kind = "__syncwarp", .orders_memory = true}, mask, nullptr,
                                      where);
}

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32,
              jitney::emulator::Where where = jitney::emulator::Where::here()) {
    const int base = jitney::emulator::lane() & ~(width - 1);
    return jitney::emulator::shuffle_value("__shfl_sync", mask, value,
                                           base + (source & (width - 1)), width, where);
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32,
                  jitney::emulator::Where where = jitney::emulator::Where::here()) {
    const int own = jitney::emulator::lane();
    const int source = own ^ lane_mask;
    const bool within = source < (own & ~(width - 1)) + width;
    return jitney::emulator::shuffle_value("__shfl_xor_sync", mask, value, within ? source : own,
                                           width, where);
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                   jitney::emulator::Where where = jitney::emulator::Where::here()) {
    const int own = jitney::emulator::lane();
    const int source = own + static_cast<int>(delta);
    const bool within = source < (own & ~(width - 1)) + width;
    return jitney::emulator::shuffle_value("__shfl_down_sync", mask, value, within ? source : own,
                                           width, where);
}

template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                 jitney::emulator::Where where = jitney::emulator::Where::here()) {
    const int own = jitney::emulator::lane();
    const int source = own - static_cast<int>(delta);
    const bool within = source >= (own & ~(width - 1));
    return jitney::emulator::shuffle_value("__shfl_up_sync", mask, value, within ? source : own,
                                           width, where);
}

inline unsigned __reduce_or_sync(unsigned mask, unsigned bits,
                                 jitney::emulator::Where where = jitney::emulator::Where::here()) {
    return jitney::emulator::united_bits("__reduce_or_sync", mask, bits, where);
}

inline unsigned __ballot_sync(unsigned mask, int predicate,
                              jitney::emulator::Where where = jitney::emulator::Where::here()) {
    return jitney::emulator::vote("__ballot_sync", mask, predicate != 0, where);
}

inline int __any_sync(unsigned mask, int predicate,
                      jitney::emulator::Where where = jitney::emulator::Where::here()) {
    return jitney::emulator::vote("__any_sync", mask, predicate != 0, where) != 0;
}

inline int __all_sync(unsigned mask, int predicate,
                      jitney::emulator::Where where = jitney::emulator::Where::here()) {
    return jitney::emulator::vote("__all_sync", mask, predicate == 0, where) == 0;
}
