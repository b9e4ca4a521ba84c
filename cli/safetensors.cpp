#include "cli/safetensors.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "cli/file.hpp"
#include "cli/other_file.hpp"
#include "cli/safetensors_header.hpp"
#include "jitney/error.hpp"

namespace jitney::cli {

namespace {

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kLargestHeader = 100'000'000;
constexpr std::uint64_t kAlignment = 64;
constexpr const char* kKnownDtypes = "F32, F16, BF16, F8_E4M3, F8_E5M2, BOOL, I32 and I64";

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
    throw Error(ErrorCode::invalid_argument, path + " is no valid safetensors file: " + reason);
}

// Where the bytes are those of another kind of file, in whose place this one was given.
void refuse_other_file(const InputFile& file, const std::string& path) {
    std::string first(std::min<std::uint64_t>(file.bytes(), kFirstBytes), '\0');
    file.read_at(0, std::as_writable_bytes(std::span(first)));
    const std::string is = what_else_it_is(first);
    if (!is.empty()) throw Error(ErrorCode::invalid_argument, path + " is " + is);
}

// 8 bytes, least significant first.
std::uint64_t length_at_begin(const InputFile& file) {
    std::array<std::byte, kLengthBytes> bytes;
    file.read_at(0, bytes);
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        length |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
    }
    return length;
}

// Whether there is a header behind the length.
bool may_be_one(const InputFile& file) {
    if (file.bytes() <= kLengthBytes) return false;
    const std::uint64_t length = length_at_begin(file);
    if (length > kLargestHeader || length > file.bytes() - kLengthBytes) return false;
    std::array<std::byte, 1> first;
    file.read_at(kLengthBytes, first);
    return first[0] == std::byte{'{'};
}

std::uint64_t read_length(const InputFile& file, const std::string& path) {
    if (file.bytes() < kLengthBytes) {
        fail(path, "it has " + std::to_string(file.bytes()) +
                       " bytes, too few for the length of a header");
    }
    const std::uint64_t length = length_at_begin(file);
    if (length > kLargestHeader) {
        fail(path, "its header would have " + std::to_string(length) + " bytes, more than the " +
                       std::to_string(kLargestHeader) + " that are allowed");
    }
    if (length > file.bytes() - kLengthBytes) {
        fail(path, "its header has " + std::to_string(length) + " bytes, but the file ends after " +
                       std::to_string(file.bytes() - kLengthBytes) + " of them");
    }
    return length;
}

Tensor view_of(const TensorEntry& entry, std::byte* data) {
    Tensor view;
    view.data = data;
    view.dtype = entry.dtype;
    view.device = {DeviceType::cpu, 0};
    std::vector<std::int64_t> shape = entry.shape;
    if (shape.empty()) shape.push_back(1);
    view.ndim = static_cast<int>(shape.size());
    std::int64_t stride = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
        view.shape[i] = shape[i];
        view.strides[i] = stride;
        stride *= std::max<std::int64_t>(shape[i], 1);
    }
    return view;
}

void check_booleans(const TensorEntry& entry, std::span<const std::byte> bytes,
                    const std::string& path) {
    const auto bad = std::ranges::find_if(bytes, [](std::byte b) { return b > std::byte{1}; });
    if (bad != bytes.end()) {
        fail(path, "element " + std::to_string(bad - bytes.begin()) + " of the BOOL tensor " +
                       text_of_name(entry.name) + " is " +
                       std::to_string(std::to_integer<int>(*bad)) + ", neither 0 nor 1");
    }
}

// Hands the elements of a host tensor, in row-major order, to an OutputFile.
class ElementWriter {
  public:
    ElementWriter(OutputFile& file, const Tensor& tensor) : file_(file), tensor_(tensor) {}

    void write() {
        if (tensor_.elements() > 0) write_from(0, static_cast<const std::byte*>(tensor_.data));
        flush();
    }

  private:
    static constexpr std::size_t kBufferBytes = std::size_t{1} << 16;

    void write_from(std::size_t dim, const std::byte* data) {
        const auto element = static_cast<std::int64_t>(size_of(tensor_.dtype));
        const std::int64_t size = tensor_.shape[dim];
        const std::int64_t step = tensor_.strides[dim] * element;
        const bool innermost = dim + 1 == static_cast<std::size_t>(tensor_.ndim);
        for (std::int64_t i = 0; i < size; ++i) {
            if (innermost) {
                put(data + i * step);
            } else {
                write_from(dim + 1, data + i * step);
            }
        }
    }

    void put(const std::byte* element) {
        const auto bytes = static_cast<std::size_t>(size_of(tensor_.dtype));
        if (buffer_.size() + bytes > kBufferBytes) flush();
        buffer_.insert(buffer_.end(), element, element + bytes);
        // In memory any byte but 0 is true; in the file it is 1.
        if (tensor_.dtype == DType::boolean && buffer_.back() != std::byte{0}) {
            buffer_.back() = std::byte{1};
        }
    }

    void flush() {
        file_.write(buffer_);
        buffer_.clear();
    }

    OutputFile& file_;
    const Tensor& tensor_;
    std::vector<std::byte> buffer_;
};

