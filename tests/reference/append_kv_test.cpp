// Appending by the reference: what rows without a place get, and errors in the caller's words.
#include "operations/append_kv/reference.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "jitney/error.hpp"
#include "tests/support/append_problem.hpp"

namespace jitney::tests {
namespace {

// Requests with 3 and 2 new rows, of which the first request has a place for 2 alone.
AppendShape short_request(bool packed) {
    AppendShape shape;
    shape.cache.dtype = DType::fp32;
    shape.cache.head_dim = 4;
    shape.cache.kv_heads = 2;
    shape.cache.packed = packed;
    shape.cache.q_lens = packed ? std::vector<std::int64_t>{3, 2} : std::vector<std::int64_t>{3, 3};
    shape.cache.kv_lens = {2, 9};
    shape.cache.keys = KeyForm::block_table;
    shape.cache.page_size = 4;
    shape.style = RotaryStyle::interleaved;
    shape.rotary_dim = 4;
    shape.q_heads = 3;
    return shape;
}

void check_refused(AppendProblem problem, const std::string& words) {
    const AppendProblem before = problem;
    try {
        problem.run_reference();
        FAIL_CHECK("it was accepted: ", words);
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::invalid_argument);
        CHECK_MESSAGE(std::string(error.what()).find(words) != std::string::npos, error.what());
    }
    for (const char* name : {"k", "v", "q", "q_out"}) {
        if (before.tensors.find(name) == before.tensors.end()) continue;
        CHECK(is_same_cache(problem.at(name), AppendProblem(before).at(name), Tolerance{}));
    }
}

AppendProblem with(const AppendShape& shape, const char* name, std::int64_t index, double value) {
    Random random(5);
    AppendProblem problem(shape, random);
    problem.at(name).set(index, value);
    return problem;
}

// The pair (a, b) that begins at an element, turned by a row of the tables.
std::pair<double, double> turned(AppendProblem& problem, std::int64_t element, std::int64_t row,
                                 std::int64_t pair) {
    const double a = problem.at("q").get(element);
    const double b = problem.at("q").get(element + 1);
    const double cos = problem.at("cos").at({row, pair});
    const double sin = problem.at("sin").at({row, pair});
    return {a * cos - b * sin, b * cos + a * sin};
}

}  // namespace

TEST_CASE("rows that a request has no place for are left out, and their queries too") {
    for (const bool packed : {false, true}) {
        CAPTURE(packed);
        Random random(7);
        AppendProblem problem(short_request(packed), random);
        const HostTensor q = problem.at("q");
        const HostTensor old = problem.at("k");
        problem.run_reference();
        const HostTensor& out = problem.at("q_out");
        const auto rows = packed ? 5 : 6;
        const std::int64_t elements = problem.shape.q_heads * 4;
        for (std::int64_t row = 0; row < rows; ++row) {
            const bool first = row < 3;
            // Their places end at the request's last key.
            const std::int64_t place = first ? row - 1 : 9 - (rows - row);
            for (std::int64_t i = row * elements; i < (row + 1) * elements; i += 2) {
                if (place < 0) {
                    CHECK(std::isnan(out.get(i)));  // as it was
                    continue;
                }
                const auto [a, b] = turned(problem, i, place, i / 2 % 2);
                CHECK(out.get(i) == doctest::Approx(a).epsilon(1e-6));
                CHECK(out.get(i + 1) == doctest::Approx(b).epsilon(1e-6));
            }
        }
        // The first request has its last two new values, in its first page.
        const auto page = static_cast<std::int64_t>(problem.at("block_table").get(0));
        for (std::int64_t key = 0; key < 2; ++key) {
            const double expected = packed ? problem.at("new_v").at({key + 1, 1, 2})
                                           : problem.at("new_v").at({0, key + 1, 1, 2});
            CHECK(problem.at("v").at({page, key, 1, 2}) == expected);
        }
        CHECK(problem.at("k").surroundings_intact());
    }
}

TEST_CASE("where positions are given, a query without a place is rotated by its own") {
    AppendShape shape = short_request(true);
    shape.positions = 32;
    AppendProblem problem = with(shape, "positions", 0, 17);
    problem.run_reference();
    const auto [a, b] = turned(problem, 2, 17, 1);
    CHECK(problem.at("q_out").get(2) == doctest::Approx(a).epsilon(1e-6));
    CHECK(problem.at("q_out").get(3) == doctest::Approx(b).epsilon(1e-6));
    // Of a key that has no place nobody asks for the position.
    shape.q_heads = 0;
    AppendProblem keys_alone = with(shape, "positions", 0, 1000);
    CHECK_NOTHROW(keys_alone.run_reference());
}

TEST_CASE("pages before the first new key are nobody's business") {
    Random random(3);
    AppendShape shape;
    shape.cache.dtype = DType::fp32;
    shape.cache.head_dim = 4;
    shape.cache.q_lens = {3};
    shape.cache.kv_lens = {20};
    shape.cache.keys = KeyForm::block_table;
    shape.cache.page_size = 4;
    AppendProblem problem(shape, random);
    for (std::int64_t page = 0; page < 4; ++page)
        problem.at("block_table").set(page, page % 2 == 0 ? -1 : 4711);
    problem.run_reference();
    problem.at("block_table").set(4, 4711);
    check_refused(problem, "block_table[0, 4] is 4711");
}

TEST_CASE("errors of an append name the request and the caller's tensors") {
    AppendShape ragged = short_request(true);
    check_refused(with(ragged, "qo_indptr", 1, 7), "new_indptr[1] is 7; it must lie between 0 and");
    check_refused(with(ragged, "kv_lens", 1, 99), "kv_lens[1] is 99");
    ragged.positions = 64;
    check_refused(with(ragged, "positions", 3, 300), "positions[3] is 300, and cos and sin have");
    AppendShape dense = short_request(false);
    dense.positions = 32;
    check_refused(with(dense, "positions", 5, -1), "positions[1, 2] is -1, and cos and sin have");
    dense.shared_positions = true;
    check_refused(with(dense, "positions", 2, 301), "positions[2] is 301");

    Random random(3);
    AppendProblem small(short_request(true), random);
    small.tensors.erase("cos");
    small.tensors.erase("sin");
    small.tensors.emplace("cos", HostTensor(DType::fp32, {8, 2}));
    small.tensors.emplace("sin", HostTensor(DType::fp32, {8, 2}));
    check_refused(small,
                  "new row 1 of request 1 stands at position 8, and cos and sin have 8 rows");
}

TEST_CASE("two new rows for one place of the pool are refused") {
    for (const bool packed : {false, true}) {
        AppendShape shape = short_request(packed);
        Random random(3);
        AppendProblem problem(shape, random);
        // The last page of the second request is the first of the first one, whose keys 0 and 1 are
        // new; its own are 7 and 8: place 0 of that page, and, where there are three, 6 and 7.
        const auto columns = problem.at("block_table").shape()[1];
        const double page = problem.at("block_table").get(0);
        problem.at("block_table").set(columns + 2, page);
        check_refused(problem, "requests 0 and 1 both append to place 0 of page " +
                                   std::to_string(static_cast<int>(page)) + " of k");
    }
    // One request, whose table names a page twice.
    AppendShape shape = short_request(true);
    shape.cache.page_size = 1;
    shape.cache.kv_lens = {3, 9};
    Random random(3);
    AppendProblem problem(shape, random);
    problem.at("block_table").set(0, problem.at("block_table").get(2));
    check_refused(problem, "request 0 appends two keys to place 0 of page");
}

}  // namespace jitney::tests
