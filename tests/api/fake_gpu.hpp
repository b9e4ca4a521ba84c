// The fake driver as these tests use it: one process a scenario, host memory for GPU memory, and
// launches that compute.
#pragma once

#include <string>

#include "tests/runtime/child.hpp"
#include "tests/runtime/fake_cuda.hpp"
#include "tests/support/host_tensor.hpp"

namespace jitney::tests {

// Of the library that JITNEY_LIBCUDA names.
fake::Cuda& fake_cuda();

// The variables of a process in which a scenario runs.
Variables fake_gpu(const TemporaryDirectory& cache, const Variables& more = {});

// Makes launches compute in software from here on.
fake::Cuda& start_software_gpu();

// The tensor as if it lay on a GPU: the fake's memory is host memory.
inline Tensor on_gpu(HostTensor& tensor, int device = 0) {
    return tensor.view({DeviceType::cuda, device});
}

}  // namespace jitney::tests
