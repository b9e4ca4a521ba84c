#include "cache/entry.hpp"

#include <fmt/format.h>

#include "cache/little_endian.hpp"

namespace jitney::cache {

namespace {

constexpr std::string_view kMagic("\x89JITNEY\n", 8);

template <class Value>
Decoded<Value> flawed(std::string reason, Flaw flaw = Flaw::corrupt) {
    return {std::nullopt, flaw, std::move(reason)};
}

std::string head_without_checksum(const Entry& entry) {
    std::string bytes(kMagic);
    put_u32(bytes, kSchema);
    put_u32(bytes, static_cast<std::uint32_t>(entry.kind));
    put_u32(bytes, static_cast<std::uint32_t>(entry.compiler.size()));
    put_u32(bytes, static_cast<std::uint32_t>(entry.material.size()));
    put_u32(bytes, static_cast<std::uint32_t>(entry.lowered_name.size()));
    put_u32(bytes, 0);
    put_u64(bytes, entry.payload.size());
    bytes += entry.compiler;
    bytes += entry.material;
    bytes += entry.lowered_name;
    return bytes;
}

}  // namespace

std::string unencodable(const Entry& entry) {
    if (!is_compiler(entry.compiler)) {
        return "its compiler is not a text such as nvrtc13.0";
    }
    if (entry.material.size() > kMaxMaterialBytes) return "its key material is too long";
    if (std::string flaw = material_flaw(entry.material); !flaw.empty()) return flaw;
    if (entry.lowered_name.size() > kMaxLoweredNameBytes) return "its kernel name is too long";
    if (entry.payload.empty()) return "its payload is empty";
    if (entry.payload.size() > kMaxPayloadBytes) return "its payload is too long";
    return {};
}

std::string encode(const Entry& entry) {
    std::string bytes = head_without_checksum(entry);
    const Digest checksum = digest_of({bytes, entry.payload});
    bytes.reserve(bytes.size() + kChecksumBytes + entry.payload.size());
    put_u64(bytes, checksum.high);
    put_u64(bytes, checksum.low);
    bytes += entry.payload;
    return bytes;
}

Decoded<EntryHead> decode_head(std::string_view prefix, std::uint64_t file_bytes) {
    if (file_bytes < kFixedHeadBytes) {
        return flawed<EntryHead>(fmt::format("it has only {} bytes", file_bytes));
    }
    if (prefix.size() < kFixedHeadBytes) return flawed<EntryHead>("", Flaw::needs_more);
    if (!prefix.starts_with(kMagic)) return flawed<EntryHead>("it does not start as an entry does");
    const std::uint32_t schema = get_u32(prefix, 8);
    if (schema != kSchema) {
        return flawed<EntryHead>(
            fmt::format("it has schema {}, this library reads schema {}", schema, kSchema),
            Flaw::other_schema);
    }
    const std::uint32_t kind = get_u32(prefix, 12);
    if (kind != 1 && kind != 2)
        return flawed<EntryHead>(fmt::format("its payload kind is {}", kind));
    const std::uint64_t compiler_bytes = get_u32(prefix, 16);
    const std::uint64_t material_bytes = get_u32(prefix, 20);
    const std::uint64_t name_bytes = get_u32(prefix, 24);
    const std::uint64_t payload_bytes = get_u64(prefix, 32);
    if (get_u32(prefix, 28) != 0) return flawed<EntryHead>("its reserved field is not zero");
    if (compiler_bytes > kMaxCompilerBytes || material_bytes > kMaxMaterialBytes ||
        name_bytes > kMaxLoweredNameBytes || payload_bytes > kMaxPayloadBytes ||
        payload_bytes == 0) {
        return flawed<EntryHead>("a length in it is out of bounds");
    }
    EntryHead head;
    head.kind = static_cast<PayloadKind>(kind);
    head.head_bytes =
        kFixedHeadBytes + compiler_bytes + material_bytes + name_bytes + kChecksumBytes;
    head.payload_bytes = payload_bytes;
    if (head.head_bytes + payload_bytes != file_bytes) {
        return flawed<EntryHead>(fmt::format("it has {} bytes, its lengths add up to {}",
                                             file_bytes, head.head_bytes + payload_bytes));
    }
    if (prefix.size() < head.head_bytes) return flawed<EntryHead>("", Flaw::needs_more);
    std::uint64_t at = kFixedHeadBytes;
    const auto take = [&](std::uint64_t bytes) {
        const std::string_view text = prefix.substr(at, bytes);
        at += bytes;
        return std::string(text);
    };
    head.compiler = take(compiler_bytes);
    head.material = take(material_bytes);
    head.lowered_name = take(name_bytes);
    head.checksum = {get_u64(prefix, at), get_u64(prefix, at + 8)};
    if (!is_compiler(head.compiler))
        return flawed<EntryHead>("its compiler is not a text such as nvrtc13.0");
    if (std::string flaw = material_flaw(head.material); !flaw.empty())
        return flawed<EntryHead>(std::move(flaw));
    return {std::move(head), Flaw::none, {}};
}

Decoded<VerifiedEntry> decode(std::string_view bytes) {
    Decoded<EntryHead> decoded = decode_head(bytes, bytes.size());
    if (!decoded) return flawed<VerifiedEntry>(std::move(decoded.reason), decoded.flaw);
    EntryHead& head = *decoded.value;
    const std::string_view payload = bytes.substr(head.head_bytes);
    const Digest actual = digest_of({bytes.substr(0, head.head_bytes - kChecksumBytes), payload});
    if (actual != head.checksum) return flawed<VerifiedEntry>("its checksum does not match");
    VerifiedEntry verified;
    verified.entry = {std::move(head.material), std::move(head.compiler),
                      std::move(head.lowered_name), head.kind, std::string(payload)};
    verified.checksum = actual;
    return {std::move(verified), Flaw::none, {}};
}

Decoded<VerifiedEntry> decode_as(std::string_view bytes, const EntryName& name) {
    Decoded<VerifiedEntry> decoded = decode(bytes);
    if (decoded && name_of(decoded.value->entry) != name) {
        return flawed<VerifiedEntry>("it holds the entry of another key, compiler or kind");
    }
    return decoded;
}

EntryName name_of(const Entry& entry) {
    return {digest_of(entry.material), entry.compiler, entry.kind};
}

}  // namespace jitney::cache
