// Grids too large to run, of which the last blocks do: what a block's number is multiplied with has
// to be counted in 64 bits. The tensors are the ends of ones that begin terabytes before.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "tests/emulator/kernels/emulated_tensor.hpp"
#include "tests/emulator/kernels/launch_choice.hpp"

namespace jitney::emulator {

constexpr auto kAlone = EmulatedTensor::Spread::alone;
constexpr std::int64_t kBeyond = std::int64_t{1} << 32;  // 32 bits
constexpr std::int64_t kLargestGrid = 0x7fffffff;

// Where a tensor begins, whose elements from number `elements` on lie at `pointer`.
template <class T>
void move_back(T*& pointer, std::int64_t elements, std::int64_t element_bytes) {
    if (pointer == nullptr) return;
    pointer = reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(pointer) -
                                   static_cast<std::uintptr_t>(elements * element_bytes));
}
template <class T>
requires(!std::is_void_v<T>) void move_back(T*& pointer, std::int64_t elements) {
    move_back(pointer, elements, sizeof(T));
}

// Blocks `first`, `first` + `step`...
std::vector<std::uint64_t> blocks_from(std::int64_t first, std::int64_t count,
                                       std::int64_t step = 1);

// The blocks of `geometry` behind so many others.
void launch_last(const policy::Spec& spec, policy::Geometry geometry, std::int64_t before,
                 void* params, tests::Random& random);

DType dtype_of(const policy::Spec& spec, const char* name);

}  // namespace jitney::emulator
