// jitney run OP: one operation on the tensors of a file.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/backend_choice.hpp"
#include "cli/command.hpp"
#include "cli/compare.hpp"
#include "cli/memory.hpp"
#include "cli/safetensors.hpp"

namespace jitney::cli {

// What every operation is given.
struct RunOptions {
    std::string input;
    std::string output;
    BackendOptions backend;
    ExpectOptions expect;

    void add_to(CLI::App& command);
};

// One run: reads the inputs, stages them, times the call, and writes and compares the outputs.
class Run {
  public:
    // `takes` are the names that the file may hold.
    Run(const RunOptions& options, const std::vector<std::string_view>& takes);

    bool has(std::string_view name) const { return file_.find(name) != nullptr; }
    // The tensor as it stands in the file. Throws Error where it is not there.
    const Tensor& at(std::string_view name) const;
    // An int64 tensor of that name counts as int32 from here on. Throws Error where a value can't.
    void narrow(std::string_view name);

    // Views to call with.
    Tensor input(std::string_view name) { return stage_.input(at(name)); }
    std::optional<Tensor> optional_input(std::string_view name);
    Tensor output(const std::string& name, DType dtype, std::span<const std::int64_t> shape);
    // A tensor of the file that the call changes, and that is written out as it is then.
    Tensor updated(std::string_view name);

    // Makes the call, then writes and reports; the exit status.
    int finish(const std::function<void()>& call, bool json);

  private:
    void report(double milliseconds, const std::optional<Difference>& difference, bool json) const;

    const RunOptions& options_;
    TensorFile file_;
    BackendChoice backend_;
    Stage stage_;
    std::map<std::string, HostTensor, std::less<>> narrowed_;
    std::map<std::string, HostTensor, std::less<>> outputs_;
    TensorsByName updated_;
};

// One a file.
void add_run_attention(CLI::App& group, Request& request);
void add_run_rotary(CLI::App& group, Request& request);
void add_run_fp8_quantize(CLI::App& group, Request& request);
void add_run_fp8_gemm(CLI::App& group, Request& request);

}  // namespace jitney::cli
