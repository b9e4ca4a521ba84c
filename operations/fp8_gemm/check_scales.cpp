#include "operations/fp8_gemm/check_scales.hpp"

#include "core/arithmetic.hpp"
#include "operations/refuse.hpp"

namespace jitney::checks {
namespace {

// What the scales of one operand may be.
struct Side {
    const char* whose;    // what `size` counts
    std::int64_t size;    // m, or n
    std::int64_t blocks;  // along it, where scales are of blocks
    std::int64_t blocks_of_k;
    std::int64_t groups;  // of which each has scales; 0: none
};

// "4, ", ahead of the sizes of what each of 4 groups has.
std::string groups_text(const Side& side) {
    return side.groups == 0 ? std::string() : fmt::format("{}, ", side.groups);
}

// Checks it, and returns how many dimensions it has beside that of groups: none for one number, one
// for rows or columns, two for blocks.
int check_scale(const Named& a, const Named& scale, const Side& side, Data data) {
    check_dtype(scale, DType::fp32);
    check_same_device(a, scale);
    const int ahead = side.groups == 0 ? 0 : 1;
    const int ndim = scale.tensor.ndim;
    if (ndim < 0 || ndim > ahead + 2) {
        refuse("{} has {} dimensions; it must have at most {}: {}", scale.name, ndim, ahead + 2,
               scale.dims);
    }
    check_sizes(scale, ndim);
    check_reach(scale);
    check_pointer(scale, data);
    const auto& shape = scale.tensor.shape;
    if (ndim == 0 || (ndim == 1 && shape[0] == 1)) return 0;
    if (ahead == 1 && shape[0] != side.groups) {
        refuse("{} has the shape {}; its first dimension must be that of the {} groups: {}",
               scale.name, shape_text(scale.tensor), side.groups, scale.dims);
    }
    const auto first = static_cast<std::size_t>(ahead);
    const int dims = ndim - ahead;
    if (dims == 1 && shape[first] != 1 && shape[first] != side.size) {
        refuse("{} has the shape {}; with one number a {} it must be [{}{}]: {}", scale.name,
               shape_text(scale.tensor), side.whose, groups_text(side), side.size, scale.dims);
    }
    if (dims == 2 && (shape[first] != side.blocks || shape[first + 1] != side.blocks_of_k)) {
        refuse(
            "{} has the shape {}; with one number a block it must be [{}{}, {}], and with one a "
            "{} [{}{}]",
            scale.name, shape_text(scale.tensor), groups_text(side), side.blocks, side.blocks_of_k,
            side.whose, groups_text(side), side.size);
    }
    return dims;
}

}  // namespace

void check_scalar(const Named& a, const Named& number, Data data) {
    check_number(number);
    check_same_device(a, number);
    check_pointer(number, data);
}

Fp8Scales check_scales(const Fp8GemmArgs& args, const Named& a, const Fp8GemmSizes& sizes,
                       Data data) {
    if (args.dequant_scale) {
        if (args.scale_a || args.scale_b) {
            refuse(
                "dequant_scale and {} are both given: give dequant_scale alone, or scale_a and "
                "scale_b, which stand in its place",
                args.scale_a ? "scale_a" : "scale_b");
        }
        check_scalar(a, {"dequant_scale", *args.dequant_scale, "one fp32"}, data);
        return kOneScale;
    }
    if (!args.scale_a && !args.scale_b)
        refuse("there is no scale: give dequant_scale, or scale_a and scale_b");
    if (!args.scale_a || !args.scale_b) {
        refuse("{} is given without {}: give both, of which either may be one number",
               args.scale_a ? "scale_a" : "scale_b", args.scale_a ? "scale_b" : "scale_a");
    }
    const Named scale_a{"scale_a", *args.scale_a, "[1], [m] or [m, ceil(k / 128)]"};
    const Named scale_b{"scale_b", *args.scale_b,
                        sizes.groups == 0 ? "[1], [n] or [ceil(n / 128), ceil(k / 128)]"
                                          : "[1], [groups], [groups, n] or [groups, ceil(n / 128), "
                                            "ceil(k / 128)]"};
    const std::int64_t k_blocks = ceil_div(sizes.k, kFp8ScaleBlock);
    const int dims_a = check_scale(a, scale_a, {"row of a", sizes.m, sizes.m, k_blocks, 0}, data);
    const int dims_b = check_scale(
        a, scale_b,
        {"column of b", sizes.n, ceil_div(sizes.n, kFp8ScaleBlock), k_blocks, sizes.groups}, data);
    if ((dims_a == 2) != (dims_b == 2)) {
        refuse("scale_a has the shape {} and scale_b {}: blocks along k must be given for both",
               shape_text(scale_a.tensor), shape_text(scale_b.tensor));
    }
    return dims_a == 2 ? kBlockScales : kSideScales;
}

}  // namespace jitney::checks
