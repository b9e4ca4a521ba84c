#include "policy/candidates.hpp"

#include <fmt/format.h>

namespace jitney::policy {
namespace {

// "takes fp32, fp16, bf16, not e4m3"
std::string format_text(const KernelInfo& kernel, std::int64_t format) {
    for (const ConstantInfo& constant : kernel.constants) {
        if (constant.name != "format") continue;
        const bool named = format >= 0 && format < std::ssize(constant.names);
        return fmt::format("takes {}, not {}", allowed_names(constant),
                           named ? constant.names[static_cast<std::size_t>(format)]
                                 : std::string_view("other types"));
    }
    return "takes no format";
}

}  // namespace

Candidate judge_arch_and_format(KernelId id, const Arch& arch, int format) noexcept {
    const KernelInfo& kernel = info(id);
    if (!runs_on(kernel, arch)) {
        const bool exact = kernel.exact_arch.number != 0;
        return {id, exact ? Reason::other_arch : Reason::arch_too_old, kernel.minimum_arch,
                arch.number};
    }
    if (!takes_format(kernel, format)) return {id, Reason::format_unknown, format};
    return {id};
}

Candidate judge_head_dim(KernelId id, int head_dim) noexcept {
    const Range range = head_dim_range(info(id));
    if (head_dim % range.multiple != 0) {
        return {id, Reason::head_dim_not_multiple, head_dim, range.multiple};
    }
    if (head_dim > range.maximum) return {id, Reason::head_dim_too_large, head_dim, range.maximum};
    return {id};
}

std::string reason_text(const Candidate& c) {
    switch (c.reason) {
        case Reason::accepted:
            return {};
        case Reason::arch_too_old:
            return fmt::format("needs sm_{} or newer, this is sm_{}", c.a, c.b);
        case Reason::other_arch:
            return fmt::format("needs {}, this is sm_{}", arch_needed(info(c.kernel)), c.b);
        case Reason::no_fp8_tensor_cores:
            return fmt::format("FP8 tensor cores need sm_{} or newer, this is sm_{}", c.a, c.b);
        case Reason::format_needs_scalar:
            return "the tensor cores take bf16 and fp16, not fp32";
        case Reason::head_dim_not_multiple:
            return fmt::format("head_dim {} is not a multiple of {}", c.a, c.b);
        case Reason::head_dim_too_large:
            return fmt::format("head_dim {} is above {}", c.a, c.b);
        case Reason::not_aligned:
            return "pointers must be 16-byte aligned and strides multiples of 8 elements";
        case Reason::rows_not_aligned:
            return "every row of a and b must begin at a multiple of 16 bytes";
        case Reason::not_along_k:
            return "takes a as [m, k] and b as [n, k]";
        case Reason::nothing_along_k:
            return "there is nothing to multiply: k is 0";
        case Reason::not_mapped:
            return "the tensor copy engine takes strides above 0 and below 2^40 bytes";
        case Reason::mask_too_wide:
            return fmt::format("the mask has {} keys, more than {}", c.a, c.b);
        case Reason::packed_queries:
            return "takes requests of one length, not packed ones";
        case Reason::append_needs_decode:
            return "does not append: write the new keys and values to the cache before the call";
        case Reason::too_many_queries:
            return fmt::format("q_len {} is above {}", c.a, c.b);
        case Reason::shared_memory:
            return fmt::format("needs {} bytes of shared memory, a block here has {}", c.a, c.b);
        case Reason::grid_too_large:
            return fmt::format("needs {} blocks, a grid has at most {}", c.a, c.b);
        case Reason::not_forced:
            return "another kernel was asked for by name";
        case Reason::format_unknown:
            return format_text(info(c.kernel), c.a);
        case Reason::too_many_rows:
            return fmt::format("q_len times the queries of a KV head is {}, above {}", c.a, c.b);
        case Reason::too_many_keys:
            return fmt::format("kv_len {} is above {}", c.a, c.b);
        case Reason::batch_invariant:
            return "its results are not those of the kernel that runs smaller batches: split the "
                   "batch";
        case Reason::token_too_large:
            return fmt::format("heads times head_dim is {}, above {}", c.a, c.b);
        case Reason::too_many_tiles:
            return fmt::format("needs {} times {} tiles, above {}", c.a, c.b, kMaxTiles);
        case Reason::row_too_long:
            return fmt::format("a row has {} elements, more than {}", c.a, c.b);
        case Reason::other_granularity:
            return "makes scales of another granularity";
    }
    return "unknown reason";
}

}  // namespace jitney::policy
