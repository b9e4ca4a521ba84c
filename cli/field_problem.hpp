// A call that explain and bench are asked about: shapes and options instead of tensors, as the list
// of fields and the short forms beside it (jitney/problem.hpp) have them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/field_options.hpp"
#include "cli/problem_call.hpp"

namespace CLI {
class App;
}

namespace jitney::cli {

class FieldProblem {
  public:
    explicit FieldProblem(const OperationInfo& operation)
        : operation_(operation), options_(operation) {}

    void add_to(CLI::App& command);
    // On a device, its pointers null. Throws Error.
    std::shared_ptr<const ProblemCall> call(Device device) const {
        return std::make_shared<ProblemCall>(operation_, told_, options_, device);
    }

    const FieldOptions& options() const { return options_; }
    // The ends of each request's rows, after a 0; empty: not known.
    const std::vector<int>& ends() const { return told_.ends; }

  private:
    void add_field(CLI::App& command, const OperationField& field);
    void add_short(CLI::App& command, const ProblemOption& option);
    void add_word(CLI::App& command, const ProblemOption& option);

    const OperationInfo& operation_;
    FieldOptions options_;
    ToldProblem told_;
};

}  // namespace jitney::cli
