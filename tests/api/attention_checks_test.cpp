// Every bad call of attention is refused with a sentence, and nothing is launched.
#include <cmath>
#include <limits>

#include "jitney/attention.hpp"
#include "jitney/backend.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fake_gpu.hpp"

namespace jitney::tests {
namespace {

using Bad = BadCall<AttentionArgs>;

// Tensors of a good call: batch 2, 3 queries, 5 keys, heads 4/2, head_dim 8.
struct GoodCall {
    explicit GoodCall(const Device& where) : device(where) {}

    AttentionArgs args() {
        AttentionArgs args;
        args.q = q.view(device);
        args.k = k.view(device);
        args.v = v.view(device);
        args.out = out.view(device);
        args.mask = mask.view(device);
        args.lse = lse.view(device);
        return args;
    }

    Device device;
    HostTensor q{DType::bf16, {2, 3, 4, 8}};
    HostTensor k{DType::bf16, {2, 5, 2, 8}};
    HostTensor v{DType::bf16, {2, 5, 2, 8}};
    HostTensor out{DType::bf16, {2, 3, 4, 8}};
    HostTensor mask{DType::boolean, {2, 3, 5}};
    HostTensor lse{DType::fp32, {2, 4, 3}};
};

void set_all(AttentionArgs& args, DType dtype) {
    args.q.dtype = args.k.dtype = args.v.dtype = args.out.dtype = dtype;
}

std::vector<Bad> bad_dtypes() {
    return {
        {"int8-like q", [](auto& a) { set_all(a, DType::fp8_e4m3); }, {"q", "fp8_e4m3", "bf16"}},
        {"int32", [](auto& a) { set_all(a, DType::int32); }, {"q", "int32"}},
        {"k differs", [](auto& a) { a.k.dtype = DType::fp16; }, {"q", "bf16", "k", "fp16"}},
        {"v differs", [](auto& a) { a.v.dtype = DType::fp32; }, {"v", "fp32"}},
        {"out differs", [](auto& a) { a.out.dtype = DType::fp16; }, {"out", "fp16"}},
        {"mask is no bool", [](auto& a) { a.mask->dtype = DType::int32; }, {"mask", "bool"}},
        {"lse is no fp32", [](auto& a) { a.lse->dtype = DType::bf16; }, {"lse", "fp32", "bf16"}},
    };
}

std::vector<Bad> bad_shapes() {
    return {
        {"q of 3 dimensions", [](auto& a) { a.q.ndim = 3; }, {"q has 3 dimensions", "[2, 3, 4]"}},
        {"k of 5 dimensions", [](auto& a) { a.k.ndim = 5; }, {"k has 5 dimensions"}},
        {"dimensions beyond all", [](auto& a) { a.v.ndim = 77; }, {"v has 77 dimensions"}},
        {"negative dimensions", [](auto& a) { a.v.ndim = -1; }, {"v has -1 dimensions"}},
        {"a negative size", [](auto& a) { a.q.shape[1] = -3; }, {"q", "-3"}},
        {"a size beyond 31 bits",
         [](auto& a) { a.q.shape[1] = a.out.shape[1] = std::int64_t{1} << 31; },
         {"q", "2147483648", "split"}},
        {"keys beyond the limit",
         [](auto& a) { a.k.shape[1] = a.v.shape[1] = 0x7fffffff; },
         {"kv_len is 2147483647"}},
        {"rows beyond 31 bits",
         [](auto& a) { a.q.shape[1] = a.out.shape[1] = std::int64_t{1} << 30; },
         {"q_len 1073741824", "2147483648 rows", "split"}},
        {"heads beyond 31 bits",
         [](auto& a) { a.q.shape[0] = a.k.shape[0] = a.v.shape[0] = a.out.shape[0] = 0x7fffffff; },
         {"batch 2147483647", "4294967294"}},
        {"head_dim 0",
         [](auto& a) { a.q.shape[3] = a.k.shape[3] = a.v.shape[3] = a.out.shape[3] = 0; },
         {"head_dim", "is 0"}},
        {"batch of k",
         [](auto& a) { a.k.shape[0] = 3; },
         {"k has the shape [3, 5, 2, 8]", "[2, 5"}},
        {"head_dim of k", [](auto& a) { a.k.shape[3] = 16; }, {"k", "[2, 5, 2, 16]"}},
        {"length of v", [](auto& a) { a.v.shape[1] = 4; }, {"v", "[2, 4, 2, 8]", "[2, 5, 2, 8]"}},
        {"heads of v", [](auto& a) { a.v.shape[2] = 1; }, {"v", "[2, 5, 1, 8]"}},
        {"head_dim of v", [](auto& a) { a.v.shape[3] = 4; }, {"v", "[2, 5, 2, 4]"}},
        {"length of out", [](auto& a) { a.out.shape[1] = 2; }, {"out", "[2, 2, 4, 8]"}},
        {"a ratio that does not divide",
         [](auto& a) { a.k.shape[2] = a.v.shape[2] = 3; },
         {"q has 4 heads", "k has 3", "divide"}},
        {"no KV heads", [](auto& a) { a.k.shape[2] = a.v.shape[2] = 0; }, {"k has 0"}},
    };
}

std::vector<Bad> bad_memory() {
    return {
        {"q is null", [](auto& a) { a.q.data = nullptr; }, {"q", "null"}},
        {"k is null", [](auto& a) { a.k.data = nullptr; }, {"k", "null"}},
        {"v is null", [](auto& a) { a.v.data = nullptr; }, {"v", "null"}},
        {"out is null", [](auto& a) { a.out.data = nullptr; }, {"out", "null"}},
        {"mask is null", [](auto& a) { a.mask->data = nullptr; }, {"mask", "null"}},
        {"lse is null", [](auto& a) { a.lse->data = nullptr; }, {"lse", "null"}},
        {"an odd address",
         [](auto& a) { a.q.data = static_cast<std::byte*>(a.q.data) + 1; },
         {"q begins at", "2 bytes", "bf16"}},
        {"innermost stride of q", [](auto& a) { a.q.strides[3] = 2; }, {"q", "innermost", "2]"}},
        {"innermost stride of v", [](auto& a) { a.v.strides[3] = 0; }, {"v", "innermost"}},
        {"innermost stride of mask",
         [](auto& a) { a.mask->strides[2] = 2; },
         {"mask", "innermost"}},
        {"out on one row",
         [](auto& a) { a.out.strides[1] = 0; },
         {"out", "overlap", "dimension 1"}},
        {"out on one batch", [](auto& a) { a.out.strides[0] = 0; }, {"out", "overlap"}},
        {"out with rows inside each other", [](auto& a) { a.out.strides[2] = 7; }, {"out", "8"}},
        {"a stride out of memory",
         [](auto& a) { a.q.strides[0] = std::numeric_limits<std::int64_t>::max(); },
         {"q", "stride 9223372036854775807", "memory"}},
        {"a stride far below",
         [](auto& a) { a.k.strides[1] = std::numeric_limits<std::int64_t>::min(); },
         {"k", "-9223372036854775808", "memory"}},
        {"a stride of lse out of memory",
         [](auto& a) { a.lse->strides[1] = std::int64_t{1} << 60; },
         {"lse", "memory"}},
        {"out on q", [](auto& a) { a.out.data = a.q.data; }, {"out begins where q does"}},
        {"out on v", [](auto& a) { a.out.data = a.v.data; }, {"out begins where v does"}},
        {"lse on out", [](auto& a) { a.lse->data = a.out.data; }, {"lse begins where out does"}},
        {"lse on one row", [](auto& a) { a.lse->strides[2] = 0; }, {"lse", "overlap"}},
        {"k on another device",
         [](auto& a) {
             a.k.device = {DeviceType::cuda, 3};
         },
         {"GPU 3", "k", "q", "one device"}},
        {"out on another device",
         [](auto& a) {
             a.out.device = {DeviceType::cuda, 3};
         },
         {"out", "GPU 3"}},
        {"mask on another device",
         [](auto& a) {
             a.mask->device = {DeviceType::cuda, 3};
         },
         {"mask", "GPU 3"}},
        {"lse on another device",
         [](auto& a) {
             a.lse->device = {DeviceType::cuda, 3};
         },
         {"lse", "GPU 3"}},
    };
}

std::vector<Bad> bad_masks_and_scales() {
    const auto mask = [](const char* name, std::initializer_list<std::int64_t> shape,
                         std::vector<std::string> words) {
        return Bad{name,
                   [shape = std::vector(shape)](AttentionArgs& a) {
                       a.mask =
                           Tensor::contiguous(a.mask->data, DType::boolean, shape, a.mask->device);
                   },
                   std::move(words)};
    };
    const auto scale = [](const char* name, float value) {
        return Bad{name, [value](AttentionArgs& a) { a.scale = value; }, {"scale", "positive"}};
    };
    constexpr float infinity = std::numeric_limits<float>::infinity();
    return {
        mask("1-D", {5}, {"mask has 1 dimensions"}),
        mask("5-D", {2, 1, 1, 3, 5}, {"mask has 5 dimensions"}),
        mask("2-D batch", {3, 5}, {"mask", "[3, 5]", "2 or 1"}),
        mask("2-D keys", {2, 4}, {"mask", "4", "kv_len", "5"}),
        mask("3-D queries", {2, 4, 5}, {"mask", "[2, 4, 5]", "3 or 1"}),
        mask("3-D keys", {2, 3, 1}, {"mask", "kv_len"}),
        mask("4-D heads", {2, 2, 3, 5}, {"mask", "[2, 2, 3, 5]", "4 or 1"}),
        mask("4-D queries", {2, 4, 2, 5}, {"mask", "dimension 2"}),
        mask("4-D keys", {2, 4, 3, 6}, {"mask", "kv_len"}),
        {"lse shape",
         [](auto& a) {
             reshape(*a.lse, {2, 3, 4});
         },
         {"lse", "[2, 3, 4]", "[2, 4, 3]"}},
        {"lse dimensions",
         [](auto& a) {
             reshape(*a.lse, {8, 3});
         },
         {"lse has 2 dimensions"}},
        scale("scale 0", 0.0f),
        scale("scale below 0", -0.5f),
        scale("scale infinite", infinity),
        scale("scale NaN", std::nanf("")),
    };
}

void check_all(const Device& device) {
    GoodCall good(device);
    for (const auto& group : {bad_dtypes(), bad_shapes(), bad_memory(), bad_masks_and_scales()}) {
        for (const Bad& bad : group) {
            check_refused(bad, good.args(), [](const AttentionArgs& a) { attention(a); });
            check_refused(bad, good.args(),
                          [](const AttentionArgs& a) { ops::attn_prefill(a, ops::Variant::mma); });
        }
    }
}

}  // namespace

TEST_CASE("bad calls of attention on host tensors") {
    check_all({DeviceType::cpu, 0});
    CHECK(last_run().empty());
}

TEST_CASE("scenario: bad calls of attention on a GPU" * doctest::skip()) {
    const fake::Cuda& fake = start_software_gpu();
    check_all({DeviceType::cuda, 0});
    CHECK(fake.launches == 0);
    CHECK(fake.loads == 0);
    CHECK(fake.allocations == 0);
    // The call that all of them were made from is good.
    GoodCall good({DeviceType::cuda, 0});
    attention(good.args());
    CHECK(fake.launches == 1);
}

TEST_CASE("bad calls of attention on a GPU launch nothing") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: bad calls of attention on a GPU", fake_gpu(cache)));
}

