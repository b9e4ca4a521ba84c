#include "operations/attention/fill.hpp"

#include <bit>
#include <cmath>
#include <numbers>

#include "operations/attention/cache_addresses.hpp"
#include "operations/attention/form.hpp"
#include "operations/attention/tensor_maps.hpp"

namespace jitney {
namespace {

// Of [batch, length, heads, head_dim].
AttentionStrides strides_of(const Tensor& tensor) noexcept {
    return {tensor.strides[0], tensor.strides[1], tensor.strides[2]};
}

// Of [tokens, heads, head_dim].
AttentionStrides packed_strides(const Tensor& tensor) noexcept {
    return {0, tensor.strides[0], tensor.strides[1]};
}

// Of [slots, heads, head_dim]: pages of one key.
AttentionStrides slot_strides(const Tensor& tensor) noexcept {
    return {tensor.strides[0], 0, tensor.strides[1]};
}

AttentionStrides query_strides(const Tensor& tensor, bool packed) noexcept {
    return packed ? packed_strides(tensor) : strides_of(tensor);
}

AttentionStrides key_strides(const Tensor& tensor, KvForm form) noexcept {
    if (tensor.ndim == 4) return strides_of(tensor);
    return form == KvForm::ragged ? packed_strides(tensor) : slot_strides(tensor);
}

// Of [batch, heads, length] or [tokens, heads].
AttentionStrides lse_strides(const Tensor& lse) noexcept {
    if (lse.ndim == 2) return {0, lse.strides[0], lse.strides[1]};
    return {lse.strides[0], lse.strides[2], lse.strides[1]};
}

// 0 for dimensions that the mask lacks or broadcasts.
AttentionStrides mask_strides(const Tensor& mask) noexcept {
    const auto stride = [&mask](std::size_t dim) -> long long {
        return mask.shape[dim] == 1 ? 0 : mask.strides[dim];
    };
    switch (mask.ndim) {
        case 2:
            return {stride(0), 0, 0};
        case 3:
            return {stride(0), stride(1), 0};
        default:
            return {stride(0), stride(2), stride(1)};
    }
}

float scale_of(const AttentionArgs& args, int head_dim) noexcept {
    return args.scale ? *args.scale : 1.0f / std::sqrt(static_cast<float>(head_dim));
}

// The division by a page size that is no power of two, for keys below 2^31: Granlund and
// Montgomery, Division by Invariant Integers using Multiplication, 1994.
void set_page_size(AttentionParams& params, std::int64_t page_size) noexcept {
    const auto size = static_cast<std::uint64_t>(page_size);
    params.page_size = static_cast<int>(page_size);
    if (std::has_single_bit(size)) {
        params.page_magic = 0;
        params.page_shift = std::countr_zero(size);
        return;
    }
    params.page_shift = static_cast<int>(std::bit_width(size - 1)) - 1;
    const std::uint64_t power = std::uint64_t{1} << (32 + params.page_shift);
    params.page_magic = static_cast<unsigned>((power + size - 1) / size);
}

void set_keys(AttentionParams& params, const AttentionArgs& args) noexcept {
    const KvForm form = kv_form(args);
    params.k_strides = key_strides(args.k, form);
    params.v_strides = key_strides(args.v, form);
    params.kv_lengths = args.kv_indptr ? kKvLenIndptr : (args.kv_lens ? kKvLenArray : kKvLenFixed);
    if (!is_paged(form)) return;
    set_page_size(params, page_size_of(args));
    if (form == KvForm::page_list) {
        params.kv_lengths = kKvLenPages;
        params.page_tables = kTableIndptr;
        return;
    }
    params.page_tables = kTableRows;
    params.table_stride = static_cast<int>(
        (form == KvForm::token_table ? args.req_to_token : args.block_table)->strides[0]);
}

void set_options(AttentionParams& params, const AttentionArgs& args, int head_dim) noexcept {
    const float scale = scale_of(args, head_dim);
    // A logits function is given scores in natural units, and so is what follows it.
    const float rest = args.logits ? 1.0f : scale;
    params.caller_scale = scale;
    params.scale_log2 = rest * std::numbers::log2e_v<float>;
    params.window_left = args.window_left;
    params.window_right = args.window_right;
    if (args.softcap) params.softcap_scale = rest / *args.softcap;
    if (args.new_k) {
        params.new_k_strides = strides_of(*args.new_k);
        params.new_v_strides = strides_of(*args.new_v);
        params.new_len = static_cast<int>(args.new_k->shape[1]);
    }
}

void set_workspace(AttentionParams& params, const policy::AttentionChoice& choice, void* scratch,
                   void* counters) noexcept {
    if (scratch == nullptr) return;
    const policy::AttentionWorkspace& workspace = choice.workspace;
    char* at = static_cast<char*>(scratch);
    params.partial_out = reinterpret_cast<float*>(at);
    at += workspace.partial_out_bytes;
    params.partial_statistics = at;
    at += workspace.partial_statistics_bytes;
    params.arrived = static_cast<unsigned*>(counters);
    if (workspace.map_bytes != 0) {
        params.tile_batch = reinterpret_cast<const int*>(at);
        params.tile_index = params.tile_batch + choice.row_tiles;
    }
    at += workspace.map_bytes;
    params.mask_bits.words = reinterpret_cast<unsigned*>(at);
    at += workspace.mask_words_bytes;
    params.mask_bits.summary = reinterpret_cast<unsigned*>(at);
}

}  // namespace

AttentionParams form_params(const AttentionArgs& args, const policy::AttentionProblem& problem,
                            const policy::AttentionChoice& choice) noexcept {
    AttentionParams params{};
    params.q_strides = query_strides(args.q, problem.packed);
    params.out_strides = query_strides(args.out, problem.packed);
    set_keys(params, args);
    if (args.lse) params.lse_strides = lse_strides(*args.lse);
    if (args.mask) params.mask_strides = mask_strides(*args.mask);
    const policy::MaskSizes& mask = problem.mask_sizes;
    params.mask_bits = {nullptr, nullptr, mask.batch, mask.heads, mask.rows, mask.keys};
    params.batch = problem.batch;
    params.q_len = problem.q_len;
    params.kv_len = problem.kv_len;
    params.kv_heads = problem.q_heads / choice.group;
    params.group = choice.group;
    params.row_tiles = choice.row_tiles;
    params.splits = choice.splits;
    params.split_keys = choice.split_keys;
    params.split_parts = choice.split_parts;
    set_options(params, args, problem.head_dim);
    return params;
}

void set_addresses(AttentionParams& params, const AttentionArgs& args,
                   const policy::AttentionChoice& choice, void* scratch, void* counters) noexcept {
    set_cache_addresses(params, args);
    params.q = args.q.data;
    params.out = args.out.data;
    params.lse = data_of<float>(args.lse);
    params.mask = data_of<const unsigned char>(args.mask);
    params.qo_indptr = data_of<const int>(args.qo_indptr);
    params.alibi_slopes = data_of<const float>(args.alibi_slopes);
    params.sinks = data_of<const float>(args.sinks);
    for (std::size_t i = 0; i < kLogitsValues; ++i)
        params.caller_values[i] = args.logits_values[i].bits();
    params.new_k = data_of<const void>(args.new_k);
    params.new_v = data_of<const void>(args.new_v);
    set_workspace(params, choice, scratch, counters);
}

void form_wgmma_params(PrefillWgmmaParams& params, const AttentionArgs& args,
                       const policy::AttentionProblem& problem,
                       const policy::AttentionChoice& choice) {
    params.groups_a_kv_head = problem.group() / choice.group;
    params.heads_at_a_time = choice.heads_at_a_time;
    const int tile_n = policy::value_of(choice.spec, "tile_n");
    if (is_paged(kv_form(args))) params.box_keys = wgmma_box_keys(page_size_of(args), tile_n);
    form_maps(params, args, tile_n);
}

void set_wgmma_addresses(PrefillWgmmaParams& params, const AttentionArgs& args,
                         const policy::AttentionChoice& choice, bool addresses_lead,
                         void* counters) {
    params.next_tile = static_cast<unsigned*>(counters);
    void* const zeros =
        counters == nullptr ? nullptr : static_cast<char*>(counters) + kWgmmaCounterBytes / 2;
    set_map_addresses(params, args, choice.spec, addresses_lead, zeros);
}

WorkMapParams form_map_params(const AttentionParams& attention,
                              const policy::AttentionChoice& choice) noexcept {
    WorkMapParams params{};
    params.batch = attention.batch;
    params.group = attention.group;
    params.tile_m = policy::value_of(choice.spec, "tile_m");
    params.slots = choice.row_tiles;
    return params;
}

void set_addresses(WorkMapParams& params, const AttentionParams& attention) noexcept {
    params.qo_indptr = attention.qo_indptr;
    params.tile_batch = const_cast<int*>(attention.tile_batch);
    params.tile_index = const_cast<int*>(attention.tile_index);
}

}  // namespace jitney
