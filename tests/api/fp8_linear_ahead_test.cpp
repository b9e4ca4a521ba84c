// Which kernels a linear layer on FP8 needs, told before it runs: what explain says is what is
// launched, and what prewarm compiled is all that calls with any number of rows look for.
#include <array>

#include "jitney/backend.hpp"
#include "jitney/fp8_linear.hpp"
#include "jitney/prewarm.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fake_gpu.hpp"

namespace jitney::tests {
namespace {

constexpr Device kGpu = {DeviceType::cuda, 0};

// A call's tensors, at addresses that nothing reads: the driver computes nothing.
struct Layer {
    std::int64_t rows = 0;
    std::int64_t out = 0;
    std::int64_t in = 0;
    Fp8Recipe recipe = {};

    Tensor placed(int place, DType dtype, const std::vector<std::int64_t>& shape) const {
        const std::uintptr_t address = std::uintptr_t{1} << 44;
        return Tensor::contiguous(
            reinterpret_cast<void*>(address + (static_cast<std::uintptr_t>(place) << 40)), dtype,
            shape, kGpu);
    }

    Fp8LinearSaved saved() const {
        return {placed(0, DType::fp8_e4m3, {rows, in}), placed(1, DType::fp8_e4m3, {out, in}),
                placed(2, DType::fp32, {2})};
    }
    Tensor state() const { return placed(3, DType::fp32, {3, fp8_state_columns(recipe)}); }

    Fp8LinearArgs forward(bool saves) const {
        Fp8LinearArgs args;
        args.x = placed(4, DType::bf16, {rows, in});
        args.weight = placed(5, DType::bf16, {out, in});
        args.bias = placed(6, DType::bf16, {out});
        args.y = placed(7, DType::bf16, {rows, out});
        args.state = state();
        if (saves) args.saved = saved();
        args.recipe = recipe;
        return args;
    }

    // `wanted`: bits of grad_x, grad_weight and grad_bias.
    Fp8LinearBackwardArgs backward(int wanted) const {
        Fp8LinearBackwardArgs args;
        args.grad_y = placed(8, DType::bf16, {rows, out});
        args.saved = saved();
        if ((wanted & 1) != 0) args.grad_x = placed(9, DType::bf16, {rows, in});
        if ((wanted & 2) != 0) args.grad_weight = placed(10, DType::bf16, {out, in});
        if ((wanted & 4) != 0) args.grad_bias = placed(11, DType::bf16, {out});
        args.state = state();
        args.recipe = recipe;
        return args;
    }
};

Layer of_sizes(std::int64_t rows, std::int64_t out, std::int64_t in) {
    Layer layer;
    layer.rows = rows;
    layer.out = out;
    layer.in = in;
    return layer;
}

struct Sizes {
    std::int64_t out;
    std::int64_t in;
    bool dynamic;
};
// The second has codes whose rows begin anywhere, once they are saved.
constexpr std::array kLayers = {Sizes{1024, 768, false}, Sizes{640, 1001, true}};
constexpr std::int64_t kFirstRows = 3;
constexpr std::int64_t kLastRows = 3000;

Layer layer_of(const Sizes& sizes, std::int64_t rows) {
    Layer layer = of_sizes(rows, sizes.out, sizes.in);
    if (sizes.dynamic) layer.recipe.scaling = Fp8Scaling::dynamic;
    return layer;
}

std::vector<std::string> needed() {
    std::vector<std::string> texts;
    for (const Sizes& sizes : kLayers) {
        Fp8LinearShape shape;
        shape.out_features = sizes.out;
        shape.in_features = sizes.in;
        shape.first_rows = kFirstRows;
        shape.last_rows = kLastRows;
        shape.bias = DType::bf16;
        if (sizes.dynamic) shape.recipe.scaling = Fp8Scaling::dynamic;
        shape.backward = true;
        for (std::string& text : fp8_linear_specs(shape, ""))
            texts.push_back(std::move(text));
    }
    return texts;
}

// That the call launches what explain says, the last of it the kernel that it ran.
template <class Args, class Call>
void check_launches(const Args& args, const Call& call) {
    const ExplainedLaunches told = explain(args);
    REQUIRE(!told.launches.empty());
    CHECK(told.workspace_bytes == workspace_bytes(args));
    const fake::Cuda& fake = fake_cuda();
    const int launches = fake.launches;
    call(args, nullptr);
    CHECK(static_cast<std::size_t>(fake.launches - launches) == told.launches.size());
    CHECK(last_run() == told.launches.back().spec);
    CHECK(fake.launch.grid == told.launches.back().grid);
    CHECK(fake.launch.block == told.launches.back().block);
    CHECK(fake.launch.shared_bytes == static_cast<unsigned>(told.launches.back().shared_bytes));
}

std::vector<std::string> kernels_of(const ExplainedLaunches& told) {
    std::vector<std::string> names;
    for (const ExplainedLaunch& each : told.launches)
        names.push_back(each.spec.substr(0, each.spec.find('<')));
    return names;
}

}  // namespace

TEST_CASE("scenario: prewarm linear layers" * doctest::skip()) {
    for (const PrewarmEntry& entry : prewarm(needed()))
        CHECK_MESSAGE(entry.status != PrewarmStatus::failed, entry.error);
}

TEST_CASE("scenario: linear layers compile nothing" * doctest::skip()) {
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 400; ++i) {
        const Sizes& sizes = kLayers[random.chance(0.5) ? 1 : 0];
        const std::int64_t most = random.chance(0.5) ? 200 : kLastRows;
        const Layer layer = layer_of(sizes, random.integer(kFirstRows, most));
        CAPTURE(layer.rows);
        CAPTURE(layer.in);
        REQUIRE_NOTHROW(check_launches(layer.forward(random.chance(0.5)), fp8_linear));
        // Any gradients but that of the bias alone.
        const int wanted = static_cast<int>(random.integer(1, 3) + 4 * random.integer(0, 1));
        CAPTURE(wanted);
        REQUIRE_NOTHROW(check_launches(layer.backward(wanted), fp8_linear_backward));
    }
}

