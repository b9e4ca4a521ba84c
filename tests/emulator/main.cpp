#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <random>

#include "tests/emulator/seed.hpp"

namespace jitney::emulator {

std::uint64_t run_seed() {
    static const std::uint64_t seed = [] {
        const char* text = std::getenv("JITNEY_TEST_SEED");
        if (text != nullptr) return static_cast<std::uint64_t>(std::strtoull(text, nullptr, 10));
        std::random_device device;
        return std::uint64_t{device()};
    }();
    return seed;
}

}  // namespace jitney::emulator

int main(int argc, char** argv) {
    std::printf("JITNEY_TEST_SEED=%llu\n",
                static_cast<unsigned long long>(jitney::emulator::run_seed()));
    doctest::Context context(argc, argv);
    return context.run();
}
