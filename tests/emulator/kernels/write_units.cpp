// Writes the sources of the specializations that are compiled for the CPU: what NVRTC would be
// given, a few lines before, and a registration behind.
//
//     write_units LIST FOLDER     LIST has lines of a name and a line of covered.txt
#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "kernel_sources/embedded.hpp"
#include "operations/logits_access.hpp"
#include "policy/spec.hpp"
#include "tests/emulator/kernels/covered.hpp"

namespace {

using namespace jitney;

std::string_view source_of(const policy::KernelInfo& kernel) {
    for (const kernel_sources::EmbeddedSource& source : kernel_sources::embedded_sources()) {
        if (source.name == kernel.source) return source.text;
    }
    throw std::runtime_error(fmt::format("{} is not embedded", kernel.source));
}

// What stands in the parentheses of the kernel's __launch_bounds__.
std::string launch_bounds(const policy::KernelInfo& kernel) {
    const std::string_view text = source_of(kernel);
    const std::string_view keyword = "__launch_bounds__(";
    const std::size_t name = text.find(fmt::format(" {}(", kernel.name));
    const std::size_t begin = name == std::string_view::npos ? name : text.rfind(keyword, name);
    if (begin == std::string_view::npos) {
        throw std::runtime_error(fmt::format("{} has no __launch_bounds__", kernel.name));
    }
    std::size_t end = begin + keyword.size();
    for (int depth = 1; depth > 0; ++end)
        depth += text[end] == '(' ? 1 : (text[end] == ')' ? -1 : 0);
    return std::string(text.substr(begin + keyword.size(), end - 1 - begin - keyword.size()));
}

// Constants gets a name of its own: the same template instances with other constants are linked
// into one program.
std::string unit(const std::string& name, const std::string& line, const policy::Spec& spec) {
    const policy::KernelInfo& kernel = policy::info(spec.kernel);
    return fmt::format(
        "#include \"tests/emulator/kernels/registry.hpp\"\n\n"
        "#define __CUDA_ARCH__ {}\n"
        "#define Constants Constants_{}\n\n"
        "{}\n"
        "namespace jitney {{\n"
        "namespace {{\n"
        "using C = Constants;\n"
        "const emulator::Registration registration(\n"
        "    \"{}\",\n"
        "    \"{}\",\n"
        "    emulator::kernel<&{}>(\"{}\", emulator::first_bound({})));\n"
        "}}  // namespace\n"
        "}}  // namespace jitney\n",
        10 * spec.arch_number, name,
        policy::translation_unit(
            spec, logits_source(policy::logits_digest(spec), policy::text_of(spec)).compiled),
        line, policy::text_of(spec), policy::function_name(spec), kernel.name,
        launch_bounds(kernel));
}

// A file that holds this already keeps its time.
void write(const std::string& path, const std::string& text) {
    std::ifstream old(path);
    std::stringstream held;
    held << old.rdbuf();
    if (old.is_open() && held.str() == text) return;
    std::ofstream(path) << text;
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 3) throw std::runtime_error("write_units LIST FOLDER");
    std::ifstream list(argv[1]);
    std::string name;
    std::string line;
    while (list >> name && std::getline(list >> std::ws, line)) {
        const emulator::Covered covered = emulator::parse_covered(line);
        write(fmt::format("{}/{}.cpp", argv[2], name), unit(name, line, covered.spec));
    }
    return 0;
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
