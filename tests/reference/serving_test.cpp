// Requests of several lengths, caches, pages and options, by the definition.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "jitney/error.hpp"
#include "operations/attention/reference.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/serving_problem.hpp"

namespace jitney::tests {
namespace {

struct Expected {
    HostTensor out;
    HostTensor lse;
};

long double logit(const ServingProblem& problem, std::int64_t request, std::int64_t i,
                  std::int64_t head, std::int64_t j) {
    const ServingShape& s = problem.shape;
    long double score = 0.0L;
    for (std::int64_t d = 0; d < s.head_dim; ++d) {
        score += static_cast<long double>(problem.query(request, i, head, d)) *
                 static_cast<long double>(problem.key(request, j, head / s.group, d));
    }
    score *= s.scale ? static_cast<long double>(*s.scale)
                     : 1.0L / std::sqrt(static_cast<long double>(s.head_dim));
    if (s.softcap) {
        const auto cap = static_cast<long double>(*s.softcap);
        score = cap * std::tanh(score / cap);
    }
    if (s.alibi) {
        const std::int64_t place = i + s.kv_len(request) - s.q_len(request);
        score -= static_cast<long double>(problem.at("alibi_slopes").get(head)) *
                 static_cast<long double>(std::abs(place - j));
    }
    return score;
}

void expect_row(const ServingProblem& problem, std::int64_t request, std::int64_t i,
                std::int64_t head, Expected& expected) {
    const ServingShape& s = problem.shape;
    std::vector<long double> weighted(static_cast<std::size_t>(s.head_dim), 0.0L);
    long double sum = 0.0L;
    bool seen = false;
    for (std::int64_t j = 0; j < s.kv_len(request); ++j) {
        if (!problem.sees(request, i, head, j)) continue;
        seen = true;
        const long double weight = std::exp(logit(problem, request, i, head, j));
        sum += weight;
        for (std::int64_t d = 0; d < s.head_dim; ++d) {
            weighted[static_cast<std::size_t>(d)] +=
                weight * static_cast<long double>(problem.value(request, j, head / s.group, d));
        }
    }
    if (seen && s.sinks) {
        sum += std::exp(static_cast<long double>(problem.at("sinks").get(head)));
    }
    const std::int64_t out = problem.out_index(request, i, head);
    for (std::int64_t d = 0; d < s.head_dim; ++d) {
        const long double value = seen ? weighted[static_cast<std::size_t>(d)] / sum : 0.0L;
        expected.out.set(out + d, static_cast<double>(value));
    }
    expected.lse.set(
        problem.lse_index(request, i, head),
        seen ? static_cast<double>(std::log(sum)) : -std::numeric_limits<double>::infinity());
}

Expected expect(const ServingProblem& problem) {
    Expected expected{HostTensor(DType::fp32, problem.at("out").shape()),
                      HostTensor(DType::fp32, problem.at("lse").shape())};
    for (std::int64_t request = 0; request < problem.shape.batch(); ++request) {
        for (std::int64_t i = 0; i < problem.shape.q_len(request); ++i) {
            for (std::int64_t head = 0; head < problem.shape.heads(); ++head)
                expect_row(problem, request, i, head, expected);
        }
    }
    problem.idle_rows_untouched(expected.out, expected.lse);
    return expected;
}

void run(ServingProblem& problem) {
    reference::attention(serving_call<reference::Attention>(problem.shape, problem.views()));
}

void check(const ServingShape& shape, Random& random) {
    CAPTURE(shape.text());
    ServingProblem problem(shape, random);
    const Expected expected = expect(problem);
    run(problem);
    CHECK(problem.idle_rows_untouched(problem.at("out"), problem.at("lse")));
    JITNEY_CHECK_CLOSE(problem.at("out"), expected.out, (Tolerance{1e-6, 1e-6}));
    JITNEY_CHECK_CLOSE(problem.at("lse"), expected.lse, (Tolerance{1e-6, 1e-6}));
    // No structured binding: a macro's lambda can't capture one under clang 14.
    for (const auto& named : problem.tensors)
        CHECK_MESSAGE(named.second.surroundings_intact(), named.first);
    if (shape.new_len == 0) return;
    // What was appended stands in the cache: without new rows the result is the same.
    ServingProblem again = problem;
    again.shape.new_len = 0;
    again.tensors.erase("new_k");
    again.tensors.erase("new_v");
    run(again);
    again.idle_rows_untouched(again.at("out"), again.at("lse"));
    JITNEY_CHECK_CLOSE(again.at("out"), problem.at("out"), Tolerance{});
}

ServingShape small_pages() {
    ServingShape shape;
    shape.dtype = DType::fp32;
    shape.head_dim = 4;
    shape.q_lens = {1, 1};
    shape.kv_lens = {7, 3};
    shape.keys = KeyForm::page_list;
    shape.page_size = 4;
    return shape;
}

void check_refused(ServingProblem problem, const std::string& word) {
    try {
        run(problem);
        FAIL_CHECK("it was accepted: ", word);
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::invalid_argument);
        CHECK_MESSAGE(std::string(error.what()).find(word) != std::string::npos,
                      std::string(error.what()));
    }
}

}  // namespace

