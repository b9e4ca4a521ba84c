// fp8_quantize against the reference, bit for bit.
#include "jitney/fp8_quantize.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "jitney/backend.hpp"
#include "operations/check.hpp"
#include "operations/kernel_launch.hpp"
#include "policy/spec.hpp"
#include "tests/gpu/device.hpp"
#include "tests/gpu/graph.hpp"
#include "tests/support/fp8_quantize_problem.hpp"
#include "tests/support/made_params.hpp"

namespace jitney::tests {
namespace {

// The tensors of a problem on the GPU.
struct OnGpu {
    explicit OnGpu(const Fp8QuantizeProblem& problem)
        : x(problem.x),
          out(problem.out),
          out_transposed(problem.out_transposed),
          multiplier(problem.multiplier),
          scale(problem.scale),
          amax(problem.amax) {}

    Fp8QuantizeArgs args(Fp8QuantizeProblem& problem) const {
        return problem.args([&](const HostTensor& tensor) {
            if (&tensor == &problem.x) return x.view();
            if (&tensor == &problem.out) return out.view();
            if (&tensor == &problem.out_transposed) return out_transposed.view();
            if (&tensor == &problem.multiplier) return multiplier.view();
            return &tensor == &problem.scale ? scale.view() : amax.view();
        });
    }

    void download(Fp8QuantizeProblem& problem) const {
        problem.out = out.download();
        problem.out_transposed = out_transposed.download();
        problem.multiplier = multiplier.download();
        problem.scale = scale.download();
        problem.amax = amax.download();
    }

