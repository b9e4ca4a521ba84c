// Copies by the copy engine: boxes of tensors, runs of bytes, and what must lie between them and
// the threads' own accesses.
#include <array>
#include <cstring>
#include <vector>

#include "tests/emulator/machine/random.hpp"
#include "tests/emulator/machine/tensor_map.hpp"
#include "tests/emulator/test_support.hpp"
#include "tests/emulator/toys/hopper.hpp"

using namespace jitney::emulator;
namespace runtime = jitney::runtime;
namespace toys = jitney::toys;

namespace {

// A tensor [3, 4, 5, columns] of two bytes an element that counts, with gaps behind each row.
struct Counted {
    explicit Counted(std::uint64_t columns)
        : pitch((columns * 2 + 15) / 16 * 16 + 16), buffer(60 * pitch, "the tensor") {
        shape.rank = 4;
        shape.dtype = jitney::DType::bf16;
        shape.size = {columns, 5, 4, 3};
        shape.stride_bytes = {pitch, 5 * pitch, 20 * pitch};
        for (std::uint64_t row = 0; row < 60; ++row) {
            for (std::uint64_t i = 0; i < pitch / 2; ++i)
                element(row, i) = static_cast<std::uint16_t>(row * 1000 + i + 1);
        }
    }
    std::uint16_t& element(std::uint64_t row, std::uint64_t i) const {
        return buffer.as<std::uint16_t>()[row * pitch / 2 + i];
    }
    // 0 outside.
    std::uint16_t at(const std::array<int, 4>& place) const {
        for (std::size_t i = 0; i < 4; ++i) {
            if (place[i] < 0 || place[i] >= static_cast<int>(shape.size[i])) return 0;
        }
        const int row = (place[3] * 4 + place[2]) * 5 + place[1];
        return element(static_cast<std::uint64_t>(row), static_cast<std::uint64_t>(place[0]));
    }

    std::uint64_t pitch;
    Buffer buffer;
    runtime::TensorMapShape shape;
};

toys::BoxParams box_params(const Counted& tensor, const std::array<int, 4>& corner,
                           const Buffer& out) {
    toys::BoxParams params{tensor_map_bits(tensor.buffer.data(), tensor.shape),
                           out.as<unsigned>(),
                           2,
                           {corner[0], corner[1], corner[2], corner[3]}};
    for (int i = 0; i < 4; ++i)
        params.bytes *= static_cast<int>(tensor.shape.box[static_cast<std::size_t>(i)]);
    return params;
}

int shared_bytes(const toys::BoxParams& params) {
    return (params.bytes + 1023) / 1024 * 1024 + 1024 + 16;
}

// Where the box's element lies in shared memory, as the copy engine's documentation draws it: the
// number of a chunk of 16 bytes changes by that of its row of 128 bytes.
std::size_t swizzled_place(std::size_t byte, std::size_t span) {
    const std::size_t chunks = span / 16;
    if (chunks < 2) return byte;
    const std::size_t chunk = byte / 16 % chunks;
    const std::size_t row = byte / 128 % chunks;
    return byte / span * span + (chunk ^ row) * 16 + byte % 16;
}

toys::BoxParams small_box(const Buffer& out) {
    static Counted boxed = [] {
        Counted copy(64);
        copy.shape.box = {64, 4, 1, 1};
        copy.shape.swizzle = runtime::Swizzle::bytes128;
        return copy;
    }();
    return box_params(boxed, {0, 0, 1, 0}, out);
}

std::string fault_of_box(const Kernel& kernel, std::uint64_t seed = run_seed()) {
    const Buffer out = output(4096);
    const toys::BoxParams params = small_box(out);
    return fault_of(kernel, 1, 64, shared_bytes(params), params, seed);
}

}  // namespace

