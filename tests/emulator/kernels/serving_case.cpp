#include "tests/emulator/kernels/serving_case.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "operations/attention/reference.hpp"
#include "operations/check.hpp"
#include "tests/emulator/kernels/attention_launch.hpp"
#include "tests/emulator/kernels/emulated_tensor.hpp"
#include "tests/support/compare.hpp"

namespace jitney::emulator {
namespace {

constexpr double kMeanLimit = 1e-3;

tests::Tolerance tolerance_for(DType dtype) {
    return dtype == DType::fp32 ? tests::Tolerance{1e-4, 1e-4} : tests::Tolerance{1e-2, 1e-2};
}

using Tensors = std::map<std::string, EmulatedTensor>;

Tensors upload(const tests::ServingProblem& problem) {
    Tensors tensors;
    for (const auto& [name, tensor] : problem.tensors) {
        const bool appended = problem.shape.new_len != 0 && (name == "k" || name == "v");
        const bool output = appended || name == "out" || name == "lse";
        tensors.try_emplace(name, tensor,
                            output ? EmulatedTensor::Use::output : EmulatedTensor::Use::input, 0,
                            problem.usable(name));
    }
    return tensors;
}

void check_result(tests::ServingProblem& problem, const Tensors& tensors) {
    reference::attention(tests::serving_call<reference::Attention>(problem.shape, problem.views()));
    tests::HostTensor out = tensors.at("out").download();
    tests::HostTensor lse = tensors.at("lse").download();
    CHECK(out.surroundings_intact());
    CHECK(lse.surroundings_intact());
    CHECK(problem.idle_rows_untouched(out, lse));
    problem.idle_rows_untouched(problem.at("out"), problem.at("lse"));
    const tests::Comparison compared =
        tests::compare(out, problem.at("out"), tolerance_for(problem.shape.dtype));
    CHECK_MESSAGE(compared.within, compared.text);
    CHECK_MESSAGE(compared.mean_absolute < kMeanLimit, compared.text);
    const tests::Comparison sums = tests::compare(lse, problem.at("lse"), {1e-3, 1e-4});
    CHECK_MESSAGE(sums.within, "LSE: ", sums.text);
    for (const char* cache : {"k", "v"}) {
        tests::HostTensor after = tensors.at(cache).download();
        CHECK_MESSAGE(std::ranges::equal(after.storage(), problem.at(cache).storage()), cache,
                      " is not what the reference makes of it");
    }
}

}  // namespace

std::optional<policy::AttentionChoice> run_serving(const Covered& covered,
                                                   const tests::ServingShape& shape,
                                                   tests::Random& random, int sm_count) {
    tests::ServingProblem problem(shape, random);
    ServingCall call{.sm_count = sm_count};
    // A launch that was made for other lengths than it meets is right, too.
    if (random.chance(0.4)) call.max_kv_len = random.integer(0, 1000);
    if (is_decode(covered.attention->kernel)) call.batch_invariant = random.chance(0.25);
    const std::optional<ServingRun> ran = run_serving(covered, problem, call, random);
    return ran ? std::optional(ran->choice) : std::nullopt;
}

std::optional<ServingRun> run_serving(const Covered& covered, tests::ServingProblem& problem,
                                      const ServingCall& call, tests::Random& random) {
    const tests::ServingShape& shape = problem.shape;
    const Tensors tensors = upload(problem);
    tests::Views views;
    for (const auto& [name, tensor] : tensors)
        views.emplace(name, tensor.view());
    auto args = tests::serving_call<AttentionArgs>(shape, views);
    std::vector<int> ends{0};
    for (const std::int64_t length : shape.q_lens)
        ends.push_back(ends.back() + static_cast<int>(length));
    if (shape.packed && random.chance(0.5)) args.qo_indptr_host = ends;
    args.batch_invariant = call.batch_invariant;
    args.max_kv_len = call.max_kv_len;
    if (call.change) call.change(args);

    const policy::AttentionProblem seen = checks::check(args);
    if (checks::has_no_rows(seen)) return std::nullopt;
    policy::DeviceFacts facts = covered.attention->facts;
    if (call.sm_count != 0) facts.sm_count = call.sm_count;
    const std::optional<policy::AttentionChoice> choice =
        policy::choose_attention(seen, facts, covered.attention->kernel);
    if (!choice || !(choice->spec == covered.spec)) return std::nullopt;

    INFO(policy::text_of(choice->spec), ": ", shape.text(), ", splits ", choice->splits, ", ",
         random.text());
    const policy::AttentionWorkspace& workspace = choice->workspace;
    const Buffer scratch(workspace.scratch_bytes(), "the workspace");
    const Buffer counters(workspace.arrived_bytes, "the counters");
    std::memset(counters.data(), 0, counters.bytes());
    const bool some = workspace.total() != 0;
    AttentionLaunch kernels(args, seen, *choice, some ? scratch.data() : nullptr,
                            some ? counters.data() : nullptr);
    if (choice->work_map) {
        // Where the host knew the lengths, every slot has work.
        const bool idle = kernels.make_work_map(random);
        CHECK_FALSE((idle && !args.qo_indptr_host.empty()));
    }
    if (choice->mask_bits) kernels.make_mask_bits(random);
    kernels.run(random);
    if (call.compare) check_result(problem, tensors);
    CHECK(std::all_of(counters.data(), counters.data() + counters.bytes(),
                      [](std::byte byte) { return byte == std::byte{0}; }));
    return ServingRun{*choice, tensors.at("out").download(), tensors.at("lse").download()};
}

std::vector<tests::KeyForm> key_forms(const Covered& covered) {
    using tests::KeyForm;
    if (covered.attention->problem.paged) {
        return {KeyForm::token_table, KeyForm::block_table, KeyForm::page_list};
    }
    return {KeyForm::dense, KeyForm::padded, KeyForm::ragged};
}

void fix(tests::ServingShape& shape, const Covered& covered, tests::Random& random) {
    const policy::AttentionProblem& fixed = covered.attention->problem;
    shape.head_dim = fixed.head_dim;
    shape.dtype = static_cast<DType>(fixed.format);
    shape.causal = fixed.causal;
    tests::add_options(
        shape, {fixed.window, fixed.softcap, fixed.alibi, fixed.sinks, fixed.mask, fixed.append},
        random);
}

}  // namespace jitney::emulator
