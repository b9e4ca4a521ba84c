#include "tests/emulator/kernels/attention_case.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "api/attention_params.hpp"
#include "api/check.hpp"
#include "tests/emulator/kernels/emulated_tensor.hpp"
#include "tests/emulator/kernels/launch_choice.hpp"
#include "tests/support/compare.hpp"

namespace jitney::emulator {
namespace {

constexpr double kMeanLimit = 1e-3;

tests::Tolerance tolerance_for(DType dtype) {
    return dtype == DType::fp32 ? tests::Tolerance{1e-4, 1e-4} : tests::Tolerance{1e-2, 1e-2};
}

// The tensors of a problem in the emulator's memory.
struct Tensors {
    Tensors(const tests::AttentionProblem& problem, std::int64_t shift)
        : q(problem.q, EmulatedTensor::Use::input, shift),
          k(problem.k, EmulatedTensor::Use::input, shift),
          v(problem.v, EmulatedTensor::Use::input, shift),
          out(problem.out, EmulatedTensor::Use::output, shift),
          lse(problem.lse, EmulatedTensor::Use::output) {
        if (problem.mask) mask.emplace(*problem.mask, EmulatedTensor::Use::input, shift);
    }

    AttentionArgs args(const tests::AttentionShape& shape) const {
        AttentionArgs args;
        args.q = q.view();
        args.k = k.view();
        args.v = v.view();
        args.out = out.view();
        args.lse = lse.view();
        if (mask) args.mask = mask->view();
        args.causal = shape.causal;
        if (shape.scale) args.scale = static_cast<float>(*shape.scale);
        return args;
    }

    EmulatedTensor q;
    EmulatedTensor k;
    EmulatedTensor v;
    EmulatedTensor out;
    EmulatedTensor lse;
    std::optional<EmulatedTensor> mask;
};

// Of [batch, length, heads, head_dim].
void make_rising(tests::HostTensor& k) {
    const std::int64_t row = k.shape()[2] * k.shape()[3];
    for (std::int64_t i = 0; i < k.elements(); ++i) {
        const auto key = static_cast<double>(i / row % k.shape()[1]);
        k.set(i, k.get(i) * (0.1 + 10.0 * key / static_cast<double>(k.shape()[1])));
    }
}

void check_result(tests::AttentionProblem& problem, const Tensors& tensors) {
    reference::attention(problem.reference_call());
    const tests::HostTensor out = tensors.out.download();
    const tests::HostTensor lse = tensors.lse.download();
    CHECK(out.surroundings_intact());
    CHECK(lse.surroundings_intact());
    const tests::Comparison compared =
        tests::compare(out, problem.out, tolerance_for(problem.shape.dtype));
    CHECK_MESSAGE(compared.within, compared.text);
    CHECK_MESSAGE(compared.mean_absolute < kMeanLimit, compared.text);
    const tests::Comparison sums = tests::compare(lse, problem.lse, {1e-3, 1e-4});
    CHECK_MESSAGE(sums.within, "LSE: ", sums.text);
}

}  // namespace

std::string AttentionCase::text() const {
    std::string text = shape.text();
    for (const auto& [name, layout] :
         {std::pair("q", &layouts.q), std::pair("k", &layouts.k), std::pair("v", &layouts.v),
          std::pair("out", &layouts.out)}) {
        if (layout->order.empty() && layout->padding.empty()) continue;
        text += std::string(", ") + name + (layout->order.empty() ? " blhd" : " bhld");
        if (!layout->padding.empty()) text += " padded";
    }
    if (rising) text += ", rising";
    if (shift != 0) text += ", shifted by " + std::to_string(shift);
    return text;
}

std::optional<policy::AttentionChoice> run_attention(const Covered& covered,
                                                     const AttentionCase& test,
                                                     tests::Random& random) {
    tests::AttentionProblem problem(test.shape, random, test.layouts);
    if (test.rising) make_rising(problem.k);
    const Tensors tensors(problem, test.shift);
    const AttentionArgs args = tensors.args(test.shape);
    const policy::AttentionProblem seen = checks::check(args);
    policy::DeviceFacts facts = covered.attention->facts;
    if (test.sm_count != 0) facts.sm_count = test.sm_count;
    const std::optional<policy::AttentionChoice> choice =
        policy::choose_attention(seen, facts, covered.attention->kernel);
    if (!choice || !(choice->spec == covered.spec)) return std::nullopt;

    INFO(policy::text_of(choice->spec), ": ", test.text(), ", splits ", choice->splits, ", ",
         random.text());
    const policy::AttentionWorkspace& workspace = choice->workspace;
    const Buffer scratch(workspace.scratch_bytes(), "the workspace");
    const Buffer counters(workspace.arrived_bytes, "the counters");
    std::memset(counters.data(), 0, counters.bytes());
    const bool splits = workspace.total() != 0;
    AttentionParams params = make_params(args, seen, *choice, splits ? scratch.data() : nullptr,
                                         splits ? counters.data() : nullptr);
    launch_choice(choice->spec, choice->geometry, &params, random);
    check_result(problem, tensors);
    CHECK(std::all_of(counters.data(), counters.data() + counters.bytes(),
                      [](std::byte byte) { return byte == std::byte{0}; }));
    return choice;
}

}  // namespace jitney::emulator
