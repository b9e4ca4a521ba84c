#include "tests/support/merge_problem.hpp"

#include <algorithm>
#include <limits>

#include "operations/merge_states/reference.hpp"

namespace jitney::tests {

namespace {

using Shape = std::vector<std::int64_t>;

Shape out_shape(const MergeCase& test) {
    if (test.packed) return {test.batch * test.q_len, test.heads, test.head_dim};
    return {test.batch, test.q_len, test.heads, test.head_dim};
}

Shape lse_shape(const MergeCase& test) {
    if (test.packed) return {test.batch * test.q_len, test.heads};
    return {test.batch, test.heads, test.q_len};
}

Shape with_parts(Shape shape, std::int64_t parts) {
    if (parts != 0) shape.insert(shape.begin(), parts);
    return shape;
}

// Row-major index of the LSE of row `row` of out, counted in the order of out's rows.
std::int64_t lse_index(const MergeCase& test, std::int64_t row) {
    if (test.packed) return row;
    const std::int64_t head = row % test.heads;
    const std::int64_t position = row / test.heads % test.q_len;
    const std::int64_t batch = row / test.heads / test.q_len;
    return (batch * test.heads + head) * test.q_len + position;
}

}  // namespace

std::string MergeCase::text() const {
    std::string text = "dtype " + std::to_string(static_cast<int>(dtype)) + ", " +
                       std::to_string(batch) + " x " + std::to_string(q_len) + ", heads " +
                       std::to_string(heads) + ", head_dim " + std::to_string(head_dim) +
                       (packed ? ", packed" : "") + (in_place ? ", in place" : "") +
                       (lse ? "" : ", no LSE") + ", parts";
    for (const std::int64_t count : parts)
        text.append(" ").append(std::to_string(count));
    return text;
}

MergeProblem::MergeProblem(const MergeCase& problem, Random& random)
    : test(problem),
      out(test.dtype, out_shape(test), test.packed ? Layout{} : test.layout),
      lse(DType::fp32, lse_shape(test)) {
    constexpr double nothing = -std::numeric_limits<double>::infinity();
    const std::int64_t rows = test.batch * test.q_len * test.heads;
    std::vector<bool> empty;  // rows that no part has seen keys of
    for (std::int64_t row = 0; row < rows; ++row)
        empty.push_back(random.chance(0.1));
    for (const std::int64_t count : test.parts) {
        const bool plain = count == 0 && !test.packed && random.chance(0.5);
        part_outs.emplace_back(test.dtype, with_parts(out_shape(test), count),
                               plain ? test.layout : Layout{});
        part_lses.emplace_back(DType::fp32, with_parts(lse_shape(test), count));
        for (std::int64_t part = 0; part < std::max<std::int64_t>(count, 1); ++part) {
            for (std::int64_t row = 0; row < rows; ++row) {
                const bool none = empty[static_cast<std::size_t>(row)] || random.chance(0.2);
                part_lses.back().set(part * rows + lse_index(test, row),
                                     none ? nothing : random.uniform(-20.0, 20.0));
                if (none) continue;
                for (std::int64_t d = 0; d < test.head_dim; ++d)
                    part_outs.back().set((part * rows + row) * test.head_dim + d, random.normal());
            }
        }
    }
}

Tensor MergeProblem::first_of(Tensor view, const MergeCase& test) {
    if (test.parts.front() == 0) return view;
    --view.ndim;
    for (std::size_t i = 0; i < static_cast<std::size_t>(view.ndim); ++i) {
        view.shape[i] = view.shape[i + 1];
        view.strides[i] = view.strides[i + 1];
    }
    return view;
}

void MergeProblem::run_reference() {
    reference::MergeStates call;
    call.parts = parts<reference::MergeStates::Part>([](HostTensor& t) { return t.view(); });
    call.out = out.view();
    if (test.lse) call.lse = lse.view();
    reference::merge_states(call);
}

MergeCase random_merge_case(Random& random) {
    MergeCase test;
    test.batch = random.integer(1, 3);
    test.q_len = random.integer(1, 12);
    test.heads = random.integer(1, 5);
    test.packed = random.chance(0.4);
    test.parts.clear();
    const std::int64_t tensors = random.integer(1, random.chance(0.2) ? 16 : 3);
    for (std::int64_t i = 0; i < tensors; ++i) {
        const bool several = tensors == 1 || random.chance(0.3);
        test.parts.push_back(several ? random.integer(2, random.chance(0.2) ? 70 : 6) : 0);
    }
    test.in_place = random.chance(0.3);
    test.lse = test.in_place || random.chance(0.8);
    if (random.chance(0.5)) test.layout = random.chance(0.5) ? kBhld : Layout{{}, {1, 2, 1, 8}};
    return test;
}

Tolerance merge_tolerance(DType dtype) {
    return dtype == DType::fp32 ? Tolerance{1e-5, 1e-5} : Tolerance{1e-3, 1e-2};
}

}  // namespace jitney::tests
