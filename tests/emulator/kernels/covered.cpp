#include "tests/emulator/kernels/covered.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <map>
#include <sstream>

#include "jitney/error.hpp"
#include "tests/support/logits_functions.hpp"

namespace jitney::emulator {
namespace {

constexpr std::array<std::string_view, 3> kFormats = {"fp32", "fp16", "bf16"};

class Fields {
  public:
    explicit Fields(std::string_view line) : line_(line) {
        std::istringstream words{std::string(line)};
        words >> kernel;
        for (std::string word; words >> word;) {
            const std::size_t equals = word.find('=');
            if (equals == std::string::npos) fail(word);
            fields_[word.substr(0, equals)] = word.substr(equals + 1);
        }
    }

    const std::string& text(const std::string& name) const {
        const auto field = fields_.find(name);
        if (field == fields_.end()) fail(name + "=");
        return field->second;
    }

    // Empty where it is missing.
    std::string optional_text(const std::string& name) const {
        const auto field = fields_.find(name);
        return field == fields_.end() ? std::string() : field->second;
    }

    // Whether it is among the words of `options=`, which may be missing.
    bool option(const std::string& name) const {
        const auto field = fields_.find("options");
        return field != fields_.end() &&
               ("," + field->second + ",").find("," + name + ",") != std::string::npos;
    }

    int number(const std::string& name) const {
        const std::string& value = text(name);
        int result = 0;
        const auto [end, error] =
            std::from_chars(value.data(), value.data() + value.size(), result);
        if (error != std::errc() || end != value.data() + value.size()) fail(name + "=" + value);
        return result;
    }

    [[noreturn]] void fail(const std::string& about) const {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("'{}': what is meant by {}?", line_, about));
    }

    std::string kernel;

  private:
    std::string line_;
    std::map<std::string, std::string> fields_;
};

int format_of(const Fields& fields) {
    for (std::size_t i = 0; i < kFormats.size(); ++i) {
        if (fields.text("format") == kFormats[i]) return static_cast<int>(i);
    }
    fields.fail("format=" + fields.text("format"));
}

}  // namespace

Covered parse_covered(std::string_view line) {
    if (line.find('<') != std::string_view::npos) return {policy::parse_spec(line), std::nullopt};
    const Fields fields(line);
    const policy::KernelInfo* kernel = policy::find_kernel(fields.kernel);
    const std::optional<Arch> arch = parse_arch(fields.text("arch"));
    if (kernel == nullptr) fields.fail(fields.kernel);
    if (!arch) fields.fail("arch=" + fields.text("arch"));

    AttentionLine attention{};
    attention.kernel = kernel->id;
    attention.facts = policy::typical_facts(*arch);
    attention.facts.sm_count = fields.number("sms");
    policy::AttentionProblem& problem = attention.problem;
    problem.format = format_of(fields);
    problem.head_dim = fields.number("head_dim");
    problem.causal = fields.number("causal") != 0;
    problem.mask = fields.option("mask");
    problem.packed = fields.option("packed");
    problem.paged = fields.option("paged");
    if (!fields.optional_text("page_size").empty()) problem.page_size = fields.number("page_size");
    problem.window = fields.option("window");
    problem.softcap = fields.option("softcap");
    problem.alibi = fields.option("alibi");
    problem.sinks = fields.option("sinks");
    problem.append = fields.option("append");
    attention.logits = fields.optional_text("logits");
    if (!attention.logits.empty()) {
        problem.logits = tests::logits_function(attention.logits).digest();
    }
    problem.batch = problem.q_heads = problem.kv_heads = 1;
    problem.q_len = fields.number("rows");
    problem.kv_len = 1000;
    const std::optional<policy::AttentionChoice> choice =
        policy::choose_attention(problem, attention.facts, kernel->id);
    if (!choice) fields.fail("a problem that this kernel does not take");
    return {choice->spec, attention};
}

}  // namespace jitney::emulator
