// Logits functions under the real NVRTC: they compile into every attention kernel without spills,
// and what is wrong with one is told in its own lines.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cfloat>
#include <climits>
#include <cmath>
#include <concepts>

#include "jitney/attention.hpp"
#include "jitney/error.hpp"
#include "operations/attention/choose.hpp"
#include "operations/kernel_launch.hpp"
#include "runtime/compiler.hpp"
#include "runtime/nvrtc.hpp"
#include "tests/kernels/measure.hpp"
#include "tests/kernels/nvrtc_here.hpp"
#include "tests/support/logits_functions.hpp"

namespace jitney::tests {
namespace {

using policy::Spec;

Spec with_logits(const char* text, const LogitsFunction& function) {
    Spec spec = policy::parse_spec(text);
    policy::set_logits_digest(spec, function.digest());
    return spec;
}

// What the policy takes for a server's prefill and decode with a function.
std::vector<Spec> served(const LogitsFunction& function, int head_dim) {
    policy::AttentionProblem shape;
    shape.format = 2;  // bf16
    shape.q_heads = 32;
    shape.kv_heads = 8;
    shape.head_dim = head_dim;
    shape.causal = true;
    shape.paged = true;
    shape.logits = function.digest();
    std::vector<Spec> specs;
    for (const bool packed : {true, false}) {
        shape.packed = packed;
        for (const Spec& spec :
             policy::attention_catalogue(shape, policy::typical_facts({90, 'a'})))
            specs.push_back(spec);
    }
    return specs;
}

std::string literal(double value) {
    return fmt::format("{:a}", value);
}
std::string literal(float value) {
    return fmt::format("{:a}f", value);
}
template <std::integral T>
std::string literal(T value) {
    // The least has no literal of its own.
    return value < 0 ? fmt::format("{} - 1", value + 1)
                     : fmt::format("{}{}", value, std::is_unsigned_v<T> ? "u" : "");
}

}  // namespace

TEST_CASE("a logits function may use what math.h and float.h name") {
    if (!has_nvrtc()) return;
    const policy::Spec plain = policy::parse_spec(
        "attn_decode_scalar<head_dim=64,format=fp32,tile=4x32,kv=dense,causal=0>@sm_90a");
    std::string text;
    const auto equal = [&text](const char* name, auto value) {
        text += fmt::format("static_assert({} == {}, \"{}\");\n", name, literal(value), name);
    };
#define JITNEY_EQUAL(name) equal(#name, name)
    JITNEY_EQUAL(M_E);
    JITNEY_EQUAL(M_LOG2E);
    JITNEY_EQUAL(M_LOG10E);
    JITNEY_EQUAL(M_LN2);
    JITNEY_EQUAL(M_LN10);
    JITNEY_EQUAL(M_PI);
    JITNEY_EQUAL(M_PI_2);
    JITNEY_EQUAL(M_PI_4);
    JITNEY_EQUAL(M_1_PI);
    JITNEY_EQUAL(M_2_PI);
    JITNEY_EQUAL(M_2_SQRTPI);
    JITNEY_EQUAL(M_SQRT2);
    JITNEY_EQUAL(M_SQRT1_2);
    JITNEY_EQUAL(FP_NAN);
    JITNEY_EQUAL(FP_INFINITE);
    JITNEY_EQUAL(FP_ZERO);
    JITNEY_EQUAL(FP_SUBNORMAL);
    JITNEY_EQUAL(FP_NORMAL);
    JITNEY_EQUAL(FLT_RADIX);
    JITNEY_EQUAL(FLT_EVAL_METHOD);
    JITNEY_EQUAL(FLT_MANT_DIG);
    JITNEY_EQUAL(FLT_DIG);
    JITNEY_EQUAL(FLT_DECIMAL_DIG);
    JITNEY_EQUAL(FLT_MIN_EXP);
    JITNEY_EQUAL(FLT_MIN_10_EXP);
    JITNEY_EQUAL(FLT_MAX_EXP);
    JITNEY_EQUAL(FLT_MAX_10_EXP);
    JITNEY_EQUAL(FLT_MAX);
    JITNEY_EQUAL(FLT_MIN);
    JITNEY_EQUAL(FLT_TRUE_MIN);
    JITNEY_EQUAL(FLT_EPSILON);
    JITNEY_EQUAL(DBL_MANT_DIG);
    JITNEY_EQUAL(DBL_DIG);
    JITNEY_EQUAL(DBL_DECIMAL_DIG);
    JITNEY_EQUAL(DBL_MIN_EXP);
    JITNEY_EQUAL(DBL_MIN_10_EXP);
    JITNEY_EQUAL(DBL_MAX_EXP);
    JITNEY_EQUAL(DBL_MAX_10_EXP);
    JITNEY_EQUAL(DBL_MAX);
    JITNEY_EQUAL(DBL_MIN);
    JITNEY_EQUAL(DBL_TRUE_MIN);
    JITNEY_EQUAL(DBL_EPSILON);
    JITNEY_EQUAL(INT_MAX);
    JITNEY_EQUAL(INT_MIN);
    JITNEY_EQUAL(UINT_MAX);
    JITNEY_EQUAL(LLONG_MAX);
    JITNEY_EQUAL(LLONG_MIN);
    JITNEY_EQUAL(ULLONG_MAX);
#undef JITNEY_EQUAL
    text +=
        "constexpr float least = -INFINITY;\n"
        "if (key == 1) return least;\n"
        "if (key == 2) return NAN;\n"
        "if (key == 3) return HUGE_VALF - float(HUGE_VAL);\n"
        "float s = fpclassify(score) + isnormal(score) + isunordered(score, NAN);\n"
        "s += isgreater(score, 0) + isless(score, 1.0) + islessgreater(score, s);\n"
        "s += isgreaterequal(score, s) + islessequal(score, s) + isnan(s) + isinf(s);\n"
        "int e; float part; float more;\n"
        "sincosf(s, &part, &more);\n"
        "s += isfinite(s) + signbit(s) + frexpf(s, &e) + modff(s, &part) + ldexpf(s, 3) + more;\n";
    for (const char* one :
         {"expf",   "exp2f",   "exp10f",  "expm1f", "logf",   "log2f",      "log10f",
          "log1pf", "tanhf",   "sinf",    "cosf",   "tanf",   "sinhf",      "coshf",
          "asinf",  "acosf",   "atanf",   "asinhf", "acoshf", "atanhf",     "erff",
          "erfcf",  "tgammaf", "lgammaf", "sqrtf",  "rsqrtf", "cbrtf",      "fabsf",
          "floorf", "ceilf",   "truncf",  "roundf", "rintf",  "nearbyintf", "logbf",
          "exp",    "tanh",    "log",     "sqrt",   "abs",    "fabs",       "floor"})
        text += fmt::format("s += {}(s);\n", one);
    for (const char* two : {"fmaxf", "fminf", "powf", "atan2f", "fmodf", "remainderf", "copysignf",
                            "nextafterf", "fdimf", "hypotf", "max", "min", "pow", "fmax", "fmin"})
        text += fmt::format("s += {}(s, score);\n", two);
    const LogitsFunction function(text + "return fmaf(s, score, FLT_EPSILON);");
    const Spec spec = with_logits(policy::text_of(plain).c_str(), function);
    const runtime::CompiledKernel compiled = runtime::compile(source_of(spec));
    CHECK(compiled.log == "");
}

TEST_CASE("logits functions compile into the kernels") {
    if (!has_nvrtc()) return;
    std::vector<Spec> specs;
    for (const char* name : {"softcap", "alibi", "places"}) {
        for (const int head_dim : {64, 128}) {
            for (const Spec& spec : served(logits_function(name), head_dim))
                specs.push_back(spec);
        }
    }
    for (const char* text :
         {"attn_prefill_scalar<head_dim=33,format=fp32,tile=32x32,queries=packed,kv=paged,causal=1,"
          "softcap=1,alibi=1>@sm_75",
          "attn_decode_scalar<head_dim=64,format=fp16,tile=4x32,kv=dense,causal=0,window=1>@sm_80",
          "attn_decode_mma<head_dim=256,format=bf16,tile=16x16,stages=3,kv=paged,causal=1,"
          "append=1>@sm_120"})
        specs.push_back(with_logits(text, logits_function("places")));
    for (const Measurement& m : measure(specs, 2)) {
        CAPTURE(policy::text_of(m.spec));
        CHECK_MESSAGE(m.compiled(), m.error);
        const bool mma = m.spec.kernel == policy::KernelId::attn_prefill_mma ||
                         m.spec.kernel == policy::KernelId::attn_decode_mma ||
                         m.spec.kernel == policy::KernelId::attn_decode_cluster;
        if (mma && policy::value_of(m.spec, "head_dim") <= 128) {
            CHECK(m.report.spill_store_bytes == 0);
        }
    }
}

TEST_CASE("a logits function that does not compile is told in its own lines") {
    if (!has_nvrtc()) return;
    const auto fails = [](const LogitsFunction& function) -> CompileError {
        const Spec spec = with_logits(
            "attn_decode_scalar<head_dim=64,format=fp32,tile=4x32,kv=dense,causal=0>@sm_80",
            function);
        try {
            runtime::compile(source_of(spec));
        } catch (const CompileError& error) {
            return error;
        }
        FAIL("it compiled");
        throw std::logic_error("not reached");
    };
    const CompileError unknown = fails(LogitsFunction("score\n  * factor"));
    CHECK(std::string(unknown.what()).find("logits(2): error") != std::string::npos);
    CHECK(unknown.log().find("identifier \"factor\" is undefined") != std::string::npos);
    CHECK(unknown.specialization().find("logits=") != std::string::npos);
    const CompileError later =
        fails(LogitsFunction("// one\nfloat x = score;\nx *= nothing;\nreturn x;"));
    CHECK(std::string(later.what()).find("logits(3): error") != std::string::npos);
    const CompileError type = fails(LogitsFunction("score", {"const no_type* p"}));
    CHECK(std::string(type.what()).find("logits parameters(1): error") != std::string::npos);
    // What C++ knows better than a look at the declaration.
    for (const char* odd : {"float int* p", "long long long long* p", "const* p", "7* p",
                            "static float* p", "float return", "float const"}) {
        CAPTURE(odd);
        const CompileError error = fails(LogitsFunction("score", {odd}));
        CHECK(std::string(error.what()).find("logits parameters(1): error") != std::string::npos);
    }
    // Lines of a file count from its top, those of its parameters too.
    const CompileError file = fails(LogitsFunction::from_source("param float a\n\nscore + b\n"));
    CHECK(std::string(file.what()).find("logits(3): error") != std::string::npos);
    const CompileError in_file =
        fails(LogitsFunction::from_source("param float a\n\nparam const no_type* p\nscore\n"));
    CHECK(std::string(in_file.what()).find("logits(3): error") != std::string::npos);
    const CompileError dos = fails(LogitsFunction("\r\n\r\nscore +\r\n  missing\r\n"));
    CHECK(std::string(dos.what()).find("logits(4): error") != std::string::npos);
    // What is missing at the end is told by the last line, and a warning is no error.
    const CompileError end = fails(LogitsFunction("score\n + // nothing\n\n"));
    CHECK(std::string(end.what()).find("logits(2): error") != std::string::npos);
    const CompileError kind = fails(LogitsFunction("int error = 3;\nreturn scor;"));
    CHECK(std::string(kind.what()).find("logits(2): error: identifier") != std::string::npos);
}

}  // namespace jitney::tests