    DeviceTensor x;
    DeviceTensor out;
    DeviceTensor out_transposed;
    DeviceTensor multiplier;
    DeviceTensor scale;
    DeviceTensor amax;
};

void check_problem(Fp8QuantizeProblem problem, Random& random) {
    INFO(problem.test.text(), " ", random.text());
    Fp8QuantizeProblem expected = problem;
    const OnGpu tensors(problem);
    const auto granularity = static_cast<int>(problem.test.granularity);
    const std::string kernel(policy::info(policy::fp8_quantize_kernel(granularity)).name);
    const Scope scope(kernel);
    fp8_quantize(tensors.args(problem));
    CHECK(last_run().starts_with(kernel + "<"));
    tensors.download(problem);
    expected.run_reference();
    const std::string difference = problem.difference(expected);
    CHECK_MESSAGE(difference.empty(), difference);
}

void check_case(const Fp8QuantizeCase& test, Random& random) {
    check_problem(Fp8QuantizeProblem(test, random), random);
}

constexpr Fp8Granularity kParts[] = {Fp8Granularity::row, Fp8Granularity::group,
                                     Fp8Granularity::block};

Fp8QuantizeCase random_case_of_parts(Random& random) {
    Fp8QuantizeCase test;
    test.ask_for(kParts[random.integer(0, 2)]);
    test.dtype = static_cast<DType>(random.integer(0, 2));
    test.out = random.chance(0.5) ? DType::fp8_e4m3 : DType::fp8_e5m2;
    const std::int64_t step = random.chance(0.5) ? 128 : 1;
    test.shape = {random.integer(1, 300), step * random.integer(1, 1500 / step)};
    if (random.chance(0.1)) test.shape = {random.integer(1, 3), random.integer(1, 40000)};
    if (test.granularity == Fp8Granularity::row) {
        // Each width that takes another number of threads is a kernel to compile.
        constexpr std::int64_t widths[] = {1, 130, 200, 1024, 1000, 4100};
        test.shape = {random.integer(1, 300), widths[random.integer(0, 5)]};
    }
    test.turned_scales = random.chance(0.5);
    test.power_of_two = random.chance(0.3);
    if (random.chance(0.4)) test.x_padding = random.integer(1, 17);
    if (random.chance(0.4)) test.out_padding = random.integer(1, 17);
    return test;
}

}  // namespace

TEST_CASE("fp8_quantize: every bf16 and fp16 number, with the instruction and without") {
    Random random = Random::fresh();
    for (const DType dtype : {DType::bf16, DType::fp16}) {
        for (const DType out : {DType::fp8_e4m3, DType::fp8_e5m2}) {
            Fp8QuantizeCase test;
            test.dtype = dtype;
            test.out = out;
            test.shape = {65536};
            test.multiplier.reset();
            Fp8QuantizeProblem problem(test, random);
            problem.x = every_number(dtype);
            check_problem(problem, random);

            // The same launch of the specialization that has no use for the instruction.
            const OnGpu tensors(problem);
            const Fp8QuantizeArgs args = tensors.args(problem);
            const runtime::DeviceInfo& device = enter_device({DeviceType::cuda, 0});
            policy::Fp8QuantizeChoice choice =
                policy::choose_fp8_quantize(checks::check(args), facts_of(device));
            choice.spec.values[4] = 1;
            REQUIRE(policy::text_of(choice.spec).find("software=1") != std::string::npos);
            Fp8QuantizeParams params = make_params(args, choice, {}, nullptr);
            launch_kernel(load_kernel(choice.spec, device, nullptr), choice.geometry, &params,
                          nullptr);
            Fp8QuantizeProblem software = problem;
            tensors.download(software);
            problem.run_reference();
            CHECK(differing(software.out, problem.out) == 0);
        }
    }
}

TEST_CASE("fp8_quantize: shapes, formats and outputs") {
    Random random = Random::fresh();
    std::vector<std::vector<std::int64_t>> shapes = {
        {1, 16},  {5, 4, 3, 160}, {1, 3221}, {2333, 1},  {1481, 677},
        {64, 17}, {1, 1},         {3, 1025}, {16, 5137}, {130, 8193}};
    if (!is_quick()) shapes.push_back({16384, 1616});
    int count = 0;
    for (const auto& shape : shapes) {
        for (const DType dtype : {DType::bf16, DType::fp16, DType::fp32}) {
            for (const DType out : {DType::fp8_e4m3, DType::fp8_e5m2}) {
                for (const int codes : {1, 2, 3}) {
                    if (shape[0] == 16384 && (dtype != DType::bf16 || out != DType::fp8_e4m3)) {
                        continue;
                    }
                    Fp8QuantizeCase test;
                    test.dtype = dtype;
                    test.out = out;
                    test.shape = shape;
                    test.rows = (codes & 1) != 0;
                    test.transposed = (codes & 2) != 0;
                    test.amax = random.chance(0.5);
                    test.scale = random.chance(0.5);
                    test.dynamic = random.chance(0.3);
                    test.multiplier = random.uniform(0.01, 4.0);
                    check_case(test, random);
                    ++count;
                }
            }
        }
    }
    MESSAGE(count, " problems, ", random.text());
}

TEST_CASE("fp8_quantize: strides and alignment of every kind are honoured") {
    Random random = Random::fresh();
    for (const std::int64_t cols : {1, 17, 64, 200, 1025}) {
        for (const std::int64_t padding : {1, 8, 16}) {
            for (const bool transposed : {false, true}) {
                Fp8QuantizeCase test;
                test.shape = {77, cols};
                test.x_padding = padding;
                test.out_padding = padding;
                test.transposed = transposed;
                test.transposed_padding = padding + 3;
                test.amax = true;
                check_case(test, random);
            }
        }
    }
    // Bases one element off: views into larger buffers.
    Fp8QuantizeCase test;
    test.shape = {100, 130};
    test.transposed = test.amax = true;
    Fp8QuantizeProblem problem(test, random);
    const OnGpu tensors(problem);
    Fp8QuantizeArgs args = tensors.args(problem);
    const auto off_by_one = [](Tensor& tensor) {
        tensor.data = static_cast<std::byte*>(tensor.data) + size_of(tensor.dtype);
        tensor.shape[1] -= 1;
    };
    off_by_one(args.x);
    off_by_one(*args.out);
    args.out_transposed->data = static_cast<std::byte*>(args.out_transposed->data) + 100;
    args.out_transposed->shape[0] -= 1;
    fp8_quantize(args);
    tensors.download(problem);
    Fp8QuantizeProblem expected = problem;
    expected.run_reference();
    std::int64_t wrong = 0;
    for (std::int64_t row = 0; row < 100; ++row) {
        for (std::int64_t col = 1; col < 130; ++col) {
            wrong += problem.out.at({row, col}) == expected.out.at({row, col}) ? 0 : 1;
            wrong += problem.out_transposed.at({col, row}) == expected.out.at({row, col}) ? 0 : 1;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("fp8_quantize: amax zero, tiny, normal, infinite and NaN, given and dynamic") {
    Random random = Random::fresh();
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (const DType out : {DType::fp8_e4m3, DType::fp8_e5m2}) {
        for (const double extreme : {0.0, 1e-42, 3.5, kInfinity, -kInfinity, std::nan("")}) {
            for (const bool dynamic : {false, true}) {
                Fp8QuantizeCase test;
                test.dtype = DType::fp32;
                test.out = out;
                test.shape = {67, 300};
                test.transposed = test.amax = test.scale = true;
                test.dynamic = dynamic;
                Fp8QuantizeProblem problem(test, random);
                const double others = extreme == 0.0 || extreme == 1e-42 ? 0.0 : 1.0;
                problem.x.fill([&](std::int64_t i) { return i % 2 == 0 ? others : -others; });
                problem.x.set(random.integer(0, 67 * 300 - 1), extreme);
                check_problem(problem, random);
            }
        }
    }
}

TEST_CASE("fp8_quantize: random problems") {
    Random random = Random::fresh();
    for (int i = 0; i < (is_quick() ? 60 : 400); ++i) {
        Fp8QuantizeCase test;
        test.dtype = static_cast<DType>(random.integer(0, 2));
        test.out = random.chance(0.5) ? DType::fp8_e4m3 : DType::fp8_e5m2;
        const std::int64_t step = random.chance(0.5) ? 16 : 1;
        test.shape = {step * random.integer(1, 500 / step), step * random.integer(1, 600 / step)};
        test.rows = random.chance(0.7);
        test.transposed = random.chance(0.6);
        test.amax = random.chance(0.5) || (!test.rows && !test.transposed);
        test.dynamic = (test.rows || test.transposed) && random.chance(0.4);
        test.multiplier.reset();
        if ((test.rows || test.transposed) && random.chance(0.7)) {
            test.multiplier = random.uniform(0.01, 5.0);
            test.scale = random.chance(0.5);
        }
        if (random.chance(0.4)) test.x_padding = random.integer(1, 17);
        if (random.chance(0.4)) test.out_padding = random.integer(1, 17);
        if (random.chance(0.4)) test.transposed_padding = random.integer(1, 17);
        check_case(test, random);
    }
}

TEST_CASE("fp8_quantize: a scale a row, a group, a block: random problems") {
    Random random = Random::fresh();
    const int count = is_quick() ? 100 : 1000;
    for (int i = 0; i < count; ++i) {
        check_case(random_case_of_parts(random), random);
    }
    MESSAGE(count, " problems, ", random.text());
}

TEST_CASE("fp8_quantize: many rows, of which a thread takes more") {
    Random random = Random::fresh();
    for (const std::int64_t cols : {1024, 5120, 14336}) {
        Fp8QuantizeCase test;
        test.ask_for(Fp8Granularity::row);
        test.shape = {cols < 2000 ? 5001 : 900, cols};
        check_case(test, random);
    }
}

TEST_CASE("fp8_quantize: a scale a row, a group, a block: widths and extremes") {
    Random random = Random::fresh();
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (const Fp8Granularity parts : kParts) {
        for (const std::int64_t cols :
             {1, 7, 8, 127, 128, 129, 1000, 4096, 4097, 5120, 14336, 16392, 70000}) {
            Fp8QuantizeCase test;
            test.ask_for(parts);
            test.shape = {parts == Fp8Granularity::block ? 130 : 9, cols};
            Fp8QuantizeProblem problem(test, random);
            for (const double extreme : {std::nan(""), -kInfinity, 0.0, 3e38})
                problem.x.set(random.integer(0, problem.x.elements() - 1), extreme);
            for (std::int64_t col = 0; col < cols; ++col)
                problem.x.set(4 * cols + col, 0.0);
            check_problem(problem, random);
        }
    }
}

TEST_CASE("fp8_quantize: rows of scales past 2^31 elements" * doctest::test_suite(kLargeMemory)) {
    if (!has_free_memory(8)) return;
    constexpr std::int64_t rows = 129;
    constexpr std::int64_t stride = std::int64_t{1} << 25;
    const DeviceBuffer out(static_cast<std::size_t>(rows * stride));
    Random random = Random::fresh();
    for (const Fp8Granularity parts : kParts) {
        Fp8QuantizeCase test;
        test.ask_for(parts);
        test.shape = {rows, 256};
        Fp8QuantizeProblem problem(test, random);
        const OnGpu tensors(problem);
        Fp8QuantizeArgs args = tensors.args(problem);
        args.out = Tensor::strided(out.data(), test.out, {rows, 256}, {stride, 1});
        fp8_quantize(args);
        Fp8QuantizeProblem expected = problem;
        expected.run_reference();
        for (const std::int64_t row : {std::int64_t{0}, rows - 1}) {
            std::vector<std::byte> codes(256);
            out.download(codes, static_cast<std::size_t>(row * stride));
            const auto* wanted = static_cast<const std::byte*>(expected.out.view().data);
            CHECK(std::equal(codes.begin(), codes.end(), wanted + row * 256));
        }
    }
}

TEST_CASE("fp8_quantize of several scales under the sanitizer" * doctest::test_suite("sanitizer")) {
    Random random = Random::fresh();
    for (const Fp8Granularity parts : kParts) {
        for (const std::int64_t cols : {8, 67, 640, 1032, 9000}) {
            for (const std::int64_t padding : {0, 3}) {
                Fp8QuantizeCase test;
                test.ask_for(parts);
                test.shape = {150, cols};
                test.x_padding = test.out_padding = padding;
                test.turned_scales = padding != 0;
                check_case(test, random);
            }
        }
    }
}

TEST_CASE("fp8_quantize: offsets past 2^31 elements" * doctest::test_suite(kLargeMemory)) {
    if (!has_free_memory(16)) return;
    // Rows so far apart that the last begins past 2^32 bytes.
    constexpr std::int64_t rows = 5;
    constexpr std::int64_t stride = (std::int64_t{1} << 29) + 16;
    const DeviceBuffer x(static_cast<std::size_t>(rows * stride) * 2);
    const DeviceBuffer out(static_cast<std::size_t>(rows * stride));
    DeviceBuffer numbers(4);
    std::vector<std::uint16_t> ones(64, 0x3f80);
    for (std::int64_t row = 0; row < rows; ++row) {
        const CUdeviceptr to =
            std::bit_cast<CUdeviceptr>(x.data()) + static_cast<CUdeviceptr>(row * stride) * 2;
        REQUIRE(cuda().cuMemcpyHtoDAsync(to, ones.data(), 128, nullptr) == CUDA_SUCCESS);
        synchronize();
    }
    Fp8QuantizeArgs args;
    args.x = Tensor::strided(x.data(), DType::bf16, {rows, 64}, {stride, 1});
    args.out = Tensor::strided(out.data(), DType::fp8_e4m3, {rows, 64}, {stride, 1});
    args.amax = Tensor::contiguous(numbers.data(), DType::fp32, {1});
    fp8_quantize(args);
    for (std::int64_t row = 0; row < rows; ++row) {
        std::vector<std::byte> codes(64);
        out.download(codes, static_cast<std::size_t>(row * stride));
        for (const std::byte code : codes)
            CHECK(code == std::byte{0x38});
    }
    // And more elements than an int counts, in one row.
    args.x = Tensor::contiguous(x.data(), DType::bf16, {(std::int64_t{1} << 31) + 40});
    args.out = Tensor::contiguous(out.data(), DType::fp8_e4m3, {(std::int64_t{1} << 31) + 40});
    fp8_quantize(args);
    std::vector<std::byte> codes(64);
    out.download(codes, static_cast<std::size_t>(3 * stride));
    for (const std::byte code : codes)
        CHECK(code == std::byte{0x38});
}

TEST_CASE("fp8_quantize under the sanitizer" * doctest::test_suite("sanitizer")) {
    Random random = Random::fresh();
    for (const std::int64_t cols : {64, 67}) {
        for (const int codes : {1, 2, 3}) {
            for (const bool dynamic : {false, true}) {
                Fp8QuantizeCase test;
                test.shape = {300, cols};
                test.rows = (codes & 1) != 0;
                test.transposed = (codes & 2) != 0;
                test.amax = test.scale = true;
                test.dynamic = dynamic;
                check_case(test, random);
            }
        }
    }
}

TEST_CASE("fp8_quantize: an empty matrix launches nothing and has an amax of 0") {
    Random random(1);
    for (const auto& shape : std::vector<std::vector<std::int64_t>>{{0, 32}, {32, 0}}) {
        Fp8QuantizeCase test;
        test.shape = shape;
        test.amax = test.dynamic = test.scale = true;
        Fp8QuantizeProblem problem(test, random);
        const OnGpu tensors(problem);
        fp8_quantize(tensors.args(problem));
        CHECK(last_run().empty());
        tensors.download(problem);
        CHECK(problem.amax.get(0) == 0.0);
        CHECK(problem.multiplier.get(0) == 1.0);
        CHECK(problem.scale.get(0) == 1.0);
    }
}

TEST_CASE("fp8_quantize: an empty matrix with a multiplier has the scale of it") {
    Random random(1);
    for (const auto& shape : std::vector<std::vector<std::int64_t>>{{0, 32}, {32, 0}, {0}}) {
        for (const bool transposed : {false, true}) {
            for (const bool amax : {false, true}) {
                Fp8QuantizeCase test;
                test.shape = shape;
                test.transposed = transposed;
                test.amax = amax;
                test.scale = true;
                test.multiplier = 4.0;
                Fp8QuantizeProblem problem(test, random);
                problem.amax.set(0, 7.0);
                const OnGpu tensors(problem);
                fp8_quantize(tensors.args(problem));
                tensors.download(problem);
                CHECK(problem.scale.get(0) == 0.25);
                CHECK(problem.amax.get(0) == (amax ? 0.0 : 7.0));
            }
        }
    }
}

TEST_CASE("fp8_quantize: dynamic scaling in a graph follows what x holds") {
    if (!has_graphs()) return;
    Random random = Random::fresh();
    Fp8QuantizeCase test;
    test.shape = {64, 96};
    test.amax = test.dynamic = test.scale = true;
    Fp8QuantizeProblem problem(test, random);
    OnGpu tensors(problem);
    const TestStream stream;
    Fp8QuantizeArgs args = tensors.args(problem);
    fp8_quantize(args, stream);  // loads the kernels
    // The first replay in memory of the graph's own, the others in the caller's.
    const Graph in_the_graphs(stream, [&] { fp8_quantize(args, stream); });
    const DeviceBuffer memory(workspace_bytes(args));
    args.workspace = {memory.data(), workspace_bytes(args)};
    init_workspace(args.workspace, args.x.device, stream);
    const Graph in_the_callers(stream, [&] { fp8_quantize(args, stream); });
    for (int i = 0; i < 3; ++i) {
        problem.x.fill_normal(random, 10.0 * (i + 1));
        tensors.x.upload(problem.x);
        synchronize();
        (i == 0 ? in_the_graphs : in_the_callers).replay(stream);
        stream.synchronize();
        tensors.download(problem);
        Fp8QuantizeProblem expected = problem;
        expected.run_reference();
        const std::string difference = problem.difference(expected);
        CHECK_MESSAGE(difference.empty(), difference);
    }
}

}  // namespace jitney::tests
