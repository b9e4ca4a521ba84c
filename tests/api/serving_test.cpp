// Requests of several lengths, pages and options: on host tensors, and to the launches of a driver
// that computes in software.
#include <doctest/doctest.h>

#include <algorithm>

#include "jitney/attention.hpp"
#include "jitney/backend.hpp"
#include "jitney/explain.hpp"
#include "operations/attention/reference.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/runtime/allocation_count.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/serving_problem.hpp"

namespace jitney::tests {
namespace {

AttentionArgs args_on(ServingProblem& problem, DeviceType type) {
    return serving_call<AttentionArgs>(problem.shape, problem.views({type, 0}));
}

std::vector<int> host_indptr(const ServingShape& shape) {
    std::vector<int> ends{0};
    for (const std::int64_t length : shape.q_lens)
        ends.push_back(ends.back() + static_cast<int>(length));
    return ends;
}

ServingShape random_shape(Random& random) {
    const bool packed = random.chance(0.5);
    ServingShape shape = random_serving_shape(random, {.q_len = 20, .kv_len = 50}, packed);
    static constexpr std::int64_t kDims[] = {8, 33, 64};
    shape.head_dim = random.pick(std::span<const std::int64_t>(kDims));
    shape.dtype = random.chance(0.5) ? DType::bf16 : DType::fp32;
    shape.causal = random.chance(0.5);
    const auto coin = [&random] { return random.chance(0.3); };
    add_options(shape, {coin(), coin(), coin(), coin(), coin(), !packed && coin()}, random);
    return shape;
}

void check(Random& random, DeviceType type) {
    const ServingShape shape = random_shape(random);
    CAPTURE(shape.text());
    ServingProblem problem(shape, random);
    ServingProblem expected = problem;
    reference::attention(serving_call<reference::Attention>(shape, expected.views()));
    AttentionArgs args = args_on(problem, type);
    const std::vector<int> ends = host_indptr(shape);
    if (shape.packed && random.chance(0.5)) args.qo_indptr_host = ends;
    attention(args);
    const bool empty = ends.back() == 0;
    if (!empty || type == DeviceType::cpu) {
        CHECK((last_run() == "reference") == (type == DeviceType::cpu && !last_run().empty()));
    }
    if (last_run().empty()) return;
    for (const char* name : {"out", "lse"}) {
        problem.idle_rows_untouched(problem.at("out"), problem.at("lse"));
        expected.idle_rows_untouched(expected.at("out"), expected.at("lse"));
        JITNEY_CHECK_CLOSE(problem.at(name), expected.at(name), (Tolerance{1e-5, 8e-3}));
    }
    for (const char* name : {"k", "v"}) {
        CHECK(std::ranges::equal(problem.at(name).storage(), expected.at(name).storage()));
    }
}

ServingShape llama_step() {
    ServingShape shape;
    shape.head_dim = 64;
    shape.kv_heads = 2;
    shape.group = 4;
    shape.q_lens = {70, 0, 1, 33};
    shape.kv_lens = {90, 5, 40, 33};
    shape.packed = true;
    shape.keys = KeyForm::block_table;
    shape.page_size = 16;
    shape.causal = true;
    return shape;
}

}  // namespace

TEST_CASE("requests, pages and options on host tensors are the reference's") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 100; ++i)
        check(random, DeviceType::cpu);
}

TEST_CASE("scenario: random requests" * doctest::skip()) {
    start_software_gpu();
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 200; ++i)
        check(random, DeviceType::cuda);
}

TEST_CASE("what requests and options mean reaches the kernels") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: random requests", fake_gpu(cache)));
}

TEST_CASE("scenario: ragged launches" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    Random random(3);
    ServingProblem problem(llama_step(), random);
    AttentionArgs args = args_on(problem, DeviceType::cuda);
    attention(args);
    CHECK(fake.launches == 2);  // the map, and attention
    const Explanation bounded = explain(args);
    CHECK(last_run() == bounded.chosen);
    REQUIRE(bounded.before.size() == 1);
    CHECK(bounded.before[0].starts_with("attn_work_map<"));
    CHECK(fake.launch.grid == bounded.grid);

    // Where the host knows the lengths there are as many blocks as tiles: 280, 4 and 132 rows of
    // 128, and twice that for the KV heads.
    const std::vector<int> ends = host_indptr(problem.shape);
    args.qo_indptr_host = ends;
    attention(args);
    CHECK(fake.launch.grid == explain(args).grid);
    CHECK(fake.launch.grid[0] == 2 * (3 + 1 + 2));
    CHECK(fake.launch.grid[0] < bounded.grid[0]);

    fake.kernel = nullptr;
    const int launches = fake.launches;
    const int allocations = fake.allocations;
    const long before = allocations_of_this_thread();
    for (int i = 0; i < 100; ++i)
        attention(args);
    CHECK(allocations_of_this_thread() == before);
    CHECK(fake.launches == launches + 200);
    CHECK(fake.allocations == allocations);

    // No request has a query.
    const std::vector<int> none(ends.size(), 0);
    args.qo_indptr_host = none;
    attention(args);
    CHECK(fake.launches == launches + 200);
    CHECK(last_run().empty());
}

TEST_CASE("a ragged call is two launches, and as many blocks as it needs") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: ragged launches", fake_gpu(cache)));
}

TEST_CASE("of more new rows than a request has keys, the last are its keys") {
    HostTensor q(DType::fp32, {1, 1, 1, 8});
    HostTensor out(DType::fp32, {1, 1, 1, 8});
    HostTensor k(DType::fp32, {1, 4, 1, 8});
    HostTensor v(DType::fp32, {1, 4, 1, 8});
    HostTensor fresh(DType::fp32, {1, 3, 1, 8});
    HostTensor lens(DType::int32, {1});
    q.fill([](std::int64_t) { return 0.0; });  // the mean of what is seen
    v.fill([](std::int64_t) { return 7.0; });
    fresh.fill([](std::int64_t i) { return 10.0 * static_cast<double>(i / 8 + 1); });
    lens.set(0, 2);
    AttentionArgs args;
    args.q = q.view();
    args.out = out.view();
    args.k = k.view();
    args.v = v.view();
    args.kv_lens = lens.view();
    args.new_k = args.new_v = fresh.view();
    attention(args);
    CHECK(out.get(0) == 25.0);
    CHECK(v.at({0, 0, 0, 0}) == 20.0);
    CHECK(v.at({0, 1, 0, 0}) == 30.0);
    CHECK(v.at({0, 2, 0, 0}) == 7.0);
}

TEST_CASE("a helper is no kernel to ask for") {
    CHECK_THROWS(Scope("attn_work_map"));
}

}  // namespace jitney::tests
