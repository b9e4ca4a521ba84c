#include "operations/reference/rows.hpp"

#include "jitney/error.hpp"
#include "operations/reference/numeric.hpp"

namespace jitney::reference {

namespace {

template <typename Storage, typename Convert>
void read_as(const Row& row, std::int64_t count, double* target, std::int64_t step,
             Convert convert) {
    for (std::int64_t i = 0; i < count; ++i) {
        target[i * step] = static_cast<double>(convert(load_bits<Storage>(row.at(i))));
    }
}

template <typename Convert>
void write_as(const Row& row, std::int64_t count, const double* source, Convert convert) {
    for (std::int64_t i = 0; i < count; ++i)
        store_bits(row.at(i), convert(source[i]));
}

}  // namespace

void read_row(const Row& row, std::int64_t count, double* target, std::int64_t step) {
    switch (row.dtype) {
        case DType::fp32:
            return read_as<float>(row, count, target, step, [](float value) { return value; });
        case DType::fp16:
            return read_as<std::uint16_t>(row, count, target, step, from_fp16);
        case DType::bf16:
            return read_as<std::uint16_t>(row, count, target, step, from_bf16);
        case DType::fp8_e4m3:
            return read_as<std::uint8_t>(row, count, target, step, from_e4m3);
        case DType::fp8_e5m2:
            return read_as<std::uint8_t>(row, count, target, step, from_e5m2);
        case DType::boolean:
        case DType::int32:
        case DType::int64:
            break;
    }
    throw Error(ErrorCode::internal, "a row of numbers was asked of a tensor that holds none");
}

void write_row(const Row& row, std::int64_t count, const double* source) {
    switch (row.dtype) {
        case DType::fp32:
            return write_as(row, count, source,
                            [](double value) { return static_cast<float>(value); });
        case DType::fp16:
            return write_as(row, count, source, to_fp16);
        case DType::bf16:
            return write_as(row, count, source, to_bf16);
        case DType::fp8_e4m3:
            return write_as(row, count, source, to_e4m3);
        case DType::fp8_e5m2:
            return write_as(row, count, source, to_e5m2);
        case DType::boolean:
        case DType::int32:
        case DType::int64:
            break;
    }
    throw Error(ErrorCode::internal, "a row of numbers was to be written to a tensor of none");
}

}  // namespace jitney::reference
