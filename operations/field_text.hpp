// What a list of arguments tells of a field beyond what a call does with it: in words, for whoever
// reads or fills it, and where it stands in the struct of the C ABI.
//
// Texts are what `jitney ops` prints, and rules, which `jitney run` follows:
//
//   shape   alternatives between " | ", each a list of sizes, such as "[batch, kv_len, heads]", or
//           the name of the tensor whose shape it is. One that follows "FIELD: ", or "FIELD=WORD:
//           ", is for calls with that field, or with that word. A size is a name, a number, or a
//           sum, product or quotient of these; "rows..." stands for any number of sizes. The shapes
//           of results are made of the sizes that the tensors given have, and of scalar fields.
//   dtypes  those that can be given, between "|"
//   like    the tensor whose dtype a result has; or the field whose word names its dtype, or else
//           it is the first of dtypes
//   when    the field with which a result is made, or a tensor that may be is written; "always": a
//           result that a call may leave out, and a run does not. "FIELD=WORD": with that word;
//           " and " joins several. Empty: where it is asked for.
//   words   of an enumeration, in the order of its values, which count from 0
//   option  another name of the option that asks for the field
//   file    another name that the tensor may have in a file; after " with ", those of which one
//           comes with it; after " to ", the name of its result
#pragma once

#include <cstddef>
#include <tuple>

namespace jitney {

struct FieldText {
    const char* shape = "";
    const char* dtypes = "";
    const char* like = "";
    const char* when = "";
    const char* words = "";
    const char* option = "";
    const char* file = "";
};

// The name of a field of a struct without that of the struct.
constexpr const char* plain_name(const char* name) noexcept {
    const char* plain = name;
    for (const char* at = name; *at != '\0'; ++at) {
        if (*at == '.') plain = at + 1;
    }
    return plain;
}

namespace fields {
inline constexpr const char* kFloating = "bf16|fp16|fp32";
inline constexpr const char* kFp8 = "e4m3|e5m2";
inline constexpr const char* kWorkspaceMeans =
    "the caller's memory for what kernels need beside the tensors; else the library's own";
inline constexpr const char* kFastAccumMeans =
    "sums are left to the tensor cores, where they are less exact than fp32";

// Of a tensor that is written in calls with that field.
constexpr FieldText written_with(const char* field, FieldText text) noexcept {
    text.when = field;
    return text;
}
}  // namespace fields

// A field with all of that. It stands in the members of the C struct that `c` points to: in one, in
// those of its parts, or in one and what tells it.
template <class Base, class... CMembers>
struct Told : Base {
    const char* meaning;
    FieldText text;
    std::tuple<CMembers...> c;
};

namespace detail {

template <class C>
inline constexpr C kNoStruct{};

// Bytes of the members, each counted once.
template <class C>
struct Covered {
    const void* seen[64] = {};
    std::size_t count = 0;
    std::size_t bytes = 0;

    template <class Member>
    constexpr void add(Member C::*member) {
        const void* const place = &(kNoStruct<C>.*member);
        for (std::size_t i = 0; i < count; ++i) {
            if (seen[i] == place) return;
        }
        seen[count++] = place;
        bytes += sizeof(Member);
    }
};

}  // namespace detail

// Whether each byte of the C struct belongs to a field, to the size in front, or is reserved: a
// member that is added to it does not compile until a field names it, nor does a gap.
template <class List, class C>
constexpr bool covers_c_struct() {
    detail::Covered<C> covered;
    if constexpr (requires { &C::size; }) covered.add(&C::size);
    if constexpr (requires { &C::reserved; }) covered.add(&C::reserved);
    std::apply(
        [&covered](const auto&... field) {
            (std::apply([&covered](auto... members) { (covered.add(members), ...); }, field.c),
             ...);
        },
        List::all);
    return covered.bytes == sizeof(C);
}

}  // namespace jitney
