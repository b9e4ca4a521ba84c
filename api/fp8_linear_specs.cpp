#include <algorithm>

#include "jitney/prewarm.hpp"
#include "operations/check.hpp"
#include "operations/fp8_linear/check.hpp"
#include "operations/fp8_linear/choose.hpp"
#include "operations/kernel_launch.hpp"
#include "operations/refuse.hpp"
#include "policy/device_facts.hpp"
#include "runtime/device.hpp"

namespace jitney {
namespace {

// The policy is asked for each number of rows: a microsecond or two.
constexpr std::int64_t kMostRows = 1 << 20;

void check(const Fp8LinearShape& shape) {
    using checks::refuse;
    constexpr std::int64_t most = checks::kMostOfFp8Gemm;
    for (const std::int64_t size : {shape.out_features, shape.in_features}) {
        if (size >= 1 && size <= most) continue;
        refuse("out_features is {} and in_features {}; each is from 1 to {}", shape.out_features,
               shape.in_features, most);
    }
    if (shape.first_rows < 1 || shape.first_rows > shape.last_rows || shape.last_rows > kMostRows) {
        refuse("rows are from {} to {}; they go up, from 1 on and to {} at most", shape.first_rows,
               shape.last_rows, kMostRows);
    }
    const auto is = [](DType given, std::initializer_list<DType> allowed) {
        return std::ranges::find(allowed, given) != allowed.end();
    };
    if (!is(shape.dtype, {DType::bf16, DType::fp16, DType::fp32})) {
        refuse("the tensors of a linear layer are bf16, fp16 or fp32, and dtype is another");
    }
    if (shape.bias && !is(*shape.bias, {DType::bf16, DType::fp32})) {
        refuse("the bias of a linear layer is bf16 or fp32, and its dtype is another");
    }
    checks::check(shape.recipe);
}

policy::Fp8LinearLayer layer_of(const Fp8LinearShape& shape) {
    policy::Fp8LinearLayer layer;
    layer.format = static_cast<int>(shape.dtype);
    layer.codes = static_cast<int>(checks::forward_format(shape.recipe));
    layer.grad_codes = static_cast<int>(checks::backward_format(shape.recipe));
    if (shape.bias) layer.bias = static_cast<int>(*shape.bias);
    layer.dynamic = shape.recipe.scaling == Fp8Scaling::dynamic;
    layer.fast_accum = shape.fast_accum;
    layer.backward = shape.backward;
    layer.out_features = shape.out_features;
    layer.in_features = shape.in_features;
    return layer;
}

}  // namespace

std::vector<std::string> fp8_linear_specs(const Fp8LinearShape& shape, std::string_view arch,
                                          int multiprocessors) {
    check(shape);
    policy::DeviceFacts facts =
        arch.empty() ? facts_of(runtime::device(0)) : policy::facts_named(arch);
    if (multiprocessors < 0) {
        checks::refuse("multiprocessors is {}; it is 0 (those of a common GPU) or more",
                       multiprocessors);
    }
    if (multiprocessors != 0) facts.sm_count = multiprocessors;
    std::vector<std::string> texts;
    const policy::RowRange rows{shape.first_rows, shape.last_rows};
    for (const policy::Spec& spec : policy::fp8_linear_catalogue(layer_of(shape), rows, facts))
        texts.push_back(policy::text_of(spec));
    if (texts.empty()) {
        checks::refuse(
            "no kernel multiplies FP8 on {}: jitney explain fp8-linear --x {},{} --weight {},{} "
            "--arch {} says why",
            facts.arch.text(), shape.first_rows, shape.in_features, shape.out_features,
            shape.in_features, facts.arch.text());
    }
    return texts;
}

}  // namespace jitney
