#include "cli/narrow.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <span>

#include "cli/arguments.hpp"
#include "cli/errors.hpp"

namespace jitney::cli {

namespace {

// Of element `at` in row-major order: "[1, 3]".
std::string place_of(const Tensor& tensor, std::int64_t at) {
    Shape place(static_cast<std::size_t>(tensor.ndim));
    for (std::size_t dim = place.size(); dim-- > 0; at /= tensor.shape[dim])
        place[dim] = at % tensor.shape[dim];
    return text_of_shape(place);
}

}  // namespace

HostTensor narrowed(std::string_view name, const Tensor& tensor) {
    HostTensor result(DType::int32,
                      std::span(tensor.shape).first(static_cast<std::size_t>(tensor.ndim)));
    const auto* from = static_cast<const std::int64_t*>(tensor.data);
    auto* to = static_cast<std::int32_t*>(result.view().data);
    for (std::int64_t i = 0; i < tensor.elements(); ++i) {
        if (from[i] < std::numeric_limits<std::int32_t>::min() ||
            from[i] > std::numeric_limits<std::int32_t>::max()) {
            refuse(fmt::format("{}{} is {}, and indices are of 32 bits", name, place_of(tensor, i),
                               from[i]));
        }
        to[i] = static_cast<std::int32_t>(from[i]);
    }
    return result;
}

}  // namespace jitney::cli
