#include "tests/support/same_request.hpp"

#include <algorithm>
#include <bit>
#include <string>

namespace jitney::tests {
namespace {

void copy(HostTensor& to, std::int64_t at, const HostTensor& from, std::int64_t start,
          std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
        to.set(at + i, from.get(start + i));
}

void copy_mask(ServingProblem& to, std::int64_t place, const ServingProblem& alone) {
    const ServingShape& shape = alone.shape;
    HostTensor& mask = to.at("mask");
    const HostTensor& own = alone.at("mask");
    const std::int64_t heads = shape.mask_dims == 4 ? shape.heads() : 1;
    const std::int64_t queries = shape.mask_dims >= 3 ? shape.q_len(0) : 1;
    for (std::int64_t head = 0; head < heads; ++head) {
        for (std::int64_t i = 0; i < queries; ++i) {
            for (std::int64_t j = 0; j < shape.kv_len(0); ++j) {
                if (shape.mask_dims == 2) mask.put({place, j}, own.at({0, j}));
                if (shape.mask_dims == 3) mask.put({place, i, j}, own.at({0, i, j}));
                if (shape.mask_dims == 4) mask.put({place, head, i, j}, own.at({0, head, i, j}));
            }
        }
    }
}

// Makes a request what the only one of `alone` is.
void copy_request(ServingProblem& to, std::int64_t place, const ServingProblem& alone) {
    const ServingShape& shape = alone.shape;
    if (shape.q_len(0) != 0) {
        copy(to.at("q"), to.out_index(place, 0, 0), alone.at("q"), alone.out_index(0, 0, 0),
             shape.q_len(0) * shape.heads() * shape.head_dim);
    }
    for (const char* name : {"k", "v"}) {
        for (std::int64_t j = 0; j < shape.kv_len(0); ++j) {
            copy(to.at(name), to.key_index(place, j, 0), alone.at(name), alone.key_index(0, j, 0),
                 shape.kv_heads * shape.head_dim);
        }
    }
    const std::int64_t fresh = shape.new_len * shape.kv_heads * shape.head_dim;
    if (fresh != 0) {
        for (const char* name : {"new_k", "new_v"})
            copy(to.at(name), place * fresh, alone.at(name), 0, fresh);
    }
    if (shape.mask_dims != 0) copy_mask(to, place, alone);
    for (const char* name : {"alibi_slopes", "sinks"}) {
        if (alone.tensors.contains(name)) to.at(name) = alone.at(name);
    }
}

}  // namespace

std::vector<Company> companies_of(const ServingProblem& alone, std::int64_t q_len,
                                  std::int64_t kv_len, Random& random) {
    std::vector<Company> companies;
    for (const std::int64_t batch : {1, 2, 7}) {
        ServingShape shape = alone.shape;
        const std::int64_t place = random.integer(0, batch - 1);
        shape.q_lens.clear();
        shape.kv_lens.clear();
        for (std::int64_t i = 0; i < batch; ++i) {
            const bool own = i == place;
            const std::int64_t queries = random.integer(0, q_len);
            const std::int64_t keys = random.integer(shape.new_len, kv_len);
            shape.q_lens.push_back(own || !shape.packed ? alone.shape.q_len(0) : queries);
            shape.kv_lens.push_back(own || shape.keys == KeyForm::dense ? alone.shape.kv_len(0)
                                                                        : keys);
        }
        if (shape.packed) shape.idle_rows = random.integer(0, 3);
        ServingProblem problem(shape, random);
        copy_request(problem, place, alone);
        std::optional<std::int64_t> most;
        if (random.chance(0.5)) {
            most = *std::ranges::max_element(shape.kv_lens) + random.integer(0, 5000);
        }
        companies.push_back({std::move(problem), place, most});
    }
    return companies;
}

std::vector<double> rows_of(const ServingProblem& problem, std::int64_t request,
                            const HostTensor& out, const HostTensor& lse) {
    const ServingShape& shape = problem.shape;
    std::vector<double> values;
    for (std::int64_t i = 0; i < shape.q_len(request); ++i) {
        for (std::int64_t head = 0; head < shape.heads(); ++head) {
            const std::int64_t row = problem.out_index(request, i, head);
            for (std::int64_t d = 0; d < shape.head_dim; ++d)
                values.push_back(out.get(row + d));
            values.push_back(lse.get(problem.lse_index(request, i, head)));
        }
    }
    return values;
}

bool is_same(const std::vector<double>& a, const std::vector<double>& b) {
    return std::ranges::equal(a, b, [](double x, double y) {
        return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
    });
}

}  // namespace jitney::tests
