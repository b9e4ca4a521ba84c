// Texts that are no specialization: each gets a sentence that says what is wrong with it.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "jitney/error.hpp"
#include "policy/spec.hpp"
#include "tests/support/random.hpp"

namespace jitney::policy {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

constexpr std::string_view kGood =
    "attn_prefill_mma<head_dim=128,format=bf16,tile=64x64,kv=dense,causal=1>@sm_90a";

std::string complaint(std::string_view text) {
    try {
        const Spec spec = parse_spec(text);
        return "accepted as " + text_of(spec);
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::invalid_argument);
        return error.what();
    }
}

// What the sentence says after naming the text.
std::string why(std::string_view text) {
    const std::string sentence = complaint(text);
    const std::size_t at = sentence.find("' is not a specialization: ");
    return at == std::string::npos ? sentence : sentence.substr(at + 27);
}

// kGood with one part replaced.
std::string with(std::string_view part, std::string_view replacement) {
    std::string text(kGood);
    return text.replace(text.find(part), part.size(), replacement);
}

TEST_CASE("the sentence names the text") {
    CHECK(complaint("nonsense") ==
          "'nonsense' is not a specialization: it must have the form "
          "kernel<constant=value,...>@sm_90a");
}

TEST_CASE("texts without the form") {
    const std::string form = "it must have the form kernel<constant=value,...>@sm_90a";
    for (const std::string_view text :
         {""sv, "@"sv, ">@"sv, "<"sv, "<>"sv, "\0"sv, "attn_prefill_mma"sv,
          "attn_prefill_mma@sm_80"sv, "attn_prefill_mma<head_dim=128>"sv,
          "attn_prefill_mma>head_dim=128<@sm_80"sv, "attn_prefill_mma<head_dim=128@sm_80>"sv,
          "attn_prefill_mma<>sm_80"sv, "attn_prefill_mma<head_dim=128> @sm_80"sv, "@sm_80<>"sv}) {
        CHECK_MESSAGE(why(text) == form, text);
    }
}

TEST_CASE("unknown kernels") {
    const std::string list =
        "' (there are attn_decode_scalar, attn_decode_mma, attn_prefill_scalar, attn_prefill_mma, "
        "attn_work_map, attn_mask_bits, attn_merge_states, append_kv, rotary_emb, fp8_quantize, "
        "fp8_quantize_rows, fp8_quantize_groups, "
        "fp8_gemm_mma, fp8_update, column_sums, attn_prefill_wgmma, rms_norm, "
        "gated_activation, fp8_gemm_wgmma, attn_decode_cluster)";
    CHECK(why(with("attn_prefill_mma", "attn_prefil_mma")) ==
          "there is no kernel 'attn_prefil_mma" + list);
    CHECK(why(with("attn_prefill_mma", "")) == "there is no kernel '" + list);
    CHECK(why(with("attn_prefill_mma", " attn_prefill_mma")) ==
          "there is no kernel ' attn_prefill_mma" + list);
    CHECK(why(with("attn_prefill_mma", "ATTN_PREFILL_MMA")) ==
          "there is no kernel 'ATTN_PREFILL_MMA" + list);
}

