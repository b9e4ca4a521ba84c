#include "api/c_abi_arguments.hpp"

#include <algorithm>
#include <cstring>

#include "jitney/error.hpp"
#include "operations/refuse.hpp"

namespace jitney::c_abi {

using checks::refuse;

// No struct of arguments will ever be this large: a size that is was never set.
constexpr std::size_t kImplausible = 4096;

void copy_known(void* known, const void* given, const KnownStruct& form) {
    if (given == nullptr) refuse("args is null: point it to a {}", form.type);
    const std::size_t size = *static_cast<const std::size_t*>(given);
    const bool within =
        size != form.bytes && form.ends_within_member != nullptr && form.ends_within_member(size);
    if (size < form.first_bytes || size > kImplausible || size % form.alignment != 0 || within) {
        refuse("args->size is {}: set it to sizeof({}), which is {} in this version", size,
               form.type, form.bytes);
    }
    std::memcpy(known, given, std::min(size, form.bytes));
    const auto* bytes = static_cast<const unsigned char*>(given);
    if (size > form.bytes &&
        std::any_of(bytes + form.bytes, bytes + size, [](unsigned char b) { return b != 0; })) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("args uses fields of {} behind the {} bytes that this version "
                                "knows: leave them 0, or install a newer libjitney",
                                form.type, form.bytes));
    }
}

void check_reserved(std::int32_t reserved) {
    if (reserved == 0) return;
    refuse("reserved is {}; it must be 0: clear the whole struct first", reserved);
}

std::string text(const char* given, const char* name) {
    if (given == nullptr) refuse("{} is null: give a text", name);
    return given;
}

}  // namespace jitney::c_abi
