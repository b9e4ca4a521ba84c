// A tensor in host memory that owns its elements, in any layout, with poison around and between
// them: whatever is read or written where it must not be shows up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "jitney/tensor.hpp"
#include "tests/support/random.hpp"

namespace jitney::tests {

// Every byte of poison: NaN in all floating-point formats, -1 in the integers, neither true nor
// false in the booleans.
inline constexpr std::byte kPoison{0xFF};

struct Layout {
    // The dimensions from the slowest to the fastest in memory; empty: as in the shape.
    std::vector<int> order;
    // Poisoned entries that follow each dimension's own, in the shape's order; empty: none.
    std::vector<std::int64_t> padding;
};

inline constexpr Device kHost{DeviceType::cpu, 0};

// [batch, length, heads, head_dim] with the heads outside the length.
inline const Layout kBhld{{0, 2, 1, 3}, {}};

// The layout with more padding behind every dimension but the first, the more the larger `number`
// is: of tensors of one shape that could be taken for each other no two have a stride in common,
// beyond that of the innermost dimension. Rows that begin at multiples of 8 elements still do.
Layout set_apart(const Layout& layout, std::size_t dims, std::int64_t number);

class HostTensor {
  public:
    HostTensor(DType dtype, std::vector<std::int64_t> shape, const Layout& layout = {});

    const std::vector<std::int64_t>& shape() const { return shape_; }
    DType dtype() const { return dtype_; }
    std::int64_t elements() const;

    // The view, as if it lay on `device`; it stays valid while this object is not destroyed.
    Tensor view(const Device& device = kHost);
    // The same view of a copy of all of storage() that lies elsewhere, at `base`.
    Tensor view_at(void* base, Device device) const;
    // All the memory, poison included.
    std::span<std::byte> storage() { return storage_; }

    // The element at a row-major index, whatever the layout.
    double get(std::int64_t index) const;
    // Rounds to the format. Booleans: 0 is false.
    void set(std::int64_t index, double value);
    // `{b, l, h, d}`
    double at(std::initializer_list<std::int64_t> position) const;
    void put(std::initializer_list<std::int64_t> position, double value);

    void fill(const std::function<double(std::int64_t)>& value_at);
    void fill_normal(Random& random, double deviation = 1.0);
    void fill_uniform(Random& random, double low, double high);
    void poison();
    // Whether every byte that belongs to no element is poison still.
    bool surroundings_intact() const;

    // "[1, 0, 3]" of a row-major index.
    std::string text_of_position(std::int64_t index) const;

  private:
    std::int64_t offset_of(std::int64_t index) const;
    std::int64_t index_of(std::initializer_list<std::int64_t> position) const;
    std::byte* address(std::int64_t index);
    const std::byte* address(std::int64_t index) const;

    DType dtype_;
    std::vector<std::int64_t> shape_;
    std::vector<std::int64_t> strides_;
    std::vector<std::byte> storage_;
};

}  // namespace jitney::tests
