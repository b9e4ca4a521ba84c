// The calls of every operation, from C: one line each in operations/all_fields.hpp.
#include <string>
#include <string_view>

#include "api/c_abi_arguments.hpp"
#include "api/c_abi_error.hpp"
#include "jitney/explain.hpp"
#include "jitney/operations.hpp"
#include "operations/all_fields.hpp"
#include "operations/last_run.hpp"
#include "operations/refuse.hpp"

namespace jitney::c_abi {
namespace {

// A call whose arguments can't be read has run nothing.
template <class Body>
jitney_status operation(const Body& body) noexcept {
    return guarded([&] {
        note_nothing_ran();
        body();
    });
}

// `question` asks the C++ API for a text.
template <class Question>
jitney_status answer(const char** json, const Question& question) noexcept {
    return guarded([&] {
        if (json == nullptr) checks::refuse("json is null: point it to where the text shall go");
        *json = nullptr;
        thread_local std::string shown;
        shown = question();
        *json = shown.c_str();
    });
}

std::string_view arch_of(const char* arch) {
    return arch != nullptr ? std::string_view(arch) : std::string_view();
}

// The bytes are 0 where an operation needs no memory beside its tensors.
template <class Args>
std::size_t bytes_of_workspace(const Args& args) {
    if constexpr (requires { args.workspace; }) {
        return workspace_bytes(args);
    } else {
        return 0;
    }
}

template <class Question>
jitney_status workspace_of(size_t* bytes, const Question& question) noexcept {
    return guarded([&] {
        if (bytes == nullptr) checks::refuse("bytes is null: point it to where the size shall go");
        *bytes = question();
    });
}

}  // namespace
}  // namespace jitney::c_abi

extern "C" {

using namespace jitney;
using namespace jitney::c_abi;

#define JITNEY_DEFINE_CALLS(name, call, Args)                                                  \
    jitney_status jitney_##call(const jitney_##name##_args* args, jitney_stream stream) {      \
        return operation([&] { jitney::call(JITNEY_C_ARGUMENTS(name, Args, args), stream); }); \
    }                                                                                          \
    jitney_status jitney_explain_##name(const jitney_##name##_args* args, const char* arch,    \
                                        const char** json) {                                   \
        return answer(json, [&] {                                                              \
            return json_of(explain(JITNEY_C_ARGUMENTS(name, Args, args), arch_of(arch)));      \
        });                                                                                    \
    }                                                                                          \
    jitney_status jitney_##name##_workspace(const jitney_##name##_args* args, size_t* bytes) { \
        return workspace_of(                                                                   \
            bytes, [&] { return bytes_of_workspace(JITNEY_C_ARGUMENTS(name, Args, args)); });  \
    }

JITNEY_FOR_EACH_OPERATION(JITNEY_DEFINE_CALLS)

#undef JITNEY_DEFINE_CALLS

// By the name of the operation.
jitney_status jitney_operations_json(const char** json) {
    return answer(json, operations_json);
}

jitney_status jitney_run_operation(const char* name, const void* args, jitney_stream stream) {
    return operation([&] { run_operation(text(name, "name"), args, stream); });
}

jitney_status jitney_explain_operation(const char* name, const void* args, const char* arch,
                                       const char** json) {
    return answer(json, [&] { return explain_operation(text(name, "name"), args, arch_of(arch)); });
}

// Those of attention that name a kernel.
jitney_status jitney_attn_prefill(const jitney_attention_args* args, int variant,
                                  jitney_stream stream) {
    return operation([&] {
        ops::attn_prefill(JITNEY_C_ARGUMENTS(attention, AttentionArgs, args),
                          static_cast<ops::Variant>(variant), stream);
    });
}

jitney_status jitney_attn_decode(const jitney_attention_args* args, int variant,
                                 jitney_stream stream) {
    return operation([&] {
        ops::attn_decode(JITNEY_C_ARGUMENTS(attention, AttentionArgs, args),
                         static_cast<ops::Variant>(variant), stream);
    });
}

}  // extern "C"
