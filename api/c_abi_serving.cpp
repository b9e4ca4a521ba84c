// The C form of what serving a model asks for: the texts that jitney_prewarm takes, and what was
// read.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/c_abi_arguments.hpp"
#include "api/c_abi_error.hpp"
#include "jitney/serving.hpp"
#include "operations/refuse.hpp"

namespace jitney::c_abi {
namespace {

// The thread keeps this until it asks again.
struct Texts {
    std::vector<std::string> texts;
    std::vector<const char*> pointers;

    void set(std::vector<std::string> given) {
        texts = std::move(given);
        pointers.clear();
        for (const std::string& text : texts)
            pointers.push_back(text.c_str());
    }
};

void append(std::vector<std::string>& all, const std::vector<std::string>& more) {
    all.insert(all.end(), more.begin(), more.end());
}

struct ServingCall {
    std::string config;
    std::string arch;  // empty: none was given
    std::optional<DType> dtype;
    std::optional<RotaryStyle> style;
    KvCache cache = KvCache::paged;
    LogitsFunction logits;

    // Refers to this call.
    ServingOptions options() const;
};

// One of a few words; nothing where none is given.
template <class Value>
std::optional<Value> word(const char* given, const char* name,
                          std::initializer_list<std::pair<std::string_view, Value>> words) {
    if (given == nullptr) return std::nullopt;
    std::string known;
    for (const auto& [each, value] : words) {
        if (each == given) return value;
        known += fmt::format("{}{}", known.empty() ? "" : ", ", each);
    }
    checks::refuse("{} is '{}', and must be one of {}", name, given, known);
}

ServingOptions ServingCall::options() const {
    ServingOptions options;
    options.dtype = dtype;
    options.style = style;
    if (logits) options.logits = &logits;
    return options;
}

ServingCall arguments(const jitney_serving_args* given) {
    const MemberPlace first = place_of(&jitney_serving_args::logits);
    jitney_serving_args known{};
    copy_known(&known, given,
               {"jitney_serving_args", sizeof known, alignof(jitney_serving_args),
                first.offset + first.bytes});
    ServingCall call;
    call.config = text(known.config, "config");
    if (known.arch != nullptr) call.arch = known.arch;
    call.dtype = word<DType>(known.format, "format",
                             {{"bf16", DType::bf16}, {"fp16", DType::fp16}, {"fp32", DType::fp32}});
    call.style = word<RotaryStyle>(
        known.style, "style",
        {{"interleaved", RotaryStyle::interleaved}, {"half_split", RotaryStyle::half_split}});
    call.cache = word<KvCache>(known.kv_cache, "kv_cache",
                               {{"paged", KvCache::paged}, {"padded", KvCache::padded}})
                     .value_or(KvCache::paged);
    Lists none;
    take(call.logits, "logits", none, known.logits);
    return call;
}

}  // namespace
}  // namespace jitney::c_abi

extern "C" {

using namespace jitney;
using namespace jitney::c_abi;

jitney_status jitney_serving_specs(const jitney_serving_args* args, const char* const** specs,
                                   size_t* count) {
    return guarded([&] {
        if (specs == nullptr || count == nullptr) {
            checks::refuse("specs or count is null: point them to where the texts shall go");
        }
        *specs = nullptr;
        *count = 0;
        const ServingCall call = arguments(args);
        if (call.arch.empty()) checks::refuse("arch is null: give one such as sm_90a");
        const ServingModel model = serving_model(call.config, call.options());
        std::vector<std::string> unserved;
        thread_local Texts found;
        found.set(serving_specs(model, call.arch, call.cache, &unserved));
        *specs = found.pointers.data();
        *count = found.pointers.size();
        append(unserved, model.unserved);
        if (!unserved.empty()) {
            throw Error(ErrorCode::unsupported, fmt::format("{}", fmt::join(unserved, "; ")));
        }
    });
}

jitney_status jitney_serving_model(const jitney_serving_args* args, const char** json) {
    return guarded([&] {
        if (json == nullptr) checks::refuse("json is null: point it to where the text shall go");
        *json = nullptr;
        const ServingCall call = arguments(args);
        thread_local std::string shown;
        shown = json_of(serving_model(call.config, call.options()));
        *json = shown.c_str();
    });
}

}  // extern "C"
