// The attention loop with other queries, keys and rules than those of dense calls: ragged queries,
// keys in pages, a window, a bounded score and sinks.
#include "operations/attention/reference_core.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/reference/threads.hpp"
#include "tests/support/host_tensor.hpp"

using namespace jitney;
using namespace jitney::tests;
using reference::KeyRange;
using reference::QueryPlace;
using reference::Row;

namespace {

constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kKvHeads = 2;
constexpr std::int64_t kDim = 6;
constexpr std::int64_t kPage = 5;
constexpr double kBound = 3.0;

Row row_at(const Tensor& view, std::int64_t token, std::int64_t head) {
    return reference::row_of(view, token * view.strides[0] + head * view.strides[1], 2);
}

// Requests one behind the other: [total_q, heads, dim]; the LSE is [total_q, heads].
struct RaggedQueries {
    std::vector<std::int64_t> indptr;
    Tensor q;
    Tensor result;
    float* log_sums;

    std::int64_t requests() const { return static_cast<std::int64_t>(indptr.size()) - 1; }
    std::int64_t first(std::int64_t request) const {
        return indptr[static_cast<std::size_t>(request)];
    }
    std::int64_t length(std::int64_t request) const { return first(request + 1) - first(request); }
    std::int64_t heads() const { return kHeads; }
    Row query(std::int64_t request, std::int64_t position, std::int64_t head) const {
        return row_at(q, first(request) + position, head);
    }
    Row out(std::int64_t request, std::int64_t position, std::int64_t head) const {
        return row_at(result, first(request) + position, head);
    }
    float* lse(std::int64_t request, std::int64_t position, std::int64_t head) const {
        return log_sums + (first(request) + position) * kHeads + head;
    }
};

// Pages of a pool [slots, kv_heads, dim].
struct PagedKeys {
    std::vector<std::vector<std::int64_t>> pages;
    std::vector<std::int64_t> lengths;
    Tensor k;
    Tensor v;

    std::int64_t length(std::int64_t request) const {
        return lengths[static_cast<std::size_t>(request)];
    }
    std::int64_t heads() const { return kKvHeads; }
    std::int64_t key_dim() const { return kDim; }
    std::int64_t value_dim() const { return kDim; }
    std::int64_t slot(std::int64_t request, std::int64_t position) const {
        const auto& own = pages[static_cast<std::size_t>(request)];
        return own[static_cast<std::size_t>(position / kPage)] * kPage + position % kPage;
    }
    Row key(std::int64_t request, std::int64_t position, std::int64_t head) const {
        return row_at(k, slot(request, position), head);
    }
    Row value(std::int64_t request, std::int64_t position, std::int64_t head) const {
        return row_at(v, slot(request, position), head);
    }
};

struct WindowRules {
    std::int64_t left;
    std::array<double, kHeads> sinks;

    KeyRange range(const QueryPlace& query) const {
        return {query.own_key() - left, query.own_key() + 1};
    }
    void apply(const QueryPlace&, std::int64_t, std::span<double> scores) const {
        for (double& score : scores)
            score = kBound * std::tanh(score / kBound);
    }
    double sink(std::int64_t head) const { return sinks[static_cast<std::size_t>(head)]; }
};

}  // namespace

