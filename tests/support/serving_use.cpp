// What of its cache a problem may touch. Where it may not, tables name pages that no pool has; and
// keys that no query sees hold what no sum survives.
#include <algorithm>
#include <array>
#include <limits>

#include "tests/support/serving_problem.hpp"

namespace jitney::tests {

namespace {

std::size_t sized(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

const char* table_of(KeyForm form) {
    switch (form) {
        case KeyForm::token_table:
            return "req_to_token";
        case KeyForm::block_table:
            return "block_table";
        case KeyForm::page_list:
            return "kv_page_indices";
        default:
            return "";
    }
}

}  // namespace

std::int64_t ServingProblem::first_used(std::int64_t request) const {
    const std::int64_t length = shape.kv_len(request);
    std::int64_t first = length;
    if (shape.q_len(request) > 0) {
        first = shape.window_left < 0 ? 0 : length - shape.q_len(request) - shape.window_left;
    }
    return std::clamp<std::int64_t>(std::min(first, length - shape.new_len), 0, length);
}

bool ServingProblem::is_seen(std::int64_t request, std::int64_t kv_head, std::int64_t j) const {
    for (std::int64_t i = 0; i < shape.q_len(request); ++i) {
        for (std::int64_t head = kv_head * shape.group; head < (kv_head + 1) * shape.group;
             ++head) {
            if (sees(request, i, head, j)) return true;
        }
    }
    return false;
}

std::int64_t ServingProblem::table_index(std::int64_t request, std::int64_t page) const {
    if (shape.keys == KeyForm::page_list) {
        return static_cast<std::int64_t>(at("kv_page_indptr").get(request)) + page;
    }
    const std::int64_t row = shape.keys == KeyForm::token_table
                                 ? static_cast<std::int64_t>(at("req_pool_indices").get(request))
                                 : request;
    return row * at(table_of(shape.keys)).shape()[1] + page;
}

void ServingProblem::evict(std::span<const std::int64_t> first_keys, Random& random) {
    first_keys_.assign(first_keys.begin(), first_keys.end());
    if (!is_paged(shape.keys)) return;
    static constexpr std::array<double, 4> kNoPages = {-1, 1 << 30, -(1 << 30), 123456};
    HostTensor& table = at(table_of(shape.keys));
    for (std::int64_t request = 0; request < shape.batch(); ++request) {
        const std::int64_t kept = first_keys_[sized(request)] / shape.page_size;
        for (std::int64_t page = 0; page < kept; ++page) {
            table.set(table_index(request, page), random.pick<double>(kNoPages));
        }
    }
}

void ServingProblem::spoil_unseen(Random& random) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    static constexpr std::array<double, 3> kSpoiled = {std::numeric_limits<double>::quiet_NaN(),
                                                       infinity, -infinity};
    const auto spoil = [&](HostTensor& tensor, std::int64_t index, bool copied) {
        for (std::int64_t d = 0; d < shape.head_dim; ++d) {
            // A copy of a NaN need not have its bits.
            tensor.set(index + d, copied ? infinity : random.pick<double>(kSpoiled));
        }
    };
    for (std::int64_t request = 0; request < shape.batch(); ++request) {
        const std::int64_t first_new = shape.kv_len(request) - shape.new_len;
        for (std::int64_t j = 0; j < shape.kv_len(request); ++j) {
            for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
                if (is_seen(request, head, j)) continue;
                for (const char* name : {"k", "v"})
                    spoil(at(name), key_index(request, j, head), false);
                if (j < first_new || shape.new_len == 0) continue;
                const std::int64_t row = request * shape.new_len + j - first_new;
                for (const char* name : {"new_k", "new_v"}) {
                    spoil(at(name), (row * shape.kv_heads + head) * shape.head_dim, true);
                }
            }
        }
    }
}

std::vector<bool> ServingProblem::usable(const std::string& name) const {
    const bool keys = name == "k" || name == "v";
    if (!keys && name != table_of(shape.keys)) return {};
    std::vector<bool> elements(sized(at(name).elements()));
    for (std::int64_t request = 0; request < shape.batch(); ++request) {
        for (std::int64_t j = first_keys_[sized(request)]; j < shape.kv_len(request); ++j) {
            if (keys) {
                const std::int64_t row = shape.kv_heads * shape.head_dim;
                std::fill_n(elements.begin() + key_index(request, j, 0), row, true);
            } else {
                elements[sized(table_index(request, j / shape.page_size))] = true;
            }
        }
    }
    return elements;
}

}  // namespace jitney::tests
