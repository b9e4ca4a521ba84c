#include "cli/c_call.hpp"

#include <cstring>
#include <utility>

namespace jitney::cli {

namespace {

DLDataType type_of(DType dtype) {
    const auto type = [dtype](int code) {
        return DLDataType{static_cast<std::uint8_t>(code),
                          static_cast<std::uint8_t>(8 * size_of(dtype)), 1};
    };
    switch (dtype) {
        case DType::fp32:
        case DType::fp16:
            return type(kDLFloat);
        case DType::bf16:
            return type(kDLBfloat);
        case DType::fp8_e4m3:
            return type(JITNEY_DL_FLOAT8_E4M3FN);
        case DType::fp8_e5m2:
            return type(JITNEY_DL_FLOAT8_E5M2);
        case DType::boolean:
            return type(JITNEY_DL_BOOL);
        case DType::int32:
        case DType::int64:
            break;
    }
    return type(kDLInt);
}

}  // namespace

template <class Value>
void CCall::put(const CMember& member, const Value& value) {
    std::memcpy(bytes_.data() + member.offset, &value, sizeof value);
}

CCall::CCall(const OperationInfo& operation) : bytes_(operation.c_bytes) {
    put({}, operation.c_bytes);
}

const DLTensor* CCall::made(const Tensor& tensor) {
    Tensor& view = views_.emplace_back(tensor);
    DLTensor& made = tensors_.emplace_back();
    made.data = view.data;
    made.device = {view.device.type == DeviceType::cpu ? kDLCPU : kDLCUDA, view.device.index};
    made.ndim = view.ndim;
    made.dtype = type_of(view.dtype);
    made.shape = view.shape.data();
    made.strides = view.strides.data();
    return &made;
}

void CCall::set(const OperationField& field, const Tensor& tensor) {
    put(field.c.at(0), made(tensor));
}

void CCall::set(const OperationField& field, std::int64_t value) {
    if (field.c.size() > 1) put(field.c[0], std::int32_t{1});
    const CMember& member = field.c.back();
    if (member.type == "int64") {
        put(member, value);
    } else {
        put(member, static_cast<std::int32_t>(value));
    }
}

void CCall::set(const OperationField& field, double value) {
    put(field.c.at(0), static_cast<float>(value));
}

void CCall::set(const OperationField& field, const void* pointer) {
    put(field.c.at(0), pointer);
}

void CCall::set_list(const OperationField& list) {
    element_.resize(list.elements.size() * sizeof(const DLTensor*));
    put(list.c.at(0), static_cast<const void*>(element_.data()));
    put(list.c.at(1), std::size_t{1});
}

void CCall::set_element(const OperationField& field, const Tensor& tensor) {
    const DLTensor* const element = made(tensor);
    std::memcpy(element_.data() + field.c.at(0).offset, &element, sizeof element);
}

void CCall::set_logits_value(const OperationField& field, std::size_t place,
                             const jitney_logits_value& value) {
    put({{}, field.c.at(0).offset + place * sizeof value}, value);
}

}  // namespace jitney::cli