TEST_CASE("a box arrives swizzled, and as zeros where it lies outside of the tensor") {
    Random random(run_seed());
    for (int round = 0; round < 60; ++round) {
        const auto swizzle = static_cast<runtime::Swizzle>(round % 4);
        const unsigned span = round % 4 == 0 ? 16 * (1 + random.below(9)) : 16u << round % 4;
        Counted tensor(1 + random.below(100));
        tensor.shape.swizzle = swizzle;
        tensor.shape.box = {span / 2, 1 + random.below(6), 1 + random.below(3),
                            1 + random.below(2)};
        const auto near = [&random](unsigned size) {
            return static_cast<int>(random.below(size + 6)) - 4;
        };
        const std::array<int, 4> corner = {near(100) / 8 * 8, near(5), near(4), near(3)};
        const Buffer out = output(20000);
        const toys::BoxParams params = box_params(tensor, corner, out);
        run_kernel(toys::brings_a_box, 1, 64, shared_bytes(params), params, random.next());
        const auto& box = tensor.shape.box;
        std::size_t i = 0;
        bool right = true;
        for (unsigned x3 = 0; x3 < box[3]; ++x3) {
            for (unsigned x2 = 0; x2 < box[2]; ++x2) {
                for (unsigned x1 = 0; x1 < box[1]; ++x1) {
                    for (unsigned x0 = 0; x0 < box[0]; ++x0, ++i) {
                        const std::size_t place =
                            swizzle == runtime::Swizzle::none ? 2 * i : swizzled_place(2 * i, span);
                        const std::array<int, 4> from = {
                            corner[0] + static_cast<int>(x0), corner[1] + static_cast<int>(x1),
                            corner[2] + static_cast<int>(x2), corner[3] + static_cast<int>(x3)};
                        right = right && out.as<std::uint16_t>()[place / 2] == tensor.at(from);
                    }
                }
            }
        }
        CHECK(right);
    }
}

TEST_CASE("a box is written where the tensor is, and nowhere else") {
    Random random(run_seed());
    for (int round = 0; round < 20; ++round) {
        Counted tensor(50);
        tensor.shape.swizzle = round % 2 == 0 ? runtime::Swizzle::bytes128 : runtime::Swizzle::none;
        tensor.shape.box = {64, 3, 2, 1};
        const Counted before(50);
        const Buffer out = output(1);
        const std::array<int, 4> corner = {static_cast<int>(random.below(4)) * 8 - 8,
                                           static_cast<int>(random.below(6)) - 1,
                                           static_cast<int>(random.below(4)), 1};
        const toys::BoxParams params = box_params(tensor, corner, out);
        run_kernel(toys::takes_a_box_away, 1, 64, shared_bytes(params), params, random.next());
        bool right = true;
        for (int row = 0; row < 60; ++row) {
            for (int x0 = 0; x0 < static_cast<int>(tensor.pitch) / 2; ++x0) {
                const int x1 = row % 5 - corner[1];
                const int x2 = row / 5 % 4 - corner[2];
                const int in_row = x0 - corner[0];
                const bool within = x0 < 50 && in_row >= 0 && in_row < 64 && x1 >= 0 && x1 < 3 &&
                                    x2 >= 0 && x2 < 2 && row / 20 == corner[3];
                const auto r = static_cast<std::uint64_t>(row);
                const auto x = static_cast<std::uint64_t>(x0);
                std::uint16_t expected = before.element(r, x);
                if (within) {
                    const auto byte = static_cast<std::size_t>(((x2 * 3 + x1) * 64 + in_row) * 2);
                    const std::size_t place = round % 2 == 0 ? swizzled_place(byte, 128) : byte;
                    // Word i of shared memory is i.
                    expected = static_cast<std::uint16_t>(place % 4 == 0 ? place / 4 : 0);
                }
                right = right && tensor.element(r, x) == expected;
            }
        }
        CHECK(right);
    }
}

TEST_CASE("what no kernel may rely on arrives as ones, and what is no buffer's is not copied") {
    Counted tensor(64);
    tensor.shape.box = {64, 4, 1, 1};
    const Buffer out = output(4096);
    const toys::BoxParams params = box_params(tensor, {0, 2, 0, 0}, out);
    tensor.buffer.forbid(3 * tensor.pitch, 128);
    run_kernel(toys::brings_a_box, 1, 64, shared_bytes(params), params);
    CHECK(out.as<std::uint16_t>()[63] == tensor.at({63, 2, 0, 0}));
    CHECK(out.as<unsigned>()[32] == 0xffffffffu);
    CHECK(out.as<unsigned>()[63] == 0xffffffffu);
    CHECK(out.as<std::uint16_t>()[128] == tensor.at({0, 4, 0, 0}));
    tensor.buffer.allow_all();
    tensor.shape.size[3] = 4;
    CHECK_SAYS(fault_of(toys::brings_a_box, 1, 64, shared_bytes(params),
                        box_params(tensor, {0, 0, 0, 3}, out)),
               "of the tensor, which has");
    tensor.buffer.make_read_only();
    CHECK_SAYS(fault_of(toys::takes_a_box_away, 1, 64, shared_bytes(params), params), "an input");
}

