// The arguments of the C ABI as those of the C++ API: a walk over the list of fields. It throws
// Error(invalid_argument).
#pragma once

#include <cstddef>
#include <string>
#include <tuple>

#include "api/c_abi_values.hpp"

namespace jitney::c_abi {

// The place of a member in its struct.
struct MemberPlace {
    std::size_t offset;
    std::size_t bytes;
};

template <class C, class Member>
MemberPlace place_of(Member C::*member) {
    static constexpr C args{};
    const auto* begin = reinterpret_cast<const unsigned char*>(&args);
    const auto* here = reinterpret_cast<const unsigned char*>(&(args.*member));
    return {static_cast<std::size_t>(here - begin), sizeof(Member)};
}

// Whether a struct of this size would end within a member. Sizes are multiples of the alignment,
// which parts smaller ones.
template <class Args>
bool ends_within_member(std::size_t size) {
    const auto within = [size](auto member) {
        const MemberPlace place = place_of(member);
        return size > place.offset && size < place.offset + place.bytes;
    };
    return !all_fields<Args>([&](const auto& field) {
        return std::apply([&](auto... members) { return !(within(members) || ...); }, field.c);
    });
}

// A struct as this library knows it.
struct KnownStruct {
    const char* type;
    std::size_t bytes;
    std::size_t alignment;
    std::size_t first_bytes;  // of its first version
    bool (*ends_within_member)(std::size_t size) = nullptr;
};

// Copies the caller's struct to one of the form that this library knows, and that is clear. An
// older, shorter one lacks the last fields, which are then left out; a newer, longer one may not
// use what is unknown here.
void copy_known(void* known, const void* given, const KnownStruct& form);

void check_reserved(std::int32_t reserved);

// A call of C as one of C++; the tensors and lists that it names outlive it.
template <class Args>
class Arguments {
  public:
    using Fields = CallFields<Args>;
    using C = typename Fields::C;

    Arguments(const C* given, const char* type) {
        const MemberPlace first = place_of(Fields::c_first);
        C known{};
        copy_known(
            &known, given,
            {type, sizeof(C), alignof(C), first.offset + first.bytes, &ends_within_member<Args>});
        if constexpr (requires { known.reserved; }) check_reserved(known.reserved);
        take(args_, type, lists_, known);
    }
    Arguments(const Arguments&) = delete;
    Arguments& operator=(const Arguments&) = delete;

    const Args& args() const noexcept { return args_; }

  private:
    Args args_;
    Lists lists_;
};

// The arguments of the operation of this name. For one expression: they live as long as it.
#define JITNEY_C_ARGUMENTS(name, Args, given) \
    (jitney::c_abi::Arguments<Args>(given, "jitney_" #name "_args").args())

// A text that the caller has to give; `name` is for the sentence where it is null.
std::string text(const char* given, const char* name);
}  // namespace jitney::c_abi