TEST_CASE("a kernel of one chip") {
    const std::string list =
        "attn_prefill_wgmma<head_dim=128,format=bf16,tile=128x128,stages=2,q_stages=3,kv=dense,"
        "causal=1";
    CHECK(text_of(parse_spec(list + ">@sm_90a")) == list + ">@sm_90a");
    for (const char* arch : {"sm_80", "sm_90", "sm_100a", "sm_120"}) {
        CHECK(why(list + ">@" + arch) ==
              "attn_prefill_wgmma needs sm_90a, not " + std::string(arch));
    }
    const auto with_tile = [&](const char* head_dim, const char* tile) {
        return "attn_prefill_wgmma<head_dim=" + std::string(head_dim) +
               ",format=bf16,tile=" + tile + ",stages=3,q_stages=3,kv=dense,causal=0>@sm_90a";
    };
    CHECK(parse_spec(with_tile("64", "192x128")).kernel == KernelId::attn_prefill_wgmma);
    CHECK(why(with_tile("72", "192x128")) == "tiles of 192 rows need a head_dim up to 64");
    const auto with_options = [](const char* tile, const char* kv, const char* options) {
        return "attn_prefill_wgmma<head_dim=64,format=bf16,tile=" + std::string(tile) +
               ",stages=3,q_stages=3,kv=" + kv + ",causal=0" + options + ">@sm_90a";
    };
    CHECK(parse_spec(with_options("192x128", "paged", "")).kernel == KernelId::attn_prefill_wgmma);
    CHECK(why(with_options("192x128", "dense", ",mask=1")) == "tiles of 192 rows take no mask");
    CHECK(why(with_options("128x80", "dense", ",mask=1")) ==
          "a mask needs tiles of 64 or 128 keys");
    for (const char* tile : {"128x64", "128x128"})
        CHECK(parse_spec(with_options(tile, "paged", ",mask=1")).kernel ==
              KernelId::attn_prefill_wgmma);
}

TEST_CASE("unknown and too old archs") {
    CHECK(why(with("sm_90a", "sm_75")) == "attn_prefill_mma needs sm_80 or newer, not sm_75");
    CHECK(why(with("sm_90a", "sm_10")) == "attn_prefill_mma needs sm_80 or newer, not sm_10");
    CHECK(why("rotary_emb<format=fp32,style=interleaved,pairs=1>@sm_70") ==
          "rotary_emb needs sm_75 or newer, not sm_70");
    CHECK(why(with("sm_90a", "")) == "'' is not an arch such as sm_80 or sm_90a");
    CHECK(why(with("sm_90a", "hopper")) == "'hopper' is not an arch such as sm_80 or sm_90a");
    CHECK(why(with("sm_90a", "sm_90a ")) == "'sm_90a ' is not an arch such as sm_80 or sm_90a");
    CHECK(why(with("sm_90a", "sm_80a")) == "'sm_80a' is not an arch such as sm_80 or sm_90a");
    CHECK(why(std::string(kGood) + "\n") == "'sm_90a\\x0a' is not an arch such as sm_80 or sm_90a");
    CHECK(why(std::string(kGood) + "junk") ==
          "'sm_90ajunk' is not an arch such as sm_80 or sm_90a");
    CHECK(why(std::string(kGood) + "\0"s) ==
          "'sm_90a\\x00' is not an arch such as sm_80 or sm_90a");
}

TEST_CASE("constants missing, repeated, out of order, unknown") {
    CHECK(why(with("head_dim=128,", "")) == "expected head_dim= where 'format=bf16' stands");
    CHECK(why(with("kv=dense,", "")) == "expected kv= where 'causal=1' stands");
    CHECK(why(with(",causal=1", "")) == "causal= is missing");
    CHECK(why("attn_prefill_mma<>@sm_80") == "head_dim= is missing");
    CHECK(why(with("head_dim=128,format=bf16", "format=bf16,head_dim=128")) ==
          "expected head_dim= where 'format=bf16' stands");
    CHECK(why(with("format=bf16", "format=bf16,format=bf16")) ==
          "expected tile= where 'format=bf16' stands");
    CHECK(why(with("causal=1", "causal=1,causal=1")) ==
          "nothing of attn_prefill_mma can stand where 'causal=1' stands");
    CHECK(why(with("causal=1", "causal=1,mask=1,mask=1")) ==
          "nothing of attn_prefill_mma can stand where 'mask=1' stands");
    CHECK(why(with("causal=1", "causal=1,warp=4")) ==
          "nothing of attn_prefill_mma can stand where 'warp=4' stands");
    CHECK(why(with("causal=1", "mask=1,causal=1")) == "expected causal= where 'mask=1' stands");
    CHECK(why(with("head_dim=128", "head_dim")) == "expected head_dim= where 'head_dim' stands");
    CHECK(why(with("head_dim=128", "head_dim 128")) ==
          "expected head_dim= where 'head_dim 128' stands");
    CHECK(why(with("head_dim=128", "headdim=128")) ==
          "expected head_dim= where 'headdim=128' stands");
    CHECK(why(with("head_dim=128", "head_dims=128")) ==
          "expected head_dim= where 'head_dims=128' stands");
    CHECK(why(with("tile=64x64", "tile=64x64,stages=4")) == "expected kv= where 'stages=4' stands");
}

