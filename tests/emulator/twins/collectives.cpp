#include "tests/emulator/twins/collectives.hpp"

#include <fmt/format.h>

namespace jitney::emulator {
namespace {

void shuffle_all(void* const* operands, unsigned mask) {
    for (int lane = 0; lane < 32; ++lane) {
        if ((mask >> lane & 1) == 0) continue;
        auto& own = *static_cast<Shuffle*>(operands[lane]);
        if ((mask >> own.source & 1) == 0) {
            fault(fmt::format("takes part in a shuffle in which lane {} reads lane {}, which the "
                              "mask {:#010x} leaves out",
                              lane, own.source, mask),
                  {});
        }
        own.result = static_cast<Shuffle*>(operands[own.source])->value;
    }
}

void vote_all(void* const* operands, unsigned mask) {
    unsigned yes = 0;
    for (int lane = 0; lane < 32; ++lane) {
        if ((mask >> lane & 1) != 0 && static_cast<Vote*>(operands[lane])->value) yes |= 1u << lane;
    }
    for (int lane = 0; lane < 32; ++lane) {
        if ((mask >> lane & 1) != 0) static_cast<Vote*>(operands[lane])->result = yes;
    }
}

void unite_all(void* const* operands, unsigned mask) {
    unsigned bits = 0;
    for (int lane = 0; lane < 32; ++lane) {
        if ((mask >> lane & 1) != 0) bits |= *static_cast<unsigned*>(operands[lane]);
    }
    for (int lane = 0; lane < 32; ++lane) {
        if ((mask >> lane & 1) != 0) *static_cast<unsigned*>(operands[lane]) = bits;
    }
}

void block_vote_all(void* const* operands, unsigned threads) {
    unsigned yes = 0;
    for (unsigned thread = 0; thread < threads; ++thread)
        yes += static_cast<Vote*>(operands[thread])->value ? 1 : 0;
    for (unsigned thread = 0; thread < threads; ++thread)
        static_cast<Vote*>(operands[thread])->result = yes;
}

}  // namespace

std::uint64_t shuffle(const char* kind, unsigned mask, Shuffle operand, Where where) {
    warp_collective({.kind = kind, .act = &shuffle_all}, mask, &operand, where);
    return operand.result;
}

unsigned vote(const char* kind, unsigned mask, bool value, Where where) {
    Vote operand{.value = value};
    warp_collective({.kind = kind, .act = &vote_all}, mask, &operand, where);
    return operand.result;
}

unsigned united_bits(const char* kind, unsigned mask, unsigned bits, Where where) {
    warp_collective({.kind = kind, .act = &unite_all}, mask, &bits, where);
    return bits;
}

unsigned block_vote(const char* kind, bool value, Where where) {
    Vote operand{.value = value};
    block_collective(kind, &block_vote_all, &operand, where);
    return operand.result;
}

}  // namespace jitney::emulator
