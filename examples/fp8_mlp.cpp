// Trains a small network twice from the same weights on the same data: once with its linear layers
// in bf16, computed here, and once on FP8 (hybrid formats, delayed scaling). The losses end within
// 2% of each other.
//
//     example_fp8_mlp [host | gpu]     where the FP8 layers run: the reference backend, or GPU 0
#include <dlfcn.h>

#include <jitney/backend.hpp>
#include <jitney/error.hpp>
#include <jitney/fp8_linear.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int kRows = 1024;  // enough that the noise is not learned by heart
constexpr int kInputs = 16;
constexpr int kHidden = 64;
constexpr int kOutputs = 4;
constexpr int kSteps = 300;
constexpr int kLastSteps = 30;  // whose losses are compared
constexpr float kRate = 0.02f;
constexpr float kMomentum = 0.9f;

using Bf16 = std::uint16_t;
using Floats = std::vector<float>;
using Bf16s = std::vector<Bf16>;

Bf16 to_bf16(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return static_cast<Bf16>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
float from_bf16(Bf16 x) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16);
}
Bf16s to_bf16(const Floats& values) {
    Bf16s result;
    for (const float value : values)
        result.push_back(to_bf16(value));
    return result;
}

class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    float normal() {  // the sum of twelve
        float sum = -6.0f;
        for (int i = 0; i < 12; ++i) {
            state_ = state_ * 6364136223846793005u + 1442695040888963407u;
            sum += static_cast<float>(state_ >> 40) * 0x1p-24f;
        }
        return sum;
    }
    Floats normals(int count, float deviation) {
        Floats values;
        for (int i = 0; i < count; ++i)
            values.push_back(deviation * normal());
        return values;
    }

  private:
    std::uint64_t state_;
};

struct Gradients {
    Bf16s x;  // empty where it was not wanted
    Floats weight;
    Floats bias;
};

// y = x weight^T + bias, in whatever arithmetic.
class Linear {
  public:
    virtual ~Linear() = default;
    virtual Bf16s forward(const Bf16s& x, const Floats& weight, const Floats& bias) = 0;
    virtual Gradients backward(const Bf16s& grad_y, bool wants_x) = 0;
};

// bf16 operands, fp32 sums, bf16 results.
class Bf16Linear : public Linear {
  public:
    Bf16Linear(int in, int out) : in_(in), out_(out) {}

    Bf16s forward(const Bf16s& x, const Floats& weight, const Floats& bias) override {
        x_ = values(x);
        weight_ = values(to_bf16(weight));
        Bf16s y;
        for (int row = 0; row < kRows; ++row) {
            for (int o = 0; o < out_; ++o) {
                float sum = bias[index(o)];
                for (int i = 0; i < in_; ++i)
                    sum += x_[index(row * in_ + i)] * weight_[index(o * in_ + i)];
                y.push_back(to_bf16(sum));
            }
        }
        return y;
    }

    Gradients backward(const Bf16s& grad_y, bool wants_x) override {
        const Floats g = values(grad_y);
        Gradients gradients;
        gradients.weight.assign(index(out_ * in_), 0.0f);
        gradients.bias.assign(index(out_), 0.0f);
        for (int row = 0; row < kRows; ++row) {
            Floats grad_x(index(in_), 0.0f);
            for (int o = 0; o < out_; ++o) {
                const float of_y = g[index(row * out_ + o)];
                gradients.bias[index(o)] += of_y;
                for (int i = 0; i < in_; ++i) {
                    gradients.weight[index(o * in_ + i)] += of_y * x_[index(row * in_ + i)];
                    grad_x[index(i)] += of_y * weight_[index(o * in_ + i)];
                }
            }
            for (int i = 0; wants_x && i < in_; ++i)
                gradients.x.push_back(to_bf16(grad_x[index(i)]));
        }
        return gradients;
    }