TEST_CASE("commas and spaces where none belong") {
    CHECK(why(with("causal=1", "causal=1,")) == "a comma stands at the end of the constants");
    CHECK(why(with("head_dim=128", ",head_dim=128")) == "head_dim= is missing");
    CHECK(why(with("format=bf16", ",format=bf16")) == "format= is missing");
    CHECK(why(with("format=bf16", " format=bf16")) ==
          "expected format= where ' format=bf16' stands");
    CHECK(why(with("causal=1", "causal=1 ")) == "causal=1  must be 0 or 1");
    CHECK(why(with("causal=1", "causal=1>")) == "causal=1> must be 0 or 1");
    CHECK(why(with("causal=1", "causal=1>@sm_80,x")) == "causal=1>@sm_80 must be 0 or 1");
}

TEST_CASE("numbers out of range, or not as they print") {
    for (const std::string_view number : {""sv,
                                          "0"sv,
                                          "5"sv,
                                          "12"sv,
                                          "+8"sv,
                                          "-8"sv,
                                          "-0"sv,
                                          "08"sv,
                                          "008"sv,
                                          "0x80"sv,
                                          "8.0"sv,
                                          "1e2"sv,
                                          "8 "sv,
                                          " 8"sv,
                                          "264"sv,
                                          "512"sv,
                                          "65664"sv,
                                          "4294967424"sv,
                                          "99999999999999999999999999"sv,
                                          "eight"sv,
                                          "128u"sv,
                                          "=128"sv}) {
        const std::string text = with("head_dim=128", "head_dim=" + std::string(number));
        CHECK(why(text) ==
              "head_dim=" + std::string(number) + " must be a multiple of 8 from 8 to 256");
    }
    CHECK(why("attn_prefill_scalar<head_dim=513,format=fp32,tile=8x16,kv=dense,causal=0>@sm_75") ==
          "head_dim=513 must be a number from 1 to 512");
    CHECK(why("rotary_emb<format=fp32,style=interleaved,pairs=3>@sm_75") ==
          "pairs=3 must be a power of two from 1 to 8");
    CHECK(why("attn_decode_mma<head_dim=64,format=bf16,tile=16x32,stages=2,kv=dense,causal=0>"
              "@sm_80") == "stages=2 must be a number from 3 to 16");
}

TEST_CASE("tiles") {
    for (const std::string_view tile :
         {""sv, "64"sv, "x"sv, "64x"sv, "x64"sv, "64X64"sv, "64*64"sv, "64x64x64"sv, "64xx64"sv,
          "32x64"sv, "256x64"sv, "64x8"sv, "64x144"sv, "064x64"sv, "64x064"sv, "+64x64"sv,
          "64x-64"sv, "64 x 64"sv, "4294967360x64"sv}) {
        CHECK(why(with("tile=64x64", "tile=" + std::string(tile))) ==
              "tile=" + std::string(tile) +
                  " must be ROWSxKEYS, rows a multiple of 64 from 64 to 128 and keys a multiple of "
                  "16 from 16 to 128");
    }
    CHECK(why("attn_decode_mma<head_dim=64,format=bf16,tile=32x32,stages=4,kv=dense,causal=0>"
              "@sm_80") ==
          "tile=32x32 must be ROWSxKEYS, rows 16 and keys a multiple of 16 from 16 to 64");
}

