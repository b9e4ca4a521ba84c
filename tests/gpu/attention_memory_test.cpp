// Where tensors lie: both layouts, padding, one allocation for q, k and v, views without 16-byte
// alignment, strides of 0, and offsets beyond 31 bits.
#include <doctest/doctest.h>

#include <cstring>

#include "jitney/backend.hpp"
#include "tests/gpu/attention_case.hpp"
#include "tests/support/compare.hpp"

namespace jitney::tests {
namespace {

AttentionShape small_shape(std::int64_t q_len, std::int64_t kv_len) {
    AttentionShape shape;
    shape.batch = 2;
    shape.q_len = q_len;
    shape.kv_len = kv_len;
    shape.q_heads = 4;
    shape.kv_heads = 2;
    shape.head_dim = 64;
    shape.causal = true;
    return shape;
}

std::span<const std::byte> row_bytes(const Tensor& tensor, std::int64_t b, std::int64_t l,
                                     std::int64_t h) {
    const std::int64_t offset =
        b * tensor.strides[0] + l * tensor.strides[1] + h * tensor.strides[2];
    const int size = size_of(tensor.dtype);
    return {static_cast<const std::byte*>(tensor.data) + offset * size,
            static_cast<std::size_t>(tensor.shape[3] * size)};
}

// A tensor of a few rows, each at its place in a buffer as large as the strides make it.
class SparseTensor {
  public:
    SparseTensor(HostTensor& host, std::int64_t batch_stride, std::int64_t row_stride,
                 std::int64_t head_stride)
        : host_(host),
          rows_(host.view()),
          view_(host.view()),
          buffer_(bytes_for(host.view(), {batch_stride, row_stride, head_stride})) {
        view_.device = {DeviceType::cuda, 0};
        view_.data = buffer_.data();
        view_.strides = {batch_stride, row_stride, head_stride, 1};
        for_each_row([this](std::span<const std::byte> row, std::size_t offset) {
            buffer_.upload(row, offset);
        });
    }

    const Tensor& view() const { return view_; }

    HostTensor download() {
        HostTensor copy = host_;
        const Tensor rows = copy.view();
        for_each_row([&](std::span<const std::byte> row, std::size_t offset) {
            // The same row of the copy.
            const auto at = row.data() - static_cast<const std::byte*>(rows_.data);
            buffer_.download({static_cast<std::byte*>(rows.data) + at, row.size()}, offset);
        });
        return copy;
    }

  private:
    static std::size_t bytes_for(const Tensor& tensor, std::array<std::int64_t, 3> strides) {
        std::int64_t last = tensor.shape[3];
        for (std::size_t i = 0; i < 3; ++i)
            last += (tensor.shape[i] - 1) * strides[i];
        return static_cast<std::size_t>(last * size_of(tensor.dtype));
    }

    template <class Body>
    void for_each_row(const Body& body) {
        for (std::int64_t b = 0; b < rows_.shape[0]; ++b) {
            for (std::int64_t l = 0; l < rows_.shape[1]; ++l) {
                for (std::int64_t h = 0; h < rows_.shape[2]; ++h) {
                    const std::int64_t offset =
                        b * view_.strides[0] + l * view_.strides[1] + h * view_.strides[2];
                    body(row_bytes(rows_, b, l, h),
                         static_cast<std::size_t>(offset * size_of(rows_.dtype)));
                }
            }
        }
    }