  private:
    static std::size_t index(int i) { return static_cast<std::size_t>(i); }
    static Floats values(const Bf16s& codes) {
        Floats result;
        for (const Bf16 code : codes)
            result.push_back(from_bf16(code));
        return result;
    }

    int in_;
    int out_;
    Floats x_;
    Floats weight_;
};

// What is needed of the CUDA driver; a program that links it has no use for this.
class Driver {
  public:
    Driver() : library_(dlopen("libcuda.so.1", RTLD_NOW)) {
        if (library_ == nullptr) throw std::runtime_error("there is no CUDA driver here");
        int device = 0;
        void* context = nullptr;
        call(function<int(unsigned)>("cuInit")(0));
        call(function<int(int*, int)>("cuDeviceGet")(&device, 0));
        call(function<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, device));
        call(function<int(void*)>("cuCtxSetCurrent")(context));
    }
    void* allocate(std::size_t bytes) const {
        unsigned long long address = 0;
        call(function<int(unsigned long long*, std::size_t)>("cuMemAlloc_v2")(&address, bytes));
        return reinterpret_cast<void*>(address);
    }
    void release(void* memory) const {
        function<int(unsigned long long)>("cuMemFree_v2")(
            std::bit_cast<unsigned long long>(memory));
    }
    void copy_in(void* to, const void* from, std::size_t bytes) const {
        call(function<int(unsigned long long, const void*, std::size_t)>("cuMemcpyHtoD_v2")(
            std::bit_cast<unsigned long long>(to), from, bytes));
    }
    void copy_out(void* to, const void* from, std::size_t bytes) const {
        call(function<int(void*, unsigned long long, std::size_t)>("cuMemcpyDtoH_v2")(
            to, std::bit_cast<unsigned long long>(from), bytes));
    }

  private:
    template <class Signature>
    Signature* function(const char* name) const {
        void* symbol = dlsym(library_, name);
        if (symbol == nullptr) throw std::runtime_error(std::string("the driver has no ") + name);
        return reinterpret_cast<Signature*>(symbol);
    }
    static void call(int result) {
        if (result != 0) throw std::runtime_error("a call of the driver failed");
    }

    void* library_;
};

// Memory of the GPU, or of the host where there is no driver to ask.
class Buffer {
  public:
    Buffer(const Driver* driver, std::size_t bytes)
        : driver_(driver),
          data_(driver != nullptr ? driver->allocate(bytes) : std::malloc(bytes)) {}
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { driver_ != nullptr ? driver_->release(data_) : std::free(data_); }

    template <class T>
    void set(const std::vector<T>& values) {
        const std::size_t bytes = values.size() * sizeof(T);
        driver_ != nullptr ? driver_->copy_in(data_, values.data(), bytes)
                           : static_cast<void>(std::memcpy(data_, values.data(), bytes));
    }
    template <class T>
    std::vector<T> get(std::size_t count) const {
        std::vector<T> values(count);
        const std::size_t bytes = count * sizeof(T);
        driver_ != nullptr ? driver_->copy_out(values.data(), data_, bytes)
                           : static_cast<void>(std::memcpy(values.data(), data_, bytes));
        return values;
    }
    jitney::Tensor tensor(jitney::DType dtype, std::initializer_list<std::int64_t> shape) const {
        const jitney::Device host{jitney::DeviceType::cpu, 0};
        return jitney::Tensor::contiguous(data_, dtype, shape,
                                          driver_ != nullptr ? jitney::Device{} : host);
    }

  private:
    const Driver* driver_;
    void* data_;
};

