#include "tests/api/observed_call.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <exception>
#include <string_view>
#include <thread>

#include "jitney/backend.hpp"
#include "kernel_sources/attention/prefill_wgmma.h"
#include "tests/api/call_variations.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/api/software_kernels.hpp"

namespace jitney::tests {
namespace {

fake::Cuda* gpu = nullptr;
std::vector<std::string> noted;

// Parts of the keys are not of the geometry, and change no result that is computed in software.
std::string splits_of(std::string_view image, void** parameters) {
    if (image.find("\"attention/prefill") == std::string_view::npos &&
        image.find("\"attention/decode") == std::string_view::npos) {
        return {};
    }
    const bool wgmma = image.find("\"attention/prefill_wgmma") != std::string_view::npos;
    const auto& params = wgmma ? static_cast<const PrefillWgmmaParams*>(parameters[0])->attention
                               : *static_cast<const AttentionParams*>(parameters[0]);
    return fmt::format("{} splits, of {}, {} parts, {} tiles", params.splits, params.split_keys,
                       params.split_parts, params.row_tiles);
}

void note_and_run(const char* image, void** parameters) {
    const fake::Cuda::Launch& launch = gpu->launch;
    noted.push_back(fmt::format("{}x{}x{} blocks of {}x{}x{}, {} bytes, {}", launch.grid[0],
                                launch.grid[1], launch.grid[2], launch.block[0], launch.block[1],
                                launch.block[2], launch.shared_bytes,
                                splits_of(image, parameters)));
    run_software_kernel(image, parameters);
}

// What the reference takes in place of a call with a logits function that multiplies.
AttentionArgs without_logits(AttentionArgs args) {
    if (!args.logits) return args;
    const auto head_dim = args.q.shape.at(static_cast<std::size_t>(args.q.ndim - 1));
    const float scale = args.scale.value_or(1.0f / std::sqrt(static_cast<float>(head_dim)));
    const auto bits = static_cast<std::uint32_t>(args.logits_values[0].bits());
    const float own = args.logits == half_factor() ? 0.5f : 1.0f;
    args.scale = scale * std::bit_cast<float>(bits) * own;
    args.logits = {};
    args.logits_values = {};
    return args;
}
template <class Args>
Args without_logits(const Args& args) {
    return args;
}

// Its lists of tensors, with those that it shows in memory of the host's.
template <class Args>
struct HostLists {
    void take(Args&) {}
};
template <>
struct HostLists<MergeStatesArgs> {
    void take(MergeStatesArgs& args) {
        parts.assign(args.parts.begin(), args.parts.end());
        for (PartialState& part : parts)
            part.out.device = part.lse.device = {DeviceType::cpu, 0};
        args.parts = parts;
    }
    std::vector<PartialState> parts;
};

// Of the elements that the tensor has, in order.
std::vector<double> numbers_of(const Tensor& tensor) {
    std::vector<double> numbers;
    std::array<std::int64_t, Tensor::max_dims> at{};
    for (std::int64_t i = 0; i < tensor.elements(); ++i) {
        std::int64_t rest = i;
        std::int64_t offset = 0;
        for (auto dim = static_cast<std::size_t>(tensor.ndim); dim-- > 0;) {
            at[dim] = rest % tensor.shape[dim];
            rest /= tensor.shape[dim];
            offset += at[dim] * tensor.strides[dim];
        }
        numbers.push_back(number_at(tensor, offset));
    }
    return numbers;
}

bool is_close(double actual, double expected, DType dtype) {
    if (actual == expected || (std::isnan(actual) && std::isnan(expected))) return true;
    const double relative = dtype == DType::fp32 ? 1e-5 : 8e-3;
    return std::abs(actual - expected) <= 1e-5 + relative * std::abs(expected);
}

}  // namespace

std::string difference(const Observed& seen, const Observed& expected) {
    if (seen.error != expected.error)
        return fmt::format("its error is '{}' and not '{}'", seen.error, expected.error);
    if (seen.ran != expected.ran) return fmt::format("{} ran, not {}", seen.ran, expected.ran);
    if (seen.launches != expected.launches) {
        return fmt::format("it launched {}, not {}", fmt::join(seen.launches, "; "),
                           fmt::join(expected.launches, "; "));
    }
    return seen.memory == expected.memory ? "" : "it left other bytes";
}

void start_observed_gpu() {
    gpu = &start_software_gpu();
    gpu->kernel = &note_and_run;
}

Observed observe(CallArena& arena, const std::function<void()>& call) {
    arena.restore();
    noted.clear();
    Observed seen;
    try {
        call();
    } catch (const std::exception& error) {
        seen.error = error.what();
    }
    seen.ran = last_run();
    seen.launches = noted;
    if (!seen.refused()) seen.memory = arena.take_contents();
    return seen;
}

Observed observe_alone(CallArena& arena, const std::vector<std::function<void()>>& calls) {
    Observed seen;
    std::jthread([&] {
        for (const auto& call : calls)
            seen = observe(arena, call);
    }).join();
    return seen;
}

template <class Args>
std::string difference_from_reference(CallArena& arena, const Args& args, const Observed& seen) {
    Args host = without_logits(args);
    for_each_tensor(host, [](const auto&, Tensor& tensor) {
        tensor.device = {DeviceType::cpu, 0};
    });
    HostLists<Args> lists;
    lists.take(host);
    if constexpr (requires { host.workspace; }) host.workspace = {};
    const Observed expected = observe(arena, [&] { call_operation(host); });
    if (expected.refused()) return {};
    std::string found;
    for_each_tensor(host, [&](const auto& field, const Tensor& tensor) {
        if (field.access != Access::written && field.access != Access::updated) return;
        const std::vector<double> right = numbers_of(tensor);
        arena.set_contents(seen.memory);
        const std::vector<double> got = numbers_of(tensor);
        arena.set_contents(expected.memory);
        for (std::size_t i = 0; i < right.size(); ++i) {
            if (!found.empty() || is_close(got[i], right[i], tensor.dtype)) continue;
            found =
                fmt::format("element {} of {} is {} and not {}", i, field.name, got[i], right[i]);
        }
    });
    return found;
}

#define JITNEY_DEFINE(name, call, Args) \
    template std::string difference_from_reference(CallArena&, const Args&, const Observed&);
JITNEY_FOR_EACH_OPERATION(JITNEY_DEFINE)
#undef JITNEY_DEFINE

}  // namespace jitney::tests
