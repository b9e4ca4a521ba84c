// append_kv against the reference.
#include "jitney/append_kv.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "jitney/backend.hpp"
#include "tests/gpu/device.hpp"
#include "tests/support/append_problem.hpp"
#include "tests/support/rotary_problem.hpp"

namespace jitney::tests {
namespace {

using Tensors = std::map<std::string, DeviceTensor>;

Tensors upload(const AppendProblem& problem) {
    Tensors tensors;
    for (const auto& [name, tensor] : problem.tensors)
        tensors.try_emplace(name, tensor);
    return tensors;
}

AppendKvArgs args_of(const AppendShape& shape, const Tensors& tensors) {
    Views views;
    for (const auto& [name, tensor] : tensors)
        views.emplace(name, tensor.view());
    return append_call<AppendKvArgs>(shape, views);
}

void run_case(const AppendShape& shape, Random& random) {
    INFO(shape.text(), " ", random.text());
    AppendProblem problem(shape, random);
    const Tensors tensors = upload(problem);
    const Scope scope("append_kv");
    append_kv(args_of(shape, tensors));
    problem.run_reference();
    for (const char* name : {"k", "v", "q", "q_out"}) {
        if (problem.tensors.find(name) == problem.tensors.end()) continue;
        HostTensor after = tensors.at(name).download();
        const bool rotated = shape.style && name[0] != 'v';
        CHECK_MESSAGE(is_same_cache(after, problem.at(name),
                                    rotated ? rotary_tolerance(shape.cache.dtype) : Tolerance{}),
                      std::string(name), " is not what the reference makes of it");
    }
}

}  // namespace

TEST_CASE("appending: caches, formats, ragged or not, rotated or not") {
    Random random = Random::fresh();
    for (const bool packed : {true, false}) {
        for (const DType dtype : {DType::bf16, DType::fp16, DType::fp32}) {
            for (const KeyForm form :
                 {KeyForm::dense, KeyForm::padded, KeyForm::ragged, KeyForm::token_table,
                  KeyForm::block_table, KeyForm::page_list}) {
                for (int i = 0; i < 4; ++i) {
                    AppendShape shape = random_append_shape(random, packed, {form}, i != 0);
                    shape.cache.dtype = dtype;
                    shape.cache.head_dim = i == 3 ? 20 : 128;
                    if (i != 0) {
                        shape.style = i == 1 ? RotaryStyle::half_split : RotaryStyle::interleaved;
                        shape.rotary_dim = i == 2 ? 32 : shape.cache.head_dim;
                    }
                    run_case(shape, random);
                }
            }
        }
    }
}

TEST_CASE("appending: a prefill step of a server") {
    Random random = Random::fresh();
    AppendShape shape;
    shape.cache.head_dim = 128;
    shape.cache.kv_heads = 8;
    shape.cache.q_lens = {200, 0, 1, 37, 0, 62};
    shape.cache.kv_lens = {200, 9, 250, 37, 0, 299};
    shape.cache.packed = true;
    shape.cache.idle_rows = 5;
    shape.cache.keys = KeyForm::block_table;
    shape.cache.page_size = 16;
    shape.style = RotaryStyle::half_split;
    shape.rotary_dim = 128;
    shape.q_heads = 32;
    run_case(shape, random);
}

// Slots beyond 2^31 elements, as a server's large pool has them.
TEST_CASE("appending: offsets beyond 32 bits" * doctest::test_suite(kLargeMemory)) {
    if (!has_free_memory(10)) return;
    constexpr std::int64_t slots = (std::int64_t{1} << 31) / 1024 + 8;
    const DeviceBuffer k_pool(static_cast<std::size_t>(slots) * 1024 * 2);
    const DeviceBuffer v_pool(static_cast<std::size_t>(slots) * 1024 * 2);
    Random random = Random::fresh();
    HostTensor new_k(DType::bf16, {2, 8, 128});
    HostTensor new_v(DType::bf16, {2, 8, 128});
    new_k.fill_normal(random);
    new_v.fill_normal(random);
    HostTensor indptr(DType::int32, {2});
    indptr.set(0, 0);
    indptr.set(1, 2);
    HostTensor table(DType::int32, {1, 2});
    table.set(0, static_cast<double>(slots - 1));
    table.set(1, static_cast<double>(slots - 3));
    HostTensor rows(DType::int32, {1});
    rows.set(0, 0);
    HostTensor lens(DType::int32, {1});
    lens.set(0, 2);
    const DeviceTensor device_k(new_k);
    const DeviceTensor device_v(new_v);
    const DeviceTensor device_indptr(indptr);
    const DeviceTensor device_table(table);
    const DeviceTensor device_rows(rows);
    const DeviceTensor device_lens(lens);
    AppendKvArgs args;
    args.new_k = device_k.view();
    args.new_v = device_v.view();
    args.new_indptr = device_indptr.view();
    args.k = Tensor::contiguous(k_pool.data(), DType::bf16, {slots, 8, 128});
    args.v = Tensor::contiguous(v_pool.data(), DType::bf16, {slots, 8, 128});
    args.req_to_token = device_table.view();
    args.req_pool_indices = device_rows.view();
    args.kv_lens = device_lens.view();
    append_kv(args);
    for (const auto& [pool, fresh] : {std::pair{&k_pool, &new_k}, std::pair{&v_pool, &new_v}}) {
        for (const auto& [row, slot] : {std::pair{0, slots - 1}, std::pair{1, slots - 3}}) {
            HostTensor got(DType::bf16, {8, 128});
            std::vector<std::byte> bytes(2048);
            pool->download(bytes, static_cast<std::size_t>(slot) * 2048);
            std::memcpy(got.view().data, bytes.data(), bytes.size());
            bool same = true;
            for (std::int64_t i = 0; i < 1024; ++i)
                same = same && got.get(i) == fresh->get(row * 1024 + i);
            CHECK(same);
        }
    }
}

}  // namespace jitney::tests
