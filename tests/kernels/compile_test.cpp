// Every specialization of the standard catalogue compiles under the real NVRTC, and the tensor-core
// kernels keep their promise not to spill up to head_dim 128.
#include <doctest/doctest.h>

#include <algorithm>
#include <thread>

#include "jitney/error.hpp"
#include "operations/kernel_launch.hpp"
#include "runtime/nvrtc.hpp"
#include "tests/kernels/catalogue.hpp"
#include "tests/kernels/measure.hpp"
#include "tests/kernels/nvrtc_here.hpp"

namespace jitney::tests {
namespace {

using policy::Spec;

// Says why where it can't.
bool can_compile(Arch arch) {
    if (!has_nvrtc()) return false;
    const runtime::Nvrtc& nvrtc = runtime::nvrtc();
    const auto& archs = nvrtc.archs;
    if (!archs.empty() && std::find(archs.begin(), archs.end(), arch.number) == archs.end()) {
        MESSAGE("left out: " << nvrtc.version.text() << " does not know " << arch.text());
        return false;
    }
    return true;
}

// Whether the project promises that it keeps everything in registers.
bool must_not_spill(const Spec& spec) {
    switch (spec.kernel) {
        case policy::KernelId::attn_decode_mma:
        case policy::KernelId::attn_decode_cluster:
        case policy::KernelId::attn_prefill_mma:
            return policy::value_of(spec, "head_dim") <= 128;
        case policy::KernelId::attn_prefill_wgmma:
        case policy::KernelId::fp8_quantize:
        case policy::KernelId::fp8_gemm_mma:
        case policy::KernelId::fp8_gemm_wgmma:
        case policy::KernelId::fp8_update:
        case policy::KernelId::column_sums:
            return true;
        default:
            return false;
    }
}

// Hands each one that compiled to `check`.
template <class Check>
void compile_all(const std::vector<Spec>& specs, const Check& check) {
    const unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
    for (const Measurement& m : measure(specs, jobs)) {
        CAPTURE(policy::text_of(m.spec));
        CHECK_MESSAGE(m.compiled(), m.error);
        if (!m.compiled()) continue;
        CHECK(m.cubin_bytes > 0);
        CHECK(m.report.registers > 0);
        CHECK(m.report.static_shared_bytes == 0);
        check(m);
    }
}

void check_catalogue(Arch arch, Extent extent) {
    const std::vector<Spec> specs = standard_catalogue(arch, extent);
    REQUIRE(!specs.empty());
    if (!can_compile(arch)) return;
    const policy::DeviceFacts facts = policy::typical_facts(arch);
    compile_all(specs, [&](const Measurement& m) {
        CHECK(m.shared_bytes <= facts.shared_bytes_per_block);
        if (must_not_spill(m.spec)) CHECK(m.report.spill_store_bytes == 0);
    });
}

TEST_CASE("the catalogue compiles for sm_75") {
    check_catalogue({75, 0}, Extent::selection);
}
TEST_CASE("the catalogue compiles for sm_80") {
    check_catalogue({80, 0}, Extent::selection);
}
TEST_CASE("the catalogue compiles for sm_89") {
    check_catalogue({89, 0}, Extent::selection);
}
TEST_CASE("the catalogue compiles for sm_90a") {
    check_catalogue({90, 'a'}, Extent::full);
}
TEST_CASE("the catalogue compiles for sm_100") {
    check_catalogue({100, 0}, Extent::selection);
}
TEST_CASE("the catalogue compiles for sm_120") {
    check_catalogue({120, 0}, Extent::selection);
}

// The texts that a person can type are more than the policy chooses: the corners of what the
// registry allows.
TEST_CASE("what the registry allows compiles") {
    if (!can_compile({80, 0})) return;
    std::vector<Spec> specs;
    for (
        const char* text : {
            "attn_prefill_mma<head_dim=8,format=fp16,tile=64x16,kv=dense,causal=0>@sm_80",
            "attn_prefill_mma<head_dim=16,format=bf16,tile=128x128,kv=dense,causal=1,mask=1>@sm_80",
            "attn_prefill_wgmma<head_dim=8,format=fp16,tile=192x64,stages=8,q_stages=1,kv=dense,"
            "causal=0,window=1,softcap=1,alibi=1,sinks=1>@sm_90a",
            "attn_prefill_wgmma<head_dim=256,format=bf16,tile=128x128,stages=8,q_stages=3,"
            "kv=dense,causal=1>@sm_90a",
            "attn_prefill_wgmma<head_dim=8,format=bf16,tile=128x64,stages=2,q_stages=1,"
            "queries=packed,kv=paged,causal=1,mask=1,window=1,softcap=1,alibi=1,sinks=1>@sm_90a",
            "attn_decode_mma<head_dim=8,format=bf16,tile=16x64,stages=3,kv=dense,causal=1>@sm_80",
            "attn_decode_mma<head_dim=24,format=fp16,tile=16x16,stages=16,kv=dense,causal=0>@sm_80",
            "attn_prefill_scalar<head_dim=1,format=fp32,tile=4x4,kv=dense,causal=1>@sm_80",
            "attn_decode_scalar<head_dim=3,format=fp16,tile=32x28,kv=dense,causal=0,mask=1>@sm_80",
            "append_kv<format=fp32,pairs=8,kv=paged,rotary=half_split>@sm_80",
            "append_kv<format=fp16,pairs=2,queries=packed,kv=dense,rotary=interleaved>@sm_80",
            "append_kv<format=bf16,pairs=1,kv=dense>@sm_80",
            "attn_merge_states<head_dim=3,format=fp16,width=4>@sm_80",
            "attn_merge_states<head_dim=512,format=fp32,width=1>@sm_80",
            "rotary_emb<format=fp32,style=interleaved,pairs=8>@sm_80",
            "rotary_emb<format=bf16,style=half_split,pairs=2>@sm_80",
            "fp8_quantize<format=fp16,out=e5m2,codes=both>@sm_80",
            "fp8_quantize<format=fp32,out=e4m3,codes=none>@sm_80",
            "fp8_quantize<format=bf16,out=e4m3,codes=row,software=1>@sm_90a",
            "fp8_gemm_mma<a=e4m3,b=e5m2,out=fp32,tile=16x128,stages=8,trans_a=1,trans_b=0>@sm_89",
            "fp8_gemm_mma<a=e5m2,b=e4m3,out=e4m3,tile=128x32,stages=3,trans_a=0,trans_b=0,"
            "promote=1,unaligned=1>@sm_89",
            "fp8_gemm_mma<a=e4m3,b=e4m3,out=fp16,tile=128x128,stages=8,trans_a=1,trans_b=1,"
            "unpack=1,promote=1>@sm_90a",
        }) {
        specs.push_back(policy::parse_spec(text));
    }
    compile_all(specs, [](const Measurement&) {});
}

TEST_CASE("a kernel that can't compile says so") {
    if (!can_compile({80, 0})) return;
    runtime::KernelSource source = source_of(policy::parse_spec(
        "attn_prefill_scalar<head_dim=1,format=fp32,tile=4x4,kv=dense,causal=1>@sm_80"));
    source.translation_unit += "this is no C++";
    CHECK_THROWS_AS(runtime::compile(source), CompileError);
}

}  // namespace
}  // namespace jitney::tests
