#include "tests/support/serving_problem.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "tests/support/mask_pattern.hpp"

namespace jitney::tests {

namespace {

std::size_t sized(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

std::int64_t longest(const std::vector<std::int64_t>& lengths) {
    return lengths.empty() ? 0 : *std::ranges::max_element(lengths);
}

std::int64_t sum_of(const std::vector<std::int64_t>& lengths) {
    std::int64_t sum = 0;
    for (const std::int64_t length : lengths)
        sum += length;
    return sum;
}

HostTensor ints(const std::vector<std::int64_t>& values) {
    HostTensor tensor(DType::int32, {static_cast<std::int64_t>(values.size())});
    tensor.fill([&](std::int64_t i) { return static_cast<double>(values[sized(i)]); });
    return tensor;
}

HostTensor indptr(const std::vector<std::int64_t>& lengths) {
    std::vector<std::int64_t> ends{0};
    for (const std::int64_t length : lengths)
        ends.push_back(ends.back() + length);
    return ints(ends);
}

std::string text_of(const std::vector<std::int64_t>& values) {
    std::ostringstream text;
    for (const std::int64_t value : values)
        text << (text.tellp() == 0 ? "" : " ") << value;
    return text.str();
}

// Tensors that could be taken for each other lie each in its own way.
Layout layout_of(const std::string& name, std::size_t dims, const Layout& layout = {}) {
    static const std::vector<std::string> kNames{"out", "v", "new_k", "q", "k", "new_v"};
    const auto at = std::ranges::find(kNames, name);
    return set_apart(layout, dims, at - kNames.begin());
}

void fill_row(HostTensor& tensor, std::int64_t index, std::int64_t count, Random& random) {
    for (std::int64_t d = 0; d < count; ++d)
        tensor.set(index + d, random.normal());
}

}  // namespace

std::string ServingShape::text() const {
    static constexpr const char* kForms[] = {"dense",       "padded",      "ragged",
                                             "token table", "block table", "page list"};
    std::ostringstream text;
    text << (packed ? "packed q " : "q ") << text_of(q_lens) << ", "
         << kForms[static_cast<int>(keys)] << " kv " << text_of(kv_lens) << ", heads " << heads()
         << "/" << kv_heads << ", head_dim " << head_dim << ", dtype " << static_cast<int>(dtype);
    if (is_paged(keys)) text << ", page size " << page_size << (heads_outside ? " (HND)" : "");
    if (causal) text << ", causal";
    if (window_left >= 0 || window_right >= 0) {
        text << ", window " << window_left << " " << window_right;
    }
    if (softcap) text << ", softcap " << *softcap;
    if (scale) text << ", scale " << *scale;
    if (mask_dims != 0) text << ", mask of " << mask_dims << " dimensions";
    text << (alibi ? ", ALiBi" : "") << (sinks ? ", sinks" : "");
    if (new_len != 0) text << ", " << new_len << " new";
    return text.str();
}

ServingProblem::ServingProblem(const ServingShape& problem, Random& random) : shape(problem) {
    add_queries(random);
    if (is_paged(shape.keys)) add_pages(random);
    add_keys(random);
    add_options(random);
    spoil_unseen(random);
    std::vector<std::int64_t> first_keys;
    for (std::int64_t request = 0; request < shape.batch(); ++request)
        first_keys.push_back(first_used(request));
    evict(first_keys, random);
}

void ServingProblem::add_queries(Random& random) {
    std::vector<std::int64_t> dims{shape.batch(), longest(shape.q_lens), shape.heads(),
                                   shape.head_dim};
    std::vector<std::int64_t> lse{dims[0], dims[2], dims[1]};
    if (shape.packed) {
        const std::int64_t total = sum_of(shape.q_lens) + shape.idle_rows;
        dims = {total, shape.heads(), shape.head_dim};
        lse = {total, shape.heads()};
        tensors.emplace("qo_indptr", indptr(shape.q_lens));
    }
    HostTensor q(shape.dtype, dims, layout_of("q", dims.size()));
    tensors.emplace("out", HostTensor(shape.dtype, dims, layout_of("out", dims.size())));
    tensors.emplace("lse", HostTensor(DType::fp32, lse));
    for (std::int64_t request = 0; request < shape.batch(); ++request) {
        for (std::int64_t i = 0; i < shape.q_len(request); ++i)
            fill_row(q, out_index(request, i, 0), shape.heads() * shape.head_dim, random);
    }
    tensors.emplace("q", std::move(q));
}

void ServingProblem::add_pages(Random& random) {
    std::int64_t pages = 3;  // that nobody has
    for (const std::int64_t length : shape.kv_lens)
        pages += (length + shape.page_size - 1) / shape.page_size;
    if (shape.room != 0) pages = 3 + shape.batch() * room_pages();
    std::vector<std::int64_t> free(sized(pages));
    for (std::size_t i = 0; i < free.size(); ++i)
        free[i] = static_cast<std::int64_t>(i);
    std::int64_t widest = 0;
    std::vector<std::int64_t> all;
    std::vector<std::int64_t> counts;
    std::vector<std::int64_t> fill;
    for (const std::int64_t length : shape.kv_lens) {
        std::vector<std::int64_t> own;
        for (std::int64_t at = 0; at < length; at += shape.page_size) {
            const auto pick = random.integer(0, static_cast<std::int64_t>(free.size()) - 1);
            own.push_back(free[sized(pick)]);
            free.erase(free.begin() + pick);
        }
        all.insert(all.end(), own.begin(), own.end());
        counts.push_back(static_cast<std::int64_t>(own.size()));
        fill.push_back(length == 0 ? -1 : (length - 1) % shape.page_size + 1);
        widest = std::max(widest, counts.back());
        pages_.push_back(std::move(own));
    }
    if (shape.keys == KeyForm::page_list) {
        if (shape.room != 0) all.resize(sized(shape.batch() * room_pages()), -1);
        tensors.emplace("kv_page_indptr", indptr(counts));
        tensors.emplace("kv_page_indices", ints(all));
        tensors.emplace("last_page_len", ints(fill));
        return;
    }
    const bool tokens = shape.keys == KeyForm::token_table;
    const std::int64_t rows = shape.batch() + (tokens ? 2 : 0);
    const bool fixed = shape.room != 0;
    HostTensor table(DType::int32, {rows, fixed ? room_pages() : widest + random.integer(0, 3)},
                     {{}, {0, fixed ? 1 : random.integer(0, 2)}});
    std::vector<std::int64_t> row_of;
    for (std::int64_t request = 0; request < shape.batch(); ++request)
        row_of.push_back(tokens ? rows - 1 - request : request);
    for (std::size_t request = 0; request < pages_.size(); ++request) {
        for (std::size_t i = 0; i < pages_[request].size(); ++i) {
            table.put({row_of[request], static_cast<std::int64_t>(i)},
                      static_cast<double>(pages_[request][i]));
        }
    }
    tensors.emplace(tokens ? "req_to_token" : "block_table", std::move(table));
    if (tokens) tensors.emplace("req_pool_indices", ints(row_of));
}

void ServingProblem::add_keys(Random& random) {
    const std::int64_t total = shape.room != 0 ? shape.batch() * shape.room : sum_of(shape.kv_lens);
    std::vector<std::int64_t> dims{shape.batch(), cache_rows(), shape.kv_heads, shape.head_dim};
    Layout layout;
    switch (shape.keys) {
        case KeyForm::ragged:
            dims = {total, shape.kv_heads, shape.head_dim};
            break;
        case KeyForm::token_table:
            dims = {total + 3, shape.kv_heads, shape.head_dim};
            break;
        case KeyForm::block_table:
        case KeyForm::page_list:
            dims = {3, shape.page_size, shape.kv_heads, shape.head_dim};
            for (const auto& own : pages_)
                dims[0] += static_cast<std::int64_t>(own.size());
            if (shape.room != 0) dims[0] = 3 + shape.batch() * room_pages();
            if (shape.heads_outside) layout.order = {0, 2, 1, 3};
            break;
        case KeyForm::padded:
        case KeyForm::dense:
            break;
    }
    const bool table = shape.keys == KeyForm::token_table || shape.keys == KeyForm::block_table;
    if (shape.keys == KeyForm::ragged || (table && shape.lengths_as_indptr)) {
        tensors.emplace("kv_indptr", indptr(shape.kv_lens));
    } else if (shape.keys == KeyForm::padded || table) {
        tensors.emplace("kv_lens", ints(shape.kv_lens));
    }
    for (const char* name : {"k", "v"}) {
        HostTensor& tensor =
            tensors
                .emplace(name, HostTensor(shape.dtype, dims, layout_of(name, dims.size(), layout)))
                .first->second;
        for (std::int64_t request = 0; request < shape.batch(); ++request) {
            // What the call appends is poison in the cache.
            for (std::int64_t j = 0; j < shape.kv_len(request) - shape.new_len; ++j) {
                for (std::int64_t head = 0; head < shape.kv_heads; ++head)
                    fill_row(tensor, key_index(request, j, head), shape.head_dim, random);
            }
        }
    }
    if (shape.new_len == 0) return;
    for (const char* name : {"new_k", "new_v"}) {
        HostTensor fresh(shape.dtype,
                         {shape.batch(), shape.new_len, shape.kv_heads, shape.head_dim},
                         layout_of(name, 4));
        fresh.fill_normal(random);
        tensors.emplace(name, std::move(fresh));
    }
}

void ServingProblem::add_options(Random& random) {
    if (shape.alibi) {
        HostTensor slopes(DType::fp32, {shape.heads()});
        slopes.fill_uniform(random, 0.0, 0.5);
        tensors.emplace("alibi_slopes", std::move(slopes));
    }
    if (shape.sinks) {
        HostTensor sinks(DType::fp32, {shape.heads()});
        // Some so far above all scores that their exponential overflows beside them.
        sinks.fill([&random](std::int64_t) {
            return random.chance(0.15) ? random.uniform(90.0, 300.0) : random.normal() * 2.0;
        });
        tensors.emplace("sinks", std::move(sinks));
    }
    if (shape.mask_dims == 0) return;
    const bool exact = shape.keys == KeyForm::dense;
    const std::int64_t keys = shape.keys == KeyForm::padded
                                  ? at("k").shape()[1]
                                  : longest(shape.kv_lens) + (exact ? 0 : 2);
    const std::int64_t queries = longest(shape.q_lens) + (shape.packed ? 1 : 0);
    std::vector<std::int64_t> dims{shape.batch(), keys};
    if (shape.mask_dims >= 3) dims.insert(dims.begin() + 1, queries);
    if (shape.mask_dims == 4) dims.insert(dims.begin() + 1, shape.heads());
    HostTensor mask(DType::boolean, dims);
    mask.fill(MaskPattern(random, keys));
    tensors.emplace("mask", std::move(mask));
}

std::int64_t ServingProblem::first_query(std::int64_t request) const {
    std::int64_t first = 0;
    for (std::int64_t i = 0; i < request; ++i)
        first += shape.packed ? shape.q_len(i) : longest(shape.q_lens);
    return first;
}

std::int64_t ServingProblem::cache_rows() const {
    if (shape.keys == KeyForm::padded) {
        return shape.room != 0 ? shape.room : longest(shape.kv_lens) + 3;
    }
    return longest(shape.kv_lens);
}

std::int64_t ServingProblem::room_pages() const {
    return (shape.room + shape.page_size - 1) / shape.page_size;
}

std::int64_t ServingProblem::out_index(std::int64_t request, std::int64_t i,
                                       std::int64_t head) const {
    return ((first_query(request) + i) * shape.heads() + head) * shape.head_dim;
}

std::int64_t ServingProblem::lse_index(std::int64_t request, std::int64_t i,
                                       std::int64_t head) const {
    if (shape.packed) return (first_query(request) + i) * shape.heads() + head;
    return (request * shape.heads() + head) * longest(shape.q_lens) + i;
}

std::int64_t ServingProblem::key_index(std::int64_t request, std::int64_t j,
                                       std::int64_t kv_head) const {
    std::int64_t row = j;
    if (shape.keys == KeyForm::ragged) {
        for (std::int64_t i = 0; i < request; ++i)
            row += shape.kv_len(i);
    } else if (is_paged(shape.keys)) {
        row = pages_[sized(request)][sized(j / shape.page_size)] * shape.page_size +
              j % shape.page_size;
    } else {
        row += request * cache_rows();
    }
    return (row * shape.kv_heads + kv_head) * shape.head_dim;
}

double ServingProblem::query(std::int64_t request, std::int64_t i, std::int64_t head,
                             std::int64_t dim) const {
    return at("q").get(out_index(request, i, head) + dim);
}

double ServingProblem::from_cache(const char* cache, const char* fresh, std::int64_t request,
                                  std::int64_t j, std::int64_t kv_head, std::int64_t dim) const {
    const std::int64_t first_new = shape.kv_len(request) - shape.new_len;
    if (shape.new_len == 0 || j < first_new) {
        return at(cache).get(key_index(request, j, kv_head) + dim);
    }
    return at(fresh).at({request, j - first_new, kv_head, dim});
}

double ServingProblem::key(std::int64_t request, std::int64_t j, std::int64_t kv_head,
                           std::int64_t dim) const {
    return from_cache("k", "new_k", request, j, kv_head, dim);
}

double ServingProblem::value(std::int64_t request, std::int64_t j, std::int64_t kv_head,
                             std::int64_t dim) const {
    return from_cache("v", "new_v", request, j, kv_head, dim);
}

bool ServingProblem::sees(std::int64_t request, std::int64_t i, std::int64_t head,
                          std::int64_t j) const {
    const std::int64_t place = i + shape.kv_len(request) - shape.q_len(request);
    if (shape.causal && j > place) return false;
    if (shape.window_left >= 0 && j < place - shape.window_left) return false;
    if (shape.window_right >= 0 && j > place + shape.window_right) return false;
    switch (shape.mask_dims) {
        case 2:
            return at("mask").at({request, j}) != 0.0;
        case 3:
            return at("mask").at({request, i, j}) != 0.0;
        case 4:
            return at("mask").at({request, head, i, j}) != 0.0;
        default:
            return true;
    }
}

bool ServingProblem::idle_rows_untouched(HostTensor& out, HostTensor& lse) const {
    if (!shape.packed) return true;
    bool untouched = true;
    const auto clear = [&untouched](HostTensor& tensor, std::int64_t first) {
        for (std::int64_t i = first; i < tensor.elements(); ++i) {
            untouched = untouched && std::isnan(tensor.get(i));
            tensor.set(i, 0.0);
        }
    };
    clear(out, out_index(shape.batch(), 0, 0));
    clear(lse, lse_index(shape.batch(), 0, 0));
    return untouched;
}

ServingShape random_serving_shape(Random& random, const ServingLimits& limits, bool packed) {
    ServingShape shape;
    shape.packed = packed;
    shape.kv_heads = random.integer(1, limits.kv_heads);
    shape.group = random.integer(1, limits.group);
    shape.keys = random.pick<KeyForm>(limits.keys);
    const bool pages = shape.keys == KeyForm::block_table || shape.keys == KeyForm::page_list;
    if (pages) {
        shape.page_size = random.pick<std::int64_t>(limits.page_sizes);
        shape.heads_outside = random.chance(0.5);
    }
    shape.lengths_as_indptr = random.chance(0.5);
    shape.idle_rows = packed ? random.integer(0, 3) : 0;
    const auto length = [&random](std::int64_t most) {
        if (random.chance(0.15)) return std::int64_t{0};
        return random.chance(0.3) ? random.integer(1, std::min<std::int64_t>(most, 4))
                                  : random.integer(1, most);
    };
    const std::int64_t batch = random.integer(1, limits.batch);
    const std::int64_t q_len = random.chance(0.4) ? 1 : random.integer(1, limits.q_len);
    const std::int64_t kv_len = length(limits.kv_len);
    for (std::int64_t i = 0; i < batch; ++i) {
        shape.q_lens.push_back(packed ? length(limits.q_len) : q_len);
        shape.kv_lens.push_back(shape.keys == KeyForm::dense ? kv_len : length(limits.kv_len));
    }
    if (random.chance(0.3)) shape.scale = random.uniform(0.05, 0.5);
    return shape;
}

void add_options(ServingShape& shape, const ServingOptions& options, Random& random) {
    if (options.window) {
        shape.window_left = static_cast<int>(random.integer(0, 60));
        if (!shape.causal && random.chance(0.6)) {
            shape.window_right = static_cast<int>(random.integer(0, 40));
            if (random.chance(0.3)) shape.window_left = -1;
        }
    }
    if (options.softcap) shape.softcap = random.uniform(0.5, 20.0);
    shape.alibi = options.alibi;
    shape.sinks = options.sinks;
    if (options.mask) shape.mask_dims = static_cast<int>(random.integer(2, 4));
    if (options.append) {
        shape.new_len = random.integer(1, 3);
        for (std::int64_t& length : shape.kv_lens)
            length = std::max(length, shape.new_len);
        // A decode takes no more queries.
        for (std::int64_t& length : shape.q_lens)
            length = std::min<std::int64_t>(length, 64);
    }
}

}  // namespace jitney::tests
