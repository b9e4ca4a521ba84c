// A kernel of a caller's own for the tests of its calls, which the fake driver and compiler take.
#pragma once

#include <cstdint>
#include <string>

#include "jitney/kernel.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fake_gpu.hpp"

namespace jitney::tests {

inline constexpr const char* kScaleName = "own:scale.cu:scale<3>(FACTOR=2):";

inline KernelCode scale_code() {
    KernelCode code;
    code.source = "#include \"scaled.h\"\n// the text of scale\n";
    code.function = "scale<3>";
    code.file = "scale.cu";
    code.constants = {{"FACTOR", 2}};
    code.headers = {{"scaled.h", "// the text of scaled.h\n"}};
    code.options = {"--fmad=false"};
    code.shared_bytes = 4096;
    return code;
}

// Its parameters, as the function declares them and as the driver tells them.
struct ScaleValues {
    float* x = reinterpret_cast<float*>(std::uintptr_t{0x1230});
    int n = 77;
    double by = 2.5;
};
inline void declare_parameters() {
    fake::Cuda& fake = fake_cuda();
    fake.parameters = {{{0, 8}, {8, 4}, {16, 8}}};
    fake.parameter_count = 3;
}

inline bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// The sentence of a call that has to be refused.
template <class Body>
std::string refusal(ErrorCode code, const Body& body) {
    try {
        body();
    } catch (const Error& error) {
        const std::string text = error.what();
        CAPTURE(text);
        CHECK(error.code() == code);
        check_sentence(text);
        return text;
    }
    FAIL_CHECK("it was accepted");
    return {};
}

}  // namespace jitney::tests
