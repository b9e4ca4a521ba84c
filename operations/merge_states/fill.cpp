#include "operations/merge_states/fill.hpp"

namespace jitney {
namespace {

// Of a result, or of several behind each other: the last dimensions are those of the result.
AttentionStrides row_strides(const Tensor& out, bool packed) noexcept {
    const auto last = static_cast<std::size_t>(out.ndim - 1);
    return {packed ? 0 : out.strides[last - 3], out.strides[last - 2], out.strides[last - 1]};
}

AttentionStrides lse_strides(const Tensor& lse, bool packed) noexcept {
    const auto last = static_cast<std::size_t>(lse.ndim - 1);
    if (packed) return {0, lse.strides[last - 1], lse.strides[last]};
    return {lse.strides[last - 2], lse.strides[last], lse.strides[last - 1]};
}

}  // namespace

MergeStatesParams form_params(const MergeStatesArgs& args,
                              const policy::MergeStatesProblem& problem) noexcept {
    const Tensor& out = args.out;
    const bool packed = out.ndim == 3;
    MergeStatesParams params{};
    for (const PartialState& part : args.parts) {
        MergeSource& source = params.sources[params.source_count++];
        const bool several = part.out.ndim == out.ndim + 1;
        source.out_strides = row_strides(part.out, packed);
        source.lse_strides = lse_strides(part.lse, packed);
        source.out_part = several ? part.out.strides[0] : 0;
        source.lse_part = several ? part.lse.strides[0] : 0;
        source.parts = several ? static_cast<int>(part.out.shape[0]) : 1;
        params.parts += source.parts;
    }
    params.out_strides = row_strides(out, packed);
    if (args.lse) params.lse_strides = lse_strides(*args.lse, packed);
    params.rows = problem.rows;
    params.q_len = static_cast<int>(out.shape[packed ? 0 : 1]);
    params.heads = static_cast<int>(out.shape[packed ? 1 : 2]);
    return params;
}

void set_addresses(MergeStatesParams& params, const MergeStatesArgs& args) noexcept {
    MergeSource* source = params.sources;
    for (const PartialState& part : args.parts) {
        source->out = part.out.data;
        source->lse = static_cast<const float*>(part.lse.data);
        ++source;
    }
    params.out = args.out.data;
    params.lse = args.lse ? static_cast<float*>(args.lse->data) : nullptr;
}

}  // namespace jitney
