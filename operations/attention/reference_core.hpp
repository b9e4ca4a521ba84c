// The one attention loop of the reference backend. What varies between the calls is behind three
// small functors:
//
//   Queries   where the rows of q, out and the LSE lie (dense, ragged)
//     int64 requests(), length(request), heads()
//     Row query(request, position, head), out(request, position, head)
//     float* lse(request, position, head)            nullptr where no LSE is wanted
//   Keys      where the rows of k and v lie (contiguous, paged)
//     int64 length(request), heads(), key_dim(), value_dim()
//     Row key(request, position, head), value(request, position, head)
//   Rules     what a query sees, and what becomes of a score
//     KeyRange range(place)                  the keys that the query can see at all
//     void apply(place, first_key, scores)   edits scaled scores; -inf hides a key
//     double sink(head)                      a logit without a value; -inf for none
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "operations/reference/parallel.hpp"
#include "operations/reference/rows.hpp"

namespace jitney::reference {

inline constexpr double kNegativeInfinity = -std::numeric_limits<double>::infinity();

// Keys [begin, end).
struct KeyRange {
    std::int64_t begin = 0;
    std::int64_t end = 0;
};

// A query, and where it stands.
struct QueryPlace {
    std::int64_t request;
    std::int64_t head;
    std::int64_t position;  // in its request
    std::int64_t offset;    // kv_len - q_len: keys and queries end together
    std::int64_t kv_len;

    // Of the query among the keys.
    std::int64_t own_key() const { return position + offset; }
};

// scores[j] = scale * sum over d of query[d] * keys[d * pitch + j], for j in [0, count).
void score_keys(const double* query, const double* keys, std::int64_t head_dim, std::int64_t pitch,
                std::int64_t count, double scale, double* scores);

// accumulator[d] += sum over n of weights[n] * values[rows[n] * value_dim + d].
void accumulate_values(std::span<const double> weights, std::span<const std::int64_t> rows,
                       const double* values, std::int64_t value_dim, double* accumulator);

// The running softmax of one query row: the largest score so far, the sum of exp(score - largest),
// and in `accumulator` the values weighted likewise.
class RowSoftmax {
  public:
    RowSoftmax() = default;
    RowSoftmax(double* accumulator, std::int64_t value_dim, double sink)
        : accumulator_(accumulator), value_dim_(value_dim), sink_(sink) {}

    // Takes in the scores of some keys; those of -inf are not seen. `values` holds a row for each.
    void take(std::span<const double> scores, const double* values);
    // Divides the accumulator by the sum, which the sink joins, and returns the LSE. A row that saw
    // no key is 0 and -inf, sink or not.
    double finish();

