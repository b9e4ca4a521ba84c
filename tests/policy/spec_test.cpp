#include "policy/spec.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/support/random.hpp"

namespace jitney::policy {
namespace {

using tests::Random;

int random_within(const Range& range, Random& random) {
    for (;;) {
        const int value = static_cast<int>(random.integer(range.minimum, range.maximum));
        if (range.holds(value)) return value;
    }
}

// Any specialization of constants that are allowed one by one.
Spec random_spec_of_constants(const KernelInfo& kernel, Random& random) {
    static constexpr std::array kArchs = {
        Arch{75, 0},   Arch{80, 0},  Arch{86, 0},    Arch{87, 0},    Arch{89, 0},    Arch{90, 0},
        Arch{90, 'a'}, Arch{100, 0}, Arch{100, 'a'}, Arch{103, 'f'}, Arch{120, 'a'}, Arch{121, 0}};
    Spec spec;
    spec.kernel = kernel.id;
    do {
        const Arch arch = random.pick(std::span<const Arch>(kArchs));
        spec.arch_number = arch.number;
        spec.arch_suffix = arch.suffix;
    } while (!runs_on(kernel, spec.arch()));
    std::size_t slot = 0;
    const auto add = [&](int value) { spec.values[slot++] = static_cast<std::int16_t>(value); };
    for (const ConstantInfo& constant : kernel.constants) {
        switch (constant.kind) {
            case ConstantKind::integer:
                add(random_within(constant.range, random));
                break;
            case ConstantKind::tile:
                add(random_within(constant.range, random));
                add(random_within(constant.range_n, random));
                break;
            case ConstantKind::flag:
                add(random.chance(0.5) ? 1 : 0);
                break;
            case ConstantKind::digest: {
                const bool some = random.chance(0.5);
                for (int i = 0; i < 4; ++i)
                    add(some ? static_cast<int>(random.integer(-32768, 32767)) : 0);
                break;
            }
            case ConstantKind::name: {
                std::size_t i = 0;
                do {
                    i = static_cast<std::size_t>(
                        random.integer(0, static_cast<std::int64_t>(constant.names.size()) - 1));
                } while (!constant.allows_name(i));
                add(static_cast<int>(i));
                break;
            }
        }
    }
    return spec;
}

// Any specialization that the registry allows.
Spec random_spec(const KernelInfo& kernel, Random& random) {
    for (;;) {
        const Spec spec = random_spec_of_constants(kernel, random);
        if (kernel.why_not == nullptr || kernel.why_not({spec}).empty()) return spec;
    }
}

TEST_CASE("the registry is well formed") {
    std::set<std::string_view> names;
    for (const KernelInfo& kernel : kernels()) {
        CAPTURE(kernel.name);
        CHECK(names.insert(kernel.name).second);
        CHECK(&info(kernel.id) == &kernel);
        CHECK(find_kernel(kernel.name) == &kernel);
        CHECK(!kernel.operation.empty());
        std::set<std::string_view> constants;
        std::size_t slots = 0;
        for (const ConstantInfo& constant : kernel.constants) {
            CHECK(constants.insert(constant.name).second);
            slots += constant.kind == ConstantKind::tile     ? 2
                     : constant.kind == ConstantKind::digest ? 4
                                                             : 1;
            if (constant.kind == ConstantKind::integer || constant.kind == ConstantKind::tile) {
                CHECK(constant.range.holds(constant.range.minimum));
                CHECK(constant.range.holds(constant.range.maximum));
                CHECK(constant.range.minimum > 0);
            }
            if (constant.kind == ConstantKind::name) CHECK(!allowed_names(constant).empty());
        }
        CHECK(slots <= Spec::max_values);
    }
    CHECK(find_kernel("attn") == nullptr);
    CHECK(find_kernel("") == nullptr);
}

TEST_CASE("thousands of specializations print and parse back") {
    Random random = Random::fresh();
    INFO(random.text());
    std::set<std::string> texts;
    std::vector<Spec> seen;
    for (const KernelInfo& kernel : kernels()) {
        for (int round = 0; round < 2000; ++round) {
            const Spec spec = random_spec(kernel, random);
            const std::string text = text_of(spec);
            REQUIRE_MESSAGE(parse_spec(text) == spec, text);
            // Equal texts mean equal specializations.
            const bool fresh = texts.insert(text).second;
            REQUIRE_MESSAGE(fresh == (std::find(seen.begin(), seen.end(), spec) == seen.end()),
                            text);
            if (fresh) seen.push_back(spec);
        }
    }
}

TEST_CASE("the texts are these") {
    for (const char* text :
         {"attn_prefill_mma<head_dim=128,format=bf16,tile=64x64,kv=dense,causal=1>@sm_90a",
          "attn_prefill_mma<head_dim=72,format=fp16,tile=128x64,kv=dense,causal=0,mask=1>@sm_120",
          "attn_decode_mma<head_dim=64,format=bf16,tile=16x32,stages=6,kv=dense,causal=0>@sm_80",
          "attn_prefill_scalar<head_dim=59,format=fp32,tile=32x32,kv=dense,causal=0,mask=1>@sm_75",
          "attn_decode_scalar<head_dim=512,format=fp16,tile=4x16,kv=dense,causal=1>@sm_100f",
          "attn_decode_mma<head_dim=64,format=bf16,tile=16x32,stages=6,kv=dense,causal=0,"
          "logits=00c0ffee12345678>@sm_80",
          "rotary_emb<format=fp32,style=half_split,pairs=4>@sm_89"}) {
        CHECK(text_of(parse_spec(text)) == text);
    }
}

TEST_CASE("constants are found by name") {
    const Spec spec = parse_spec(
        "attn_decode_mma<head_dim=64,format=bf16,tile=16x32,stages=6,kv=dense,causal=1,mask=1>"
        "@sm_80");
    CHECK(value_of(spec, "head_dim") == 64);
    CHECK(value_of(spec, "format") == 2);
    CHECK(value_of(spec, "tile_m") == 16);
    CHECK(value_of(spec, "tile_n") == 32);
    CHECK(value_of(spec, "stages") == 6);
    CHECK(value_of(spec, "kv") == 0);
    CHECK(value_of(spec, "causal") == 1);
    CHECK(value_of(spec, "mask") == 1);
    CHECK(value_of(spec, "tile") == 0);
    CHECK(value_of(spec, "pairs") == 0);
    CHECK(value_of(spec, "") == 0);
}

TEST_CASE("constants are given by name, in any order, and the others are 0") {
    const Arch arch = {80, 0};
    const Spec spec = spec_of(KernelId::attn_decode_mma, arch,
                              {{"causal", 1},
                               {"tile_n", 32},
                               {"q_stages", 7},  // it has none
                               {"head_dim", 64},
                               {"tile_m", 16},
                               {"stages", 6},
                               {"format", 2},
                               {"mask", 1}});
    CHECK(spec == parse_spec("attn_decode_mma<head_dim=64,format=bf16,tile=16x32,stages=6,kv=dense,"
                             "causal=1,mask=1>@sm_80"));
    CHECK(text_of(spec_of(KernelId::attn_work_map, arch, {{"threads", 256}})) ==
          "attn_work_map<threads=256>@sm_80");
    CHECK(spec_of(KernelId::rotary_emb, arch) ==
          spec_of(KernelId::rotary_emb, arch, {{"tile", 3}}));
}

TEST_CASE("the shared memory that the kernels use") {
    const std::pair<const char*, int> used[] = {
        {"attn_decode_scalar<head_dim=128,format=fp32,tile=4x32,kv=dense,causal=0>@sm_90a", 18564},
        {"attn_decode_scalar<head_dim=256,format=bf16,tile=8x32,kv=dense,causal=1>@sm_75", 24708},
        {"attn_decode_mma<head_dim=64,format=bf16,tile=16x32,stages=6,kv=dense,causal=0>@sm_90a",
         110592},
        {"attn_prefill_scalar<head_dim=128,format=fp32,tile=32x32,kv=dense,causal=1>@sm_90a",
         32900},
        {"attn_prefill_mma<head_dim=64,format=bf16,tile=128x48,kv=dense,causal=1>@sm_90a", 32256},
        {"attn_prefill_mma<head_dim=32,format=bf16,tile=128x64,kv=dense,causal=1,mask=1>@sm_90a",
         22016},
        {"attn_prefill_wgmma<head_dim=64,format=bf16,tile=128x128,stages=3,q_stages=3,kv=dense,"
         "causal=1>@sm_90a",
         148112},
        {"attn_work_map<threads=256>@sm_90a", 1024},
        {"attn_mask_bits<threads=256>@sm_90a", 4256},
        {"attn_merge_states<head_dim=128,format=bf16,width=4>@sm_90a", 0},
        {"append_kv<format=bf16,pairs=4,queries=packed,kv=paged>@sm_90a", 12288},
        {"rotary_emb<format=bf16,style=interleaved,pairs=4>@sm_90a", 0},
        {"fp8_quantize<format=bf16,out=e4m3,codes=none,amax=1>@sm_90a", 32},
        {"fp8_quantize<format=fp16,out=e5m2,codes=transposed,amax=1>@sm_90a", 8224},
        {"fp8_gemm_mma<a=e4m3,b=e4m3,out=bf16,tile=16x32,stages=16,trans_a=0,trans_b=1,unpack=1>"
         "@sm_90a",
         196608},
        {"fp8_gemm_wgmma<a=e4m3,b=e4m3,out=bf16,tile=128x256,stages=3,splits=1,"
         "pieces=4>@sm_90a",
         213096},
        {"fp8_gemm_wgmma<a=e4m3,b=e5m2,out=fp32,tile=16x64,stages=8,splits=2,"
         "swap=1,promote=1>@sm_90a",
         94376},
        {"fp8_update<threads=256>@sm_90a", 32},
        {"column_sums<format=bf16,out=bf16>@sm_90a", 8208}};
    for (const auto& each : used)
        CHECK_MESSAGE(shared_bytes(parse_spec(each.first)) == each.second, each.first);
}

TEST_CASE("what the compiler is given") {
    const Spec spec = parse_spec(
        "attn_prefill_mma<head_dim=128,format=bf16,tile=64x32,kv=dense,causal=1>@sm_90a");
    CHECK(translation_unit(spec) == R"(#include "attention/prefill_mma.cuh"

namespace jitney {
struct Constants {
    static constexpr int head_dim = 128;
    static constexpr int format = 2;
    static constexpr int tile_m = 64;
    static constexpr int tile_n = 32;
    static constexpr int queries = 0;
    static constexpr int kv = 0;
    static constexpr int causal = 1;
    static constexpr int mask = 0;
    static constexpr int window = 0;
    static constexpr int softcap = 0;
    static constexpr int alibi = 0;
    static constexpr int sinks = 0;
};
}  // namespace jitney
)");
    CHECK(function_name(spec) == "jitney::attn_prefill_mma<jitney::Constants>");
}

TEST_CASE("a logits function stands behind the constants") {
    Spec spec = parse_spec(
        "attn_decode_scalar<head_dim=64,format=fp32,tile=4x32,kv=dense,causal=0,"
        "logits=fedcba9876543210>@sm_80");
    CHECK(logits_digest(spec) == 0xfedcba9876543210u);
    const std::string with = translation_unit(spec, "    // the function\n");
    CHECK(with.find("append = 0;\n    // the function\n};") != std::string::npos);
    CHECK(with.find("logits") == std::string::npos);
    // What the text may name beside CUDA's own functions comes behind the kernel's sources.
    CHECK(
        with.starts_with("#include \"attention/decode_scalar.cuh\"\n"
                         "#include \"common/math_names.cuh\"\n\nnamespace"));
    CHECK(translation_unit(spec).find("math_names") == std::string::npos);
    set_logits_digest(spec, 0);
    CHECK(logits_digest(spec) == 0);
    CHECK(text_of(spec) ==
          "attn_decode_scalar<head_dim=64,format=fp32,tile=4x32,kv=dense,causal=0>@sm_80");
    Spec rotary = parse_spec("rotary_emb<format=fp32,style=half_split,pairs=4>@sm_89");
    const Spec before = rotary;
    set_logits_digest(rotary, 5);
    CHECK(rotary == before);
    for (const char* digest : {"0000000000000000", "fedcba987654321", "FEDCBA9876543210",
                               "fedcba98765432100", "fedcba987654321g", ""}) {
        CAPTURE(digest);
        CHECK_THROWS(parse_spec(std::string("attn_decode_scalar<head_dim=64,format=fp32,tile=4x32,"
                                            "kv=dense,causal=0,logits=") +
                                digest + ">@sm_80"));
    }
}

// Only the arch is no part of the source: it is an option of the compiler.
TEST_CASE("different constants give different sources") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int round = 0; round < 2000; ++round) {
        const KernelInfo& kernel = random.pick(kernels());
        const Spec a = random_spec(kernel, random);
        Spec b = random_spec(kernel, random);
        set_logits_digest(b, logits_digest(a));  // of a source that the caller gives
        CHECK((translation_unit(a) == translation_unit(b)) == (a.values == b.values));
    }
}

}  // namespace
}  // namespace jitney::policy
