// Logits functions of a caller's: soft cap and ALiBi rebuilt with one, bit for bit, and one that
// depends on all that it is told, against the definition.
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/emulator/kernels/emulated_tensor.hpp"
#include "tests/emulator/kernels/lines.hpp"
#include "tests/emulator/kernels/serving_case.hpp"
#include "tests/emulator/seed.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/logits_problem.hpp"

namespace jitney::emulator {
namespace {

using tests::ServingProblem;
using tests::ServingShape;

// A shape for the line, with the option of that name; `places` has none.
ServingShape random_shape(const Covered& covered, tests::Random& random) {
    const policy::AttentionProblem& fixed = covered.attention->problem;
    const bool decode = is_decode(covered.attention->kernel);
    ServingShape shape = tests::random_serving_shape(random,
                                                     {.batch = 2,
                                                      .q_len = decode ? 6 : 70,
                                                      .kv_len = decode ? 300 : 120,
                                                      .keys = key_forms(covered)},
                                                     fixed.packed);
    fix(shape, covered, random);
    tests::set_option(shape, covered.attention->logits, random);
    return shape;
}

// The line of covered.txt that has the library's own option where this one has a function.
const Covered& twin_of(const Covered& covered, const std::vector<Covered>& lines) {
    policy::AttentionProblem wanted = covered.attention->problem;
    wanted.logits = 0;
    (covered.attention->logits == "softcap" ? wanted.softcap : wanted.alibi) = true;
    for (const Covered& line : lines) {
        const bool narrow =
            policy::value_of(line.spec, "tile_n") == policy::value_of(covered.spec, "tile_n");
        if (line.attention->problem == wanted && narrow) return line;
    }
    throw std::logic_error("covered.txt has no line for " + policy::text_of(covered.spec));
}

// False where the policy runs the problem as another specialization.
bool run_rebuilt(const Covered& covered, tests::Random& random) {
    const std::string& option = covered.attention->logits;
    const ServingShape shape = random_shape(covered, random);
    if (std::ranges::max(shape.q_lens) == 0) return false;  // nothing to compute
    ServingProblem problem(shape, random);
    tests::make_slopes_exact(problem);
    ServingCall call{.sm_count = some_sms(covered, random), .compare = false};
    call.change = [&option](AttentionArgs& args) { args = tests::rebuilt(args, option); };
    const std::optional<ServingRun> callers = run_serving(covered, problem, call, random);
    if (!callers) return false;
    call.change = {};
    const std::vector<Covered> lines = covered_lines(covered.attention->kernel);
    const Covered& twin = twin_of(covered, lines);
    INFO(policy::text_of(covered.spec), ": ", shape.text(), ", ", random.text());
    const std::optional<ServingRun> own = run_serving(twin, problem, call, random);
    REQUIRE(own);
    tests::HostTensor out = callers->out;
    tests::HostTensor lse = callers->lse;
    tests::HostTensor own_out = own->out;
    tests::HostTensor own_lse = own->lse;
    CHECK(std::ranges::equal(out.storage(), own_out.storage()));
    CHECK(std::ranges::equal(lse.storage(), own_lse.storage()));
    return true;
}

bool run_places(const Covered& covered, tests::Random& random) {
    const ServingShape shape = random_shape(covered, random);
    ServingProblem problem(shape, random);
    // As long as the longest request: nothing may be asked for behind it.
    tests::HostTensor bias(DType::fp32,
                           {std::max<std::int64_t>(1, std::ranges::max(shape.kv_lens))});
    bias.fill_normal(random);
    const EmulatedTensor device_bias(bias, EmulatedTensor::Use::input);
    ServingCall call{.sm_count = some_sms(covered, random), .compare = false};
    call.change = [&device_bias](AttentionArgs& args) {
        args.logits = tests::logits_function("places");
        args.logits_values = {0.5f, std::int64_t{4},
                              static_cast<const void*>(device_bias.view().data)};
    };
    const std::optional<ServingRun> ran = run_serving(covered, problem, call, random);
    if (!ran) return false;
    INFO(policy::text_of(covered.spec), ": ", shape.text(), ", ", random.text());
    tests::places_by_definition(problem, bias);
    tests::HostTensor out = ran->out;
    tests::HostTensor lse = ran->lse;
    CHECK(problem.idle_rows_untouched(out, lse));
    problem.idle_rows_untouched(problem.at("out"), problem.at("lse"));
    const tests::Comparison compared = tests::compare(out, problem.at("out"), {1e-2, 1e-2});
    CHECK_MESSAGE(compared.within, compared.text);
    const tests::Comparison sums = tests::compare(lse, problem.at("lse"), {1e-3, 1e-4});
    CHECK_MESSAGE(sums.within, "LSE: ", sums.text);
    return true;
}

}  // namespace

TEST_CASE("logits functions") {
    tests::Random random(run_seed());
    const std::vector<Covered> lines = logits_lines();
    CHECK(lines.size() >= 8);
    for (const Covered& covered : lines) {
        const bool rebuilds = covered.attention->logits != "places";
        const int wanted = problems_a_line(8);
        int ran = 0;
        for (int tries = 0; ran < wanted && tries < 100 * wanted; ++tries) {
            ran += (rebuilds ? run_rebuilt(covered, random) : run_places(covered, random)) ? 1 : 0;
        }
        CHECK_MESSAGE(ran == wanted, policy::text_of(covered.spec),
                      ": random problems hardly ever ask for this specialization");
    }
}

}  // namespace jitney::emulator
