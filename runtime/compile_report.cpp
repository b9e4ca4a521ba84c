// Reads what ptxas says of a kernel:
//     ptxas info    : Compiling entry function 'NAME' for 'sm_90a'
//     ptxas info    : Function properties for NAME
//     ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//     ptxas info    : Used 32 registers, used 1 barriers, 1024 bytes smem
#include <charconv>
#include <string>

#include "runtime/compiler.hpp"

namespace jitney::runtime {
namespace {

// The number that stands before the words; 0 where they are not there.
int number_before(std::string_view text, std::string_view words) {
    const std::size_t at = text.find(words);
    if (at == std::string_view::npos) return 0;
    std::size_t first = at;
    while (first > 0 && text[first - 1] >= '0' && text[first - 1] <= '9')
        --first;
    int value = 0;
    std::from_chars(text.data() + first, text.data() + at, value);
    return value;
}

}  // namespace

CompileReport parse_report(std::string_view log, std::string_view lowered_name) {
    CompileReport report;
    constexpr std::string_view kEntry = "Compiling entry function '";
    const std::size_t at = log.find(std::string(kEntry) + std::string(lowered_name) + "'");
    if (at == std::string_view::npos) return report;
    std::string_view section = log.substr(at + kEntry.size());
    section = section.substr(0, section.find(kEntry));
    report.stack_bytes = number_before(section, " bytes stack frame");
    report.spill_store_bytes = number_before(section, " bytes spill stores");
    report.spill_load_bytes = number_before(section, " bytes spill loads");
    report.registers = number_before(section, " registers");
    report.static_shared_bytes = number_before(section, " bytes smem");
    report.barriers = number_before(section, " barriers");
    return report;
}

}  // namespace jitney::runtime