class Fp8Linear : public Linear {
  public:
    Fp8Linear(const Driver* driver, int in, int out)
        : in_(in),
          out_(out),
          x_(driver, bytes(kRows * in, 2)),
          weight_(driver, bytes(out * in, 4)),
          bias_(driver, bytes(out, 4)),
          y_(driver, bytes(kRows * out, 2)),
          grad_y_(driver, bytes(kRows * out, 2)),
          grad_x_(driver, bytes(kRows * in, 2)),
          grad_weight_(driver, bytes(out * in, 4)),
          grad_bias_(driver, bytes(out, 4)),
          x_codes_(driver, bytes(kRows * in, 1)),
          weight_codes_(driver, bytes(out * in, 1)),
          scales_(driver, bytes(2, 4)),
          state_(driver, bytes(3 * jitney::fp8_state_columns(recipe_), 4)) {
        jitney::fp8_state_reset(state());
    }

    Bf16s forward(const Bf16s& x, const Floats& weight, const Floats& bias) override {
        using jitney::DType;
        x_.set(x);
        weight_.set(weight);
        bias_.set(bias);
        // [README
        jitney::Fp8LinearArgs args;
        args.x = x_.tensor(DType::bf16, {kRows, in_});
        args.weight = weight_.tensor(DType::fp32, {out_, in_});
        args.bias = bias_.tensor(DType::fp32, {out_});
        args.y = y_.tensor(DType::bf16, {kRows, out_});
        args.state = state();   // multipliers and the history of amax; the layer's own
        args.saved = saved();   // what the backward call needs
        args.recipe = recipe_;  // hybrid formats, delayed scaling
        jitney::fp8_linear(args);
        // README]
        return y_.get<Bf16>(bytes(kRows * out_, 1));
    }

    Gradients backward(const Bf16s& grad_y, bool wants_x) override {
        using jitney::DType;
        grad_y_.set(grad_y);
        jitney::Fp8LinearBackwardArgs args;
        args.grad_y = grad_y_.tensor(DType::bf16, {kRows, out_});
        args.saved = saved();
        if (wants_x) args.grad_x = grad_x_.tensor(DType::bf16, {kRows, in_});
        args.grad_weight = grad_weight_.tensor(DType::fp32, {out_, in_});
        args.grad_bias = grad_bias_.tensor(DType::fp32, {out_});
        args.state = state();
        args.recipe = recipe_;
        jitney::fp8_linear_backward(args);
        Gradients gradients;
        if (wants_x) gradients.x = grad_x_.get<Bf16>(bytes(kRows * in_, 1));
        gradients.weight = grad_weight_.get<float>(bytes(out_ * in_, 1));
        gradients.bias = grad_bias_.get<float>(bytes(out_, 1));
        return gradients;
    }

  private:
    static std::size_t bytes(int count, std::size_t each) {
        return static_cast<std::size_t>(count) * each;
    }
    jitney::Tensor state() const {
        return state_.tensor(jitney::DType::fp32, {3, jitney::fp8_state_columns(recipe_)});
    }
    jitney::Fp8LinearSaved saved() const {
        using jitney::DType;
        return {x_codes_.tensor(DType::fp8_e4m3, {kRows, in_}),
                weight_codes_.tensor(DType::fp8_e4m3, {out_, in_}),
                scales_.tensor(DType::fp32, {2})};
    }

    int in_;
    int out_;
    jitney::Fp8Recipe recipe_;
    Buffer x_;
    Buffer weight_;
    Buffer bias_;
    Buffer y_;
    Buffer grad_y_;
    Buffer grad_x_;
    Buffer grad_weight_;
    Buffer grad_bias_;
    Buffer x_codes_;
    Buffer weight_codes_;
    Buffer scales_;
    Buffer state_;
};

// Weights with momentum.
struct Parameters {
    Floats values;
    Floats velocity = Floats(values.size(), 0.0f);

    void step(const Floats& gradients) {
        for (std::size_t i = 0; i < values.size(); ++i) {
            velocity[i] = kMomentum * velocity[i] + gradients[i];
            values[i] -= kRate * velocity[i];
        }
    }
};

// Inputs, and what a network with other weights makes of them, with noise that nothing can learn.
struct Task {
    Bf16s x;
    Floats wanted;

