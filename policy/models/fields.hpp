// The fields of a model's configuration, JSON as Python writes it, read strictly: a field has the
// type that it is asked for, and none comes twice.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace jitney::policy {

class Fields {
  public:
    // `file` is how sentences call the text. Infinity and NaN, which JSON has not, are read. Throws
    // Error (invalid_argument) where the text is no JSON object.
    static Fields parse(std::string file, std::string_view text);

    const std::string& file() const { return file_; }
    // A field of this object as sentences name it: "text_config.head_dim".
    std::string path_of(std::string_view name) const { return path_ + std::string(name); }

    // A field may be there and null, which is another thing than to be missing.
    bool is_null(std::string_view name) const;
    bool has(std::string_view name) const { return find(name) != nullptr; }  // and is not null
    std::vector<std::string> names() const;
    // The value as a sentence shows it, on one line and not long; of a field that there is.
    std::string shown(std::string_view name) const;

    // Nothing where the field is missing, or null. Each throws Error (invalid_argument) that names
    // the file, the field and its value where that is of another type or out of range.
    std::optional<int> integer(std::string_view name, int minimum, int maximum) const;
    // A number, or a list of numbers; null in a list is `absent`.
    std::optional<std::vector<int>> integers(std::string_view name, int minimum, int maximum,
                                             std::optional<int> absent = {}) const;
    std::optional<double> real(std::string_view name) const;
    std::optional<bool> boolean(std::string_view name) const;
    std::optional<std::string> text(std::string_view name) const;
    std::optional<std::vector<std::string>> texts(std::string_view name) const;
    // A list of pairs: names, and how many times they are meant.
    std::optional<std::vector<std::pair<std::vector<std::string>, int>>> repeated_texts(
        std::string_view name) const;
    std::optional<Fields> object(std::string_view name) const;
    // None where the field is missing.
    std::vector<Fields> objects(std::string_view name) const;

    // The field is this string.
    bool text_is(std::string_view name, std::string_view value) const;
    bool is_number(std::string_view name) const;
    bool is_text(std::string_view name) const;
    bool is_boolean(std::string_view name) const;
    bool is_object(std::string_view name) const;
    bool is_list(std::string_view name) const;

    [[noreturn]] void refuse_value(std::string_view name, std::string_view meaning) const;

  private:
    Fields(std::string file, std::string path, std::shared_ptr<const nlohmann::json> root,
           const nlohmann::json* fields)
        : file_(std::move(file)), path_(std::move(path)), root_(std::move(root)), fields_(fields) {}

    const nlohmann::json* find(std::string_view name) const;

    std::string file_;
    std::string path_;  // of the object in the file: "text_config."; empty at the root
    std::shared_ptr<const nlohmann::json> root_;
    const nlohmann::json* fields_;  // in the root
};

}  // namespace jitney::policy