TEST_CASE("scenario: linear layers miss a kernel" * doctest::skip()) {
    const Layer layer = layer_of(kLayers[0], 100);
    try {
        fp8_linear(layer.forward(false));
        FAIL("it ran");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::not_cached);
    }
}

TEST_CASE("after prewarm, linear layers with any number of rows find every kernel") {
    const TemporaryDirectory cache;
    const Variables off =
        fakes(cache.path(), {{"FAKE_CUDA_MEMORY", "host"}, {"JITNEY_JIT", "off"}});
    REQUIRE_PASSED(run("scenario: linear layers miss a kernel", off));
    REQUIRE_PASSED(run("scenario: prewarm linear layers", fake_gpu(cache)));
    REQUIRE_PASSED(run("scenario: linear layers compile nothing", off));
}

TEST_CASE("a linear layer is explained without a GPU, launch by launch") {
    const Layer layer = of_sizes(4096, 6144, 4096);
    Fp8LinearArgs args = layer.forward(false);
    const ExplainedLaunches forward = explain(args, "sm_90a");
    CHECK(forward.arch == "sm_90a");
    CHECK(kernels_of(forward) ==
          std::vector<std::string>{"fp8_quantize", "fp8_quantize", "fp8_update", "fp8_gemm_wgmma"});
    for (const ExplainedLaunch& each : forward.launches) {
        CHECK(each.spec.ends_with("@sm_90a"));
        CHECK(each.grid[0] > 0);
        CHECK(each.block[0] > 0);
    }
    // The codes of x and weight lie in it; where they are saved, counters alone.
    CHECK(forward.workspace_bytes >= (4096 + 6144) * 4096);
    CHECK(explain(layer.forward(true), "sm_90a").workspace_bytes == 65536);
    REQUIRE(forward.candidates.size() == 3);
    CHECK(forward.candidates[0].kernel == "fp8_quantize");
    CHECK(forward.candidates[1].kernel == "fp8_gemm_wgmma");
    CHECK(forward.candidates[1].accepted);
    CHECK(forward.candidates[2].kernel == "fp8_gemm_mma");
    CHECK(forward.candidates[2].accepted);

    const ExplainedLaunches backward = explain(layer.backward(7), "sm_90a");
    CHECK(kernels_of(backward) == std::vector<std::string>{"fp8_quantize", "fp8_update",
                                                           "column_sums", "fp8_gemm_mma",
                                                           "fp8_gemm_mma"});
    CHECK(backward.launches[3].spec.find("trans_a=0") != std::string::npos);
    CHECK(backward.launches[4].spec.find("trans_a=1") != std::string::npos);
    // Addresses and devices make no difference where there are none.
    for (Tensor* tensor : {&args.x, &args.weight, &args.y, &args.state, &*args.bias}) {
        tensor->data = nullptr;
        tensor->device = {DeviceType::cpu, 0};
    }
    CHECK(explain(args, "sm_90a").launches.back().spec == forward.launches.back().spec);

    // Few rows divide K among blocks, which takes memory where blocks have no clusters.
    Layer few = of_sizes(8, 1024, 16384);
    few.recipe.scaling = Fp8Scaling::dynamic;
    CHECK(explain(few.forward(true), "sm_90a").launches.back().splits > 1);
    CHECK(explain(few.forward(true), "sm_90a").launches.back().workspace_bytes == 0);
    const ExplainedLaunches small = explain(few.forward(true), "sm_89");
    CHECK(kernels_of(small) == std::vector<std::string>{"fp8_quantize", "fp8_quantize",
                                                        "fp8_quantize", "fp8_quantize",
                                                        "fp8_update", "fp8_gemm_mma"});
    CHECK(small.launches[0].spec.find("codes=none") != std::string::npos);
    CHECK(small.launches.back().splits > 1);
    CHECK(small.launches.back().workspace_bytes > 65536);
    CHECK(small.workspace_bytes >= small.launches.back().workspace_bytes);
}

