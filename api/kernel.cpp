#include "jitney/kernel.hpp"

#include <fmt/format.h>

#include <bit>
#include <memory>

#include "api/json_text.hpp"
#include "api/own_kernel.hpp"
#include "api/own_kernel_limits.hpp"
#include "operations/refuse.hpp"
#include "policy/spec.hpp"
#include "runtime/caller_thread.hpp"
#include "runtime/launch.hpp"
#include "runtime/runtime.hpp"

namespace jitney {
namespace {

using detail::LoadedOwnKernel;
using detail::OwnKernel;

Arch arch_of(const OwnKernel& own, const runtime::DeviceInfo& device) noexcept {
    return arch_on(own, device.major, device.minor);
}

[[noreturn]] void throw_other_device(int device, const runtime::DeviceInfo& current) {
    throw Error(ErrorCode::no_device,
                fmt::format("a kernel was to be launched on GPU {}, and the current context is of "
                            "GPU {} ({}): make a context of GPU {} current, or leave device -1",
                            device, current.ordinal, current.name, device));
}

const runtime::DeviceInfo& enter(int device) {
    if (device == -1) return runtime::current_device();
    const runtime::DeviceInfo& current = runtime::current_device(device);
    if (current.ordinal != device) throw_other_device(device, current);
    return current;
}

runtime::KernelSource describe(const void* context, const runtime::KernelKey& key) {
    const Arch arch = std::bit_cast<policy::Spec>(key).arch();
    return source_of(*static_cast<const OwnKernel*>(context), arch);
}

[[gnu::cold, gnu::noinline]] const LoadedOwnKernel& load(const OwnKernel& own,
                                                         const runtime::DeviceInfo& device,
                                                         Stream stream) {
    auto loaded = std::make_unique<LoadedOwnKernel>();
    loaded->kernel = runtime::runtime().kernel(key_of(own, arch_of(own, device)), device.ordinal,
                                               {&describe, &own}, stream);
    loaded->limits = runtime::limits_of(loaded->kernel, device, own.code.large_clusters);
    std::atomic<const LoadedOwnKernel*>& place =
        own.loaded[static_cast<std::size_t>(device.ordinal)];
    const LoadedOwnKernel* first = nullptr;
    if (!place.compare_exchange_strong(first, loaded.get(), std::memory_order_acq_rel)) {
        return *first;
    }
    return *loaded.release();
}

const LoadedOwnKernel& loaded_on(const OwnKernel& own, const runtime::DeviceInfo& device,
                                 Stream stream) {
    const LoadedOwnKernel* found =
        own.loaded[static_cast<std::size_t>(device.ordinal)].load(std::memory_order_acquire);
    return found != nullptr ? *found : load(own, device, stream);
}

runtime::LaunchShape launch_shape(const LoadedOwnKernel& loaded,
                                  const KernelLaunch& shape) noexcept {
    const auto dim3 = [](const Dim3& sizes) { return runtime::Dim3{sizes.x, sizes.y, sizes.z}; };
    runtime::LaunchShape result;
    result.grid = dim3(shape.grid);
    result.block = dim3(shape.block);
    result.cluster = dim3(shape.cluster);
    result.shared_bytes = static_cast<int>(shape.shared_bytes);
    // The GPUs that know clusters are those that know of it.
    result.programmatic_dependent =
        shape.programmatic_dependent && loaded.limits.cluster_blocks > 1;
    return result;
}

// The steps of every launch: the GPU, the loaded kernel, what it allows. `put` puts it into the
// stream.
template <class Check, class Put>
void launch_kernel(const OwnKernel& own, const KernelLaunch& shape, const Check& check,
                   const Put& put) {
    const runtime::BorrowedThread thread;
    const runtime::DeviceInfo& device = enter(shape.device);
    const OwnLaunch launch = {own, loaded_on(own, device, shape.stream), device, shape};
    check_shape(launch);
    check(launch);
    try {
        put(launch.loaded.kernel, launch_shape(launch.loaded, shape));
    } catch (const Error& error) {
        throw Error(error.code(),
                    fmt::format("{}: {}", spec_of(own, arch_of(own, device)), error.what()));
    }
}

}  // namespace

Kernel::Kernel(const KernelCode& code) : kernel_(own_kernel_of(code)) {}

void Kernel::launch_values(const KernelLaunch& shape, std::span<const void* const> values,
                           std::span<const std::size_t> sizes) const {
    if (values.size() != sizes.size()) {
        checks::refuse("{} parameters were given with {} sizes: give each its own", values.size(),
                       sizes.size());
    }
    launch_kernel(
        *kernel_, shape, [&](const OwnLaunch& launch) { check_values(launch, values, sizes); },
        [&](const runtime::Kernel& kernel, const runtime::LaunchShape& what) {
            runtime::launch(kernel, what, const_cast<void**>(values.data()), shape.stream);
        });
}

void Kernel::launch_packed(const KernelLaunch& shape, std::span<const std::byte> parameters) const {
    launch_kernel(
        *kernel_, shape, [&](const OwnLaunch& launch) { check_packed(launch, parameters.size()); },
        [&](const runtime::Kernel& kernel, const runtime::LaunchShape& what) {
            runtime::launch_packed(kernel, what, parameters.data(), parameters.size(),
                                   shape.stream);
        });
}

KernelResources Kernel::load(int device) const {
    const runtime::BorrowedThread thread;
    const LoadedOwnKernel& loaded = loaded_on(*kernel_, enter(device), nullptr);
    return {loaded.kernel.registers, loaded.kernel.local_bytes, loaded.kernel.static_shared_bytes,
            static_cast<int>(loaded.limits.block_threads)};
}

std::string Kernel::spec(std::string_view arch) const {
    return spec_of(*kernel_, arch_named(*kernel_, arch));
}

std::string Kernel::manifest(std::string_view arch) const {
    const KernelCode& code = kernel_->code;
    std::string constants;
    for (const KernelConstant& constant : code.constants) {
        constants += fmt::format("{}{}:{}", constants.empty() ? "" : ",", quoted(constant.name),
                                 quoted(constant.value));
    }
    std::string headers;
    for (const KernelHeader& header : code.headers) {
        headers += fmt::format("{}{}:{}", headers.empty() ? "" : ",", quoted(header.name),
                               quoted(header.text));
    }
    return fmt::format(
        "own {{\"arch\":{},\"file\":{},\"function\":{},\"constants\":{{{}}},\"options\":{},"
        "\"headers\":{{{}}},\"source\":{}}}",
        quoted(arch_named(*kernel_, arch).text()), quoted(code.file), quoted(code.function),
        constants, quoted_list(code.options), headers, quoted(code.source));
}

PrewarmEntry Kernel::prewarm(std::string_view arch) const {
    const KernelTarget target{*this, std::string(arch)};
    return jitney::prewarm({}, std::span(&target, 1), {}).front();
}

}  // namespace jitney
