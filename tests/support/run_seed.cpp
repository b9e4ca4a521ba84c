#include "tests/support/run_seed.hpp"

#include <atomic>
#include <cstdlib>
#include <random>

namespace jitney::tests {
namespace {

std::atomic<std::uint64_t> name_digest{0};
std::atomic<std::uint64_t> generators{0};

std::uint64_t given_or_drawn() {
    const char* const given = std::getenv("JITNEY_TEST_SEED");
    if (given != nullptr && *given != '\0') return std::strtoull(given, nullptr, 10);
    std::random_device device;
    const std::uint64_t drawn = std::uint64_t{device()} << 32 | device();
    setenv("JITNEY_TEST_SEED", std::to_string(drawn).c_str(), 1);
    return drawn;
}

// SplitMix64's last steps: neighbours become strangers.
std::uint64_t scrambled(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

}  // namespace

std::uint64_t run_seed() {
    static const std::uint64_t seed = given_or_drawn();
    return seed;
}

std::string text_of_seed(std::uint64_t seed) {
    return "JITNEY_TEST_SEED=" + std::to_string(seed);
}

void begin_numbers_of(std::string_view test_case) {
    std::uint64_t digest = 0xCBF29CE484222325U;  // FNV-1a
    for (const char c : test_case)
        digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
    name_digest = digest;
    generators = 0;
}

std::uint64_t next_beginning() {
    return scrambled(scrambled(run_seed() + name_digest) + generators++);
}

}  // namespace jitney::tests
