// CUDA graphs: calls of loaded kernels are captured and replayed; a kernel that would have to be
// loaded is a typed error.
#include <doctest/doctest.h>

#include "jitney/backend.hpp"
#include "jitney/error.hpp"
#include "tests/gpu/attention_case.hpp"
#include "tests/gpu/graph.hpp"

namespace jitney::tests {
namespace {

AttentionShape shape_for(std::int64_t q_len, std::int64_t head_dim = 64) {
    AttentionShape shape;
    shape.batch = 2;
    shape.q_len = q_len;
    shape.kv_len = 3000;
    shape.q_heads = 8;
    shape.kv_heads = 2;
    shape.head_dim = head_dim;
    shape.causal = true;
    return shape;
}

}  // namespace

TEST_CASE("attention is captured and replayed with new inputs") {
    if (!has_graphs()) return;
    for (const std::string& kernel : kAttentionKernels) {
        CAPTURE(kernel);
        const TestStream stream;
        Random random = Random::fresh();
        const AttentionShape shape = shape_for(4);
        AttentionProblem problem(shape, random);
        DeviceProblem device(problem);
        if (!can_run(kernel, device.args(shape))) continue;
        const Scope scope(kernel);
        attention(device.args(shape), stream);  // loads the kernel
        stream.synchronize();

        const Graph graph(stream, [&] { attention(device.args(shape), stream); });
        for (int replay = 0; replay < 3; ++replay) {
            CAPTURE(replay);
            AttentionProblem next(shape, random);
            device.q.upload(next.q);
            device.k.upload(next.k);
            device.v.upload(next.v);
            device.out.upload(next.out);
            graph.replay(stream);
            stream.synchronize();
            const HostTensor lse = device.lse.download();
            check_against_reference(next, device.out.download(), &lse);
        }
    }
}

TEST_CASE("two calls of one graph share no workspace") {
    if (!has_graphs()) return;
    const TestStream stream;
    Random random = Random::fresh();
    const AttentionShape shape = shape_for(1, 128);
    AttentionProblem first(shape, random);
    AttentionProblem second(shape, random);
    const DeviceProblem a(first);
    const DeviceProblem b(second);
    const Scope scope("attn_decode_mma");
    attention(a.args(shape), stream);
    stream.synchronize();
    const Graph graph(stream, [&] {
        attention(a.args(shape), stream);
        attention(b.args(shape), stream);
    });
    graph.replay(stream);
    graph.replay(stream);
    stream.synchronize();
    check_against_reference(first, a.out.download(), nullptr);
    check_against_reference(second, b.out.download(), nullptr);
}

TEST_CASE("a kernel that is not loaded is a capture error, and the capture goes on") {
    if (!has_graphs()) return;
    const TestStream stream;
    Random random = Random::fresh();
    const AttentionShape shape = shape_for(2, 61);  // of no other test
    AttentionProblem problem(shape, random);
    const DeviceProblem device(problem);
    const DeviceBuffer marker(4);
    const Graph graph(stream, [&] {
        try {
            attention(device.args(shape), stream);
            FAIL("it ran");
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::capture);
            CHECK(std::string(error.what()).find("head_dim=61") != std::string::npos);
        }
        runtime::check(
            cuda().cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(marker.data()), 7, 4, stream),
            "cuMemsetD8Async");
    });
    graph.replay(stream);
    stream.synchronize();
    std::array<std::byte, 4> bytes{};
    marker.download(bytes);
    CHECK(bytes[3] == std::byte{7});
    attention(device.args(shape), stream);
    stream.synchronize();
    const HostTensor lse = device.lse.download();
    check_against_reference(problem, device.out.download(), &lse);
}

}  // namespace jitney::tests
