// Streams, threads, contexts and devices.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <thread>

#include "jitney/backend.hpp"
#include "jitney/error.hpp"
#include "runtime/device.hpp"
#include "tests/gpu/attention_case.hpp"

namespace jitney::tests {
namespace {

using runtime::check;

AttentionShape split_shape() {
    AttentionShape shape;
    shape.batch = 1;
    shape.q_len = 1;
    shape.kv_len = 9000;
    shape.q_heads = 8;
    shape.kv_heads = 1;
    shape.head_dim = 64;
    return shape;
}

void run_and_check(Random& random, Stream stream, int device_index = 0) {
    AttentionProblem problem(split_shape(), random);
    const DeviceProblem device(problem, device_index);
    attention(device.args(problem.shape), stream);
    check(cuda().cuStreamSynchronize(stream), "cuStreamSynchronize");
    const HostTensor lse = device.lse.download();
    check_against_reference(problem, device.out.download(), &lse);
}

}  // namespace

TEST_CASE("two streams at once, a hundred calls each") {
    Random random = Random::fresh();
    std::vector<AttentionProblem> problems;
    std::vector<DeviceProblem> devices;
    for (int i = 0; i < 2; ++i)
        devices.emplace_back(problems.emplace_back(split_shape(), random));
    const TestStream first;
    const TestStream second;
    const Scope scope("attn_decode_mma");
    for (int i = 0; i < 100; ++i) {
        attention(devices[0].args(problems[0].shape), first);
        attention(devices[1].args(problems[1].shape), second);
    }
    first.synchronize();
    second.synchronize();
    for (std::size_t i = 0; i < 2; ++i) {
        const HostTensor lse = devices[i].lse.download();
        check_against_reference(problems[i], devices[i].out.download(), &lse);
    }
}

TEST_CASE("several threads, each without a context at first, and all on one stream") {
    const TestStream stream;
    std::vector<std::string> failures(6);
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < failures.size(); ++i) {
            threads.emplace_back([&failures, &stream, i] {
                try {
                    runtime::current_device(0);  // for the test's own memory
                    Random random(1000 + i);
                    AttentionProblem problem(split_shape(), random);
                    const DeviceProblem device(problem);
                    for (int call = 0; call < 20; ++call)
                        attention(device.args(problem.shape), stream);
                    stream.synchronize();
                    const HostTensor out = device.out.download();
                    reference::attention(problem.reference_call());
                    for (std::int64_t e = 0; e < out.elements(); ++e) {
                        const double error = out.get(e) - problem.out.get(e);
                        if (!(error < 2e-2 && error > -2e-2)) failures[i] = "a wrong element";
                    }
                } catch (const std::exception& error) {
                    failures[i] = error.what();
                }
            });
        }
    }
    for (const std::string& failure : failures)
        CHECK(failure == "");
}

TEST_CASE("a thread without a context is lent the primary one for a call") {
    Random random = Random::fresh();
    AttentionProblem problem(split_shape(), random);
    const DeviceProblem device(problem);
    std::string failure;
    std::jthread([&] {
        try {
            for (int i = 0; i < 3; ++i) {
                attention(device.args(problem.shape));
                CUcontext mine = nullptr;
                check(cuda().cuCtxGetCurrent(&mine), "cuCtxGetCurrent");
                if (mine != nullptr) failure = "the context stayed";
            }
            const runtime::DeviceScope scope(0);
            synchronize();
        } catch (const std::exception& error) {
            failure = error.what();
        }
    }).join();
    CHECK(failure == "");
    const HostTensor lse = device.lse.download();
    check_against_reference(problem, device.out.download(), &lse);
}

TEST_CASE("a second context of the same device") {
    // Of the oldest form, which every driver keeps.
    using Create = CUresult (*)(CUcontext*, unsigned, CUdevice);
    using Destroy = CUresult (*)(CUcontext);
    void* library = dlopen(runtime::driver_status().path.c_str(), RTLD_NOW);
    REQUIRE(library != nullptr);
    const auto create = reinterpret_cast<Create>(dlsym(library, "cuCtxCreate_v2"));
    const auto destroy = reinterpret_cast<Destroy>(dlsym(library, "cuCtxDestroy_v2"));
    REQUIRE((create != nullptr && destroy != nullptr));

    Random random = Random::fresh();
    run_and_check(random, nullptr);  // loaded in the primary context
    for (int i = 0; i < 2; ++i) {
        CUcontext context = nullptr;
        check(create(&context, 0, runtime::device(0).handle), "cuCtxCreate");
        run_and_check(random, nullptr);
        {
            const TestStream stream;
            run_and_check(random, stream);
        }
        check(destroy(context), "cuCtxDestroy");
    }
    run_and_check(random, nullptr);
    dlclose(library);
}

TEST_CASE("tensors of another device than the context's") {
    Random random = Random::fresh();
    AttentionProblem problem(split_shape(), random);
    const DeviceProblem device(problem, 63);
    try {
        attention(device.args(problem.shape));
        FAIL("it ran");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::no_device);
        CHECK(std::string(error.what()).find("GPU 63") != std::string::npos);
    }
}

TEST_CASE("every device of the process") {
    for (int ordinal = 1; ordinal < runtime::device_count(); ++ordinal) {
        CAPTURE(ordinal);
        const runtime::DeviceScope scope(ordinal);
        Random random = Random::fresh();
        run_and_check(random, nullptr, ordinal);
    }
    if (runtime::device_count() == 1) MESSAGE("there is one");
}

}  // namespace jitney::tests
