#include "operations/fp8_linear/choose.hpp"

#include <algorithm>

#include "kernel_sources/common/constants.h"

namespace jitney::policy {
namespace {

// Notes what was said of a kernel; its first refusal stands.
void judge(std::vector<Candidate>& candidates, const Candidate& candidate) {
    const auto known = std::ranges::find(candidates, candidate.kernel, &Candidate::kernel);
    if (known == candidates.end()) {
        candidates.push_back(candidate);
    } else if (known->accepted()) {
        *known = candidate;
    }
}

void add(Fp8LinearWorkspace& workspace, std::size_t counter_bytes, std::size_t bytes) {
    workspace.counter_bytes = std::max(workspace.counter_bytes, counter_bytes);
    workspace.launch_bytes = std::max(workspace.launch_bytes, bytes);
}

void add(Fp8LinearWorkspace& workspace, const Fp8GemmWorkspace& needed) {
    add(workspace, needed.counter_bytes, needed.partial_bytes);
}

// What is the same wherever the tensors lie.
Fp8LinearWorkspace workspace_beside_products(const Fp8LinearProblem& problem,
                                             const Fp8LinearChoice& choice) {
    Fp8LinearWorkspace workspace;
    for (const auto& cast : choice.casts) {
        if (cast) add(workspace, cast->counter_bytes, cast->multiplier_bytes);
    }
    if (choice.sums) add(workspace, choice.sums->counter_bytes, choice.sums->part_bytes);
    workspace.code_bytes = problem.code_bytes;
    return workspace;
}

template <class Problem, std::size_t count>
bool are_as_aligned(const std::array<std::optional<Problem>, count>& problems,
                    const std::array<std::optional<Problem>, count>& others) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
        if (problems[i] && others[i] && !is_as_aligned(*problems[i], *others[i])) return false;
    }
    return true;
}

class Catalogue {
  public:
    Catalogue(const Fp8LinearLayer& layer, const RowRange& rows, const DeviceFacts& facts)
        : layer_(layer), rows_(rows), facts_(facts) {
        problem_.out = layer.format;
        problem_.fast_accum = layer.fast_accum;
    }

    void add_forward() {
        add_casts(layer_.codes);
        add_once(all_, choose_fp8_update(facts_).spec);
        problem_.a = problem_.b = layer_.codes;
        problem_.trans_b = true;
        problem_.n = layer_.out_features;
        problem_.k = layer_.in_features;
        // Codes that a call keeps for itself begin their rows where wide copies can.
        add_products([](Fp8GemmProblem& p, std::int64_t rows) { p.m = rows; });
        if (!layer_.backward || layer_.in_features % 16 == 0) return;
        add_products([this](Fp8GemmProblem& p, std::int64_t rows) {
            p.m = rows;
            p.aligned = saved_aligned(rows) && saved_aligned(layer_.out_features);
        });
    }

    void add_backward() {
        add_casts(layer_.grad_codes);
        if (layer_.bias) add_sums(*layer_.bias);
        problem_.a = layer_.grad_codes;
        problem_.b = layer_.codes;
        problem_.trans_b = false;
        problem_.n = layer_.in_features;
        problem_.k = layer_.out_features;
        add_products([this](Fp8GemmProblem& p, std::int64_t rows) {
            p.m = rows;
            p.aligned = saved_aligned(layer_.out_features);
        });
        problem_.trans_a = true;
        problem_.m = layer_.out_features;
        add_products([this](Fp8GemmProblem& p, std::int64_t rows) {
            p.k = rows;
            p.aligned = saved_aligned(rows);
        });
    }

    std::vector<Spec> all() const { return all_; }

  private:
    // Of saved codes, `rows` of in_features: where there is one row alone, no distance counts.
    bool saved_aligned(std::int64_t rows) const {
        return rows == 1 || layer_.in_features % 16 == 0;
    }

    void add_casts(int codes) {
        Fp8QuantizeProblem cast;
        cast.format = layer_.format;
        cast.out = codes;
        cast.codes = kRowCodes;
        cast.amax = true;
        cast.dynamic = layer_.dynamic;
        for (const Spec& spec : fp8_quantize_catalogue(cast, facts_))
            add_once(all_, spec);
    }

    void add_sums(int out) {
        const ColumnSumsProblem sums{
            .format = layer_.format, .out = out, .rows = rows_.first, .cols = 1};
        add_once(all_, choose_column_sums(sums, facts_).spec);
    }

