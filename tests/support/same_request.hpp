// One request in several batches: what a batch-invariant result may not depend on.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/support/serving_problem.hpp"

namespace jitney::tests {

// A problem one of whose requests is the one that is watched.
struct Company {
    ServingProblem problem;
    std::int64_t place;  // of that request
    std::optional<std::int64_t> max_kv_len;
};

// The only request of `alone` once more by itself, and in batches of 2 and 7, each time with its
// keys elsewhere. The others have at most so many queries and keys; its own q_len where queries are
// not packed, and its own kv_len where keys are dense.
std::vector<Company> companies_of(const ServingProblem& alone, std::int64_t q_len,
                                  std::int64_t kv_len, Random& random);

// The rows of a request in what was written, one value after the other.
std::vector<double> rows_of(const ServingProblem& problem, std::int64_t request,
                            const HostTensor& out, const HostTensor& lse);

// Bit for bit; zeros of different sign differ.
bool is_same(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace jitney::tests
