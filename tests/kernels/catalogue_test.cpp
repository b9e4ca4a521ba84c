#include "tests/kernels/catalogue.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "policy/device_facts.hpp"

namespace jitney::tests {
namespace {

std::set<std::string> texts_of(const std::vector<policy::Spec>& specs) {
    std::set<std::string> texts;
    for (const policy::Spec& spec : specs)
        texts.insert(policy::text_of(spec));
    return texts;
}

TEST_CASE("the standard catalogue names each specialization once, for its arch") {
    for (const char* name : {"sm_75", "sm_80", "sm_89", "sm_90a", "sm_100", "sm_120"}) {
        for (const Extent extent : {Extent::full, Extent::selection}) {
            const Arch arch = parse_arch(name).value();
            const auto specs = standard_catalogue(arch, extent);
            CHECK(texts_of(specs).size() == specs.size());
            for (const policy::Spec& spec : specs)
                CHECK(spec.arch() == arch);
        }
    }
}

TEST_CASE("the selection is a part of the whole and has every kernel of the arch") {
    for (const char* name : {"sm_75", "sm_80", "sm_90a"}) {
        const Arch arch = parse_arch(name).value();
        const auto full = texts_of(standard_catalogue(arch, Extent::full));
        const auto selection = texts_of(standard_catalogue(arch, Extent::selection));
        CHECK(selection.size() < full.size());
        for (const std::string& text : selection)
            CHECK_MESSAGE(full.count(text) == 1, text);
        for (const policy::KernelInfo& kernel : policy::kernels()) {
            const std::string prefix = std::string(kernel.name) + '<';
            const auto at = selection.lower_bound(prefix);
            const bool has = at != selection.end() && at->starts_with(prefix);
            CHECK_MESSAGE(has == policy::runs_on(kernel, arch), kernel.name);
        }
    }
}

}  // namespace
}  // namespace jitney::tests
