#include "operations/fp8_gemm/reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include "operations/reference/check.hpp"
#include "operations/reference/parallel.hpp"
#include "operations/reference/rows.hpp"

namespace jitney::reference {

namespace {

// A task has a square of the output, and goes through K in steps, so that what it unpacks fits into
// a cache.
constexpr std::int64_t kSide = 64;
constexpr std::int64_t kStep = 512;

constexpr std::int64_t kScaleBlock = 128;  // of k, and of columns of b

// An operand as rows of K, whichever way it lies in memory.
struct Operand {
    const Tensor& tensor;
    bool k_first;  // [k, side]

    std::int64_t side() const { return tensor.shape[k_first ? 1 : 0]; }
    std::int64_t k() const { return tensor.shape[k_first ? 0 : 1]; }

    // Elements [k, k + count) of that row, to target[0], target[step], ...
    void read(std::int64_t row, std::int64_t k, std::int64_t count, double* target,
              std::int64_t step) const {
        const std::size_t along_k = k_first ? 0 : 1;
        const std::int64_t offset = row * tensor.strides[1 - along_k] + k * tensor.strides[along_k];
        read_row(row_of(tensor, offset, static_cast<int>(along_k)), count, target, step);
    }
};

double number_of(const Tensor& tensor) {
    return static_cast<double>(load_bits<float>(static_cast<const std::byte*>(tensor.data)));
}

void require_number(const Tensor& tensor, const std::string& name) {
    require_host(tensor, name);
    require(tensor.dtype == DType::fp32 && tensor.elements() == 1, name + " must be one fp32");
}

std::int64_t blocks_of(std::int64_t size) {
    return (size + kScaleBlock - 1) / kScaleBlock;
}

// The factors that turn products of codes into products of numbers.
class Scales {
  public:
    explicit Scales(const Fp8Gemm& call) : call_(call) {}

    // Whether it differs along k.
    bool by_block() const { return call_.scale_a && call_.scale_a->ndim == 2; }
    // Of a row of a, a column of b, and a block of k where it differs along k.
    double of(std::int64_t row, std::int64_t column, std::int64_t block) const {
        if (call_.scale) return number_of(*call_.scale);
        return at(*call_.scale_a, row, block) *
               at(*call_.scale_b, by_block() ? column / kScaleBlock : column, block);
    }

  private:
    // One number has no dimension, or one of size 1.
    static double at(const Tensor& scale, std::int64_t side, std::int64_t block) {
        std::int64_t offset = 0;
        if (scale.ndim > 0 && scale.shape[0] > 1) offset += side * scale.strides[0];
        if (scale.ndim > 1 && scale.shape[1] > 1) offset += block * scale.strides[1];
        return static_cast<double>(
            load_bits<float>(static_cast<const std::byte*>(scale.data) +
                             offset * static_cast<std::int64_t>(sizeof(float))));
    }

