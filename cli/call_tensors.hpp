// The tensors of one call: those that a file holds, by the names of the fields, and the results,
// which are made by the rules that the fields tell.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/field_options.hpp"
#include "cli/memory.hpp"
#include "cli/safetensors.hpp"
#include "cli/sizes.hpp"
#include "jitney/operations.hpp"

namespace jitney::cli {

struct CallTensor {
    const OperationField* field;
    const OperationField* list;  // that it is an element of; null: of none
    std::string name;            // in files
    Tensor host;
    bool goes_out;
};

// Puts a tensor, such as its view on a GPU, in the place of one of a call.
void set(CCall& call, const CallTensor& place, const Tensor& view);

// What the tensors that are given come from.
struct TensorSource {
    const TensorsByName& tensors;
    std::function<const Tensor*(std::string_view name)> find;  // null: there is none
    std::string name;                                          // "in.safetensors"
    bool has_memory;  // results have some too, in host memory
    // Whether a result that may be left out is made; no value: as its field says. Empty: likewise.
    std::function<std::optional<bool>(const OperationField& result)> asks_for = {};
};

class CallTensors {
  public:
    // `source` lives as long as this. `parameters` are other tensors that it may hold, for a logits
    // function. Throws Error where a tensor is missing, or is none of the call's.
    CallTensors(const OperationInfo& operation, const FieldOptions& options,
                const TensorSource& source, const std::vector<std::string>& parameters = {});
    CallTensors(const CallTensors&) = delete;
    CallTensors& operator=(const CallTensors&) = delete;

    const std::vector<CallTensor>& all() const { return all_; }
    // A sentence that calls the tensors as the file does.
    std::string as_in_file(std::string_view sentence) const;

  private:
    using Use = OperationField::Use;

    bool has(std::string_view condition) const;
    Use use_of(const OperationField& field) const;
    void check_names(const std::vector<std::string>& parameters) const;
    void find_name(const OperationField& field);
    std::string name_of(const OperationField& field) const;
    void read(const OperationField& field, const OperationField* list);
    void make(const OperationField& field);
    DType dtype_of_result(const OperationField& field) const;
    const CallTensor* find(std::string_view field) const;
    [[noreturn]] void refuse_shape(const OperationField& field) const;

    const OperationInfo& operation_;
    const FieldOptions& options_;
    const TensorSource& source_;
    Sizes sizes_;
    std::vector<CallTensor> all_;
    std::deque<HostTensor> own_;
    std::map<std::string, std::string, std::less<>> other_names_;  // of fields, and of results
    std::vector<const OperationField*> odd_;  // of another number of sizes than any that is told
};

}  // namespace jitney::cli
