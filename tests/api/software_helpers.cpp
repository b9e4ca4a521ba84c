// What goes before attention: the map of packed queries, and masks as bits.
#include "tests/api/software_launches.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "kernel_sources/attention/mask_bits.h"

namespace jitney::tests {
namespace {

const unsigned char* mask_bytes(const AttentionParams& p, int batch, int head, int row) {
    return p.mask + batch * p.mask_strides.batch + head * p.mask_strides.head +
           row * p.mask_strides.row;
}

unsigned& mask_word(const MaskBits& mask, int batch, int head, int row, int key) {
    const std::int64_t bands = (std::int64_t{batch} * mask.heads + head) * mask_bands(mask.rows);
    const std::int64_t groups = (bands + row / kMaskBandRows) * mask_groups(mask.keys) + key / 32;
    return mask.words[groups * mask_band_stride(mask.rows) + row % kMaskBandRows];
}

}  // namespace

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

}  // namespace jitney::tests
