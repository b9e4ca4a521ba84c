#include "cli/other_file.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace jitney::cli {
namespace {

struct Kind {
    std::string_view begins;
    const char* is;
    const char* mend;
};

using namespace std::string_view_literals;

constexpr const char* kUnpack = "unpack it first";
constexpr const char* kConvert = "convert it to safetensors";

// Of text, in lower case; what stands before it are blanks and a byte order mark.
constexpr std::array kTexts{
    Kind{"version https://git-lfs.github.com/"sv,
         "a Git LFS pointer, which stands where the file itself was not fetched",
         "fetch it with git lfs pull"},
    Kind{"/annex/objects/"sv,
         "a git-annex pointer, which stands where the file itself was not fetched",
         "fetch it with git annex get"},
    Kind{"<!doctype html"sv, "an HTML page, such as a server answers with instead of the file",
         "download the file itself"},
    Kind{"<html"sv, "an HTML page, such as a server answers with instead of the file",
         "download the file itself"},
    Kind{"<?xml"sv, "XML text, such as a server answers with instead of the file",
         "download the file itself"},
    Kind{"{"sv, "JSON text, such as the index of a model in several files",
         "give one of the files that it names"},
};

constexpr std::array kBytes{
    Kind{"PK\x03\x04"sv, "a zip archive, as .pt, .pth and .npz files are", kConvert},
    Kind{"PK\x05\x06"sv, "an empty zip archive", kConvert},
    Kind{"\x93NUMPY"sv, "a NumPy array", kConvert},
    Kind{"GGUF"sv, "a GGUF file", kConvert},
    Kind{"\x89HDF\r\n\x1a\n"sv, "an HDF5 file", kConvert},
    Kind{"\x80\x02"sv, "a Python pickle, as old .pt and .bin files are", kConvert},
    Kind{"\x80\x03"sv, "a Python pickle, as old .pt and .bin files are", kConvert},
    Kind{"\x80\x04"sv, "a Python pickle, as old .pt and .bin files are", kConvert},
    Kind{"\x80\x05"sv, "a Python pickle, as old .pt and .bin files are", kConvert},
    Kind{"\x1f\x8b"sv, "compressed by gzip", kUnpack},
    Kind{"BZh"sv, "compressed by bzip2", kUnpack},
    Kind{"\xfd"
         "7zXZ\0"sv,
         "compressed by xz", kUnpack},
    Kind{"\x28\xb5\x2f\xfd"sv, "compressed by zstd", kUnpack},
};

std::string text_of(const Kind& kind) {
    return std::string(kind.is) + ", and no safetensors file: " + kind.mend;
}

// Without what may stand before a text; empty where it is none. The length of a header, which may
// begin with any byte, ends with a 0.
std::string as_text(std::string_view bytes) {
    if (bytes.substr(0, 8).find('\0') != std::string_view::npos) return {};
    constexpr std::string_view mark = "\xef\xbb\xbf";
    if (bytes.starts_with(mark)) bytes.remove_prefix(mark.size());
    bytes.remove_prefix(std::min(bytes.find_first_not_of(" \t\r\n"), bytes.size()));
    std::string text(bytes);
    std::ranges::transform(text, text.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

}  // namespace

std::string what_else_it_is(std::string_view first_bytes) {
    for (const Kind& kind : kBytes) {
        if (first_bytes.starts_with(kind.begins)) return text_of(kind);
    }
    const std::string text = as_text(first_bytes);
    for (const Kind& kind : kTexts) {
        if (text.starts_with(kind.begins)) return text_of(kind);
    }
    constexpr std::size_t kTarMark = 257;
    if (first_bytes.size() > kTarMark && first_bytes.substr(kTarMark).starts_with("ustar")) {
        return text_of({{}, "a tar archive", kUnpack});
    }
    return {};
}

}  // namespace jitney::cli
