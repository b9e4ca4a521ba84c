// A call that explain is asked about, told by its fields: shapes instead of tensors.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "cli/arguments.hpp"
#include "cli/c_call.hpp"
#include "cli/field_options.hpp"

namespace CLI {
class App;
}

namespace jitney::cli {

class FieldProblem {
  public:
    struct Call {
        std::string_view operation;
        std::unique_ptr<CCall> args;
    };

    explicit FieldProblem(const OperationInfo& operation)
        : operation_(&operation), options_(operation) {}

    void add_to(CLI::App& command);
    // The call, its pointers null.
    Call arguments(Device device) const;

  private:
    const OperationInfo* operation_;
    FieldOptions options_;
    std::map<std::string, Shape, std::less<>> shapes_;
    std::map<std::string, std::string, std::less<>> formats_;
    std::string format_ = "bf16";
};

}  // namespace jitney::cli
