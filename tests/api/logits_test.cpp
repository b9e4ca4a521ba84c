// Logits functions of a caller's: what texts are refused, what reaches the kernels, and what a call
// with one costs.
#include "jitney/logits.hpp"

#include <cstdio>
#include <cstring>

#include "jitney/attention.hpp"
#include "jitney/backend.hpp"
#include "jitney/explain.hpp"
#include "jitney/prewarm.hpp"
#include "kernel_sources/attention/params.h"
#include "operations/kernel_launch.hpp"
#include "runtime/compiler.hpp"
#include "tests/api/attention_calls.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/runtime/allocation_count.hpp"
#include "tests/support/logits_functions.hpp"
#include "tests/support/problems.hpp"

namespace jitney::tests {
namespace {

AttentionShape small_shape() {
    AttentionShape shape;
    shape.kv_len = 40;
    shape.q_heads = 4;
    shape.kv_heads = 2;
    shape.head_dim = 64;
    shape.scale = 0.5;
    return shape;
}

// The last launch of an attention kernel.
struct Launched {
    std::string image;
    AttentionParams params;
};
Launched launched;

void record(const char* image, void** parameters) {
    launched.image = image;
    std::memcpy(&launched.params, parameters[0], sizeof launched.params);
}

template <class Make>
std::string refusal(const Make& make) {
    try {
        make();
        return "accepted";
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::invalid_argument);
        check_sentence(error.what());
        return error.what();
    }
}

std::string fmt_digest(std::uint64_t digest) {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
    return text;
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("equal texts are one logits function, others are others") {
    const LogitsFunction none;
    CHECK_FALSE(none);
    CHECK(none.digest() == 0);
    const LogitsFunction a("score * 2.0f");
    const LogitsFunction b(std::string("score") + " * 2.0f");
    const LogitsFunction c("score * 3.0f");
    const LogitsFunction d("score * 2.0f", {"float unused"});
    const LogitsFunction e("score * 2.0f", {"int unused"});
    CHECK(a);
    CHECK(a == b);
    CHECK(a.digest() == b.digest());
    CHECK(a.digest() != 0);
    CHECK(a != c);
    CHECK(a.digest() != c.digest());
    CHECK(a.digest() != d.digest());
    CHECK(d.digest() != e.digest());
    // The digest is part of cache entries: it may not change.
    CHECK(LogitsFunction("score").digest() == 0x47b4bc82c5089c83u);
}

TEST_CASE("a file declares its parameters at the top") {
    const LogitsFunction from_file = LogitsFunction::from_source(
        "param const float* slopes\n\n  param float cap\nscore - slopes[head] * cap\n");
    CHECK(from_file);
    CHECK(from_file ==
          LogitsFunction("score - slopes[head] * cap", {"const float* slopes", "float cap"}));
    CHECK(LogitsFunction::from_source("score + 1.0f") == LogitsFunction("score + 1.0f"));
    CHECK(contains(refusal([] { LogitsFunction::from_source("param float x\n\n"); }), "empty"));
    CHECK(contains(refusal([] { LogitsFunction::from_source("param double x\nscore"); }),
                   "double x"));
}

TEST_CASE("a logits function is the same in every form") {
    const LogitsFunction given("score\n  - slopes[head]", {"const float* slopes"});
    // What cache entries and manifests have of it may not change.
    CHECK(fmt_digest(given.digest()) == "e589bfc933612850");
    for (const char* text : {"score\r\n  - slopes[head]", "score\n  - slopes[head]\n",
                             "\n\t score\n  - slopes[head] \r\n\r\n"}) {
        for (const char* declaration :
             {"const float* slopes", " const  float *slopes\t", "const float *\tslopes\r\n"}) {
            CAPTURE(text);
            CAPTURE(declaration);
            CHECK(LogitsFunction(text, {declaration}) == given);
        }
    }
    for (const char* file :
         {"param const float* slopes\nscore\n  - slopes[head]",
          "param const float* slopes\r\nscore\r\n  - slopes[head]\r\n",
          "\n  param\tconst  float  *  slopes  \n\n\n  score\n  - slopes[head]\n\n"}) {
        CAPTURE(file);
        CHECK(LogitsFunction::from_source(file) == given);
    }
    CHECK(LogitsFunction("score\n - slopes[head]", {"const float* slopes"}) != given);
    CHECK(LogitsFunction("score\n  - slopes[head]", {"float* slopes"}) != given);
    CHECK(contains(refusal([] { LogitsFunction("score * __LINE__"); }), "__LINE__"));
    // What stands around the text is not of its length; lines are counted with it.
    CHECK(LogitsFunction(std::string(9000, '\n') + "score") == LogitsFunction("score"));
    CHECK(contains(refusal([] { LogitsFunction::from_source("param int x\r\n\r\nscore)"); }),
                   "line 3 of a logits function closes a '('"));
}

TEST_CASE("the key of a kernel is the same for all forms of its logits function") {
    const LogitsFunction file =
        LogitsFunction::from_source("\nparam float only_of_a_file\n\nscore + only_of_a_file\n");
    policy::Spec spec = policy::parse_spec(
        "attn_decode_scalar<head_dim=64,format=fp32,tile=4x32,kv=dense,causal=0>@sm_80");
    policy::set_logits_digest(spec, file.digest());
    const runtime::KernelSource source = source_of(spec);
    CHECK(contains(source.translation_unit, "#line 2 \"logits\""));
    CHECK(contains(source.translation_unit, "#line 4 \"logits\"\nscore + only_of_a_file\n"));
    CHECK(contains(source.key_unit, "#line 1 \"logits parameters\""));
    CHECK(contains(source.key_unit, "#line 1 \"logits\"\nscore + only_of_a_file\n"));

    // As a program has it that gives the text alone.
    policy::set_logits_digest(spec, LogitsFunction("score + 0.25f").digest());
    CHECK(source_of(spec).key_unit.empty());
}

TEST_CASE("names that make different functions of equal texts are refused") {
    const auto text = [](const std::string& given) {
        return refusal([&given] { (void)LogitsFunction(given); });
    };
    for (const std::string name :
         {"__DATE__", "__TIME__", "__TIMESTAMP__", "__FILE__", "__LINE__", "__COUNTER__",
          "__INCLUDE_LEVEL__", "__has_include", "__has_include_next", "__builtin_LINE",
          "__builtin_FILE", "__BASE_FILE__"}) {
        CAPTURE(name);
        const std::string wanted = "has " + name + ", which makes different functions";
        CHECK(contains(text("score + sizeof(" + name + ")"), wanted));
        CHECK(contains(text("\n#if defined(" + name + ")\nscore\n#else\n1\n#endif"), wanted));
        // In two lines that are one to the preprocessor, also to one that knows trigraphs.
        for (std::size_t at = 1; at < name.size(); ++at) {
            for (const char* splice : {"\\\n", "\\\r\n", "?\?/\n", "\\\n\\\n"}) {
                CHECK(contains(text("score + " + name.substr(0, at) + splice + name.substr(at)),
                               wanted));
            }
        }
        CHECK(contains(text("score /* " + name + " */"), wanted));
        CHECK(contains(text("#define A " + name + "\nreturn A;"), wanted));
        // Parts of other names.
        CHECK(text("float a" + name + " = score; return a" + name + ";") == "accepted");
        CHECK(contains(refusal([&name] {
                           const std::string declared = "float " + name;
                           (void)LogitsFunction("score", {std::string_view(declared)});
                       }),
                       name));
    }
    for (const char* pasted :
         {"#define C(a, b) a##b\nreturn C(__DA, TE__)[0];", "#define C(a, b) a %:%: b\nreturn 1;",
          "#define C(a, b) a#\\\n#b\nreturn C(__TI, ME__)[0];"})
        CHECK(contains(text(pasted), "write the names out"));
    CHECK(text("// ## of heads\nscore + float('#')") == "accepted");
    for (const char* directive : {"#import \"x\"", "#embed \"x\"", "#include_next <x>",
                                  "#inc\\\nlude <x>", "/* */ # /* */ include <x>"})
        CHECK(contains(text(std::string("score\n") + directive + "\n"), "includes a file"));
}

TEST_CASE("the key of a kernel with a logits function holds what the text may name") {
    policy::Spec spec = policy::parse_spec(
        "attn_decode_scalar<head_dim=64,format=fp32,tile=4x32,kv=dense,causal=0>@sm_80");
    const auto has_names = [&spec] {
        const std::string material = runtime::key_of(source_of(spec)).material;
        return contains(material, "common/math_names.cuh");
    };
    CHECK_FALSE(has_names());
    policy::set_logits_digest(spec, LogitsFunction("key > 5 ? -INFINITY : score").digest());
    CHECK(has_names());
}

TEST_CASE("texts that can't be logits functions are refused") {
    const auto text = [](std::string_view given) {
        return refusal([given] { (void)LogitsFunction(given); });
    };
    CHECK(contains(text(""), "empty"));
    CHECK(contains(text(" \n\t "), "empty"));
    CHECK(contains(text(std::string(9000, 'x')), "9000 characters, more than 8192"));
    CHECK(contains(text(std::string_view("sco\0re", 6)), "0x0"));
    CHECK(contains(text("score\n  #  include <cuda.h>"), "line 2"));
    CHECK(contains(text("score = 2.0f;"), "return"));
    CHECK(text("float returned = score; return returned;") == "accepted");
    CHECK(text("score // ; and return in a comment are no statements\n") == "accepted");
    CHECK(text("score /* ; */ + float('\"' - ';')") == "accepted");
    CHECK(contains(text("score; // return"), "return"));
    CHECK(contains(text("// nothing"), "a comment"));
    CHECK(contains(text("score\n#line 7 \"else\"\n"), "line 2"));
    CHECK(contains(text("score\n%: \\\n include <x>"), "line 2"));
    CHECK(contains(text("score)\n"), "line 1 of a logits function closes a '('"));
    CHECK(contains(text("return score;\n}"), "line 2 of a logits function closes a '{'"));
    CHECK(contains(text("(score\n + [1)"), "line 2 of a logits function closes a '('"));
    CHECK(contains(text("score * (2\n"), "line 1 of a logits function opens a '('"));
    CHECK(text("score * 1'000 + ')'") == "accepted");
    CHECK(text("#if 1\nif (score > 0) {\n#else\n{\n#endif\nreturn 1;\n}\nreturn 0;") == "accepted");
    CHECK(contains(text("score\n\n/* never"), "line 3 of a logits function begins a comment"));
    CHECK(contains(text("score + 'x"), "line 1 of a logits function has a quote"));
    CHECK(contains(text("R\"(score)\""), "raw string"));
    const auto parameters = [](std::initializer_list<std::string_view> declarations) {
        return refusal([declarations] { (void)LogitsFunction("score", declarations); });
    };
    CHECK(parameters({"const float* a", "float b", "int c", "long long d"}) == "accepted");
    CHECK(contains(parameters({"int a", "int b", "int c", "int d", "int e"}), "5 parameters"));
    CHECK(contains(parameters({"int a", "float a"}), "'a'"));
    CHECK(contains(parameters({"int score"}), "'score'"));
    CHECK(contains(parameters({"int kv_len"}), "'kv_len'"));
    CHECK(contains(parameters({"float"}), "'float'"));
    CHECK(contains(parameters({"double x"}), "double x"));
    CHECK(contains(parameters({""}), "no parameter"));
    CHECK(contains(parameters({"float 2x"}), "no parameter"));
    CHECK(contains(parameters({"float x = 3"}), "no parameter"));
    CHECK(contains(parameters({"float x; int"}), "no parameter"));
    CHECK(parameters({"const unsigned  char * const* a", "long  long b", "unsigned long int* c",
                      "const volatile Thing *d"}) == "accepted");
    for (const char* odd : {"* p", "const float p", "unsigned p", "float *const p", "float* p*"})
        CHECK_MESSAGE(contains(parameters({odd}), std::string("'") + odd + "' is no parameter"),
                      odd);
    CHECK(contains(
        refusal([] { LogitsFunction::from_source("param float a\n\nparam double b\nscore"); }),
        "line 3: 'double b' is no parameter"));
}

TEST_CASE("values have to be those of the parameters") {
    Random random(1);
    AttentionProblem problem(small_shape(), random);
    AttentionArgs good = args_of(problem);
    good.logits = LogitsFunction("score * a - b[head]", {"float a", "const float* b"});
    good.logits_values = {1.0f, static_cast<const void*>(problem.q.view().data)};
    const auto explained = [](const AttentionArgs& args) { return explain(args, "sm_90a"); };
    CHECK(explained(good).chosen.ends_with(fmt_digest(good.logits.digest()) + ">@sm_90a"));
    using Bad = BadCall<AttentionArgs>;
    const std::vector<Bad> bad = {
        {"none given",
         [](AttentionArgs& a) { a.logits_values = {}; },
         {"logits_values[0]", "missing", "a float", "float a"}},
        {"an int for a float",
         [](AttentionArgs& a) { a.logits_values[0] = 1; },
         {"logits_values[0]", "an int", "a float"}},
        {"a float for a pointer",
         [](AttentionArgs& a) { a.logits_values[1] = 1.0f; },
         {"logits_values[1]", "a float", "a pointer", "const float* b"}},
        {"one too many",
         [](AttentionArgs& a) { a.logits_values[2] = 1.0f; },
         {"logits_values[2]", "2 parameters"}},
        {"values and no function",
         [](AttentionArgs& a) { a.logits = {}; },
         {"logits_values[0]", "no logits function"}},
    };
    for (const Bad& each : bad)
        check_refused(each, good, explained);
}

TEST_CASE("host tensors can't have a logits function") {
    Random random(1);
    AttentionProblem problem(small_shape(), random);
    AttentionArgs args;
    args.q = problem.q.view();
    args.k = problem.k.view();
    args.v = problem.v.view();
    args.out = problem.out.view();
    args.logits = LogitsFunction("score");
    try {
        attention(args);
        FAIL("it ran");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::unsupported);
        CHECK(contains(error.what(), "reference backend"));
        check_sentence(error.what());
    }
    CHECK(last_run().empty());
}

TEST_CASE("prewarming needs the text of a logits function") {
    const std::string text =
        "attn_decode_scalar<head_dim=64,format=fp32,tile=4x32,kv=dense,causal=0,"
        "logits=0123456789abcdef>@sm_80";
    const std::vector<std::string> specs{text};
    const std::string why = refusal([&specs] { prewarm(specs); });
    CHECK(contains(why, "logits=0123456789abcdef"));
    CHECK(contains(why, "LogitsFunction"));
    CHECK(contains(why, "--logits"));
    // What a mistyped one is compared with.
    (void)LogitsFunction("score");
    CHECK(contains(refusal([&specs] { prewarm(specs); }), "known here: "));
}

TEST_CASE("a parameter's value has the type of what it is made from") {
    using Kind = LogitsValue::Kind;
    static const float bias[1] = {};
    const LogitsValues values = {bias, 0.5f, -3, -5LL};
    CHECK(values[0].kind() == Kind::pointer);
    CHECK(values[0].bits() == reinterpret_cast<std::uintptr_t>(bias));
    CHECK(values[1].kind() == Kind::fp32);
    CHECK(values[1].bits() == 0x3f000000);
    CHECK(values[2].kind() == Kind::int32);
    CHECK(values[2].bits() == 0xfffffffd);
    CHECK(values[3].kind() == Kind::int64);
    CHECK(values[3].bits() == 0xfffffffffffffffb);
    // Whatever std::int64_t is an alias of.
    CHECK(LogitsValue(5L).kind() == Kind::int64);
    CHECK(LogitsValue(std::int64_t{5}).kind() == Kind::int64);
    CHECK(LogitsValue(true ? nullptr : bias).kind() == Kind::pointer);
    CHECK(LogitsValue().kind() == Kind::none);
}

TEST_CASE("scenario: logits functions" * doctest::skip()) {
    fake::Cuda& fake = fake_cuda();
    fake.kernel = &record;
    Random random(3);
    AttentionProblem problem(small_shape(), random);
    AttentionArgs args = args_of(problem);
    attention(args);
    const std::string without = last_run();
    CHECK_FALSE(contains(launched.image, "edit_by_caller"));
    CHECK(launched.params.scale_log2 == doctest::Approx(0.5 * 1.4426950408889634));

    args.logits =
        LogitsFunction("score - slopes[head] + bonus", {"const float* slopes", "int bonus"});
    args.logits_values = {static_cast<const void*>(problem.q.view().data), 7};
    args.softcap = 4.0f;
    attention(args);
    CHECK(last_run() != without);
    CHECK(contains(last_run(), "logits=" + fmt_digest(args.logits.digest())));
    CHECK(last_run() == explain(args).chosen);
    CHECK(contains(launched.image, "score - slopes[head] + bonus"));
    CHECK(contains(launched.image, "#line 1 \"logits\""));
    CHECK(launched.params.caller_scale == 0.5f);
    CHECK(launched.params.scale_log2 == doctest::Approx(1.4426950408889634));
    CHECK(launched.params.softcap_scale == 0.25f);
    CHECK(launched.params.caller_values[0] ==
          reinterpret_cast<std::uintptr_t>(problem.q.view().data));
    CHECK(launched.params.caller_values[1] == 7);
    CHECK(fake.loads == 2);

    // Other values of the same function: the same kernel. Another function of as many: another.
    args.logits_values[1] = -1;
    attention(args);
    CHECK(launched.params.caller_values[1] == 0xffffffffu);
    CHECK(fake.loads == 2);
    AttentionArgs other = args;
    other.logits =
        LogitsFunction("score - slopes[head] * bonus", {"const float* slopes", "int bonus"});
    attention(other);
    CHECK(contains(launched.image, "score - slopes[head] * bonus"));
    CHECK(fake.loads == 3);

    // The call that went without still does.
    AttentionArgs plain = args_of(problem);
    attention(plain);
    CHECK(last_run() == without);

    fake.kernel = nullptr;
    const int launches = fake.launches;
    const long before = allocations_of_this_thread();
    for (int i = 0; i < 100; ++i) {
        args.logits_values[1] = i;
        attention(args);
        attention(other);
    }
    CHECK(allocations_of_this_thread() == before);
    CHECK(fake.launches == launches + 200);
    CHECK(fake.loads == 3);
}

TEST_CASE("a logits function reaches its kernel as it was meant") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: logits functions", fake_gpu(cache)));
}

}  // namespace jitney::tests
