#include "cli/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/device.hpp"
#include "runtime/driver.hpp"

namespace jitney::cli {

namespace {

CUdeviceptr address_of(const void* device) {
    return std::bit_cast<CUdeviceptr>(device);
}

}  // namespace

std::size_t bytes_of(const Tensor& tensor) {
    return static_cast<std::size_t>(tensor.elements()) *
           static_cast<std::size_t>(size_of(tensor.dtype));
}

double bytes_of(std::span<Tensor* const> tensors) {
    double bytes = 0;
    for (const Tensor* tensor : tensors)
        bytes += static_cast<double>(bytes_of(*tensor));
    return bytes;
}

std::string text_of_bytes(double bytes) {
    return bytes < 1e11 ? fmt::format("{:.3g} GB", bytes / 1e9)
                        : fmt::format("{:.0f} GB", bytes / 1e9);
}

DeviceMemory::DeviceMemory(std::size_t bytes) : bytes_(bytes) {
    CUdeviceptr address = 0;
    runtime::check(runtime::driver().cuMemAlloc(&address, std::max<std::size_t>(bytes, 16)),
                   "allocating GPU memory for a tensor");
    data_ = std::bit_cast<void*>(address);
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

DeviceMemory::~DeviceMemory() {
    if (data_ != nullptr) runtime::driver().cuMemFree(address_of(data_));
}

void synchronize() {
    runtime::check(runtime::driver().cuStreamSynchronize(nullptr), "waiting for the GPU");
}

void copy_to_device(void* device, const void* host, std::size_t bytes) {
    if (bytes == 0) return;
    runtime::check(runtime::driver().cuMemcpyHtoDAsync(address_of(device), host, bytes, nullptr),
                   "copying a tensor to the GPU");
    synchronize();
}

void copy_to_host(void* host, const void* device, std::size_t bytes) {
    if (bytes == 0) return;
    runtime::check(runtime::driver().cuMemcpyDtoHAsync(host, address_of(device), bytes, nullptr),
                   "copying a tensor from the GPU");
    synchronize();
}

HostTensor::HostTensor(DType dtype, std::span<const std::int64_t> shape)
    : view_(Tensor::contiguous(nullptr, dtype, shape, {DeviceType::cpu, 0})) {
    storage_.resize(bytes_of(view_));
    view_.data = storage_.data();
}

Stage::Stage(std::optional<int> gpu) : gpu_(gpu) {
    if (!gpu) return;
    runtime::device(*gpu);  // says what there is where it is not there
    scope_ = std::make_unique<runtime::DeviceScope>(*gpu);
}

Stage::~Stage() = default;

Tensor Stage::place(const Tensor& host) {
    Tensor placed = host;
    placed.data = memory_.emplace_back(bytes_of(host)).data();
    placed.device = {DeviceType::cuda, *gpu_};
    return placed;
}

Tensor Stage::input(const Tensor& host) {
    if (!gpu_) return host;
    const Tensor placed = place(host);
    copy_to_device(placed.data, host.data, bytes_of(host));
    return placed;
}

Tensor Stage::output(const Tensor& host) {
    const Tensor placed = input(host);
    if (gpu_) outputs_.push_back({host.data, memory_.size() - 1});
    return placed;
}

void Stage::wait() const {
    if (gpu_) synchronize();
}

void Stage::fetch() const {
    for (const Output& output : outputs_) {
        const DeviceMemory& memory = memory_[output.device];
        copy_to_host(output.host, memory.data(), memory.bytes());
    }
}

}  // namespace jitney::cli
