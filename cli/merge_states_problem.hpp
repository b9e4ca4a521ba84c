// The merging of partial results that explain is asked about.
#pragma once

#include <string>

#include "cli/arguments.hpp"
#include "jitney/merge_states.hpp"

namespace CLI {
class App;
}

namespace jitney::cli {

// A call with the parts that its arguments name.
struct MergeStatesCall {
    PartialState parts;  // behind each other
    MergeStatesArgs others;

    MergeStatesArgs arguments() const {
        MergeStatesArgs args = others;
        args.parts = {&parts, 1};
        return args;
    }
};

struct MergeStatesProblem {
    Shape out;
    int parts = 2;
    std::string format = "bf16";

    void add_to(CLI::App& command);
    // The call, its pointers null.
    MergeStatesCall arguments(Device device) const;
};

}  // namespace jitney::cli
