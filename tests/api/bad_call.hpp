// Calls that must be refused: what is changed in a good one, and what the refusal says.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "jitney/error.hpp"
#include "jitney/tensor.hpp"

namespace jitney::tests {

template <class Args>
struct BadCall {
    std::string name;
    std::function<void(Args&)> change;
    std::vector<std::string> words;  // all of them stand in the sentence
    ErrorCode code = ErrorCode::invalid_argument;
};

inline void reshape(Tensor& tensor, std::initializer_list<std::int64_t> shape) {
    tensor = Tensor::contiguous(tensor.data, tensor.dtype, shape, tensor.device);
}

// One sentence: no line break, no full stop inside or at the end, not empty.
inline void check_sentence(const std::string& text) {
    CHECK(text.size() > 20);
    CHECK(text.find('\n') == std::string::npos);
    CHECK(text.back() != '.');
}

template <class Args, class Call>
void check_refused(const BadCall<Args>& bad, Args args, const Call& call) {
    CAPTURE(bad.name);
    bad.change(args);
    try {
        call(args);
        FAIL_CHECK("it was accepted");
    } catch (const Error& error) {
        const std::string text = error.what();
        CAPTURE(text);
        CHECK(error.code() == bad.code);
        check_sentence(text);
        for (const std::string& word : bad.words)
            CHECK_MESSAGE(text.find(word) != std::string::npos, "no word of: ", word);
    }
}

}  // namespace jitney::tests
