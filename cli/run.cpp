// jitney run OP: one operation on the tensors of a file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/backend_choice.hpp"
#include "cli/call_tensors.hpp"
#include "cli/command.hpp"
#include "cli/compare.hpp"
#include "cli/errors.hpp"
#include "cli/file.hpp"
#include "cli/output.hpp"
#include "jitney/operations.hpp"

namespace jitney::cli {

namespace {

using Kind = OperationField::Kind;
using Parameters = std::vector<LogitsParameter>;

struct RunOptions {
    const OperationInfo& operation;
    FieldOptions fields;
    std::string input;
    std::string output;
    BackendOptions backend;
    ExpectOptions expect;

    explicit RunOptions(const OperationInfo& run) : operation(run), fields(run) {}

    void add_to(CLI::App& command) {
        command.add_option("IN", input, "The safetensors file of the inputs")
            ->required()
            ->type_name("");
        command.add_option("-o,--output", output, "The safetensors file to write")
            ->required()
            ->type_name("OUT");
        backend.add_to(command, operation);
        expect.add_to(command);
        fields.add_to(command);
    }
};

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

class Run {
  public:
    explicit Run(const RunOptions& options);

    // Makes the call, then writes and reports; the exit status.
    int finish(bool json);

  private:
    enum class Place { file, stage };

    const Tensor& parameter_tensor(const std::string& name) const;
    Tensor placed(const Tensor& host, bool goes_out, Place place);
    // The call on the tensors as they stand in the file, or as they are staged.
    std::unique_ptr<CCall> call_on(Place place);
    template <class Body>
    void say_as_in_file(const Body& body) const;
    TensorsByName results() const;
    void report(double milliseconds, const std::optional<Difference>& difference, bool json) const;

    const RunOptions& options_;
    LogitsFunction logits_;
    Parameters parameters_;
    TensorFile file_;
    TensorSource source_;
    CallTensors tensors_;
    BackendChoice backend_;
    Stage stage_;
};

std::vector<std::string> names_of(const Parameters& parameters) {
    std::vector<std::string> names;
    for (const LogitsParameter& parameter : parameters)
        names.push_back(parameter.name);
    return names;
}

Run::Run(const RunOptions& options)
    : options_(options),
      logits_((options.expect.check(), require_other_output(options),
               options.fields.logits().function())),
      parameters_(parameters_of(logits_)),
      file_(TensorFile::read(options.input)),
      source_{file_.tensors(), [this](std::string_view name) { return file_.find(name); },
              options.input, true},
      tensors_(options.operation, options.fields, source_, names_of(parameters_)),
      backend_(choose_backend(options.backend)),
      stage_(backend_.gpu) {}

const Tensor& Run::parameter_tensor(const std::string& name) const {
    const Tensor* const tensor = file_.find(name);
    if (tensor == nullptr) refuse(fmt::format("{} holds no tensor \"{}\"", options_.input, name));
    return *tensor;
}

Tensor Run::placed(const Tensor& host, bool goes_out, Place place) {
    if (place == Place::file) return host;
    return goes_out ? stage_.output(host) : stage_.input(host);
}

std::unique_ptr<CCall> Run::call_on(Place place) {
    const OperationInfo& operation = options_.operation;
    auto call = std::make_unique<CCall>(operation);
    options_.fields.set(*call, operation);
    for (const CallTensor& tensor : tensors_.all()) {
        set(*call, tensor, placed(tensor.host, tensor.goes_out, place));
        if (place == Place::file) continue;
        for (const OperationField& copy : operation.fields) {
            if (copy.kind == Kind::host_copy && copy.c.at(1).offset == tensor.field->c.at(0).offset)
                call->set(copy, static_cast<const void*>(tensor.host.data));
        }
    }
    for (const OperationField& field : operation.fields) {
        if (field.kind == Kind::logits) call->set(field, c_function_of(logits_));
        for (std::size_t i = 0; field.kind == Kind::logits_values && i < parameters_.size(); ++i) {
            Tensor tensor = parameter_tensor(parameters_[i].name);
            if (parameters_[i].kind == LogitsValue::Kind::pointer)
                tensor = placed(tensor, false, place);
            call->set_logits_value(field, i, value_in(tensor, parameters_[i]));
        }
    }
    return call;
}

template <class Body>
void Run::say_as_in_file(const Body& body) const {
    try {
        body();
    } catch (const CompileError&) {
        throw;
    } catch (const Error& error) {
        throw Error(error.code(), tensors_.as_in_file(error.what()));
    }
}

TensorsByName Run::results() const {
    TensorsByName results;
    for (const CallTensor& tensor : tensors_.all()) {
        if (tensor.goes_out) results.emplace(tensor.name, tensor.host);
    }
    return results;
}

int Run::finish(bool json) {
    const std::string& name = options_.operation.name;
    // All that can be wrong with the file, wherever it is going to be computed.
    say_as_in_file([&] { check_operation(name, call_on(Place::file)->args()); });
    const std::unique_ptr<CCall> call = call_on(Place::stage);
    const auto start = std::chrono::steady_clock::now();
    say_as_in_file([&] { run_operation(name, call->args()); });
    stage_.wait();
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - start;
    stage_.fetch();

    std::optional<Difference> difference;
    if (!options_.expect.file.empty()) difference = compare(options_.expect, results());
    write_safetensors(options_.output, results());
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

// "tensors q, k, v; optionally, mask; gives out"
std::string tensors_text(const OperationInfo& operation) {
    std::string needed;
    std::string optional;
    std::string given;
    const auto add = [](std::string& all, const std::string& name) {
        all += (all.empty() ? "" : ", ") + name;
    };
    for (const OperationField& field : operation.fields) {
        for (const OperationField& element : field.elements)
            add(needed, element.name);
        if (field.use == OperationField::Use::written) {
            add(given, field.name);
        } else if (field.use != OperationField::Use::none) {
            add(field.optional ? optional : needed, field.name);
        }
    }
    return fmt::format("{}: tensors {}{}{}; gives {}", operation.does, needed,
                       optional.empty() ? "" : "; optionally, ", optional, given);
}

}  // namespace

void add_run(CLI::App& root, Request& request) {
    CLI::App& group = add_group(root, request, "run", "Run one operation on the tensors of a file");
    for (const OperationInfo& operation : operations()) {
        const auto options = std::make_shared<RunOptions>(operation);
        CLI::App& command =
            add_command(group, request, command_of(operation), tensors_text(operation),
                        [options](bool json) { return Run(*options).finish(json); });
        options->add_to(command);
    }
}

}  // namespace jitney::cli
