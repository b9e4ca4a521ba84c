#include "api/c_abi_arguments.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "api/c_abi_tensor.hpp"
#include "operations/logits_access.hpp"
#include "operations/refuse.hpp"

namespace jitney::c_abi {
namespace {

using checks::refuse;

// No struct of arguments will ever be this large: a size that is was never set.
constexpr std::size_t kImplausible = 4096;

// The bytes of a struct up to the end of `last`.
template <class Args, class Field>
std::size_t bytes_through(Field Args::*last) {
    const Args args{};
    const auto* begin = reinterpret_cast<const unsigned char*>(&args);
    const auto* end = reinterpret_cast<const unsigned char*>(&(args.*last) + 1);
    return static_cast<std::size_t>(end - begin);
}

template <class Args, class Field>
bool ends_within(std::size_t size, Field Args::*field) {
    const std::size_t end = bytes_through(field);
    return size > end - sizeof(Field) && size < end;
}

// The caller's struct, in the form that this library knows. An older, shorter one lacks the last
// fields, which are then left out; a newer, longer one may not use what is unknown here. `last` is
// the last field of the first version. No version ends within a field: sizes are multiples of the
// alignment, where fields of its size part, and `wide` are those behind `last` that are larger.
template <class Args, class Field, class... Wide>
Args known_fields(const Args* given, const char* type, Field Args::*last, Wide Args::*... wide) {
    if (given == nullptr) refuse("args is null: point it to a {}", type);
    const std::size_t size = given->size;
    if (size < bytes_through(last) || size > kImplausible || size % alignof(Args) != 0 ||
        (ends_within(size, wide) || ...)) {
        refuse("args->size is {}: set it to sizeof({}), which is {} in this version", size, type,
               sizeof(Args));
    }
    Args args{};
    std::memcpy(&args, given, std::min(size, sizeof(Args)));
    if (size > sizeof(Args)) {
        const auto* bytes = reinterpret_cast<const unsigned char*>(given);
        if (std::any_of(bytes + sizeof(Args), bytes + size,
                        [](unsigned char b) { return b != 0; })) {
            throw Error(ErrorCode::unsupported,
                        fmt::format("args uses fields of {} behind the {} bytes that this version "
                                    "knows: leave them 0, or install a newer libjitney",
                                    type, sizeof(Args)));
        }
    }
    return args;
}

void check_reserved(std::int32_t reserved) {
    if (reserved == 0) return;
    refuse("reserved is {}; it must be 0: clear the whole struct first", reserved);
}

// Where the keys of each request stand, as attention and append_kv are told it.
template <class Args, class Known>
void add_cache(Args& args, const Known& known) {
    args.k = required(known.k, "k");
    args.v = required(known.v, "v");
    args.kv_lens = optional(known.kv_lens, "kv_lens");
    args.kv_indptr = optional(known.kv_indptr, "kv_indptr");
    args.req_to_token = optional(known.req_to_token, "req_to_token");
    args.req_pool_indices = optional(known.req_pool_indices, "req_pool_indices");
    args.block_table = optional(known.block_table, "block_table");
    args.kv_page_indptr = optional(known.kv_page_indptr, "kv_page_indptr");
    args.kv_page_indices = optional(known.kv_page_indices, "kv_page_indices");
    args.last_page_len = optional(known.last_page_len, "last_page_len");
}

void add_requests(AttentionArgs& args, const jitney_attention_args& known) {
    args.qo_indptr = optional(known.qo_indptr, "qo_indptr");
    if (known.qo_indptr_host != nullptr) {
        if (!args.qo_indptr || args.qo_indptr->ndim != 1 || args.qo_indptr->shape[0] < 0) {
            refuse("qo_indptr_host was given, and qo_indptr is no tensor [batch + 1]: give both");
        }
        args.qo_indptr_host = {known.qo_indptr_host,
                               static_cast<std::size_t>(args.qo_indptr->shape[0])};
    }
    args.new_k = optional(known.new_k, "new_k");
    args.new_v = optional(known.new_v, "new_v");
    if (known.max_kv_len != 0) args.max_kv_len = known.max_kv_len;
}

void add_options(AttentionArgs& args, const jitney_attention_args& known) {
    if (known.has_window != 0) {
        args.window_left = known.window_left;
        args.window_right = known.window_right;
    } else if (known.window_left != 0 || known.window_right != 0) {
        refuse("the window is {} and {}, and has_window is 0: set it to 1", known.window_left,
               known.window_right);
    }
    if (known.softcap != 0) args.softcap = known.softcap;
    args.alibi_slopes = optional(known.alibi_slopes, "alibi_slopes");
    args.sinks = optional(known.sinks, "sinks");
    check_reserved(known.reserved);
    args.batch_invariant = known.batch_invariant != 0;
    args.workspace = {known.workspace, known.workspace_bytes};
}

// Values that are none of the enumerators are the operation's to refuse, in all of these.
RotaryStyle style_of(std::int32_t style) {
    return static_cast<RotaryStyle>(style);
}
static_assert(JITNEY_INTERLEAVED == static_cast<int>(RotaryStyle::interleaved) &&
              JITNEY_HALF_SPLIT == static_cast<int>(RotaryStyle::half_split));

bool is_zero(const jitney_logits_value& value) {
    static constexpr jitney_logits_value zero = {};
    return std::memcmp(&value, &zero, sizeof value) == 0;
}

// The declarations say which member of each value counts; one that nothing is declared for is
// given where it is not 0, and the operation's to refuse.
void set_logits(AttentionArgs& args, const jitney_attention_args& known) {
    const auto* record = reinterpret_cast<const detail::LogitsRecord*>(known.logits);
    if (record != nullptr) args.logits = LogitsAccess::of(record);
    const std::size_t declared = record == nullptr ? 0 : record->parameters.size();
    for (std::size_t i = 0; i < kLogitsValues; ++i) {
        const jitney_logits_value& value = known.logits_values[i];
        if (i >= declared) {
            if (!is_zero(value)) args.logits_values[i] = value.pointer;
            continue;
        }
        switch (record->parameters[i].kind) {
            case LogitsValue::Kind::fp32:
                args.logits_values[i] = value.fp32;
                break;
            case LogitsValue::Kind::int32:
                args.logits_values[i] = value.int32;
                break;
            case LogitsValue::Kind::int64:
                args.logits_values[i] = value.int64;
                break;
            default:
                args.logits_values[i] = value.pointer;
        }
    }
}

}  // namespace

AttentionArgs arguments(const jitney_attention_args* given) {
    const auto known = known_fields(given, "jitney_attention_args", &jitney_attention_args::causal,
                                    &jitney_attention_args::logits_values);
    AttentionArgs args;
    args.q = required(known.q, "q");
    add_cache(args, known);
    args.out = required(known.out, "out");
    args.mask = optional(known.mask, "mask");
    args.lse = optional(known.lse, "lse");
    args.causal = known.causal != 0;
    if (known.scale != 0) args.scale = known.scale;
    add_requests(args, known);
    add_options(args, known);
    set_logits(args, known);
    return args;
}

RotaryArgs arguments(const jitney_rotary_args* given) {
    const auto known = known_fields(given, "jitney_rotary_args", &jitney_rotary_args::reserved);
    RotaryArgs args;
    args.q = required(known.q, "q");
    args.k = optional(known.k, "k");
    args.q_out = required(known.q_out, "q_out");
    args.k_out = optional(known.k_out, "k_out");
    args.cos = required(known.cos, "cos");
    args.sin = required(known.sin, "sin");
    args.positions = optional(known.positions, "positions");
    args.style = style_of(known.style);
    check_reserved(known.reserved);
    return args;
}

AppendKvArgs arguments(const jitney_append_kv_args* given) {
    const auto known =
        known_fields(given, "jitney_append_kv_args", &jitney_append_kv_args::reserved);
    AppendKvArgs args;
    args.new_k = required(known.new_k, "new_k");
    args.new_v = required(known.new_v, "new_v");
    args.new_indptr = optional(known.new_indptr, "new_indptr");
    add_cache(args, known);
    args.cos = optional(known.cos, "cos");
    args.sin = optional(known.sin, "sin");
    args.positions = optional(known.positions, "positions");
    args.q = optional(known.q, "q");
    args.q_out = optional(known.q_out, "q_out");
    args.style = style_of(known.style);
    check_reserved(known.reserved);
    return args;
}

MergeStatesArgs arguments(const jitney_merge_states_args* given, MergeParts& parts) {
    const auto known =
        known_fields(given, "jitney_merge_states_args", &jitney_merge_states_args::lse);
    if (known.part_count > parts.size()) {
        refuse("part_count is {}; it is at most {}: give several partial results in one tensor",
               known.part_count, parts.size());
    }
    if (known.parts == nullptr) refuse("parts is null: point it to part_count parts");
    for (std::size_t i = 0; i < known.part_count; ++i) {
        parts[i] = {required(known.parts[i].out, "a part's out"),
                    required(known.parts[i].lse, "a part's lse")};
    }
    MergeStatesArgs args;
    args.parts = {parts.data(), known.part_count};
    args.out = required(known.out, "out");
    args.lse = optional(known.lse, "lse");
    return args;
}

Fp8QuantizeArgs arguments(const jitney_fp8_quantize_args* given) {
    const auto known =
        known_fields(given, "jitney_fp8_quantize_args", &jitney_fp8_quantize_args::workspace_bytes);
    check_reserved(known.reserved);
    Fp8QuantizeArgs args;
    args.x = required(known.x, "x");
    args.out = optional(known.out, "out");
    args.out_transposed = optional(known.out_transposed, "out_transposed");
    args.multiplier = optional(known.multiplier, "multiplier");
    args.scale = optional(known.scale, "scale");
    args.amax = optional(known.amax, "amax");
    args.dynamic = known.dynamic != 0;
    args.workspace = {known.workspace, known.workspace_bytes};
    return args;
}

Fp8GemmArgs arguments(const jitney_fp8_gemm_args* given) {
    const auto known =
        known_fields(given, "jitney_fp8_gemm_args", &jitney_fp8_gemm_args::workspace_bytes);
    check_reserved(known.reserved);
    Fp8GemmArgs args;
    args.a = required(known.a, "a");
    args.b = required(known.b, "b");
    args.out = required(known.out, "out");
    args.dequant_scale = required(known.dequant_scale, "dequant_scale");
    args.bias = optional(known.bias, "bias");
    args.out_multiplier = optional(known.out_multiplier, "out_multiplier");
    args.amax = optional(known.amax, "amax");
    args.trans_a = known.trans_a != 0;
    args.trans_b = known.trans_b != 0;
    args.fast_accum = known.fast_accum != 0;
    args.workspace = {known.workspace, known.workspace_bytes};
    return args;
}

Fp8Recipe recipe_of(const jitney_fp8_recipe& given) {
    Fp8Recipe recipe;
    recipe.formats = static_cast<Fp8Formats>(given.formats);
    recipe.scaling = static_cast<Fp8Scaling>(given.scaling);
    recipe.history = given.history;
    recipe.amax = static_cast<Fp8Amax>(given.amax);
    recipe.margin = given.margin;
    return recipe;
}

Fp8LinearArgs arguments(const jitney_fp8_linear_args* given) {
    const auto known =
        known_fields(given, "jitney_fp8_linear_args", &jitney_fp8_linear_args::workspace_bytes);
    Fp8LinearArgs args;
    args.x = required(known.x, "x");
    args.weight = required(known.weight, "weight");
    args.bias = optional(known.bias, "bias");
    args.y = required(known.y, "y");
    args.state = required(known.state, "state");
    if (known.x_codes != nullptr || known.weight_codes != nullptr || known.scales != nullptr) {
        args.saved = {required(known.x_codes, "x_codes"),
                      required(known.weight_codes, "weight_codes"),
                      required(known.scales, "scales")};
    }
    args.recipe = recipe_of(known.recipe);
    args.fast_accum = known.fast_accum != 0;
    args.workspace = {known.workspace, known.workspace_bytes};
    return args;
}

Fp8LinearBackwardArgs arguments(const jitney_fp8_linear_backward_args* given) {
    const auto known = known_fields(given, "jitney_fp8_linear_backward_args",
                                    &jitney_fp8_linear_backward_args::workspace_bytes);
    Fp8LinearBackwardArgs args;
    args.grad_y = required(known.grad_y, "grad_y");
    args.saved = {required(known.x_codes, "x_codes"), required(known.weight_codes, "weight_codes"),
                  required(known.scales, "scales")};
    args.grad_x = optional(known.grad_x, "grad_x");
    args.grad_weight = optional(known.grad_weight, "grad_weight");
    args.grad_bias = optional(known.grad_bias, "grad_bias");
    args.state = required(known.state, "state");
    args.recipe = recipe_of(known.recipe);
    args.fast_accum = known.fast_accum != 0;
    args.workspace = {known.workspace, known.workspace_bytes};
    return args;
}

namespace {

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
    refuse("{} is '{}', and must be one of {}", name, given, known);
}

}  // namespace

ServingOptions ServingCall::options() const {
    ServingOptions options;
    options.dtype = dtype;
    options.style = style;
    if (logits) options.logits = &logits;
    return options;
}

ServingCall arguments(const jitney_serving_args* given) {
    const auto known = known_fields(given, "jitney_serving_args", &jitney_serving_args::logits);
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
    if (known.logits != nullptr) {
        call.logits = LogitsAccess::of(reinterpret_cast<const detail::LogitsRecord*>(known.logits));
    }
    return call;
}

std::string text(const char* given, const char* name) {
    if (given == nullptr) refuse("{} is null: give a text", name);
    return given;
}

}  // namespace jitney::c_abi
