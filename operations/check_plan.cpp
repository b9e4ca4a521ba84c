#include "operations/check_plan.hpp"

#include <array>

#include "operations/refuse.hpp"

namespace jitney::checks {

void refuse_no_plan() {
    refuse("the plan is of no call: make one with the arguments of a call before it runs");
}

void refuse_other_value(const std::string& name) {
    refuse("{} is not what it was when the plan was made: make a plan for such calls", name);
}

void refuse_other_count(const std::string& name, std::size_t given, std::size_t planned) {
    refuse("there are {} {}, and the plan was made for {}: make a plan for such calls", given, name,
           planned);
}

void refuse_unaligned() {
    refuse(
        "the plan's kernel reads 16 bytes at a time, and a tensor of the call does not begin at a "
        "multiple of that: align it, or make the plan with tensors that begin like it");
}

void check_placed(const std::string& name, const std::string& source_name, bool in_place,
                  bool planned) {
    if (in_place || !planned) return;
    refuse(
        "{} lies apart from {}, and the plan was made for one in its place: make a plan for such "
        "calls",
        name, source_name);
}

void check_like(const std::string& name, const Tensor& given, const Tensor& planned,
                bool sized_anew) {
    if (given.dtype != planned.dtype) {
        refuse("{} has the dtype {}, and the plan was made for {}: make a plan for such calls",
               name, name_of(given.dtype), name_of(planned.dtype));
    }
    if (!is_same_place(given.device, planned.device)) {
        refuse("{} is in {}, and the plan was made for {}: make a plan there", name,
               text_of(given.device), text_of(planned.device));
    }
    std::array<std::int64_t, Tensor::max_dims> shape = given.shape;
    if (sized_anew) shape[0] = planned.shape[0];
    if (given.ndim != planned.ndim || shape != planned.shape) {
        refuse("{} has the shape {}, and the plan was made for {}: make a plan for such calls",
               name, shape_text(given), shape_text(planned));
    }
    if (is_empty(given)) return;
    for (std::size_t i = 0; i < static_cast<std::size_t>(given.ndim); ++i) {
        if (given.shape[i] <= 1 || given.strides[i] == planned.strides[i]) continue;
        refuse("{} has the strides {}, and the plan was made for {}: make a plan for such calls",
               name, strides_text(given), strides_text(planned));
    }
}

void check_given(const std::string& name, bool given, bool planned) {
    if (given == planned) return;
    refuse("{} was {}, and the plan was made {} it: make a plan for such calls", name,
           given ? "given" : "left out", planned ? "with" : "without");
}

}  // namespace jitney::checks
