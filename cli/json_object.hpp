// A JSON file that holds one object, read strictly: fields have the type that they are asked for,
// and none comes twice.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace jitney::cli {

class JsonObject {
  public:
    // Throws Error: io where the file can't be read, invalid_argument where it is no such object.
    static JsonObject read(const std::string& path);

    const std::string& file() const { return file_; }

    // Nothing where the field is missing, or null. Each throws Error (invalid_argument) that names
    // the file, the field and its value where that is of another type or out of range.
    std::optional<int> integer(const std::string& name, int minimum, int maximum) const;
    std::optional<double> real(const std::string& name) const;
    std::optional<bool> boolean(const std::string& name) const;
    std::optional<std::string> text(const std::string& name) const;
    std::optional<std::vector<std::string>> texts(const std::string& name) const;
    std::optional<JsonObject> object(const std::string& name) const;

  private:
    JsonObject(std::string file, std::string path, nlohmann::json fields)
        : file_(std::move(file)), path_(std::move(path)), fields_(std::move(fields)) {}

    const nlohmann::json* find(const std::string& name) const;
    [[noreturn]] void refuse_value(const std::string& name, const std::string& meaning) const;

    std::string file_;
    std::string path_;  // of the object in the file: "text_config."; empty at the root
    nlohmann::json fields_;
};

}  // namespace jitney::cli
