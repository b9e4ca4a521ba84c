// The call that a problem is: its tensors, which have no memory, follow from the sizes that are
// told.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.hpp"
#include "cli/c_call.hpp"
#include "cli/call_tensors.hpp"
#include "cli/field_options.hpp"
#include "cli/sizes.hpp"

namespace jitney::cli {

// A problem as the command line says it, beside the options of fields that are no tensors.
struct ToldProblem {
    std::map<std::string, Shape, std::less<>> shapes;         // by field, or by option
    std::map<std::string, std::string, std::less<>> formats;  // by field
    std::map<std::string, std::int64_t, std::less<>> sizes;   // by name
    std::map<std::string, std::string, std::less<>> choices;  // by option
    std::set<std::string, std::less<>> options;               // the short forms that were given
    std::string format = "bf16";
    std::vector<int> ends;  // where each request's rows end, after a 0; empty: not known
};

class ProblemCall {
  public:
    // The problem of `operation`, as its options tell it; `told` and `options` live as long as
    // this. Throws Error where the tensors do not follow.
    ProblemCall(const OperationInfo& operation, const ToldProblem& told,
                const FieldOptions& options, Device device);
    ProblemCall(const ProblemCall&) = delete;
    ProblemCall& operator=(const ProblemCall&) = delete;

    // Whose call it is: the problem's, or one that an option names.
    const OperationInfo& operation() const { return *called_; }
    const std::vector<CallTensor>& tensors() const { return tensors_; }
    const Tensor* find(std::string_view field) const;
    std::optional<std::int64_t> size(std::string_view name) const { return sizes_.value_of(name); }
    bool holds(std::string_view condition) const;
    // The struct of the call, on its tensors as they are, or on these in the order of tensors().
    std::unique_ptr<CCall> arguments() const;
    std::unique_ptr<CCall> on(const std::vector<Tensor>& tensors) const;

  private:
    void give(std::string_view tensors);
    bool any_holds(std::string_view conditions) const;
    bool chooses(std::string_view option, std::string_view word) const;
    void fit(const std::string& option, std::string_view text, const Shape& shape);
    void fit_shapes();
    void fit_lengths(const ProblemOption& option);
    void check_options() const;
    void tell_sizes();
    void check_size(const ProblemSize& size) const;
    Shape shape_of_input(const OperationField& field) const;
    void make_input(const OperationField& field, Device device);
    void make_tensors();
    [[noreturn]] void refuse_shape(const OperationField& field) const;
    const OperationField* field_named(std::string_view name) const;
    const Shape* shape_of_option(const ProblemOption& option) const;

    const OperationInfo& problem_;
    const OperationInfo* called_;
    const ToldProblem& told_;
    const FieldOptions& options_;
    Sizes sizes_;
    std::map<std::string, std::string, std::less<>> given_;  // tensors; the shape, or empty
    std::set<std::string, std::less<>> left_out_;
    TensorsByName inputs_;
    std::vector<CallTensor> tensors_;
    LogitsFunction logits_;
};

}  // namespace jitney::cli