TEST_CASE("ragged queries, paged keys, a window, bounded scores and sinks") {
    Random random = Random::fresh();
    INFO(random.text());
    const std::vector<std::int64_t> kv_lengths{0, 200, 131, 1, 64};
    const std::vector<std::int64_t> indptr{0, 2, 2, 75, 76, 150};  // q: 2, 0, 73, 1, 74

    // Pages are dealt out at random; the pool has more than are used, all NaN.
    PagedKeys keys;
    keys.lengths = kv_lengths;
    std::vector<std::int64_t> free_pages(100);
    for (std::size_t i = 0; i < free_pages.size(); ++i) {
        free_pages[i] = static_cast<std::int64_t>(i);
    }
    for (const std::int64_t length : kv_lengths) {
        std::vector<std::int64_t> own;
        for (std::int64_t page = 0; page * kPage < length; ++page) {
            const auto at = random.integer(0, static_cast<std::int64_t>(free_pages.size()) - 1);
            own.push_back(free_pages[static_cast<std::size_t>(at)]);
            free_pages.erase(free_pages.begin() + at);
        }
        keys.pages.push_back(own);
    }
    HostTensor k(DType::fp32, {100 * kPage, kKvHeads, kDim});
    HostTensor v(DType::fp32, {100 * kPage, kKvHeads, kDim});
    for (std::int64_t request = 0; request < 5; ++request) {
        for (std::int64_t j = 0; j < keys.length(request); ++j) {
            for (std::int64_t i = 0; i < kKvHeads * kDim; ++i) {
                k.set(keys.slot(request, j) * kKvHeads * kDim + i, random.normal());
                v.set(keys.slot(request, j) * kKvHeads * kDim + i, random.normal());
            }
        }
    }
    keys.k = k.view();
    keys.v = v.view();

    HostTensor q(DType::fp32, {150, kHeads, kDim});
    HostTensor out(DType::fp32, {150, kHeads, kDim});
    HostTensor lse(DType::fp32, {150, kHeads});
    q.fill_normal(random);
    const RaggedQueries queries{indptr, q.view(), out.view(), static_cast<float*>(lse.view().data)};
    const WindowRules rules{70, {reference::kNegativeInfinity, 0.5, -2.0, 40.0}};
    const double scale = 0.7;
    reference::attend(queries, keys, rules, scale);

    // The same by the definition.
    for (std::int64_t request = 0; request < 5; ++request) {
        const std::int64_t q_len = queries.length(request);
        const std::int64_t kv_len = keys.length(request);
        for (std::int64_t i = 0; i < q_len; ++i) {
            for (std::int64_t h = 0; h < kHeads; ++h) {
                const std::int64_t token = queries.first(request) + i;
                const std::int64_t kv_head = h / 2;
                double sum = 0.0;
                std::array<double, kDim> weighted{};
                for (std::int64_t j = 0; j < kv_len; ++j) {
                    const std::int64_t own = i + kv_len - q_len;
                    if (j > own || j < own - 70) continue;
                    const std::int64_t slot = keys.slot(request, j);
                    double dot = 0.0;
                    for (std::int64_t d = 0; d < kDim; ++d) {
                        dot += q.at({token, h, d}) * k.at({slot, kv_head, d});
                    }
                    const double weight = std::exp(kBound * std::tanh(scale * dot / kBound));
                    sum += weight;
                    for (std::int64_t d = 0; d < kDim; ++d) {
                        weighted[static_cast<std::size_t>(d)] += weight * v.at({slot, kv_head, d});
                    }
                }
                if (sum > 0.0) sum += std::exp(rules.sink(h));
                INFO("request ", request, ", query ", i, ", head ", h);
                if (sum == 0.0) {
                    CHECK(lse.at({token, h}) == reference::kNegativeInfinity);
                } else {
                    CHECK(lse.at({token, h}) == doctest::Approx(std::log(sum)).epsilon(1e-6));
                }
                for (std::int64_t d = 0; d < kDim; ++d) {
                    const double value =
                        sum == 0.0 ? 0.0 : weighted[static_cast<std::size_t>(d)] / sum;
                    CHECK(std::abs(out.at({token, h, d}) - value) < 1e-6);
                }
            }
        }
    }
    CHECK(out.surroundings_intact());
}

TEST_CASE("keys outside every range of a tile are not read") {
    struct CountingKeys : PagedKeys {
        std::vector<int>* reads;
        Row key(std::int64_t request, std::int64_t position, std::int64_t head) const {
            ++(*reads)[static_cast<std::size_t>(position)];
            return PagedKeys::key(request, position, head);
        }
    };
    const ThreadsVariable one_thread("1");  // the counters are plain integers
    std::vector<int> reads(300, 0);
    HostTensor pool(DType::fp32, {300, kKvHeads, kDim});
    pool.fill([](std::int64_t) { return 1.0; });
    CountingKeys keys;
    keys.pages.emplace_back();
    for (std::int64_t page = 0; page < 60; ++page)
        keys.pages[0].push_back(page);
    keys.lengths = {250};
    keys.k = keys.v = pool.view();
    keys.reads = &reads;
    HostTensor q(DType::fp32, {2, kHeads, kDim});
    HostTensor out(DType::fp32, {2, kHeads, kDim});
    HostTensor lse(DType::fp32, {2, kHeads});
    q.fill([](std::int64_t) { return 1.0; });
    reference::attend(
        RaggedQueries{{0, 2}, q.view(), out.view(), static_cast<float*>(lse.view().data)}, keys,
        WindowRules{10, {-1.0, -1.0, -1.0, -1.0}}, 1.0);
    for (std::size_t j = 0; j < reads.size(); ++j) {
        CAPTURE(j);
        CHECK(reads[j] == (j >= 238 && j < 250 ? kKvHeads : 0));
    }
}