    HostTensor& host_;
    Tensor rows_;
    Tensor view_;
    DeviceBuffer buffer_;
};

}  // namespace

TEST_CASE("both layouts, with and without padding") {
    std::vector<AttentionCase> cases;
    for (const std::string& kernel : kAttentionKernels) {
        for (const Layout& layout :
             {Layout{}, kBhld, Layout{{}, {1, 3, 1, 8}}, Layout{{0, 2, 1, 3}, {1, 3, 1, 16}},
              Layout{{1, 0, 2, 3}, {0, 2, 0, 0}}}) {
            for (const std::int64_t q_len : {1, 3, 50}) {
                const AttentionCase test = {small_shape(q_len, 120), layout, kernel};
                if (can_run(test)) cases.push_back(test);
            }
        }
    }
    run_cases(cases);
}

TEST_CASE("views that are not 16-byte aligned run on the scalar kernels") {
    Random random = Random::fresh();
    for (const std::int64_t q_len : {1, 40}) {
        for (const Layout& layout : {Layout{{}, {0, 0, 0, 1}}, Layout{{}, {0, 0, 0, 3}}}) {
            run_case({small_shape(q_len, 77), layout, ""}, random);
            CHECK(last_run().find("_scalar<") != std::string::npos);
        }
    }
}

TEST_CASE("q, k and v of one allocation") {
    // [batch, length, 3, heads, head_dim], as one projection makes it.
    for (const std::string& kernel : kAttentionKernels) {
        CAPTURE(kernel);
        Random random = Random::fresh();
        constexpr std::int64_t length = 45;
        HostTensor qkv(DType::bf16, {2, length, 12, 64});
        qkv.fill_normal(random);
        HostTensor out(DType::bf16, {2, length, 4, 64});
        const auto part = [](Tensor whole, std::int64_t which) {
            const std::int64_t offset = which * 4 * 64;
            return Tensor::strided(static_cast<std::byte*>(whole.data) + offset * 2, DType::bf16,
                                   {2, length, 4, 64}, {length * 12 * 64, 12 * 64, 64, 1},
                                   whole.device);
        };
        const DeviceTensor device_qkv(qkv);
        const DeviceTensor device_out(out);
        AttentionArgs args;
        args.q = part(device_qkv.view(), 0);
        args.k = part(device_qkv.view(), 1);
        args.v = part(device_qkv.view(), 2);
        args.out = device_out.view();
        if (!can_run(kernel, args)) continue;
        {
            const Scope scope(kernel);
            attention(args);
        }
        const HostTensor actual = device_out.download();

        reference::Attention call;
        call.q = part(qkv.view(), 0);
        call.k = part(qkv.view(), 1);
        call.v = part(qkv.view(), 2);
        call.out = out.view();
        reference::attention(call);
        JITNEY_CHECK_CLOSE(actual, out, (Tolerance{1e-2, 1e-2}));
        CHECK(actual.surroundings_intact());
    }
}

TEST_CASE("keys and values shared by all requests, by a stride of 0") {
    for (const std::string& kernel : kAttentionKernels) {
        CAPTURE(kernel);
        Random random = Random::fresh();
        AttentionProblem problem(small_shape(5, 70), random);
        const DeviceProblem device(problem);
        AttentionArgs args = device.args(problem.shape);
        args.k.strides[0] = 0;
        args.v.strides[0] = 0;
        if (!can_run(kernel, args)) continue;
        {
            const Scope scope(kernel);
            attention(args);
        }
        reference::Attention call = problem.reference_call();
        call.k.strides[0] = 0;
        call.v.strides[0] = 0;
        reference::attention(call);
        JITNEY_CHECK_CLOSE(device.out.download(), problem.out, (Tolerance{1e-2, 1e-2}));
    }
}

TEST_CASE("offsets beyond 2^31 elements" * doctest::test_suite(kLargeMemory)) {
    constexpr std::int64_t far = (std::int64_t{1} << 31) + 64;
    // The largest buffers are live together: K and V, and later Q and out.
    if (!has_free_memory(20)) return;
    for (const std::string& kernel : kAttentionKernels) {
        CAPTURE(kernel);
        Random random = Random::fresh();
        {
            AttentionProblem problem(small_shape(3, 20), random);
            SparseTensor k(problem.k, far, 128, 64);
            SparseTensor v(problem.v, far, 128, 64);
            const DeviceProblem device(problem);
            AttentionArgs args = device.args(problem.shape);
            args.k = k.view();
            args.v = v.view();
            if (!can_run(kernel, args)) continue;
            const Scope scope(kernel);
            attention(args);
            const HostTensor lse = device.lse.download();
            check_against_reference(problem, device.out.download(), &lse);
        }
        {
            AttentionProblem problem(small_shape(3, 4), random);
            SparseTensor q(problem.q, 256, far / 2, 64);
            SparseTensor out(problem.out, 256, far / 2, 64);
            SparseTensor k(problem.k, 128, 1 << 20, far);
            const DeviceProblem device(problem);
            AttentionArgs args = device.args(problem.shape);
            args.q = q.view();
            args.out = out.view();
            args.k = k.view();
            const Scope scope(kernel);
            attention(args);
            const HostTensor lse = device.lse.download();
            check_against_reference(problem, out.download(), &lse);
        }
    }
}

}  // namespace jitney::tests
