// Calls that differ from a given one in a single field, for every field of the call's list: valid
// ones and such as have to be refused. A field of a type that this does not know does not compile.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "operations/all_fields.hpp"

namespace jitney::tests {

// Values of one field, each with a name.
template <class Value>
struct Other {
    std::string what;
    Value value;
    bool is_address = false;  // of a tensor, and only its address is another
};

inline std::byte* moved(const Tensor& tensor, std::ptrdiff_t bytes) {
    return static_cast<std::byte*>(tensor.data) + bytes;
}

inline std::vector<Other<Tensor>> others(const Tensor& tensor) {
    std::vector<Other<Tensor>> all;
    const auto add = [&](const std::string& what, const auto& change) {
        all.push_back({what, tensor});
        change(all.back().value);
    };
    add("no address", [](Tensor& t) { t.data = nullptr; });
    for (const int bytes : {1, 2, 4, 8, 16}) {
        all.push_back({"address + " + std::to_string(bytes), tensor, true});
        all.back().value.data = moved(tensor, bytes);
    }
    for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16, DType::fp8_e4m3,
                              DType::fp8_e5m2, DType::boolean, DType::int32, DType::int64}) {
        if (dtype != tensor.dtype) add(name_of(dtype), [&](Tensor& t) { t.dtype = dtype; });
    }
    add("on the host", [](Tensor& t) { t.device = {DeviceType::cpu, 0}; });
    add("on GPU 1", [](Tensor& t) { t.device.index = 1; });
    for (const int ndim : {tensor.ndim - 1, tensor.ndim + 1})
        add(std::to_string(ndim) + " dimensions", [&](Tensor& t) { t.ndim = ndim; });
    for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.ndim); ++i) {
        const std::string dim = " of dimension " + std::to_string(i);
        const std::int64_t size = tensor.shape[i];
        for (const std::int64_t other :
             {size - 1, size + 1, std::int64_t{1}, std::int64_t{0}, std::int64_t{-1},
              std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
            add("size " + std::to_string(other) + dim, [&](Tensor& t) { t.shape[i] = other; });
        }
        const std::int64_t stride = tensor.strides[i];
        for (const std::int64_t other : {2 * stride, stride + 1, stride + 8, std::int64_t{0}})
            add("stride " + std::to_string(other) + dim, [&](Tensor& t) { t.strides[i] = other; });
    }
    return all;
}

// What is left out can't be made up: another of the calls that these tests begin with has it.
inline std::vector<Other<std::optional<Tensor>>> others(const std::optional<Tensor>& tensor) {
    std::vector<Other<std::optional<Tensor>>> all;
    if (!tensor) return all;
    all.push_back({"left out", std::nullopt});
    for (const Other<Tensor>& each : others(*tensor))
        all.push_back({each.what, each.value, each.is_address});
    return all;
}

template <class Value>
std::vector<Other<std::optional<Value>>> with_none(std::initializer_list<Value> values) {
    std::vector<Other<std::optional<Value>>> all{{"left out", std::nullopt}};
    for (const Value value : values)
        all.push_back({std::to_string(value), value});
    return all;
}

inline std::vector<Other<std::optional<float>>> others(const std::optional<float>&) {
    return with_none({0.5f, 2.0f, 0.0f, -1.0f, std::numeric_limits<float>::quiet_NaN()});
}
inline std::vector<Other<std::optional<std::int64_t>>> others(const std::optional<std::int64_t>&) {
    return with_none<std::int64_t>({0, 5, 3000, -1, std::numeric_limits<std::int64_t>::min(),
                                    std::numeric_limits<std::int64_t>::max()});
}
inline std::vector<Other<int>> others(int) {
    return {{"-1", -1}, {"0", 0}, {"3", 3}, {"7", 7}, {"-2", -2}};
}
inline std::vector<Other<bool>> others(bool value) {
    return {{"the contrary", !value}};
}
inline std::vector<Other<RotaryStyle>> others(RotaryStyle) {
    return {{"interleaved", RotaryStyle::interleaved},
            {"half_split", RotaryStyle::half_split},
            {"no style", static_cast<RotaryStyle>(7)}};
}

inline std::vector<Other<Fp8Granularity>> others(Fp8Granularity) {
    return {{"tensor", Fp8Granularity::tensor},
            {"row", Fp8Granularity::row},
            {"group", Fp8Granularity::group},
            {"block", Fp8Granularity::block},
            {"no granularity", static_cast<Fp8Granularity>(9)}};
}

inline std::vector<Other<Activation>> others(Activation) {
    return {{"silu", Activation::silu},
            {"gelu", Activation::gelu},
            {"gelu_tanh", Activation::gelu_tanh},
            {"relu2", Activation::relu2},
            {"no activation", static_cast<Activation>(9)}};
}

// Of requests of 3, 0 and 2 queries.
inline std::vector<Other<std::span<const int>>> others(const std::span<const int>&) {
    static constexpr std::array right{0, 3, 3, 5};
    static constexpr std::array fewer{0, 1, 1, 2};
    static constexpr std::array falling{0, 3, 2, 5};
    static constexpr std::array beyond{0, 3, 3, 9000};
    return {{"left out", {}},
            {"right", right},
            {"of shorter requests", fewer},
            {"falling", falling},
            {"beyond the rows", beyond},
            {"too few", std::span(right).first(3)}};
}

