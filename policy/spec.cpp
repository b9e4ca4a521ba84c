#include "policy/spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "jitney/error.hpp"

namespace jitney::policy {
namespace {

int width(const ConstantInfo& constant) {
    switch (constant.kind) {
        case ConstantKind::tile:
            return 2;
        case ConstantKind::digest:
            return 4;
        default:
            return 1;
    }
}

// Which of the constant's values that name means: of a tile, "tile_m" the first and "tile_n" the
// second. -1: none.
int side_of(const ConstantInfo& constant, std::string_view name) {
    if (constant.kind != ConstantKind::tile) return name == constant.name ? 0 : -1;
    const std::size_t stem = constant.name.size();
    if (name.size() != stem + 2 || !name.starts_with(constant.name) || name[stem] != '_') return -1;
    return name[stem + 1] == 'm' ? 0 : (name[stem + 1] == 'n' ? 1 : -1);
}

bool is_zero(const ConstantInfo& constant, const std::int16_t* values) {
    return std::all_of(values, values + width(constant), [](std::int16_t v) { return v == 0; });
}

std::uint64_t digest_in(const std::int16_t* values) {
    std::uint64_t digest = 0;
    for (int i = 0; i < 4; ++i)
        digest |= std::uint64_t{static_cast<std::uint16_t>(values[i])} << 16 * i;
    return digest;
}

void put_digest(std::int16_t* values, std::uint64_t digest) {
    for (int i = 0; i < 4; ++i)
        values[i] = static_cast<std::int16_t>(static_cast<std::uint16_t>(digest >> 16 * i));
}

// The first of the values of the kernel's logits constant; -1 where it has none.
int logits_slot(KernelId kernel) {
    int slot = 0;
    for (const ConstantInfo& constant : info(kernel).constants) {
        if (constant.kind == ConstantKind::digest) return slot;
        slot += width(constant);
    }
    return -1;
}

// A piece of a text that may come from anywhere, fit for a sentence: on one line, printable, short.
std::string shown(std::string_view text, std::size_t limit = 64) {
    std::string result;
    for (const char c : text.substr(0, limit)) {
        if (c >= ' ' && c <= '~') {
            result += c;
        } else {
            result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        }
    }
    if (text.size() > limit) result += fmt::format("... ({} characters)", text.size());
    return result;
}

[[noreturn]] void reject(std::string_view text, const std::string& why) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' is not a specialization: {}", shown(text, 200), why));
}

// Nothing where the text is not the one that the number prints as, or does not fit.
std::optional<int> parse_number(std::string_view text) {
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool digits = !text.empty() && text.front() != '-';
    const bool canonical = text == "0" || (digits && text.front() != '0');
    if (!canonical || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

std::optional<int> parse_within(const Range& range, std::string_view text) {
    const std::optional<int> number = parse_number(text);
    return number && range.holds(*number) ? number : std::nullopt;
}

// "a multiple of 8 from 8 to 256"
std::string range_text(const Range& range) {
    if (range.minimum == range.maximum) return fmt::format("{}", range.minimum);
    const std::string from_to = fmt::format("from {} to {}", range.minimum, range.maximum);
    if (range.power_of_two) return "a power of two " + from_to;
    if (range.multiple == 1) return "a number " + from_to;
    return fmt::format("a multiple of {} {}", range.multiple, from_to);
}

int parse_integer(const ConstantInfo& constant, std::string_view value, std::string_view text) {
    const std::optional<int> number = parse_within(constant.range, value);
    if (!number) {
        reject(text, fmt::format("{}={} must be {}", constant.name, shown(value),
                                 range_text(constant.range)));
    }
    return *number;
}

// Writes both sides.
void parse_tile(const ConstantInfo& constant, std::string_view value, std::string_view text,
                std::int16_t* values) {
    const std::size_t cross = std::min(value.find('x'), value.size());
    const std::optional<int> m = parse_within(constant.range, value.substr(0, cross));
    const std::optional<int> n =
        parse_within(constant.range_n, value.substr(std::min(cross + 1, value.size())));
    if (!m || !n) {
        reject(text,
               fmt::format("{}={} must be ROWSxKEYS, rows {} and keys {}", constant.name,
                           shown(value), range_text(constant.range), range_text(constant.range_n)));
    }
    values[0] = static_cast<std::int16_t>(*m);
    values[1] = static_cast<std::int16_t>(*n);
}

int parse_name(const ConstantInfo& constant, std::string_view value, std::string_view text) {
    for (std::size_t i = 0; i < constant.names.size(); ++i) {
        if (constant.names[i] == value && constant.allows_name(i)) {
            return static_cast<int>(i);
        }
    }
    reject(text, fmt::format("{}={} must be one of {}", constant.name, shown(value),
                             allowed_names(constant)));
}

std::uint64_t parse_digest(const ConstantInfo& constant, std::string_view value,
                           std::string_view text) {
    std::uint64_t digest = 0;
    const auto [end, error] =
        std::from_chars(value.data(), value.data() + value.size(), digest, 16);
    const bool digits = std::ranges::none_of(value, [](char c) { return c >= 'A' && c <= 'F'; });
    if (value.size() != 16 || !digits || error != std::errc() ||
        end != value.data() + value.size()) {
        reject(text,
               fmt::format("{}={} must be 16 hexadecimal digits", constant.name, shown(value)));
    }
    return digest;
}

// Writes all of the constant's values.
void parse_value(const ConstantInfo& constant, std::string_view value, std::string_view text,
                 std::int16_t* values) {
    switch (constant.kind) {
        case ConstantKind::integer:
            values[0] = static_cast<std::int16_t>(parse_integer(constant, value, text));
            return;
        case ConstantKind::name:
            values[0] = static_cast<std::int16_t>(parse_name(constant, value, text));
            return;
        case ConstantKind::flag:
            if (value != "0" && value != "1") {
                reject(text, fmt::format("{}={} must be 0 or 1", constant.name, shown(value)));
            }
            values[0] = value == "1" ? 1 : 0;
            return;
        case ConstantKind::tile:
            parse_tile(constant, value, text, values);
            return;
        case ConstantKind::digest:
            put_digest(values, parse_digest(constant, value, text));
            return;
    }
}

std::string value_text(const ConstantInfo& constant, const std::int16_t* values) {
    switch (constant.kind) {
        case ConstantKind::name:
            return std::string(constant.names[static_cast<std::size_t>(values[0])]);
        case ConstantKind::tile:
            return fmt::format("{}x{}", values[0], values[1]);
        case ConstantKind::digest:
            return fmt::format("{:016x}", digest_in(values));
        default:
            return fmt::format("{}", values[0]);
    }
}

std::string kernel_names() {
    std::string list;
    for (const KernelInfo& kernel : kernels()) {
        if (!list.empty()) list += ", ";
        list += kernel.name;
    }
    return list;
}

// The constants in the order of the registry; one that is omitted when zero may be left out.
void parse_constants(const KernelInfo& kernel, std::string_view list, std::string_view text,
                     Spec& spec) {
    std::size_t slot = 0;
    for (const ConstantInfo& constant : kernel.constants) {
        const std::string_view item = list.substr(0, list.find(','));
        const bool named = item.starts_with(constant.name) && item.size() > constant.name.size() &&
                           item[constant.name.size()] == '=';
        if (named) {
            parse_value(constant, item.substr(constant.name.size() + 1), text, &spec.values[slot]);
            if (constant.omitted_when_zero && is_zero(constant, &spec.values[slot])) {
                reject(text, fmt::format("leave {} out where it is off", item));
            }
            list.remove_prefix(item.size() == list.size() ? item.size() : item.size() + 1);
        } else if (!constant.omitted_when_zero) {
            reject(text, item.empty() ? fmt::format("{}= is missing", constant.name)
                                      : fmt::format("expected {}= where '{}' stands", constant.name,
                                                    shown(item)));
        }
        slot += static_cast<std::size_t>(width(constant));
    }
    if (!list.empty()) {
        reject(text,
               fmt::format("nothing of {} can stand where '{}' stands", kernel.name, shown(list)));
    }
}

}  // namespace

Spec parse_spec(std::string_view text) {
    if (text.starts_with("own:")) {
        reject(text, "it is the name of somebody's own kernel, of which a manifest has the code");
    }
    const std::size_t open = text.find('<');
    const std::size_t at = text.rfind('@');
    if (open == std::string_view::npos || at == std::string_view::npos || at < 2 ||
        text[at - 1] != '>' || at - 1 < open) {
        reject(text, "it must have the form kernel<constant=value,...>@sm_90a");
    }
    const std::string_view name = text.substr(0, open);
    const KernelInfo* kernel = find_kernel(name);
    if (kernel == nullptr) {
        reject(text,
               fmt::format("there is no kernel '{}' (there are {})", shown(name), kernel_names()));
    }
    const std::optional<Arch> arch = parse_arch(text.substr(at + 1));
    if (!arch) {
        reject(text, fmt::format("'{}' is not an arch such as sm_80 or sm_90a",
                                 shown(text.substr(at + 1))));
    }
    if (!runs_on(*kernel, *arch)) {
        reject(text, fmt::format("{} needs {}, not {}", kernel->name, arch_needed(*kernel),
                                 arch->text()));
    }
    Spec spec;
    spec.kernel = kernel->id;
    spec.arch_number = arch->number;
    spec.arch_suffix = arch->suffix;
    const std::string_view list = text.substr(open + 1, at - open - 2);
    if (list.ends_with(',')) reject(text, "a comma stands at the end of the constants");
    parse_constants(*kernel, list, text, spec);
    if (kernel->why_not != nullptr) {
        if (const std::string_view why = kernel->why_not({spec}); !why.empty()) {
            reject(text, std::string(why));
        }
    }
    return spec;
}

Spec parse_spec_of_gpu(std::string_view text) {
    const Spec spec = parse_spec(text);
    if (const std::string why = why_not_looked_up(spec.arch()); !why.empty()) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("'{}' would never be used: {}", text, why));
    }
    return spec;
}

