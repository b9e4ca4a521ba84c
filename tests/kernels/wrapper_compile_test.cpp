// The kernels of tests/wrappers, which a GPU has to run, compile for every kind of GPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "jitney/error.hpp"
#include "runtime/compiler.hpp"
#include "runtime/nvrtc.hpp"
#include "tests/wrappers/cases.hpp"
#include "tests/wrappers/source.hpp"

namespace jitney::tests {

TEST_CASE("the kernels of the wrappers' tests compile") {
    if (!runtime::nvrtc_location()) {
        MESSAGE("skipped: NVRTC is not on this machine");
        return;
    }
    const auto& known = runtime::nvrtc().archs;
    for (const auto& [number, name] : {std::pair(75, "sm_75"),
                                       {80, "sm_80"},
                                       {89, "sm_89"},
                                       {90, "sm_90a"},
                                       {100, "sm_100"},
                                       {120, "sm_120"}}) {
        if (!known.empty() && std::find(known.begin(), known.end(), number) == known.end())
            continue;
        std::vector<std::string> kernels = wrappers::kernels_of(number);
        if (number >= 80) kernels.emplace_back("wait_for_all_but_one");
        kernels.emplace_back("first_grid");
        kernels.emplace_back("second_grid");
        for (const std::string& kernel : kernels) {
            INFO(kernel, " for ", name);
            CHECK_NOTHROW(runtime::compile(wrappers::source_of(kernel, name)));
        }
    }
}

}  // namespace jitney::tests
