#include "cli/problem_call.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/errors.hpp"

namespace jitney::cli {

namespace {

using Kind = OperationField::Kind;
using Says = ProblemOption::Says;

const OperationInfo& operation_named(std::string_view name) {
    return *std::ranges::find(operations(), name, &OperationInfo::name);
}

bool is_input(const OperationField& field) {
    return field.use == OperationField::Use::read || field.use == OperationField::Use::updated;
}

template <class Visit>
void for_each_input(const OperationInfo& operation, const Visit& visit) {
    for (const OperationField& field : operation.fields) {
        std::ranges::for_each(field.elements, visit);
        if (is_input(field)) visit(field);
    }
}

std::string option_named(const ProblemOption& option) {
    return fmt::format("--{}", option.name);
}

bool has_word(std::string_view text, std::string_view word) {
    const auto part_of_name = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
    };
    for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        if ((at == 0 || !part_of_name(text[at - 1])) &&
            (end == text.size() || !part_of_name(text[end])))
            return true;
    }
    return false;
}

// "batch of q" of an option of lengths.
std::pair<std::string, std::string> parts_of_lengths(const ProblemOption& option) {
    const auto parts = split(option.of, " of ");
    return {std::string(parts.at(0)), std::string(parts.at(1))};
}

}  // namespace

ProblemCall::ProblemCall(const OperationInfo& operation, const ToldProblem& told,
                         const FieldOptions& options, Device device)
    : problem_(operation),
      called_(&operation),
      told_(told),
      options_(options),
      sizes_([this](std::string_view condition) { return holds(condition); }),
      logits_(options.logits().function()) {
    for (const ProblemOption& option : problem_.problem) {
        if (!told_.options.contains(option.name)) continue;
        give(option.gives);
        if (option.says == Says::operation) called_ = &operation_named(option.of);
    }
    for (const ProblemOption& option : problem_.problem) {
        if (option.says == Says::lengths && !told_.ends.empty()) fit_lengths(option);
    }
    fit_shapes();
    check_options();
    tell_sizes();
    for (const ProblemOption& option : problem_.problem) {
        if (option.says == Says::nothing && holds(option.of)) give(option.gives);
    }
    for_each_input(*called_, [&](const OperationField& field) { make_input(field, device); });
    make_tensors();
}

const Tensor* ProblemCall::find(std::string_view field) const {
    const auto found = std::ranges::find_if(
        tensors_, [field](const CallTensor& each) { return each.field->name == field; });
    return found == tensors_.end() ? nullptr : &found->host;
}

bool ProblemCall::chooses(std::string_view name, std::string_view word) const {
    const auto option =
        std::ranges::find(problem_.problem, name, [](const auto& each) { return each.name; });
    if (option == problem_.problem.end() || option->says != Says::choice) return false;
    const auto told = told_.choices.find(name);
    if (told != told_.choices.end() && !told->second.empty()) return told->second == word;
    return !any_holds(option->without) && split(option->of, "|").front() == word;
}

bool ProblemCall::holds(std::string_view condition) const {
    const auto parts = split(condition, "=");
    if (parts.size() == 2 && chooses(parts[0], parts[1])) return true;
    return given_.contains(condition) || told_.shapes.contains(condition) ||
           told_.options.contains(condition) || options_.holds(condition);
}

bool ProblemCall::any_holds(std::string_view conditions) const {
    const auto all = split(conditions, "|");
    return std::ranges::any_of(all, [this](std::string_view each) { return holds(each); });
}

void ProblemCall::give(std::string_view tensors) {
    for (const std::string_view each : split(tensors, "|")) {
        if (each.starts_with('-')) {
            left_out_.emplace(each.substr(1));
        } else if (!each.empty()) {
            const std::size_t name = std::min(each.find(' '), each.size());
            given_.emplace(each.substr(0, name), each.substr(std::min(name + 1, each.size())));
        }
    }
}

const OperationField* ProblemCall::field_named(std::string_view name) const {
    const auto found = std::ranges::find(called_->fields, name, &OperationField::name);
    return found == called_->fields.end() ? nullptr : &*found;
}

