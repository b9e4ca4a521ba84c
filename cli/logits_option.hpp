// --logits: a logits function of the caller's in a file.
#pragma once

#include <string>
#include <vector>

#include "jitney/logits.hpp"

namespace CLI {
class App;
}

namespace jitney::cli {

class Run;

// Of a file, or of what can be read to an end. Throws Error.
LogitsFunction read_logits(const std::string& path);

struct LogitsOption {
    std::string file;  // empty: no function

    void add_to(CLI::App& command, const std::string& description);
    LogitsFunction function() const { return file.empty() ? LogitsFunction() : read_logits(file); }
};

// What it declares, in order.
std::vector<std::string> parameter_names(const LogitsFunction& function);

// Values for a call that is not made: each of its kind, and nothing in it.
LogitsValues empty_values(const LogitsFunction& function);
// Those in a run's file, in tensors that are called like the parameters: a number is a tensor of
// one, a pointer is to the tensor's elements. Throws Error where there is no such tensor.
LogitsValues values_in(Run& run, const LogitsFunction& function);

}  // namespace jitney::cli
