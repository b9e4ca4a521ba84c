#include "cache/name.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

namespace jitney::cache {

namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_lower(char c) {
    return c >= 'a' && c <= 'z';
}
bool is_hex(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'f');
}

std::vector<unsigned> version_of(std::string_view compiler) {
    std::vector<unsigned> numbers;
    const char* at = compiler.data();
    const char* const end = at + compiler.size();
    while (at != end) {
        unsigned number = 0;
        const auto parsed = std::from_chars(at, end, number);
        if (parsed.ptr == at) {
            ++at;
        } else {
            numbers.push_back(number);
            at = parsed.ptr;
        }
    }
    return numbers;
}

}  // namespace

std::string_view extension_of(PayloadKind kind) {
    return kind == PayloadKind::ptx ? "ptx" : "cubin";
}

bool is_compiler(std::string_view text) {
    if (text.size() > kMaxCompilerBytes) return false;
    std::size_t at = 0;
    while (at < text.size() && is_lower(text[at]))
        ++at;
    if (at == 0) return false;
    for (bool first = true; first || at < text.size(); first = false) {
        if (!first && text[at++] != '.') return false;
        const std::size_t start = at;
        while (at < text.size() && is_digit(text[at]))
            ++at;
        if (at == start || at - start > 6) return false;
    }
    return true;
}

bool is_newer_compiler(std::string_view a, std::string_view b) {
    const std::vector<unsigned> version_a = version_of(a);
    const std::vector<unsigned> version_b = version_of(b);
    if (version_a != version_b) return version_b < version_a;
    return a < b;
}

std::string EntryName::file() const {
    std::string name = digest.hex();
    name += '-';
    name += compiler;
    name += '.';
    name += extension_of(kind);
    return name;
}

std::string EntryName::shard() const {
    return digest.hex().substr(0, 2);
}

std::optional<EntryName> EntryName::parse(std::string_view file) {
    const std::size_t dot = file.rfind('.');
    if (dot == std::string_view::npos || dot < 34 || file[32] != '-') return std::nullopt;
    const auto digest = Digest::from_hex(file.substr(0, 32));
    const std::string_view compiler = file.substr(33, dot - 33);
    const std::string_view extension = file.substr(dot + 1);
    if (!digest || !is_compiler(compiler)) return std::nullopt;
    for (const PayloadKind kind : {PayloadKind::cubin, PayloadKind::ptx}) {
        if (extension == extension_of(kind)) return EntryName{*digest, std::string(compiler), kind};
    }
    return std::nullopt;
}

bool is_shard(std::string_view name) {
    return name.size() == 2 && is_hex(name[0]) && is_hex(name[1]);
}

bool is_temp(std::string_view name) {
    return name.starts_with(kTempPrefix);
}

bool is_lock(std::string_view name) {
    return name.starts_with(kLockPrefix) &&
           Digest::from_hex(name.substr(kLockPrefix.size())).has_value();
}

}  // namespace jitney::cache