inline std::vector<Other<Workspace>> others(const Workspace& own) {
    return {{"left out", {}},
            {"no address", {nullptr, own.bytes}},
            {"no bytes", {own.data, 0}},
            {"small", {own.data, 100}},
            {"crooked", {static_cast<std::byte*>(own.data) + 1, own.bytes - 256}},
            {"half crooked", {static_cast<std::byte*>(own.data) + 128, own.bytes - 256}}};
}

// Factors, which the software kernels know: software_attention.cpp.
inline LogitsFunction factor() {
    return LogitsFunction("score * factor", {"float factor"});
}
inline LogitsFunction half_factor() {
    return LogitsFunction("score * factor * 0.5f", {"float factor"});
}
inline std::vector<Other<LogitsFunction>> others(const LogitsFunction&) {
    return {{"left out", {}}, {"the factor", factor()}, {"half the factor", half_factor()}};
}
inline std::vector<Other<LogitsValues>> others(const LogitsValues&) {
    return {{"left out", {}},
            {"a number", {2.0f}},
            {"another number", {0.5f}},
            {"an int", {2}},
            {"two", {2.0f, 1.0f}}};
}

inline std::vector<Other<Fp8Formats>> others(Fp8Formats) {
    return {{"e4m3", Fp8Formats::e4m3},
            {"e5m2", Fp8Formats::e5m2},
            {"hybrid", Fp8Formats::hybrid},
            {"no formats", static_cast<Fp8Formats>(7)}};
}
inline std::vector<Other<Fp8Scaling>> others(Fp8Scaling) {
    return {{"delayed", Fp8Scaling::delayed},
            {"dynamic", Fp8Scaling::dynamic},
            {"no scaling", static_cast<Fp8Scaling>(7)}};
}
inline std::vector<Other<Fp8Amax>> others(Fp8Amax) {
    return {{"window", Fp8Amax::window},
            {"latest", Fp8Amax::latest},
            {"no amax", static_cast<Fp8Amax>(7)}};
}

// Those of each of its members.
template <HasFields Value>
std::vector<Other<Value>> others(const Value& value) {
    std::vector<Other<Value>> all;
    for_each_field<Value>([&](const auto& field) {
        for (const auto& other : others(value.*field.member)) {
            all.push_back({field.name + (": " + other.what), value, other.is_address});
            all.back().value.*field.member = other.value;
        }
    });
    return all;
}
template <HasFields Value>
std::vector<Other<std::optional<Value>>> others(const std::optional<Value>& value) {
    std::vector<Other<std::optional<Value>>> all;
    if (!value) return all;
    all.push_back({"left out", std::nullopt});
    for (const Other<Value>& each : others(*value))
        all.push_back({each.what, each.value, each.is_address});
    return all;
}
// They live as long as the process: calls show them.
template <HasFields Value>
std::vector<Other<std::span<const Value>>> others(const std::span<const Value>& values) {
    static std::deque<std::vector<Value>> kept;
    std::vector<Other<std::span<const Value>>> all{{"left out", {}},
                                                   {"one alone", values.first(1)}};
    kept.emplace_back(values.begin(), values.end()).push_back(values.front());
    all.push_back({"the first again", kept.back()});
    for (std::size_t i = 0; i < values.size(); ++i) {
        for (const Other<Value>& each : others(values[i])) {
            kept.emplace_back(values.begin(), values.end())[i] = each.value;
            all.push_back({std::to_string(i) + ": " + each.what, kept.back(), each.is_address});
        }
    }
    return all;
}

template <class Args>
struct Variation {
    std::string field;
    std::string what;
    Differs differs = Differs::never;  // as the list says
    bool lies = false;                 // of a tensor, and only its address is another
    Args args;
};

// `visit(name, tensor)` for each tensor that a call has, those in its lists among them.
template <class Args, class Visit>
void for_each_place(const Args& args, const Visit& visit) {
    for_each_tensor(args, [&](const ListedTensor& listed, const Tensor& tensor) {
        visit(listed.name, tensor);
    });
    if constexpr (std::is_same_v<Args, MergeStatesArgs>) {
        for (const PartialState& part : args.parts) {
            visit("a part's out", part.out);
            visit("a part's lse", part.lse);
        }
    }
}

// What is written, at the address of each other tensor.
template <class Args>
void add_shared_places(std::vector<Variation<Args>>& all, const Args& args) {
    int written = 0;
    for_each_tensor(args, [&](const ListedTensor& listed, const Tensor& tensor) {
        const int number = written++;
        if (listed.access != Access::written && listed.access != Access::updated) return;
        for_each_place(args, [&](const char* other, const Tensor& place) {
            if (&place == &tensor) return;
            all.push_back(
                {listed.name, std::string("address of ") + other, Differs::never, true, args});
            int count = 0;
            for_each_tensor(all.back().args, [&](const ListedTensor&, Tensor& moved) {
                if (count++ == number) moved.data = place.data;
            });
        });
    });
}

// All of them.
template <class Args>
std::vector<Variation<Args>> variations(const Args& args) {
    std::vector<Variation<Args>> all;
    for_each_field<Args>([&](const auto& field) {
        for (const auto& other : others(args.*field.member)) {
            all.push_back({field.name, other.what, field.differs, other.is_address, args});
            all.back().args.*field.member = other.value;
        }
    });
    add_shared_places(all, args);
    return all;
}

}  // namespace jitney::tests
