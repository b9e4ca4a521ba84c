// Reading and writing safetensors files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "jitney/tensor.hpp"

namespace jitney::cli {

using TensorsByName = std::map<std::string, Tensor, std::less<>>;
using Metadata = std::map<std::string, std::string>;

// The tensors of one file, in memory that this object owns: host tensors, contiguous, each aligned
// to 64 bytes. A scalar, whose shape is [] in the file, is given as one of shape [1].
class TensorFile {
  public:
    // Throws Error: io where the file can't be read; invalid_argument where it breaks any rule of
    // the format, is longer or shorter than its header says, or holds a BOOL that is neither 0
    // nor 1. Tensors of dtypes that no Tensor has are passed over.
    static TensorFile read(const std::string& path);

    const TensorsByName& tensors() const { return tensors_; }
    // nullptr where there is none of that name. Throws Error where there is one that was passed
    // over: whoever asks for it has a use for it.
    const Tensor* find(std::string_view name) const;
    const Metadata& metadata() const { return metadata_; }

  private:
    struct Release {
        void operator()(std::byte* memory) const;
    };

    std::string path_;
    std::unique_ptr<std::byte, Release> memory_;
    TensorsByName tensors_;
    std::map<std::string, std::string, std::less<>> passed_over_;  // the dtype by the name
    Metadata metadata_;
};

// Writes host tensors of any strides, so that equal tensors give equal files: larger elements first
// (which keeps all of them aligned), then by name. The file appears under its name all at once, or
// not at all; a symbolic link stays, and what it points to is replaced. Throws Error.
void write_safetensors(const std::string& path, const TensorsByName& tensors,
                       const Metadata& metadata = {});

}  // namespace jitney::cli
