#include <limits>

#include "operations/call_memory.hpp"
#include "operations/check.hpp"
#include "operations/check_enum.hpp"
#include "operations/gated_activation/fields.hpp"
#include "operations/refuse.hpp"
#include "operations/row_results.hpp"

namespace jitney::checks {
namespace {

constexpr const char* kDims = "[..., d]";
constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();

// Of a row: the width of out.
std::int64_t check_width(const GatedActivationArgs& args, const Tensor& gate_rows) {
    const std::int64_t columns = gate_rows.shape[1];
    if (!args.up && columns % 2 != 0) {
        refuse(
            "gate has the shape {}, and there is no up: it must have an even number of columns, "
            "those of the gate and behind them those of up",
            shape_text(args.gate));
    }
    const std::int64_t d = args.up ? columns : columns / 2;
    if (d < 1 || columns > kMaxInt) {
        refuse("gate has the shape {}, rows of {} elements; they must have from 1 to {}",
               shape_text(args.gate), columns, kMaxInt);
    }
    return d;
}

// That out has the gate's shape, but for the width.
void check_out_shape(const Named& gate, const Named& out, std::int64_t d) {
    Tensor like = gate.tensor;
    like.shape[static_cast<std::size_t>(like.ndim - 1)] = d;
    check_same_shape(
        {d == gate.tensor.shape[static_cast<std::size_t>(like.ndim - 1)] ? "gate" : "half of gate",
         like, kDims},
        out);
}

}  // namespace

policy::GatedActivationProblem check(const GatedActivationArgs& args, Data data) {
    const Named gate{"gate", args.gate, kDims};
    const Named out{"out", args.out, kDims};
    check_floating(gate);
    const Tensor gate_rows = as_matrix(gate);
    check_pointer(gate, data);
    check_enum<Activation>("activation", args.activation,
                           {{Activation::silu, "silu"},
                            {Activation::gelu, "gelu"},
                            {Activation::gelu_tanh, "gelu_tanh"},
                            {Activation::relu2, "relu2"}});
    const std::int64_t d = check_width(args, gate_rows);
    policy::GatedActivationProblem problem;
    problem.format = static_cast<int>(args.gate.dtype);
    problem.activation = static_cast<int>(args.activation);
    problem.rows = gate_rows.shape[0];
    problem.d = static_cast<int>(d);
    problem.aligned = is_aligned(gate_rows);
    if (args.up) {
        const Named up{"up", *args.up, kDims};
        check_same_shape(gate, up);
        problem.aligned = problem.aligned && is_aligned(check_rows(gate, up, data));
    }
    check_out_shape(gate, out, d);
    problem.result =
        check_results(gate, {args.out, args.multiplier, args.scale}, problem.rows, data);
    const Tensor out_rows = as_matrix(out);
    check_no_overlap({out.name, out_rows, kDims});
    problem.aligned = problem.aligned && is_aligned(out_rows);
    if (data != Data::absent) {
        check_in_place_rows(out, out_rows, gate, gate_rows);
        check_memory(args);
    }
    return problem;
}

}  // namespace jitney::checks
