// Products of a warpgroup (wgmma): asynchronous, in groups that each thread waits for.
#pragma once

#include <cstdint>

#include "tests/emulator/machine/device.hpp"

namespace jitney::emulator {

enum class WgmmaFormat { bf16, fp16, e4m3, e5m2 };

// What a thread brings to an instruction. The layouts of registers are those that
// kernel_sources/common/wgmma.cuh states, and operands in shared memory are the hardware's
// descriptors.
struct WgmmaProduct {
    WgmmaFormat a_format = WgmmaFormat::bf16;
    WgmmaFormat b_format = WgmmaFormat::bf16;  // of as many bits
    float* c = nullptr;
    unsigned columns = 0;
    const unsigned* a_registers = nullptr;  // null: a lies in shared memory
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    bool b_along_n = false;
    bool adds = false;
};

void wgmma_begin();
void wgmma_commit();
void wgmma_wait(unsigned pending, Where where);
void wgmma(const WgmmaProduct& product, Where where);
// Before accumulators are read.
void wgmma_settle(const float* c, Where where);

}  // namespace jitney::emulator
