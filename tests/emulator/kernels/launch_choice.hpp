// From a choice of the policy to a launch on the emulator, as the library goes to one on a GPU.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <span>

#include "policy/candidates.hpp"
#include "policy/spec.hpp"
#include "tests/emulator/machine/launch.hpp"
#include "tests/support/random.hpp"

namespace jitney::emulator {

// Which blocks of the grid run, and in which order.
struct Blocks {
    BlockOrder order = BlockOrder::shuffled;
    std::span<const std::uint64_t> only = {};  // empty: all
};

// `params` is the kernel's only parameter. A fault ends the test case, with the report as its
// message.
void launch_choice(const policy::Spec& spec, const policy::Geometry& geometry, void* params,
                   tests::Random& random, const Blocks& blocks = {});

// That a result does not depend on which block comes when: launch(order) makes it again, with the
// blocks in a row, forwards and backwards, and bits() tells it as it is now.
template <class Launch, class Bits>
void check_any_order(const Launch& launch, const Bits& bits) {
    const auto first = bits();
    for (const BlockOrder order : {BlockOrder::ascending, BlockOrder::descending}) {
        launch(order);
        CHECK_MESSAGE(bits() == first, "the result depends on the order of the blocks");
    }
}

}  // namespace jitney::emulator
