// GPU memory and streams of the tests, and host tensors copied there.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/driver.hpp"
#include "tests/support/host_tensor.hpp"

namespace jitney::tests {

inline const runtime::Driver& cuda() {
    return runtime::driver();
}

// Waits for all work of the current context.
void synchronize();

// Memory of the current context, poisoned.
class DeviceBuffer {
  public:
    explicit DeviceBuffer(std::size_t bytes);
    DeviceBuffer(DeviceBuffer&& other) noexcept;
    DeviceBuffer(const DeviceBuffer&) = delete;
    DeviceBuffer& operator=(const DeviceBuffer&) = delete;
    ~DeviceBuffer();

    void* data() const { return reinterpret_cast<void*>(address_); }
    std::size_t size() const { return bytes_; }
    void fill(std::byte value);
    void upload(std::span<const std::byte> from, std::size_t offset = 0);
    void download(std::span<std::byte> to, std::size_t offset = 0) const;

  private:
    CUdeviceptr address_ = 0;
    std::size_t bytes_ = 0;
};

// A host tensor's whole memory, poison included, on the current device.
class DeviceTensor {
  public:
    explicit DeviceTensor(const HostTensor& host, int device = 0);

    Tensor view() const { return host_.view_at(buffer_.data(), device_); }
    // Copies the host tensor's memory anew, or what another one of the same layout has.
    void upload(const HostTensor& from) { buffer_.upload(bytes_of(from)); }
    // What the device has, in the host tensor's layout. Waits for the device.
    HostTensor download() const;

  private:
    static std::span<const std::byte> bytes_of(const HostTensor& host);

    HostTensor host_;
    DeviceBuffer buffer_;
    Device device_;
};

class TestStream {
  public:
    TestStream();
    TestStream(const TestStream&) = delete;
    TestStream& operator=(const TestStream&) = delete;
    ~TestStream();
    operator Stream() const { return stream_; }
    void synchronize() const;

  private:
    CUstream stream_ = nullptr;
};

// How much is tested: JITNEY_GPU_TESTS=quick leaves out most of the large grids.
bool is_quick();
// JITNEY_GPU_TESTS=all: cases that no GPU has been seen to pass, too.
bool is_all();

// The test cases of tensors past 2^31 elements are in this suite, and begin by asking for the
// memory: false where the card has less to give, or the tests are quick.
inline constexpr const char* kLargeMemory = "large memory";
bool has_free_memory(int gib);

// The test cases that take longest are in this suite, which tests/gpu/run begins with: the others
// run beside them and not before.
inline constexpr const char* kLong = "long";

}  // namespace jitney::tests
