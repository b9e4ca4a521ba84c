// Partial results of attention to merge, with the tensors to run them on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/compare.hpp"
#include "tests/support/host_tensor.hpp"

namespace jitney::tests {

struct MergeCase {
    DType dtype = DType::bf16;
    std::int64_t batch = 2;
    std::int64_t q_len = 5;
    std::int64_t heads = 3;
    std::int64_t head_dim = 64;
    bool packed = false;  // [batch * q_len, ...]
    // Of each tensor of parts, how many it has; 0: one, without a dimension for it.
    std::vector<std::int64_t> parts{0, 0};
    bool in_place = false;  // into the first of the first tensor
    bool lse = true;        // wanted
    Layout layout = {};     // of out where there are four dimensions

    std::string text() const;
};

// The tensors of the parts and of the result, which is poisoned. Some rows of some parts have the
// LSE -inf, and poison in place of numbers; some have it in all of their parts.
class MergeProblem {
  public:
    MergeProblem(const MergeCase& problem, Random& random);

    // Of anything that has parts, out and lse; `view` makes a Tensor of a HostTensor.
    template <class Part, class View>
    std::vector<Part> parts(const View& view) {
        std::vector<Part> all;
        for (std::size_t i = 0; i < part_outs.size(); ++i)
            all.push_back({view(part_outs[i]), view(part_lses[i])});
        return all;
    }
    // The part that the result goes to, where that is in place.
    static Tensor first_of(Tensor view, const MergeCase& test);

    // Computes `out` and `lse` from the parts as they are, whether in place or not.
    void run_reference();

    MergeCase test;
    std::vector<HostTensor> part_outs;
    std::vector<HostTensor> part_lses;
    HostTensor out;
    HostTensor lse;
};

MergeCase random_merge_case(Random& random);

// What a kernel of this format may be off by.
Tolerance merge_tolerance(DType dtype);

}  // namespace jitney::tests
