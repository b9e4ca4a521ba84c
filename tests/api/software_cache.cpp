// Where keys and values stand, and new ones that are appended.
#include "tests/api/software_launches.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <tuple>

#include "kernel_sources/common/constants.h"
#include "operations/append_kv/reference.hpp"
#include "operations/reference/cache_fields.hpp"
#include "tests/api/software_tensors.hpp"

namespace jitney::tests {
namespace {

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
    const Tensor table = tensor_of(p.page_table, DType::int32, {rows, kMany}, {p.table_stride, 1});
    if (p.request_rows != nullptr) {
        call.req_to_token = table;
        call.req_pool_indices = ints_of(p.request_rows, p.batch);
    } else {
        call.block_table = table;
    }
}

}  // namespace

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
    reference::copy_cache(call, cached);
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

}  // namespace jitney::tests
