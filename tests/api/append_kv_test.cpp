// append_kv: on host tensors, to the launches of a driver that computes in software, and calls
// that are refused.
#include "jitney/append_kv.hpp"

#include "jitney/attention.hpp"
#include "jitney/backend.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/runtime/allocation_count.hpp"
#include "tests/support/append_problem.hpp"

namespace jitney::tests {
namespace {

AppendKvArgs args_of(AppendProblem& problem, DeviceType type) {
    return append_call<AppendKvArgs>(problem.shape, problem.views({type, 0}));
}

AppendShape random_shape(Random& random) {
    const bool rotated = random.chance(0.5);
    AppendShape shape =
        random_append_shape(random, random.chance(0.6),
                            {KeyForm::dense, KeyForm::padded, KeyForm::ragged, KeyForm::token_table,
                             KeyForm::block_table, KeyForm::page_list},
                            rotated);
    shape.cache.dtype = random.chance(0.5) ? DType::bf16 : DType::fp32;
    shape.cache.head_dim = random.chance(0.5) ? 32 : 14;
    if (rotated) {
        shape.style = random.chance(0.5) ? RotaryStyle::half_split : RotaryStyle::interleaved;
        shape.rotary_dim = random.chance(0.5) ? shape.cache.head_dim : 6;
    }
    return shape;
}

void check_random(Random& random, DeviceType type) {
    const AppendShape shape = random_shape(random);
    CAPTURE(shape.text());
    AppendProblem problem(shape, random);
    AppendProblem expected = problem;
    expected.run_reference();
    const AppendKvArgs args = args_of(problem, type);
    append_kv(args);
    if (last_run().empty()) return;
    CHECK(last_run() == (type == DeviceType::cpu ? "reference" : explain(args).chosen));
    for (const char* name : {"k", "v", "q", "q_out"}) {
        if (problem.tensors.find(name) == problem.tensors.end()) continue;
        CHECK_MESSAGE(is_same_cache(problem.at(name), expected.at(name), {}), name);
    }
}

// Two requests of two and one new rows, in pages of 16.
AppendShape llama_step() {
    AppendShape shape;
    shape.cache.head_dim = 64;
    shape.cache.kv_heads = 2;
    shape.cache.q_lens = {2, 1};
    shape.cache.kv_lens = {20, 7};
    shape.cache.packed = true;
    shape.cache.keys = KeyForm::block_table;
    shape.cache.page_size = 16;
    shape.style = RotaryStyle::half_split;
    shape.rotary_dim = 64;
    shape.q_heads = 8;
    shape.positions = 64;
    return shape;
}

}  // namespace

TEST_CASE("appending on host tensors is the reference's") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 100; ++i)
        check_random(random, DeviceType::cpu);
}

TEST_CASE("scenario: appending" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 100; ++i)
        check_random(random, DeviceType::cuda);

    AppendProblem problem(llama_step(), random);
    AppendKvArgs args = args_of(problem, DeviceType::cuda);
    ops::append_kv(args);
    CHECK(last_run().starts_with(
        "append_kv<format=bf16,pairs=8,queries=packed,kv=paged,rotary=half_split>"));
    append_kv(args);
    fake.kernel = nullptr;  // the software would allocate
    const int launches = fake.launches;
    const long before = allocations_of_this_thread();
    for (int i = 0; i < 100; ++i)
        append_kv(args);
    CHECK(allocations_of_this_thread() == before);
    CHECK(fake.launches == launches + 100);

    // No requests, and no rows: no launch.
    AppendKvArgs none = args;
    none.new_indptr->shape[0] = 1;
    none.kv_lens->shape[0] = none.block_table->shape[0] = 0;
    if (none.kv_lens) append_kv(none);
    CHECK(last_run().empty());
    CHECK(fake.launches == launches + 100);
}

TEST_CASE("appending reaches its kernel as it was meant") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: appending", fake_gpu(cache)));
}

// What was appended is what attention sees.
TEST_CASE("attention after an append is attention with the new rows") {
    Random random(1);
    AppendShape shape = llama_step();
    shape.style.reset();
    shape.q_heads = shape.positions = 0;
    AppendProblem problem(shape, random);
    append_kv(args_of(problem, DeviceType::cpu));
    const HostTensor& k = problem.at("k");
    const HostTensor& table = problem.at("block_table");
    const auto page = static_cast<std::int64_t>(table.at({0, 1}));
    for (std::int64_t d = 0; d < 64; ++d) {
        CHECK(k.at({page, 3, 1, d}) == problem.at("new_k").at({1, 1, d}));
        CHECK(k.at({page, 2, 0, d}) == problem.at("new_k").at({0, 0, d}));
    }
}

