// Views of tensors.
#include "jitney/tensor.hpp"

#include "tests/api/bad_call.hpp"

namespace jitney::tests {
namespace {

template <class Call>
void check_invalid(const Call& call, const std::string& word) {
    try {
        call();
        FAIL_CHECK("it was accepted");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::invalid_argument);
        CHECK(std::string(error.what()).find(word) != std::string::npos);
        check_sentence(error.what());
    }
}

}  // namespace

TEST_CASE("a contiguous view") {
    float data = 0;
    const Tensor tensor =
        Tensor::contiguous(&data, DType::fp32, {2, 3, 4, 5}, {DeviceType::cuda, 1});
    CHECK(tensor.data == &data);
    CHECK(tensor.ndim == 4);
    CHECK(tensor.elements() == 120);
    CHECK(tensor.strides == std::array<std::int64_t, 5>{60, 20, 5, 1, 0});
    CHECK(tensor.device == Device{DeviceType::cuda, 1});
    // The strides of an empty tensor are those of one that has something in it.
    CHECK(Tensor::contiguous(nullptr, DType::fp32, {2, 0, 4}).strides ==
          std::array<std::int64_t, 5>{4, 4, 1, 0, 0});
    CHECK(Tensor::contiguous(nullptr, DType::fp32, {2, 0, 4}).elements() == 0);
    // Without dimensions it is one number.
    CHECK(Tensor::contiguous(&data, DType::fp32, {}).elements() == 1);
}

TEST_CASE("views that can't be meant") {
    check_invalid(
        [] {
            Tensor::contiguous(nullptr, DType::fp32, {1, 1, 1, 1, 1, 1});
        },
        "6 dimensions");
    check_invalid([] { Tensor::contiguous(nullptr, DType::fp32, {1, -2}); }, "[1, -2]");
    check_invalid([] { Tensor::strided(nullptr, DType::fp32, {1, 2}, {1}); }, "1 strides");
    constexpr std::int64_t large = std::int64_t{1} << 32;
    check_invalid([] { Tensor::contiguous(nullptr, DType::fp32, {large, large}); }, "64 bits");
}

TEST_CASE("names and sizes of dtypes") {
    CHECK(std::string(name_of(DType::bf16)) == "bf16");
    CHECK(std::string(name_of(DType::boolean)) == "bool");
    CHECK(std::string(name_of(static_cast<DType>(99))) == "unknown");
    CHECK(size_of(DType::int64) == 8);
}

}  // namespace jitney::tests