TEST_CASE("ops run on a GPU alone") {
    GoodCall good({DeviceType::cpu, 0});
    for (const ops::Variant variant : {ops::Variant::scalar, ops::Variant::mma}) {
        const Bad on_host{"host tensors", [](auto&) {}, {"host memory"}, ErrorCode::unsupported};
        check_refused(on_host, good.args(),
                      [&](const AttentionArgs& a) { ops::attn_decode(a, variant); });
        check_refused(on_host, good.args(),
                      [&](const AttentionArgs& a) { ops::attn_prefill(a, variant); });
    }
}

// An enumeration of C++ can have any number in it.
TEST_CASE("variants, backends and devices that there are not") {
    GoodCall good({DeviceType::cpu, 0});
    for (const int number : {-1, 3, 9}) {
        const auto variant = static_cast<ops::Variant>(number);
        const Bad unknown{
            "no variant",
            [](auto&) {},
            {"variant is " + std::to_string(number), "scalar (0), mma (1) or wgmma (2)"}};
        check_refused(unknown, good.args(),
                      [&](const AttentionArgs& a) { ops::attn_decode(a, variant); });
        check_refused(unknown, good.args(),
                      [&](const AttentionArgs& a) { ops::attn_prefill(a, variant); });
    }
    check_refused(Bad{"no backend", [](auto&) {}, {"backend is 2", "jit (0) or reference (1)"}},
                  good.args(), [](const AttentionArgs&) { Scope(static_cast<Backend>(2)); });
    const auto set_device = [](AttentionArgs& a) {
        for (Tensor* tensor : {&a.q, &a.k, &a.v, &a.out, &*a.mask, &*a.lse})
            tensor->device.type = static_cast<DeviceType>(7);
    };
    check_refused(Bad{"no device", set_device, {"the type of a device is 7", "cpu (0)"}},
                  good.args(), [](const AttentionArgs& a) { attention(a); });
    CHECK(last_run().empty());
}

TEST_CASE("without a driver a call on a GPU says so") {
    GoodCall good({DeviceType::cuda, 0});
    const TemporaryDirectory cache;
    const Ended ended = run("scenario: no driver", {{"JITNEY_LIBCUDA", cache / "libcuda.so.1"}});
    REQUIRE_PASSED(ended);
}

TEST_CASE("scenario: no driver" * doctest::skip()) {
    GoodCall good({DeviceType::cuda, 0});
    check_refused(Bad{"no driver", [](auto&) {}, {"driver"}, ErrorCode::no_device}, good.args(),
                  [](const AttentionArgs& a) { attention(a); });
}

}  // namespace jitney::tests