TEST_CASE("requests, pages and options by the definition") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 400; ++i) {
        ServingShape shape = random_serving_shape(random, {}, random.chance(0.5));
        shape.dtype = DType::fp32;
        shape.head_dim = random.integer(1, 9);
        shape.causal = random.chance(0.5);
        const auto coin = [&random] { return random.chance(0.3); };
        add_options(shape, {coin(), coin(), coin(), coin(), coin(), coin()}, random);
        check(shape, random);
    }
}

TEST_CASE("a row that sees no key stays 0 and -inf beside a sink") {
    Random random(5);
    ServingShape shape = small_pages();
    shape.packed = true;
    shape.q_lens = {3, 2};
    shape.kv_lens = {1, 0};
    shape.causal = true;
    shape.sinks = true;
    ServingProblem problem(shape, random);
    run(problem);
    CHECK(problem.at("lse").get(0) == -std::numeric_limits<double>::infinity());
    CHECK(problem.at("out").get(0) == 0.0);
    CHECK(std::isfinite(problem.at("lse").get(2)));
    CHECK(problem.at("lse").get(3) == -std::numeric_limits<double>::infinity());
}

TEST_CASE("a sink of -inf is none, and one of +inf or NaN makes the rows of its head NaN") {
    Random random(5);
    ServingShape shape = small_pages();
    shape.packed = true;
    shape.q_lens = {3, 2};
    shape.kv_lens = {2, 0};
    shape.causal = true;
    shape.group = 4;
    ServingProblem without(shape, random);
    run(without);
    shape.sinks = true;
    ServingProblem problem = without;
    problem.shape = shape;
    problem.tensors.emplace("sinks", HostTensor(DType::fp32, {4}));
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const std::vector<double> sinks = {infinity, std::nan(""), -infinity, -infinity};
    problem.at("sinks").fill([&](std::int64_t i) { return sinks[static_cast<std::size_t>(i)]; });
    run(problem);
    for (std::int64_t row = 0; row < 5; ++row) {
        for (std::int64_t head = 0; head < 4; ++head) {
            const double lse = problem.at("lse").at({row, head});
            const double out = problem.at("out").at({row, head, 1});
            const bool sees = row == 1 || row == 2;  // of the first request, whose keys are two
            if (sees && head < 2) {
                CHECK(std::isnan(lse));
                CHECK(std::isnan(out));
            } else {
                CHECK(lse == without.at("lse").at({row, head}));
                CHECK(out == without.at("out").at({row, head, 1}));
            }
        }
    }
}

