#include "tests/emulator/kernels/attention_case.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "operations/check.hpp"
#include "tests/emulator/kernels/attention_launch.hpp"
#include "tests/emulator/kernels/emulated_tensor.hpp"
#include "tests/emulator/kernels/split_memory.hpp"
#include "tests/support/compare.hpp"

namespace jitney::emulator {
namespace {

tests::Tolerance tolerance_for(DType dtype) {
    return dtype == DType::fp32 ? tests::Tolerance{1e-4, 1e-4} : tests::Tolerance{1e-2, 1e-2};
}

// The tensors of a problem in the emulator's memory.
struct Tensors {
    Tensors(const tests::AttentionProblem& problem, std::int64_t shift,
            EmulatedTensor::Spread spread)
        : q(problem.q, EmulatedTensor::Use::input, shift, {}, spread),
          k(problem.k, EmulatedTensor::Use::input, shift, {}, spread),
          v(problem.v, EmulatedTensor::Use::input, shift, {}, spread),
          out(problem.out, EmulatedTensor::Use::output, shift, {}, spread),
          lse(problem.lse, EmulatedTensor::Use::output, 0, {}, spread) {
        if (problem.mask) {
            mask.emplace(*problem.mask, EmulatedTensor::Use::input, shift, std::vector<bool>(),
                         spread);
        }
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

// Of [batch, length, heads, head_dim]: keys grow to ten times their size, or to less where a scale
// above the usual one makes as large scores of them. Of scores of hundreds fp32 would keep too
// little for what outputs are held to.
void make_rising(tests::HostTensor& k, std::optional<double> scale) {
    const double usual = 1.0 / std::sqrt(static_cast<double>(k.shape()[3]));
    const double most = 10.0 * std::min(1.0, usual / scale.value_or(usual));
    const std::int64_t row = k.shape()[2] * k.shape()[3];
    for (std::int64_t i = 0; i < k.elements(); ++i) {
        const auto key = static_cast<double>(i / row % k.shape()[1]);
        k.set(i, k.get(i) * (0.1 + most * key / static_cast<double>(k.shape()[1])));
    }
}

}  // namespace

void check_output(const tests::HostTensor& out, const tests::HostTensor& expected) {
    CHECK(out.surroundings_intact());
    const tests::Comparison compared =
        tests::compare(out, expected, tolerance_for(expected.dtype()));
    CHECK_MESSAGE(compared.within, compared.text);
    CHECK_MESSAGE(compared.mean_absolute < tests::mean_limit_of(expected), compared.text);
}

void check_log_sums(const tests::HostTensor& lse, const tests::HostTensor& expected) {
    CHECK(lse.surroundings_intact());
    const tests::Comparison compared = tests::compare(lse, expected, {1e-3, 1e-4});
    CHECK_MESSAGE(compared.within, "LSE: ", compared.text);
}

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
    if (far) text += ", far apart";
    if (shift != 0) text += ", shifted by " + std::to_string(shift);
    return text;
}

std::optional<policy::AttentionChoice> run_attention(const Covered& covered,
                                                     const AttentionCase& test,
                                                     tests::Random& random) {
    tests::AttentionProblem problem(test.shape, random, test.layouts);
    if (test.rising) make_rising(problem.k, test.shape.scale);
    if (test.keep) {
        problem.mask->fill([&test](std::int64_t i) { return test.keep(i) ? 1.0 : 0.0; });
    }
    problem.spoil_unseen(random);
    const Tensors tensors(problem, test.shift,
                          test.far ? EmulatedTensor::Spread::far : EmulatedTensor::Spread::near);
    const AttentionArgs args = tensors.args(test.shape);
    const policy::AttentionProblem seen = checks::check(args);
    policy::DeviceFacts facts = covered.attention->facts;
    if (test.sm_count != 0) facts.sm_count = test.sm_count;
    const std::optional<policy::AttentionChoice> choice =
        policy::choose_attention(seen, facts, covered.attention->kernel);
    if (!choice || !(choice->spec == covered.spec)) return std::nullopt;

    INFO(policy::text_of(choice->spec), ": ", test.text(), ", splits ", choice->splits, ", ",
         random.text());
    const SplitMemory split(choice->workspace);
    AttentionLaunch kernels(args, seen, *choice, split.scratch(), split.counters());
    if (choice->mask_bits) kernels.make_mask_bits(random);
    const auto launch = [&](BlockOrder order) { kernels.run(random, {.order = order}); };
    launch(BlockOrder::shuffled);
    if (choice->splits > 2) {
        check_any_order(launch, [&] { return std::pair(tensors.out.bits(), tensors.lse.bits()); });
    }
    reference::attention(problem.reference_call());
    check_output(tensors.out.download(), problem.out);
    check_log_sums(tensors.lse.download(), problem.lse);
    split.check();
    return choice;
}

}  // namespace jitney::emulator
