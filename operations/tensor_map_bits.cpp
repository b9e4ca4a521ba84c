#include "operations/tensor_map_bits.hpp"

#include <cstring>

namespace jitney {

void encode(TensorMapBits& bits, const void* address, const runtime::TensorMapShape& shape) {
    const runtime::TensorMap map = runtime::make_tensor_map(address, shape);
    static_assert(sizeof bits == sizeof map);
    std::memcpy(&bits, &map, sizeof bits);
}

}  // namespace jitney
