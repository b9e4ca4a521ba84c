#include "cli/run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/errors.hpp"
#include "cli/file.hpp"
#include "cli/narrow.hpp"
#include "cli/output.hpp"
#include "cli/safetensors_header.hpp"

namespace jitney::cli {

void RunOptions::add_to(CLI::App& command) {
    command.add_option("IN", input, "The safetensors file of the inputs")
        ->required()
        ->type_name("");
    command.add_option("-o,--output", output, "The safetensors file to write")
        ->required()
        ->type_name("OUT");
    backend.add_to(command);
    expect.add_to(command);
}

namespace {

// Before anything is computed: what is read stays.
void require_other_output(const RunOptions& options) {
    for (const std::string& read : {options.input, options.expect.file}) {
        if (read.empty() || !is_same_file(options.output, read)) continue;
        refuse(
            fmt::format("the output {} is the file {} that is read, and would replace it: give "
                        "-o another name",
                        options.output, read));
    }
}

}  // namespace

Run::Run(const RunOptions& options, const std::vector<std::string_view>& takes)
    : options_(options),
      file_(
          (options.expect.check(), require_other_output(options), TensorFile::read(options.input))),
      backend_(choose_backend(options.backend)),
      stage_(backend_.gpu) {
    for (const std::string_view name : takes)
        static_cast<void>(file_.find(name));  // throws for a dtype that the operation can't take
    for (const auto& [name, tensor] : file_.tensors()) {
        if (std::find(takes.begin(), takes.end(), name) == takes.end()) {
            refuse(fmt::format("{} holds a tensor {}, and this operation takes {}", options.input,
                               text_of_name(name), fmt::join(takes, ", ")));
        }
    }
}

const Tensor& Run::at(std::string_view name) const {
    if (const auto found = narrowed_.find(name); found != narrowed_.end())
        return found->second.view();
    const Tensor* const tensor = file_.find(name);
    if (tensor == nullptr) {
        refuse(fmt::format("{} holds no tensor \"{}\"", options_.input, name));
    }
    return *tensor;
}

std::optional<Tensor> Run::optional_input(std::string_view name) {
    if (!has(name)) return std::nullopt;
    return input(name);
}

Tensor Run::output(const std::string& name, DType dtype, std::span<const std::int64_t> shape) {
    const auto [place, added] = outputs_.emplace(name, HostTensor(dtype, shape));
    return stage_.output(place->second.view());
}

void Run::narrow(std::string_view name) {
    if (!has(name) || at(name).dtype != DType::int64) return;
    narrowed_.emplace(name, narrowed(name, at(name)));
}

Tensor Run::updated(std::string_view name) {
    updated_.emplace(name, at(name));
    return stage_.output(at(name));
}

int Run::finish(const std::function<void()>& call, bool json) {
    const auto start = std::chrono::steady_clock::now();
    call();
    stage_.wait();
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - start;
    stage_.fetch();

    TensorsByName results = updated_;
    for (const auto& [name, tensor] : outputs_)
        results.emplace(name, tensor.view());
    std::optional<Difference> difference;
    if (!options_.expect.file.empty()) difference = compare(options_.expect, results);
    write_safetensors(options_.output, results);
    report(spent.count(), difference, json);
    if (!difference || difference->within()) return kSuccess;
    print_error(fmt::format("the largest absolute error is {:.3g}, above the tolerance of {}",
                            difference->max_abs_error, difference->tolerance));
    return kFailure;
}

void Run::report(double milliseconds, const std::optional<Difference>& difference,
                 bool json) const {
    const std::string ran = last_run();
    const bool jit = ran != "reference" && backend_.gpu;
    if (json) {
        Json result = {{"backend", jit ? "jit" : "reference"},
                       {"spec", jit && !ran.empty() ? Json(ran) : Json(nullptr)},
                       {"ms", milliseconds},
                       {"output", options_.output}};
        if (difference) result["expect"] = difference->json();
        print_json(result);
        return;
    }
    std::string by = jit ? ran : "the reference backend, on the CPU";
    if (ran.empty()) by = "nothing: there was nothing to compute";
    print(fmt::format(
        "ran {} in {:.3f} ms{}\n", by, milliseconds,
        jit && !ran.empty() ? " (the loading or compiling of the kernel included)" : ""));
    if (difference) print_sentence(difference->text());
    print_sentence(fmt::format("wrote {}", options_.output));
}

void add_run(CLI::App& root, Request& request) {
    CLI::App& group = add_group(root, request, "run", "Run one operation on the tensors of a file");
    add_run_attention(group, request);
    add_run_rotary(group, request);
    add_run_fp8_quantize(group, request);
    add_run_fp8_gemm(group, request);
}

}  // namespace jitney::cli
