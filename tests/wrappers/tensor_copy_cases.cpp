// What copies of boxes of tensors have to do: bring and take what the map says, zeros for what lies
// outside, each 16 bytes at the place that the swizzle gives them.
#include <doctest/doctest.h>

#include <array>
#include <cstring>

#include "tests/wrappers/cases.hpp"

namespace jitney::wrappers {
namespace {

using Corner = std::array<int, 5>;

constexpr std::array kSwizzles = {runtime::Swizzle::none, runtime::Swizzle::bytes32,
                                  runtime::Swizzle::bytes64, runtime::Swizzle::bytes128};

// As in tensor_copy_kernels.cuh.
struct BoxPlaces {
    Corner from{};
    Corner to{};
    unsigned words = 0;
    unsigned copy_at = 0;
    unsigned barrier_at = 0;
    std::array<unsigned, 2> blocks{};
};

// A tensor of words of 16 bits, some words apart from row to row, that counts; all of its memory is
// in use.
struct Counting {
    Counting(int rank, runtime::Swizzle swizzle) {
        const auto box_row = static_cast<std::uint32_t>(
            swizzle == runtime::Swizzle::none ? 24 : 8u << static_cast<int>(swizzle));
        shape.rank = rank;
        shape.dtype = DType::bf16;
        shape.size = {88, 11, 4, 3, 3};
        shape.box = {box_row, 8, 2, 2, 2};
        shape.swizzle = swizzle;
        std::uint64_t stride = 224;
        for (std::size_t i = 1; i < static_cast<std::size_t>(rank); ++i) {
            shape.stride_bytes[i - 1] = stride;
            stride = stride * shape.size[i] + 16 * i;
        }
        words.resize(stride / 4);
        for (std::size_t i = 0; i < words.size(); ++i)
            words[i] = static_cast<unsigned>(i) * 2654435761u + 1;
        for (std::size_t i = 0; i < static_cast<std::size_t>(rank); ++i)
            box_elements *= shape.box[i];
    }

    // Element `number` of a box, in the order in which the box lies without a swizzle: where it
    // stands among the words, in units of 16 bits; -1: outside of the tensor.
    std::int64_t place_of(std::size_t number, const Corner& corner) const {
        std::uint64_t bytes = 0;
        for (std::size_t i = 0; i < static_cast<std::size_t>(shape.rank); ++i) {
            const std::int64_t at = corner[i] + static_cast<std::int64_t>(number % shape.box[i]);
            number /= shape.box[i];
            if (at < 0 || at >= static_cast<std::int64_t>(shape.size[i])) return -1;
            bytes += static_cast<std::uint64_t>(at) * (i == 0 ? 2 : shape.stride_bytes[i - 1]);
        }
        return static_cast<std::int64_t>(bytes / 2);
    }
    // Where it stands in shared memory, in the same units: chunks of 16 bytes change places within
    // their span, by the number of their row of 128 bytes.
    std::size_t shared_place_of(std::size_t number) const {
        const unsigned span =
            shape.swizzle == runtime::Swizzle::none ? 16 : 16u << static_cast<int>(shape.swizzle);
        const std::size_t byte = 2 * number;
        const std::size_t chunk = (byte / 16 ^ byte / 128) % (span / 16);
        return (byte / span * span + chunk * 16 + byte % 16) / 2;
    }

