// The FP8 calls: no tensor that is written shares memory with another one of the call, nor with its
// workspace. All pairs, one by one.
#include <array>
#include <string>
#include <vector>

#include "jitney/fp8_gemm.hpp"
#include "jitney/fp8_linear.hpp"
#include "jitney/fp8_quantize.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/support/fp8_linear_problem.hpp"

namespace jitney::tests {
namespace {

struct Part {
    const char* name;
    Tensor* tensor;
    bool written;
};

template <class Call>
void check_says(const Call& call, const std::vector<std::string>& words) {
    try {
        call();
        FAIL_CHECK("it was accepted");
    } catch (const Error& error) {
        const std::string text = error.what();
        CHECK(error.code() == ErrorCode::invalid_argument);
        check_sentence(text);
        for (const std::string& word : words)
            CHECK_MESSAGE(text.find(word) != std::string::npos, text, " lacks: ", word);
    }
}

// `parts` are tensors within `args`; run() is the call, start() comes before the first.
template <class Args, class Run, class Start>
void check_pairs(Args& args, const std::vector<Part>& parts, const Run& run, const Start& start) {
    // Far from each other.
    static std::array<std::byte, 10 << 16> places;
    std::size_t place = 0;
    for (const Part& part : parts)
        part.tensor->data = places.data() + (place++ << 16) + 256;
    start(args);
    const Args good = args;
    for (const Part& part : parts) {
        for (const Part& other : parts) {
            if (part.tensor == other.tensor) continue;
            CAPTURE(part.name);
            CAPTURE(other.name);
            part.tensor->data = other.tensor->data;
            if (!part.written && !other.written) {
                // What is only read may be shared.
                CHECK_NOTHROW(run(args));
            } else {
                const Part& first = part.written ? part : other;
                const Part& second = part.written ? other : part;
                const bool both = part.written && other.written;
                check_says(
                    [&] { run(args); },
                    {" begins where ", both ? "" : std::string(first.name) + " begins",
                     both ? "" : std::string(second.name) + " does", first.name, second.name});
            }
            args = good;
        }
        // In the caller's workspace, whatever else the call does with it.
        alignas(256) static std::byte memory[1 << 20];
        args.workspace = {memory, sizeof memory};
        CHECK_NOTHROW(run(args));
        part.tensor->data = memory + 4096;
        check_says([&] { run(args); }, {"the workspace overlaps " + std::string(part.name)});
        args = good;
    }
}

template <class Args, class Run>
void check_pairs(Args& args, const std::vector<Part>& parts, const Run& run) {
    check_pairs(args, parts, run, [](const Args&) {});
}

Tensor host(HostTensor& tensor) {
    return tensor.view();
}

constexpr auto reset = [](const auto& args) { fp8_state_reset(args.state); };

}  // namespace

TEST_CASE("no pair of fp8_quantize's tensors shares memory that is written") {
    HostTensor x(DType::fp32, {16, 16});
    HostTensor out(DType::fp8_e4m3, {16, 16});
    HostTensor out_transposed(DType::fp8_e4m3, {16, 16});
    HostTensor multiplier(DType::fp32, {1});
    HostTensor scale(DType::fp32, {1});
    HostTensor amax(DType::fp32, {1});
    for (const bool dynamic : {false, true}) {
        Fp8QuantizeArgs args;
        args.x = host(x);
        args.out = host(out);
        args.out_transposed = host(out_transposed);
        args.multiplier = host(multiplier);
        args.scale = host(scale);
        args.amax = host(amax);
        args.dynamic = dynamic;
        check_pairs(args,
                    {{"x", &args.x, false},
                     {"out", &*args.out, true},
                     {"out_transposed", &*args.out_transposed, true},
                     {"multiplier", &*args.multiplier, dynamic},
                     {"scale", &*args.scale, true},
                     {"amax", &*args.amax, true}},
                    [](const auto& call) { fp8_quantize(call); });
    }
}

TEST_CASE("no pair of fp8_gemm's tensors shares memory that is written") {
    HostTensor a(DType::fp8_e4m3, {16, 16});
    HostTensor b(DType::fp8_e5m2, {16, 16});
    HostTensor out(DType::fp8_e4m3, {16, 16});
    HostTensor scale(DType::fp32, {1});
    HostTensor bias(DType::fp32, {16});
    HostTensor multiplier(DType::fp32, {1});
    HostTensor amax(DType::fp32, {1});
    Fp8GemmArgs args;
    args.a = host(a);
    args.b = host(b);
    args.out = host(out);
    args.dequant_scale = host(scale);
    args.bias = host(bias);
    args.out_multiplier = host(multiplier);
    args.amax = host(amax);
    check_pairs(args,
                {{"a", &args.a, false},
                 {"b", &args.b, false},
                 {"out", &args.out, true},
                 {"dequant_scale", &*args.dequant_scale, false},
                 {"bias", &*args.bias, false},
                 {"out_multiplier", &*args.out_multiplier, false},
                 {"amax", &*args.amax, true}},
                [](const auto& call) { fp8_gemm(call); });
}

TEST_CASE("no pair of fp8_linear's tensors shares memory that is written") {
    for (const Fp8Scaling scaling : {Fp8Scaling::delayed, Fp8Scaling::dynamic}) {
        Fp8LinearCase test;
        test.recipe.scaling = scaling;
        Fp8LinearProblem problem(test);
        Fp8LinearArgs args = problem.forward(host);
        check_pairs(
            args,
            {{"x", &args.x, false},
             {"weight", &args.weight, false},
             {"bias", &*args.bias, false},
             {"y", &args.y, true},
             {"state", &args.state, true},
             {"saved.x_codes", &args.saved->x_codes, true},
             {"saved.weight_codes", &args.saved->weight_codes, true},
             {"saved.scales", &args.saved->scales, true}},
            [](const auto& call) { fp8_linear(call); }, reset);

        Fp8LinearBackwardArgs backward = problem.backward(host);
        check_pairs(
            backward,
            {{"grad_y", &backward.grad_y, false},
             {"saved.x_codes", &backward.saved.x_codes, false},
             {"saved.weight_codes", &backward.saved.weight_codes, false},
             {"saved.scales", &backward.saved.scales, false},
             {"grad_x", &*backward.grad_x, true},
             {"grad_weight", &*backward.grad_weight, true},
             {"grad_bias", &*backward.grad_bias, true},
             {"state", &backward.state, true}},
            [](const auto& call) { fp8_linear_backward(call); }, reset);
    }
}

TEST_CASE("columns of one matrix serve as tensors of a layer") {
    Fp8LinearProblem problem({});
    Random random(1);
    problem.fill(random);
    fp8_state_reset(problem.state.view());
    Fp8LinearProblem apart = problem;
    // x, and behind its rows those of y.
    HostTensor wide(DType::bf16, {24, 57});
    const Tensor all = wide.view();
    for (std::int64_t row = 0; row < 24; ++row) {
        for (std::int64_t col = 0; col < 40; ++col)
            wide.put({row, col}, problem.x.at({row, col}));
    }
    Fp8LinearArgs args = problem.forward(host);
    args.x = Tensor::strided(all.data, all.dtype, {24, 40}, {57, 1}, all.device);
    args.y = Tensor::strided(static_cast<std::byte*>(all.data) + 80, all.dtype, {24, 17}, {57, 1},
                             all.device);
    fp8_linear(args);
    fp8_linear(apart.forward(host));
    for (std::int64_t row = 0; row < 24; ++row) {
        for (std::int64_t col = 0; col < 17; ++col)
            CHECK(wide.at({row, 40 + col}) == apart.y.at({row, col}));
    }
    args.y.data = static_cast<std::byte*>(all.data) + 78;
    CHECK_THROWS_WITH_AS(fp8_linear(args), doctest::Contains("y overlaps x"), Error);
}

TEST_CASE("numbers without dimensions are numbers, on the host as for the kernels") {
    HostTensor x(DType::fp32, {4, 16});
    HostTensor codes(DType::fp8_e4m3, {4, 16});
    HostTensor product(DType::fp32, {4, 4});
    x.fill([](std::int64_t i) { return i == 7 ? -9.0 : 1.0; });
    float multiplier = 2.0f;
    float scale = 0;
    float amax = 0;
    const Device cpu{DeviceType::cpu, 0};
    Fp8QuantizeArgs cast;
    cast.x = host(x);
    cast.out = host(codes);
    cast.multiplier = Tensor::contiguous(&multiplier, DType::fp32, {}, cpu);
    cast.scale = Tensor::contiguous(&scale, DType::fp32, {}, cpu);
    cast.amax = Tensor::contiguous(&amax, DType::fp32, {}, cpu);
    fp8_quantize(cast);
    CHECK(scale == 0.5f);
    CHECK(amax == 9.0f);
    Fp8GemmArgs gemm;
    gemm.a = gemm.b = host(codes);
    gemm.trans_b = true;
    gemm.out = host(product);
    gemm.dequant_scale = *cast.scale;
    fp8_gemm(gemm);
    CHECK(product.at({1, 2}) == 32.0);  // 16 products of 2 by 2, halved
    CHECK(product.at({0, 0}) == 192.0);
    gemm.dequant_scale->data = nullptr;
    CHECK_THROWS_WITH_AS(fp8_gemm(gemm), doctest::Contains("no data"), Error);
}

}  // namespace jitney::tests
