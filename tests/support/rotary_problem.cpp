#include "tests/support/rotary_problem.hpp"

#include <cmath>

#include "operations/rotary/reference.hpp"

namespace jitney::tests {

namespace {

HostTensor make_positions(const RotaryCase& test, std::int64_t rows, Random& random) {
    const bool each = test.positions == Positions::each_32 || test.positions == Positions::each_64;
    const bool wide =
        test.positions == Positions::shared_64 || test.positions == Positions::each_64;
    HostTensor positions(wide ? DType::int64 : DType::int32,
                         each ? std::vector<std::int64_t>{test.batch, test.length}
                              : std::vector<std::int64_t>{test.length});
    positions.fill([&](std::int64_t) { return static_cast<double>(random.integer(0, rows - 1)); });
    return positions;
}

}  // namespace

std::string RotaryCase::text() const {
    return "dtype " + std::to_string(static_cast<int>(dtype)) +
           (style == RotaryStyle::interleaved ? ", interleaved" : ", half_split") + ", " +
           std::to_string(batch) + " x " + std::to_string(length) + ", heads " +
           std::to_string(heads) + "/" + std::to_string(kv_heads) + ", head_dim " +
           std::to_string(head_dim) + ", rotary_dim " + std::to_string(rotary_dim) +
           ", positions " + std::to_string(static_cast<int>(positions)) +
           (in_place ? ", in place" : "");
}

RotaryProblem::RotaryProblem(const RotaryCase& problem, Random& random)
    : test(problem),
      q(test.dtype, {test.batch, test.length, test.heads, test.head_dim}, test.layout),
      k(test.dtype, {test.batch, test.length, test.kv_heads, test.head_dim},
        set_apart(test.layout, 4, 1)),
      q_out(test.dtype, q.shape(), set_apart(test.layout, 4, 2)),
      k_out(test.dtype, k.shape(), set_apart(test.layout, 4, 3)),
      cos(DType::fp32, {rows, test.rotary_dim / 2}, {{}, {0, test.table_padding}}),
      sin(cos) {
    q.fill_normal(random);
    k.fill_normal(random);
    if (test.in_place) {
        q_out = q;
        k_out = k;
    }
    for (std::int64_t i = 0; i < cos.elements(); ++i) {
        const double angle = random.uniform(-10.0, 10.0);
        cos.set(i, std::cos(angle));
        sin.set(i, std::sin(angle));
    }
    if (test.positions != Positions::none) positions = make_positions(test, rows, random);
}

void RotaryProblem::run_reference() {
    reference::rotary(rotary_call<reference::Rotary>(test, *this));
}

Tolerance rotary_tolerance(DType dtype) {
    return dtype == DType::fp32 ? Tolerance{1e-5, 1e-5} : Tolerance{1e-2, 1e-2};
}

}  // namespace jitney::tests