    const Fp8Gemm& call_;
};

// `sides` scales along m or n, or as many blocks of them along n, with those along k.
void check_scale(const std::optional<Tensor>& scale, const std::string& name, std::int64_t side,
                 std::int64_t side_blocks, std::int64_t k) {
    require(scale.has_value(), "there is no " + name + ", and no scale in its place");
    require_host(*scale, name);
    require(scale->dtype == DType::fp32, name + " must be fp32");
    if (scale->ndim == 2) {
        require_shape(*scale, name, {side_blocks, blocks_of(k)});
    } else if (scale->ndim != 0 && !(scale->ndim == 1 && scale->shape[0] == 1)) {
        require_shape(*scale, name, {side});
    }
}

void check_scales(const Fp8Gemm& call, const Operand& a, const Operand& b) {
    if (call.scale) return require_number(*call.scale, "the scale");
    check_scale(call.scale_a, "scale_a", a.side(), a.side(), a.k());
    check_scale(call.scale_b, "scale_b", b.side(), blocks_of(b.side()), a.k());
    require((call.scale_a->ndim == 2) == (call.scale_b->ndim == 2),
            "scale_a and scale_b must both be of blocks, or neither");
}

void check(const Fp8Gemm& call, const Operand& a, const Operand& b) {
    for (const auto* operand : {&a, &b}) {
        const std::string name = operand == &a ? "a" : "b";
        require_host(operand->tensor, name);
        require(operand->tensor.ndim == 2, name + " must have two dimensions");
        require(
            operand->tensor.dtype == DType::fp8_e4m3 || operand->tensor.dtype == DType::fp8_e5m2,
            name + " must be fp8_e4m3 or fp8_e5m2");
    }
    require(a.k() == b.k(), "a has " + std::to_string(a.k()) + " along k and b " +
                                std::to_string(b.k()) + "; they must agree");
    require_host(call.out, "out");
    require_shape(call.out, "out", {a.side(), b.side()});
    check_scales(call, a, b);
    if (call.bias) {
        require_host(*call.bias, "bias");
        require_shape(*call.bias, "bias", {b.side()});
    }
    const bool fp8 = call.out.dtype == DType::fp8_e4m3 || call.out.dtype == DType::fp8_e5m2;
    require(fp8 == call.multiplier.has_value(), "an output in FP8 goes with a multiplier");
    if (call.multiplier) require_number(*call.multiplier, "the multiplier");
    if (call.amax) require_number(*call.amax, "amax");
}

// The sums of rows [row, row + rows) and columns [column, column + columns), kSide a row. Where
// scales differ along k, each term has its own.
std::vector<double> sums_of(const Operand& a, const Operand& b, const Scales& scales,
                            std::int64_t row, std::int64_t rows, std::int64_t column,
                            std::int64_t columns) {
    std::vector<double> sums(static_cast<std::size_t>(kSide * kSide), 0.0);
    std::vector<double> left(static_cast<std::size_t>(kStep));
    std::vector<double> right(static_cast<std::size_t>(kStep * kSide), 0.0);
    std::vector<double> unscaled(static_cast<std::size_t>(kSide));
    const std::int64_t most = scales.by_block() ? kScaleBlock : kStep;
    for (std::int64_t k = 0; k < a.k(); k += most) {
        const std::int64_t count = std::min(most, a.k() - k);
        for (std::int64_t j = 0; j < columns; ++j)
            b.read(column + j, k, count, right.data() + j, kSide);
        for (std::int64_t i = 0; i < rows; ++i) {
            a.read(row + i, k, count, left.data(), 1);
            double* const all = sums.data() + i * kSide;
            double* const sum = scales.by_block() ? unscaled.data() : all;
            if (scales.by_block()) std::fill(unscaled.begin(), unscaled.end(), 0.0);
            for (std::int64_t step = 0; step < count; ++step) {
                const double factor = left[static_cast<std::size_t>(step)];
                const double* const values = right.data() + step * kSide;
                for (std::int64_t j = 0; j < kSide; ++j)
                    sum[j] += factor * values[j];
            }
            for (std::int64_t j = 0; j < columns && scales.by_block(); ++j)
                all[j] += sum[j] * scales.of(row + i, column + j, k / kScaleBlock);
        }
    }
    return sums;
}

// The larger of two absolute values; NaN is above all.
double larger(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
    return std::max(a, b);
}

// Matrix `number` of several.
Tensor one_of(const Tensor& tensors, std::int64_t number) {
    Tensor one = tensors;
    one.data = static_cast<std::byte*>(tensors.data) +
               number * tensors.strides[0] * size_of(tensors.dtype);
    one.ndim = tensors.ndim - 1;
    std::copy(tensors.shape.begin() + 1, tensors.shape.end(), one.shape.begin());
    std::copy(tensors.strides.begin() + 1, tensors.strides.end(), one.strides.begin());
    return one;
}

Tensor rows_from(const Tensor& tensor, std::int64_t first, std::int64_t end) {
    Tensor rows = tensor;
    rows.data =
        static_cast<std::byte*>(tensor.data) + first * tensor.strides[0] * size_of(tensor.dtype);
    rows.shape[0] = end - first;
    return rows;
}

bool is_one_number(const Tensor& scale) {
    return scale.ndim == 0 || (scale.ndim == 1 && scale.shape[0] == 1);
}

// The product of the rows [first, end), which are those of a group.
Fp8Gemm product_of(const Fp8Gemm& call, std::int64_t group, std::int64_t first, std::int64_t end) {
    Fp8Gemm one = call;
    one.group_indptr.reset();
    one.a = rows_from(call.a, first, end);
    one.out = rows_from(call.out, first, end);
    one.b = one_of(call.b, group);
    if (call.scale_a && !is_one_number(*call.scale_a))
        one.scale_a = rows_from(*call.scale_a, first, end);
    if (call.scale_b && !is_one_number(*call.scale_b)) one.scale_b = one_of(*call.scale_b, group);
    if (call.bias && call.bias->ndim == 2) one.bias = one_of(*call.bias, group);
    return one;
}

void multiply_groups(const Fp8Gemm& call) {
    const Tensor& indptr = *call.group_indptr;
    require_host(indptr, "group_indptr");
    require(indptr.dtype == DType::int32 && indptr.ndim == 1 && indptr.shape[0] >= 2,
            "group_indptr must be int32 [groups + 1]");
    require(!call.trans_a, "groups go with rows of a");
    const auto place = [&indptr](std::int64_t group) {
        return std::int64_t{
            load_bits<std::int32_t>(static_cast<const std::byte*>(indptr.data) + group * 4)};
    };
    double largest = 0.0;
    for (std::int64_t group = 0; group + 1 < indptr.shape[0]; ++group) {
        const std::int64_t first = place(group);
        const std::int64_t end = place(group + 1);
        require(first >= 0 && end <= call.a.shape[0],
                "group_indptr must lie between 0 and the rows of a");
        if (end <= first) continue;
        fp8_gemm(product_of(call, group, first, end));
        if (call.amax) largest = larger(largest, number_of(*call.amax));
    }
    if (call.amax) {
        store_bits(static_cast<std::byte*>(call.amax->data), static_cast<float>(largest));
    }
}

}  // namespace

void fp8_gemm(const Fp8Gemm& call) {
    if (call.group_indptr) return multiply_groups(call);
    const Operand a{call.a, call.trans_a};
    const Operand b{call.b, !call.trans_b};
    check(call, a, b);
    const Scales scales(call);
    // A sum of nothing is 0, whatever the scale.
    const bool scales_sums = a.k() > 0 && !scales.by_block();
    const double multiplier = call.multiplier ? number_of(*call.multiplier) : 1.0;
    std::vector<double> bias(static_cast<std::size_t>(b.side()), 0.0);
    if (call.bias) read_row(row_of(*call.bias, 0, 0), b.side(), bias.data());

    std::mutex mutex;
    double amax = 0.0;
    const std::int64_t across = (b.side() + kSide - 1) / kSide;
    const std::int64_t down = (a.side() + kSide - 1) / kSide;
    parallel_for(across * down, [&](std::int64_t task) {
        const std::int64_t row = task / across * kSide;
        const std::int64_t column = task % across * kSide;
        const std::int64_t rows = std::min(kSide, a.side() - row);
        const std::int64_t columns = std::min(kSide, b.side() - column);
        std::vector<double> sums = sums_of(a, b, scales, row, rows, column, columns);
        double largest = 0.0;
        for (std::int64_t i = 0; i < rows; ++i) {
            double* const values = sums.data() + i * kSide;
            for (std::int64_t j = 0; j < columns; ++j) {
                if (scales_sums) values[j] *= scales.of(row + i, column + j, 0);
                values[j] += bias[static_cast<std::size_t>(column + j)];
                largest = larger(largest, std::abs(values[j]));
                if (call.multiplier) values[j] *= multiplier;
            }
            const auto& strides = call.out.strides;
            write_row(row_of(call.out, (row + i) * strides[0] + column * strides[1], 1), columns,
                      values);
        }
        const std::lock_guard lock(mutex);
        amax = larger(amax, largest);
    });
    if (call.amax) {
        store_bits(static_cast<std::byte*>(call.amax->data), static_cast<float>(amax));
    }
}

}  // namespace jitney::reference
