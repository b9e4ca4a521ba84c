// Compiles specializations and prints what became of them as a Markdown table.
//     spec_table [--jobs N] [--selection ARCH | --full ARCH | SPEC]...
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <span>
#include <string_view>
#include <vector>

#include "jitney/error.hpp"
#include "policy/spec.hpp"
#include "runtime/nvrtc.hpp"
#include "tests/kernels/catalogue.hpp"
#include "tests/kernels/measure.hpp"

namespace {

using jitney::tests::Extent;
using jitney::tests::Measurement;

struct Request {
    unsigned jobs = 1;
    std::vector<jitney::policy::Spec> specs;
};

jitney::Error bad_usage(const std::string& why) {
    return {jitney::ErrorCode::invalid_argument, why};
}

std::vector<jitney::policy::Spec> catalogue_of(std::string_view text, Extent extent) {
    const auto arch = jitney::parse_arch(text);
    if (!arch) throw bad_usage(fmt::format("'{}' is not an arch such as sm_80 or sm_90a", text));
    return jitney::tests::standard_catalogue(*arch, extent);
}

Request parse(std::span<char* const> arguments) {
    Request request;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string_view argument = arguments[i];
        if (!argument.starts_with("--")) {
            request.specs.push_back(jitney::policy::parse_spec(argument));
            continue;
        }
        if (i + 1 == arguments.size()) throw bad_usage(fmt::format("{} needs a value", argument));
        const std::string_view value = arguments[++i];
        if (argument == "--jobs") {
            const auto end = value.data() + value.size();
            if (std::from_chars(value.data(), end, request.jobs).ptr != end || request.jobs == 0) {
                throw bad_usage(fmt::format("--jobs {} must be a number from 1", value));
            }
        } else if (argument == "--selection" || argument == "--full") {
            const auto specs =
                catalogue_of(value, argument == "--full" ? Extent::full : Extent::selection);
            request.specs.insert(request.specs.end(), specs.begin(), specs.end());
        } else {
            throw bad_usage(fmt::format(
                "there is no option {} (there are --jobs, --full and --selection)", argument));
        }
    }
    if (request.specs.empty()) {
        throw bad_usage(
            "nothing to compile: name a specialization, --full ARCH or --selection ARCH");
    }
    return request;
}

void print_table(std::span<const Measurement> measurements) {
    fmt::print(
        "| specialization | registers | spill bytes | shared bytes | cubin bytes | compile ms "
        "(CPU) |\n"
        "|---|--:|--:|--:|--:|--:|\n");
    for (const Measurement& m : measurements) {
        if (!m.compiled()) continue;
        fmt::print("| `{}` | {} | {} | {} | {} | {:.0f} |\n", jitney::policy::text_of(m.spec),
                   m.report.registers, m.report.spill_store_bytes, m.shared_bytes, m.cubin_bytes,
                   m.milliseconds);
    }
}

int run(std::span<char* const> arguments) {
    const Request request = parse(arguments);
    jitney::runtime::nvrtc();  // opened here, so that the first row does not pay for it
    std::size_t count = 0;
    const std::vector<Measurement> measurements =
        jitney::tests::measure(request.specs, request.jobs, [&](const Measurement& m) {
            fmt::print(stderr, "[{}/{}] {}{}\n", ++count, request.specs.size(),
                       m.compiled() ? "" : "FAILED ",
                       m.compiled() ? jitney::policy::text_of(m.spec) : m.error);
        });
    print_table(measurements);
    return std::all_of(measurements.begin(), measurements.end(),
                       [](const Measurement& m) { return m.compiled(); })
               ? 0
               : 1;
}

}  // namespace

int main(int count, char** arguments) {
    try {
        return run(std::span(arguments + 1, static_cast<std::size_t>(count - 1)));
    } catch (const jitney::Error& error) {
        fmt::print(stderr, "spec_table: {}\n", error.what());
        return 2;
    }
}
