#include "runtime/workspace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "jitney/error.hpp"
#include "runtime/capture.hpp"
#include "runtime/device.hpp"
#include "runtime/driver.hpp"
#include "runtime/log.hpp"

namespace jitney::runtime {

// The memory of one stream of one context: counters first, then data. Whoever set `held` may read
// and change the rest.
struct WorkspaceSlot {
    std::atomic<bool> ready{false};  // the identity below is set, and stays
    std::uint64_t context = 0;
    std::uint64_t stream = 0;
    std::atomic<bool> held{false};
    CUdeviceptr base = 0;
    std::size_t counter_bytes = 0;
    std::size_t data_bytes = 0;
};

namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kSlots = 256;  // a power of two
constexpr std::size_t kMaxSteps = 16;
constexpr std::size_t kFirstDataBytes = std::size_t{1} << 20;
constexpr std::size_t kFirstCounterBytes = std::size_t{64} << 10;

std::array<WorkspaceSlot, kSlots> slots;
std::mutex claims;

std::size_t round_up(std::size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::size_t first_slot(std::uint64_t context, std::uint64_t stream) {
    std::uint64_t hash = context * 0x9e3779b97f4a7c15u ^ stream;
    hash *= 0xd6e8feb86659fd93u;
    return static_cast<std::size_t>(hash >> 32) % kSlots;
}

bool is_of(const WorkspaceSlot& slot, std::uint64_t context, std::uint64_t stream) {
    return slot.context == context && slot.stream == stream;
}

// The slot of the stream, claimed the first time; null where the table is full.
WorkspaceSlot* slot_of(std::uint64_t context, std::uint64_t stream) {
    const std::size_t first = first_slot(context, stream);
    for (std::size_t step = 0; step < kMaxSteps; ++step) {
        WorkspaceSlot& slot = slots[(first + step) % kSlots];
        if (!slot.ready.load(std::memory_order_acquire)) {
            const std::lock_guard lock(claims);
            if (!slot.ready.load(std::memory_order_relaxed)) {
                slot.context = context;
                slot.stream = stream;
                slot.ready.store(true, std::memory_order_release);
            }
        }
        if (is_of(slot, context, stream)) return &slot;
    }
    return nullptr;
}

[[noreturn]] void throw_no_memory(CUresult result, std::size_t bytes) {
    const std::string what = fmt::format("allocating {} bytes of workspace", bytes);
    detail::throw_driver_error(result, what.c_str());
}

void* pointer(CUdeviceptr address) {
    return reinterpret_cast<void*>(address);
}

CUdeviceptr allocate(Stream stream, std::size_t counter_bytes, std::size_t data_bytes) {
    const Driver& cuda = driver();
    const std::size_t bytes = counter_bytes + data_bytes;
    CUdeviceptr base = 0;
    const CUresult result = current_device().memory_pools
                                ? cuda.cuMemAllocAsync(&base, bytes, stream)
                                : cuda.cuMemAlloc(&base, bytes);
    if (result != CUDA_SUCCESS) throw_no_memory(result, bytes);
    if (counter_bytes != 0) {
        const CUresult cleared = cuda.cuMemsetD8Async(base, 0, counter_bytes, stream);
        if (cleared != CUDA_SUCCESS) {
            if (current_device().memory_pools) cuda.cuMemFreeAsync(base, stream);
            check(cleared, "clearing the counters of a workspace");
        }
    }
    return base;
}

// Ordered after what the stream already holds. Without memory pools a block that was outgrown is
// kept, since freeing it would wait for the device; doubling bounds what that costs.
void give_up(CUdeviceptr base, Stream stream) {
    if (base != 0 && current_device().memory_pools) {
        check(driver().cuMemFreeAsync(base, stream), "freeing a workspace");
    }
}

void grow(WorkspaceSlot& slot, Stream stream, std::size_t counter_bytes, std::size_t data_bytes) {
    const RelaxedCapture relaxed;
    const auto larger = [](std::size_t now, std::size_t wanted, std::size_t first) {
        return wanted <= now ? now : std::max({wanted, 2 * now, first});
    };
    const std::size_t counters = larger(slot.counter_bytes, counter_bytes, kFirstCounterBytes);
    const std::size_t data = larger(slot.data_bytes, data_bytes, kFirstDataBytes);
    const CUdeviceptr base = allocate(stream, counters, data);
    const CUdeviceptr outgrown = std::exchange(slot.base, base);
    slot.counter_bytes = counters;
    slot.data_bytes = data;
    give_up(outgrown, stream);
}

}  // namespace

Workspace::Workspace(Workspace&& other) noexcept {
    *this = std::move(other);
}

Workspace& Workspace::operator=(Workspace&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(counters_, other.counters_);
    std::swap(slot_, other.slot_);
    std::swap(owned_, other.owned_);
    std::swap(stream_, other.stream_);
    return *this;
}

Workspace::~Workspace() {
    release();
}

void Workspace::release() noexcept {
    if (slot_ != nullptr) slot_->held.store(false, std::memory_order_release);
    if (owned_ == 0) return;
    try {
        check(driver().cuMemFreeAsync(owned_, stream_), "freeing a workspace");
    } catch (const std::exception& error) {
        log::warn(error.what());
    }
}

Workspace take_workspace(Stream stream, std::size_t bytes, std::size_t counter_bytes) {
    Workspace taken;
    if (bytes == 0 && counter_bytes == 0) return taken;
    const Driver& cuda = driver();
    const std::size_t data_bytes = round_up(bytes);
    const std::size_t zero_bytes = round_up(counter_bytes);
    CUdeviceptr base = 0;
    std::size_t data_offset = zero_bytes;

    WorkspaceSlot* slot = nullptr;
    if (!is_capturing(stream)) {
        unsigned long long stream_id = 0;
        check(cuda.cuStreamGetId(stream, &stream_id), "cuStreamGetId");
        slot = slot_of(last_context_id(), stream_id);
        if (slot != nullptr && slot->held.exchange(true, std::memory_order_acquire)) slot = nullptr;
    }
    if (slot != nullptr) {
        taken.slot_ = slot;  // given back whatever happens below
        if (slot->counter_bytes < zero_bytes || slot->data_bytes < data_bytes) {
            grow(*slot, stream, zero_bytes, data_bytes);
        }
        base = slot->base;
        data_offset = slot->counter_bytes;
    } else {
        if (!current_device().memory_pools) {
            throw Error(ErrorCode::unsupported,
                        fmt::format("{} (GPU {}) has no stream-ordered memory, which a workspace "
                                    "needs while a stream is captured or used by several threads",
                                    current_device().name, current_device().ordinal));
        }
        base = allocate(stream, zero_bytes, data_bytes);
        taken.owned_ = base;
        taken.stream_ = stream;
    }
    if (counter_bytes != 0) taken.counters_ = pointer(base);
    if (bytes != 0) taken.data_ = pointer(base + data_offset);
    return taken;
}

void clear_memory(Stream stream, void* memory, std::size_t bytes) {
    check(driver().cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(memory), 0, bytes, stream),
          "clearing a workspace");
}

}  // namespace jitney::runtime
