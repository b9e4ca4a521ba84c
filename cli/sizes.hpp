// The sizes of a call's tensors by their names, as the texts of shapes name them
// (jitney/operations.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.hpp"
#include "jitney/tensor.hpp"

namespace jitney::cli {

std::vector<std::string_view> split(std::string_view text, std::string_view separator);

class Sizes {
  public:
    // Whether a call has a field, or, after '=', that word of it.
    using Holds = std::function<bool(std::string_view condition)>;

    explicit Sizes(Holds holds) : holds_(std::move(holds)) {}

    // A size that a field says, such as a length.
    void set(const std::string& name, std::int64_t size) { sizes_.emplace(name, size); }
    // A size that nothing tells is the first of the expressions that is known.
    void otherwise(const std::string& name, std::string_view expressions) {
        otherwise_.emplace(name, expressions);
    }
    // Notes the sizes of a tensor of this name that are not known yet, by the first alternative of
    // as many sizes; false where there is none. A shape like another tensor's tells none.
    bool note(const std::string& name, std::string_view text, const Shape& shape);
    // The shape by the first alternative whose sizes are all known; nothing where there is none.
    std::optional<Shape> shape_of(std::string_view text) const;
    // The value of a name, or of an expression.
    std::optional<std::int64_t> value_of(std::string_view size) const;

    // The condition of the first alternative of so many sizes, whether it holds or not; empty:
    // none; nothing where there is no such alternative.
    static std::optional<std::string> condition_of(std::string_view text, std::size_t count);

  private:
    std::optional<std::int64_t> known_value(std::string_view name) const;

    Holds holds_;
    std::map<std::string, std::int64_t, std::less<>> sizes_;
    std::map<std::string, std::string, std::less<>> otherwise_;
    std::map<std::string, Shape, std::less<>> shapes_;  // of tensors, and of "rows..."
};

Shape shape_of(const Tensor& tensor);

}  // namespace jitney::cli
