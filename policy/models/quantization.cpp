#include "policy/models/quantization.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>

namespace jitney::policy {
namespace {

std::string lowered(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

std::string text_in(const Fields& config, std::string_view name) {
    return config.is_text(name) ? lowered(*config.text(name)) : std::string();
}

bool names_fp8(const std::string& text) {
    return text.find("fp8") != text.npos || text.find("float8") != text.npos;
}

// A scheme of compressed tensors: floating point of 8 bits.
bool is_fp8(const Fields& scheme) {
    return scheme.is_number("num_bits") && scheme.integer("num_bits", 0, 64) == 8 &&
           text_in(scheme, "type") == "float";
}

void refuse_cache(const Fields& config, std::string_view name, Findings& findings) {
    findings.refuse(
        fmt::format("{} of {} is {}: no attention kernel reads a cache in FP8, so the "
                    "kernels are those of a cache in the model's format",
                    config.path_of(name), config.file(), config.shown(name)));
}

void read_cache(const Fields& config, Findings& findings) {
    for (const char* name : {"kv_cache_quant_algo", "kv_cache_dtype", "kv_cache_quantization"}) {
        if (names_fp8(text_in(config, name))) refuse_cache(config, name, findings);
    }
    if (config.is_object("kv_cache_scheme") && is_fp8(*config.object("kv_cache_scheme"))) {
        refuse_cache(config, "kv_cache_scheme", findings);
    }
}

void note_linear(const Fields& config, Findings& findings) {
    findings.note(
        fmt::format("{} has linear layers on FP8 with a scale a tensor: prewarm --linear "
                    "N,K compiles theirs, from their sizes",
                    config.file()));
}

void refuse_linear(const Fields& config, std::string_view name, std::string_view what,
                   Findings& findings) {
    findings.refuse(
        fmt::format("{} of {} is {}: linear layers on FP8 with {} are not served, only "
                    "those with a scale a tensor",
                    config.path_of(name), config.file(), config.shown(name), what));
}

// Whether groups of compressed tensors are of FP8; their scales are told.
bool read_groups(const Fields& config, Findings& findings) {
    if (!config.is_object("config_groups")) return false;
    const Fields groups = *config.object("config_groups");
    bool any = false;
    for (const std::string& name : groups.names()) {
        if (!groups.is_object(name)) continue;
        const Fields group = *groups.object(name);
        if (!group.is_object("weights")) continue;
        const Fields weights = *group.object("weights");
        if (!is_fp8(weights)) continue;
        any = true;
        const std::string weight_scales = text_in(weights, "strategy");
        std::string input_scales = "tensor";
        if (group.is_object("input_activations")) {
            input_scales = text_in(*group.object("input_activations"), "strategy");
        }
        if (weight_scales == "tensor" && input_scales == "tensor") {
            note_linear(config, findings);
        } else {
            refuse_linear(groups, name,
                          fmt::format("a scale a {} of the weight and a {} of x", weight_scales,
                                      input_scales),
                          findings);
        }
    }
    return any;
}

void read_method(const Fields& config, Findings& findings) {
    const std::string method = text_in(config, "quant_method");
    const std::string algorithm = text_in(config, "quant_algo");
    if (config.is_list("weight_block_size")) {
        refuse_linear(config, "weight_block_size", "scales of blocks", findings);
    } else if (method == "fbgemm_fp8") {
        refuse_linear(config, "quant_method", "a scale a row", findings);
    } else if (names_fp8(algorithm) && algorithm != "fp8") {
        refuse_linear(config, "quant_algo", "scales of their own", findings);
    } else if (method == "fp8" || algorithm == "fp8") {
        note_linear(config, findings);
    } else if (!read_groups(config, findings) && !method.empty()) {
        findings.note(fmt::format(
            "{} of {} is {}: products of such weights are none of the "
            "kernels here",
            config.path_of("quant_method"), config.file(), config.shown("quant_method")));
    }
}

}  // namespace

void read_quantization(const Fields& config, Findings& findings) {
    read_cache(config, findings);
    for (const char* name : {"quantization_config", "quantization", "compression_config"}) {
        if (!config.is_object(name)) continue;
        const Fields inner = *config.object(name);
        read_cache(inner, findings);
        read_method(inner, findings);
    }
}

}  // namespace jitney::policy
