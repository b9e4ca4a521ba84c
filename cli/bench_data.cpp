#include "cli/bench_data.hpp"

#include <cstdint>
#include <random>

#include "jitney/elements.hpp"

namespace jitney::cli {

std::vector<std::byte> bench_values(DType dtype, std::size_t bytes) {
    std::vector<std::byte> values(bytes);
    if (dtype == DType::int32 || dtype == DType::int64) return values;
    const auto count = static_cast<std::int64_t>(bytes / static_cast<std::size_t>(size_of(dtype)));
    const Tensor all = Tensor::contiguous(values.data(), dtype, {count}, {DeviceType::cpu, 0});
    std::mt19937 random(1);
    for (std::int64_t i = 0; i < count; ++i) {
        const bool boolean = dtype == DType::boolean;
        set_element(all, i,
                    boolean ? static_cast<double>(random() % 16)
                            : static_cast<double>(random()) / 2147483648.0 - 1.0);
    }
    return values;
}

}  // namespace jitney::cli