bool is_contiguous(const Tensor& tensor) {
    std::int64_t stride = 1;
    for (auto i = static_cast<std::size_t>(tensor.ndim); i-- > 0;) {
        if (tensor.shape[i] != 1 && tensor.strides[i] != stride) return false;
        stride *= tensor.shape[i];
    }
    return true;
}

void write_elements(OutputFile& file, const Tensor& tensor) {
    if (tensor.dtype == DType::boolean || !is_contiguous(tensor)) {
        ElementWriter(file, tensor).write();
    } else {
        file.write({static_cast<const std::byte*>(tensor.data),
                    static_cast<std::size_t>(tensor.elements() * size_of(tensor.dtype))});
    }
}

// The entries in the order of the file, with offsets; `tensors` must be host tensors.
std::vector<TensorEntry> entries_of(const TensorsByName& tensors) {
    std::vector<TensorEntry> entries;
    for (const auto& [name, tensor] : tensors) {
        if (tensor.device.type != DeviceType::cpu) {
            throw Error(ErrorCode::invalid_argument,
                        "tensor " + text_of_name(name) +
                            " is not in host memory; copy it there to write it");
        }
        if (tensor.ndim < 1 || tensor.ndim > Tensor::max_dims) {
            throw Error(ErrorCode::invalid_argument,
                        "tensor " + text_of_name(name) + " has " + std::to_string(tensor.ndim) +
                            " dimensions; 1 to " + std::to_string(Tensor::max_dims) +
                            " can be written");
        }
        const auto* const sizes = tensor.shape.begin();
        entries.push_back({name, tensor.dtype, {}, {sizes, sizes + tensor.ndim}, 0, 0});
    }
    // They come sorted by name, which decides among equals.
    std::ranges::stable_sort(entries, std::greater<>(),
                             [](const TensorEntry& entry) { return size_of(entry.dtype); });
    std::uint64_t offset = 0;
    for (TensorEntry& entry : entries) {
        const Tensor& tensor = tensors.find(entry.name)->second;
        entry.begin = offset;
        offset += static_cast<std::uint64_t>(tensor.elements() * size_of(tensor.dtype));
        entry.end = offset;
    }
    return entries;
}

}  // namespace

void TensorFile::Release::operator()(std::byte* memory) const {
    ::operator delete (memory, std::align_val_t{kAlignment});
}

TensorFile TensorFile::read(const std::string& path) {
    const InputFile file(path);
    if (!may_be_one(file)) refuse_other_file(file, path);
    const std::uint64_t length = read_length(file, path);
    const std::uint64_t data_begin = kLengthBytes + length;
    try {
        std::string text(static_cast<std::size_t>(length), '\0');
        file.read_at(kLengthBytes, std::as_writable_bytes(std::span(text)));
        SafetensorsHeader header = parse_safetensors_header(text, file.bytes() - data_begin, path);

        TensorFile result;
        result.path_ = path;
        std::erase_if(header.entries, [&result](const TensorEntry& entry) {
            if (entry.other_dtype.empty()) return false;
            result.passed_over_.emplace(entry.name, entry.other_dtype);
            return true;
        });
        std::uint64_t bytes = 0;
        std::vector<std::uint64_t> places;
        for (const TensorEntry& entry : header.entries) {
            places.push_back(bytes);
            bytes += (entry.end - entry.begin + kAlignment - 1) / kAlignment * kAlignment;
        }
        result.memory_.reset(static_cast<std::byte*>(
            ::operator new (static_cast<std::size_t>(bytes), std::align_val_t{kAlignment})));
        for (std::size_t i = 0; i < header.entries.size(); ++i) {
            const TensorEntry& entry = header.entries[i];
            std::byte* data = result.memory_.get() + places[i];
            const std::span<std::byte> target(data,
                                              static_cast<std::size_t>(entry.end - entry.begin));
            file.read_at(data_begin + entry.begin, target);
            if (entry.dtype == DType::boolean) check_booleans(entry, target, path);
            result.tensors_.emplace(entry.name, view_of(entry, data));
        }
        result.metadata_ = std::move(header.metadata);
        return result;
    } catch (const std::bad_alloc&) {
        throw Error(ErrorCode::io, "can't read " + path + ": there is no memory for its " +
                                       std::to_string(file.bytes()) + " bytes");
    }
}

const Tensor* TensorFile::find(std::string_view name) const {
    if (const auto other = passed_over_.find(name); other != passed_over_.end()) {
        throw Error(ErrorCode::invalid_argument,
                    path_ + " holds the tensor " + text_of_name(name) + " as " + other->second +
                        ", which no operation takes: convert it to one of " + kKnownDtypes);
    }
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second;
}

void write_safetensors(const std::string& path, const TensorsByName& tensors,
                       const Metadata& metadata) {
    const SafetensorsHeader header{entries_of(tensors), metadata};
    const std::string text = format_safetensors_header(header);
    std::array<std::byte, kLengthBytes> length;
    for (std::size_t i = 0; i < length.size(); ++i) {
        length[i] = static_cast<std::byte>(text.size() >> (8 * i) & 0xFF);
    }
    OutputFile file(path);
    file.write(length);
    file.write(std::as_bytes(std::span(text)));
    for (const TensorEntry& entry : header.entries) {
        write_elements(file, tensors.find(entry.name)->second);
    }
    file.publish();
}

}  // namespace jitney::cli