TEST_CASE("pages before the first key that a query sees are nobody's business") {
    Random random(5);
    ServingShape shape;
    shape.dtype = DType::fp32;
    shape.head_dim = 4;
    shape.q_lens = {64};
    shape.kv_lens = {200};
    shape.keys = KeyForm::block_table;
    shape.page_size = 16;
    shape.window_left = 63;
    // The first query stands at key 136, and sees the keys from 73 on, of page 4.
    ServingProblem problem(shape, random);
    const Expected expected = expect(problem);
    for (const double page : {-1.0, 77777.0}) {
        for (std::int64_t i = 0; i < 4; ++i)
            problem.at("block_table").set(i, page);
        run(problem);
        JITNEY_CHECK_CLOSE(problem.at("out"), expected.out, (Tolerance{1e-6, 1e-6}));
    }
    problem.at("block_table").set(4, -1);
    check_refused(problem, "block_table[0, 4] is -1");
    // What is appended has to have its place, seen or not.
    shape.q_lens = {1};
    shape.kv_lens = {100};
    shape.window_left = 0;
    shape.new_len = 30;
    ServingProblem appending(shape, random);
    run(appending);
    appending.at("block_table").set(3, 4711);
    run(appending);
    appending.at("block_table").set(4, 4711);
    check_refused(appending, "block_table[0, 4] is 4711");
    // Without queries no key is seen.
    ServingShape idle = small_pages();
    idle.packed = true;
    idle.q_lens = {0, 1};
    ServingProblem without(idle, random);
    without.at("kv_page_indices").set(0, -7);
    run(without);
}

TEST_CASE("a mask of one column is none of more keys") {
    Random random(5);
    for (const KeyForm form :
         {KeyForm::ragged, KeyForm::token_table, KeyForm::block_table, KeyForm::page_list}) {
        ServingShape shape = small_pages();
        shape.keys = form;
        if (form == KeyForm::token_table) shape.page_size = 1;
        shape.mask_dims = 3;
        ServingProblem problem(shape, random);
        HostTensor column(DType::boolean, {2, 1, 1});
        column.fill([](std::int64_t) { return 1.0; });
        problem.at("mask") = column;
        check_refused(problem, "dimension 2, the keys, must be at least 7");
        shape.kv_lens = {1, 1};
        ServingProblem one(shape, random);
        one.at("mask") = column;
        run(one);
    }
}

TEST_CASE("index tensors that can't be meant are refused") {
    Random random(5);
    const auto with = [&random](const ServingShape& shape, const char* name, std::int64_t at,
                                double value) {
        ServingProblem problem(shape, random);
        problem.at(name).set(at, value);
        return problem;
    };
    const ServingShape list = small_pages();
    check_refused(with(list, "last_page_len", 0, 5), "last_page_len[0] is 5");
    check_refused(with(list, "last_page_len", 1, 0), "last_page_len[1] is 0");
    check_refused(with(list, "kv_page_indptr", 1, 4), "kv_page_indptr");
    check_refused(with(list, "kv_page_indptr", 0, -1), "kv_page_indptr[0] is -1");
    check_refused(with(list, "kv_page_indices", 2, 77),
                  "kv_page_indices[2] is 77, and the pool has");
    check_refused(with(list, "kv_page_indices", 0, -2), "kv_page_indices[0] is -2");
    ServingShape table = list;
    table.keys = KeyForm::block_table;
    check_refused(with(table, "kv_lens", 0, 700), "kv_lens[0] is 700");
    check_refused(with(table, "kv_lens", 1, -1), "kv_lens[1] is -1");
    ServingShape tokens = list;
    tokens.keys = KeyForm::token_table;
    tokens.page_size = 1;
    check_refused(with(tokens, "req_pool_indices", 1, 9),
                  "req_pool_indices[1] is 9, and req_to_token has 4");
    ServingShape ragged = list;
    ragged.keys = KeyForm::ragged;
    ragged.packed = true;
    check_refused(with(ragged, "kv_indptr", 2, 11), "kv_indptr[2] is 11");
    check_refused(with(ragged, "qo_indptr", 1, 3), "qo_indptr[1] is 3");
}

}  // namespace jitney::tests
