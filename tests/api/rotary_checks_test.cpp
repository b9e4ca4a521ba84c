// Every bad call of rotary_emb is refused with a sentence.
#include "jitney/backend.hpp"
#include "jitney/rotary.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fake_gpu.hpp"

namespace jitney::tests {
namespace {

using Bad = BadCall<RotaryArgs>;

// Batch 2, length 3, heads 4/2, head_dim 8, rotary_dim 6, a table of 5 rows.
struct GoodCall {
    explicit GoodCall(const Device& where) : device(where) {}

    RotaryArgs args() {
        RotaryArgs args;
        args.q = q.view(device);
        args.k = k.view(device);
        args.q_out = q_out.view(device);
        args.k_out = k_out.view(device);
        args.cos = cos.view(device);
        args.sin = sin.view(device);
        args.positions = positions.view(device);
        return args;
    }

    Device device;
    HostTensor q{DType::fp16, {2, 3, 4, 8}};
    HostTensor k{DType::fp16, {2, 3, 2, 8}};
    HostTensor q_out{DType::fp16, {2, 3, 4, 8}};
    HostTensor k_out{DType::fp16, {2, 3, 2, 8}};
    HostTensor cos{DType::fp32, {5, 3}};
    HostTensor sin{DType::fp32, {5, 3}};
    HostTensor positions{DType::int32, {2, 3}};
};

std::vector<Bad> bad_calls() {
    return {
        {"int32 q", [](auto& a) { a.q.dtype = DType::int32; }, {"q", "int32"}},
        {"k of another dtype", [](auto& a) { a.k->dtype = DType::bf16; }, {"k", "bf16", "fp16"}},
        {"q_out of another dtype", [](auto& a) { a.q_out.dtype = DType::fp32; }, {"q_out", "fp32"}},
        {"fp16 cos", [](auto& a) { a.cos.dtype = DType::fp16; }, {"cos", "fp32"}},
        {"fp16 sin", [](auto& a) { a.sin.dtype = DType::fp16; }, {"sin", "fp32"}},
        {"float positions",
         [](auto& a) { a.positions->dtype = DType::fp32; },
         {"positions", "int64"}},
        {"3-D q",
         [](auto& a) {
             reshape(a.q, {6, 4, 8});
         },
         {"q has 3 dimensions"}},
        {"shape of q_out",
         [](auto& a) {
             reshape(a.q_out, {2, 3, 2, 8});
         },
         {"q_out", "[2, 3, 2, 8]"}},
        {"length of k",
         [](auto& a) {
             reshape(*a.k, {2, 1, 2, 8});
             reshape(*a.k_out, {2, 1, 2, 8});
         },
         {"k has the shape [2, 1, 2, 8]"}},
        {"head_dim of k",
         [](auto& a) {
             reshape(*a.k, {2, 3, 2, 4});
             reshape(*a.k_out, {2, 3, 2, 4});
         },
         {"k has the shape [2, 3, 2, 4]"}},
        {"k alone", [](auto& a) { a.k_out.reset(); }, {"k was given without k_out"}},
        {"k_out alone", [](auto& a) { a.k.reset(); }, {"k_out was given without k"}},
        {"shape of sin",
         [](auto& a) {
             reshape(a.sin, {4, 3});
         },
         {"sin", "[4, 3]", "[5, 3]"}},
        {"1-D cos", [](auto& a) { reshape(a.cos, {15}); }, {"cos has 1 dimensions"}},
        {"rows of cos and sin",
         [](auto& a) { a.sin.strides[0] = 4; },
         {"rows of cos are 3", "sin 4"}},
        {"no columns",
         [](auto& a) {
             reshape(a.cos, {5, 0});
             reshape(a.sin, {5, 0});
         },
         {"no columns"}},
        {"more than head_dim",
         [](auto& a) {
             reshape(a.cos, {3, 5});
             reshape(a.sin, {3, 5});
         },
         {"5 columns", "rotary_dim of 10", "8"}},
        {"too few rows",
         [](auto& a) {
             a.positions.reset();
             reshape(a.cos, {2, 3});
             reshape(a.sin, {2, 3});
         },
         {"q has 3 rows", "cos only 2"}},
        {"shape of positions",
         [](auto& a) {
             reshape(*a.positions, {2, 2});
         },
         {"positions", "[2, 2]"}},
        {"batch of positions",
         [](auto& a) {
             reshape(*a.positions, {3, 3});
         },
         {"positions", "2 or 1"}},
        {"length of positions",
         [](auto& a) { reshape(*a.positions, {4}); },
         {"positions", "[4]", "[3]"}},
        {"3-D positions",
         [](auto& a) {
             reshape(*a.positions, {2, 3, 1});
         },
         {"positions has 3"}},
        {"q is null", [](auto& a) { a.q.data = nullptr; }, {"q", "null"}},
        {"k_out is null", [](auto& a) { a.k_out->data = nullptr; }, {"k_out", "null"}},
        {"cos is null", [](auto& a) { a.cos.data = nullptr; }, {"cos", "null"}},
        {"positions is null", [](auto& a) { a.positions->data = nullptr; }, {"positions", "null"}},
        {"innermost stride of q", [](auto& a) { a.q.strides[3] = 2; }, {"q", "innermost"}},
        {"innermost stride of cos", [](auto& a) { a.cos.strides[1] = 2; }, {"cos", "innermost"}},
        {"q_out on q in another layout",
         [](auto& a) {
             a.q_out.data = a.q.data;
             a.q_out.strides[0] *= 2;
         },
         {"q_out begins where q does", "dimension 0"}},
        {"k_out on q_out",
         [](auto& a) { a.k_out->data = a.q_out.data; },
         {"k_out begins where q_out does"}},
        {"q_out on k", [](auto& a) { a.q_out.data = a.k->data; }, {"q_out begins where k does"}},
        {"a stride out of memory",
         [](auto& a) { a.q.strides[1] = std::int64_t{1} << 60; },
         {"q", "stride 1152921504606846976", "memory"}},
        {"no style",
         [](auto& a) { a.style = static_cast<RotaryStyle>(9); },
         {"style is 9", "half_split"}},
        {"q_out on one row", [](auto& a) { a.q_out.strides[1] = 0; }, {"q_out", "overlap"}},
        {"k_out on one head", [](auto& a) { a.k_out->strides[2] = 0; }, {"k_out", "overlap"}},
        {"sin on another device",
         [](auto& a) {
             a.sin.device = {DeviceType::cuda, 2};
         },
         {"sin", "GPU 2"}},
        {"positions on another device",
         [](auto& a) {
             a.positions->device = {DeviceType::cuda, 2};
         },
         {"positions", "GPU 2"}},
        {"tokens beyond 31 bits",
         [](auto& a) {
             for (Tensor* t : {&a.q, &a.q_out, &*a.k, &*a.k_out})
                 t->shape[0] = std::int64_t{1} << 30;
             a.positions.reset();
         },
         {"3221225472 tokens", "split"}},
    };
}

void check_all(const Device& device) {
    GoodCall good(device);
    for (const Bad& bad : bad_calls()) {
        check_refused(bad, good.args(), [](const RotaryArgs& a) { rotary_emb(a); });
        check_refused(bad, good.args(), [](const RotaryArgs& a) { ops::rotary_emb(a); });
    }
}

}  // namespace

TEST_CASE("bad calls of rotary_emb on host tensors") {
    check_all({DeviceType::cpu, 0});
    CHECK(last_run().empty());
}

TEST_CASE("scenario: bad calls of rotary_emb on a GPU" * doctest::skip()) {
    const fake::Cuda& fake = start_software_gpu();
    check_all({DeviceType::cuda, 0});
    CHECK(fake.launches == 0);
    CHECK(fake.loads == 0);
}

TEST_CASE("bad calls of rotary_emb on a GPU launch nothing") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: bad calls of rotary_emb on a GPU", fake_gpu(cache)));
}

TEST_CASE("ops::rotary_emb runs on a GPU alone") {
    GoodCall good({DeviceType::cpu, 0});
    check_refused(Bad{"host", [](auto&) {}, {"host memory"}, ErrorCode::unsupported}, good.args(),
                  [](const RotaryArgs& a) { ops::rotary_emb(a); });
}

}  // namespace jitney::tests