    // `place` makes the product of a number of rows. All of them are asked for: what is best
    // changes with the rows in no order that a few of them would tell.
    template <class Place>
    void add_products(const Place& place) {
        Spec latest;
        for (std::int64_t rows = rows_.first; rows <= rows_.last; ++rows) {
            Fp8GemmProblem problem = problem_;
            place(problem, rows);
            const std::optional<Fp8GemmChoice> choice = rank_fp8_gemm(problem, facts_).choice;
            if (!choice || choice->spec == latest) continue;
            latest = choice->spec;
            add_once(all_, latest);
        }
    }

    const Fp8LinearLayer layer_;
    const RowRange rows_;
    const DeviceFacts facts_;
    Fp8GemmProblem problem_;
    std::vector<Spec> all_;
};

}  // namespace

bool has_no_rows(const Fp8LinearProblem& problem) noexcept {
    const auto given = [](const auto& part) { return part.has_value(); };
    return !problem.updates && !problem.sums && std::ranges::none_of(problem.casts, given) &&
           std::ranges::none_of(problem.products, given);
}

bool is_as_aligned(const Fp8LinearProblem& problem, const Fp8LinearProblem& other) noexcept {
    const bool sums = !problem.sums || !other.sums || problem.sums->aligned >= other.sums->aligned;
    return sums && are_as_aligned(problem.casts, other.casts) &&
           are_as_aligned(problem.products, other.products);
}

Ranking<Fp8LinearChoice> rank_fp8_linear(const Fp8LinearProblem& problem, const DeviceFacts& facts,
                                         std::optional<KernelId> forced) {
    Ranking<Fp8LinearChoice> ranking;
    Fp8LinearChoice choice;
    const auto rank_parts = [&](const auto& problems, auto& choices, const auto& rank) {
        for (std::size_t i = 0; i < problems.size(); ++i) {
            if (!problems[i]) continue;
            auto ranked = rank(*problems[i], facts);
            for (const Candidate& candidate : ranked.candidates) {
                // Those of other scales than a layer has are beside the point.
                if (candidate.reason != Reason::other_granularity)
                    judge(ranking.candidates, candidate);
            }
            choices[i] = std::move(ranked.choice);
        }
    };
    rank_parts(problem.casts, choice.casts,
               [](const Fp8QuantizeProblem& cast, const DeviceFacts& device) {
                   return rank_fp8_quantize(cast, device);
               });
    rank_parts(problem.products, choice.products,
               [forced](const Fp8GemmProblem& product, const DeviceFacts& device) {
                   return rank_fp8_gemm(product, device, forced);
               });
    const auto is_chosen = [](const auto& problems, const auto& choices) {
        return std::ranges::equal(
            problems, choices, {}, [](const auto& part) { return !!part; },
            [](const auto& part) { return !!part; });
    };
    if (!is_chosen(problem.casts, choice.casts) || !is_chosen(problem.products, choice.products)) {
        return ranking;
    }
    choice.casts_nothing = problem.casts_nothing;
    if (problem.updates) choice.update = choose_fp8_update(facts);
    if (problem.sums) choice.sums = choose_column_sums(*problem.sums, facts);
    choice.workspace = workspace_beside_products(problem, choice);
    for (const auto& product : choice.products) {
        if (product) add(choice.workspace, product->workspace);
    }
    ranking.choice = std::move(choice);
    return ranking;
}

Fp8LinearWorkspace fp8_linear_workspace_anywhere(const Fp8LinearProblem& problem,
                                                 const Fp8LinearChoice& choice,
                                                 const DeviceFacts& facts) {
    Fp8LinearWorkspace workspace = workspace_beside_products(problem, choice);
    for (const auto& product : problem.products) {
        if (product) add(workspace, fp8_gemm_workspace_anywhere(*product, facts));
    }
    return workspace;
}

std::vector<Spec> fp8_linear_catalogue(const Fp8LinearLayer& layer, const RowRange& rows,
                                       const DeviceFacts& facts) {
    if (facts.arch.number < info(KernelId::fp8_gemm_mma).minimum_arch) return {};
    Catalogue catalogue(layer, rows, facts);
    catalogue.add_forward();
    if (layer.backward) catalogue.add_backward();
    return catalogue.all();
}

}  // namespace jitney::policy
