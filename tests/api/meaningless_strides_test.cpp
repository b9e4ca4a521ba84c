// Strides that lead nowhere, those of dimensions of one element and of empty tensors, may hold any
// number: no result depends on them, and no arithmetic passes the end of 64 bits over them, which
// the sanitizers of the asan preset report.
#include <doctest/doctest.h>

#include <limits>

#include "jitney/append_kv.hpp"
#include "jitney/attention.hpp"
#include "operations/overlap.hpp"
#include "operations/tensor_checks.hpp"
#include "tests/support/append_problem.hpp"
#include "tests/support/serving_problem.hpp"

namespace jitney::tests {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

void scramble(Tensor& tensor, Random& random) {
    static constexpr std::int64_t kStrides[] = {kLeast, kMost, kMost / 2, -7};
    const bool empty = is_empty(tensor);
    for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.ndim); ++i) {
        if (tensor.shape[i] <= 1 || empty) tensor.strides[i] = random.pick<std::int64_t>(kStrides);
    }
}

Views scrambled(Views views, Random& random) {
    for (auto& [name, tensor] : views)
        scramble(tensor, random);
    return views;
}

// Sizes of 0 and 1 wherever there can be some.
ServingShape small_cache(Random& random) {
    static constexpr KeyForm kForms[] = {KeyForm::dense,       KeyForm::padded,
                                         KeyForm::ragged,      KeyForm::token_table,
                                         KeyForm::block_table, KeyForm::page_list};
    ServingShape shape;
    shape.dtype = DType::fp32;
    shape.head_dim = random.chance(0.5) ? 1 : 8;
    shape.keys = random.pick<KeyForm>(kForms);
    shape.page_size = shape.keys == KeyForm::token_table ? 1 : 4;
    shape.packed = random.chance(0.6);
    const auto requests = random.integer(shape.packed ? 0 : 1, 2);
    for (std::int64_t i = 0; i < requests; ++i) {
        const std::int64_t rows = shape.packed ? random.integer(0, 1) : 1;
        shape.q_lens.push_back(rows);
        shape.kv_lens.push_back(shape.keys == KeyForm::dense ? 1 : rows);
    }
    return shape;
}

}  // namespace

TEST_CASE("appending does not depend on strides that mean nothing") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 400; ++i) {
        AppendShape shape;
        shape.cache = small_cache(random);
        shape.cache.head_dim = 8;
        if (random.chance(0.5)) {
            shape.style = RotaryStyle::half_split;
            shape.rotary_dim = random.chance(0.5) ? 2 : 8;
            shape.q_heads = random.integer(0, 1);
            shape.positions = random.chance(0.5) ? 32 : 0;
        }
        CAPTURE(shape.text());
        AppendProblem problem(shape, random);
        AppendProblem expected = problem;
        append_kv(append_call<AppendKvArgs>(shape, expected.views()));
        append_kv(append_call<AppendKvArgs>(shape, scrambled(problem.views(), random)));
        for (auto& [name, tensor] : problem.tensors)
            CHECK_MESSAGE(is_same_cache(tensor, expected.at(name), {}), name);
    }
}

TEST_CASE("attention does not depend on strides that mean nothing") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 400; ++i) {
        ServingShape shape = small_cache(random);
        if (!shape.packed) shape.mask_dims = static_cast<int>(random.integer(0, 3));
        if (shape.mask_dims == 1) shape.mask_dims = 0;
        CAPTURE(shape.text());
        ServingProblem problem(shape, random);
        ServingProblem expected = problem;
        attention(serving_call<AttentionArgs>(shape, expected.views()));
        attention(serving_call<AttentionArgs>(shape, scrambled(problem.views(), random)));
        for (const char* name : {"out", "lse"}) {
            if (problem.tensors.find(name) == problem.tensors.end()) continue;
            CHECK_MESSAGE(is_same_cache(problem.at(name), expected.at(name), {}), name);
        }
    }
}

TEST_CASE("checks and searches for overlap skip strides that mean nothing") {
    Random random(1);
    float memory[64] = {};
    const auto view = [&](std::vector<std::int64_t> shape) {
        Tensor tensor = Tensor::contiguous(memory, DType::fp32, shape, kHost);
        scramble(tensor, random);
        return tensor;
    };
    for (int i = 0; i < 40; ++i) {
        const Tensor one = view({1, 8, 1, 4});
        const Tensor none = view({8, 0, 3});
        for (const Tensor& tensor : {one, none}) {
            checks::check_reach({"x", tensor, ""});
            checks::check_no_overlap({"x", tensor, ""});
            CHECK(checks::shared_within(tensor).kind == checks::Sharing::none);
        }
        CHECK(checks::shared(one, one) == checks::Sharing::some);
        CHECK(checks::shared(one, none) == checks::Sharing::none);
        CHECK(checks::as_matrix({"x", one, ""}).shape[0] == 8);
        CHECK(checks::as_matrix({"x", none, ""}).shape[0] == 0);
    }
}

TEST_CASE("a stride that leads out of memory is refused, the least and the greatest among them") {
    float memory[4] = {};
    for (const std::int64_t stride : {kLeast, kLeast + 1, kMost, kMost / 2, -kMost / 3}) {
        const Tensor tensor =
            Tensor::strided(memory, DType::fp32, {2, 2, 2}, {stride, 2, 1}, kHost);
        CHECK_THROWS_AS(checks::check_reach({"x", tensor, ""}), Error);
    }
}

}  // namespace jitney::tests
