// The linear layer that explain is asked about.
#pragma once

#include <variant>

#include "cli/arguments.hpp"
#include "cli/linear_form.hpp"

namespace jitney::cli {

struct Fp8LinearProblem {
    Shape x;
    Shape weight;
    LinearForm form;
    bool saves = false;
    bool backward = false;

    void add_to(CLI::App& command);
    // The forward or the backward call, its pointers null.
    std::variant<Fp8LinearArgs, Fp8LinearBackwardArgs> arguments(Device device) const;
};

}  // namespace jitney::cli
