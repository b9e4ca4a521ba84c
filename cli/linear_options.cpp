#include "cli/linear_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/arguments.hpp"
#include "cli/errors.hpp"
#include "cli/problem.hpp"
#include "operations/check.hpp"
#include "operations/fp8_linear/check.hpp"
#include "operations/fp8_linear/choose.hpp"

namespace jitney::cli {

namespace {

constexpr std::int64_t kDefaultRows = 8192;
// The policy is asked for each number of rows: a microsecond or two.
constexpr std::int64_t kMostRows = 1 << 20;

policy::RowRange parse_rows(const std::string& text) {
    if (text.empty()) return {1, kDefaultRows};
    const auto number = [](const std::string& part) {
        return parse_integer("--rows", part, 1, kMostRows);
    };
    const std::size_t dots = text.find("..");
    if (dots == text.npos) return {number(text), number(text)};
    const policy::RowRange rows{number(text.substr(0, dots)), number(text.substr(dots + 2))};
    if (rows.first > rows.last) {
        refuse(fmt::format("--rows is {}, and must go up, such as 1..{}", text, kDefaultRows));
    }
    return rows;
}

policy::Fp8LinearLayer layer_of(const std::string& text, const LinearOptions& options) {
    const Shape weight = parse_shape("--linear", text);
    const std::string meaning = "out_features,in_features";
    require_dims("--linear", weight, 2, meaning);
    for (const std::int64_t size : weight) {
        if (size >= 1 && size <= checks::kMostOfFp8Gemm) continue;
        refuse(fmt::format("--linear is {}, and must be {}, each from 1 to {}", text, meaning,
                           checks::kMostOfFp8Gemm));
    }
    const Fp8Recipe recipe = options.form.recipe();
    policy::Fp8LinearLayer layer;
    layer.format = static_cast<int>(options.form.dtype());
    layer.codes = static_cast<int>(checks::forward_format(recipe));
    layer.grad_codes = static_cast<int>(checks::backward_format(recipe));
    if (const auto bias = options.form.bias_dtype()) layer.bias = static_cast<int>(*bias);
    layer.dynamic = recipe.scaling == Fp8Scaling::dynamic;
    layer.fast_accum = options.form.fast_accum;
    layer.backward = options.backward;
    layer.out_features = weight[0];
    layer.in_features = weight[1];
    return layer;
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
    const policy::RowRange range = parse_rows(rows);
    std::vector<policy::Fp8LinearLayer> layers;
    for (const std::string& text : weights)
        layers.push_back(layer_of(text, *this));
    std::vector<std::string> texts;
    for (policy::DeviceFacts facts : targets.facts()) {
        if (sms != 0) facts.sm_count = sms;
        for (const policy::Fp8LinearLayer& layer : layers) {
            const auto specs = policy::fp8_linear_catalogue(layer, range, facts);
            if (specs.empty()) {
                refuse(
                    fmt::format("no kernel multiplies FP8 on {}: jitney explain fp8-linear --x "
                                "{},{} --weight {},{} --arch {} says why",
                                facts.arch.text(), range.first, layer.in_features,
                                layer.out_features, layer.in_features, facts.arch.text()));
            }
            for (const policy::Spec& spec : specs)
                texts.push_back(policy::text_of(spec));
        }
    }
    return texts;
}

}  // namespace jitney::cli
