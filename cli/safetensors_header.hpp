// The header of a safetensors file: JSON that names each tensor, its format, its shape and where
// its bytes are. Nothing but what the format allows is accepted.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "jitney/tensor.hpp"

namespace jitney::cli {

struct TensorEntry {
    std::string name;
    DType dtype = DType::fp32;
    std::string other_dtype;          // one that no Tensor has; `dtype` then says nothing
    std::vector<std::int64_t> shape;  // empty: a scalar, one element
    std::uint64_t begin = 0;          // bytes [begin, end) of the data behind the header
    std::uint64_t end = 0;
};

struct SafetensorsHeader {
    std::vector<TensorEntry> entries;  // in the order of their bytes
    std::map<std::string, std::string> metadata;
};

// "BF16" and so on, the format's own names.
const char* safetensors_name_of(DType dtype);

// The name of a tensor as a message shows it: quoted, escaped, and not longer than a line.
std::string text_of_name(std::string_view name);

// `text` is the header without its length, `data_bytes` what the file holds behind it. Every tensor
// must lie within, end where its shape and format say, and begin where another ends. Throws
// Error(invalid_argument), whose sentence begins with `file`.
SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                           const std::string& file);

// The header of these entries, padded with spaces so that, with the 8 bytes of its length, it fills
// a multiple of 8 bytes. Throws Error(invalid_argument) where a name is no UTF-8.
std::string format_safetensors_header(const SafetensorsHeader& header);

}  // namespace jitney::cli
