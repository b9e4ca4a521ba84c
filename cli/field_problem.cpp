#include "cli/field_problem.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/call_tensors.hpp"
#include "cli/problem.hpp"

namespace jitney::cli {

namespace {

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

}  // namespace

void FieldProblem::add_to(CLI::App& command) {
    add_format(command, format_, "Format of tensors that may have it, unless told apart (bf16)");
    for_each_input(*operation_, [&](const OperationField& field) {
        add_shape(command, option_of(field.name), shapes_[field.name],
                  fmt::format("Shape of {}, {}: {}", field.name, field.shape, field.meaning));
        if (field.dtypes.size() < 2) return;
        add_word(command, option_of(field.name + "_format"), formats_[field.name], field.dtypes,
                 fmt::format("Format of {}", field.name));
    });
    options_.add_to(command, true);
}

FieldProblem::Call FieldProblem::arguments(Device device) const {
    TensorsByName tensors;
    for_each_input(*operation_, [&](const OperationField& field) {
        const auto shape = shapes_.find(field.name);
        if (shape == shapes_.end() || shape->second.empty()) return;
        const auto told = formats_.find(field.name);
        std::string format = told == formats_.end() ? std::string() : told->second;
        if (format.empty()) {
            const bool may = std::ranges::find(field.dtypes, format_) != field.dtypes.end();
            format = may ? format_ : field.dtypes.front();
        }
        tensors.emplace(field.name, Tensor::contiguous(nullptr, dtype_named(format).value(),
                                                       shape->second, device));
    });
    const auto find = [&tensors](std::string_view name) {
        const auto found = tensors.find(name);
        return found == tensors.end() ? nullptr : &found->second;
    };
    const TensorSource source{tensors, find, "the problem", false};
    const CallTensors all(*operation_, options_, source);
    Call call{operation_->name, std::make_unique<CCall>(*operation_)};
    options_.set(*call.args);
    for (const CallTensor& tensor : all.all())
        set(*call.args, tensor, tensor.host);
    return call;
}

}  // namespace jitney::cli
