#include "runtime/workspace.hpp"

#include <cuda.h>
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "jitney/error.hpp"
#include "runtime/device.hpp"
#include "tests/runtime/child.hpp"
#include "tests/runtime/tiny.hpp"

using namespace jitney;
using namespace jitney::runtime;

namespace {

Stream stream_of(std::uintptr_t number) {
    return reinterpret_cast<Stream>(number * 16);
}

}  // namespace

TEST_CASE("scenario: workspaces" * doctest::skip()) {
    current_device();
    fake::Cuda& fake = tests::fake_cuda();
    const Stream stream = stream_of(1);

    // Nothing asked for, nothing taken.
    CHECK(take_workspace(stream, 0).data() == nullptr);
    CHECK(fake.allocations == 0);

    // Kept from call to call; the counters cleared once.
    void* data = nullptr;
    void* counters = nullptr;
    {
        const Workspace first = take_workspace(stream, 1000, 100);
        data = first.data();
        counters = first.counters();
        CHECK(data != nullptr);
        CHECK(counters != nullptr);
        CHECK(data != counters);
        CHECK(reinterpret_cast<std::uintptr_t>(data) % 256 == 0);
    }
    CHECK(fake.allocations == 1);
    CHECK(fake.clears == 1);
    CHECK(fake.cleared_bytes >= 100);
    {
        const Workspace again = take_workspace(stream, 500);
        CHECK(again.data() == data);
        CHECK(again.counters() == nullptr);
    }
    CHECK(fake.allocations == 1);

    // Growth: a new block, its counters cleared, the old one freed in the stream's order.
    {
        const Workspace larger = take_workspace(stream, std::size_t{64} << 20, 100);
        CHECK(larger.data() != data);
    }
    CHECK(fake.allocations == 2);
    CHECK(fake.frees == 1);
    CHECK(fake.clears == 2);
    {
        const Workspace counting = take_workspace(stream, 0, std::size_t{1} << 20);
        CHECK(counting.data() == nullptr);
        CHECK(fake.cleared_bytes >= std::uint64_t{1} << 20);
    }
    CHECK(fake.allocations == 3);

    // Another stream has memory of its own.
    {
        const Workspace one = take_workspace(stream, 256);
        const Workspace other = take_workspace(stream_of(2), 256);
        CHECK(one.data() != other.data());
    }
    CHECK(fake.allocations == 4);
    CHECK(fake.frees == 2);

    // A second holder on one stream gets memory of its own, freed after its launches.
    {
        Workspace holder = take_workspace(stream, 256);
        void* held = holder.data();
        std::thread([&] {
            current_device();
            const Workspace second = take_workspace(stream, 256, 64);
            CHECK(second.data() != held);
            CHECK(fake.allocations == 5);
        }).join();
        CHECK(fake.frees == 3);
        const Workspace moved = std::move(holder);
        CHECK(moved.data() == held);
    }
    {
        const Workspace free_again = take_workspace(stream, 256);
        CHECK(fake.allocations == 5);
    }

    // Within a graph: allocated and freed there, its counters cleared at every replay.
    fake.capture_status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    const int clears = fake.clears;
    { const Workspace captured = take_workspace(stream, 256, 64); }
    CHECK(fake.allocations == 6);
    CHECK(fake.frees == 4);
    CHECK(fake.clears == clears + 1);
    fake.capture_status = 0;

    // A failure holds nothing.
    fake.allocation_result = CUDA_ERROR_OUT_OF_MEMORY;
    try {
        take_workspace(stream, std::size_t{1} << 40);
        FAIL("allocated");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::out_of_memory);
        CHECK(std::string(error.what()).find("bytes of workspace") != std::string::npos);
    }
    fake.allocation_result = 0;
    const int allocations = fake.allocations;
    CHECK(take_workspace(stream, 256).data() != nullptr);
    CHECK(fake.allocations == allocations);

    // More streams than there are places: every call still gets memory.
    for (std::uintptr_t i = 100; i < 1500; ++i) {
        REQUIRE(take_workspace(stream_of(i), 256).data() != nullptr);
    }
    CHECK(fake.frees > 100);
    CHECK(fake.synchronizations == 0);
}

TEST_CASE("workspaces are kept by stream, grow, and never wait for the device") {
    const tests::TemporaryDirectory cache;
    REQUIRE_PASSED(tests::run("scenario: workspaces", tests::fakes(cache.path())));
}

TEST_CASE("scenario: first calls of threads" * doctest::skip()) {
    // Each thread's first call, on the null stream of another device: the context that the call
    // makes current tells the streams apart.
    const auto block_on = [](int ordinal) {
        void* data = nullptr;
        std::thread([&] {
            current_device(ordinal);
            data = take_workspace(nullptr, 256).data();
        }).join();
        return data;
    };
    void* const first = block_on(0);
    CHECK(block_on(1) != first);
    CHECK(block_on(0) == first);
    CHECK(tests::fake_cuda().allocations == 2);
}

TEST_CASE("devices do not share a workspace, though their streams be called the same") {
    const tests::TemporaryDirectory cache;
    REQUIRE_PASSED(tests::run("scenario: first calls of threads",
                              tests::fakes(cache.path(), {{"FAKE_CUDA_DEVICES", "90,80"}})));
}

TEST_CASE("scenario: no memory pools" * doctest::skip()) {
    fake::Cuda& fake = tests::fake_cuda();
    fake.memory_pools = 0;
    current_device();
    { const Workspace first = take_workspace(stream_of(1), 256, 64); }
    { const Workspace larger = take_workspace(stream_of(1), std::size_t{8} << 20); }
    CHECK(fake.plain_allocations == 2);
    CHECK(fake.allocations == 0);
    CHECK(fake.frees == 0);
    CHECK(fake.synchronizations == 0);
    fake.capture_status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    CHECK_THROWS_AS(take_workspace(stream_of(1), 256), Error);
}

TEST_CASE("a device without memory pools gets plain memory, and no synchronisation") {
    const tests::TemporaryDirectory cache;
    REQUIRE_PASSED(tests::run("scenario: no memory pools", tests::fakes(cache.path())));
}

TEST_CASE("scenario: threads on one stream" * doctest::skip()) {
    fake::Cuda& fake = tests::fake_cuda();
    std::vector<std::thread> threads;
    std::atomic<void*> holder{nullptr};
    std::atomic<int> shared{0};
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&] {
            current_device();
            for (int call = 0; call < 500; ++call) {
                const Workspace workspace =
                    take_workspace(stream_of(1), static_cast<std::size_t>(call) * 1000 + 1);
                // Whoever holds a block is alone in holding it.
                void* mine = workspace.data();
                void* other = holder.exchange(mine);
                if (other == mine) ++shared;
                void* expected = mine;
                holder.compare_exchange_strong(expected, nullptr);
            }
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    CHECK(shared == 0);
    CHECK(fake.synchronizations == 0);
}

TEST_CASE("threads that launch on one stream never share a block") {
    const tests::TemporaryDirectory cache;
    REQUIRE_PASSED(tests::run("scenario: threads on one stream", tests::fakes(cache.path())));
}