TEST_CASE("names and flags") {
    for (const std::string_view name : {""sv, "fp32"sv, "e4m3"sv, "BF16"sv, "bf1"sv, "bf16x"sv,
                                        "2"sv, "float"sv, "bf16=fp16"sv}) {
        CHECK(why(with("format=bf16", "format=" + std::string(name))) ==
              "format=" + std::string(name) + " must be one of fp16, bf16");
    }
    CHECK(why(with("kv=dense", "kv=ragged")).starts_with("kv=ragged must be one of dense"));
    for (const std::string_view flag : {""sv, "2"sv, "01"sv, "true"sv, "-1"sv, "+1"sv}) {
        CHECK(why(with("causal=1", "causal=" + std::string(flag))) ==
              "causal=" + std::string(flag) + " must be 0 or 1");
    }
    CHECK(why(with("causal=1", "causal=1,mask=0")) == "leave mask=0 out where it is off");
    CHECK(why(with("causal=1", "causal=1,mask=2")) == "mask=2 must be 0 or 1");
}

TEST_CASE("bytes that do not print, and texts without an end, stay readable") {
    CHECK(complaint("a\0b"sv) ==
          "'a\\x00b' is not a specialization: it must have the form "
          "kernel<constant=value,...>@sm_90a");
    CHECK(why(with("head_dim=128", "head_dim=12\0"s + "8")) ==
          "head_dim=12\\x008 must be a multiple of 8 from 8 to 256");
    CHECK(why(with("head_dim=128", "head\0_dim=128"s)) ==
          "expected head_dim= where 'head\\x00_dim=128' stands");
    CHECK(why(with("attn_prefill_mma", "\x1b[31mattn\xff"s))
              .starts_with("there is no kernel '\\x1b[31mattn\\xff' "));

    const std::string digits(1u << 20, '8');
    const std::string text = with("head_dim=128", "head_dim=" + digits);
    const std::string sentence = complaint(text);
    CHECK(sentence.size() < 600);
    CHECK(sentence.find("... (" + std::to_string(text.size()) +
                        " characters)' is not a specialization: head_dim=888") !=
          std::string::npos);
    CHECK(sentence.ends_with("... (1048576 characters) must be a multiple of 8 from 8 to 256"));
    for (const std::string& endless :
         {std::string(1u << 20, 'a'), std::string(1u << 20, '<'), std::string(1u << 20, '\0'),
          "attn_prefill_mma<" + std::string(1u << 20, ',') + ">@sm_80", std::string(kGood) + digits,
          digits + std::string(kGood)}) {
        CHECK(complaint(endless).size() < 1300);
    }
}

// One damaged character is either refused or leads to another valid text.
TEST_CASE("damaged texts never slip through") {
    tests::Random random = tests::Random::fresh();
    INFO(random.text());
    int refused = 0;
    for (int round = 0; round < 20000; ++round) {
        std::string text(kGood);
        const auto at =
            static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(text.size()) - 1));
        switch (random.integer(0, 3)) {
            case 0:
                text[at] = static_cast<char>(random.integer(0, 255));
                break;
            case 1:
                text.erase(at, static_cast<std::size_t>(random.integer(1, 12)));
                break;
            case 2:
                text.insert(at, 1, static_cast<char>(random.integer(32, 126)));
                break;
            default:
                text.insert(at, text.substr(0, static_cast<std::size_t>(random.integer(1, 12))));
        }
        const std::string answer = complaint(text);
        if (answer.find("' is not a specialization: ") == std::string::npos) {
            REQUIRE(answer == "accepted as " + text);
        } else {
            ++refused;
        }
    }
    CHECK(refused > 15000);
}

}  // namespace
}  // namespace jitney::policy
