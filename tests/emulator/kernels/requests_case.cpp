#include "tests/emulator/kernels/requests_case.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numbers>

#include "kernel_sources/attention/params.h"
#include "kernel_sources/common/constants.h"
#include "tests/emulator/kernels/attention_case.hpp"
#include "tests/emulator/kernels/emulated_tensor.hpp"
#include "tests/emulator/kernels/launch_choice.hpp"
#include "tests/emulator/kernels/split_memory.hpp"
#include "tests/support/compare.hpp"

namespace jitney::emulator {
namespace {

using Use = EmulatedTensor::Use;

// int32 values in the emulator's memory; null where there are none.
class Numbers {
  public:
    Numbers(const std::vector<int>& values, const char* name)
        : buffer_(values.size() * sizeof(int), name), any_(!values.empty()) {
        if (any_) std::memcpy(buffer_.data(), values.data(), buffer_.bytes());
        buffer_.make_read_only();
    }
    // In rows of so many, which lie `stride` apart. `usable` says which of them a kernel may read;
    // empty: all.
    Numbers(const std::vector<int>& values, const char* name, const std::vector<bool>& usable,
            int row, int stride)
        : buffer_(far_rows(values.size(), row, stride, name)), any_(!values.empty()) {
        for (std::size_t i = 0; i < values.size(); ++i)
            buffer_.as<int>()[place(i, row, stride)] = values[i];
        for (std::size_t i = 0; i < usable.size(); ++i) {
            if (!usable[i]) buffer_.forbid(place(i, row, stride) * sizeof(int), sizeof(int));
        }
        buffer_.make_read_only();
    }
    const int* data() const { return any_ ? buffer_.as<int>() : nullptr; }

  private:
    static std::size_t place(std::size_t i, int row, int stride) {
        if (row == 0) return i;
        const auto width = static_cast<std::size_t>(row);
        return i / width * static_cast<std::size_t>(stride) + i % width;
    }
    static Buffer far_rows(std::size_t count, int row, int stride, const char* name) {
        Intervals existing;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t first = place(i, row, stride) * sizeof(int);
            existing.add(first, first + sizeof(int));
        }
        return Buffer(count == 0 ? 0 : existing.runs().back().end, existing, name);
    }

    Buffer buffer_;
    bool any_;
};

struct Memory {
    explicit Memory(const Requests& batch)
        : q(batch.q, Use::input, 0, {}, spread(batch)),
          k(batch.k, cache_use(batch), 0, batch.elements_of_keys(0), spread(batch)),
          v(batch.v, cache_use(batch), 0, batch.elements_of_keys(0), spread(batch)),
          out(batch.out, Use::output, 0, {}, spread(batch)),
          lse(batch.lse, Use::output, 0, {}, spread(batch)),
          slopes(batch.slopes, Use::input),
          sinks(batch.sinks, Use::input),
          new_k(batch.new_k, Use::input, 0, {}, spread(batch)),
          new_v(batch.new_v, Use::input, 0, {}, spread(batch)),
          qo_indptr(batch.tables.qo_indptr, "qo_indptr"),
          kv_indptr(batch.tables.kv_indptr, "kv_indptr"),
          kv_lens(batch.tables.kv_lens, "kv_lens"),
          page_table(batch.tables.page_table, "the page table", batch.entries_of_pages(),
                     batch.tables.table_stride, table_stride(batch)),
          request_rows(batch.tables.request_rows, "request_rows"),
          kv_page_indptr(batch.tables.kv_page_indptr, "kv_page_indptr"),
          last_page_len(batch.tables.last_page_len, "last_page_len") {
        if (batch.mask) {
            mask.emplace(*batch.mask, Use::input, 0, batch.elements_of_mask(), spread(batch));
        }
    }

    // Rows of the table are an int apart, so that the third is out of its reach.
    static int table_stride(const Requests& batch) {
        constexpr int kFar = (1 << 30) + 8;
        const int dense = batch.tables.table_stride;
        return batch.shape.far && dense != 0 ? kFar : dense;
    }
    static EmulatedTensor::Spread spread(const Requests& batch) {
        return batch.shape.far ? EmulatedTensor::Spread::far : EmulatedTensor::Spread::near;
    }

    static Use cache_use(const Requests& batch) {
        return batch.shape.new_len == 0 ? Use::input : Use::output;
    }

