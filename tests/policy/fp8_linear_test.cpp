// What prewarm compiles for linear layers on FP8 is what their calls ask for.
#include "operations/fp8_linear/choose.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "kernel_sources/common/constants.h"
#include "operations/fp8_gemm/choose.hpp"
#include "operations/fp8_linear/column_sums.hpp"
#include "operations/fp8_linear/update.hpp"
#include "operations/fp8_quantize/choose.hpp"
#include "tests/policy/problems.hpp"

namespace jitney::policy {
namespace {

using tests::Random;

const DeviceFacts kHopper = typical_facts({90, 'a'});

Fp8LinearLayer layer_of(std::int64_t out_features, std::int64_t in_features) {
    Fp8LinearLayer layer;
    layer.format = kBf16;
    layer.codes = kFp8E4m3;
    layer.grad_codes = kFp8E5m2;
    layer.out_features = out_features;
    layer.in_features = in_features;
    return layer;
}

Fp8LinearLayer random_layer(Random& random) {
    const auto size = [&random] {
        const int most = random.chance(0.5) ? 40000 : 300;
        const std::int64_t any = random_count(random, most);
        return random.chance(0.5) ? (any + 15) / 16 * 16 : any;
    };
    Fp8LinearLayer layer = layer_of(size(), size());
    const auto fp8 = [&random] { return random.chance(0.5) ? kFp8E4m3 : kFp8E5m2; };
    layer.format = static_cast<int>(random.integer(kFp32, kBf16));
    layer.codes = fp8();
    layer.grad_codes = fp8();
    if (random.chance(0.5)) layer.bias = random.chance(0.5) ? kBf16 : kFp32;
    layer.dynamic = random.chance(0.5);
    layer.fast_accum = random.chance(0.3);
    layer.backward = random.chance(0.6);
    return layer;
}

DeviceFacts random_fp8_facts(Random& random) {
    for (;;) {
        const DeviceFacts facts = random_facts(random);
        if (facts.arch.number >= 89) return facts;
    }
}

// What calls with such rows launch, written down product by product.
class Calls {
  public:
    Calls(const Fp8LinearLayer& layer, const DeviceFacts& facts) : layer_(layer), facts_(facts) {}

    void forward(std::int64_t rows, bool saves) {
        cast(layer_.codes, rows, layer_.in_features);
        ask(choose_fp8_update(facts_).spec);
        Fp8GemmProblem p = product(layer_.codes, rows, layer_.out_features, layer_.in_features);
        p.trans_b = true;
        p.aligned = !saves || (saved_rows_aligned(rows) && saved_rows_aligned(p.n));
        ask(p);
    }

    void backward(std::int64_t rows) {
        cast(layer_.grad_codes, rows, layer_.out_features);
        ask(choose_fp8_update(facts_).spec);
        if (layer_.bias) {
            const ColumnSumsProblem sums{.format = layer_.format,
                                         .out = *layer_.bias,
                                         .rows = rows,
                                         .cols = static_cast<int>(layer_.out_features)};
            ask(choose_column_sums(sums, facts_).spec);
        }
        Fp8GemmProblem x =
            product(layer_.grad_codes, rows, layer_.in_features, layer_.out_features);
        x.aligned = saved_rows_aligned(layer_.out_features);
        ask(x);
        Fp8GemmProblem weight =
            product(layer_.grad_codes, layer_.out_features, layer_.in_features, rows);
        weight.trans_a = true;
        weight.aligned = saved_rows_aligned(rows);
        ask(weight);
    }

    const std::set<std::string>& specs() const { return specs_; }

  private:
    bool saved_rows_aligned(std::int64_t rows) const {
        return rows <= 1 || layer_.in_features % 16 == 0;
    }

    Fp8GemmProblem product(int a, std::int64_t m, std::int64_t n, std::int64_t k) const {
        Fp8GemmProblem p;
        p.a = a;
        p.b = layer_.codes;
        p.out = layer_.format;
        p.m = m;
        p.n = n;
        p.k = k;
        p.fast_accum = layer_.fast_accum;
        return p;
    }

