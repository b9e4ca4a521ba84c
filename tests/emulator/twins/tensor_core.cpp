#include "tests/emulator/twins/tensor_core.hpp"

#include <cstdint>
#include <cstring>
#include <string>

#include "tests/emulator/machine/formats.hpp"
#include "tests/emulator/twins/sums.hpp"

namespace jitney::emulator {
namespace {

constexpr unsigned kAllLanes = 0xffffffffu;

struct MatrixAccess {
    unsigned* matrices;
    void* row;
    unsigned address;
    const char* kind;
    Where where;
};

// The rows of a matrix are read or written at once where each lies in banks of its own, or where
// another does.
void check_banks(void* const* operands, unsigned matrix) {
    constexpr unsigned kBankGroups = 8;  // 16 bytes each
    const MatrixAccess* of_group[kBankGroups] = {};
    for (unsigned row = 0; row < 8; ++row) {
        const auto& access = *static_cast<const MatrixAccess*>(operands[8 * matrix + row]);
        const MatrixAccess*& other = of_group[access.address / 16 % kBankGroups];
        if (other != nullptr && other->address != access.address) {
            fault("two rows of matrix " + std::to_string(matrix) + " of an " + access.kind +
                      ", at offsets " + std::to_string(other->address) + " and " +
                      std::to_string(access.address) + " of shared memory, lie in the same banks",
                  access.where);
        }
        other = &access;
    }
}

template <bool transposed>
void load_all(void* const* operands, unsigned) {
    for (unsigned matrix = 0; matrix < 4; ++matrix) {
        check_banks(operands, matrix);
        std::uint16_t elements[8][8];
        for (unsigned row = 0; row < 8; ++row) {
            const auto& giver = *static_cast<const MatrixAccess*>(operands[8 * matrix + row]);
            std::memcpy(elements[row], giver.row, sizeof elements[row]);
        }
        for (unsigned lane = 0; lane < 32; ++lane) {
            const unsigned row = lane / 4;
            const unsigned pair = 2 * (lane % 4);
            const unsigned low = transposed ? elements[pair][row] : elements[row][pair];
            const unsigned high = transposed ? elements[pair + 1][row] : elements[row][pair + 1];
            static_cast<const MatrixAccess*>(operands[lane])->matrices[matrix] = low | high << 16;
        }
    }
}

template <bool transposed>
void store_all(void* const* operands, unsigned) {
    for (unsigned matrix = 0; matrix < 4; ++matrix) {
        check_banks(operands, matrix);
        std::uint16_t elements[8][8];
        for (unsigned lane = 0; lane < 32; ++lane) {
            const unsigned bits =
                static_cast<const MatrixAccess*>(operands[lane])->matrices[matrix];
            for (unsigned i = 0; i < 2; ++i) {
                const unsigned row = lane / 4;
                const unsigned column = 2 * (lane % 4) + i;
                (transposed ? elements[column][row] : elements[row][column]) =
                    static_cast<std::uint16_t>(bits >> 16 * i);
            }
        }
        for (unsigned row = 0; row < 8; ++row) {
            std::memcpy(static_cast<const MatrixAccess*>(operands[8 * matrix + row])->row,
                        elements[row], sizeof elements[row]);
        }
    }
}

struct Product {
    float* c;
    const unsigned* a;
    unsigned b[2];
    int a_format = 0;  // how many bits of exponent elements of 8 bits have
    int b_format = 0;
};

// Element `i` of a register that holds elements of 16 or 8 bits.
template <float (*value)(std::uint16_t)>
float half_of(unsigned bits, unsigned i, int) {
    return value(static_cast<std::uint16_t>(bits >> 16 * i & 0xffffu));
}
float quarter_of(unsigned bits, unsigned i, int exponent_bits) {
    return fp8_value(static_cast<std::uint8_t>(bits >> 8 * i & 0xffu), exponent_bits);
}

// a is 16 x 4 * count and b is 4 * count x 8, where a register holds `count` / 2 neighbours of k.
template <unsigned count, float (*element)(unsigned, unsigned, int),
          float (*sum_of)(float, const float*, unsigned)>
void multiply_all(void* const* operands, unsigned) {
    constexpr unsigned k_size = 4 * count;
    constexpr unsigned held = count / 2;
    float a[16][k_size];
    float b[8][k_size];
    float c[16][8];
    for (unsigned lane = 0; lane < 32; ++lane) {
        const auto& own = *static_cast<const Product*>(operands[lane]);
        const unsigned row = lane / 4;
        const unsigned pair = 2 * (lane % 4);
        for (unsigned e = 0; e < held; ++e) {
            const unsigned k = held * (lane % 4) + e;
            for (unsigned i = 0; i < 4; ++i)
                a[row + 8 * (i % 2)][k + k_size / 2 * (i / 2)] = element(own.a[i], e, own.a_format);
            for (unsigned i = 0; i < 2; ++i)
                b[row][k + k_size / 2 * i] = element(own.b[i], e, own.b_format);
        }
        for (unsigned i = 0; i < 4; ++i)
            c[row + 8 * (i / 2)][pair + i % 2] = own.c[i];
    }
    for (unsigned row = 0; row < 16; ++row) {
        for (unsigned column = 0; column < 8; ++column) {
            float products[k_size];
            for (unsigned k = 0; k < k_size; ++k)
                products[k] = a[row][k] * b[column][k];
            c[row][column] = sum_of(c[row][column], products, k_size);
        }
    }
    for (unsigned lane = 0; lane < 32; ++lane) {
        const auto& own = *static_cast<const Product*>(operands[lane]);
        for (unsigned i = 0; i < 4; ++i)
            own.c[i] = c[lane / 4 + 8 * (i / 2)][2 * (lane % 4) + i % 2];
    }
}

}  // namespace

void load_matrices(const char* kind, unsigned (&matrices)[4], unsigned row, bool transposed,
                   Where where) {
    MatrixAccess operand{
        matrices,
        const_cast<void*>(read_shared(row, 16, 16, kind, __builtin_return_address(0), where)), row,
        kind, where};
    warp_collective(
        {.kind = kind, .act = transposed ? &load_all<true> : &load_all<false>, .same_place = true},
        kAllLanes, &operand, where);
}

void store_matrices(const char* kind, const unsigned (&matrices)[4], unsigned row, bool transposed,
                    Where where) {
    unsigned own[4];
    std::memcpy(own, matrices, sizeof own);
    MatrixAccess operand{own, write_shared(row, 16, 16, kind, __builtin_return_address(0), where),
                         row, kind, where};
    warp_collective({.kind = kind,
                     .act = transposed ? &store_all<true> : &store_all<false>,
                     .same_place = true},
                    kAllLanes, &operand, where);
}

void mma_m16n8k16(bool bf16, float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                  Where where) {
    Product operand{c, a, {b0, b1}};
    warp_collective({.kind = bf16 ? "mma.m16n8k16.bf16" : "mma.m16n8k16.f16",
                     .act = bf16 ? &multiply_all<4, &half_of<&bf16_value>, &add_up>
                                 : &multiply_all<4, &half_of<&fp16_value>, &add_up>,
                     .same_place = true},
                    kAllLanes, &operand, where);
}

void mma_m16n8k32(int a_exponent_bits, int b_exponent_bits, float (&c)[4], const unsigned (&a)[4],
                  unsigned b0, unsigned b1, Where where) {
    Product operand{c, a, {b0, b1}, a_exponent_bits, b_exponent_bits};
    warp_collective({.kind = "mma.m16n8k32",
                     .act = &multiply_all<8, &quarter_of, &add_up_short>,
                     .same_place = true},
                    kAllLanes, &operand, where);
}

}  // namespace jitney::emulator