    EmulatedTensor q;
    EmulatedTensor k;
    EmulatedTensor v;
    EmulatedTensor out;
    EmulatedTensor lse;
    EmulatedTensor slopes;
    EmulatedTensor sinks;
    EmulatedTensor new_k;
    EmulatedTensor new_v;
    std::optional<EmulatedTensor> mask;
    Numbers qo_indptr;
    Numbers kv_indptr;
    Numbers kv_lens;
    Numbers page_table;
    Numbers request_rows;
    Numbers kv_page_indptr;
    Numbers last_page_len;
};

AttentionStrides strides_of(const Tensor& tensor, bool packed = false) {
    return {packed ? 0 : tensor.strides[0], tensor.strides[1], tensor.strides[2]};
}

// Division of a key below 2^31 by the page size as a product, as page_of() does it.
void set_page_size(AttentionParams& params, std::int64_t page_size) {
    const auto size = static_cast<unsigned>(page_size);
    params.page_size = static_cast<int>(size);
    params.page_shift = static_cast<int>(std::bit_width(size)) - 1;
    params.page_magic = 0;
    if (std::has_single_bit(size)) return;
    const std::uint64_t power = std::uint64_t{1} << (32 + params.page_shift);
    params.page_magic = static_cast<unsigned>((power + size - 1) / size);
}

void set_lengths(AttentionParams& params, const Requests& batch, const Memory& memory) {
    switch (batch.shape.kv) {
        case KvForm::fixed:
            params.kv_lengths = kKvLenFixed;
            break;
        case KvForm::packed:
        case KvForm::token_table:
            params.kv_lengths = kKvLenIndptr;
            break;
        case KvForm::padded:
        case KvForm::block_table:
            params.kv_lengths = kKvLenArray;
            break;
        case KvForm::page_lists:
            params.kv_lengths = kKvLenPages;
            break;
    }
    params.page_tables = batch.shape.kv == KvForm::page_lists ? kTableIndptr : kTableRows;
    params.table_stride = Memory::table_stride(batch);
    params.kv_indptr = memory.kv_indptr.data();
    params.kv_lens = memory.kv_lens.data();
    params.page_table = memory.page_table.data();
    params.request_rows = memory.request_rows.data();
    params.kv_page_indptr = memory.kv_page_indptr.data();
    params.last_page_len = memory.last_page_len.data();
}

void set_options(AttentionParams& params, const Requests& batch, const Memory& memory) {
    const RequestsShape& shape = batch.shape;
    params.scale_log2 = static_cast<float>(shape.scale()) * std::numbers::log2e_v<float>;
    params.window_left = static_cast<int>(shape.window_left);
    params.window_right = static_cast<int>(shape.window_right);
    if (shape.softcap != 0.0) {
        params.softcap_scale = static_cast<float>(shape.scale() / shape.softcap);
    }
    if (shape.alibi) params.alibi_slopes = static_cast<const float*>(memory.slopes.view().data);
    if (shape.sinks) params.sinks = static_cast<const float*>(memory.sinks.view().data);
    if (memory.mask) {
        const Tensor mask = memory.mask->view();
        params.mask = static_cast<const unsigned char*>(mask.data);
        params.mask_strides = {mask.strides[0], mask.strides[2], mask.strides[1]};
    }
    params.new_len = static_cast<int>(shape.new_len);
    params.new_k = memory.new_k.view().data;
    params.new_v = memory.new_v.view().data;
    params.new_k_strides = strides_of(memory.new_k.view());
    params.new_v_strides = strides_of(memory.new_v.view());
}

AttentionParams make_params(const Requests& batch, const Memory& memory,
                            const policy::AttentionChoice& choice) {
    const RequestsShape& shape = batch.shape;
    AttentionParams params{};
    params.q = memory.q.view().data;
    params.k = memory.k.view().data;
    params.v = memory.v.view().data;
    params.out = memory.out.view().data;
    params.q_strides = strides_of(memory.q.view(), shape.packed);
    params.k_strides = strides_of(memory.k.view(), shape.kv == KvForm::packed);
    params.v_strides = strides_of(memory.v.view(), shape.kv == KvForm::packed);
    params.out_strides = strides_of(memory.out.view(), shape.packed);
    const Tensor lse = memory.lse.view();
    params.lse = static_cast<float*>(lse.data);
    params.lse_strides = shape.packed
                             ? AttentionStrides{0, lse.strides[1], lse.strides[2]}
                             : AttentionStrides{lse.strides[0], lse.strides[2], lse.strides[1]};
    params.batch = static_cast<int>(shape.batch());
    params.q_len = static_cast<int>(shape.packed ? -1 : shape.longest_query());
    params.kv_len = static_cast<int>(shape.kv == KvForm::fixed ? shape.longest_keys() : -1);
    params.kv_heads = static_cast<int>(shape.kv_heads);
    params.group = static_cast<int>(shape.group);
    params.row_tiles = choice.row_tiles;
    params.splits = choice.splits;
    params.qo_indptr = memory.qo_indptr.data();
    set_lengths(params, batch, memory);
    set_page_size(params, shape.page_size);
    set_options(params, batch, memory);
    return params;
}

// The map of tiles of packed queries: the request and the number of each, -1 where there are none.
struct TileMap {
    TileMap(const RequestsShape& shape, int row_tiles, int tile_m) {
        for (std::int64_t request = 0; request < shape.batch(); ++request) {
            const std::int64_t rows =
                shape.requests[static_cast<std::size_t>(request)].q_len * shape.group;
            for (std::int64_t tile = 0; tile * tile_m < rows; ++tile) {
                batch.push_back(static_cast<int>(request));
                index.push_back(static_cast<int>(tile));
            }
        }
        REQUIRE(batch.size() <= static_cast<std::size_t>(row_tiles));
        batch.resize(static_cast<std::size_t>(row_tiles), -1);
        index.resize(static_cast<std::size_t>(row_tiles), -1);
    }
    std::vector<int> batch;
    std::vector<int> index;
};

policy::AttentionProblem problem_of(const RequestsShape& shape) {
    policy::AttentionProblem problem;
    problem.format =
        shape.dtype == DType::bf16 ? kBf16 : (shape.dtype == DType::fp16 ? kFp16 : kFp32);
    problem.batch = static_cast<int>(shape.batch());
    problem.q_len = static_cast<int>(shape.packed ? shape.total_queries() : shape.longest_query());
    problem.kv_len = static_cast<int>(shape.longest_keys());
    problem.q_heads = static_cast<int>(shape.q_heads());
    problem.kv_heads = static_cast<int>(shape.kv_heads);
    problem.head_dim = static_cast<int>(shape.head_dim);
    problem.causal = shape.causal;
    problem.mask = shape.mask;
    if (shape.mask) {
        problem.mask_sizes = {problem.batch, problem.q_heads,
                              static_cast<int>(shape.longest_query()), problem.kv_len};
    }
    problem.packed = shape.packed;
    problem.paged = is_paged(shape.kv);
    problem.page_size = shape.page_size;
    problem.window = shape.window_left >= 0 || shape.window_right >= 0;
    problem.softcap = shape.softcap != 0.0;
    problem.alibi = shape.alibi;
    problem.sinks = shape.sinks;
    problem.append = shape.new_len != 0;
    return problem;
}

void check_pool(const tests::HostTensor& actual, tests::HostTensor& expected) {
    CHECK_MESSAGE(
        std::ranges::equal(const_cast<tests::HostTensor&>(actual).storage(), expected.storage()),
        "the cache does not hold its old rows and the new ones, and nothing else");
}

void check_result(Requests& batch, const Memory& memory) {
    batch.run_reference();
    check_output(memory.out.download(), batch.out);
    check_log_sums(memory.lse.download(), batch.lse);
    if (batch.shape.new_len == 0) return;
    check_pool(memory.k.download(), batch.k);
    check_pool(memory.v.download(), batch.v);
}

}  // namespace

