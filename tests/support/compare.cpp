#include "tests/support/compare.hpp"

#include <algorithm>

#include <cmath>
#include <limits>
#include <sstream>
#include <stdexcept>

namespace jitney::tests {

Comparison compare(const HostTensor& actual, const HostTensor& expected, Tolerance tolerance) {
    if (actual.shape() != expected.shape()) {
        throw std::logic_error("tensors of different shapes can't be compared");
    }
    Comparison result;
    result.count = actual.elements();
    double worst_excess = -std::numeric_limits<double>::infinity();
    double sum = 0.0;
    std::int64_t finite = 0;
    for (std::int64_t i = 0; i < result.count; ++i) {
        const double a = actual.get(i);
        const double e = expected.get(i);
        double excess = std::numeric_limits<double>::infinity();  // how far beyond the tolerance
        if (std::isfinite(a) && std::isfinite(e)) {
            const double error = std::abs(a - e);
            excess = error - (tolerance.absolute + tolerance.relative * std::abs(e));
            result.max_absolute = std::max(result.max_absolute, error);
            if (e != 0.0) result.max_relative = std::max(result.max_relative, error / std::abs(e));
            sum += error;
            ++finite;
        } else if (a == e) {
            excess = -std::numeric_limits<double>::infinity();
        }
        if (excess > 0.0) ++result.failures;
        if (result.worst < 0 || excess > worst_excess) {
            worst_excess = excess;
            result.worst = i;
        }
    }
    result.within = result.failures == 0;
    if (finite > 0) result.mean_absolute = sum / static_cast<double>(finite);

    std::ostringstream text;
    text << result.failures << " of " << result.count << " elements are not within "
         << tolerance.absolute << " + " << tolerance.relative << " * |expected|; errors: max "
         << result.max_absolute << ", max relative " << result.max_relative << ", mean "
         << result.mean_absolute;
    if (result.worst >= 0) {
        text.precision(9);
        text << "; the worst is at " << actual.text_of_position(result.worst) << ": "
             << actual.get(result.worst) << " instead of " << expected.get(result.worst);
    }
    result.text = text.str();
    return result;
}

Tolerance tolerance_of(DType dtype) {
    switch (dtype) {
        case DType::fp32:
            return {1e-5, 1e-5};
        case DType::fp16:
            return {2e-3, 2e-3};
        case DType::bf16:
            return {1e-2, 1.6e-2};
        default:
            throw std::logic_error("no tolerance is agreed on for this format");
    }
}

double mean_limit_of(const HostTensor& expected) {
    double magnitude = 0.0;
    for (std::int64_t i = 0; i < expected.elements(); ++i) {
        const double value = std::abs(expected.get(i));
        if (std::isfinite(value)) magnitude += value;
    }
    const double mean =
        magnitude / static_cast<double>(std::max<std::int64_t>(1, expected.elements()));
    return std::max(1e-3, mean * 0x1p-8);
}

}  // namespace jitney::tests