    runtime::TensorMapShape shape;
    Words words;
    std::size_t box_elements = 1;
};

unsigned short element(const Words& words, std::size_t begin, std::size_t place) {
    return static_cast<unsigned short>(words[begin + place / 2] >> place % 2 * 16);
}
void set_element(Words& words, std::size_t begin, std::size_t place, unsigned value) {
    unsigned& word = words[begin + place / 2];
    word = (word & ~(0xffffu << place % 2 * 16)) | value << place % 2 * 16;
}

Call call_of(const Counting& tensor, const std::string& kernel, BoxPlaces places, unsigned boxes) {
    Call call{.kernel = kernel, .threads = 64};
    places.words = static_cast<unsigned>(tensor.box_elements / 2);
    places.copy_at = static_cast<unsigned>(kHeaderWords + tensor.words.size());
    places.barrier_at = (4 * boxes * places.words + 1023) / 1024 * 1024;
    call.shared_bytes = static_cast<int>(places.barrier_at) + 8;
    call.in.assign(kHeaderWords, 0);
    static_assert(sizeof places <= kHeaderWords * 4);
    std::memcpy(call.in.data(), &places, sizeof places);
    call.in.insert(call.in.end(), tensor.words.begin(), tensor.words.end());
    call.out.assign(kHeaderWords + tensor.words.size(), 0x77777777u);
    call.tensor = tensor.shape;
    return call;
}

void check_same(const Words& words, const Words& expected) {
    REQUIRE(words.size() == expected.size());
    std::size_t different = 0;
    std::size_t first = words.size();
    for (std::size_t i = words.size(); i-- > 0;) {
        if (words[i] == expected[i]) continue;
        ++different;
        first = i;
    }
    CHECK_MESSAGE(different == 0, different, " words differ, the first is number ", first, " of ",
                  words.size());
}

constexpr Corner kInside = {24, 3, 2, 1, 0};

// From a place to one within the tensor, with a copy of what lay in shared memory.
void check_box(const Run& run, const Counting& tensor, const Corner& from) {
    const int rank = tensor.shape.rank;
    const Corner& to = kInside;
    INFO(rank, " dimensions, swizzle ", static_cast<int>(tensor.shape.swizzle), ", from ", from[0]);
    Call call = call_of(tensor, "boxes<" + std::to_string(rank) + ">", {.from = from, .to = to}, 1);
    call.out.resize(call.out.size() + tensor.box_elements / 2, 0x77777777u);
    const std::size_t copy_at = kHeaderWords + tensor.words.size();
    Words expected = call.out;
    for (std::size_t i = 0; i < tensor.box_elements; ++i) {
        const std::int64_t place = tensor.place_of(i, from);
        set_element(expected, copy_at, tensor.shared_place_of(i),
                    place < 0 ? 0 : element(tensor.words, 0, static_cast<std::size_t>(place)));
    }
    Words more(expected.begin() + static_cast<std::ptrdiff_t>(copy_at), expected.end());
    for (unsigned& word : more)
        word += 1;
    for (std::size_t i = 0; i < tensor.box_elements; ++i) {
        const std::int64_t place = tensor.place_of(i, to);
        if (place < 0) continue;
        set_element(expected, kHeaderWords, static_cast<std::size_t>(place),
                    element(more, 0, tensor.shared_place_of(i)));
    }
    check_same(run(call), expected);
}

void check_boxes(const Run& run, int) {
    check_box(run, Counting(2, runtime::Swizzle::none), {8, 1, 0, 0, 0});
}

// What is loaded lies within the tensor, before its begin in some dimensions, and beyond its end in
// others. Boxes begin at multiples of 16 bytes in the innermost one.
void check_all_boxes(const Run& run, int) {
    for (const int rank : {2, 4, 5}) {
        for (const runtime::Swizzle swizzle : kSwizzles) {
            const Counting tensor(rank, swizzle);
            for (const Corner& from :
                 {Corner{8, 1, 1, 0, 1}, Corner{-8, -2, 2, 1, -1}, Corner{72, 7, -1, 2, 2}}) {
                check_box(run, tensor, from);
            }
        }
    }
}

void check_multicast(const Run& run, int) {
    const Counting tensor(2, runtime::Swizzle::bytes128);
    const Corner from = {16, 1, 0, 0, 0};
    for (const auto& blocks :
         {std::array{3u, 3u}, std::array{1u, 2u}, std::array{2u, 3u}, std::array{3u, 1u}}) {
        INFO("boxes for blocks ", blocks[0], " and ", blocks[1]);
        Call call = call_of(tensor, "boxes_for_blocks", {.from = from, .blocks = blocks}, 2);
        call.blocks = 2;
        call.cluster = 2;
        const std::size_t copy_at = call.out.size();
        call.out.resize(copy_at + 2 * tensor.box_elements, 0x77777777u);
        Words expected = call.out;
        for (std::size_t block = 0; block < 2; ++block) {
            for (std::size_t sender = 0; sender < 2; ++sender) {
                const Corner corner = {from[0], from[1] + static_cast<int>(sender), 0, 0, 0};
                const std::size_t begin = copy_at + (2 * block + sender) * tensor.box_elements / 2;
                for (std::size_t i = 0; i < tensor.box_elements; ++i) {
                    const auto place = static_cast<std::size_t>(tensor.place_of(i, corner));
                    const bool came = (blocks[sender] >> block & 1) != 0;
                    const unsigned value = came ? element(tensor.words, 0, place) : 0xffffu;
                    set_element(expected, begin, tensor.shared_place_of(i), value);
                }
            }
        }
        check_same(run(call), expected);
    }
}

}  // namespace

const std::vector<Case>& tensor_copy_cases() {
    static const std::vector<Case> all = {
        {"boxes of tensors", 90, &check_boxes},
        {"boxes of four and five dimensions, swizzled, and beyond edges", 90, &check_all_boxes, 0,
         true},
        {"boxes for several blocks", 90, &check_multicast, 0, true},
    };
    return all;
}

std::vector<std::string> tensor_copy_kernels_of(int arch) {
    if (arch < 90) return {};
    return {"boxes<2>", "boxes<4>", "boxes<5>", "boxes_for_blocks"};
}

}  // namespace jitney::wrappers
