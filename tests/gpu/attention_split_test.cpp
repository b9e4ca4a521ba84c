// Split-KV: any number of splits gives the same result, the same one every time, and leaves the
// counters of the workspace at zero.
#include <doctest/doctest.h>

#include <algorithm>

#include "jitney/backend.hpp"
#include "kernel_sources/attention/decode_cluster.h"
#include "operations/attention/choose.hpp"
#include "operations/check.hpp"
#include "operations/kernel_launch.hpp"
#include "tests/gpu/attention_case.hpp"
#include "tests/support/made_params.hpp"

namespace jitney::tests {
namespace {

AttentionCase long_keys(const std::string& kernel, std::int64_t kv_len = 20000) {
    AttentionCase test;
    test.shape.batch = 2;
    test.shape.q_len = 3;
    test.shape.kv_len = kv_len;
    test.shape.q_heads = 10;
    test.shape.kv_heads = 2;
    test.shape.head_dim = 128;
    test.shape.causal = true;
    test.kernel = kernel;
    return test;
}

// Launches the kernel with a number of splits of the test's own, as blocks of a cluster or apart;
// returns what the counters are afterwards.
std::vector<unsigned> run_with_splits(const AttentionArgs& args, policy::KernelId kernel,
                                      int splits, bool cluster = false) {
    const policy::AttentionProblem problem = checks::check(args);
    const runtime::DeviceInfo& device = runtime::current_device(0);
    policy::AttentionChoice choice =
        policy::choose_attention(problem, facts_of(device), kernel).value();
    const auto tiles =
        static_cast<std::size_t>(choice.geometry.grid[0]) / static_cast<std::size_t>(choice.splits);
    const std::size_t rows = tiles * static_cast<std::size_t>(splits) *
                             static_cast<std::size_t>(policy::value_of(choice.spec, "tile_m"));
    choice.splits = splits;
    choice.cluster = cluster ? splits : 1;
    choice.geometry.cluster[0] = static_cast<unsigned>(choice.cluster);
    choice.geometry.grid[0] = static_cast<unsigned>(tiles) * static_cast<unsigned>(splits);
    choice.workspace.arrived_bytes = tiles * 4;
    choice.workspace.partial_statistics_bytes = rows * 8;
    choice.workspace.partial_out_bytes = rows * static_cast<std::size_t>(problem.head_dim) * 4;

    const runtime::Kernel& loaded = load_kernel(choice.spec, device, nullptr);
    DeviceBuffer counters(choice.workspace.arrived_bytes);
    counters.fill(std::byte{0});
    DeviceBuffer scratch(choice.workspace.scratch_bytes());
    AttentionParams params = make_params(args, problem, choice, scratch.data(), counters.data());
    launch_kernel(loaded, choice.geometry, &params, nullptr);
    std::vector<unsigned> after(tiles);
    counters.download(std::as_writable_bytes(std::span(after)));
    return after;
}

struct DecodeKernel {
    std::string name;
    policy::KernelId id;
};

const std::vector<DecodeKernel> kDecodeKernels = {
    {"attn_decode_scalar", policy::KernelId::attn_decode_scalar},
    {"attn_decode_mma", policy::KernelId::attn_decode_mma},
    {"attn_decode_cluster", policy::KernelId::attn_decode_cluster}};

// Those of them that the GPU has instructions for.
std::vector<DecodeKernel> decode_kernels() {
    std::vector<DecodeKernel> kernels = kDecodeKernels;
    std::erase_if(kernels, [](const DecodeKernel& kernel) {
        return !policy::runs_on(policy::info(kernel.id), facts_of(runtime::current_device(0)).arch);
    });
    return kernels;
}

// The result, counters and all, of a problem whose keys are divided among so many blocks.
void check_splits(const AttentionCase& test, const AttentionProblem& problem,
                  const DecodeKernel& kernel, int splits, bool cluster) {
    CAPTURE(kernel.name);
    CAPTURE(splits);
    CAPTURE(cluster);
    const DeviceProblem device(problem);
    const std::vector<unsigned> counters =
        run_with_splits(device.args(test.shape), kernel.id, splits, cluster);
    CHECK(std::ranges::all_of(counters, [](unsigned count) { return count == 0; }));
    AttentionProblem expected = problem;
    const HostTensor lse = device.lse.download();
    check_against_reference(expected, device.out.download(), &lse);
}

}  // namespace

TEST_CASE("one split and many agree") {
    for (const DecodeKernel& kernel : decode_kernels()) {
        Random random = Random::fresh();
        const AttentionCase test = long_keys(kernel.name, 3000);
        const AttentionProblem problem(test.shape, random, test.layout);
        for (const int splits : {1, 2, 3, 7, 24, 33, 64, 200})
            check_splits(test, problem, kernel, splits, false);
        if (kernel.id != policy::KernelId::attn_decode_cluster) continue;
        for (int splits = 2; splits <= kMostClusterBlocks; ++splits)
            check_splits(test, problem, kernel, splits, true);
    }
}

TEST_CASE("the policy splits long sequences, and the result is right") {
    std::vector<AttentionCase> cases;
    for (const DecodeKernel& kernel : decode_kernels()) {
        for (const std::int64_t kv_len : {100, 4097, 20000}) {
            cases.push_back(long_keys(kernel.name, kv_len));
        }
    }
    run_cases(cases);
}

TEST_CASE("50 runs of a split problem are equal bit for bit") {
    for (const DecodeKernel& kernel : decode_kernels()) {
        CAPTURE(kernel.name);
        Random random = Random::fresh();
        const AttentionCase test = long_keys(kernel.name);
        const AttentionProblem problem(test.shape, random, test.layout);
        const DeviceProblem device(problem);
        const Scope scope(kernel.name);
        attention(device.args(test.shape));
        const HostTensor first = device.out.download();
        const HostTensor first_lse = device.lse.download();
        for (int i = 0; i < 50; ++i) {
            CAPTURE(i);
            attention(device.args(test.shape));
            REQUIRE(is_identical(device.out.download(), first));
            REQUIRE(is_identical(device.lse.download(), first_lse));
        }
    }
}

TEST_CASE("two runs of every kernel are equal bit for bit") {
    for (const std::string& kernel : kAttentionKernels) {
        CAPTURE(kernel);
        Random random = Random::fresh();
        AttentionCase test = long_keys(kernel, 700);
        test.shape.q_len = 40;
        const AttentionProblem problem(test.shape, random, test.layout);
        const DeviceProblem a(problem);
        const DeviceProblem b(problem);
        const Scope scope(kernel);
        attention(a.args(test.shape));
        attention(b.args(test.shape));
        CHECK(is_identical(a.out.download(), b.out.download()));
        CHECK(is_identical(a.lse.download(), b.lse.download()));
    }
}

TEST_CASE("splits of different sizes follow each other on one stream") {
    const TestStream stream;
    Random random = Random::fresh();
    const Scope scope("attn_decode_mma");
    std::vector<AttentionProblem> problems;
    std::vector<DeviceProblem> devices;
    for (const std::int64_t kv_len : {20000, 300, 9000, 20000, 50, 15000}) {
        const AttentionShape shape = long_keys("", kv_len).shape;
        devices.emplace_back(problems.emplace_back(shape, random));
    }
    for (std::size_t i = 0; i < problems.size(); ++i)
        attention(devices[i].args(problems[i].shape), stream);
    stream.synchronize();
    for (std::size_t i = 0; i < problems.size(); ++i) {
        const HostTensor lse = devices[i].lse.download();
        check_against_reference(problems[i], devices[i].out.download(), &lse);
    }
}

}  // namespace jitney::tests
