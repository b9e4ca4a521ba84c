// jitney ops: every operation and its fields.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/errors.hpp"
#include "cli/output.hpp"
#include "jitney/operations.hpp"

namespace jitney::cli {

namespace {

const char* text_of(OperationField::Use use) {
    switch (use) {
        case OperationField::Use::read:
            return "read";
        case OperationField::Use::written:
            return "written";
        case OperationField::Use::updated:
            return "updated";
        case OperationField::Use::none:
            break;
    }
    return "";
}

std::string form_of(const OperationField& field) {
    if (!field.words.empty()) return fmt::format("{}", fmt::join(field.words, "|"));
    return fmt::format("{}{}{}", fmt::join(field.dtypes, "|"), field.dtypes.empty() ? "" : " ",
                       field.shape);
}

void add(Table& table, const OperationField& field) {
    for (const OperationField& element : field.elements)
        add(table, element);
    table.add({field.name, text_of(field.use), field.optional ? "optional" : field.default_value,
               form_of(field), field.meaning});
}

int show(bool json) {
    if (json) {
        print_json(Json::parse(operations_json()));
        return kSuccess;
    }
    for (const OperationInfo& operation : operations()) {
        print(fmt::format("{}  {}\n", command_of(operation), operation.does));
        Table table({"  field", "memory", "default", "form", "meaning"});
        for (const OperationField& field : operation.fields)
            add(table, field);
        print(table.text() + "\n");
    }
    return kSuccess;
}

}  // namespace

void add_ops(CLI::App& root, Request& request) {
    add_command(root, request, "ops", "List every operation and its fields", show);
}

}  // namespace jitney::cli
