// What the makers of the GPUs say of them.
#pragma once

#include <optional>
#include <string_view>

namespace jitney::cli {

// Dense bf16 and fp16 rate of the tensor cores in TFLOPS; nothing for a card that is not known.
std::optional<double> dense_tflops(std::string_view device_name);

}  // namespace jitney::cli