  private:
    double* accumulator_ = nullptr;
    std::int64_t value_dim_ = 0;
    double largest_ = kNegativeInfinity;
    double sum_ = 0.0;
    double sink_ = kNegativeInfinity;
};

// Query rows that share a KV head are worked on together, so that each key and value is converted
// once for all of them.
inline constexpr std::int64_t kRowsPerTile = 64;
inline constexpr std::int64_t kKeysPerBlock = 64;

// One tile: rows [first_row, last_row) of a request and a KV head, where row r is the query
// r / group of the head kv_head * group + r % group.
struct AttentionTile {
    std::int64_t request;
    std::int64_t kv_head;
    std::int64_t first_row;
    std::int64_t last_row;
};

template <typename Queries, typename Keys>
std::vector<AttentionTile> attention_tiles(const Queries& queries, const Keys& keys) {
    std::vector<AttentionTile> tiles;
    if (keys.heads() == 0) return tiles;
    const std::int64_t group = queries.heads() / keys.heads();
    for (std::int64_t request = 0; request < queries.requests(); ++request) {
        const std::int64_t rows = queries.length(request) * group;
        for (std::int64_t kv_head = 0; kv_head < keys.heads(); ++kv_head) {
            for (std::int64_t row = 0; row < rows; row += kRowsPerTile) {
                tiles.push_back({request, kv_head, row, std::min(rows, row + kRowsPerTile)});
            }
        }
    }
    return tiles;
}

template <typename Queries, typename Keys, typename Rules>
void attend_tile(const Queries& queries, const Keys& keys, const Rules& rules, double scale,
                 const AttentionTile& tile) {
    struct QueryRow {
        QueryPlace place;
        KeyRange range;
        RowSoftmax softmax;
    };
    const std::int64_t group = queries.heads() / keys.heads();
    const std::int64_t q_len = queries.length(tile.request);
    const std::int64_t kv_len = keys.length(tile.request);
    const std::int64_t key_dim = keys.key_dim();
    const std::int64_t value_dim = keys.value_dim();
    const auto sized = [](std::int64_t count) { return static_cast<std::size_t>(count); };

    const std::int64_t row_count = tile.last_row - tile.first_row;
    std::vector<QueryRow> rows(sized(row_count));
    std::vector<double> query_values(sized(row_count * key_dim));
    std::vector<double> accumulators(sized(row_count * value_dim), 0.0);
    KeyRange all{kv_len, 0};
    for (std::int64_t r = 0; r < row_count; ++r) {
        QueryRow& row = rows[sized(r)];
        row.place = {tile.request, tile.kv_head * group + (tile.first_row + r) % group,
                     (tile.first_row + r) / group, kv_len - q_len, kv_len};
        const KeyRange range = rules.range(row.place);
        row.range = {std::max<std::int64_t>(range.begin, 0), std::min(range.end, kv_len)};
        row.softmax =
            RowSoftmax(accumulators.data() + r * value_dim, value_dim, rules.sink(row.place.head));
        read_row(queries.query(tile.request, row.place.position, row.place.head), key_dim,
                 query_values.data() + r * key_dim);
        if (row.range.begin < row.range.end) {
            all.begin = std::min(all.begin, row.range.begin);
            all.end = std::max(all.end, row.range.end);
        }
    }

    // Keys are turned so that scores of neighbouring keys are neighbours in memory.
    std::vector<double> turned_keys(sized(key_dim * kKeysPerBlock));
    std::vector<double> values(sized(value_dim * kKeysPerBlock));
    std::vector<double> scores(sized(kKeysPerBlock));
    for (std::int64_t block = all.begin; block < all.end; block += kKeysPerBlock) {
        const std::int64_t block_end = std::min(all.end, block + kKeysPerBlock);
        for (std::int64_t key = block; key < block_end; ++key) {
            read_row(keys.key(tile.request, key, tile.kv_head), key_dim,
                     turned_keys.data() + (key - block), kKeysPerBlock);
            read_row(keys.value(tile.request, key, tile.kv_head), value_dim,
                     values.data() + (key - block) * value_dim);
        }
        for (std::int64_t r = 0; r < row_count; ++r) {
            QueryRow& row = rows[sized(r)];
            const std::int64_t begin = std::max(block, row.range.begin);
            const std::int64_t end = std::min(block_end, row.range.end);
            if (begin >= end) continue;
            const std::span<double> seen(scores.data(), sized(end - begin));
            score_keys(query_values.data() + r * key_dim, turned_keys.data() + (begin - block),
                       key_dim, kKeysPerBlock, end - begin, scale, seen.data());
            rules.apply(row.place, begin, seen);
            row.softmax.take(seen, values.data() + (begin - block) * value_dim);
        }
    }

    for (std::int64_t r = 0; r < row_count; ++r) {
        QueryRow& row = rows[sized(r)];
        const double lse = row.softmax.finish();
        write_row(queries.out(tile.request, row.place.position, row.place.head), value_dim,
                  accumulators.data() + r * value_dim);
        float* target = queries.lse(tile.request, row.place.position, row.place.head);
        if (target != nullptr) *target = static_cast<float>(lse);
    }
}

template <typename Queries, typename Keys, typename Rules>
void attend(const Queries& queries, const Keys& keys, const Rules& rules, double scale) {
    const std::vector<AttentionTile> tiles = attention_tiles(queries, keys);
    // From the last tile to the first: under a causal mask the later ones are the longer ones.
    const auto count = static_cast<std::int64_t>(tiles.size());
    parallel_for(count, [&](std::int64_t i) {
        attend_tile(queries, keys, rules, scale, tiles[static_cast<std::size_t>(count - 1 - i)]);
    });
}

}  // namespace jitney::reference