std::string text_of(const Spec& spec) {
    const KernelInfo& kernel = info(spec.kernel);
    std::string list;
    std::size_t slot = 0;
    for (const ConstantInfo& constant : kernel.constants) {
        const std::int16_t* values = &spec.values[slot];
        slot += static_cast<std::size_t>(width(constant));
        if (constant.omitted_when_zero && is_zero(constant, values)) continue;
        if (!list.empty()) list += ',';
        list += fmt::format("{}={}", constant.name, value_text(constant, values));
    }
    return fmt::format("{}<{}>@{}", kernel.name, list, spec.arch().text());
}

Spec spec_of(KernelId kernel, const Arch& arch, std::initializer_list<NamedValue> values) noexcept {
    Spec spec;
    spec.kernel = kernel;
    spec.arch_number = arch.number;
    spec.arch_suffix = arch.suffix;
    const ConstantList& constants = info(kernel).constants;
    const ConstantInfo* at = constants.begin();
    int slot = 0;
    for (const NamedValue& value : values) {
        // From where the last was found on, and once around.
        for (const ConstantInfo& ignored : constants) {
            static_cast<void>(ignored);
            if (at == constants.end()) {
                at = constants.begin();
                slot = 0;
            }
            if (const int side = side_of(*at, value.constant); side >= 0) {
                spec.values[static_cast<std::size_t>(slot + side)] =
                    static_cast<std::int16_t>(value.value);
                break;
            }
            slot += width(*at++);
        }
    }
    return spec;
}

