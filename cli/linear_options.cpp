#include "cli/linear_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/arguments.hpp"
#include "cli/errors.hpp"
#include "jitney/prewarm.hpp"

namespace jitney::cli {

namespace {

// "1..8192", or one number.
void set_rows(const std::string& text, Fp8LinearShape& shape) {
    if (text.empty()) return;
    constexpr std::int64_t most = 1 << 20;
    const std::size_t dots = std::min(text.find(".."), text.size());
    shape.first_rows = parse_integer("--rows", text.substr(0, dots), 1, most);
    shape.last_rows = shape.first_rows;
    if (dots != text.size()) {
        shape.last_rows = parse_integer("--rows", text.substr(dots + 2), 1, most);
    }
    if (shape.first_rows > shape.last_rows) {
        refuse(fmt::format("--rows is {}, and must go up, such as 1..8192", text));
    }
}

Fp8LinearShape shape_of(const std::string& text, const LinearOptions& options) {
    const Shape weight = parse_shape("--linear", text);
    require_dims("--linear", weight, 2, "out_features,in_features");
    Fp8LinearShape shape;
    shape.out_features = weight[0];
    shape.in_features = weight[1];
    set_rows(options.rows, shape);
    shape.dtype = options.form.dtype();
    shape.bias = options.form.bias_dtype();
    shape.recipe = options.form.recipe();
    shape.fast_accum = options.form.fast_accum;
    shape.backward = options.backward;
    return shape;
}

// The first of the options that mean nothing without a layer; empty: none was given.
std::string option_of_layers(const LinearOptions& options) {
    if (!options.rows.empty()) return "--rows";
    if (options.backward) return "--backward";
    if (options.sms != 0) return "--sms";
    return options.form.given();
}

}  // namespace

void LinearOptions::add_to(CLI::App& command) {
    add_texts(command, "--linear", weights, "N,K",
              "A linear layer on FP8, out_features,in_features: all that it asks for with any of "
              "--rows; may be given several times");
    command.add_option("--rows", rows, "How many rows x may have, for --linear (1..8192)")
        ->type_name("A..B");
    command.add_flag("--backward", backward, "The gradients of --linear, too");
    form.add_to(command);
    add_integer(command, "--sms", sms, 1, 4096,
                "Multiprocessors of the GPU, for --linear (those of a common one of --arch)");
}

std::vector<std::string> LinearOptions::specializations(const PrewarmTargets& targets) const {
    if (weights.empty()) {
        if (const std::string option = option_of_layers(*this); !option.empty()) {
            refuse(fmt::format("{} is of a --linear, which is missing", option));
        }
        return {};
    }
    if (sms != 0 && targets.archs.size() != 1) {
        refuse(fmt::format("--sms is of the GPU of one --arch, and {} were named",
                           targets.archs.empty() ? "none" : "several"));
    }
    std::vector<std::string> texts;
    for (const std::string& arch : targets.names()) {
        for (const std::string& weight : weights) {
            try {
                for (std::string& text : fp8_linear_specs(shape_of(weight, *this), arch, sms))
                    texts.push_back(std::move(text));
            } catch (const Error& error) {
                throw Error(error.code(), fmt::format("--linear {}: {}", weight, error.what()));
            }
        }
    }
    return texts;
}

}  // namespace jitney::cli
