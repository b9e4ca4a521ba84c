#include "jitney/elements.hpp"

#include <limits>

#include "operations/reference/numeric.hpp"

namespace jitney {
namespace {

// Visits the elements as what holds them in memory, with the conversions from and to it.
template <class Visit>
auto visit_as(const Tensor& tensor, const Visit& visit) {
    const auto plain = [](auto element) { return static_cast<double>(element); };
    switch (tensor.dtype) {
        case DType::fp32:
            return visit(static_cast<float*>(tensor.data), plain,
                         [](double value) { return static_cast<float>(value); });
        case DType::fp16:
            return visit(static_cast<std::uint16_t*>(tensor.data), reference::from_fp16,
                         reference::to_fp16);
        case DType::bf16:
            return visit(static_cast<std::uint16_t*>(tensor.data), reference::from_bf16,
                         reference::to_bf16);
        case DType::fp8_e4m3:
            return visit(static_cast<std::uint8_t*>(tensor.data), reference::from_e4m3,
                         reference::to_e4m3);
        case DType::fp8_e5m2:
            return visit(static_cast<std::uint8_t*>(tensor.data), reference::from_e5m2,
                         reference::to_e5m2);
        case DType::int32:
            return visit(static_cast<std::int32_t*>(tensor.data), plain,
                         [](double value) { return static_cast<std::int32_t>(value); });
        case DType::int64:
            return visit(static_cast<std::int64_t*>(tensor.data), plain,
                         [](double value) { return static_cast<std::int64_t>(value); });
        case DType::boolean:
            break;
    }
    return visit(static_cast<std::uint8_t*>(tensor.data), plain,
                 [](double value) { return static_cast<std::uint8_t>(value != 0); });
}

}  // namespace

double element_of(const Tensor& tensor, std::int64_t index) {
    return visit_as(tensor, [index](const auto* elements, auto from, auto) {
        return static_cast<double>(from(elements[index]));
    });
}

void set_element(const Tensor& tensor, std::int64_t index, double value) {
    visit_as(tensor, [index, value](auto* elements, auto, auto to) {
        elements[index] = to(value);
        return 0;
    });
}

}  // namespace jitney
