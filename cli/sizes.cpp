#include "cli/sizes.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

namespace jitney::cli {

namespace {

using Texts = std::vector<std::string_view>;

constexpr std::string_view kMany = "...";

Texts split(std::string_view text, std::string_view separator) {
    Texts parts;
    for (;;) {
        const std::size_t end = text.find(separator);
        parts.push_back(text.substr(0, end));
        if (end == text.npos) return parts;
        text.remove_prefix(end + separator.size());
    }
}

// What is between the brackets of an alternative that counts; nothing where its condition does not
// hold.
std::optional<Texts> sizes_in(std::string_view alternative, const Sizes::Holds& holds) {
    const std::size_t open = alternative.find('[');
    const std::string_view condition = alternative.substr(0, alternative.find(": ["));
    if (open != 0 && !holds(condition)) return std::nullopt;
    return split(alternative.substr(open + 1, alternative.size() - open - 2), ", ");
}

std::int64_t product(const Shape& shape) {
    std::int64_t all = 1;
    for (const std::int64_t size : shape)
        all *= size;
    return all;
}

}  // namespace

Shape shape_of(const Tensor& tensor) {
    return {tensor.shape.begin(), tensor.shape.begin() + tensor.ndim};
}

bool Sizes::note(const std::string& name, std::string_view text, const Shape& shape) {
    shapes_.emplace(name, shape);
    if (shapes_.contains(text)) return true;  // as another tensor
    for (const std::string_view alternative : split(text, " | ")) {
        const auto sizes = sizes_in(alternative, holds_);
        if (!sizes) continue;
        const bool many = sizes->front().ends_with(kMany);
        const std::size_t last = many ? sizes->size() - 1 : sizes->size();
        if (many ? shape.size() < last : shape.size() != last) continue;
        const std::size_t ahead = shape.size() - last;
        if (many) {
            const Shape rows(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(ahead));
            shapes_.emplace(sizes->front(), rows);
            sizes_.emplace(sizes->front().substr(0, sizes->front().size() - kMany.size()),
                           product(rows));
        }
        for (std::size_t i = 0; i < last; ++i) {
            const std::string_view size = (*sizes)[many ? i + 1 : i];
            if (size.find_first_of(" ") == size.npos) sizes_.emplace(size, shape[ahead + i]);
        }
        return true;
    }
    return false;
}

std::optional<std::int64_t> Sizes::value_of(std::string_view size) const {
    std::optional<std::int64_t> value;
    char operation = ' ';
    for (const std::string_view term : split(size, " ")) {
        if (term == "+" || term == "*" || term == "/") {
            operation = term.front();
            continue;
        }
        std::int64_t number = 0;
        if (const auto known = sizes_.find(term); known != sizes_.end()) {
            number = known->second;
        } else if (std::from_chars(term.data(), term.data() + term.size(), number).ec !=
                   std::errc()) {
            return std::nullopt;
        }
        if (operation == ' ') value = number;
        if (operation == '+') *value += number;
        if (operation == '*') *value *= number;
        if (operation == '/') *value = (*value + number - 1) / number;
    }
    return value;
}

std::optional<Shape> Sizes::shape_of(std::string_view text) const {
    if (const auto same = shapes_.find(text); same != shapes_.end()) return same->second;
    for (const std::string_view alternative : split(text, " | ")) {
        const auto sizes = sizes_in(alternative, holds_);
        if (!sizes) continue;
        Shape shape;
        bool known = true;
        for (const std::string_view size : *sizes) {
            const auto rows = size.ends_with(kMany) ? shapes_.find(size) : shapes_.end();
            if (rows != shapes_.end()) {
                shape.insert(shape.end(), rows->second.begin(), rows->second.end());
            } else if (const auto value = value_of(size)) {
                shape.push_back(*value);
            } else {
                known = false;
            }
        }
        if (known) return shape;
    }
    return std::nullopt;
}

}  // namespace jitney::cli
