// The fields of an operation that are no tensors, as options of a command; and the results that a
// call may leave out or give in several dtypes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "cli/c_call.hpp"
#include "cli/logits_option.hpp"
#include "jitney/operations.hpp"

namespace CLI {
class App;
}

namespace jitney::cli {

// "bf16" by its name; nothing where it is none.
std::optional<DType> dtype_named(std::string_view name);
// "--window-left" of window_left.
std::string option_of(std::string_view field);

class FieldOptions {
  public:
    explicit FieldOptions(const OperationInfo& operation) : operation_(operation) {}

    // Adds the options that the command does not have yet.
    void add_to(CLI::App& command);
    // As options of the command's own say them: the place of a field's word, and a result's dtype.
    void choose(const std::string& field, std::int64_t place) { integers_[field] = place; }
    void choose_dtype(const std::string& result, const std::string& dtype) {
        dtypes_[result] = dtype;
    }

    // Whether the command line gave the field, or, after '=', whether that is its word or dtype.
    bool holds(std::string_view condition) const;
    // Of a word's field its place, of others its value or default; nothing where it has none.
    std::optional<std::int64_t> integer(const OperationField& field) const;
    // The word of a field, whether it was given or not.
    std::string word(std::string_view field) const;
    // What a result's dtype shall be; empty: not asked for.
    std::string dtype_of_result(std::string_view field) const;
    const LogitsOption& logits() const { return logits_; }

    // Puts all that are numbers, flags and words into a call of an operation with these fields.
    void set(CCall& call, const OperationInfo& operation) const;

  private:
    void add(CLI::App& command, const OperationField& field);
    void add_result(CLI::App& command, const OperationField& field);

    const OperationInfo& operation_;
    std::map<std::string, std::int64_t, std::less<>> integers_;
    std::map<std::string, double, std::less<>> numbers_;
    std::map<std::string, std::string, std::less<>> dtypes_;  // of results
    std::set<std::string, std::less<>> flags_;                // and results that were asked for
    LogitsOption logits_;
};

}  // namespace jitney::cli
