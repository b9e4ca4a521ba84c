#include "cli/memory.hpp"

#include <fmt/format.h>

namespace jitney::cli {

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

HostTensor::HostTensor(DType dtype, std::span<const std::int64_t> shape)
    : view_(Tensor::contiguous(nullptr, dtype, shape, {DeviceType::cpu, 0})) {
    storage_.resize(bytes_of(view_));
    view_.data = storage_.data();
}

Stage::Stage(std::optional<int> gpu) : gpu_(gpu) {
    if (!gpu) return;
    gpu_info(*gpu);  // says what there is where it is not there
    scope_.emplace(*gpu);
}

Tensor Stage::place(const Tensor& host) {
    Tensor placed = host;
    placed.data = memory_.emplace_back(bytes_of(host)).data();
    placed.device = {DeviceType::cuda, *gpu_};
    return placed;
}

Tensor Stage::input(const Tensor& host) {
    if (!gpu_) return host;
    const Tensor placed = place(host);
    copy_to_gpu(placed.data, host.data, bytes_of(host));
    return placed;
}

Tensor Stage::output(const Tensor& host) {
    const Tensor placed = input(host);
    if (gpu_) outputs_.push_back({host.data, memory_.size() - 1});
    return placed;
}

void Stage::wait() const {
    if (gpu_) wait_for_gpu();
}

void Stage::fetch() const {
    for (const Output& output : outputs_) {
        const GpuMemory& memory = memory_[output.device];
        copy_from_gpu(output.host, memory.data(), memory.bytes());
    }
}

}  // namespace jitney::cli
