#include "cli/linear_form.hpp"

#include <CLI/CLI.hpp>

#include "cli/arguments.hpp"
#include "cli/field_options.hpp"

namespace jitney::cli {

namespace {

constexpr const char* kCodes = "--fp8-format";
constexpr const char* kScaling = "--recipe";
constexpr const char* kFormat = "--dtype";
constexpr const char* kBias = "--bias";
constexpr const char* kFastAccum = "--fast-accum";

}  // namespace

void LinearForm::add_to(CLI::App& command) {
    add_word(
        command, kCodes, codes, {"e4m3", "e5m2", "hybrid"},
        "Formats of a linear layer's codes; hybrid is e4m3, and e5m2 of the gradient (hybrid)");
    add_word(command, kScaling, scaling, {"delayed", "dynamic"},
             "Whether they are scaled by earlier steps, or by the tensor's own amax (delayed)");
    add_format(command, kFormat, format, "Format of a linear layer's tensors (bf16)");
    add_word(command, kBias, bias, {"none", "bf16", "fp32"},
             "Format of a linear layer's bias (none)");
    command.add_flag(kFastAccum, fast_accum,
                     "Leave a linear layer's sums to the tensor cores, where they are less exact "
                     "than fp32");
}

Fp8Recipe LinearForm::recipe() const {
    Fp8Recipe recipe;
    if (codes == "e4m3") recipe.formats = Fp8Formats::e4m3;
    if (codes == "e5m2") recipe.formats = Fp8Formats::e5m2;
    if (scaling == "dynamic") recipe.scaling = Fp8Scaling::dynamic;
    return recipe;
}

DType LinearForm::dtype() const {
    return dtype_named(format).value_or(DType::bf16);
}

std::optional<DType> LinearForm::bias_dtype() const {
    return dtype_named(bias);
}

std::string LinearForm::given() const {
    if (!codes.empty()) return kCodes;
    if (!scaling.empty()) return kScaling;
    if (!format.empty()) return kFormat;
    if (!bias.empty()) return kBias;
    return fast_accum ? kFastAccum : "";
}

}  // namespace jitney::cli
