// Every specialization of append_kv in covered.txt, on random caches and new rows.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "kernel_sources/common/constants.h"
#include "operations/check.hpp"
#include "tests/emulator/kernels/emulated_tensor.hpp"
#include "tests/emulator/kernels/launch_choice.hpp"
#include "tests/emulator/kernels/lines.hpp"
#include "tests/emulator/seed.hpp"
#include "tests/support/append_problem.hpp"
#include "tests/support/made_params.hpp"
#include "tests/support/rotary_problem.hpp"

namespace jitney::emulator {
namespace {

using tests::AppendProblem;
using tests::AppendShape;
using tests::KeyForm;

using Spread = EmulatedTensor::Spread;

std::map<std::string, EmulatedTensor> upload(const AppendProblem& problem, std::int64_t shift,
                                             Spread spread) {
    std::map<std::string, EmulatedTensor> tensors;
    for (const auto& [name, tensor] : problem.tensors) {
        const bool written = name == "k" || name == "v" || name == "q_out" ||
                             (name == "q" && problem.shape.q_in_place);
        const bool rows =
            tensor.dtype() == problem.shape.cache.dtype && name != "cos" && name != "sin";
        const auto usable = problem.usable.find(name);
        tensors.try_emplace(
            name, tensor, written ? EmulatedTensor::Use::output : EmulatedTensor::Use::input,
            rows ? shift : 0, usable == problem.usable.end() ? std::vector<bool>{} : usable->second,
            tensor.dtype() == DType::int32 ? Spread::near : spread);
    }
    return tensors;
}

// False where the policy runs it as another specialization: nothing has run then.
bool launch_append(const policy::Spec& spec, const AppendShape& shape,
                   const std::map<std::string, EmulatedTensor>& tensors, tests::Random& random) {
    tests::Views views;
    for (const auto& [name, tensor] : tensors)
        views.emplace(name, tensor.view());
    const auto args = tests::append_call<AppendKvArgs>(shape, views);
    const policy::AppendKvProblem seen = checks::check(args);
    if (checks::has_no_rows(seen)) return false;
    const policy::AppendKvChoice choice =
        policy::rank_append_kv(seen, policy::typical_facts(spec.arch())).choice.value();
    if (!(choice.spec == spec)) return false;
    AppendKvParams params = make_params(args, seen, choice);
    launch_choice(choice.spec, choice.geometry, &params, random);
    return true;
}

bool run_append(const policy::Spec& spec, const AppendShape& shape, std::int64_t shift,
                tests::Random& random, Spread spread = Spread::near) {
    INFO(policy::text_of(spec), ": ", shape.text(), ", shifted by ", shift, ", ", random.text());
    AppendProblem problem(shape, random);
    const auto tensors = upload(problem, shift, spread);
    if (!launch_append(spec, shape, tensors, random)) return false;
    problem.run_reference();
    for (const char* name : {"k", "v", "q", "q_out"}) {
        if (problem.tensors.find(name) == problem.tensors.end()) continue;
        tests::HostTensor after = tensors.at(name).download();
        const bool rotated = shape.style && name[0] != 'v';
        CHECK_MESSAGE(tests::is_same_cache(after, problem.at(name),
                                           rotated ? tests::rotary_tolerance(shape.cache.dtype)
                                                   : tests::Tolerance{}),
                      std::string(name), " is not what the reference makes of it");
    }
    return true;
}

AppendShape random_shape(const policy::Spec& spec, tests::Random& random) {
    const auto value = [&spec](const char* name) { return policy::value_of(spec, name); };
    const std::vector<KeyForm> forms =
        value("kv") == kPagedKv
            ? std::vector{KeyForm::token_table, KeyForm::block_table, KeyForm::page_list}
            : std::vector{KeyForm::dense, KeyForm::padded, KeyForm::ragged};
    const bool rotated = value("rotary") != 0;
    const bool vectors = value("pairs") > 1;
    AppendShape shape =
        tests::random_append_shape(random, value("queries") == kPackedQueries, forms, rotated);
    shape.cache.dtype = static_cast<DType>(value("format"));
    shape.cache.head_dim = vectors ? 32 * random.integer(1, 3) : random.integer(1, 40);
    if (!rotated) return shape;
    if (shape.cache.head_dim < 2) shape.cache.head_dim = 2;
    shape.style = value("rotary") == 2 ? RotaryStyle::half_split : RotaryStyle::interleaved;
    const std::int64_t step = vectors ? 16 : 2;
    shape.rotary_dim = step * random.integer(1, shape.cache.head_dim / step);
    return shape;
}

}  // namespace

TEST_CASE("append_kv") {
    tests::Random random(run_seed());
    for (const Covered& covered : covered_lines(policy::KernelId::append_kv)) {
        const int wanted = problems_a_line(30);
        int ran = 0;
        for (int tries = 0; ran < wanted && tries < 30 * wanted; ++tries) {
            const AppendShape shape = random_shape(covered.spec, random);
            const bool vectors = policy::value_of(covered.spec, "pairs") > 1;
            const std::int64_t shift = !vectors && random.chance(0.5) ? 1 : 0;
            // Now and then with rows so far apart that no 32 bits hold their distance.
            const Spread spread = ran % 3 == 2 ? Spread::far : Spread::near;
            ran += run_append(covered.spec, shape, shift, random, spread) ? 1 : 0;
        }
        CHECK_MESSAGE(ran == wanted, policy::text_of(covered.spec),
                      ": random problems hardly ever ask for this specialization");
    }
}

TEST_CASE("append_kv: a position that is in the tables in its lower 32 bits alone gives NaN") {
    tests::Random random(run_seed());
    for (const Covered& covered : covered_lines(policy::KernelId::append_kv)) {
        if (policy::value_of(covered.spec, "rotary") == 0) continue;
        bool ran = false;
        for (int tries = 0; !ran && tries < 300; ++tries) {
            AppendShape shape = random_shape(covered.spec, random);
            shape.positions = 64;
            shape.q_heads = 2;
            shape.q_in_place = true;  // where there are numbers before
            if (shape.cache.q_lens[0] == 0) continue;
            AppendProblem problem(shape, random);
            problem.at("positions").fill([](std::int64_t) { return 4294967297.0; });
            const auto tensors = upload(problem, 0, Spread::near);
            ran = launch_append(covered.spec, shape, tensors, random);
            if (ran) CHECK(std::isnan(tensors.at("q").download().get(0)));
        }
        CHECK_MESSAGE(ran, policy::text_of(covered.spec), ": nothing asks for it");
    }
}

}  // namespace jitney::emulator
