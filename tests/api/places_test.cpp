// Where the tensors of a call lie: what is written shares no byte with itself or with anything else
// that the call was given, and layouts in which rows of one lie between those of another are good.
#include "jitney/append_kv.hpp"
#include "jitney/attention.hpp"
#include "jitney/backend.hpp"
#include "jitney/explain.hpp"
#include "jitney/merge_states.hpp"
#include "jitney/plan.hpp"
#include "jitney/rotary.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/runtime/allocation_count.hpp"

namespace jitney::tests {
namespace {

constexpr Device kGpu{DeviceType::cuda, 0};

// Memory that views are cut from.
struct Buffer {
    explicit Buffer(DType type = DType::bf16) : dtype(type) {
        Random random(1);
        memory.fill_normal(random);
    }
    Tensor view(const Device& device, std::int64_t first, std::vector<std::int64_t> shape,
                std::vector<std::int64_t> strides) {
        void* at = static_cast<std::byte*>(memory.view().data) + first * size_of(dtype);
        return Tensor::strided(at, dtype, shape, strides, device);
    }
    Tensor dense(const Device& device, std::int64_t first, std::vector<std::int64_t> shape) {
        return Tensor::contiguous(view(device, first, {1}, {1}).data, dtype, shape, device);
    }

    DType dtype;
    HostTensor memory{dtype, {8192}};
};

// Batch 2, 3 queries, 6 keys, heads 4/2, head_dim 8: K and V beside each other in each token, and
// the new ones too; results behind q in the same token.
struct Interleaved {
    explicit Interleaved(const Device& where) : device(where) {}

    AttentionArgs attention() {
        AttentionArgs args;
        args.q = rows.view(device, 0, {2, 3, 4, 8}, {192, 64, 8, 1});
        args.out = rows.view(device, 32, {2, 3, 4, 8}, {192, 64, 8, 1});
        args.k = cache.view(device, 0, {2, 6, 2, 8}, {192, 32, 8, 1});
        args.v = cache.view(device, 16, {2, 6, 2, 8}, {192, 32, 8, 1});
        args.new_k = fresh.view(device, 0, {2, 2, 2, 8}, {64, 32, 8, 1});
        args.new_v = fresh.view(device, 16, {2, 2, 2, 8}, {64, 32, 8, 1});
        args.mask = Tensor::contiguous(bytes.view().data, DType::boolean, {2, 6}, device);
        args.lse = numbers.dense(device, 0, {2, 4, 3});
        args.sinks = numbers.dense(device, 24, {4});
        args.alibi_slopes = numbers.dense(device, 28, {4});
        return args;
    }
    // q and k in place, within what holds v too.
    RotaryArgs rotary() {
        RotaryArgs args;
        args.q = args.q_out = rows.view(device, 0, {2, 3, 4, 8}, {192, 64, 8, 1});
        args.k = args.k_out = rows.view(device, 32, {2, 3, 2, 8}, {192, 64, 8, 1});
        args.cos = numbers.dense(device, 32, {3, 4});
        args.sin = numbers.dense(device, 44, {3, 4});
        return args;
    }
    AppendKvArgs append() {
        AppendKvArgs args;
        args.k = cache.view(device, 0, {2, 6, 2, 8}, {192, 32, 8, 1});
        args.v = cache.view(device, 16, {2, 6, 2, 8}, {192, 32, 8, 1});
        args.new_k = rows.view(device, 32, {2, 3, 2, 8}, {192, 64, 8, 1});
        args.new_v = rows.view(device, 48, {2, 3, 2, 8}, {192, 64, 8, 1});
        args.q = args.q_out = rows.view(device, 0, {2, 3, 4, 8}, {192, 64, 8, 1});
        args.cos = numbers.dense(device, 0, {8, 4});
        args.sin = numbers.dense(device, 32, {8, 4});
        return args;
    }

