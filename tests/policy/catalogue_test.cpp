// What prewarm compiles is what serving asks for.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/policy/problems.hpp"

namespace jitney::policy {
namespace {

using tests::Random;

bool contains(const std::vector<Spec>& specs, const Spec& spec) {
    return std::find(specs.begin(), specs.end(), spec) != specs.end();
}

void check_catalogue(const std::vector<Spec>& specs, Arch arch, std::size_t most) {
    REQUIRE(specs.size() <= most);
    for (const Spec& spec : specs) {
        REQUIRE(std::count(specs.begin(), specs.end(), spec) == 1);
        REQUIRE(spec.arch() == arch);
        REQUIRE(parse_spec(text_of(spec)) == spec);
    }
}

// Batch and lengths as they come up in serving, up to what a grid takes in the smallest tiles.
AttentionProblem random_step(AttentionProblem problem, Random& random) {
    const int rows = 0x7fff0000 / problem.q_heads;  // the most that a kernel counts
    problem.q_len = random.chance(0.4) ? 1 : random_count(random, rows);
    if (random.chance(0.3)) problem.q_len = static_cast<int>(random.integer(1, 80));
    if (problem.append) problem.q_len = static_cast<int>(random.integer(1, 64));
    const int parts = problem.batch_invariant ? 64 : 1;
    problem.batch = random_count(random, std::max(1, rows / problem.q_len / parts));
    problem.kv_len = random.chance(0.1) ? 0 : random_count(random, 0x7fff0000);
    return problem;
}

TEST_CASE("every choice is in the catalogue of its shape, on any GPU of the arch") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int shapes = 0; shapes < 400; ++shapes) {
        const AttentionProblem shape = random_attention_shape(random);
        const DeviceFacts facts = random_facts(random);
        const std::vector<Spec> catalogue = attention_catalogue(shape, facts);
        CAPTURE(text_of(shape));
        CAPTURE(text_of(facts));
        REQUIRE(!catalogue.empty());
        check_catalogue(catalogue, facts.arch, 8);
        DeviceFacts device = facts;
        for (int step = 0; step < 100; ++step) {
            device.sm_count = random_count(random, 1000);
            const AttentionProblem problem = random_step(shape, random);
            const auto choice = choose_attention(problem, device);
            REQUIRE_MESSAGE(choice, text_of(problem));
            REQUIRE_MESSAGE(contains(catalogue, choice->spec), text_of(choice->spec)
                                                                   << " for " << text_of(problem)
                                                                   << " on " << text_of(device));
        }
    }
}

TEST_CASE("the catalogue does not depend on the lengths of the shape, nor on chance") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int round = 0; round < 50; ++round) {
        const AttentionProblem shape = random_attention_shape(random);
        const DeviceFacts facts = random_facts(random);
        const std::vector<Spec> catalogue = attention_catalogue(shape, facts);
        REQUIRE(attention_catalogue(random_step(shape, random), facts) == catalogue);
    }
}

TEST_CASE("a shape that nothing can run has an empty catalogue") {
    Random random = Random::fresh();
    AttentionProblem shape = random_attention_shape(random);
    shape.head_dim = 1024;
    CHECK(attention_catalogue(shape, typical_facts({90, 'a'})).empty());
}

TEST_CASE("the catalogue of a rotary shape") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int shapes = 0; shapes < 2000; ++shapes) {
        RotaryProblem problem = random_rotary(random);
        const DeviceFacts facts = random_facts(random);
        CAPTURE(text_of(problem));
        const std::vector<Spec> catalogue = rotary_catalogue(problem, facts);
        problem.tokens = 1;
        REQUIRE(catalogue.empty() != rank_rotary(problem, facts).choice.has_value());
        check_catalogue(catalogue, facts.arch, 2);
        for (const bool in_place : {false, true}) {
            problem.in_place = in_place;
            if (const auto choice = rank_rotary(problem, facts).choice) {
                REQUIRE(contains(catalogue, choice->spec));
            }
        }
    }
}

}  // namespace
}  // namespace jitney::policy