std::optional<policy::AttentionChoice> run_requests(const Covered& covered,
                                                    const RequestsShape& shape, int sm_count,
                                                    tests::Random& random) {
    policy::DeviceFacts facts = covered.attention->facts;
    if (sm_count != 0) facts.sm_count = sm_count;
    const std::optional<policy::AttentionChoice> choice =
        policy::choose_attention(problem_of(shape), facts, covered.attention->kernel);
    if (!choice || !(choice->spec == covered.spec)) return std::nullopt;

    INFO(policy::text_of(choice->spec), ": ", shape.text(), ", splits ", choice->splits, ", ",
         random.text());
    Requests batch(shape, random);
    const Memory memory(batch);
    AttentionParams params = make_params(batch, memory, *choice);
    std::optional<Numbers> tile_batch;
    std::optional<Numbers> tile_index;
    if (shape.packed) {
        const TileMap map(shape, choice->row_tiles, policy::value_of(choice->spec, "tile_m"));
        tile_batch.emplace(map.batch, "tile_batch");
        tile_index.emplace(map.index, "tile_index");
        params.tile_batch = tile_batch->data();
        params.tile_index = tile_index->data();
    }
    const SplitMemory split(choice->workspace);
    params.partial_out = split.partial_out();
    params.partial_statistics = split.partial_statistics();
    params.arrived = split.counters();
    const Buffer words(choice->workspace.mask_words_bytes, "the words of the mask");
    const Buffer summary(choice->workspace.mask_summary_bytes, "the summary of the mask");
    if (choice->mask_bits) {
        params.mask_bits = {words.as<unsigned>(),
                            summary.as<unsigned>(),
                            params.batch,
                            params.kv_heads * params.group,
                            static_cast<int>(shape.longest_query()),
                            static_cast<int>(shape.longest_keys())};
        launch_choice(choice->mask_bits->spec, choice->mask_bits->geometry, &params, random);
    }
    const auto launch = [&](BlockOrder order) {
        launch_choice(choice->spec, choice->geometry, &params, random, {.order = order});
    };
    launch(BlockOrder::shuffled);
    if (choice->splits > 2) {
        check_any_order(launch, [&] { return std::pair(memory.out.bits(), memory.lse.bits()); });
    }
    check_result(batch, memory);
    split.check();
    return choice;
}

}  // namespace jitney::emulator