TEST_CASE("linear layers of which nothing can run, or nothing has to") {
    const ExplainedLaunches old = explain(of_sizes(64, 64, 64).forward(false), "sm_80");
    CHECK(old.launches.empty());
    CHECK(old.workspace_bytes == 0);
    REQUIRE(old.candidates.size() == 3);
    CHECK(old.candidates[0].accepted);
    CHECK_FALSE(old.candidates[1].accepted);
    CHECK(old.candidates[1].reason.find("sm_90a") != std::string::npos);
    CHECK_FALSE(old.candidates[2].accepted);
    CHECK(old.candidates[2].reason.find("sm_89") != std::string::npos);
    const ExplainedLaunches empty = explain(of_sizes(0, 64, 64).forward(false), "sm_90a");
    CHECK(empty.launches.empty());
    CHECK(empty.candidates.empty());
    CHECK(empty.workspace_bytes == 0);
    // The scales that it saves are the state's to write.
    const ExplainedLaunches saved = explain(of_sizes(0, 64, 64).forward(true), "sm_90a");
    REQUIRE(saved.launches.size() == 1);
    CHECK(saved.launches[0].spec.starts_with("fp8_update<"));
    CHECK(saved.workspace_bytes == 0);
    // Gradients without rows are zeros, which the product writes.
    CHECK(kernels_of(explain(of_sizes(0, 64, 64).backward(3), "sm_90a")) ==
          std::vector<std::string>{"fp8_gemm_mma"});
    // Without features there is the update, and the product that writes the bias.
    CHECK(kernels_of(explain(of_sizes(8, 64, 0).forward(false), "sm_90a")) ==
          std::vector<std::string>{"fp8_update", "fp8_gemm_mma"});
}

TEST_CASE("what explains a linear layer checks its arguments") {
    using Bad = BadCall<Fp8LinearArgs>;
    const Fp8LinearArgs good = of_sizes(8, 64, 32).forward(false);
    const auto ask = [](const Fp8LinearArgs& args) { explain(args, "sm_90a"); };
    check_refused(Bad{"shape", [](auto& a) { a.weight.shape[1] = 31; }, {"weight", "31"}}, good,
                  ask);
    check_refused(Bad{"recipe", [](auto& a) { a.recipe.margin = 40; }, {"margin is 40"}}, good,
                  ask);
    check_refused(Bad{"arch", [](auto&) {}, {"'sm_9x'"}}, good,
                  [](const Fp8LinearArgs& args) { explain(args, "sm_9x"); });
}

}  // namespace jitney::tests
