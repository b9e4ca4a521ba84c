// Kernels of the caller's own, from C.
#include <algorithm>
#include <span>
#include <string>

#include "api/c_abi_arguments.hpp"
#include "api/c_abi_error.hpp"
#include "api/own_kernel.hpp"
#include "jitney/kernel.hpp"
#include "operations/refuse.hpp"

namespace jitney::c_abi {
namespace {

using checks::refuse;
using detail::OwnKernel;

// No list of these will ever be this long: a count that is was never set.
constexpr std::size_t kMostItems = 1 << 16;
constexpr std::size_t kMostParameters = 4096;

// The caller's struct, in the form that this library knows; its first version is this one.
template <class Struct>
Struct known(const Struct* given, const char* type) {
    Struct result{};
    copy_known(&result, given, {type, sizeof(Struct), alignof(Struct), sizeof(Struct)});
    return result;
}

template <class Item>
std::span<const Item> list(const Item* given, std::size_t count, std::size_t most,
                           const char* name) {
    if (count > most) {
        refuse("{} counts {}; it is how many {} points to, at most {}", name, count, name, most);
    }
    if (given == nullptr && count > 0) {
        refuse("{} is null and counts {}: point it to that many", name, count);
    }
    return {given, count};
}

std::string text_in(const char* given, const char* name, const char* part) {
    return text(given, fmt::format("a {} of {}", part, name).c_str());
}

KernelCode code_of(const jitney_kernel_code* given) {
    const jitney_kernel_code known_code = known(given, "jitney_kernel_code");
    KernelCode code;
    code.source = text(known_code.source, "source");
    code.function = text(known_code.function, "function");
    if (known_code.file != nullptr) code.file = known_code.file;
    for (const jitney_named_text& each :
         list(known_code.constants, known_code.constant_count, kMostItems, "constants")) {
        code.constants.emplace_back(text_in(each.name, "constants", "name"),
                                    text_in(each.text, "constants", "text"));
    }
    for (const jitney_named_text& each :
         list(known_code.headers, known_code.header_count, kMostItems, "headers")) {
        code.headers.push_back(
            {text_in(each.name, "headers", "name"), text_in(each.text, "headers", "text")});
    }
    for (const char* each :
         list(known_code.options, known_code.option_count, kMostItems, "options")) {
        code.options.push_back(text_in(each, "options", "text"));
    }
    code.shared_bytes = known_code.shared_bytes;
    code.large_clusters = known_code.large_clusters != 0;
    code.arch_specific = known_code.arch_specific != 0;
    check_reserved(known_code.reserved);
    return code;
}

Kernel known(const jitney_kernel* given) {
    if (given == nullptr) refuse("kernel is null: make one with jitney_kernel_of");
    return KernelAccess::of(reinterpret_cast<const OwnKernel*>(given));
}

// Runs with every launch: no more than it has to.
KernelLaunch shape_of(const jitney_kernel_shape* given, jitney_stream stream) {
    const jitney_kernel_shape shape = known(given, "jitney_kernel_shape");
    KernelLaunch launch;
    const auto dim3 = [](const std::uint32_t(&sizes)[3], std::uint32_t least) {
        return Dim3{std::max(sizes[0], least), std::max(sizes[1], least),
                    std::max(sizes[2], least)};
    };
    launch.grid = dim3(shape.grid, 0);
    launch.block = dim3(shape.block, 0);
    launch.cluster = dim3(shape.cluster, 1);
    launch.shared_bytes = shape.shared_bytes;
    launch.programmatic_dependent = shape.programmatic_dependent != 0;
    launch.device = shape.device;
    launch.stream = stream;
    return launch;
}

// Keeps the text of `make` for the thread, and points *shown to it.
template <class Make>
jitney_status show(const char** shown, std::string& kept, const Make& make) noexcept {
    return guarded([&] {
        if (shown == nullptr) refuse("text is null: point it to where the text shall go");
        *shown = nullptr;
        kept = make();
        *shown = kept.c_str();
    });
}

}  // namespace
}  // namespace jitney::c_abi

extern "C" {

using namespace jitney;
using namespace jitney::c_abi;

jitney_status jitney_kernel_of(const jitney_kernel_code* code, const jitney_kernel** kernel) {
    return guarded([&] {
        if (kernel == nullptr) refuse("kernel is null: point it to where the kernel shall go");
        *kernel = nullptr;
        *kernel = reinterpret_cast<const jitney_kernel*>(own_kernel_of(code_of(code)));
    });
}

jitney_status jitney_kernel_launch(const jitney_kernel* kernel, const jitney_kernel_shape* shape,
                                   const void* const* values, const size_t* sizes, size_t count,
                                   jitney_stream stream) {
    return guarded([&] {
        const KernelLaunch launch = shape_of(shape, stream);
        const auto addresses = list(values, count, kMostParameters, "values");
        const auto bytes = list(sizes, count, kMostParameters, "sizes");
        known(kernel).launch_values(launch, addresses, bytes);
    });
}

jitney_status jitney_kernel_launch_packed(const jitney_kernel* kernel,
                                          const jitney_kernel_shape* shape, const void* parameters,
                                          size_t bytes, jitney_stream stream) {
    return guarded([&] {
        const auto* first = static_cast<const std::byte*>(parameters);
        known(kernel).launch_packed(shape_of(shape, stream),
                                    list(first, bytes, kMostItems, "parameters"));
    });
}

jitney_status jitney_kernel_load(const jitney_kernel* kernel, int32_t device) {
    return guarded([&] { known(kernel).load(device); });
}

jitney_status jitney_kernel_prewarm(const jitney_kernel* kernel, const char* arch) {
    return guarded([&] {
        const PrewarmEntry entry = known(kernel).prewarm(text(arch, "arch"));
        if (entry.status != PrewarmStatus::failed) return;
        throw Error(ErrorCode::compile_failed, entry.error);
    });
}

jitney_status jitney_kernel_spec(const jitney_kernel* kernel, const char* arch,
                                 const char** shown) {
    thread_local std::string kept;
    return show(shown, kept, [&] { return known(kernel).spec(text(arch, "arch")); });
}

jitney_status jitney_kernel_manifest(const jitney_kernel* kernel, const char* arch,
                                     const char** shown) {
    thread_local std::string kept;
    return show(shown, kept, [&] { return known(kernel).manifest(text(arch, "arch")); });
}

}  // extern "C"
