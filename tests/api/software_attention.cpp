// Attention, and the merging of partial results.
#include "tests/api/software_launches.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <numbers>
#include <stdexcept>

#include "kernel_sources/attention/decode_cluster.h"
#include "kernel_sources/common/constants.h"
#include "operations/merge_states/reference.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/api/software_tensors.hpp"

namespace jitney::tests {
namespace {

// Of the logits functions that multiply, which these tests call `factor` and its half: all others
// are beyond the reference.
double factor_of(std::string_view image, const AttentionParams& p) {
    const auto factor = std::bit_cast<float>(static_cast<std::uint32_t>(p.caller_values[0]));
    if (image.find("\nscore * factor\n") != std::string_view::npos)
        return static_cast<double>(factor);
    if (image.find("\nscore * factor * 0.5f\n") != std::string_view::npos)
        return 0.5 * static_cast<double>(factor);
    throw std::logic_error("a logits function that the software does not know");
}

void set_options(std::string_view image, const AttentionParams& p, reference::Attention& call) {
    const int heads = p.kv_heads * p.group;
    // What scores are multiplied by before they are capped.
    double scale = static_cast<double>(p.scale_log2) / std::numbers::log2e;
    if (image.find("edit_by_caller") == std::string_view::npos) {
        call.scale = scale;
    } else {
        if (p.scale_log2 != std::numbers::log2e_v<float>)
            throw std::logic_error("scores that are scaled behind a logits function");
        call.scale = static_cast<double>(p.caller_scale) * factor_of(image, p);
        scale = 1.0;
    }
    if (constant(image, "window") != 0) {
        call.window_left = p.window_left;
        call.window_right = p.window_right;
    }
    if (constant(image, "softcap") != 0) {
        call.softcap = scale / static_cast<double>(p.softcap_scale);
    }
    if (constant(image, "alibi") != 0) {
        call.alibi_slopes = tensor_of(p.alibi_slopes, DType::fp32, {heads}, {1});
    }
    if (constant(image, "sinks") != 0) call.sinks = tensor_of(p.sinks, DType::fp32, {heads}, {1});
}

void check_counters(const AttentionParams& p, std::size_t tiles) {
    if (std::any_of(p.arrived, p.arrived + tiles, [](unsigned count) { return count != 0; })) {
        throw std::logic_error("a counter that is not zero");
    }
}

// Leaves in it what a launch would: parts wherever they have room, and counters of zero. The blocks
// of a cluster have neither.
void use_workspace(std::string_view image, const AttentionParams& p, int head_dim) {
    if (p.splits == 1) return;
    const std::array<unsigned, 3>& cluster = fake_cuda().launch.cluster;
    if (cluster[0] > 1) {
        if (cluster[0] != static_cast<unsigned>(p.splits) || p.splits > kMostClusterBlocks)
            throw std::logic_error("a cluster of other blocks than those that share a tile");
        return;
    }
    if (p.partial_out == nullptr || p.partial_statistics == nullptr || p.arrived == nullptr) {
        throw std::logic_error("splits without a workspace");
    }
    const auto tiles = static_cast<std::size_t>(std::int64_t{p.batch} * p.kv_heads * p.row_tiles);
    const std::size_t rows = tiles * static_cast<std::size_t>(p.splits) *
                             static_cast<std::size_t>(constant(image, "tile_m"));
    check_counters(p, tiles);
    std::memset(p.partial_out, 0x5C, rows * static_cast<std::size_t>(head_dim) * sizeof(float));
    std::memset(p.partial_statistics, 0x5C, rows * 2 * sizeof(float));
    check_counters(p, tiles);
}

Tensor queries_of(const void* data, DType dtype, const AttentionParams& p, int head_dim,
                  const AttentionStrides& s) {
    const int heads = p.kv_heads * p.group;
    if (p.qo_indptr == nullptr) return heads_of(data, dtype, p.batch, p.q_len, heads, head_dim, s);
    return tensor_of(data, dtype, {p.q_len, heads, head_dim}, {s.row, s.head, 1});
}

// A mask as large as the longest lengths: more of it is not known, and not read.
void set_mask(const AttentionParams& p, reference::Attention& call) {
    int q_len = p.qo_indptr == nullptr ? p.q_len : 0;
    for (int i = 0; p.qo_indptr != nullptr && i < p.batch; ++i)
        q_len = std::max(q_len, p.qo_indptr[i + 1] - p.qo_indptr[i]);
    const bool one_kv_len =
        call.k.ndim == 4 && !call.block_table && !call.req_to_token && !call.kv_page_indices;
    const AttentionStrides& s = p.mask_strides;
    call.mask = tensor_of(p.mask, DType::boolean,
                          {p.batch, p.kv_heads * p.group, q_len, one_kv_len ? p.kv_len : kMany},
                          {s.batch, s.head, s.row, 1});
}

void run_attention_alike(std::string_view image, const AttentionParams& p) {
    const auto dtype = static_cast<DType>(constant(image, "format"));
    const int head_dim = constant(image, "head_dim");
    use_workspace(image, p, head_dim);
    const bool decode = image.find("attention/decode") != std::string_view::npos;
    if (!decode && (constant(image, "queries") == kPackedQueries) != (p.qo_indptr != nullptr)) {
        throw std::logic_error("a kernel for other queries");
    }
    reference::Attention call;
    call.q = queries_of(p.q, dtype, p, head_dim, p.q_strides);
    call.out = queries_of(p.out, dtype, p, head_dim, p.out_strides);
    if (p.qo_indptr != nullptr) call.qo_indptr = ints_of(p.qo_indptr, p.batch + 1);
    set_keys(image, p, dtype, head_dim, call);
    call.causal = constant(image, "causal") != 0;
    if (constant(image, "mask") != 0) {
        set_mask(p, call);
        if (image.find("attention/prefill_mma") != std::string_view::npos ||
            image.find("attention/prefill_wgmma") != std::string_view::npos) {
            check_mask_bits(p);
        }
    }
    if (p.lse != nullptr) {
        const AttentionStrides& s = p.lse_strides;
        const int heads = p.kv_heads * p.group;
        call.lse =
            p.qo_indptr == nullptr
                ? tensor_of(p.lse, DType::fp32, {p.batch, heads, p.q_len}, {s.batch, s.head, s.row})
                : tensor_of(p.lse, DType::fp32, {p.q_len, heads}, {s.row, s.head});
    }
    set_options(image, p, call);
    if (decode && constant(image, "append") != 0) {
        call.new_k =
            heads_of(p.new_k, dtype, p.batch, p.new_len, p.kv_heads, head_dim, p.new_k_strides);
        call.new_v =
            heads_of(p.new_v, dtype, p.batch, p.new_len, p.kv_heads, head_dim, p.new_v_strides);
    }
    reference::attention(call);
}

}  // namespace

void run_attention(std::string_view image, const AttentionParams& p) {
    if (p.qo_indptr != nullptr) check_map(p, constant(image, "tile_m"));
    run_attention_alike(image, p);
}

const void* address_of(const TensorMapBits& map) {
    constexpr unsigned long long filling = 0x5a5a5a5a5a5a5a5a;
    const unsigned long long address = map.bits[0] == filling ? map.bits[8] : map.bits[0];
    return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(address));
}

