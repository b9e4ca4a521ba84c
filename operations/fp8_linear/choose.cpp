#include "operations/fp8_linear/choose.hpp"

#include "kernel_sources/common/constants.h"
#include "operations/fp8_gemm/choose.hpp"
#include "operations/fp8_linear/column_sums.hpp"
#include "operations/fp8_linear/update.hpp"
#include "operations/fp8_quantize/choose.hpp"

namespace jitney::policy {
namespace {

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
            if (!rank_fp8_gemm(problem, facts_).accepted()) continue;
            const Spec spec = choose_fp8_gemm(problem, facts_).spec;
            if (spec == latest) continue;
            latest = spec;
            add_once(all_, spec);
        }
    }

    const Fp8LinearLayer layer_;
    const RowRange rows_;
    const DeviceFacts facts_;
    Fp8GemmProblem problem_;
    std::vector<Spec> all_;
};

}  // namespace

std::vector<Spec> fp8_linear_catalogue(const Fp8LinearLayer& layer, const RowRange& rows,
                                       const DeviceFacts& facts) {
    if (facts.arch.number < info(KernelId::fp8_gemm_mma).minimum_arch) return {};
    Catalogue catalogue(layer, rows, facts);
    catalogue.add_forward();
    if (layer.backward) catalogue.add_backward();
    return catalogue.all();
}

}  // namespace jitney::policy