    Device device;
    Buffer rows;
    Buffer cache;
    Buffer fresh;
    Buffer numbers{DType::fp32};
    HostTensor bytes{DType::boolean, {64}};
};

// `places` elements further on.
void move(Tensor& tensor, std::int64_t places) {
    tensor.data = static_cast<std::byte*>(tensor.data) + places * size_of(tensor.dtype);
}

std::vector<BadCall<AttentionArgs>> bad_attention() {
    return {
        {"out a row below q",
         [](auto& a) { a.out.data = a.q.data, move(a.out, 8); },
         {"out overlaps q"}},
        {"out an element into q", [](auto& a) { move(a.out, -1); }, {"out", "overlaps q"}},
        {"out with strides that mix",
         [](auto& a) {
             a.out.strides = {0, 4, 4, 1, 0};
         },
         {"out", "rows overlap", "dimension"}},
        {"lse with strides that mix",
         [](auto& a) {
             a.lse->strides = {1, 2, 3, 0, 0};
         },
         {"lse", "rows overlap"}},
        {"lse in the sinks", [](auto& a) { move(*a.lse, 1); }, {"lse", "overlaps sinks"}},
        {"lse in the slopes",
         [](auto& a) { a.lse->data = a.alibi_slopes->data, move(*a.lse, 3); },
         {"lse", "overlaps alibi_slopes"}},
        {"out in the mask", [](auto& a) { a.mask->data = a.out.data; }, {"out", "mask"}},
        {"new_k is k", [](auto& a) { a.new_k = a.k, a.new_k->shape[1] = 2; }, {"k", "new_k"}},
        {"new_v in the keys",
         [](auto& a) { a.new_v->data = a.k.data, move(*a.new_v, 4 * 32); },
         {"k overlaps new_v"}},
        {"q in the values", [](auto& a) { a.q.data = a.v.data, move(a.q, 40); }, {"overlaps q"}},
        {"the values in the keys", [](auto& a) { move(a.v, -8); }, {"v", "overlaps k"}},
        {"keys with strides that mix",
         [](auto& a) {
             a.k.strides = {96, 32, 8, 1, 0};
         },
         {"k", "rows overlap"}},
    };
}

std::vector<BadCall<RotaryArgs>> bad_rotary() {
    return {
        {"q_out a row below q", [](auto& a) { move(a.q_out, 8); }, {"q_out overlaps q"}},
        {"k_out on the next token", [](auto& a) { move(*a.k_out, 64); }, {"k_out", "overlaps k"}},
        {"k_out into q",
         [](auto& a) {
             move(*a.k, -4);
             *a.k_out = *a.k;
         },
         {"overlaps"}},
        {"q_out in cos",
         [](auto& a) { a.cos.data = a.q_out.data, move(a.cos, 1); },
         {"q_out", "overlaps cos"}},
        {"q_out with strides that mix",
         [](auto& a) {
             a.q_out.strides = {8, 16, 24, 1, 0};
         },
         {"q_out", "rows overlap"}},
    };
}

std::vector<BadCall<AppendKvArgs>> bad_appends() {
    return {
        {"new_k in k",
         [](auto& a) { a.new_k.data = a.k.data, move(a.new_k, 5 * 32); },
         {"k overlaps new_k"}},
        {"new_v in k", [](auto& a) { a.new_v.data = a.k.data, move(a.new_v, 1); }, {"k", "new_v"}},
        {"v in k", [](auto& a) { move(a.v, -1); }, {"v overlaps k"}},
        {"q_out in new_k", [](auto& a) { move(*a.q_out, 16); }, {"q_out", "overlaps"}},
        {"q_out moved on", [](auto& a) { move(*a.q_out, 8); }, {"q_out overlaps"}},
        {"q in the cache",
         [](auto& a) { a.q->data = a.q_out->data = a.k.data, move(*a.q, 8), *a.q_out = *a.q; },
         {"q_out overlaps k"}},
        {"sin in v",
         [](auto& a) { a.sin->data = a.v.data, move(*a.sin, 2); },
         {"v", "overlaps sin"}},
        {"v with strides that mix",
         [](auto& a) {
             a.v.strides = {160, 32, 8, 1, 0};
         },
         {"v", "rows overlap"}},
    };
}

template <class Args, class Call>
void check_all(const std::vector<BadCall<Args>>& all, const Args& good, const Call& call) {
    call(good);
    CHECK(!last_run().empty());
    for (const BadCall<Args>& bad : all)
        check_refused(bad, good, call);
}

void check_operations(const Device& device) {
    Interleaved tensors(device);
    check_all(bad_attention(), tensors.attention(), [](const AttentionArgs& a) { attention(a); });
    check_all(bad_rotary(), tensors.rotary(), [](const RotaryArgs& a) { rotary_emb(a); });
    check_all(bad_appends(), tensors.append(), [](const AppendKvArgs& a) { append_kv(a); });
}

}  // namespace

TEST_CASE("tensors that share memory where one of them is written, on the host") {
    check_operations(kHost);
}

TEST_CASE("scenario: places" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    check_operations(kGpu);
    CHECK(fake.launches == 3);

    // After a good call, one of its form has its places looked at as well, and interleaved ones are
    // as quick as others.
    Interleaved tensors(kGpu);
    const AttentionArgs good = tensors.attention();
    const AttentionPlan plan(good);
    const RotaryArgs rotary = tensors.rotary();
    const auto call_all = [&] {
        attention(good);
        plan.run(good);
        rotary_emb(rotary);
    };
    call_all();
    fake.kernel = nullptr;  // the software would allocate
    const int launches = fake.launches;
    const long before = allocations_of_this_thread();
    for (int i = 0; i < 100; ++i)
        call_all();
    CHECK(allocations_of_this_thread() == before);
    CHECK(fake.launches == launches + 300);
    for (const auto& bad : bad_attention()) {
        check_refused(bad, good, [](const AttentionArgs& a) { attention(a); });
        check_refused(bad, good, [&plan](const AttentionArgs& a) { plan.run(a); });
    }
    for (const auto& bad : bad_rotary())
        check_refused(bad, rotary, [](const RotaryArgs& a) { rotary_emb(a); });
    CHECK(fake.launches == launches + 300);
}

TEST_CASE("tensors that share memory where one of them is written, on a GPU") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: places", fake_gpu(cache)));
}