const Shape* ProblemCall::shape_of_option(const ProblemOption& option) const {
    const auto own = told_.shapes.find(option.name);
    if (own != told_.shapes.end()) return &own->second;
    // Nothing is taken to be like another where fields say it themselves.
    bool told = false;
    for_each_input(problem_, [&](const OperationField& field) {
        told |= !field.optional && field.name != option.like && told_.shapes.contains(field.name);
    });
    if (told) return nullptr;
    const auto like = told_.shapes.find(option.like);
    return like == told_.shapes.end() ? nullptr : &like->second;
}

// Before shapes are: rows are of as many sizes as those of requests one behind the other.
void ProblemCall::fit_lengths(const ProblemOption& option) {
    const auto [count, rows] = parts_of_lengths(option);
    sizes_.set(count, std::ssize(told_.ends) - 1);
    const OperationField* const field = field_named(rows);
    const auto shape = told_.shapes.find(rows);
    if (shape == told_.shapes.end()) return;
    const auto condition = Sizes::condition_of(field->shape, shape->second.size());
    if (condition == option.gives && shape->second.front() == told_.ends.back()) return;
    refuse(fmt::format("{} are {} rows together, and {} is {}; its shape is {}",
                       option_named(option), told_.ends.back(), option_of(rows),
                       text_of_shape(shape->second), field->shape));
}

// A shape that only calls with another tensor have gives that tensor.
void ProblemCall::fit(const std::string& option, std::string_view text, const Shape& shape) {
    if (text.find('[') == text.npos) return;  // as another tensor's
    Sizes trial([this](std::string_view condition) { return holds(condition); });
    if (trial.note({}, text, shape)) return;
    const auto condition = Sizes::condition_of(text, shape.size());
    const OperationField* const field = condition ? field_named(*condition) : nullptr;
    if (field == nullptr || field->kind != Kind::tensor) {
        refuse(fmt::format("{} is {}, and must be {}", option, text_of_shape(shape), text));
    }
    given_.emplace(*condition, "");
}

void ProblemCall::fit_shapes() {
    for_each_input(problem_, [this](const OperationField& field) {
        const auto told = told_.shapes.find(field.name);
        if (told != told_.shapes.end()) fit(option_of(field.name), field.shape, told->second);
    });
    for (const ProblemOption& option : problem_.problem) {
        const Shape* const shape = option.says == Says::shape ? shape_of_option(option) : nullptr;
        if (shape != nullptr) fit(option_named(option), option.of, *shape);
    }
}

void ProblemCall::check_options() const {
    for (const ProblemOption& option : problem_.problem) {
        if (!told_.options.contains(option.name)) continue;
        if ((*option.with != '\0' && !any_holds(option.with)) || any_holds(option.without)) {
            refuse(fmt::format("{} {}", option_named(option), option.otherwise));
        }
    }
}

void ProblemCall::tell_sizes() {
    for (const auto& [name, size] : told_.sizes)
        sizes_.set(name, size);
    for (const OperationField& field : called_->fields) {
        if (const auto value = options_.integer(field)) sizes_.set(field.name, *value);
    }
    const auto note = [this](const OperationField& field, bool optional) {
        const auto told = told_.shapes.find(field.name);
        if (field.optional == optional && told != told_.shapes.end())
            sizes_.note(field.name, field.shape, told->second);
    };
    for_each_input(problem_, [&](const OperationField& field) { note(field, false); });
    for (const ProblemOption& option : problem_.problem) {
        const Shape* const shape = option.says == Says::shape ? shape_of_option(option) : nullptr;
        if (shape == nullptr) continue;
        sizes_.note(option_named(option), option.of, *shape);
        const auto together = sizes_.shape_of(option.of);
        if (together != *shape) {
            refuse(fmt::format("{} is {}, and must be {} beside the other shapes",
                               option_named(option), text_of_shape(*shape),
                               text_of_shape(together.value())));
        }
    }
    for_each_input(problem_, [&](const OperationField& field) { note(field, true); });
    for (const ProblemSize& size : problem_.sizes) {
        if (*size.otherwise != '\0') sizes_.otherwise(size.name, size.otherwise);
    }
}

