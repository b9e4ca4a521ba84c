// Launches of a caller's own kernels that are refused before anything is launched.
#include <cuda.h>

#include <vector>

#include "tests/api/own_kernel_calls.hpp"

namespace jitney::tests {

TEST_CASE("scenario: own parameters" * doctest::skip()) {
    fake::Cuda& fake = fake_cuda();
    declare_parameters();
    const Kernel kernel(scale_code());
    const ScaleValues values;
    const auto refused = [&](const auto& body) {
        const std::string text = refusal(ErrorCode::invalid_argument, body);
        CHECK(contains(text, kScaleName));
        CHECK(fake.launches == 0);
        return text;
    };
    CHECK(contains(refused([&] { kernel.launch({}); }), "it has 3 parameters, and 0 were given"));
    CHECK(contains(refused([&] { kernel.launch({}, values.x, values.n, values.by, 1); }),
                   "it has 3 parameters, and 4 were given"));
    CHECK(contains(refused([&] { kernel.launch({}, values.x, 77LL, values.by); }),
                   "its parameter 2 of 3 has 4 bytes, and one of 8 was given"));
    CHECK(contains(refused([&] { kernel.launch({}, values.x, values.n, 2.5f); }),
                   "its parameter 3 of 3 has 8 bytes, and one of 4 was given"));
    const void* const addresses[] = {&values.x, nullptr, &values.by};
    const std::size_t right[] = {8, 4, 8};
    CHECK(contains(refused([&] { kernel.launch_values({}, addresses, right); }),
                   "the address of its parameter 2 of 3 is null"));
    const std::vector<std::byte> bytes(64);
    for (const std::size_t size : {0u, 8u, 20u, 23u, 25u, 28u, 32u, 48u}) {
        CAPTURE(size);
        const std::string text =
            refused([&] { kernel.launch_packed({}, std::span(bytes.data(), size)); });
        CHECK(contains(text, "its 3 parameters end at byte 24, and " + std::to_string(size)));
    }
    kernel.launch_packed({}, std::span(bytes.data(), 24));
    CHECK(fake.launches == 1);

    // A struct of (int, float4) is no longer than its members; one of (float4, int) is filled up.
    fake.parameters = {{{0, 16}, {16, 4}}};
    fake.parameter_count = 2;
    KernelCode code = scale_code();
    code.function = "other";
    const Kernel other(code);
    for (const std::size_t size : {16u, 19u, 21u, 22u, 28u, 40u})
        CHECK_THROWS_AS(other.launch_packed({}, std::span(bytes.data(), size)), Error);
    for (const std::size_t size : {20u, 24u, 32u})
        CHECK_NOTHROW(other.launch_packed({}, std::span(bytes.data(), size)));

    // One that has none, and a driver that does not tell.
    fake.parameter_count = 0;
    code.function = "none";
    const Kernel none(code);
    CHECK_NOTHROW(none.launch({}));
    CHECK_NOTHROW(none.launch_packed({}, {}));
    CHECK_THROWS_AS(none.launch({}, 1), Error);
    fake.parameter_count = -1;
    code.function = "untold";
    const Kernel untold(code);
    CHECK_NOTHROW(untold.launch({}, values.x));
    CHECK_NOTHROW(untold.launch_packed({}, std::span(bytes.data(), 20)));
    const void* address = &values;
    const std::size_t size[] = {1, 2};
    CHECK_THROWS_AS(untold.launch_values({}, std::span(&address, 1), size), Error);
}

TEST_CASE("own kernels: parameters of another number or size are refused") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: own parameters", fake_gpu(cache)));
}

