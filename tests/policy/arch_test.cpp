#include "core/arch.hpp"

#include <doctest/doctest.h>

#include "jitney/error.hpp"
#include "policy/device_facts.hpp"

namespace jitney::policy {
namespace {

TEST_CASE("an arch prints and parses back") {
    for (const char* text : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100",
                             "sm_100a", "sm_100f", "sm_103f", "sm_120", "sm_120a", "sm_121f"}) {
        const auto arch = parse_arch(text);
        REQUIRE_MESSAGE(arch.has_value(), text);
        CHECK(arch->text() == text);
    }
    CHECK(parse_arch("sm_90a") == Arch{90, 'a'});
    CHECK(parse_arch("sm_120") == Arch{120, 0});
}

TEST_CASE("what is no arch is not taken for one") {
    using namespace std::string_view_literals;
    for (const std::string_view text :
         {""sv,           "sm_"sv,     "sm_9"sv,    "sm_9a"sv,  "sm_a"sv,
          "sm_090"sv,     "sm_0080"sv, "sm_1000"sv, "sm_90b"sv, "sm_90A"sv,
          "sm_90aa"sv,    "sm_90 "sv,  " sm_90"sv,  "SM_90"sv,  "sm90"sv,
          "sm-90"sv,      "sm_+90"sv,  "sm_-90"sv,  "sm_9.0"sv, "sm_0x5"sv,
          "compute_90"sv, "90"sv,      "sm_90\0"sv, "sm_9\0"sv, "sm_99999999999999999999"sv,
          "sm_80a"sv,     "sm_75f"sv,  "sm_90f"sv,  "sm_1a0"sv, "sm_90af"sv}) {
        CHECK_MESSAGE(!parse_arch(text), text);
    }
}

TEST_CASE("a GPU is compiled for under its own name") {
    CHECK(arch_of_capability(7, 5).text() == "sm_75");
    CHECK(arch_of_capability(8, 9).text() == "sm_89");
    CHECK(arch_of_capability(9, 0).text() == "sm_90a");
    CHECK(arch_of_capability(10, 0).text() == "sm_100");
    CHECK(arch_of_capability(12, 1).text() == "sm_121");
}

TEST_CASE("a name under which no GPU looks is told from one that is used") {
    for (const Arch arch : {Arch{75, 0}, Arch{80, 0}, Arch{90, 'a'}, Arch{100, 0}, Arch{121, 0}})
        CHECK(why_not_looked_up(arch) == "");
    CHECK(why_not_looked_up({90, 0}) ==
          "no GPU looks for kernels of sm_90, give sm_90a, which GPUs of compute capability 9.0 "
          "take");
    CHECK(why_not_looked_up({103, 'f'}).find("give sm_103,") != std::string::npos);
    CHECK(why_not_looked_up({120, 'a'}).find("give sm_120,") != std::string::npos);
    for (const Arch arch : {Arch{12, 0}, Arch{30, 0}, Arch{77, 0}, Arch{95, 'a'}, Arch{104, 0}}) {
        CHECK_FALSE(is_known(arch));
        CHECK(why_not_looked_up(arch) ==
              "no GPU is " + arch.text() +
                  ", give an architecture such as sm_80, sm_89, sm_90a, sm_100 or sm_120");
        CHECK_THROWS_AS(facts_named(arch.text()), Error);
    }
    // A GPU may be newer than the library, which has no typical facts of it then.
    CHECK(why_not_looked_up({130, 0}) == "");
    CHECK_THROWS_WITH_AS(facts_named("sm_130"), doctest::Contains("knows no GPU of sm_130"), Error);
}

TEST_CASE("the facts of every arch can be divided by") {
    for (int number = 10; number < 1000; ++number) {
        const Arch arch{static_cast<std::uint16_t>(number), 0};
        const DeviceFacts facts = typical_facts(arch);
        CHECK(facts.arch == arch);
        CHECK(facts.sm_count > 0);
        CHECK(facts.shared_bytes_per_block >= 64 * 1024);
        CHECK(facts.shared_bytes_per_sm >= facts.shared_bytes_per_block);
    }
    CHECK(typical_facts({90, 'a'}).shared_bytes_per_block == 232448);
    CHECK(typical_facts({80, 0}).shared_bytes_per_block == 166912);
    CHECK(typical_facts({89, 0}).shared_bytes_per_block == 101376);
}

}  // namespace
}  // namespace jitney::policy
