// The struct of jitney.h that a call's arguments are, filled field by field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "jitney/jitney.h"
#include "jitney/operations.hpp"

namespace jitney::cli {

class CCall {
  public:
    explicit CCall(const OperationInfo& operation);
    CCall(const CCall&) = delete;
    CCall& operator=(const CCall&) = delete;

    void set(const OperationField& field, const Tensor& tensor);
    void set(const OperationField& field,
             std::int64_t value);  // a flag, an integer, a word's place
    void set(const OperationField& field, double value);
    void set(const OperationField& field, const void* pointer);
    // The only element of a list; its fields are set by set_element().
    void set_list(const OperationField& list);
    void set_element(const OperationField& field, const Tensor& tensor);
    void set_logits_value(const OperationField& field, std::size_t place,
                          const jitney_logits_value& value);

    const void* args() const { return bytes_.data(); }

  private:
    template <class Value>
    void put(const CMember& member, const Value& value);
    const DLTensor* made(const Tensor& tensor);

    std::vector<std::byte> bytes_;
    std::vector<std::byte> element_;
    std::deque<DLTensor> tensors_;
    std::deque<Tensor> views_;  // whose sizes and strides the tensors show
};

}  // namespace jitney::cli