TEST_CASE("calls of append_kv that can't be meant") {
    Random random(1);
    AppendProblem problem(llama_step(), random);
    if (problem.shape.cache.lengths_as_indptr) FAIL("kv_lens is what is changed below");
    const AppendKvArgs good = args_of(problem, DeviceType::cpu);
    using Bad = BadCall<AppendKvArgs>;
    const std::vector<Bad> bad = {
        {"integers", [](AppendKvArgs& a) { a.new_k.dtype = DType::int32; }, {"new_k", "int32"}},
        {"another dtype in the cache",
         [](AppendKvArgs& a) { a.k.dtype = DType::fp16; },
         {"new_k", "bf16", "k", "fp16"}},
        {"new_v of another length",
         [](AppendKvArgs& a) { a.new_v.shape[0] = 2; },
         {"new_v", "[2, 2, 64]", "[3, 2, 64]"}},
        {"other heads than the cache",
         [](AppendKvArgs& a) { a.new_k.shape[1] = a.new_v.shape[1] = 1; },
         {"new_k has 1 heads", "k has 2"}},
        {"no indptr, three dimensions",
         [](AppendKvArgs& a) { a.new_indptr.reset(); },
         {"new_k", "3 dimensions", "batch"}},
        {"an empty indptr",
         [](AppendKvArgs& a) { a.new_indptr->shape[0] = 0; },
         {"new_indptr", "empty"}},
        {"an indptr of int64",
         [](AppendKvArgs& a) { a.new_indptr->dtype = DType::int64; },
         {"new_indptr", "int64", "int32"}},
        {"pages without lengths",
         [](AppendKvArgs& a) { a.kv_lens.reset(); },
         {"block_table", "kv_lens"}},
        {"lengths of another batch",
         [](AppendKvArgs& a) { a.kv_lens->shape[0] = 1; },
         {"kv_lens", "1 rows", "2"}},
        {"cos without sin", [](AppendKvArgs& a) { a.sin.reset(); }, {"cos and sin", "sin"}},
        {"q without q_out", [](AppendKvArgs& a) { a.q_out.reset(); }, {"q and q_out", "q_out"}},
        {"q without tables",
         [](AppendKvArgs& a) {
             a.cos.reset();
             a.sin.reset();
         },
         {"q", "cos and sin"}},
        {"q of other tokens",
         [](AppendKvArgs& a) { a.q->shape[0] = a.q_out->shape[0] = 2; },
         {"q", "[2, 8, 64]", "[3, 8, 64]"}},
        {"tables that are too wide",
         [](AppendKvArgs& a) { a.cos->shape[1] = a.sin->shape[1] = 33; },
         {"cos", "33", "64"}},
        {"positions in fp32",
         [](AppendKvArgs& a) { a.positions->dtype = DType::fp32; },
         {"positions", "fp32"}},
        {"positions of other tokens",
         [](AppendKvArgs& a) { a.positions->shape[0] = 4; },
         {"positions", "[4]", "[3]"}},
        {"no style there is",
         [](AppendKvArgs& a) { a.style = static_cast<RotaryStyle>(7); },
         {"style", "7"}},
        {"no style, without tables",
         [](AppendKvArgs& a) {
             a.style = static_cast<RotaryStyle>(2);
             for (auto* each : {&a.cos, &a.sin, &a.positions, &a.q, &a.q_out})
                 each->reset();
         },
         {"style is 2", "interleaved (0) or half_split (1)"}},
        {"onto itself",
         [](AppendKvArgs& a) { a.new_k.data = a.k.data; },
         {"k", "new_k", "overlap"}},
        {"one pool for both", [](AppendKvArgs& a) { a.v.data = a.k.data; }, {"v", "k", "overlap"}},
        {"no data", [](AppendKvArgs& a) { a.new_v.data = nullptr; }, {"new_v", "no data"}},
        {"another device",
         [](AppendKvArgs& a) {
             a.block_table->device = {DeviceType::cuda, 0};
         },
         {"new_k", "block_table", "GPU 0"}},
        {"a pool whose rows overlap",
         [](AppendKvArgs& a) { a.k.strides[2] = 8; },
         {"k", "overlap", "stride"}},
    };
    for (const Bad& each : bad)
        check_refused(each, good, [](const AppendKvArgs& args) { append_kv(args); });
    CHECK_THROWS_AS(ops::append_kv(good), Error);
    CHECK(last_run().empty());
}

}  // namespace jitney::tests
