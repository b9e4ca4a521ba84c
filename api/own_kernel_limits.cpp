#include "api/own_kernel_limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "operations/refuse.hpp"

namespace jitney {
namespace {

using detail::LoadedOwnKernel;
using Places = std::vector<runtime::ParameterPlace>;

// A launch that is to be refused, with all that the sentence needs.
class Refusal {
  public:
    explicit Refusal(const OwnLaunch& launch)
        : name_(spec_of(launch.own, arch_on(launch.own, launch.device.major, launch.device.minor))),
          gpu_(launch.device.name) {}

    template <class... Args>
    [[noreturn]] void operator()(fmt::format_string<Args...> format, Args&&... args) const {
        checks::refuse("{}: {}", name_, fmt::format(format, std::forward<Args>(args)...));
    }
    const std::string& gpu() const { return gpu_; }

  private:
    std::string name_;
    std::string gpu_;
};

std::string text_of(const Dim3& sizes) {
    return fmt::format("{} x {} x {}", sizes.x, sizes.y, sizes.z);
}

bool within(const Dim3& sizes, const runtime::Dim3& most) noexcept {
    return sizes.x - 1 < most.x && sizes.y - 1 < most.y && sizes.z - 1 < most.z;
}

std::uint64_t product(const Dim3& sizes) noexcept {
    return std::uint64_t{sizes.x} * sizes.y * sizes.z;
}

// The cluster that the blocks of the launch will form.
Dim3 cluster_of(const LoadedOwnKernel& loaded, const KernelLaunch& shape) noexcept {
    const runtime::Dim3& fixed = loaded.limits.fixed_cluster;
    if (fixed.x == 0 || shape.cluster != Dim3{}) return shape.cluster;
    return {fixed.x, fixed.y, fixed.z};
}

bool fits(const LoadedOwnKernel& loaded, const KernelLaunch& shape) noexcept {
    const runtime::KernelLimits& limits = loaded.limits;
    if (!within(shape.grid, limits.grid) || !within(shape.block, limits.block) ||
        product(shape.block) > limits.block_threads ||
        shape.shared_bytes > static_cast<std::uint32_t>(loaded.kernel.shared_bytes)) {
        return false;
    }
    if (shape.cluster == Dim3{} && limits.fixed_cluster.x == 0) return true;
    const Dim3 cluster = cluster_of(loaded, shape);
    const runtime::Dim3 most = {limits.cluster_blocks, limits.cluster_blocks,
                                limits.cluster_blocks};
    return within(cluster, most) && product(cluster) <= limits.cluster_blocks &&
           shape.grid.x % cluster.x == 0 && shape.grid.y % cluster.y == 0 &&
           shape.grid.z % cluster.z == 0 &&
           (limits.fixed_cluster.x == 0 ||
            limits.fixed_cluster == runtime::Dim3{cluster.x, cluster.y, cluster.z});
}

[[noreturn]] void refuse_cluster(const OwnLaunch& launch, const Refusal& refuse) {
    const KernelLaunch& shape = launch.shape;
    const runtime::KernelLimits& limits = launch.loaded.limits;
    const Dim3 cluster = cluster_of(launch.loaded, shape);
    const runtime::Dim3& fixed = limits.fixed_cluster;
    if (fixed.x != 0 && fixed != runtime::Dim3{cluster.x, cluster.y, cluster.z}) {
        refuse(
            "clusters of {} blocks were asked for, and its text says {} x {} x {}: leave them "
            "to the text",
            text_of(cluster), fixed.x, fixed.y, fixed.z);
    }
    if (product(cluster) == 0) {
        refuse("clusters of {} blocks hold none: leave the cluster 1 x 1 x 1", text_of(cluster));
    }
    if (limits.cluster_blocks == 1) {
        refuse("clusters of {} blocks need a GPU of sm_90 or newer, and {} is none",
               text_of(cluster), refuse.gpu());
    }
    if (product(cluster) > limits.cluster_blocks) {
        refuse("clusters of {} blocks are more than {}{}", text_of(cluster), limits.cluster_blocks,
               launch.own.code.large_clusters
                   ? ""
                   : ": ask for large_clusters in its code, or for less");
    }
    refuse("a grid of {} blocks is not made of clusters of {}: round it up", text_of(shape.grid),
           text_of(cluster));
}

[[noreturn, gnu::cold, gnu::noinline]] void refuse_shape(const OwnLaunch& launch) {
    const Refusal refuse(launch);
    const KernelLaunch& shape = launch.shape;
    const runtime::Kernel& kernel = launch.loaded.kernel;
    const runtime::KernelLimits& limits = launch.loaded.limits;
    if (!within(shape.grid, limits.grid)) {
        refuse(
            "a grid of {} blocks can't be launched: each number is from 1 to at most {} x {} x "
            "{}; where there is nothing to do, launch nothing",
            text_of(shape.grid), limits.grid.x, limits.grid.y, limits.grid.z);
    }
    if (!within(shape.block, limits.block)) {
        refuse(
            "a block of {} threads can't be launched: each number is from 1 to at most {} x {} "
            "x {}",
            text_of(shape.block), limits.block.x, limits.block.y, limits.block.z);
    }
    if (product(shape.block) > limits.block_threads) {
        refuse(
            "a block of {} threads is more than {}, as its {} registers a thread or its launch "
            "bounds allow on {}: take fewer",
            product(shape.block), limits.block_threads, kernel.registers, refuse.gpu());
    }
    if (shape.shared_bytes > static_cast<std::uint32_t>(kernel.shared_bytes)) {
        refuse(
            "{} bytes of dynamic shared memory were asked for, and the shared_bytes of its code "
            "are {}: raise those, which are granted when it is loaded",
            shape.shared_bytes, kernel.shared_bytes);
    }
    refuse_cluster(launch, refuse);
}

bool match(const Places& places, std::span<const std::size_t> sizes) noexcept {
    if (places.size() != sizes.size()) return false;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (places[i].bytes != sizes[i]) return false;
    }
    return true;
}

[[noreturn, gnu::cold, gnu::noinline]] void refuse_null(const OwnLaunch& launch,
                                                        std::span<const void* const> values) {
    const auto at = std::ranges::find(values, nullptr) - values.begin();
    const Refusal refuse(launch);
    refuse("the address of its parameter {} of {} is null: point it to the value", at + 1,
           values.size());
}

[[noreturn, gnu::cold, gnu::noinline]] void refuse_values(const OwnLaunch& launch,
                                                          const Places& places,
                                                          std::span<const std::size_t> sizes) {
    const Refusal refuse(launch);
    if (places.size() != sizes.size()) {
        refuse("it has {} parameters, and {} were given", places.size(), sizes.size());
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (places[i].bytes == sizes[i]) continue;
        refuse(
            "its parameter {} of {} has {} bytes, and one of {} was given: give the type that "
            "the function declares",
            i + 1, sizes.size(), places[i].bytes, sizes[i]);
    }
    throw Error(ErrorCode::internal, "parameters that match were refused: please report it");
}

// The sizes that a struct of the parameters can have: it may be filled up to a multiple of the
// alignment of one of them, a power of two that divides its offset and its size.
bool is_size_of_struct(const Places& places, std::size_t bytes) noexcept {
    if (places.empty()) return bytes == 0;
    const std::size_t end = places.back().offset + places.back().bytes;
    for (const runtime::ParameterPlace& place : places) {
        const std::size_t both = place.offset | place.bytes;
        for (std::size_t alignment = both & (~both + 1); alignment > 1; alignment /= 2) {
            if (bytes == (end + alignment - 1) / alignment * alignment) return true;
        }
    }
    return bytes == end;
}

[[noreturn, gnu::cold, gnu::noinline]] void refuse_packed(const OwnLaunch& launch,
                                                          const Places& places, std::size_t bytes) {
    const std::size_t end = places.empty() ? 0 : places.back().offset + places.back().bytes;
    const Refusal refuse(launch);
    refuse(
        "its {} parameters end at byte {}, and {} bytes were given: give a struct of the same "
        "members in the same order",
        places.size(), end, bytes);
}

}  // namespace

void check_shape(const OwnLaunch& launch) {
    if (!fits(launch.loaded, launch.shape)) [[unlikely]]
        refuse_shape(launch);
}

void check_values(const OwnLaunch& launch, std::span<const void* const> values,
                  std::span<const std::size_t> sizes) {
    if (std::ranges::find(values, nullptr) != values.end()) [[unlikely]]
        refuse_null(launch, values);
    const std::optional<Places>& places = launch.loaded.limits.parameters;
    if (places && !match(*places, sizes)) [[unlikely]]
        refuse_values(launch, *places, sizes);
}

void check_packed(const OwnLaunch& launch, std::size_t bytes) {
    const std::optional<Places>& places = launch.loaded.limits.parameters;
    if (places && !is_size_of_struct(*places, bytes)) [[unlikely]]
        refuse_packed(launch, *places, bytes);
}

}  // namespace jitney
