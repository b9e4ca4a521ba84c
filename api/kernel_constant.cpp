// Constants of a caller's kernel: numbers as the literals that stand for them.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "jitney/kernel.hpp"
#include "operations/refuse.hpp"

namespace jitney {
namespace {

// "0.1", and "1.0" where the shortest form has neither a point nor an exponent.
template <class Number>
std::string literal(const std::string& name, Number given, std::string_view suffix) {
    if (!std::isfinite(given)) {
        checks::refuse("the constant {} is {}, of which there is no literal: give it as a text",
                       name, given);
    }
    std::string text = fmt::format("{}", given);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    text += suffix;
    return std::signbit(given) ? fmt::format("({})", text) : text;
}

}  // namespace

KernelConstant::KernelConstant(std::string constant, float given)
    : name(std::move(constant)), value(literal(name, given, "f")) {}

KernelConstant::KernelConstant(std::string constant, double given)
    : name(std::move(constant)), value(literal(name, given, "")) {}

void KernelConstant::set_integer(bool negative, std::uint64_t bits) {
    const auto number = static_cast<std::int64_t>(bits);
    if (!negative) {
        value = fmt::format("{}{}", bits, number < 0 ? "ULL" : "");
    } else if (number == std::numeric_limits<std::int64_t>::min()) {
        value = fmt::format("({} - 1)", number + 1);  // it has no literal of its own
    } else {
        value = fmt::format("({})", number);
    }
}

}  // namespace jitney
