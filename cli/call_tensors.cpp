#include "cli/call_tensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "cli/errors.hpp"
#include "cli/narrow.hpp"
#include "cli/safetensors_header.hpp"

namespace jitney::cli {

namespace {

// Between conditions of which each has to hold.
constexpr std::string_view kAnd = " and ";

// What a field says of another name: "x to out", "k_pool with block_table|kv_page_indices".
struct OtherName {
    std::string name;
    std::string result;               // empty: it has none
    std::vector<std::string> beside;  // one of which comes with it; none: nothing has to
};

OtherName other_name_of(const OperationField& field) {
    OtherName other{field.file, {}, {}};
    if (const auto to = field.file.find(" to "); to != std::string::npos) {
        other = {field.file.substr(0, to), field.file.substr(to + 4), {}};
    } else if (const auto with = field.file.find(" with "); with != std::string::npos) {
        other = {field.file.substr(0, with), {}, {}};
        for (std::size_t start = with + 6; start < field.file.size();) {
            const std::size_t end = std::min(field.file.find('|', start), field.file.size());
            other.beside.push_back(field.file.substr(start, end - start));
            start = end + 1;
        }
    }
    return other;
}

bool may_be_read(const OperationField& field) {
    using Use = OperationField::Use;
    return field.use == Use::read || field.use == Use::updated || field.read_else;
}

}  // namespace

void set(CCall& call, const CallTensor& place, const Tensor& view) {
    if (place.list != nullptr) {
        call.set_list(*place.list);
        call.set_element(*place.field, view);
    } else {
        call.set(*place.field, view);
    }
}

CallTensors::CallTensors(const OperationInfo& operation, const FieldOptions& options,
                         const TensorSource& source, const std::vector<std::string>& parameters)
    : operation_(operation),
      options_(options),
      source_(source),
      sizes_([this](std::string_view condition) { return has(condition); }) {
    check_names(parameters);
    for (const OperationField& field : operation.fields) {
        find_name(field);
        if (const auto value = options.integer(field)) sizes_.set(field.name, *value);
    }
    for (const OperationField& field : operation.fields) {
        for (const OperationField& element : field.elements)
            read(element, &field);
        if (may_be_read(field)) read(field, nullptr);
    }
    for (const OperationField& field : operation.fields) {
        if (use_of(field) != Use::none && use_of(field) != Use::read && find(field.name) == nullptr)
            make(field);
    }
}

bool CallTensors::has(std::string_view condition) const {
    if (const std::size_t first = condition.find(kAnd); first != condition.npos) {
        return has(condition.substr(0, first)) && has(condition.substr(first + kAnd.size()));
    }
    if (options_.holds(condition)) return true;
    const auto other = other_names_.find(condition);
    return source_.find(other == other_names_.end() ? condition : other->second) != nullptr;
}

OperationField::Use CallTensors::use_of(const OperationField& field) const {
    return field.read_else && !has(field.when) ? Use::read : field.use;
}

void CallTensors::check_names(const std::vector<std::string>& parameters) const {
    std::vector<std::string> names;
    const auto add = [&names](const OperationField& field) {
        if (!may_be_read(field)) return;
        names.push_back(field.name);
        if (!field.file.empty()) names.push_back(other_name_of(field).name);
    };
    for (const OperationField& field : operation_.fields) {
        add(field);
        std::ranges::for_each(field.elements, add);
    }
    for (const std::string& name : parameters) {
        if (std::ranges::find(names, name) != names.end()) {
            refuse(fmt::format(
                "the logits function has the parameter '{}', and a tensor of the call is called "
                "so: rename the parameter",
                name));
        }
    }
    names.insert(names.end(), parameters.begin(), parameters.end());
    for (const std::string& name : names)
        static_cast<void>(source_.find(name));  // throws for a dtype that no operation takes
    for (const auto& [name, tensor] : source_.tensors) {
        if (std::ranges::find(names, name) == names.end()) {
            refuse(fmt::format("{} holds a tensor {}, and this operation takes {}", source_.name,
                               text_of_name(name), fmt::join(names, ", ")));
        }
    }
}

void CallTensors::find_name(const OperationField& field) {
    if (field.file.empty()) return;
    const OtherName other = other_name_of(field);
    if (source_.find(other.name) == nullptr) return;
    if (source_.find(field.name) != nullptr) {
        refuse(fmt::format("{} holds both {} and {}, which are one tensor: leave one of them out",
                           source_.name, other.name, field.name));
    }
    const auto in_file = [this](const std::string& name) { return source_.find(name) != nullptr; };
    if (!other.beside.empty() && std::ranges::none_of(other.beside, in_file)) {
        refuse(
            fmt::format("{} holds {}, and nothing that names its pages: give one of {}, or call "
                        "it {}",
                        source_.name, other.name, fmt::join(other.beside, ", "), field.name));
    }
    other_names_.emplace(field.name, other.name);
    if (other.result.empty()) return;
    for (const OperationField& result : operation_.fields) {
        if (result.like == field.name) other_names_.emplace(result.name, other.result);
    }
}

std::string CallTensors::name_of(const OperationField& field) const {
    const auto other = other_names_.find(field.name);
    return other == other_names_.end() ? field.name : other->second;
}

const CallTensor* CallTensors::find(std::string_view field) const {
    const auto found = std::ranges::find_if(
        all_, [field](const CallTensor& each) { return each.field->name == field; });
    return found == all_.end() ? nullptr : &*found;
}

void CallTensors::read(const OperationField& field, const OperationField* list) {
    const std::string name = name_of(field);
    const Tensor* const given = source_.find(name);
    const Use use = use_of(field);
    if (given == nullptr) {
        const bool may_be_made =
            use == Use::written || (use == Use::updated && sizes_.shape_of(field.shape));
        if (field.optional || may_be_made) return;
        const std::string other = field.file.empty() || name != field.name
                                      ? std::string()
                                      : fmt::format(", nor \"{}\"", other_name_of(field).name);
        refuse(fmt::format("{} holds no tensor \"{}\"{}", source_.name, name, other));
    }
    if (use == Use::written) {
        refuse(fmt::format("{} holds a {}, and {} makes one: leave one of them out", source_.name,
                           name, option_of(field.when.substr(0, field.when.find(kAnd)))));
    }
    Tensor host = *given;
    if (host.dtype == DType::int64 && field.dtypes == std::vector<std::string>{"int32"}) {
        host = own_.emplace_back(narrowed(name, host)).view();
    }
    if (!sizes_.note(field.name, field.shape, shape_of(host))) odd_.push_back(&field);
    all_.push_back({&field, list, name, host, use == Use::updated});
}

DType CallTensors::dtype_of_result(const OperationField& field) const {
    std::string name = options_.dtype_of_result(field.name);
    if (name.empty() && !field.like.empty()) {
        if (const CallTensor* const like = find(field.like)) return like->host.dtype;
        name = options_.word(field.like);
        if (name.empty()) name = options_.dtype_of_result(field.like);
    }
    if (const auto dtype = dtype_named(name)) return *dtype;
    return dtype_named(field.dtypes.at(0)).value();
}

void CallTensors::make(const OperationField& field) {
    if (field.optional) {
        const std::string& asked = field.group.empty() ? field.name : field.group;
        const bool wanted = field.when == "always" ||
                            (field.when.empty() ? options_.holds(asked) : has(field.when));
        const auto told = source_.asks_for ? source_.asks_for(field) : std::nullopt;
        if (!told.value_or(wanted)) return;
    }
    const auto shape = sizes_.shape_of(field.shape);
    if (!shape) refuse_shape(field);
    const DType dtype = dtype_of_result(field);
    const Tensor host = source_.has_memory
                            ? own_.emplace_back(dtype, *shape).view()
                            : Tensor::contiguous(nullptr, dtype, *shape, all_.at(0).host.device);
    sizes_.note(field.name, field.shape, *shape);
    all_.push_back({&field, nullptr, name_of(field), host, true});
}

void CallTensors::refuse_shape(const OperationField& field) const {
    std::string why;
    for (const OperationField* odd : odd_) {
        why += fmt::format("{}{} of {} has the shape {}, and must be {}", why.empty() ? "" : "; ",
                           name_of(*odd), source_.name,
                           text_of_shape(shape_of(find(odd->name)->host)), odd->shape);
    }
    if (why.empty()) why = fmt::format("nothing in {} tells its sizes", source_.name);
    refuse(fmt::format("the shape of {}, {}, can't be told: {}", name_of(field), field.shape, why));
}

std::string CallTensors::as_in_file(std::string_view sentence) const {
    const auto in_word = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
    };
    std::string told;
    while (!sentence.empty()) {
        const bool word = in_word(sentence.front());
        const auto end = std::ranges::find_if(sentence, [&](char c) { return in_word(c) != word; });
        const auto part = sentence.substr(0, static_cast<std::size_t>(end - sentence.begin()));
        const auto other = other_names_.find(part);
        told += other == other_names_.end() ? part : std::string_view(other->second);
        sentence.remove_prefix(part.size());
    }
    return told;
}

}  // namespace jitney::cli