    explicit Task(Random& random) {
        const Floats inputs = random.normals(kRows * kInputs, 1.0f);
        x = to_bf16(inputs);
        const Floats first = random.normals(kHidden * kInputs, 0.3f);
        const Floats second = random.normals(kOutputs * kHidden, 0.2f);
        for (int row = 0; row < kRows; ++row) {
            for (int o = 0; o < kOutputs; ++o) {
                float sum = 0.5f * random.normal();
                for (int h = 0; h < kHidden; ++h) {
                    float hidden = 0.0f;
                    for (int i = 0; i < kInputs; ++i)
                        hidden += at(inputs, row * kInputs + i) * at(first, h * kInputs + i);
                    sum += std::max(hidden, 0.0f) * at(second, o * kHidden + h);
                }
                wanted.push_back(sum);
            }
        }
    }
    static float at(const Floats& values, int i) { return values[static_cast<std::size_t>(i)]; }
};

// The mean squared error, the mean of the last steps.
double train(const Task& task, Linear& first, Linear& second) {
    Random random(7);
    Parameters weight_1{random.normals(kHidden * kInputs, 0.25f)};
    Parameters bias_1{Floats(kHidden, 0.0f)};
    Parameters weight_2{random.normals(kOutputs * kHidden, 0.125f)};
    Parameters bias_2{Floats(kOutputs, 0.0f)};
    double last_losses = 0.0;
    for (int step = 0; step < kSteps; ++step) {
        Bf16s hidden = first.forward(task.x, weight_1.values, bias_1.values);
        for (Bf16& each : hidden)
            each = (each & 0x8000u) != 0 ? Bf16{0} : each;
        const Bf16s y = second.forward(hidden, weight_2.values, bias_2.values);
        Bf16s grad_y;
        float loss = 0.0f;
        for (std::size_t i = 0; i < y.size(); ++i) {
            const float error = from_bf16(y[i]) - task.wanted[i];
            loss += error * error / static_cast<float>(y.size());
            grad_y.push_back(to_bf16(2.0f * error / static_cast<float>(y.size())));
        }
        Gradients of_second = second.backward(grad_y, true);
        for (std::size_t i = 0; i < hidden.size(); ++i)
            of_second.x[i] = hidden[i] == 0 ? Bf16{0} : of_second.x[i];
        const Gradients of_first = first.backward(of_second.x, false);
        weight_1.step(of_first.weight);
        bias_1.step(of_first.bias);
        weight_2.step(of_second.weight);
        bias_2.step(of_second.bias);
        if (step == 0) std::printf("  first loss %.5f\n", static_cast<double>(loss));
        if (step >= kSteps - kLastSteps) last_losses += static_cast<double>(loss) / kLastSteps;
    }
    std::printf("  last loss  %.5f\n", last_losses);
    return last_losses;
}

}  // namespace

int main(int count, char** arguments) try {
    const std::string where = count > 1 ? arguments[1] : "host";
    if (where != "host" && where != "gpu") {
        std::fprintf(stderr, "usage: example_fp8_mlp [host | gpu]\n");
        return 2;
    }
    std::unique_ptr<const Driver> driver;
    if (where == "gpu") driver = std::make_unique<const Driver>();
    Random random(1);
    const Task task(random);
    std::printf("bf16\n");
    Bf16Linear bf16_1(kInputs, kHidden);
    Bf16Linear bf16_2(kHidden, kOutputs);
    const double wanted = train(task, bf16_1, bf16_2);
    std::printf("FP8, hybrid formats, delayed scaling\n");
    Fp8Linear fp8_1(driver.get(), kInputs, kHidden);
    Fp8Linear fp8_2(driver.get(), kHidden, kOutputs);
    const double loss = train(task, fp8_1, fp8_2);
    std::printf("ran on: %s\n", jitney::last_run().c_str());
    const double ratio = loss / wanted;
    std::printf("the loss on FP8 is %.4f times that in bf16\n", ratio);
    return std::fabs(ratio - 1.0) <= 0.02 ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
}