void ProblemCall::check_size(const ProblemSize& size) const {
    const std::int64_t value = sizes_.value_of(size.name).value_or(0);
    const bool bounded = sizes_.value_of(size.at_most).has_value();
    const std::int64_t most = sizes_.value_of(size.at_most).value_or(value);
    if ((!size.even || value % 2 == 0) && value <= most) return;
    std::vector<std::string> must;
    if (size.even) must.emplace_back("even");
    if (bounded) must.push_back(fmt::format("at most {}, {}", size.at_most, most));
    refuse(fmt::format("{} is {}, and must be {}{}{}", size.called, value, fmt::join(must, " and "),
                       *size.because == '\0' ? "" : " ", size.because));
}

void ProblemCall::refuse_shape(const OperationField& field) const {
    std::string give = option_of(field.name);
    for (const ProblemOption& option : problem_.problem) {
        const std::string_view of = option.says == Says::lengths ? split(option.of, " of ").front()
                                                                 : std::string_view(option.of);
        const bool tells = option.says == Says::size || option.says == Says::lengths
                               ? has_word(field.shape, of)
                               : option.says == Says::shape && !told_.shapes.contains(option.name);
        if (tells) give += fmt::format(" or {}", option_named(option));
    }
    refuse(
        fmt::format("nothing tells the shape of {}, {}: give {}", field.name, field.shape, give));
}

Shape ProblemCall::shape_of_input(const OperationField& field) const {
    if (const auto told = told_.shapes.find(field.name); told != told_.shapes.end()) {
        return told->second;
    }
    const auto given = given_.find(field.name);
    const bool own = given != given_.end() && !given->second.empty();
    const auto shape = sizes_.shape_of(own ? given->second : field.shape);
    if (!shape) refuse_shape(field);
    for (const ProblemSize& size : problem_.sizes) {
        if (*size.called != '\0' && has_word(field.shape, size.name)) check_size(size);
    }
    return *shape;
}

void ProblemCall::make_input(const OperationField& field, Device device) {
    const bool told = told_.shapes.contains(field.name);
    if (!told && field.optional && !given_.contains(field.name)) return;
    const auto own = told_.formats.find(field.name);
    std::string format = own == told_.formats.end() ? std::string() : own->second;
    if (format.empty()) {
        const auto may = [&field](const std::string& dtype) {
            return std::ranges::count(field.dtypes, dtype) != 0;
        };
        const std::string word = options_.word(field.like);
        format = may(word) ? word : may(told_.format) ? told_.format : field.dtypes.front();
    }
    inputs_.emplace(field.name, Tensor::contiguous(nullptr, dtype_named(format).value(),
                                                   shape_of_input(field), device));
}

void ProblemCall::make_tensors() {
    const auto find = [this](std::string_view name) {
        const auto found = inputs_.find(name);
        return found == inputs_.end() ? nullptr : &found->second;
    };
    const auto asks_for = [this](const OperationField& result) -> std::optional<bool> {
        if (given_.contains(result.name)) return true;
        if (left_out_.contains(result.name)) return false;
        for (const ProblemOption& option : problem_.problem) {
            if (std::ranges::count(split(option.gives, "|"), std::string_view(result.name)) != 0)
                return false;
        }
        return std::nullopt;
    };
    const TensorSource source{inputs_, find, "the problem", false, asks_for};
    tensors_ = CallTensors(*called_, options_, source).all();
}

std::unique_ptr<CCall> ProblemCall::arguments() const {
    std::vector<Tensor> tensors;
    for (const CallTensor& tensor : tensors_)
        tensors.push_back(tensor.host);
    return on(tensors);
}

std::unique_ptr<CCall> ProblemCall::on(const std::vector<Tensor>& tensors) const {
    auto call = std::make_unique<CCall>(*called_);
    options_.set(*call, *called_);
    for (std::size_t i = 0; i < tensors.size(); ++i)
        set(*call, tensors_[i], tensors[i]);
    for (const OperationField& field : called_->fields) {
        if (field.kind == Kind::logits) call->set(field, c_function_of(logits_));
        if (field.kind == Kind::host_copy && !told_.ends.empty())
            call->set(field, static_cast<const void*>(told_.ends.data()));
    }
    return call;
}

}  // namespace jitney::cli
