#include "cli/compare.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/arguments.hpp"
#include "cli/errors.hpp"
#include "cli/safetensors_header.hpp"
#include "cli/sizes.hpp"
#include "jitney/elements.hpp"

namespace jitney::cli {

namespace {

constexpr double kDefaultTolerance = 0.02;

double distance(double a, double b) {
    if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
    const double error = std::abs(a - b);
    return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

Json number(double value) {
    return std::isfinite(value) ? Json(value) : Json(nullptr);
}

}  // namespace

void ExpectOptions::add_to(CLI::App& command) {
    command
        .add_option("--expect", file,
                    "Compare the results with this file's tensors; fail above the tolerance")
        ->type_name("FILE.safetensors");
    add_value(command, "--tolerance", "X", "Largest absolute error allowed (0.02)",
              [this](const std::string& option, const std::string& text) {
                  tolerance = parse_real(option, text, 0, std::numeric_limits<double>::max());
              });
}

void ExpectOptions::check() const {
    if (tolerance && file.empty()) refuse("--tolerance is of --expect, which is missing");
}

Json Difference::json() const {
    return {{"file", file},
            {"max_abs_error", number(max_abs_error)},
            {"mean_abs_error", number(mean_abs_error)},
            {"tolerance", tolerance},
            {"within", within()}};
}

std::string Difference::text() const {
    return fmt::format("largest absolute error {:.3g}, mean {:.3g}, against {}", max_abs_error,
                       mean_abs_error, file);
}

Difference compare(const ExpectOptions& options, const TensorsByName& results) {
    Difference difference;
    difference.file = options.file;
    difference.tolerance = options.tolerance.value_or(kDefaultTolerance);
    const TensorFile expected = TensorFile::read(options.file);
    for (const auto& [name, tensor] : results)
        static_cast<void>(expected.find(name));  // throws for a dtype that can't be compared
    if (expected.tensors().empty()) refuse(options.file + " holds no tensor to compare with");
    double sum = 0;
    std::int64_t elements = 0;
    for (const auto& [name, tensor] : expected.tensors()) {
        const auto result = results.find(name);
        if (result == results.end()) {
            refuse(fmt::format("{} expects a tensor {}, which this call does not give",
                               options.file, text_of_name(name)));
        }
        const Shape is = shape_of(result->second);
        const Shape wanted = shape_of(tensor);
        if (is != wanted) {
            refuse(fmt::format("{} expects {} to be {}, and it is {}", options.file,
                               text_of_name(name), text_of_shape(wanted), text_of_shape(is)));
        }
        for (std::int64_t i = 0; i < tensor.elements(); ++i) {
            const double error = distance(element_of(result->second, i), element_of(tensor, i));
            difference.max_abs_error = std::max(difference.max_abs_error, error);
            sum += error;
        }
        elements += tensor.elements();
    }
    if (elements != 0) difference.mean_abs_error = sum / static_cast<double>(elements);
    return difference;
}

}  // namespace jitney::cli
