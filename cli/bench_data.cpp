#include "cli/bench_data.hpp"

#include <cstdint>
#include <cstring>
#include <random>

#include "operations/reference/numeric.hpp"

namespace jitney::cli {

namespace {

template <class Element, class Make>
void fill(std::vector<std::byte>& bytes, Make make) {
    for (std::size_t at = 0; at + sizeof(Element) <= bytes.size(); at += sizeof(Element)) {
        const auto value = static_cast<Element>(make());
        std::memcpy(bytes.data() + at, &value, sizeof value);
    }
}

}  // namespace

std::vector<std::byte> bench_values(DType dtype, std::size_t bytes) {
    std::vector<std::byte> values(bytes);
    std::mt19937 random(1);
    const auto number = [&random] { return static_cast<double>(random()) / 2147483648.0 - 1.0; };
    switch (dtype) {
        case DType::fp32:
            fill<float>(values, number);
            break;
        case DType::fp16:
            fill<std::uint16_t>(values, [&] { return reference::to_fp16(number()); });
            break;
        case DType::bf16:
            fill<std::uint16_t>(values, [&] { return reference::to_bf16(number()); });
            break;
        case DType::fp8_e4m3:
            fill<std::uint8_t>(values, [&] { return reference::to_e4m3(number()); });
            break;
        case DType::fp8_e5m2:
            fill<std::uint8_t>(values, [&] { return reference::to_e5m2(number()); });
            break;
        case DType::boolean:
            fill<std::uint8_t>(values, [&random] { return random() % 16 != 0 ? 1 : 0; });
            break;
        case DType::int32:
        case DType::int64:
            break;
    }
    return values;
}

}  // namespace jitney::cli