// What need not exist is not looked at.
TEST_CASE("explain asks for no memory of its own") {
    Interleaved tensors(kGpu);
    AttentionArgs args = tensors.attention();
    args.out.data = args.new_k->data = args.q.data;
    CHECK(!explain(args, "sm_90a").chosen.empty());
}

TEST_CASE("a merge in place of any part, or apart from all") {
    Buffer outs;
    Buffer lses{DType::fp32};
    const auto out = [&](std::int64_t first) { return outs.dense(kHost, first, {3, 2, 8}); };
    const auto lse = [&](std::int64_t first) { return lses.dense(kHost, first, {3, 2}); };
    // Four partial results in one tensor, rows of 8 elements, and one beside them.
    const PartialState parts[] = {
        {outs.dense(kHost, 0, {4, 3, 2, 8}), lses.dense(kHost, 0, {4, 3, 2})}, {out(240), lse(30)}};
    MergeStatesArgs good;
    good.parts = parts;
    const auto call = [](const MergeStatesArgs& a) { merge_states(a); };
    for (const int part : {0, 1, 3, 5, 6}) {  // 5 is the one beside, 6 lies apart
        good.out = out(48 * part);
        good.lse = lse(6 * part);
        call(good);
        CHECK(last_run() == "reference");
    }
    good.out = out(288);
    good.lse = lse(36);
    using Bad = BadCall<MergeStatesArgs>;
    check_all<MergeStatesArgs>(
        {
            Bad{"between two parts",
                [&](auto& a) { a.out = out(16); },
                {"out overlaps a part's out"}},
            Bad{"before the first", [&](auto& a) { a.out = out(240 - 16); }, {"a part's out"}},
            Bad{"a part of other strides",
                [&](auto& a) {
                    a.out = outs.view(kHost, 48, {3, 2, 8}, {8, 24, 1});
                },
                {"out begins where a part's out does", "strides"}},
            Bad{"the LSE between two", [&](auto& a) { a.lse = lse(1); }, {"lse", "a part's lse"}},
            Bad{"in the LSEs",
                [&](auto& a) { a.out.data = lse(2).data; },
                {"out", "overlaps a part's lse"}},
            Bad{"the LSE in the results",
                [&](auto& a) { a.lse->data = out(64).data; },
                {"lse", "overlaps a part's out"}},
            Bad{"the LSE in the result",
                [&](auto& a) { a.lse->data = out(292).data; },
                {"lse", "overlaps out"}},
            Bad{"strides that mix",
                [](auto& a) {
                    a.out.strides = {8, 16, 1, 0, 0};
                },
                {"out", "rows overlap"}},
        },
        good, call);
    // The same part again and again.
    MergeStatesArgs repeated = good;
    const PartialState same = {outs.view(kHost, 0, {4, 3, 2, 8}, {0, 16, 8, 1}),
                               lses.view(kHost, 0, {4, 3, 2}, {0, 2, 1})};
    repeated.parts = {&same, 1};
    repeated.out = out(0);
    repeated.lse = lse(0);
    call(repeated);
}

}  // namespace jitney::tests
