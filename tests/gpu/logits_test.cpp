// Logits functions of a caller's on the GPU: soft cap and ALiBi rebuilt with one, bit for bit where
// the kernel computes them as written, and one that depends on all that it is told, against the
// definition.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "jitney/backend.hpp"
#include "jitney/explain.hpp"
#include "tests/gpu/device.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/logits_problem.hpp"

namespace jitney::tests {
namespace {

using Tensors = std::map<std::string, DeviceTensor>;

Tensors upload(const ServingProblem& problem) {
    Tensors tensors;
    for (const auto& [name, tensor] : problem.tensors)
        tensors.try_emplace(name, tensor);
    return tensors;
}

AttentionArgs args_of(const ServingShape& shape, const Tensors& tensors) {
    Views views;
    for (const auto& [name, tensor] : tensors)
        views.emplace(name, tensor.view());
    return serving_call<AttentionArgs>(shape, views);
}

// Small enough that prefill takes the same tile with the option and with the function.
ServingShape random_shape(const std::string& kernel, Random& random) {
    const bool decode = kernel.find("decode") != std::string::npos;
    ServingShape shape = random_serving_shape(
        random, {.batch = 2, .q_len = decode ? 6 : 90, .kv_len = decode ? 900 : 200},
        !decode && random.chance(0.5));
    shape.head_dim = random.chance(0.5) ? 64 : 128;
    shape.dtype = random.chance(0.5) ? DType::bf16 : DType::fp16;
    shape.causal = random.chance(0.5);
    add_options(shape,
                {random.chance(0.3), false, false, random.chance(0.3), random.chance(0.3), false},
                random);
    return shape;
}

constexpr const char* kKernels[] = {"attn_prefill_mma",    "attn_prefill_wgmma",
                                    "attn_decode_mma",     "attn_decode_cluster",
                                    "attn_prefill_scalar", "attn_decode_scalar"};

}  // namespace

TEST_CASE("logits functions: soft cap and ALiBi rebuilt") {
    Random random = Random::fresh();
    for (const char* kernel : kKernels) {
        for (const char* option : {"softcap", "alibi"}) {
            // It folds both into other arithmetic: close, but not the same bits.
            const bool same_bits = kernel != std::string("attn_prefill_wgmma");
            for (int i = 0; i < (is_quick() ? 2 : 6); ++i) {
                ServingShape shape = random_shape(kernel, random);
                // Few specializations: each is compiled.
                shape.head_dim = 64;
                shape.dtype = DType::bf16;
                shape.causal = true;
                shape.window_left = shape.window_right = -1;
                shape.sinks = false;
                shape.mask_dims = 0;
                set_option(shape, option, random);
                INFO(std::string(kernel), " ", std::string(option), " ", shape.text(), " ",
                     random.text());
                ServingProblem problem(shape, random);
                make_slopes_exact(problem);
                const Tensors own = upload(problem);
                const Tensors callers = upload(problem);
                const Scope scope(kernel);
                attention(args_of(shape, own));
                if (last_run().empty()) continue;
                attention(rebuilt(args_of(shape, callers), option));
                CHECK(last_run().find("logits=") != std::string::npos);
                for (const char* name : {"out", "lse"}) {
                    HostTensor a = own.at(name).download();
                    HostTensor b = callers.at(name).download();
                    if (same_bits) {
                        CHECK_MESSAGE(std::ranges::equal(a.storage(), b.storage()), name);
                        continue;
                    }
                    const Comparison compared = compare(a, b, {1e-2, 1e-2});
                    CHECK_MESSAGE(compared.within, name, ": ", compared.text);
                }
            }
        }
    }
}

TEST_CASE("logits functions: one that depends on all it is told" * doctest::test_suite(kLong)) {
    Random random = Random::fresh();
    for (const char* kernel : kKernels) {
        for (int i = 0; i < (is_quick() ? 2 : 5); ++i) {
            ServingShape shape = random_shape(kernel, random);
            set_option(shape, "places", random);
            shape.sinks = false;
            INFO(std::string(kernel), " ", shape.text(), " ", random.text());
            ServingProblem problem(shape, random);
            HostTensor bias(DType::fp32, {1000});
            bias.fill_normal(random);
            const DeviceTensor device_bias(bias);
            const Tensors tensors = upload(problem);
            AttentionArgs args = args_of(shape, tensors);
            args.logits = logits_function("places");
            args.logits_values = {0.5f, std::int64_t{4},
                                  static_cast<const void*>(device_bias.view().data)};
            const Scope scope(kernel);
            attention(args);
            if (last_run().empty()) continue;
            places_by_definition(problem, bias);
            HostTensor out = tensors.at("out").download();
            HostTensor lse = tensors.at("lse").download();
            problem.idle_rows_untouched(out, lse);
            problem.idle_rows_untouched(problem.at("out"), problem.at("lse"));
            const Comparison compared = compare(out, problem.at("out"), {1e-2, 1e-2});
            CHECK_MESSAGE(compared.within, compared.text);
            const Comparison sums = compare(lse, problem.at("lse"), {1e-3, 1e-4});
            CHECK_MESSAGE(sums.within, "LSE: ", sums.text);
        }
    }
}

}  // namespace jitney::tests
