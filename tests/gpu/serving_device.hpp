// A serving problem on the GPU.
#pragma once

#include <map>
#include <string>

#include "jitney/attention.hpp"
#include "tests/gpu/device.hpp"
#include "tests/support/serving_problem.hpp"

namespace jitney::tests {

// A workspace of the caller's, poisoned but for what init_workspace() clears.
class OwnWorkspace {
  public:
    explicit OwnWorkspace(std::size_t bytes);
    Workspace view() const { return {buffer_.data(), buffer_.size()}; }

  private:
    DeviceBuffer buffer_;
};

class ServingDevice {
  public:
    explicit ServingDevice(const ServingProblem& problem);

    AttentionArgs args(const ServingShape& shape) const;
    // Another problem, whose tensors have the same shapes, takes the place of this one.
    void upload(const ServingProblem& problem);
    HostTensor download(const std::string& name) const { return tensors_.at(name).download(); }

    // Out, LSE and caches against what the reference makes of the problem, whose own they become;
    // and that rows of no request are as they were.
    void check_against_reference(ServingProblem& problem) const;

  private:
    std::map<std::string, DeviceTensor> tensors_;
};

}  // namespace jitney::tests