void run_prefill_wgmma(std::string_view image, const PrefillWgmmaParams& p) {
    const AttentionParams& a = p.attention;
    if (address_of(p.q) != a.q || address_of(p.out) != a.out)
        throw std::logic_error("maps of other queries");
    const bool has_keys = address_of(p.k) == a.k && address_of(p.v) == a.v;
    const auto* const zeros = reinterpret_cast<const char*>(p.next_tile) + kWgmmaCounterBytes / 2;
    const bool has_none =
        p.next_tile != nullptr && address_of(p.k) == zeros && address_of(p.v) == zeros;
    const bool paged = constant(image, "kv") == kPagedKv;
    if (p.box_keys != (paged ? wgmma_box_keys(a.page_size, constant(image, "tile_n")) : 0)) {
        throw std::logic_error("boxes of other pages");
    }
    const bool gathers = paged && p.box_keys == 0;
    if (!has_keys && !has_none && !gathers) throw std::logic_error("maps of other keys");
    if (has_none &&
        std::any_of(zeros, zeros + kWgmmaCounterBytes / 2, [](char c) { return c != 0; })) {
        throw std::logic_error("zeros that are none");
    }
    if (p.next_tile != nullptr && *p.next_tile != 0)
        throw std::logic_error("a counter that is not zero");
    if (kWarpgroupRows % a.group != 0 || p.groups_a_kv_head < 1 || p.heads_at_a_time < 1) {
        throw std::logic_error("heads that a tile can't take together");
    }
    if (a.qo_indptr != nullptr) check_map(a, constant(image, "tile_m"));
    // The reference knows all heads of a KV head as one group.
    AttentionParams whole = a;
    whole.group = a.group * p.groups_a_kv_head;
    whole.kv_heads = a.kv_heads / p.groups_a_kv_head;
    run_attention_alike(image, whole);
}

void run_merge_states(std::string_view image, const MergeStatesParams& p) {
    const auto dtype = static_cast<DType>(constant(image, "format"));
    const int head_dim = constant(image, "head_dim");
    const std::int64_t batch = p.rows / p.q_len / p.heads;
    reference::MergeStates call;
    const auto result = [&](const void* data, const AttentionStrides& s) {
        return tensor_of(data, dtype, {batch, p.q_len, p.heads, head_dim},
                         {s.batch, s.row, s.head, 1});
    };
    const auto log_sums = [&](const float* data, const AttentionStrides& s) {
        return tensor_of(data, DType::fp32, {batch, p.heads, p.q_len}, {s.batch, s.head, s.row});
    };
    for (int i = 0; i < p.source_count; ++i) {
        const MergeSource& source = p.sources[i];
        for (int part = 0; part < source.parts; ++part) {
            const char* out = static_cast<const char*>(source.out);
            call.parts.push_back(
                {result(out + part * source.out_part * size_of(dtype), source.out_strides),
                 log_sums(source.lse + part * source.lse_part, source.lse_strides)});
        }
    }
    if (std::ssize(call.parts) != p.parts) throw std::logic_error("parts that are miscounted");
    call.out = result(p.out, p.out_strides);
    if (p.lse != nullptr) call.lse = log_sums(p.lse, p.lse_strides);
    reference::merge_states(call);
}

}  // namespace jitney::tests
