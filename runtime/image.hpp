// Compiled kernels in the driver.
#pragma once

#include <optional>
#include <string>

#include "cache/entry.hpp"
#include "runtime/device.hpp"
#include "runtime/kernel.hpp"

namespace jitney::runtime {

// Why the driver would not take an entry.
struct Rejection {
    std::string reason;  // the driver's words
};

// Loads an entry for the current context, and for every other one when it is used there. Nothing,
// and a rejection, where the driver can't use the entry: built for another GPU or by a toolkit
// newer than the driver, or damaged. Throws Error for faults that are not the entry's.
CUkern_st* load_image(const cache::Entry& entry, Rejection* rejection);

// The kernel as it runs on the device, whose context is current: its shared memory is granted, its
// code is on the device. Throws Error (unsupported) where the device has less shared memory.
Kernel prepare_kernel(CUkern_st* handle, int shared_bytes, const DeviceInfo& device,
                      const std::string& specialization);

}  // namespace jitney::runtime
