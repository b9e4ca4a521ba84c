// How far a result is from the expected one.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "cli/output.hpp"
#include "cli/safetensors.hpp"
#include "jitney/tensor.hpp"

namespace CLI {
class App;
}

namespace jitney::cli {

struct ExpectOptions {
    std::string file;
    std::optional<double> tolerance;

    void add_to(CLI::App& command);
    // Throws Error where they can't be meant.
    void check() const;
};

struct Difference {
    double max_abs_error = 0;   // infinite where one is NaN or infinite and the other is not
    double mean_abs_error = 0;  // of all elements
    double tolerance = 0;
    std::string file;

    bool within() const { return max_abs_error <= tolerance; }
    Json json() const;
    std::string text() const;
};

// Every tensor of the expected file must be among the results, in the same shape; formats may
// differ. Throws Error where they are not.
Difference compare(const ExpectOptions& options, const TensorsByName& results);

}  // namespace jitney::cli
