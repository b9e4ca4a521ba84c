#include "tests/gpu/serving_device.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "operations/attention/reference.hpp"
#include "tests/gpu/attention_case.hpp"
#include "tests/support/compare.hpp"

namespace jitney::tests {
namespace {

constexpr double kMeanLimit = 1e-3;

Tolerance tolerance_for(DType dtype) {
    return dtype == DType::fp32 ? Tolerance{1e-4, 1e-4} : Tolerance{1e-2, 1e-2};
}

}  // namespace

OwnWorkspace::OwnWorkspace(std::size_t bytes) : buffer_(std::max<std::size_t>(bytes, 1 << 16)) {
    init_workspace(view());
    synchronize();
}

ServingDevice::ServingDevice(const ServingProblem& problem) {
    for (const auto& [name, tensor] : problem.tensors)
        tensors_.try_emplace(name, tensor);
}

AttentionArgs ServingDevice::args(const ServingShape& shape) const {
    Views views;
    for (const auto& [name, tensor] : tensors_)
        views.emplace(name, tensor.view());
    return serving_call<AttentionArgs>(shape, views);
}

void ServingDevice::upload(const ServingProblem& problem) {
    for (auto& [name, tensor] : tensors_)
        tensor.upload(problem.at(name));
}

void ServingDevice::check_against_reference(ServingProblem& problem) const {
    reference::attention(serving_call<reference::Attention>(problem.shape, problem.views()));
    HostTensor out = download("out");
    HostTensor lse = download("lse");
    CHECK_MESSAGE(out.surroundings_intact(), "something was written beside the rows of out");
    CHECK_MESSAGE(lse.surroundings_intact(), "something was written beside lse");
    CHECK(problem.idle_rows_untouched(out, lse));
    problem.idle_rows_untouched(problem.at("out"), problem.at("lse"));
    const Comparison compared = compare(out, problem.at("out"), tolerance_for(problem.shape.dtype));
    CHECK_MESSAGE(compared.within, compared.text);
    CHECK_MESSAGE(compared.mean_absolute < kMeanLimit, compared.text);
    const Comparison sums = compare(lse, problem.at("lse"), {1e-3, 1e-4});
    CHECK_MESSAGE(sums.within, "LSE: ", sums.text);
    for (const char* cache : {"k", "v"}) {
        CHECK_MESSAGE(is_identical(download(cache), problem.at(cache)), cache,
                      " is not what the reference makes of it");
    }
}

}  // namespace jitney::tests
