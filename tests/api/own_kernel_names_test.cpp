// Nothing of a caller's kernel is taken for what is Jitney's own, or another kernel's: names, keys
// and digests.
#include <doctest/doctest.h>

#include <bit>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/own_kernel.hpp"
#include "cache/key.hpp"
#include "jitney/kernel.hpp"
#include "kernel_sources/embedded.hpp"
#include "operations/kernel_launch.hpp"
#include "policy/kernels.hpp"
#include "policy/spec.hpp"
#include "runtime/compiler.hpp"
#include "tests/support/random.hpp"

namespace jitney::tests {
namespace {

constexpr const char* kSource = "__global__ void k(int* x) { *x = 1; }\n";
const Arch kArch = {90, 'a'};

// Codes that were made to be taken for one another, or for a kernel of Jitney's.
std::vector<KernelCode> look_alikes(const runtime::KernelSource& ours) {
    std::vector<KernelCode> codes;
    const auto add = [&](const auto& change) {
        KernelCode code = {.source = kSource, .function = "k", .file = "f.cu"};
        change(code);
        codes.push_back(std::move(code));
    };
    // One of Jitney's kernels, text for text.
    const auto as_ours = [&](KernelCode& code) {
        code.source = ours.translation_unit;
        code.function = ours.function;
        code.file = "jitney.cu";
        for (const kernel_sources::EmbeddedSource& each : kernel_sources::embedded_sources())
            code.headers.push_back({std::string(each.name), std::string(each.text)});
    };
    add(as_ours);
    add([&](KernelCode& code) {
        as_ours(code);
        code.function = ours.specialization;
    });
    add([&](KernelCode& code) {
        as_ours(code);
        code.headers.push_back({"(translation unit)", ours.translation_unit});
        code.headers.push_back({"(function)", ours.function});
    });
    // The same bytes, divided otherwise.
    add([](KernelCode&) {});
    const std::pair<const char*, const char*> names[] = {
        {"f.cuk", "k"},         {"f.c", "u:k"},
        {"f.cu", "k:k"},        {"f.cu", "k(A=1)"},
        {"f.cu", "k(A=1,B=2)"}, {"f.cu", "k:0123456789abcdef0123456789abcdef@sm_90a"}};
    for (const auto& name : names) {
        add([&](KernelCode& code) {
            code.file = name.first;
            code.function = name.second;
        });
    }
    const std::vector<KernelConstant> lists_of_constants[] = {
        {{"A", 1}},   {{"A", "1,B=2"}}, {{"A", 1}, {"B", 2}},  {{"A", "1 "}},
        {{"A1", ""}}, {{"A", ""}},      {{"A", "#define B 2"}}};
    for (const std::vector<KernelConstant>& constants : lists_of_constants) {
        add([&](KernelCode& code) { code.constants = constants; });
    }
    add([](KernelCode& code) { code.source.insert(0, "#define A 1\n#line 1 \"f.cu\"\n"); });
    add([](KernelCode& code) { code.source.insert(0, "\n"); });
    add([](KernelCode& code) { code.source += "\n"; });
    const std::vector<KernelHeader> lists_of_headers[] = {{{"a", ""}},
                                                          {{"a", "b"}},
                                                          {{"ab", ""}},
                                                          {{"a", ""}, {"b", ""}},
                                                          {{"a", "header 1 b"}},
                                                          {{"(function)", "k"}},
                                                          {{"(translation unit)", kSource}},
                                                          {{"header a", ""}},
                                                          {{"k", kSource}}};
    for (const std::vector<KernelHeader>& headers : lists_of_headers) {
        add([&](KernelCode& code) { code.headers = headers; });
    }
    const std::vector<std::string> lists_of_options[] = {{"--ftz=true"},
                                                         {"--ftz=true", "--restrict"},
                                                         {"--restrict", "--ftz=true"},
                                                         {"--ftz=true", "--ftz=true"}};
    for (const std::vector<std::string>& options : lists_of_options) {
        add([&](KernelCode& code) { code.options = options; });
    }
    // The function's name and a header's text change places.
    add([](KernelCode& code) {
        code.function = "k2";
        code.headers = {{"(function)", "k"}};
    });
    add([](KernelCode& code) { code.headers = {{"(function)", "k2"}}; });
    return codes;
}

std::vector<policy::Spec> one_spec_a_kernel() {
    std::vector<policy::Spec> specs;
    for (const char* text :
         {"rotary_emb<format=bf16,style=interleaved,pairs=4>@sm_90a",
          "attn_prefill_mma<head_dim=128,format=bf16,tile=128x64,kv=dense,causal=1>@sm_90a",
          "fp8_gemm_mma<a=e4m3,b=e4m3,out=bf16,tile=128x128,stages=3,trans_a=0,trans_b=0,"
          "promote=1>@sm_90a"})
        specs.push_back(policy::parse_spec(text));
    return specs;
}

// The bytes of a text, each changed at random to another that may stand there.
std::string changed(const std::string& text, Random& random) {
    std::string result = text;
    const std::string letters = "abk():,=@<>_ 019";
    for (int i = 0; i < 2; ++i) {
        const auto at = static_cast<std::size_t>(
            random.integer(0, static_cast<std::int64_t>(result.size()) - 1));
        result[at] = random.pick(std::span(letters.data(), letters.size()));
    }
    return result;
}

}  // namespace

TEST_CASE("own kernels: no text of a caller's meets one of Jitney's, or another caller's") {
    std::set<std::string> materials;
    std::set<std::string> specs;
    std::set<std::string> digests;
    std::set<std::array<std::uint64_t, 5>> keys;
    std::size_t ours = 0;
    for (const policy::Spec& spec : one_spec_a_kernel()) {
        const cache::Key key = runtime::key_of(jitney::source_of(spec));
        materials.insert(key.material);
        digests.insert(key.digest.hex());
        specs.insert(policy::text_of(spec));
        keys.insert(std::bit_cast<runtime::KernelKey>(spec).words);
        ++ours;
    }
    std::set<const detail::OwnKernel*> made;
    const auto add = [&](const KernelCode& code) {
        const detail::OwnKernel& kernel = *own_kernel_of(code);
        if (!made.insert(&kernel).second) return;
        const runtime::KernelSource source = jitney::source_of(kernel, kArch);
        CAPTURE(source.specialization);
        const cache::Key key = runtime::key_of(source);
        CHECK(cache::material_flaw(key.material) == "");
        CHECK(cache::specialization_of(key.material) == source.specialization);
        CHECK(materials.insert(key.material).second);
        CHECK(digests.insert(key.digest.hex()).second);
        CHECK(specs.insert(source.specialization).second);
        CHECK(keys.insert(jitney::key_of(kernel, kArch).words).second);
        CHECK(source.specialization.starts_with("own:"));
        CHECK_THROWS_AS(policy::parse_spec(source.specialization), Error);
    };
    for (const policy::Spec& spec : one_spec_a_kernel()) {
        for (const KernelCode& code : look_alikes(jitney::source_of(spec)))
            add(code);
    }
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 2000; ++i) {
        KernelCode code;
        code.file.assign(1, 'f');
        code.function = changed("k(A=1):k<1>", random);
        code.source = changed("__global__ void k() {}", random);
        code.headers = {{changed("h(k)", random), changed("text of it", random)}};
        code.constants = {{"A", changed("(1,B=2)", random)}};
        try {
            add(code);
        } catch (const Error&) {  // no name, or nothing but blanks
        }
    }
    CHECK(made.size() > 1000);
    CHECK(materials.size() == ours + made.size());
    // No kernel of the registry could ever have such a name, or such a number.
    for (const policy::KernelInfo& kernel : policy::kernels()) {
        CHECK(kernel.name.find(':') == std::string_view::npos);
        CHECK(static_cast<unsigned>(kernel.id) < 0xFF);
    }
    const auto spec = std::bit_cast<policy::Spec>(
        jitney::key_of(*own_kernel_of({.source = kSource, .function = "k"}), kArch));
    CHECK(static_cast<unsigned>(spec.kernel) == 0xFF);
    CHECK(spec.arch() == kArch);
}

}  // namespace jitney::tests
