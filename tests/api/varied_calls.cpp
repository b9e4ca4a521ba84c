#include "tests/api/varied_calls.hpp"

#include <array>
#include <numeric>
#include <vector>

#include "tests/api/call_variations.hpp"

namespace jitney::tests {
namespace {

constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kKvHeads = 2;
constexpr std::int64_t kHeadDim = 16;

// Page numbers, each once, in an order that is not theirs. `count` is no multiple of 7.
std::vector<std::int64_t> shuffled(std::int64_t count) {
    std::vector<std::int64_t> pages(static_cast<std::size_t>(count));
    std::iota(pages.begin(), pages.end(), 0);
    for (std::int64_t& page : pages)
        page = page * 7 % count;
    return pages;
}

void set_rows(AttentionArgs& args, CallArena& arena, std::int64_t q_len) {
    args.q = arena.numbers(DType::bf16, {3, q_len, kHeads, kHeadDim});
    args.out = arena.numbers(DType::bf16, {3, q_len, kHeads, kHeadDim});
    args.lse = arena.numbers(DType::fp32, {3, kHeads, q_len});
}

// Requests of 3, 0 and 2 queries.
void set_ragged_rows(AttentionArgs& args, CallArena& arena) {
    static constexpr std::array ends{0, 3, 3, 5};
    args.q = arena.numbers(DType::bf16, {5, kHeads, kHeadDim});
    args.out = arena.numbers(DType::bf16, {5, kHeads, kHeadDim});
    args.lse = arena.numbers(DType::fp32, {5, kHeads});
    args.qo_indptr = arena.integers(DType::int32, {4}, {0, 3, 3, 5});
    args.qo_indptr_host = ends;
}

void set_keys(AttentionArgs& args, CallArena& arena, std::initializer_list<std::int64_t> shape) {
    args.k = arena.numbers(DType::bf16, shape);
    args.v = arena.numbers(DType::bf16, shape);
}

AttentionArgs masked(CallArena& arena) {
    AttentionArgs args;
    set_rows(args, arena, 2);
    set_keys(args, arena, {3, 40, kKvHeads, kHeadDim});
    args.mask = arena.booleans({3, kHeads, 2, 40});
    args.scale = 0.25f;
    args.causal = true;
    return args;
}

AttentionArgs with_every_option(CallArena& arena) {
    AttentionArgs args;
    set_rows(args, arena, 2);
    set_keys(args, arena, {3, 90, kKvHeads, kHeadDim});
    args.kv_lens = arena.integers(DType::int32, {3}, {90, 2, 60});
    args.max_kv_len = 90;
    args.new_k = arena.numbers(DType::bf16, {3, 2, kKvHeads, kHeadDim});
    args.new_v = arena.numbers(DType::bf16, {3, 2, kKvHeads, kHeadDim});
    args.window_left = 40;
    args.window_right = 0;
    args.softcap = 4.0f;
    args.alibi_slopes = arena.numbers(DType::fp32, {kHeads});
    args.sinks = arena.numbers(DType::fp32, {kHeads});
    args.workspace = arena.workspace(std::size_t{1} << 17);
    args.logits = factor();
    args.logits_values = {1.5f};
    return args;
}

AttentionArgs ragged(CallArena& arena) {
    AttentionArgs args;
    set_ragged_rows(args, arena);
    set_keys(args, arena, {50, kKvHeads, kHeadDim});
    args.kv_indptr = arena.integers(DType::int32, {4}, {0, 20, 20, 50});
    args.softcap = 3.0f;
    return args;
}

AttentionArgs by_token_table(CallArena& arena) {
    AttentionArgs args;
    set_rows(args, arena, 1);
    set_keys(args, arena, {258, kKvHeads, kHeadDim});
    args.req_to_token = arena.integers(DType::int32, {4, 64}, shuffled(256));
    args.req_pool_indices = arena.integers(DType::int32, {3}, {2, 0, 3});
    args.kv_indptr = arena.integers(DType::int32, {4}, {0, 64, 70, 100});
    args.window_left = 30;
    return args;
}

AttentionArgs by_block_table(CallArena& arena) {
    AttentionArgs args;
    set_rows(args, arena, 1);
    set_keys(args, arena, {62, 16, kKvHeads, kHeadDim});
    args.block_table = arena.integers(DType::int32, {3, 20}, shuffled(60));
    args.kv_lens = arena.integers(DType::int32, {3}, {320, 17, 0});
    args.causal = true;
    return args;
}

AttentionArgs by_page_list(CallArena& arena) {
    AttentionArgs args;
    set_ragged_rows(args, arena);
    set_keys(args, arena, {40, 4, kKvHeads, kHeadDim});
    args.kv_page_indptr = arena.integers(DType::int32, {4}, {0, 10, 10, 26});
    args.kv_page_indices = arena.integers(DType::int32, {26}, shuffled(26));
    args.last_page_len = arena.integers(DType::int32, {3}, {3, 4, 1});
    return args;
}

RotaryArgs rotary(CallArena& arena) {
    RotaryArgs args;
    args.q = arena.numbers(DType::bf16, {2, 5, kHeads, kHeadDim});
    args.k = arena.numbers(DType::bf16, {2, 5, kKvHeads, kHeadDim});
    args.q_out = arena.numbers(DType::bf16, {2, 5, kHeads, kHeadDim});
    args.k_out = arena.numbers(DType::bf16, {2, 5, kKvHeads, kHeadDim});
    args.cos = arena.numbers(DType::fp32, {9, 4});
    args.sin = arena.numbers(DType::fp32, {9, 4});
    args.positions = arena.integers(DType::int32, {2, 5}, {0, 7, 2, 5, 1, 4, 3, 2, 1, 0});
    args.style = RotaryStyle::half_split;
    return args;
}

RotaryArgs rotary_of_queries(CallArena& arena) {
    RotaryArgs args = rotary(arena);
    args.k.reset();
    args.k_out.reset();
    args.positions = arena.integers(DType::int64, {2, 5}, {0, 7, 2, 5, 1, 4, 3, 2, 1, 0});
    return args;
}

RotaryArgs rotary_in_place(CallArena& arena) {
    RotaryArgs args = rotary(arena);
    args.q_out = args.q;
    args.k_out = args.k;
    args.positions.reset();
    return args;
}

void set_new_rows(AppendKvArgs& args, CallArena& arena, std::int64_t length) {
    args.new_k = arena.numbers(DType::bf16, {3, length, kKvHeads, kHeadDim});
    args.new_v = arena.numbers(DType::bf16, {3, length, kKvHeads, kHeadDim});
}

// Requests of 3, 0 and 2 new rows.
void set_ragged_new_rows(AppendKvArgs& args, CallArena& arena) {
    args.new_k = arena.numbers(DType::bf16, {5, kKvHeads, kHeadDim});
    args.new_v = arena.numbers(DType::bf16, {5, kKvHeads, kHeadDim});
    args.new_indptr = arena.integers(DType::int32, {4}, {0, 3, 3, 5});
}

void set_cache(AppendKvArgs& args, CallArena& arena, std::initializer_list<std::int64_t> shape) {
    args.k = arena.numbers(DType::bf16, shape);
    args.v = arena.numbers(DType::bf16, shape);
}

AppendKvArgs append_rotated(CallArena& arena) {
    AppendKvArgs args;
    set_new_rows(args, arena, 2);
    set_cache(args, arena, {3, 40, kKvHeads, kHeadDim});
    args.kv_lens = arena.integers(DType::int32, {3}, {40, 2, 20});
    args.cos = arena.numbers(DType::fp32, {41, 4});
    args.sin = arena.numbers(DType::fp32, {41, 4});
    args.positions = arena.integers(DType::int32, {3, 2}, {38, 39, 0, 1, 18, 19});
    args.style = RotaryStyle::half_split;
    args.q = arena.numbers(DType::bf16, {3, 2, kHeads, kHeadDim});
    args.q_out = arena.numbers(DType::bf16, {3, 2, kHeads, kHeadDim});
    return args;
}

AppendKvArgs append_ragged(CallArena& arena) {
    AppendKvArgs args;
    set_ragged_new_rows(args, arena);
    set_cache(args, arena, {62, 16, kKvHeads, kHeadDim});
    args.block_table = arena.integers(DType::int32, {3, 20}, shuffled(60));
    args.kv_lens = arena.integers(DType::int32, {3}, {320, 17, 30});
    return args;
}

AppendKvArgs append_by_token_table(CallArena& arena) {
    AppendKvArgs args;
    set_new_rows(args, arena, 1);
    set_cache(args, arena, {258, kKvHeads, kHeadDim});
    args.req_to_token = arena.integers(DType::int32, {4, 64}, shuffled(256));
    args.req_pool_indices = arena.integers(DType::int32, {3}, {2, 0, 3});
    args.kv_indptr = arena.integers(DType::int32, {4}, {0, 64, 70, 100});
    args.q = args.q_out = arena.numbers(DType::bf16, {3, 1, kHeads, kHeadDim});
    args.cos = arena.numbers(DType::fp32, {65, 4});
    args.sin = arena.numbers(DType::fp32, {65, 4});
    return args;
}

AppendKvArgs append_by_page_list(CallArena& arena) {
    AppendKvArgs args;
    set_ragged_new_rows(args, arena);
    set_cache(args, arena, {40, 4, kKvHeads, kHeadDim});
    args.kv_page_indptr = arena.integers(DType::int32, {4}, {0, 10, 10, 26});
    args.kv_page_indices = arena.integers(DType::int32, {26}, shuffled(26));
    args.last_page_len = arena.integers(DType::int32, {3}, {3, 4, 1});
    return args;
}

}  // namespace

template <>
std::deque<VariedCall<AttentionArgs>> varied_calls() {
    std::deque<VariedCall<AttentionArgs>> calls;
    add_call(calls, "with a mask", &masked);
    add_call(calls, "with every option", &with_every_option);
    add_call(calls, "ragged", &ragged);
    add_call(calls, "by a token table", &by_token_table);
    add_call(calls, "by a block table", &by_block_table);
    add_call(calls, "by a page list", &by_page_list);
    return calls;
}

template <>
std::deque<VariedCall<RotaryArgs>> varied_calls() {
    std::deque<VariedCall<RotaryArgs>> calls;
    add_call(calls, "q and k", &rotary);
    add_call(calls, "q alone", &rotary_of_queries);
    add_call(calls, "in place", &rotary_in_place);
    return calls;
}

template <>
std::deque<VariedCall<AppendKvArgs>> varied_calls() {
    std::deque<VariedCall<AppendKvArgs>> calls;
    add_call(calls, "rotated", &append_rotated);
    add_call(calls, "ragged", &append_ragged);
    add_call(calls, "by a token table", &append_by_token_table);
    add_call(calls, "by a page list", &append_by_page_list);
    return calls;
}

}  // namespace jitney::tests
