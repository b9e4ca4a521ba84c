#include "policy/candidates.hpp"

#include <fmt/format.h>

namespace jitney::policy {

std::string reason_text(const Candidate& c) {
    switch (c.reason) {
        case Reason::accepted:
            return {};
        case Reason::arch_too_old:
            return fmt::format("needs sm_{} or newer, this is sm_{}", c.a, c.b);
        case Reason::format_needs_scalar:
            return "the tensor cores take bf16 and fp16, not fp32";
        case Reason::head_dim_not_multiple:
            return fmt::format("head_dim {} is not a multiple of {}", c.a, c.b);
        case Reason::head_dim_too_large:
            return fmt::format("head_dim {} is above {}", c.a, c.b);
        case Reason::not_aligned:
            return "pointers must be 16-byte aligned and strides multiples of 8 elements";
        case Reason::too_many_queries:
            return fmt::format("q_len {} is above {}", c.a, c.b);
        case Reason::shared_memory:
            return fmt::format("needs {} bytes of shared memory, a block here has {}", c.a, c.b);
        case Reason::grid_too_large:
            return fmt::format("needs {} blocks, a grid has at most {}", c.a, c.b);
        case Reason::not_forced:
            return "another kernel was asked for by name";
    }
    return "unknown reason";
}

}  // namespace jitney::policy
