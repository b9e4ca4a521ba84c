#include "tests/support/temp_dir.hpp"

#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace jitney::tests {

TempDir::TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "jitney-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category());
    path_ = name;
}

TempDir::~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace jitney::tests
