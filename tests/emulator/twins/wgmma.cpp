#include "tests/emulator/twins/wgmma.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "tests/emulator/machine/cluster.hpp"
#include "tests/emulator/machine/formats.hpp"
#include "tests/emulator/machine/instrumented.hpp"
#include "tests/emulator/twins/sums.hpp"

namespace jitney::emulator {
namespace {

constexpr unsigned kThreads = Block::warpgroup_threads;
constexpr unsigned kWarps = kThreads / 32;
constexpr unsigned kRows = 64;
constexpr unsigned kMostK = 32;
constexpr unsigned kMostColumns = 256;
constexpr std::uint32_t kPoison = 0xffffffffu;  // what accumulators hold meanwhile

struct Operand {
    WgmmaProduct product;
    Thread* thread;
    const void* place;
    Where where;
};

// A descriptor of an operand in shared memory. Distances are in bytes.
struct Descriptor {
    unsigned address;
    unsigned leading;
    unsigned stride;
    unsigned swizzle_bytes;

    // Where the 16 bytes lie that hold elements from `inner` on of row `row`, of 16 bytes each;
    // rows run along k, or across it. The patterns are those of eight rows that the hardware knows.
    unsigned chunk(unsigned row, unsigned inner, bool rows_along_k) const {
        const unsigned width = swizzle_bytes / 16;  // chunks of a row
        unsigned at = row % 8 * std::max(swizzle_bytes, 16u);
        if (width == 0) {
            at += rows_along_k ? inner * leading + row / 8 * stride
                               : inner * stride + row / 8 * leading;
        } else {
            at += row / 8 * stride;
            at += rows_along_k ? inner * 16 : inner % width * 16 + inner / width * leading;
        }
        return swizzled(address + at, swizzle_bytes);
    }
};

Descriptor descriptor_of(std::uint64_t bits, const Operand& who) {
    constexpr std::array<unsigned, 4> swizzles = {0, 128, 64, 32};
    if ((bits >> 49 & 7) != 0) {
        fault(
            "multiplies a matrix whose pattern begins elsewhere (a base offset), which this "
            "machine does not know",
            who.where);
    }
    return {static_cast<unsigned>(bits & 0x3fff) << 4,
            static_cast<unsigned>(bits >> 16 & 0x3fff) << 4,
            static_cast<unsigned>(bits >> 32 & 0x3fff) << 4, swizzles[bits >> 62]};
}

// Lets the tensor cores of a warp read 16 bytes.
const char* read_chunk(unsigned address, const Operand& who) {
    Block& block = *who.thread->block;
    const Arena& arena = block.arena();
    const std::size_t offset = std::size_t{address} - Arena::first_address;
    if (offset > arena.bytes() || 16 > arena.bytes() - offset) {
        fault(fmt::format("multiplies 16 bytes at offset {} of shared memory, which has {} bytes",
                          static_cast<std::ptrdiff_t>(offset), arena.bytes()),
              who.where);
    }
    if (arena.in_flight(offset, 16)) {
        fault(fmt::format("multiplies 16 bytes at offset {} of shared memory, on which a copy has "
                          "not landed",
                          offset),
              who.where);
    }
    if constexpr (kInstrumented) {
        std::string wrong = block.races().agent_read(
            who.thread->id, block.tensor_cores(who.thread->warp()), offset, 16, who.place);
        if (!wrong.empty()) fault(std::move(wrong), who.where);
    }
    return arena.begin() + offset;
}

float value_of(WgmmaFormat format, const char* element) {
    if (format == WgmmaFormat::e4m3) return fp8_value(static_cast<std::uint8_t>(*element), 4);
    if (format == WgmmaFormat::e5m2) return fp8_value(static_cast<std::uint8_t>(*element), 5);
    std::uint16_t bits;
    std::memcpy(&bits, element, sizeof bits);
    return format == WgmmaFormat::bf16 ? bf16_value(bits) : fp16_value(bits);
}

unsigned bytes_of(WgmmaFormat format) {
    return format == WgmmaFormat::e4m3 || format == WgmmaFormat::e5m2 ? 1 : 2;
}

// Calls put(outer, k, value) for each element of `outers` rows or columns, from shared memory, as
// the tensor cores of the warps of `readers` read them.
template <class Put>
void read_operand(std::uint64_t bits, WgmmaFormat format, unsigned outers, bool along_k,
                  std::span<const Operand* const> readers, const Put& put) {
    const unsigned size = bytes_of(format);
    const unsigned in_chunk = 16 / size;
    const unsigned k_size = 32 / size;
    const Descriptor descriptor = descriptor_of(bits, *readers.front());
    const unsigned rows = along_k ? outers : k_size;
    const unsigned chunks = (along_k ? k_size : outers) / in_chunk;
    for (unsigned row = 0; row < rows; ++row) {
        for (unsigned inner = 0; inner < chunks; ++inner) {
            const unsigned address = descriptor.chunk(row, inner, along_k);
            const char* chunk = nullptr;
            for (const Operand* reader : readers)
                chunk = read_chunk(address, *reader);
            for (unsigned i = 0; i < in_chunk; ++i) {
                const unsigned other = inner * in_chunk + i;
                put(along_k ? row : other, along_k ? other : row,
                    value_of(format, chunk + i * size));
            }
        }
    }
}

void check_same(void* const* operands) {
    const WgmmaProduct& first = static_cast<const Operand*>(operands[0])->product;
    for (unsigned i = 0; i < kThreads; ++i) {
        const auto& operand = *static_cast<const Operand*>(operands[i]);
        const WgmmaProduct& own = operand.product;
        if (own.a_format != first.a_format || own.b_format != first.b_format ||
            own.columns != first.columns || own.b_along_n != first.b_along_n ||
            (own.a_registers == nullptr) != (first.a_registers == nullptr)) {
            fault("comes to a product of other operands than the rest of its warpgroup",
                  operand.where);
        }
        if (own.a != first.a || own.b != first.b || own.adds != first.adds) {
            fault(
                fmt::format("brings descriptors or a condition to a product that differ from those "
                            "of thread {}",
                            static_cast<const Operand*>(operands[0])->thread->number),
                operand.where);
        }
        if (!operand.thread->products.begun) {
            fault(fmt::format(
                      "comes to a product that thread {} has not begun (wgmma.fence) since its "
                      "last group",
                      operand.thread->number),
                  operand.where);
        }
    }
}

// What a product is made of. No memory of the heap, since a fault does not give it back.
struct Scratch {
    float a[kRows][kMostK];
    float b[kMostK][kMostColumns];
    float c[kRows][kMostColumns];
};

// Rows of a from registers, as mma.m16n8k16 and m16n8k32 take them.
void read_registers(void* const* operands, WgmmaFormat format, float (&a)[kRows][kMostK]) {
    const unsigned size = bytes_of(format);
    const unsigned held = 4 / size;
    for (unsigned i = 0; i < kThreads; ++i) {
        const auto& operand = *static_cast<const Operand*>(operands[i]);
        const unsigned lane = i % 32;
        char bytes[16];
        std::memcpy(bytes, operand.product.a_registers, sizeof bytes);
        for (unsigned part = 0; part < 4; ++part) {
            for (unsigned e = 0; e < held; ++e) {
                a[i / 32 * 16 + lane / 4 + 8 * (part % 2)]
                 [held * (lane % 4) + e + 4 * held * (part / 2)] =
                     value_of(format, bytes + 4 * part + e * size);
            }
        }
    }
}

// The values that a thread's accumulators will have; poison in their place where they had none yet.
std::vector<float>& values_of(const Operand& operand) {
    Products& products = operand.thread->products;
    const WgmmaProduct& product = operand.product;
    const auto found = std::ranges::find_if(
        products.accumulators, [&](const auto& each) { return each.registers == product.c; });
    if (found != products.accumulators.end()) {
        found->group = products.groups + 1;
        return found->values;
    }
    const unsigned count = product.columns / 2;
    products.accumulators.push_back(
        {product.c, std::vector<float>(product.c, product.c + count), products.groups + 1});
    std::fill_n(product.c, count, std::bit_cast<float>(kPoison));
    return products.accumulators.back().values;
}

void multiply_all(void* const* operands, unsigned) {
    check_same(operands);
    const auto& first = *static_cast<const Operand*>(operands[0]);
    const WgmmaProduct& product = first.product;
    const WgmmaFormat format = product.a_format;
    const unsigned k_size = 32 / bytes_of(format);
    const unsigned columns = product.columns;
    // Any lane of a warp has to know what its tensor cores read.
    std::array<const Operand*, kWarps> speakers{};
    for (unsigned warp = 0; warp < kWarps; ++warp) {
        const unsigned lane = first.thread->block->random().below(32);
        speakers[warp] = static_cast<const Operand*>(operands[32 * warp + lane]);
    }
    thread_local Scratch scratch;
    auto& a = scratch.a;
    auto& b = scratch.b;
    auto& c = scratch.c;
    if (product.a_registers != nullptr) {
        read_registers(operands, format, a);
    } else {
        // Nothing says that a warp reads its own rows of a alone.
        read_operand(product.a, format, kRows, true, speakers,
                     [&](unsigned row, unsigned k, float value) { a[row][k] = value; });
    }
    read_operand(product.b, product.b_format, columns, !product.b_along_n, speakers,
                 [&](unsigned column, unsigned k, float value) { b[k][column] = value; });

    std::array<std::vector<float>*, kThreads> values{};
    const auto for_each_own = [&](unsigned thread, const auto& body) {
        const unsigned row = thread / 32 * 16 + thread % 32 / 4;
        for (unsigned i = 0; i < columns / 2; ++i)
            body(row + i / 2 % 2 * 8, i / 4 * 8 + 2 * (thread % 4) + i % 2, (*values[thread])[i]);
    };
    for (unsigned thread = 0; thread < kThreads; ++thread) {
        values[thread] = &values_of(*static_cast<const Operand*>(operands[thread]));
        for_each_own(thread, [&](unsigned row, unsigned column, float value) {
            c[row][column] = product.adds ? value : 0.0f;
        });
    }
    for (unsigned row = 0; row < kRows; ++row) {
        if (bytes_of(format) == 1) {
            for (unsigned column = 0; column < columns; ++column) {
                float terms[kMostK];
                for (unsigned k = 0; k < k_size; ++k)
                    terms[k] = a[row][k] * b[k][column];
                c[row][column] = add_up_short(c[row][column], terms, k_size);
            }
            continue;
        }
        for (unsigned k = 0; k < k_size; ++k) {
            for (unsigned column = 0; column < columns; ++column)
                c[row][column] += a[row][k] * b[k][column];
        }
    }
    Clocks& clocks = first.thread->block->cluster().clocks();
    for (unsigned thread = 0; thread < kThreads; ++thread) {
        for_each_own(thread,
                     [&](unsigned row, unsigned column, float& value) { value = c[row][column]; });
        const auto& operand = *static_cast<const Operand*>(operands[thread]);
        Products& products = operand.thread->products;
        const unsigned agent = operand.thread->block->tensor_cores(operand.thread->warp());
        products.newest = moment_of(clocks.now(agent));
        ++products.open;
        if (operand.product.a_registers == nullptr) continue;
        Products::Factor factor{operand.product.a_registers, {}, products.groups + 1};
        std::memcpy(factor.values.data(), factor.registers, sizeof factor.values);
        products.factors.push_back(factor);
    }
    for (const Operand* speaker : speakers)
        clocks.advance(speaker->thread->block->tensor_cores(speaker->thread->warp()));
}

}  // namespace

void wgmma_begin() {
    current_thread->products.begun = true;
}

void wgmma_commit() {
    Products& products = current_thread->products;
    ++products.groups;
    products.moments.push_back(products.newest);
    products.open = 0;
    products.begun = false;
}

void wgmma_wait(unsigned pending, Where where) {
    Thread& thread = *current_thread;
    warp_collective({.kind = "wgmma.wait_group", .same_place = true}, 0xffffffffu, nullptr, where);
    Products& products = thread.products;
    if (products.groups <= pending) return;
    const unsigned done = products.groups - pending;
    const auto over = [done](const auto& each) { return each.group <= done; };
    for (const Products::Factor& factor : products.factors) {
        if (over(factor) &&
            std::memcmp(factor.registers, factor.values.data(), sizeof factor.values) != 0) {
            fault("changed registers of a while they were multiplied", where);
        }
    }
    for (const Products::Accumulators& each : products.accumulators) {
        if (!over(each)) continue;
        for (std::size_t i = 0; i < each.values.size(); ++i) {
            if (std::bit_cast<std::uint32_t>(each.registers[i]) != kPoison) {
                fault("changed accumulators while products were added to them", where);
            }
            each.registers[i] = each.values[i];
        }
    }
    std::erase_if(products.factors, over);
    std::erase_if(products.accumulators, over);
    if (const Moment moment = products.moments[done - 1]; moment != 0) {
        Block& block = *thread.block;
        block.cluster().clocks().learn(thread.id, block.tensor_cores(thread.warp()), moment);
    }
}

void wgmma(const WgmmaProduct& product, Where where) {
    Thread& thread = *current_thread;
    Operand operand{product, &thread, __builtin_return_address(0), where};
    thread.block->meet_warpgroup(thread, "wgmma", &multiply_all, &operand, where);
}

void wgmma_settle(const float* c, Where where) {
    for (const Products::Accumulators& each : current_thread->products.accumulators) {
        if (each.registers == c)
            fault("reads accumulators whose products it has not waited for", where);
    }
}

}  // namespace jitney::emulator
