#include "cli/merge_states_problem.hpp"

#include <CLI/CLI.hpp>
#include <limits>

#include "cli/errors.hpp"
#include "cli/problem.hpp"

namespace jitney::cli {

void MergeStatesProblem::add_to(CLI::App& command) {
    add_shape(command, "--out", out,
              "Shape of the result: batch,q_len,heads,head_dim, or ragged total_q,heads,head_dim")
        ->required();
    add_integer(command, "--parts", parts, 2, std::numeric_limits<int>::max(),
                "How many partial results are merged (2)");
    add_format(command, format);
}

MergeStatesCall MergeStatesProblem::arguments(Device device) const {
    const bool ragged = out.size() == 3;
    if (!ragged) {
        require_dims("--out", out, 4, "batch,q_len,heads,head_dim or total_q,heads,head_dim");
    }
    const auto with_parts = [this](Shape shape) {
        shape.insert(shape.begin(), parts);
        return shape;
    };
    const Shape lse = ragged ? Shape{out[0], out[1]} : Shape{out[0], out[2], out[1]};
    const DType dtype = dtype_of(format);
    MergeStatesCall call;
    call.parts.out = shaped("--out", with_parts(out), dtype, device);
    call.parts.lse = shaped("--out", with_parts(lse), DType::fp32, device);
    call.others.out = shaped("--out", out, dtype, device);
    call.others.lse = shaped("--out", lse, DType::fp32, device);
    return call;
}

}  // namespace jitney::cli
