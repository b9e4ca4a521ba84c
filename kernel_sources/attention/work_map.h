// What attn_work_map is launched with; shared by host and device.
#pragma once

namespace jitney {

// One block, each thread a request at a time.
constexpr int kWorkMapThreads = 256;

constexpr int work_map_shared_bytes(int threads) {
    return threads * 4;
}

struct WorkMapParams {
    const int* qo_indptr;  // [batch + 1]: first query of each request
    int* tile_batch;       // [slots]: receives the request of each tile, or -1
    int* tile_index;       // [slots]: and its number within the request
    int batch;
    int group;   // query heads of one KV head
    int tile_m;  // packed rows a tile
    int slots;
};

}  // namespace jitney