void add_once(std::vector<Spec>& specs, const Spec& spec) {
    if (std::ranges::find(specs, spec) == specs.end()) specs.push_back(spec);
}

int value_of(const Spec& spec, std::string_view constant) noexcept {
    int slot = 0;
    for (const ConstantInfo& candidate : info(spec.kernel).constants) {
        if (const int side = side_of(candidate, constant); side >= 0) {
            return spec.values[static_cast<std::size_t>(slot + side)];
        }
        slot += width(candidate);
    }
    return 0;
}

int Values::operator[](std::string_view constant) const noexcept {
    return value_of(spec, constant);
}

int shared_bytes(const Spec& spec) {
    const auto bytes = info(spec.kernel).shared_bytes;
    return bytes == nullptr ? 0 : bytes({spec});
}

std::uint64_t logits_digest(const Spec& spec) noexcept {
    const int slot = logits_slot(spec.kernel);
    return slot < 0 ? 0 : digest_in(&spec.values[static_cast<std::size_t>(slot)]);
}

void set_logits_digest(Spec& spec, std::uint64_t digest) noexcept {
    const int slot = logits_slot(spec.kernel);
    if (slot >= 0) put_digest(&spec.values[static_cast<std::size_t>(slot)], digest);
}

std::string translation_unit(const Spec& spec, std::string_view source) {
    const KernelInfo& kernel = info(spec.kernel);
    std::string text = fmt::format("#include \"{}\"\n", kernel.source);
    // After the kernel, so that what it defines is defined for the caller's text alone.
    if (!source.empty()) text += "#include \"common/math_names.cuh\"\n";
    text += "\nnamespace jitney {\nstruct Constants {\n";
    std::size_t slot = 0;
    const auto add = [&text](std::string_view name, std::string_view suffix, int value) {
        text += fmt::format("    static constexpr int {}{} = {};\n", name, suffix, value);
    };
    for (const ConstantInfo& constant : kernel.constants) {
        if (constant.kind == ConstantKind::tile) {
            add(constant.name, "_m", spec.values[slot++]);
            add(constant.name, "_n", spec.values[slot++]);
        } else if (constant.kind == ConstantKind::digest) {
            slot += 4;
            text += source;
        } else {
            add(constant.name, "", spec.values[slot++]);
        }
    }
    text += "};\n}  // namespace jitney\n";
    return text;
}

std::string function_name(const Spec& spec) {
    return fmt::format("jitney::{}<jitney::Constants>", info(spec.kernel).name);
}

}  // namespace jitney::policy
