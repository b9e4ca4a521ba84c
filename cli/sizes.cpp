#include "cli/sizes.hpp"

#include <algorithm>
#include <charconv>

namespace jitney::cli {

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
    std::vector<std::string_view> parts;
    for (;;) {
        const std::size_t end = text.find(separator);
        parts.push_back(text.substr(0, end));
        if (end == text.npos) return parts;
        text.remove_prefix(end + separator.size());
    }
}

namespace {

constexpr std::string_view kMany = "...";

struct Alternative {
    std::string_view condition;  // empty: none
    std::vector<std::string_view> sizes;

    explicit Alternative(std::string_view text) {
        const std::size_t open = text.find('[');
        if (open != 0) condition = text.substr(0, text.find(": ["));
        sizes = split(text.substr(open + 1, text.size() - open - 2), ", ");
    }
    bool holds(const Sizes::Holds& holds) const { return condition.empty() || holds(condition); }
    bool many() const { return sizes.front().ends_with(kMany); }
    // How many of them are one size each.
    std::size_t last() const { return many() ? sizes.size() - 1 : sizes.size(); }
    bool fits(std::size_t count) const { return many() ? count >= last() : count == last(); }
};

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

std::optional<std::string> Sizes::condition_of(std::string_view text, std::size_t count) {
    for (const std::string_view each : split(text, " | ")) {
        const Alternative alternative(each);
        if (alternative.fits(count)) return std::string(alternative.condition);
    }
    return std::nullopt;
}

bool Sizes::note(const std::string& name, std::string_view text, const Shape& shape) {
    shapes_.emplace(name, shape);
    if (shapes_.contains(text)) return true;  // as another tensor
    for (const std::string_view each : split(text, " | ")) {
        const Alternative alternative(each);
        if (!alternative.holds(holds_) || !alternative.fits(shape.size())) continue;
        const auto& sizes = alternative.sizes;
        const std::size_t ahead = shape.size() - alternative.last();
        if (alternative.many()) {
            const Shape rows(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(ahead));
            shapes_.emplace(sizes.front(), rows);
            sizes_.emplace(sizes.front().substr(0, sizes.front().size() - kMany.size()),
                           product(rows));
        }
        for (std::size_t i = 0; i < alternative.last(); ++i) {
            const std::string_view size = sizes[alternative.many() ? i + 1 : i];
            if (size.find_first_of(" ") == size.npos) sizes_.emplace(size, shape[ahead + i]);
        }
        return true;
    }
    return false;
}

std::optional<std::int64_t> Sizes::known_value(std::string_view name) const {
    if (const auto known = sizes_.find(name); known != sizes_.end()) return known->second;
    const auto expressions = otherwise_.find(name);
    if (expressions == otherwise_.end()) return std::nullopt;
    for (const std::string_view expression : split(expressions->second, " | ")) {
        if (const auto value = value_of(expression)) return value;
    }
    return std::nullopt;
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
        if (const auto known = known_value(term)) {
            number = *known;
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
    for (const std::string_view each : split(text, " | ")) {
        const Alternative alternative(each);
        if (!alternative.holds(holds_)) continue;
        Shape shape;
        bool known = true;
        for (const std::string_view size : alternative.sizes) {
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
