// How many bytes a kernel's parameters have, as its machine code tells it, and what the driver is
// asked for then.
#include <doctest/doctest.h>
#include <elf.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/device.hpp"
#include "runtime/kernel_limits.hpp"
#include "runtime/parameter_bytes.hpp"
#include "runtime/runtime.hpp"
#include "tests/runtime/child.hpp"
#include "tests/runtime/tiny.hpp"

namespace jitney::tests {
namespace {

using namespace jitney::runtime;

struct Section {
    std::string name;
    std::string contents;
};

template <class T>
std::string bytes_of(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

// An ELF file of these sections, whose names stand in the last.
std::string elf_of(std::vector<Section> sections) {
    sections.insert(sections.begin(), Section{});
    std::string names;
    for (const Section& each : sections)
        names += each.name + '\0';
    const auto last_name = static_cast<Elf64_Word>(names.size());
    names += std::string(".shstrtab") + '\0';
    sections.push_back({".shstrtab", names});
    Elf64_Ehdr header = {};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_shoff = sizeof header;
    header.e_shnum = static_cast<Elf64_Half>(sections.size());
    header.e_shstrndx = static_cast<Elf64_Half>(sections.size() - 1);
    std::string table;
    std::string contents;
    Elf64_Word name = 0;
    for (const Section& each : sections) {
        Elf64_Shdr section = {};
        section.sh_name = each.name == ".shstrtab" ? last_name : name;
        section.sh_offset = sizeof header + sections.size() * sizeof(Elf64_Shdr) + contents.size();
        section.sh_size = each.contents.size();
        table += bytes_of(section);
        contents += each.contents;
        name += static_cast<Elf64_Word>(each.name.size() + 1);
    }
    return bytes_of(header) + table + contents;
}

// As compilers write them: other attributes stand before the number of bytes, and behind it.
std::string attributes(const std::string& parameter_bytes) {
    return std::string("\x04\x37\x04\x00\x82\x00\x00\x00", 8) +      // four bytes of value
           std::string("\x04\x19\x05\x00\x03\x19\x77\x77\x01", 9) +  // a value like the attribute
           std::string("\x03\x1b\xff\x00", 4) + parameter_bytes +
           std::string("\x04\x36\x04\x00\x08\x00\x00\x00", 8);
}

}  // namespace

TEST_CASE("the machine code tells how many bytes the parameters of a kernel have") {
    const std::string elf = elf_of({{".text.other", "code"},
                                    {".nv.info", attributes("\x03\x19\x11\x11")},
                                    {".nv.info.other", attributes("\x03\x19\xb1\x0f")},
                                    {".nv.info.othe", attributes("\x03\x19\x22\x22")},
                                    {".nv.info.none", attributes("")}});
    CHECK(parameter_bytes(elf, "other") == 0xfb1);
    CHECK(parameter_bytes(elf, "none") == 0);
    CHECK_FALSE(parameter_bytes(elf, "oth"));
    CHECK_FALSE(parameter_bytes(elf, "others"));
    // What is no whole file tells nothing, or what it told before.
    for (std::size_t size = 0; size < elf.size(); ++size) {
        const auto bytes = parameter_bytes(std::string(elf, 0, size), "other");
        if (bytes) CHECK(*bytes == 0xfb1);
    }
    std::string damaged = elf;
    std::memset(damaged.data() + offsetof(Elf64_Ehdr, e_shoff), 0xff, sizeof(Elf64_Off));
    CHECK_FALSE(parameter_bytes(damaged, "other"));
    CHECK_FALSE(parameter_bytes("a PTX is text", "other"));
    CHECK_FALSE(parameter_bytes(elf_of({{".nv.info.cut", "\x03"}}), "cut"));
}

TEST_CASE("scenario: parameters that the driver tells" * doctest::skip()) {
    fake::Cuda& fake = fake_cuda();
    fake.parameters = {{{0, 4}, {8, 8}}};
    fake.parameter_count = 2;
    const DeviceInfo& device = current_device();
    Kernel kernel = runtime::runtime().kernel(tiny_key(90, 3), 0, tiny_describe(), nullptr);
    CHECK(kernel.parameter_bytes == -1);  // the fake's machine code is none
    const auto places = [&] { return limits_of(kernel, device, false).parameters.value(); };
    CHECK(places().size() == 2);
    CHECK(fake.failed_parameter_queries == 1);
    kernel.parameter_bytes = 16;
    CHECK(places().size() == 2);
    CHECK(places()[1].offset == 8);
    kernel.parameter_bytes = 0;
    CHECK(places().empty());
    CHECK(fake.failed_parameter_queries == 1);
    kernel.parameter_bytes = 20;  // more than the driver knows of
    CHECK(places().size() == 2);
}

TEST_CASE("the driver is asked for no parameter that is not there where the machine code tells") {
    const TemporaryDirectory root;
    REQUIRE_PASSED(run("scenario: parameters that the driver tells", fakes(root / "cache")));
}

}  // namespace jitney::tests
