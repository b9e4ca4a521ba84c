// Logits functions of the tests, by the names that covered.txt gives them.
#pragma once

#include <stdexcept>
#include <string_view>

#include "jitney/logits.hpp"

namespace jitney::tests {

// The soft cap and ALiBi as a caller would write them; and one that depends on all it is told.
inline LogitsFunction logits_function(std::string_view name) {
    if (name == "softcap") {
        return LogitsFunction("cap * tanh_fast(score / cap)", {"float cap"});
    }
    if (name == "alibi") {
        return LogitsFunction("score - slopes[head] * fabsf(static_cast<float>(place - key))",
                              {"const float* slopes"});
    }
    if (name == "places") {
        return LogitsFunction(
            "const int sum = 3 * batch + 5 * head + 7 * query + 11 * key + kv_len - q_len;\n"
            "if (sum % 5 == 0) return -INFINITY;\n"
            "return score + step * static_cast<float>((sum + static_cast<int>(offset)) % 9)\n"
            "       - bias[key];",
            {"float step", "long long offset", "const float* bias"});
    }
    throw std::logic_error("no such logits function");
}

}  // namespace jitney::tests
