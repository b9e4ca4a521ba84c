// New keys and values to append to a cache, with the tensors to run it on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "jitney/rotary.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/rotary_problem.hpp"
#include "tests/support/serving_problem.hpp"

namespace jitney::tests {

struct AppendShape {
    ServingShape cache;                // q_lens: how many new keys each request has
    std::optional<RotaryStyle> style;  // none: no rotation
    std::int64_t rotary_dim = 0;
    std::int64_t q_heads = 0;  // 0: no q
    bool q_in_place = false;
    int positions = 0;              // 0: left out; bits of each: 32 or 64
    bool shared_positions = false;  // [new_len], where requests have one length

    std::string text() const;
};

// The tensors by the names of the call's fields. The cache holds numbers in the places that are
// written, too, and poison where no request has a key; q_out is poisoned. Tables name no pages
// before those of the first new key.
class AppendProblem {
  public:
    AppendProblem(const AppendShape& shape, Random& random);

    AppendShape shape;
    std::map<std::string, HostTensor> tensors;
    // Of the cache's tensors: which elements a call may touch, in row-major order; empty: all.
    std::map<std::string, std::vector<bool>> usable;

    Views views(const Device& device = kHost) { return views_of(tensors, device); }
    HostTensor& at(const std::string& name) { return tensors.at(name); }
    // Where q's rotation goes; only with q.
    const char* q_out() const { return shape.q_in_place ? "q" : "q_out"; }

    void run_reference();
};

// Whether all bits are equal, or the surroundings are intact and each element is: both are NaN,
// both are the same infinity, or they differ by no more than the tolerance.
bool is_same_cache(HostTensor& actual, HostTensor& expected, Tolerance tolerance);

// Lengths, cache and, where K is `rotated`, q and positions; the rest is left to the caller.
AppendShape random_append_shape(Random& random, bool packed, const std::vector<KeyForm>& forms,
                                bool rotated);

// The call, public or the reference's, with these tensors.
template <class Args>
Args append_call(const AppendShape& shape, const Views& views) {
    Args args;
    const auto find = [&views](const char* name) { return find_view(views, name); };
    args.new_k = views.at("new_k");
    args.new_v = views.at("new_v");
    args.new_indptr = find("qo_indptr");
    set_cache(args, views);
    args.cos = find("cos");
    args.sin = find("sin");
    args.positions = find("positions");
    if (shape.style) args.style = style_as<decltype(args.style)>(*shape.style);
    args.q = find("q");
    args.q_out = find(shape.q_in_place ? "q" : "q_out");
    return args;
}

}  // namespace jitney::tests
