// Arguments that contradict each other are refused.
#include "operations/attention/reference.hpp"

#include <doctest/doctest.h>

#include <string>

#include "jitney/error.hpp"
#include "tests/support/problems.hpp"

using namespace jitney;
using namespace jitney::tests;

TEST_CASE("arguments that contradict each other are refused, and say how") {
    Random random(1);
    AttentionShape shape{2, 3, 7, 6, 2, 4, DType::bf16, MaskKind::heads, false, {}};
    AttentionProblem problem(shape, random);
    const auto refuses = [&](const char* part, auto spoil) {
        reference::Attention call = problem.reference_call();
        spoil(call);
        try {
            reference::attention(call);
            FAIL_CHECK("accepted: ", part);
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::invalid_argument);
            CHECK_MESSAGE(std::string(error.what()).find(part) != std::string::npos,
                          std::string(error.what()));
        }
    };
    refuses("k has the shape [2, 7, 2, 5]", [](auto& call) { call.k.shape[3] = 5; });
    refuses("v has the shape [2, 6, 2, 4]", [](auto& call) { call.v.shape[1] = 6; });
    refuses("out has the shape [2, 3, 5, 4]", [](auto& call) { call.out.shape[2] = 5; });
    refuses("q has 6 heads and k has 4", [](auto& call) {
        call.k.shape[2] = 4;
        call.v.shape[2] = 4;
    });
    refuses("lse has the shape [2, 5, 3]", [](auto& call) { call.lse->shape[1] = 5; });
    refuses("lse must be fp32", [](auto& call) { call.lse->dtype = DType::bf16; });
    refuses("the mask must be boolean", [](auto& call) { call.mask->dtype = DType::int32; });
    refuses("dimension 1 must be 6 or 1", [](auto& call) { call.mask->shape[1] = 2; });
    refuses("dimension 3, the keys, must be 7", [](auto& call) { call.mask->shape[3] = 1; });
    refuses("the mask has the shape [2]", [](auto& call) { call.mask->ndim = 1; });
    refuses("q must be fp32, fp16 or bf16", [](auto& call) { call.q.dtype = DType::int32; });
    refuses("k is not in host memory", [](auto& call) { call.k.device = {DeviceType::cuda, 0}; });
    refuses("q has the shape [2, 3, 6]", [](auto& call) { call.q.ndim = 3; });
    refuses("head_dim is 0", [](auto& call) { call.q.shape[3] = 0; });
}
