#include "operations/own_workspace.hpp"

#include <fmt/format.h>

#include "operations/kernel_launch.hpp"
#include "operations/refuse.hpp"
#include "runtime/caller_thread.hpp"

namespace jitney {
namespace {

// The counters come first and have the same room in every launch: calls that share the memory
// never put data where another one counts. More of them than that, which only a batch of many
// thousand divided tiles has, stand behind and are cleared by each launch.
constexpr std::size_t kCounterBytes = std::size_t{64} << 10;

std::size_t round_up(std::size_t bytes) noexcept {
    return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

std::size_t more_counter_bytes(const ScratchBytes& needed) noexcept {
    return needed.counters > kCounterBytes ? round_up(needed.counters) : 0;
}

void check_begin(const Workspace& workspace) {
    const auto address = reinterpret_cast<std::uintptr_t>(workspace.data);
    if (address % kWorkspaceAlignment == 0) return;
    checks::refuse("the workspace begins at {:#x}, which is not a multiple of {} bytes: align it",
                   address, kWorkspaceAlignment);
}

Scratch place_in(const Workspace& workspace, const ScratchBytes& needed, Stream stream) {
    const std::size_t bytes = own_workspace_bytes(needed);
    check_given(workspace);
    if (bytes == 0) return {};
    if (workspace.bytes < bytes) {
        checks::refuse(
            "the workspace has {} bytes, and this call needs {}: give as many as "
            "workspace_bytes() of the call or its plan says",
            workspace.bytes, bytes);
    }
    auto* const begin = static_cast<std::byte*>(workspace.data);
    const std::size_t more = more_counter_bytes(needed);
    if (more == 0) return {begin + kCounterBytes, begin};
    std::byte* const counters = begin + kCounterBytes;
    runtime::clear_memory(stream, counters, needed.counters);
    return {counters + more, counters};
}

}  // namespace

std::size_t own_workspace_bytes(const ScratchBytes& needed) noexcept {
    if (needed.counters + needed.data == 0) return 0;
    return kCounterBytes + more_counter_bytes(needed) + round_up(needed.data);
}

void check_given(const Workspace& workspace) {
    if (can_be_given(workspace)) return;
    if (workspace.data == nullptr && workspace.bytes != 0) {
        checks::refuse("the workspace is null, and has {} bytes: point it to them, or leave it out",
                       workspace.bytes);
    }
    check_begin(workspace);
}

HeldScratch::HeldScratch(const Workspace& given, const ScratchBytes& needed, Stream stream) {
    if (given.data != nullptr || given.bytes != 0) {
        place_ = place_in(given, needed, stream);
    } else if (needed.data + needed.counters != 0) {
        taken_ = runtime::take_workspace(stream, needed.data, needed.counters);
        place_ = {taken_.data(), taken_.counters()};
    }
}

void init_workspace(const Workspace& workspace, Device device, Stream stream) {
    if (workspace.data == nullptr) {
        checks::refuse("the workspace is null: give memory of a GPU, or leave it out of the calls");
    }
    check_begin(workspace);
    if (workspace.bytes < kCounterBytes) {
        checks::refuse("the workspace has {} bytes; those that calls ask for have at least {}",
                       workspace.bytes, kCounterBytes);
    }
    if (device.type == DeviceType::cpu) {
        checks::refuse(
            "the workspace is in host memory, where no call needs one: give memory of a GPU");
    }
    const runtime::BorrowedThread thread;
    enter_device(device);
    runtime::clear_memory(stream, workspace.data, kCounterBytes);
}

}  // namespace jitney
