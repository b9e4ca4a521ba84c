#include "tests/emulator/kernels/emulated_tensor.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace jitney::emulator {
namespace {

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

std::vector<bool> owned_bytes(const Tensor& view, std::int64_t before, std::size_t bytes,
                              const std::vector<bool>& usable) {
    std::vector<bool> owned(bytes);
    for (std::int64_t i = 0; i < view.elements(); ++i) {
        if (!usable.empty() && !usable[static_cast<std::size_t>(i)]) continue;
        const auto first = static_cast<std::size_t>(before + offset_of(view, i));
        for (std::size_t b = 0; b < static_cast<std::size_t>(size_of(view.dtype)); ++b)
            owned[first + b] = true;
    }
    return owned;
}

void forbid_all_but(Buffer& buffer, const std::vector<bool>& owned) {
    for (auto begin = owned.begin(); begin != owned.end();) {
        const auto first = std::find(begin, owned.end(), false);
        const auto end = std::find(first, owned.end(), true);
        if (first != end) {
            buffer.forbid(static_cast<std::size_t>(first - owned.begin()),
                          static_cast<std::size_t>(end - first));
        }
        begin = end;
    }
}

}  // namespace

EmulatedTensor::EmulatedTensor(const tests::HostTensor& tensor, Use use, std::int64_t shift,
                               const std::vector<bool>& usable)
    : tensor_(tensor),
      shift_(shift * size_of(tensor.dtype())),
      buffer_(tensor_.storage().size() + static_cast<std::size_t>(shift_),
              use == Use::input ? "an input" : "an output") {
    std::memcpy(base(), tensor_.storage().data(), tensor_.storage().size());
    const auto before = static_cast<const std::byte*>(view().data) - buffer_.data();
    forbid_all_but(buffer_, owned_bytes(view(), before, buffer_.bytes(), usable));
    if (use == Use::input) buffer_.make_read_only();
}

std::byte* EmulatedTensor::base() const {
    return buffer_.data() + shift_;
}

Tensor EmulatedTensor::view() const {
    return tensor_.view_at(base(), {DeviceType::cuda, 0});
}

tests::HostTensor EmulatedTensor::download() const {
    tests::HostTensor result = tensor_;
    buffer_.copy_out(static_cast<std::size_t>(shift_), result.storage());
    return result;
}

}  // namespace jitney::emulator
