// The last blocks of attention and of what belongs to it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "kernel_sources/attention/mask_bits.h"
#include "kernel_sources/common/constants.h"
#include "operations/check.hpp"
#include "tests/emulator/kernels/attention_case.hpp"
#include "tests/emulator/kernels/last_blocks.hpp"
#include "tests/emulator/kernels/lines.hpp"
#include "tests/emulator/seed.hpp"
#include "tests/support/made_params.hpp"
#include "tests/support/merge_problem.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/rotary_problem.hpp"

namespace jitney::emulator {
namespace {

using Use = EmulatedTensor::Use;
using policy::KernelId;

// The last of so many heads that the number of its tile times what a tile has in the workspace is
// beyond 32 bits. All heads read and write the same.
bool run_last_head(const Covered& covered, tests::Random& random) {
    const policy::AttentionProblem& fixed = covered.attention->problem;
    tests::AttentionShape shape;
    // One tile of rows, so that the last block is the last head's in every order of tiles.
    shape.q_len = is_decode(covered.attention->kernel) ? 3 : 40;
    // So many that the policy does not have the blocks form a cluster.
    const bool clusters = covered.attention->kernel == KernelId::attn_decode_cluster;
    shape.kv_len = clusters ? 7000 : (is_decode(covered.attention->kernel) ? 600 : 70);
    shape.head_dim = fixed.head_dim;
    shape.dtype = static_cast<DType>(fixed.format);
    shape.causal = fixed.causal;
    if (fixed.mask) shape.mask = tests::MaskKind::heads;
    tests::AttentionProblem problem(shape, random);
    const EmulatedTensor q(problem.q, Use::input);
    const EmulatedTensor k(problem.k, Use::input);
    const EmulatedTensor v(problem.v, Use::input);
    const EmulatedTensor out(problem.out, Use::output);
    const EmulatedTensor lse(problem.lse, Use::output);
    std::optional<EmulatedTensor> mask;
    if (problem.mask) mask.emplace(*problem.mask, Use::input);
    AttentionArgs args;
    args.q = q.view();
    args.k = k.view();
    args.v = v.view();
    args.out = out.view();
    args.lse = lse.view();
    if (mask) args.mask = mask->view();
    args.causal = shape.causal;
    const policy::AttentionProblem seen = checks::check(args);
    policy::DeviceFacts facts = covered.attention->facts;
    if (is_decode(covered.attention->kernel)) facts.sm_count = clusters ? 100 : 20;
    const std::optional<policy::AttentionChoice> choice =
        policy::choose_attention(seen, facts, covered.attention->kernel);
    if (!choice || !(choice->spec == covered.spec)) return false;
    const policy::AttentionWorkspace& workspace = choice->workspace;
    if (workspace.scratch_bytes() == 0) return false;

    INFO(policy::text_of(choice->spec), ", splits ", choice->splits, ", ", random.text());
    const Buffer scratch = lonely(workspace.scratch_bytes(), "the workspace");
    const Buffer counters = lonely(workspace.arrived_bytes, "the counters");
    std::memset(counters.data(), 0, counters.bytes());
    AttentionParams params = make_params(args, seen, *choice, scratch.data(), counters.data());
    const auto blocks = static_cast<std::int64_t>(choice->geometry.grid[0]);
    const std::int64_t rows =
        choice->row_tiles * choice->splits * std::int64_t{policy::value_of(choice->spec, "tile_m")};
    const std::int64_t head_words = mask ? std::int64_t{mask_bands(params.mask_bits.rows)} *
                                               mask_groups(params.mask_bits.keys) *
                                               mask_band_stride(params.mask_bits.rows)
                                         : 0;
    const std::int64_t before = kBeyond / std::max(choice->splits > 1 ? rows : 1, head_words) + 1;
    params.kv_heads = static_cast<int>(before + 1);
    for (AttentionStrides* strides :
         {&params.q_strides, &params.k_strides, &params.v_strides, &params.out_strides,
          &params.lse_strides, &params.mask_strides}) {
        strides->head = 0;
    }
    move_back(params.partial_out, before * rows * fixed.head_dim);
    move_back(params.partial_statistics, before * rows, 8);
    move_back(params.arrived, before * choice->row_tiles);
    if (choice->mask_bits) {
        params.mask_bits.heads = params.kv_heads;
        move_back(params.mask_bits.words, before * head_words);
        const std::int64_t summaries =
            std::int64_t{mask_bands(params.mask_bits.rows)} * mask_spans(params.mask_bits.keys);
        move_back(params.mask_bits.summary, before * summaries);
        launch_last(choice->mask_bits->spec, choice->mask_bits->geometry, before * summaries,
                    &params, random);
    }
    launch_last(choice->spec, choice->geometry, before * blocks, &params, random);
    reference::attention(problem.reference_call());
    check_output(out.download(), problem.out);
    check_log_sums(lse.download(), problem.lse);
    return true;
}

int run_last_heads(KernelId kernel, tests::Random& random) {
    int ran = 0;
    for (const Covered& covered : covered_lines(kernel)) {
        if (covered.attention->problem.append || covered.attention->problem.paged) continue;
        ran += run_last_head(covered, random) ? 1 : 0;
    }
    return ran;
}

}  // namespace

TEST_CASE("the last blocks of split attention") {
    tests::Random random(run_seed());
    CHECK(run_last_heads(KernelId::attn_decode_mma, random) >= 1);
    CHECK(run_last_heads(KernelId::attn_decode_cluster, random) >= 1);
    CHECK(run_last_heads(KernelId::attn_decode_scalar, random) >= 1);
}

TEST_CASE("the last blocks of masks as bits") {
    tests::Random random(run_seed());
    CHECK(run_last_heads(KernelId::attn_prefill_mma, random) >= 1);
}

// The last tokens of more than 2^32, or of as many as there are blocks.
TEST_CASE("the last blocks of rotary_emb") {
    tests::Random random(run_seed());
    for (const Covered& covered : covered_lines(KernelId::rotary_emb)) {
        const policy::Spec& spec = covered.spec;
        INFO(policy::text_of(spec), ", ", random.text());
        tests::RotaryCase test;
        test.dtype = dtype_of(spec, "format");
        test.style = policy::value_of(spec, "style") == kInterleaved ? RotaryStyle::interleaved
                                                                     : RotaryStyle::half_split;
        test.heads = 1;
        test.kv_heads = 1;
        test.length = 4;
        test.head_dim = test.rotary_dim = 32;
        test.positions = tests::Positions::each_64;
        tests::RotaryProblem problem(test, random);
        const std::int64_t shift = policy::value_of(spec, "pairs") == 1 ? 1 : 0;
        const EmulatedTensor q(problem.q, Use::input, shift, {}, kAlone);
        const EmulatedTensor k(problem.k, Use::input, shift, {}, kAlone);
        const EmulatedTensor q_out(problem.q_out, Use::output, shift, {}, kAlone);
        const EmulatedTensor k_out(problem.k_out, Use::output, shift, {}, kAlone);
        const EmulatedTensor cos(problem.cos, Use::input);
        const EmulatedTensor sin(problem.sin, Use::input);
        const std::optional<EmulatedTensor> positions(std::in_place, *problem.positions, Use::input,
                                                      0, std::vector<bool>(), kAlone);
        struct {
            const EmulatedTensor &q, &k, &q_out, &k_out, &cos, &sin;
            const std::optional<EmulatedTensor>& positions;
        } tensors{q, k, q_out, k_out, cos, sin, positions};
        const auto args = tests::rotary_call<RotaryArgs>(test, tensors);
        const policy::RotaryProblem seen = checks::check(args);
        const policy::RotaryChoice choice =
            policy::rank_rotary(seen, policy::typical_facts(spec.arch())).choice.value();
        REQUIRE(choice.spec == spec);
        RotaryParams params = make_params(args, seen, choice);
        const std::int64_t blocks =
            std::min(kLargestGrid - 100, kBeyond / choice.tokens_a_block + 1) / 4 * 4;
        const std::int64_t batches = blocks * choice.tokens_a_block / test.length;
        params.tokens += batches * test.length;
        for (RotaryTensor& tensor : params.tensors) {
            move_back(tensor.x, batches * tensor.x_batch, size_of(test.dtype));
            move_back(tensor.out, batches * tensor.out_batch, size_of(test.dtype));
        }
        move_back(params.positions, batches * params.positions_batch, 8);
        launch_last(spec, choice.geometry, blocks, &params, random);
        problem.run_reference();
        const tests::Tolerance tolerance = tests::rotary_tolerance(test.dtype);
        JITNEY_CHECK_CLOSE(q_out.download(), problem.q_out, tolerance);
        JITNEY_CHECK_CLOSE(k_out.download(), problem.k_out, tolerance);
    }
}

// The last rows of more than 2^32.
TEST_CASE("the last blocks of attn_merge_states") {
    tests::Random random(run_seed());
    for (const Covered& covered : covered_lines(KernelId::attn_merge_states)) {
        const policy::Spec& spec = covered.spec;
        INFO(policy::text_of(spec), ", ", random.text());
        tests::MergeCase test;
        test.dtype = dtype_of(spec, "format");
        test.head_dim = policy::value_of(spec, "head_dim");
        tests::MergeProblem problem(test, random);
        const std::int64_t shift = policy::value_of(spec, "width") == 1 ? 1 : 0;
        std::vector<EmulatedTensor> outs;
        std::vector<EmulatedTensor> lses;
        MergeStatesArgs args;
        std::vector<PartialState> parts;
        for (std::size_t i = 0; i < problem.part_outs.size(); ++i) {
            outs.emplace_back(problem.part_outs[i], Use::input, shift, std::vector<bool>(), kAlone);
            lses.emplace_back(problem.part_lses[i], Use::input, 0, std::vector<bool>(), kAlone);
            parts.push_back({outs.back().view(), lses.back().view()});
        }
        const EmulatedTensor out(problem.out, Use::output, shift, {}, kAlone);
        const EmulatedTensor lse(problem.lse, Use::output, 0, {}, kAlone);
        args.parts = parts;
        args.out = out.view();
        args.lse = lse.view();
        const policy::MergeStatesProblem seen = checks::check(args);
        const policy::MergeStatesChoice choice =
            policy::rank_merge_states(seen, policy::typical_facts(spec.arch())).choice.value();
        if (!(choice.spec == spec)) continue;
        MergeStatesParams params = make_params(args, seen);
        const std::int64_t batch_rows = test.q_len * test.heads;
        const std::int64_t batches = kBeyond / batch_rows / kMergeRows * kMergeRows;
        params.rows += batches * batch_rows;
        const std::int64_t bytes = size_of(test.dtype);
        for (int i = 0; i < params.source_count; ++i) {
            MergeSource& source = params.sources[i];
            move_back(source.out, batches * source.out_strides.batch, bytes);
            move_back(source.lse, batches * source.lse_strides.batch);
        }
        move_back(params.out, batches * params.out_strides.batch, bytes);
        move_back(params.lse, batches * params.lse_strides.batch);
        launch_last(spec, choice.geometry, batches * batch_rows / kMergeRows, &params, random);
        problem.run_reference();
        JITNEY_CHECK_CLOSE(out.download(), problem.out, tests::merge_tolerance(test.dtype));
        JITNEY_CHECK_CLOSE(lse.download(), problem.lse, (tests::Tolerance{1e-5, 1e-5}));
    }
}

}  // namespace jitney::emulator
