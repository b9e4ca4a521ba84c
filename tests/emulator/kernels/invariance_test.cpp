// What batch_invariant promises: the result of a request is the same, bit for bit, alone and among
// others, wherever it stands, whatever GPU size the choice is made for.
#include <doctest/doctest.h>

#include <vector>

#include "tests/emulator/kernels/lines.hpp"
#include "tests/emulator/kernels/serving_case.hpp"
#include "tests/support/same_request.hpp"

namespace jitney::emulator {
namespace {

using policy::KernelId;
using tests::KeyForm;
using tests::ServingShape;

// Keys that make several parts, and some that make one or none; of packed requests, several tiles.
std::vector<std::int64_t> key_counts(const Covered& covered, tests::Random& random) {
    if (!is_decode(covered.attention->kernel)) {
        return {covered.attention->problem.packed ? random.integer(270, 400)
                                                  : random.integer(60, 200)};
    }
    const std::int64_t step = is_mma(covered.attention->kernel) ? 4 * 4 * 32 : 4 * 32;
    return {random.integer(2 * step, 5 * step / 2), random.integer(0, step)};
}

// As many as ask for the line's tile; more than one, which causality would not show.
std::int64_t queries(const Covered& covered, std::int64_t group, tests::Random& random) {
    if (is_decode(covered.attention->kernel)) return covered.attention->problem.q_len / group;
    return covered.attention->problem.packed ? random.integer(2, 150) : 66;
}

struct Seen {
    int requests = 0;
    int divided = 0;
};

ServingCall call_of(const tests::Company& company, tests::Random& random) {
    return {.sm_count = static_cast<int>(random.integer(1, 200)),
            .batch_invariant = true,
            .max_kv_len = company.max_kv_len};
}

// Has the scores of all other requests differ by hundreds from tile to tile, so that their rows ask
// for another scale again and again. Kernels read some of them together with the request's own.
void stir_others(tests::Company& company) {
    tests::ServingProblem& problem = company.problem;
    const ServingShape& shape = problem.shape;
    tests::HostTensor& q = problem.at("q");
    for (std::int64_t request = 0; request < shape.batch(); ++request) {
        if (request == company.place || shape.q_len(request) == 0) continue;
        const std::int64_t first = problem.out_index(request, 0, 0);
        const std::int64_t count = shape.q_len(request) * shape.heads() * shape.head_dim;
        for (std::int64_t i = first; i < first + count; ++i)
            q.set(i, 64 * q.get(i));
    }
}

void run_request(const Covered& covered, const ServingShape& shape, tests::Random& random,
                 Seen& seen) {
    tests::ServingProblem alone(shape, random);
    std::optional<std::vector<double>> first;
    int splits = 1;
    for (tests::Company& company :
         tests::companies_of(alone, 70, shape.kv_lens.front() / 2 + 100, random)) {
        INFO(company.problem.shape.text(), ", request ", company.place);
        ServingCall call = call_of(company, random);
        if (shape.packed) {
            stir_others(company);
            call.compare = false;
        }
        const std::optional<ServingRun> ran = run_serving(covered, company.problem, call, random);
        if (!ran) return;  // another specialization
        splits = std::max(splits, ran->choice.splits);
        const std::vector<double> rows =
            tests::rows_of(company.problem, company.place, ran->out, ran->lse);
        if (!first) first = rows;
        CHECK_MESSAGE(tests::is_same(*first, rows), "it depends on the company of a request");
    }
    ++seen.requests;
    if (splits > 1) ++seen.divided;
}

void run_kernel_of(KernelId kernel) {
    tests::Random random = tests::Random::fresh();
    MESSAGE(random.text());
    Seen seen;
    for (const Covered& covered : covered_lines(kernel)) {
        const bool packed = covered.attention->problem.packed;
        for (const std::int64_t keys : key_counts(covered, random)) {
            ServingShape shape;
            shape.packed = packed;
            shape.kv_lens = {keys};
            shape.group = random.integer(1, 2);
            shape.q_lens = {queries(covered, shape.group, random)};
            shape.keys = random.pick<KeyForm>(key_forms(covered));
            if (shape.keys == KeyForm::block_table || shape.keys == KeyForm::page_list) {
                shape.page_size = 16;
            }
            fix(shape, covered, random);
            run_request(covered, shape, random, seen);
        }
    }
    CHECK(seen.requests >= 3);
    if (is_decode(kernel)) CHECK(seen.divided >= 3);
}

}  // namespace

TEST_CASE("the same request in other company by attn_decode_scalar") {
    run_kernel_of(KernelId::attn_decode_scalar);
}

TEST_CASE("the same request in other company by attn_decode_mma") {
    run_kernel_of(KernelId::attn_decode_mma);
}

TEST_CASE("the same request in other company by attn_decode_cluster") {
    run_kernel_of(KernelId::attn_decode_cluster);
}

TEST_CASE("the same request in other company by attn_prefill_scalar") {
    run_kernel_of(KernelId::attn_prefill_scalar);
}

TEST_CASE("the same request in other company by attn_prefill_wgmma") {
    run_kernel_of(KernelId::attn_prefill_wgmma);
}

TEST_CASE("the same request in other company by attn_prefill_mma") {
    run_kernel_of(KernelId::attn_prefill_mma);
}

}  // namespace jitney::emulator
