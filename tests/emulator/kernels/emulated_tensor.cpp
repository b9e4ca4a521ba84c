#include "tests/emulator/kernels/emulated_tensor.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace jitney::emulator {
namespace {

using Spread = EmulatedTensor::Spread;

std::size_t sized(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

// Offset, in bytes from the start of the view, of the element at a row-major index.
std::int64_t offset_of(const Tensor& view, std::int64_t index) {
    std::int64_t offset = 0;
    for (int dim = view.ndim - 1; dim >= 0; --dim) {
        const auto d = static_cast<std::size_t>(dim);
        offset += index % view.shape[d] * view.strides[d];
        index /= view.shape[d];
    }
    return offset * size_of(view.dtype);
}

// Whether two rows, of the innermost dimension, share memory.
bool rows_meet(const Tensor& view) {
    const std::int64_t row = view.ndim == 0 ? 1 : view.shape[sized(view.ndim - 1)];
    std::vector<std::int64_t> begins;
    for (std::int64_t i = 0; i < view.elements(); i += row)
        begins.push_back(offset_of(view, i));
    std::sort(begins.begin(), begins.end());
    const auto near = [&](std::int64_t one, std::int64_t next) {
        return next - one < row * size_of(view.dtype);
    };
    return std::adjacent_find(begins.begin(), begins.end(), near) != begins.end();
}

// Steps that are hardly ever multiples of each other; where they are, longer ones.
void move_apart(Tensor& view) {
    constexpr std::int64_t kFar = std::int64_t{1} << 32;
    constexpr std::int64_t kUnit = 4096;
    constexpr std::array<std::int64_t, 4> kApart = {1, 101, 10007, 1000003};
    for (std::int64_t more = 0; more == 0 || rows_meet(view); ++more) {
        for (int dim = 0; dim + 1 < view.ndim; ++dim) {
            const auto d = static_cast<std::size_t>(dim);
            const std::int64_t steps = std::max<std::int64_t>(view.shape[d] - 1, 1);
            view.strides[d] = (kFar / steps / kUnit + (more + 1) * kApart[d]) * kUnit;
        }
    }
}

std::span<std::byte> storage_of(const tests::HostTensor& tensor) {
    return const_cast<tests::HostTensor&>(tensor).storage();
}

Tensor layout_of(const tests::HostTensor& tensor, Spread spread) {
    Tensor layout = tensor.view_at(storage_of(tensor).data(), {DeviceType::cuda, 0});
    if (spread == Spread::far) move_apart(layout);
    return layout;
}

// How many bytes of the host's tensor lie before its first element.
std::int64_t bytes_before(const tests::HostTensor& tensor) {
    return static_cast<const std::byte*>(layout_of(tensor, Spread::near).data) -
           storage_of(tensor).data();
}

// The bytes of the elements that `usable` names.
Intervals bytes_of(const Tensor& view, std::int64_t first, const std::vector<bool>& usable) {
    std::vector<Intervals::Run> runs;
    for (std::int64_t i = 0; i < view.elements(); ++i) {
        if (!usable.empty() && !usable[sized(i)]) continue;
        const std::int64_t at = first + offset_of(view, i);
        runs.push_back({sized(at), sized(at + size_of(view.dtype))});
    }
    std::sort(runs.begin(), runs.end(),
              [](const Intervals::Run& a, const Intervals::Run& b) { return a.first < b.first; });
    Intervals bytes;
    for (const Intervals::Run& run : runs)
        bytes.add(run.first, run.end);
    if (bytes.bytes() != runs.size() * sized(size_of(view.dtype))) {
        throw std::logic_error("elements of a tensor lie in one place");
    }
    return bytes;
}

std::int64_t extent_of(const Tensor& view) {
    return view.elements() == 0 ? 0 : offset_of(view, view.elements() - 1) + size_of(view.dtype);
}

Buffer buffer_for(const tests::HostTensor& tensor, const Tensor& layout, std::int64_t shift,
                  Spread spread, const char* name) {
    const std::size_t bytes = storage_of(tensor).size() + sized(shift);
    if (spread == Spread::near) return Buffer(bytes, name);
    if (spread == Spread::alone) return lonely(bytes, name);
    return Buffer(sized(shift + extent_of(layout)), bytes_of(layout, shift, {}), name);
}

}  // namespace

EmulatedTensor::EmulatedTensor(const tests::HostTensor& tensor, Use use, std::int64_t shift,
                               const std::vector<bool>& usable, Spread spread)
    : tensor_(tensor),
      shift_(shift * size_of(tensor.dtype()) + (spread == Spread::far ? 0 : bytes_before(tensor))),
      spread_(spread),
      layout_(layout_of(tensor, spread)),
      buffer_(buffer_for(tensor, layout_, shift * size_of(tensor.dtype()), spread,
                         use == Use::input ? "an input" : "an output")) {
    upload();
    const Intervals foreign = bytes_of(layout_, shift_, usable).gaps(buffer_.bytes());
    for (const Intervals::Run& run : foreign.runs())
        buffer_.forbid(run.first, run.end - run.first);
    if (use == Use::input) buffer_.make_read_only();
}

void EmulatedTensor::upload() {
    if (spread_ != Spread::far) {
        std::memcpy(buffer_.data() + shift_ - bytes_before(tensor_), tensor_.storage().data(),
                    tensor_.storage().size());
        return;
    }
    const Tensor host = tensor_.view();
    for (std::int64_t i = 0; i < host.elements(); ++i) {
        std::memcpy(buffer_.data() + shift_ + offset_of(layout_, i),
                    static_cast<const std::byte*>(host.data) + offset_of(host, i),
                    sized(size_of(host.dtype)));
    }
}

Tensor EmulatedTensor::view() const {
    Tensor view = layout_;
    view.data = buffer_.data() + shift_;
    return view;
}

std::vector<std::byte> EmulatedTensor::bits() const {
    const tests::HostTensor now = download();
    const std::span<std::byte> storage = storage_of(now);
    return {storage.begin(), storage.end()};
}

tests::HostTensor EmulatedTensor::download() const {
    tests::HostTensor result = tensor_;
    if (spread_ != Spread::far) {
        buffer_.copy_out(sized(shift_ - bytes_before(tensor_)), result.storage());
        return result;
    }
    const Tensor host = result.view();
    for (std::int64_t i = 0; i < host.elements(); ++i) {
        buffer_.copy_out(
            sized(shift_ + offset_of(layout_, i)),
            {static_cast<std::byte*>(host.data) + offset_of(host, i), sized(size_of(host.dtype))});
    }
    return result;
}

}  // namespace jitney::emulator
