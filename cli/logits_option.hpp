// --logits: a logits function of the caller's in a file.
#pragma once

#include <string>

#include "jitney/jitney.h"
#include "jitney/logits.hpp"
#include "jitney/operations.hpp"
#include "jitney/tensor.hpp"

namespace CLI {
class App;
}

namespace jitney::cli {

// Of a file, or of what can be read to an end. Throws Error.
LogitsFunction read_logits(const std::string& path);

struct LogitsOption {
    std::string file;  // empty: no function

    void add_to(CLI::App& command, const std::string& description);
    LogitsFunction function() const { return file.empty() ? LogitsFunction() : read_logits(file); }
};

// Values for a call that is not made: each of its kind, and nothing in it.
LogitsValues empty_values(const LogitsFunction& function);
// That of a tensor of the parameter's name: a number is a tensor of one, in host memory; a pointer
// is to the tensor's elements. Throws Error where it is another.
jitney_logits_value value_in(const Tensor& tensor, const LogitsParameter& parameter);

}  // namespace jitney::cli