TEST_CASE("scenario: own shapes" * doctest::skip()) {
    fake::Cuda& fake = fake_cuda();
    fake.block_threads = 512;
    fake.static_shared = 1024;
    const Kernel kernel(scale_code());
    const auto refused = [&](const Kernel& which, const KernelLaunch& shape) {
        const int before = fake.launches;
        const std::string text = refusal(ErrorCode::invalid_argument, [&] { which.launch(shape); });
        CHECK(contains(text, kScaleName));
        CHECK(fake.launches == before);
        return text;
    };
    const auto check = [&](const KernelLaunch& shape, const char* words) {
        const std::string text = refused(kernel, shape);
        CHECK_MESSAGE(contains(text, words), text);
    };
    check({.grid = {0}}, "a grid of 0 x 1 x 1 blocks");
    check({.grid = {1, 0, 1}}, "launch nothing");
    check({.grid = {0x80000000}}, "at most 2147483647 x 65535 x 65535");
    check({.grid = {1, 65536}}, "a grid of 1 x 65536 x 1");
    check({.block = {1, 1, 65}}, "a block of 1 x 1 x 65 threads");
    check({.block = {0}}, "a block of 0 x 1 x 1 threads");
    check({.block = {1025}}, "1024 x 1024 x 64");
    check({.block = {32, 17}}, "a block of 544 threads is more than 512");
    check({.block = {1024, 1024, 64}}, "a block of 67108864 threads");
    check({.shared_bytes = 4097}, "4097 bytes of dynamic shared memory");
    check({.shared_bytes = 0xffffffff}, "shared_bytes of its code are 4096");
    check({.cluster = {2}}, "a grid of 1 x 1 x 1 blocks is not made of clusters of 2 x 1 x 1");
    check({.grid = {4, 3}, .cluster = {2, 2}}, "is not made of clusters");
    check({.grid = {16}, .cluster = {16}}, "clusters of 16 x 1 x 1 blocks are more than 8: ask");
    check({.grid = {4, 4}, .cluster = {4, 4}}, "more than 8");
    check({.cluster = {0, 1, 1}}, "clusters of 0 x 1 x 1 blocks hold none");
    check({.grid = {0xffffffff - 15}, .cluster = {0xffffffff, 2}}, "a grid of");
    CHECK_NOTHROW(kernel.launch({.grid = {8, 65535}, .block = {8, 8, 8}, .cluster = {8}}));

    KernelCode code = scale_code();
    code.large_clusters = true;
    const Kernel large(code);
    CHECK_NOTHROW(large.launch({.grid = {32}, .cluster = {16}}));
    CHECK(fake.large_clusters == 1);
    CHECK(contains(refused(large, {.grid = {32}, .cluster = {32}}), "are more than 16"));

    fake.fixed_cluster = {2, 2, 1};
    code.source += "\n";
    const Kernel fixed(code);
    CHECK_NOTHROW(fixed.launch({.grid = {2, 4}}));
    CHECK(fake.launch.attributes == 0);  // the kernel has it by itself
    CHECK_NOTHROW(fixed.launch({.grid = {2, 4}, .cluster = {2, 2}}));
    CHECK(contains(refused(fixed, {.grid = {4, 4}, .cluster = {4}}), "its text says 2 x 2 x 1"));
    CHECK(contains(refused(fixed, {.grid = {2, 3}}), "not made of clusters of 2 x 2 x 1"));

    code.shared_bytes = 227 * 1024 - 1023;
    code.source += "\n";
    CHECK(contains(refusal(ErrorCode::unsupported, [&] { Kernel(code).load(); }),
                   "needs 232449 bytes of shared memory a block, and Fake GPU (GPU 0) has 232448"));

    fake.launch_result = CUDA_ERROR_ILLEGAL_ADDRESS;
    const std::string broken = refusal(ErrorCode::driver, [&] { kernel.launch({}); });
    CHECK(contains(broken, kScaleName));
    CHECK(contains(broken, "CUDA_ERROR_ILLEGAL_ADDRESS"));
}

TEST_CASE("own kernels: shapes beyond the GPU's and the kernel's limits are refused") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: own shapes", fake_gpu(cache)));
}

}  // namespace jitney::tests