    void cast(int out, std::int64_t rows, std::int64_t cols) {
        Fp8QuantizeProblem p;
        p.format = layer_.format;
        p.out = out;
        p.codes = kRowCodes;
        p.amax = true;
        p.dynamic = layer_.dynamic;
        p.rows = rows;
        p.cols = cols;
        const Fp8CastChoice choice = rank_fp8_quantize(p, facts_).choice.value();
        REQUIRE(choice.amax.has_value() == p.dynamic);
        if (choice.amax) ask(choice.amax->spec);
        ask(choice.codes.spec);
    }

    void ask(const Fp8GemmProblem& p) { ask(rank_fp8_gemm(p, facts_).choice.value().spec); }
    void ask(const Spec& spec) { specs_.insert(jitney::policy::text_of(spec)); }

    Fp8LinearLayer layer_;
    DeviceFacts facts_;
    std::set<std::string> specs_;
};

std::set<std::string> texts_of(const std::vector<Spec>& specs) {
    std::set<std::string> texts;
    for (const Spec& spec : specs)
        texts.insert(jitney::policy::text_of(spec));
    REQUIRE(texts.size() == specs.size());  // each once
    return texts;
}

}  // namespace

TEST_CASE("the catalogue of a linear layer is what calls with these rows ask for, and no more") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 60; ++i) {
        const Fp8LinearLayer layer = random_layer(random);
        const DeviceFacts facts = random_fp8_facts(random);
        CAPTURE(text_of(facts));
        CAPTURE(layer.out_features);
        CAPTURE(layer.in_features);
        CAPTURE(layer.backward);
        RowRange rows;
        rows.first = random_count(random, 2000);
        rows.last = rows.first + random.integer(0, 1500);
        Calls calls(layer, facts);
        for (std::int64_t m = rows.first; m <= rows.last; ++m) {
            calls.forward(m, false);
            if (!layer.backward) continue;
            calls.forward(m, true);
            calls.backward(m);
        }
        REQUIRE(texts_of(fp8_linear_catalogue(layer, rows, facts)) == calls.specs());
    }
}

TEST_CASE("the layers of Llama-3-8B") {
    const auto count = [](bool backward, std::optional<int> bias) {
        std::vector<Spec> all;
        for (const auto& [n, k] :
             {std::pair{6144, 4096}, {4096, 4096}, {28672, 4096}, {4096, 14336}}) {
            Fp8LinearLayer layer = layer_of(n, k);
            layer.backward = backward;
            layer.bias = bias;
            for (const Spec& spec : fp8_linear_catalogue(layer, {1, 8192}, kHopper))
                add_once(all, spec);
        }
        return all.size();
    };
    CHECK(count(false, std::nullopt) == 21);
    CHECK(count(false, kBf16) == 21);
    CHECK(count(true, std::nullopt) == 28);
    CHECK(count(true, kBf16) == 29);
}

TEST_CASE("a step's kernels come in its order, forward first") {
    Fp8LinearLayer layer = layer_of(4096, 4096);
    layer.backward = true;
    layer.bias = kFp32;
    layer.dynamic = true;
    std::vector<KernelId> kernels;
    for (const Spec& spec : fp8_linear_catalogue(layer, {64, 64}, kHopper))
        kernels.push_back(spec.kernel);
    CHECK(kernels == std::vector<KernelId>{KernelId::fp8_quantize, KernelId::fp8_quantize,
                                           KernelId::fp8_update, KernelId::fp8_gemm_wgmma,
                                           KernelId::fp8_quantize, KernelId::column_sums,
                                           KernelId::fp8_gemm_mma, KernelId::fp8_gemm_mma});
}

TEST_CASE("a linear layer that nothing can multiply has an empty catalogue") {
    CHECK(fp8_linear_catalogue(layer_of(64, 64), {1, 8}, typical_facts({80, 0})).empty());
    CHECK(fp8_linear_catalogue(layer_of(64, 64), {1, 8}, typical_facts({86, 0})).empty());
}

}  // namespace jitney::policy
