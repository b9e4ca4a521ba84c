#include "tests/gpu/device.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string_view>
#include <utility>

namespace jitney::tests {

using runtime::check;

void synchronize() {
    check(cuda().cuCtxSynchronize(), "cuCtxSynchronize");
}

DeviceBuffer::DeviceBuffer(std::size_t bytes) : bytes_(bytes) {
    // One byte at least, so that an empty buffer has an address.
    check(cuda().cuMemAlloc(&address_, bytes == 0 ? 1 : bytes), "cuMemAlloc");
    fill(kPoison);
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : address_(std::exchange(other.address_, 0)), bytes_(other.bytes_) {}

DeviceBuffer::~DeviceBuffer() {
    if (address_ != 0) cuda().cuMemFree(address_);
}

void DeviceBuffer::fill(std::byte value) {
    if (bytes_ == 0) return;
    check(cuda().cuMemsetD8Async(address_, static_cast<unsigned char>(value), bytes_, nullptr),
          "cuMemsetD8Async");
    synchronize();
}

void DeviceBuffer::upload(std::span<const std::byte> from, std::size_t offset) {
    if (from.empty()) return;
    check(cuda().cuMemcpyHtoDAsync(address_ + offset, from.data(), from.size(), nullptr),
          "cuMemcpyHtoDAsync");
    synchronize();
}

void DeviceBuffer::download(std::span<std::byte> to, std::size_t offset) const {
    synchronize();
    if (to.empty()) return;
    check(cuda().cuMemcpyDtoHAsync(to.data(), address_ + offset, to.size(), nullptr),
          "cuMemcpyDtoHAsync");
    synchronize();
}

DeviceTensor::DeviceTensor(const HostTensor& host, int device)
    : host_(host), buffer_(bytes_of(host).size()), device_{DeviceType::cuda, device} {
    upload(host);
}

std::span<const std::byte> DeviceTensor::bytes_of(const HostTensor& host) {
    // storage() gives writable bytes, and is not const for that reason alone.
    return const_cast<HostTensor&>(host).storage();
}

HostTensor DeviceTensor::download() const {
    HostTensor copy = host_;
    buffer_.download(copy.storage());
    return copy;
}

TestStream::TestStream() {
    check(cuda().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

TestStream::~TestStream() {
    cuda().cuStreamDestroy(stream_);
}

void TestStream::synchronize() const {
    check(cuda().cuStreamSynchronize(stream_), "cuStreamSynchronize");
}

namespace {
std::string_view chosen_tests() {
    const char* const value = std::getenv("JITNEY_GPU_TESTS");
    return value == nullptr ? "" : value;
}
}  // namespace

bool is_quick() {
    static const bool quick = chosen_tests() == "quick";
    return quick;
}

bool is_all() {
    return chosen_tests() == "all";
}

bool has_free_memory(int gib) {
    if (is_quick()) return false;
    std::size_t free = 0;
    std::size_t total = 0;
    check(cuda().cuMemGetInfo(&free, &total), "cuMemGetInfo");
    if (free >= static_cast<std::size_t>(gib) << 30) return true;
    MESSAGE("left out: it needs ", gib, " GiB of free memory");
    return false;
}

}  // namespace jitney::tests
