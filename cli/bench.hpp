// jitney bench OP: how fast one operation runs here, beside what the card could do.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/backend_choice.hpp"
#include "cli/command.hpp"
#include "jitney/tensor.hpp"

namespace jitney::cli {

struct BenchOptions {
    BackendOptions backend;
    int samples = 0;  // 0: as many as fit into about three seconds

    void add_to(CLI::App& command, const OperationInfo& operation);
};

// What one call computes and moves.
struct BenchWork {
    std::string operation;
    double flops = 0;  // 0: not counted
    double bytes = 0;  // read and written, each once
    bool tensor_cores = false;
};

// One call over the tensors that it is given the memory of.
struct BenchCall {
    std::vector<Tensor*> tensors;  // all of them; their `data` is set
    // Of tensors whose values matter; the others get any.
    std::map<const Tensor*, std::vector<std::byte>> contents;
    std::function<void()> run;
};

// Milliseconds of a call, sorted.
struct Samples {
    std::vector<double> sorted;

    double at(double fraction) const;  // 0.5: the median
};

}  // namespace jitney::cli
