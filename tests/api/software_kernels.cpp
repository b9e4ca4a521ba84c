#include "tests/api/software_kernels.hpp"

#include <algorithm>
#include <numbers>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "kernel_sources/attention/append_kv.h"
#include "kernel_sources/attention/mask_bits.h"
#include "kernel_sources/attention/merge_states.h"
#include "kernel_sources/attention/params.h"
#include "kernel_sources/attention/work_map.h"
#include "kernel_sources/common/constants.h"
#include "kernel_sources/fp8/column_sums_params.h"
#include "kernel_sources/fp8/gemm_params.h"
#include "kernel_sources/fp8/quantize_params.h"
#include "kernel_sources/fp8/scale.h"
#include "kernel_sources/fp8/update_params.h"
#include "kernel_sources/rotary/params.h"
#include "reference/append_kv.hpp"
#include "reference/attention.hpp"
#include "reference/fp8_gemm.hpp"
#include "reference/fp8_linear.hpp"
#include "reference/fp8_quantize.hpp"
#include "reference/merge_states.hpp"
#include "reference/rotary.hpp"

namespace jitney::tests {
namespace {

constexpr Device kCpu{DeviceType::cpu, 0};

int constant(std::string_view image, const std::string& name) {
    const std::string mark = "static constexpr int " + name + " = ";
    const std::size_t at = image.find(mark);
    if (at == std::string_view::npos) throw std::logic_error("no constant " + name);
    return std::stoi(std::string(image.substr(at + mark.size(), 8)));
}

Tensor tensor_of(const void* data, DType dtype, std::initializer_list<std::int64_t> shape,
                 std::initializer_list<std::int64_t> strides) {
    return Tensor::strided(const_cast<void*>(data), dtype, shape, strides, kCpu);
}

Tensor heads_of(const void* data, DType dtype, int batch, int length, int heads, int head_dim,
                const AttentionStrides& strides) {
    return tensor_of(data, dtype, {batch, length, heads, head_dim},
                     {strides.batch, strides.row, strides.head, 1});
}

Tensor ints_of(const int* data, std::int64_t count) {
    return tensor_of(data, DType::int32, {count}, {1});
}

// Of a table or a pool nothing tells how many rows it has.
constexpr std::int64_t kMany = std::int64_t{1} << 30;

void check_division(const AttentionParams& p) {
    for (const unsigned key : {0u, 1u, 4u, 15u, 16u, 17u, 12345u, 0x7ffffff1u, 0x7fffffffu}) {
        const unsigned page = p.page_magic == 0
                                  ? key
                                  : static_cast<unsigned>(std::uint64_t{key} * p.page_magic >> 32);
        if (page >> p.page_shift != key / static_cast<unsigned>(p.page_size)) {
            throw std::logic_error("a page size that is divided by wrongly");
        }
    }
}

void set_pages(const AttentionParams& p, reference::Attention& call) {
    check_division(p);
    if (p.page_tables == kTableIndptr) {
        call.kv_page_indptr = ints_of(p.kv_page_indptr, p.batch + 1);
        call.kv_page_indices = ints_of(p.page_table, p.kv_page_indptr[p.batch]);
        call.last_page_len = ints_of(p.last_page_len, p.batch);
        return;
    }
    const std::int64_t rows = p.request_rows != nullptr ? kMany : p.batch;
    const Tensor table = tensor_of(p.page_table, DType::int32, {rows, std::max(p.table_stride, 1)},
                                   {p.table_stride, 1});
    if (p.request_rows != nullptr) {
        call.req_to_token = table;
        call.req_pool_indices = ints_of(p.request_rows, p.batch);
    } else {
        call.block_table = table;
    }
}

void set_keys(std::string_view image, const AttentionParams& p, DType dtype, int head_dim,
              reference::Attention& call) {
    const bool paged = constant(image, "kv") == kPagedKv;
    if (p.kv_lengths == kKvLenIndptr) call.kv_indptr = ints_of(p.kv_indptr, p.batch + 1);
    if (p.kv_lengths == kKvLenArray) call.kv_lens = ints_of(p.kv_lens, p.batch);
    if (paged) set_pages(p, call);
    for (const auto& [to, from, s] :
         {std::tuple{&call.k, p.k, &p.k_strides}, std::tuple{&call.v, p.v, &p.v_strides}}) {
        if (!paged && p.kv_lengths == kKvLenIndptr) {
            *to = tensor_of(from, dtype, {p.kv_indptr[p.batch], p.kv_heads, head_dim},
                            {s->row, s->head, 1});
        } else {
            *to = tensor_of(
                from, dtype,
                {paged ? kMany : p.batch, paged ? p.page_size : p.kv_len, p.kv_heads, head_dim},
                {s->batch, s->row, s->head, 1});
        }
    }
}

// Each tile of each request once, and nothing else.
void check_map(const AttentionParams& p, int tile_m) {
    std::vector<std::vector<bool>> seen(static_cast<std::size_t>(p.batch));
    for (std::size_t i = 0; i < seen.size(); ++i) {
        const int rows = (p.qo_indptr[i + 1] - p.qo_indptr[i]) * p.group;
        seen[i].resize(static_cast<std::size_t>((rows + tile_m - 1) / tile_m));
    }
    for (int slot = 0; slot < p.row_tiles; ++slot) {
        if (p.tile_batch[slot] < 0) continue;
        auto tile = seen.at(static_cast<std::size_t>(p.tile_batch[slot]))
                        .at(static_cast<std::size_t>(p.tile_index[slot]));
        if (tile) throw std::logic_error("a tile that stands twice in the map");
        seen[static_cast<std::size_t>(p.tile_batch[slot])]
            [static_cast<std::size_t>(p.tile_index[slot])] = true;
    }
    for (const auto& tiles : seen) {
        if (std::ranges::find(tiles, false) != tiles.end()) {
            throw std::logic_error("a tile that the map leaves out");
        }
    }
}

void run_work_map(const WorkMapParams& p) {
    int slot = 0;
    for (int request = 0; request < p.batch; ++request) {
        const int rows = (p.qo_indptr[request + 1] - p.qo_indptr[request]) * p.group;
        for (int tile = (rows + p.tile_m - 1) / p.tile_m; tile-- > 0; ++slot) {
            if (slot == p.slots) throw std::logic_error("a map that is too small");
            p.tile_batch[slot] = request;
            p.tile_index[slot] = tile;
        }
    }
    std::fill(p.tile_batch + slot, p.tile_batch + p.slots, -1);
}

const unsigned char* mask_bytes(const AttentionParams& p, int batch, int head, int row) {
    return p.mask + batch * p.mask_strides.batch + head * p.mask_strides.head +
           row * p.mask_strides.row;
}

unsigned& mask_word(const MaskBits& mask, int batch, int head, int row, int key) {
    const std::int64_t bands = (std::int64_t{batch} * mask.heads + head) * mask_bands(mask.rows);
    const std::int64_t groups = (bands + row / kMaskBandRows) * mask_groups(mask.keys) + key / 32;
    return mask.words[groups * mask_band_stride(mask.rows) + row % kMaskBandRows];
}

// The bits alone: which tiles have any, the software does not ask.
void run_mask_bits(const AttentionParams& p) {
    const MaskBits& mask = p.mask_bits;
    for (int i = 0; i < mask.batch * mask.heads * mask.rows; ++i) {
        const int batch = i / mask.rows / mask.heads;
        const int head = i / mask.rows % mask.heads;
        const unsigned char* bytes = mask_bytes(p, batch, head, i % mask.rows);
        for (int key = 0; key < mask.keys; ++key) {
            unsigned& word = mask_word(mask, batch, head, i % mask.rows, key);
            if (key % 32 == 0) word = 0;
            word |= (bytes[key] != 0 ? 1u : 0u) << key % 32;
        }
    }
}

// Each query of each head finds its mask there.
void check_mask_bits(const AttentionParams& p) {
    const MaskBits& mask = p.mask_bits;
    const int heads = p.kv_heads * p.group;
    const int rows = p.qo_indptr == nullptr ? p.q_len : mask.rows;
    for (int i = 0; i < p.batch * heads * rows; ++i) {
        const int batch = i / rows / heads;
        const int head = i / rows % heads;
        const int row = i % rows;
        const unsigned char* bytes = mask_bytes(p, batch, head, row);
        for (int key = 0; key < mask.keys; ++key) {
            const unsigned word =
                mask_word(mask, mask.batch == 1 ? 0 : batch, mask.heads == 1 ? 0 : head,
                          mask.rows == 1 ? 0 : row, key);
            if ((word >> key % 32 & 1u) != (bytes[key] != 0 ? 1u : 0u)) {
                throw std::logic_error("bits that are not those of the mask");
            }
        }
    }
}

void set_options(std::string_view image, const AttentionParams& p, reference::Attention& call) {
    const int heads = p.kv_heads * p.group;
    const double scale = static_cast<double>(p.scale_log2) / std::numbers::log2e;
    call.scale = scale;
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

void check_workspace(const AttentionParams& params) {
    if (params.splits == 1) return;
    if (params.partial_out == nullptr || params.partial_statistics == nullptr ||
        params.arrived == nullptr) {
        throw std::logic_error("splits without a workspace");
    }
    if (*params.arrived != 0) throw std::logic_error("a counter that is not zero");
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

void run_attention(std::string_view image, const AttentionParams& p) {
    check_workspace(p);
    const auto dtype = static_cast<DType>(constant(image, "format"));
    const int head_dim = constant(image, "head_dim");
    const bool decode = image.find("attention/decode") != std::string_view::npos;
    if (!decode && (constant(image, "queries") == kPackedQueries) != (p.qo_indptr != nullptr)) {
        throw std::logic_error("a kernel for other queries");
    }
    if (p.qo_indptr != nullptr) check_map(p, constant(image, "tile_m"));
    reference::Attention call;
    call.q = queries_of(p.q, dtype, p, head_dim, p.q_strides);
    call.out = queries_of(p.out, dtype, p, head_dim, p.out_strides);
    if (p.qo_indptr != nullptr) call.qo_indptr = ints_of(p.qo_indptr, p.batch + 1);
    set_keys(image, p, dtype, head_dim, call);
    call.causal = constant(image, "causal") != 0;
    if (constant(image, "mask") != 0) {
        set_mask(p, call);
        if (image.find("attention/prefill_mma") != std::string_view::npos) check_mask_bits(p);
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

struct Turned {
    Tensor x;
    Tensor out;
};

Turned turned(const RotaryTensor& t, const RotaryParams& p, DType dtype) {
    const std::int64_t batch = p.tokens / p.length;
    return {tensor_of(t.x, dtype, {batch, p.length, t.heads, p.head_dim},
                      {t.x_batch, t.x_row, t.x_head, 1}),
            tensor_of(t.out, dtype, {batch, p.length, t.heads, p.head_dim},
                      {t.out_batch, t.out_row, t.out_head, 1})};
}

void run_rotary(std::string_view image, const RotaryParams& p) {
    const auto dtype = static_cast<DType>(constant(image, "format"));
    const Turned q = turned(p.tensors[0], p, dtype);
    reference::Rotary call;
    call.q = q.x;
    call.q_out = q.out;
    if (p.tensors[1].heads != 0) {
        const Turned k = turned(p.tensors[1], p, dtype);
        call.k = k.x;
        call.k_out = k.out;
    }
    call.cos = tensor_of(p.cos, DType::fp32, {p.table_rows, p.rotary_dim / 2}, {p.table_stride, 1});
    call.sin = tensor_of(p.sin, DType::fp32, {p.table_rows, p.rotary_dim / 2}, {p.table_stride, 1});
    if (p.positions != nullptr) {
        call.positions =
            tensor_of(p.positions, p.positions_are_64_bit != 0 ? DType::int64 : DType::int32,
                      {p.tokens / p.length, p.length}, {p.positions_batch, p.positions_row});
    }
    call.style = constant(image, "style") == 0 ? reference::RotaryStyle::interleaved
                                               : reference::RotaryStyle::half_split;
    reference::rotary(call);
}

// The cache's fields mean what attention's do.
void run_append_kv(std::string_view image, const AppendKvParams& p) {
    const auto dtype = static_cast<DType>(constant(image, "format"));
    const bool packed = constant(image, "queries") == kPackedQueries;
    const int rotary = constant(image, "rotary");
    const AttentionParams& c = p.cache;
    if (packed != (c.qo_indptr != nullptr)) throw std::logic_error("a kernel for other rows");
    reference::Attention cached;
    set_keys(image, c, dtype, p.head_dim, cached);
    const auto rows = [&](const void* data, const AttentionStrides& s, int heads) {
        if (!packed) return heads_of(data, dtype, c.batch, c.q_len, heads, p.head_dim, s);
        return tensor_of(data, dtype, {p.tokens, heads, p.head_dim}, {s.row, s.head, 1});
    };
    reference::AppendKv call;
    call.new_k = rows(c.new_k, c.new_k_strides, c.kv_heads);
    call.new_v = rows(c.new_v, c.new_v_strides, c.kv_heads);
    if (packed) call.new_indptr = ints_of(c.qo_indptr, c.batch + 1);
    call.k = cached.k;
    call.v = cached.v;
    call.kv_lens = cached.kv_lens;
    call.kv_indptr = cached.kv_indptr;
    call.req_to_token = cached.req_to_token;
    call.req_pool_indices = cached.req_pool_indices;
    call.block_table = cached.block_table;
    call.kv_page_indptr = cached.kv_page_indptr;
    call.kv_page_indices = cached.kv_page_indices;
    call.last_page_len = cached.last_page_len;
    if (rotary != 0) {
        const RotaryParams& r = p.rotary;
        const auto table = [&r](const float* data) {
            return tensor_of(data, DType::fp32, {r.table_rows, r.rotary_dim / 2},
                             {r.table_stride, 1});
        };
        call.cos = table(r.cos);
        call.sin = table(r.sin);
        call.style =
            rotary == 2 ? reference::RotaryStyle::half_split : reference::RotaryStyle::interleaved;
        const DType positions = r.positions_are_64_bit != 0 ? DType::int64 : DType::int32;
        if (r.positions != nullptr && packed) {
            call.positions = tensor_of(r.positions, positions, {p.tokens}, {r.positions_row});
        } else if (r.positions != nullptr) {
            call.positions = tensor_of(r.positions, positions, {c.batch, c.q_len},
                                       {r.positions_batch, r.positions_row});
        }
        const RotaryTensor& q = r.tensors[0];
        if (q.heads != 0) {
            call.q = rows(q.x, {q.x_batch, q.x_row, q.x_head}, q.heads);
            call.q_out = rows(q.out, {q.out_batch, q.out_row, q.out_head}, q.heads);
        }
    }
    reference::append_kv(call);
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

std::optional<Tensor> number_of(const float* data) {
    if (data == nullptr) return std::nullopt;
    return tensor_of(data, DType::fp32, {1}, {1});
}

// Rows [first, first + rows) of the matrix.
void run_quantize_rows(std::string_view image, const Fp8QuantizeParams& p, std::int64_t first,
                       std::int64_t rows, std::int64_t cols, const Tensor* amax) {
    const auto out = static_cast<DType>(constant(image, "out"));
    const int codes = constant(image, "codes");
    const auto dtype = static_cast<DType>(constant(image, "format"));
    const auto* x = static_cast<const std::byte*>(p.x) + first * p.x_stride * size_of(dtype);
    reference::Fp8Quantize call;
    call.x = tensor_of(x, dtype, {rows, cols}, {p.x_stride, 1});
    if ((codes & kRowCodes) != 0) {
        call.out =
            tensor_of(p.codes + first * p.codes_stride, out, {rows, cols}, {p.codes_stride, 1});
    }
    if ((codes & kTransposedCodes) != 0) {
        call.out_transposed =
            tensor_of(p.transposed + first, out, {cols, rows}, {p.transposed_stride, 1});
    }
    call.multiplier = number_of(p.multiplier);
    call.scale = codes != kNoCodes ? number_of(p.scale) : std::nullopt;
    if (amax != nullptr) call.amax = *amax;
    reference::fp8_quantize(call);
}

void run_fp8_quantize(std::string_view image, const Fp8QuantizeParams& p) {
    const bool wants_amax = constant(image, "amax") != 0;
    if (wants_amax != (p.counters != nullptr)) throw std::logic_error("counters come with amax");
    float of_rows = 0;
    float of_last = 0;
    const Tensor rows_amax = tensor_of(&of_rows, DType::fp32, {1}, {1});
    const Tensor last_amax = tensor_of(&of_last, DType::fp32, {1}, {1});
    run_quantize_rows(image, p, 0, p.rows - 1, p.cols, &rows_amax);
    run_quantize_rows(image, p, p.rows - 1, 1, p.last_cols, &last_amax);
    if (!wants_amax) return;
    const float amax = std::max(of_rows, of_last);
    if (p.amax != nullptr) *p.amax = amax;
    if (p.new_multiplier == nullptr) return;
    *p.new_multiplier = dynamic_fp8_multiplier(amax, p.largest);
    if (p.scale != nullptr) *p.scale = fp8_scale(*p.new_multiplier);
}

void run_fp8_gemm(std::string_view image, const Fp8GemmParams& p) {
    if ((p.splits > 1) != (p.partials != nullptr)) throw std::logic_error("splits leave parts");
    if ((p.amax != nullptr) != (p.amax_counters != nullptr)) {
        throw std::logic_error("amax comes with counters");
    }
    const auto matrix = [&](const char* format, const Fp8GemmOperand& operand, int rows, int cols) {
        return tensor_of(operand.data, static_cast<DType>(constant(image, format)), {rows, cols},
                         {operand.stride, 1});
    };
    reference::Fp8Gemm call;
    call.trans_a = constant(image, "trans_a") != 0;
    call.trans_b = constant(image, "trans_b") != 0;
    call.a = matrix("a", p.a, call.trans_a ? p.k : p.m, call.trans_a ? p.m : p.k);
    call.b = matrix("b", p.b, call.trans_b ? p.n : p.k, call.trans_b ? p.k : p.n);
    call.out =
        tensor_of(p.out, static_cast<DType>(constant(image, "out")), {p.m, p.n}, {p.out_stride, 1});
    call.scale = *number_of(p.scale);
    if (p.bias != nullptr) {
        call.bias = tensor_of(p.bias, static_cast<DType>(p.bias_format), {p.n}, {1});
    }
    call.multiplier = number_of(p.multiplier);
    call.amax = number_of(p.amax);
    reference::fp8_gemm(call);
}

void run_column_sums(std::string_view image, const ColumnSumsParams& p) {
    if (p.splits > 1 && (p.parts == nullptr || p.arrived == nullptr)) {
        throw std::logic_error("splits need memory to meet in");
    }
    reference::column_sums(
        tensor_of(p.x, static_cast<DType>(constant(image, "format")), {p.rows, p.cols},
                  {p.x_stride, 1}),
        tensor_of(p.out, static_cast<DType>(constant(image, "out")), {p.cols}, {1}));
}

}  // namespace

void run_software_kernel(const char* image, void** parameters) {
    const std::string_view text = image;
    if (text.find("\"attention/work_map") != std::string_view::npos) {
        run_work_map(*static_cast<const WorkMapParams*>(parameters[0]));
    } else if (text.find("\"attention/append_kv") != std::string_view::npos) {
        run_append_kv(text, *static_cast<const AppendKvParams*>(parameters[0]));
    } else if (text.find("\"attention/merge_states") != std::string_view::npos) {
        run_merge_states(text, *static_cast<const MergeStatesParams*>(parameters[0]));
    } else if (text.find("\"attention/mask_bits") != std::string_view::npos) {
        run_mask_bits(*static_cast<const AttentionParams*>(parameters[0]));
    } else if (text.find("\"rotary/") != std::string_view::npos) {
        run_rotary(text, *static_cast<const RotaryParams*>(parameters[0]));
    } else if (text.find("\"fp8/gemm") != std::string_view::npos) {
        run_fp8_gemm(text, *static_cast<const Fp8GemmParams*>(parameters[0]));
    } else if (text.find("\"fp8/quantize") != std::string_view::npos) {
        run_fp8_quantize(text, *static_cast<const Fp8QuantizeParams*>(parameters[0]));
    } else if (text.find("\"fp8/update") != std::string_view::npos) {
        reference::fp8_update(*static_cast<const Fp8UpdateParams*>(parameters[0]));
    } else if (text.find("\"fp8/column_sums") != std::string_view::npos) {
        run_column_sums(text, *static_cast<const ColumnSumsParams*>(parameters[0]));
    } else {
        run_attention(text, *static_cast<const AttentionParams*>(parameters[0]));
    }
}

}  // namespace jitney::tests
