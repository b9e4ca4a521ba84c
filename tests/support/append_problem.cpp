#include "tests/support/append_problem.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "operations/append_kv/reference.hpp"

namespace jitney::tests {

namespace {

constexpr std::int64_t kTableRows = 300;

// The shape of new rows with so many heads.
std::vector<std::int64_t> rows_shape(const ServingShape& cache, std::int64_t heads) {
    if (!cache.packed) return {cache.batch(), cache.q_len(0), heads, cache.head_dim};
    std::int64_t total = cache.idle_rows;
    for (const std::int64_t length : cache.q_lens)
        total += length;
    return {total, heads, cache.head_dim};
}

}  // namespace

std::string AppendShape::text() const {
    std::string text = cache.text();
    if (style) {
        text += *style == RotaryStyle::interleaved ? ", interleaved " : ", half split ";
        text += std::to_string(rotary_dim);
    }
    if (q_heads != 0) text.append(", q heads ").append(std::to_string(q_heads));
    if (q_in_place) text += ", in place";
    if (positions != 0) text.append(", positions ").append(std::to_string(positions));
    return text;
}

AppendProblem::AppendProblem(const AppendShape& problem, Random& random) : shape(problem) {
    const ServingShape& cache = shape.cache;
    ServingProblem serving(cache, random);
    std::vector<std::int64_t> first_new;
    for (std::int64_t request = 0; request < cache.batch(); ++request) {
        first_new.push_back(
            std::max<std::int64_t>(0, cache.kv_len(request) - cache.q_len(request)));
    }
    serving.evict(first_new, random);
    for (const char* name :
         {"k", "v", "qo_indptr", "kv_lens", "kv_indptr", "req_to_token", "req_pool_indices",
          "block_table", "kv_page_indptr", "kv_page_indices", "last_page_len"}) {
        const auto at = serving.tensors.find(name);
        if (at == serving.tensors.end()) continue;
        tensors.emplace(name, at->second);
        usable.emplace(name, serving.usable(name));
    }
    std::int64_t number = 0;  // so that each of the tensors lies in its own way
    const auto rows = [&](const char* name, std::int64_t heads, bool poisoned) {
        const std::vector<std::int64_t> sizes = rows_shape(cache, heads);
        HostTensor made(cache.dtype, sizes, set_apart({}, sizes.size(), number++));
        if (!poisoned) made.fill_normal(random);
        tensors.emplace(name, std::move(made));
    };
    rows("new_k", cache.kv_heads, false);
    rows("new_v", cache.kv_heads, false);
    if (!shape.style) return;
    HostTensor cos(DType::fp32, {kTableRows, shape.rotary_dim / 2});
    HostTensor sin = cos;
    for (std::int64_t i = 0; i < cos.elements(); ++i) {
        const double angle = random.uniform(-10.0, 10.0);
        cos.set(i, std::cos(angle));
        sin.set(i, std::sin(angle));
    }
    tensors.emplace("cos", std::move(cos));
    tensors.emplace("sin", std::move(sin));
    if (shape.q_heads != 0) {
        rows("q", shape.q_heads, false);
        if (!shape.q_in_place) rows("q_out", shape.q_heads, true);
    }
    if (shape.positions == 0) return;
    std::vector<std::int64_t> sizes = rows_shape(cache, 1);
    sizes.resize(cache.packed ? 1 : 2);
    if (shape.shared_positions && !cache.packed) sizes.erase(sizes.begin());
    HostTensor positions(shape.positions == 64 ? DType::int64 : DType::int32, sizes);
    positions.fill(
        [&](std::int64_t) { return static_cast<double>(random.integer(0, kTableRows - 1)); });
    tensors.emplace("positions", std::move(positions));
}

void AppendProblem::run_reference() {
    reference::append_kv(append_call<reference::AppendKv>(shape, views()));
}

bool is_same_cache(HostTensor& actual, HostTensor& expected, Tolerance tolerance) {
    if (std::ranges::equal(actual.storage(), expected.storage())) return true;
    if (!actual.surroundings_intact()) return false;
    for (std::int64_t i = 0; i < actual.elements(); ++i) {
        const double a = actual.get(i);
        const double b = expected.get(i);
        // An infinity has no difference from itself, and a tolerance of it would take all.
        if (a == b || (std::isnan(a) && std::isnan(b))) continue;
        if (!std::isfinite(b)) return false;
        if (!(std::abs(a - b) <= tolerance.absolute + tolerance.relative * std::abs(b))) {
            return false;
        }
    }
    return true;
}

AppendShape random_append_shape(Random& random, bool packed, const std::vector<KeyForm>& forms,
                                bool rotated) {
    AppendShape shape;
    shape.cache = random_serving_shape(
        random, {.batch = 4, .q_len = 20, .kv_len = 60, .kv_heads = 3, .group = 1, .keys = forms},
        packed);
    if (rotated) {
        shape.q_heads = random.chance(0.6) ? random.integer(1, 5) : 0;
        shape.q_in_place = shape.q_heads != 0 && random.chance(0.4);
        shape.positions = static_cast<int>(32 * random.integer(0, 2));
        shape.shared_positions = random.chance(0.5);
    }
    // A request has at least its new keys, but for some that are too short for them.
    std::int64_t longest = 0;
    for (std::size_t i = 0; i < shape.cache.q_lens.size(); ++i) {
        std::int64_t& kv_len = shape.cache.kv_lens[i];
        if (random.chance(0.9)) kv_len = std::max(kv_len, shape.cache.q_lens[i]);
        longest = std::max(longest, kv_len);
    }
    if (shape.cache.keys == KeyForm::dense) {
        std::ranges::fill(shape.cache.kv_lens, longest);
    }
    return shape;
}

}  // namespace jitney::tests
