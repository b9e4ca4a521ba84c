// Views of host memory, and an Error caught across the library's boundary.
#include <jitney/error.hpp>
#include <jitney/tensor.hpp>

int main() {
    float data[6] = {};
    const jitney::Device cpu{jitney::DeviceType::cpu, 0};
    const auto view = jitney::Tensor::contiguous(data, jitney::DType::fp32, {2, 3}, cpu);
    try {
        jitney::Tensor::contiguous(data, jitney::DType::fp32, {1, 1, 1, 1, 1, 1}, cpu);
        return 1;
    } catch (const jitney::Error& error) {
        return error.code() == jitney::ErrorCode::invalid_argument && view.strides[0] == 3 ? 0 : 1;
    }
}
