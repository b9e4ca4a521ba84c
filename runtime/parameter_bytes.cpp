#include "runtime/parameter_bytes.hpp"

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace jitney::runtime {
namespace {

// Attributes stand one behind the other: a byte that says how they go on, one that names them, and
// two bytes, which are the value itself or the number of bytes of the value behind them.
constexpr std::size_t kHeadBytes = 4;
constexpr unsigned char kSizedValue = 4;
constexpr unsigned char kParameterBytes = 0x19;  // EIATTR_CBANK_PARAM_SIZE

template <class T>
std::optional<T> read(std::string_view bytes, std::uint64_t offset) {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
}

std::string_view part(std::string_view bytes, std::uint64_t offset, std::uint64_t size) {
    if (offset > bytes.size() || bytes.size() - offset < size) return {};
    return bytes.substr(offset, size);
}

// The contents of the section of that name; nothing where there is none.
std::optional<std::string_view> section_of(std::string_view elf, std::string_view name) {
    const auto header = read<Elf64_Ehdr>(elf, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64) {
        return std::nullopt;
    }
    const auto section = [&](std::uint64_t number) {
        return read<Elf64_Shdr>(elf, header->e_shoff + number * sizeof(Elf64_Shdr));
    };
    const auto names_section = section(header->e_shstrndx);
    if (!names_section) return std::nullopt;
    const std::string_view names = part(elf, names_section->sh_offset, names_section->sh_size);
    for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
        const auto each = section(i);
        if (!each) return std::nullopt;
        const std::string_view rest = part(names, each->sh_name, name.size() + 1);
        if (rest.empty() || rest.back() != '\0' || !rest.starts_with(name)) continue;
        return part(elf, each->sh_offset, each->sh_size);
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::size_t> parameter_bytes(std::string_view cubin, std::string_view function) {
    const auto attributes = section_of(cubin, ".nv.info." + std::string(function));
    if (!attributes) return std::nullopt;
    std::uint64_t at = 0;
    while (at < attributes->size()) {
        const auto form = read<unsigned char>(*attributes, at);
        const auto name = read<unsigned char>(*attributes, at + 1);
        const auto value = read<std::uint16_t>(*attributes, at + 2);
        if (!form || !name || !value) return std::nullopt;
        if (*name == kParameterBytes && *form != kSizedValue) return *value;
        at += kHeadBytes + (*form == kSizedValue ? *value : 0U);
    }
    return 0;  // a kernel without parameters has no such attribute
}

}  // namespace jitney::runtime