TEST_CASE("boxes begin at multiples of 16 bytes in a row, within the tensor and before it") {
    Counted tensor(64);
    tensor.shape.box = {64, 4, 1, 1};
    const Buffer out = output(4096);
    for (const Kernel* kernel : {&toys::brings_a_box, &toys::takes_a_box_away}) {
        for (const int first : {-16, -3, 0, 4, 8, 63}) {
            const toys::BoxParams params = box_params(tensor, {first, 0, 1, 0}, out);
            const std::string fault = fault_of(*kernel, 1, 64, shared_bytes(params), params);
            if (first % 8 == 0) {
                CHECK(fault.empty());
            } else {
                CHECK_SAYS(fault, "begin at multiples of 16 bytes");
            }
        }
    }
}

TEST_CASE("a box that was not waited for is not there") {
    for (std::uint64_t seed = run_seed(); seed < run_seed() + 10; ++seed) {
        CHECK(fault_of_box(toys::brings_a_box, seed).empty());
        CHECK_MEMORY_FAULT(kInstrumented ? fault_of_box(toys::brings_a_box_and_reads_at_once, seed)
                                         : std::string("AddressSanitizer"),
                           "of shared memory");
        if (!kInstrumented) continue;
        CHECK_FALSE(fault_of_box(toys::brings_a_box_and_waits_for_the_phase_before, seed).empty());
    }
}

TEST_CASE("a barrier that waits for other bytes than come is a deadlock") {
    CHECK_SAYS(fault_of_box(toys::brings_a_box_expecting_more),
               "which lacks 0 of 1 arrivals and 16 bytes");
    CHECK_SAYS(fault_of_box(toys::brings_a_box_expecting_less),
               "which lacks 0 of 1 arrivals and -16 bytes");
}

TEST_CASE("copies that are wrong in themselves are reported, boxes too") {
    CHECK_SAYS(fault_of_box(toys::brings_a_box_and_ends), "nobody waited for copies");
    CHECK_SAYS(fault_of_box(toys::brings_a_box_to_a_misaligned_place), "takes multiples of 1024");
    CHECK_SAYS(fault_of_box(toys::brings_a_box_by_no_map), "is none");
    if (!kInstrumented) return;
    CHECK_SAYS(fault_of_box(toys::brings_a_box_by_a_hidden_barrier), "made no fence behind it");
    CHECK_FALSE(fault_of_box(toys::brings_a_box_over_one_that_is_read).empty());
    CHECK_SAYS(fault_of_box(toys::brings_a_box_over_unfenced_words), "made no fence");
}

TEST_CASE("what threads wrote is seen by the copy engine behind a fence alone") {
    CHECK(fault_of_box(toys::takes_a_box_away).empty());
    CHECK_SAYS(fault_of_box(toys::takes_a_box_away_and_ends), "may still read");
    CHECK_SAYS(fault_of_box(toys::takes_a_box_away_and_leaves_the_group_open), "may still read");
    if (!kInstrumented) return;
    for (const Kernel* kernel :
         {&toys::takes_a_box_away_without_a_fence, &toys::takes_a_box_away_fenced_too_late}) {
        CHECK_SAYS(fault_of_box(*kernel), "made no fence between the two ways");
    }
    CHECK_SAYS(fault_of_box(toys::takes_a_box_away_and_overwrites_it),
               "the copy engine for thread 0 reads it");
}

TEST_CASE("runs of bytes are copied in groups that are waited for one by one") {
    constexpr int kWords = 512;
    const Buffer in = counting(kWords);
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        const Buffer out = output(kWords + 1);
        run_kernel(toys::copies_runs, 1, 32, kWords * 4 + 8,
                   toys::RunParams{in.as<unsigned>(), out.as<unsigned>(), kWords},
                   run_seed() + seed);
        for (unsigned i = 0; i < kWords; ++i)
            REQUIRE(out.as<float>()[i] == static_cast<float>(i));
        CHECK(out.as<unsigned>()[kWords] == in.as<unsigned>()[0] + in.as<unsigned>()[kWords - 1]);
    }
}
