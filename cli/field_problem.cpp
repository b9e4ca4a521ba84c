#include "cli/field_problem.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>

#include "cli/arguments.hpp"

namespace jitney::cli {

namespace {

using Says = ProblemOption::Says;

const OperationField* find(const OperationInfo& operation, std::string_view name) {
    const auto found = std::ranges::find(operation.fields, name, &OperationField::name);
    return found == operation.fields.end() ? nullptr : &*found;
}

}  // namespace

void FieldProblem::add_short(CLI::App& command, const ProblemOption& option) {
    const std::string name = option.name;
    const auto give = [this, name] { told_.options.insert(name); };
    const auto add = [&](const char* type, auto read) {
        add_value(command, "--" + name, type, option.meaning,
                  [=](const std::string& written, const std::string& text) {
                      give();
                      read(written, text);
                  });
    };
    switch (option.says) {
        case Says::flag:
        case Says::operation:
            command.add_flag_function(
                "--" + name, [give](std::int64_t) { give(); }, option.meaning);
            break;
        case Says::shape:
            add("SHAPE", [this, name](const std::string& written, const std::string& text) {
                told_.shapes[name] = parse_shape(written, text);
            });
            break;
        case Says::size:
            add("N", [this, of = std::string(option.of), least = option.least](
                         const std::string& written, const std::string& text) {
                told_.sizes[of] =
                    parse_integer(written, text, least, std::numeric_limits<int>::max());
            });
            break;
        case Says::lengths:
            add("LENGTHS", [this](const std::string& written, const std::string& text) {
                told_.ends = parse_lengths(written, text);
            });
            break;
        case Says::choice: {
            std::vector<std::string> words;
            for (const std::string_view word : split(option.of, "|"))
                words.emplace_back(word);
            cli::add_word(command, "--" + name, told_.choices[name], words, option.meaning);
            break;
        }
        case Says::word:
            add_word(command, option);
            break;
        case Says::nothing:
            break;
    }
}

// The words of a field, or the dtypes of tensors that may be left out, and "none".
void FieldProblem::add_word(CLI::App& command, const ProblemOption& option) {
    std::vector<std::string> fields;
    for (const std::string_view each : split(option.of, "|"))
        fields.emplace_back(each);
    const OperationField& first = *find(operation_, fields.front());
    const bool word = first.kind == OperationField::Kind::word;
    std::vector<std::string> words = word ? first.words : first.dtypes;
    words.insert(words.begin(), "none");
    const auto choose = [this, name = option.name, words, fields, word](std::size_t place) {
        if (place == 0) return;
        told_.options.insert(name);
        for (const std::string& field : fields) {
            if (word) {
                options_.choose(field, static_cast<std::int64_t>(place) - 1);
            } else {
                options_.choose_dtype(field, words[place]);
                told_.formats[field] = words[place];
            }
        }
    };
    add_choice(command, fmt::format("--{}", option.name), words, option.meaning, choose);
}

void FieldProblem::add_field(CLI::App& command, const OperationField& field) {
    using Use = OperationField::Use;
    for (const OperationField& element : field.elements)
        add_field(command, element);
    if (field.use != Use::read && field.use != Use::updated) return;
    const std::string& name = field.name;
    const std::string option = option_of(name);
    if (command.get_option_no_throw(option) == nullptr) {
        add_value(command, option, "SHAPE",
                  fmt::format("Shape of {}, {}: {}", name, field.shape, field.meaning),
                  [this, name](const std::string& written, const std::string& text) {
                      told_.shapes[name] = parse_shape(written, text);
                  });
    }
    if (field.dtypes.size() < 2) return;
    cli::add_word(command, option_of("format_" + name) + "," + option_of(name + "_format"),
                  told_.formats[name], field.dtypes, fmt::format("Format of {}", name));
}

void FieldProblem::add_to(CLI::App& command) {
    for (const ProblemOption& option : operation_.problem)
        add_short(command, option);
    for (const OperationField& field : operation_.fields)
        add_field(command, field);
    add_format(command, "--format,--dtype", told_.format,
               "Format of tensors that may have it, unless told apart (bf16)");
    options_.add_to(command);
}

}  // namespace jitney::cli
