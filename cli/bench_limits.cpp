#include "cli/bench_limits.hpp"

#include <array>

namespace jitney::cli {

namespace {

struct Rate {
    std::string_view name;  // the first that is part of the device's name counts
    double tflops;
};

// NVIDIA's data sheets, without sparsity.
constexpr std::array kRates = {
    Rate{"H200 NVL", 835.5}, Rate{"H200", 989.4},      Rate{"H100 PCIe", 756.5},
    Rate{"H100 NVL", 835.5}, Rate{"H100 80GB", 989.4}, Rate{"A100", 312.0},
    Rate{"A30", 165.0},      Rate{"L40S", 362.0},      Rate{"B200", 2250.0},
};

}  // namespace

std::optional<double> dense_tflops(std::string_view device_name) {
    // A Grace superchip's GPU may have other clocks.
    if (device_name.find("GB200") != std::string_view::npos) return std::nullopt;
    for (const Rate& rate : kRates) {
        if (device_name.find(rate.name) != std::string_view::npos) return rate.tflops;
    }
    return std::nullopt;
}

}  // namespace jitney::cli
