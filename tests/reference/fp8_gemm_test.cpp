// fp8_gemm on the reference backend: what tests/api and the kernels' tests, which compare with it,
// do not tell.
#include "operations/fp8_gemm/reference.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "jitney/error.hpp"
#include "tests/support/host_tensor.hpp"

namespace jitney::tests {

TEST_CASE("a sum of nothing is 0, whatever the scale, and the bias is added to it") {
    for (const double scale : {1.0, HUGE_VAL, std::nan("")}) {
        HostTensor a(DType::fp8_e4m3, {2, 0});
        HostTensor b(DType::fp8_e5m2, {0, 3});
        HostTensor out(DType::fp32, {2, 3});
        HostTensor number(DType::fp32, {1});
        HostTensor bias(DType::bf16, {3});
        number.set(0, scale);
        bias.fill([](std::int64_t i) { return static_cast<double>(i) - 1.0; });
        reference::Fp8Gemm call;
        call.a = a.view();
        call.b = b.view();
        call.out = out.view();
        call.scale = number.view();
        reference::fp8_gemm(call);
        for (std::int64_t i = 0; i < 6; ++i)
            CHECK(out.get(i) == 0.0);
        call.bias = bias.view();
        reference::fp8_gemm(call);
        for (std::int64_t i = 0; i < 6; ++i)
            CHECK(out.get(i) == static_cast<double>(i % 3) - 1.0);
    }
}

TEST_CASE("a scale without dimensions is one number; two are none") {
    HostTensor a(DType::fp8_e4m3, {2, 4});
    HostTensor out(DType::fp32, {2, 2});
    a.fill([](std::int64_t i) { return static_cast<double>(i); });
    HostTensor scale(DType::fp32, {2});
    scale.set(0, 0.5);
    reference::Fp8Gemm call;
    call.a = call.b = a.view();
    call.trans_b = true;
    call.out = out.view();
    call.scale = scale.view();
    call.scale->ndim = 0;
    reference::fp8_gemm(call);
    CHECK(out.at({0, 0}) == 7.0);  // (1 + 4 + 9) / 2
    call.scale->ndim = 1;
    CHECK_THROWS_WITH_AS(reference::fp8_gemm(call), doctest::Contains("one fp32"), Error);
}

}  // namespace jitney::tests
