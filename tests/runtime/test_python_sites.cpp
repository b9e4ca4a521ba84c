#include "runtime/python_sites.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/runtime/child.hpp"

using namespace jitney;
using runtime::python_sites;
using runtime::PythonHints;
using Sites = std::vector<std::string>;

namespace {

namespace fs = std::filesystem;

// Directories of packages below a directory of its own.
struct Tree {
    tests::TemporaryDirectory root;

    std::string site(const std::string& prefix, const std::string& version,
                     const std::string& kind = "site-packages") const {
        const std::string path = root / (prefix + "/lib/" + version + "/" + kind);
        fs::create_directories(path);
        return path;
    }
    // prefix/bin/NAME, a file or a link to another.
    std::string interpreter(const std::string& prefix, const std::string& name,
                            const std::string& target = {}) const {
        fs::create_directories(root / (prefix + "/bin"));
        const std::string path = root / (prefix + "/bin/" + name);
        if (target.empty()) {
            tests::write_file(path, "");
        } else {
            fs::create_symlink(target, path);
        }
        return path;
    }
    void make_virtual(const std::string& prefix, const std::string& text) const {
        fs::create_directories(root / prefix);
        tests::write_file(root / (prefix + "/pyvenv.cfg"), text);
    }
};

}  // namespace

TEST_CASE("the packages that hold this code come first, and then its environment's") {
    const Tree tree;
    const std::string site = tree.site("env", "python3.12");
    PythonHints hints;
    hints.own_directory = site + "/jitney/lib";
    CHECK(python_sites(hints) == Sites{site});
    // A program in the bin/ of a virtual environment; that of /usr is no environment.
    hints.own_directory = tree.root / "env/bin";
    CHECK(python_sites(hints).empty());
    tree.make_virtual("env", "home = /nowhere/bin\n");
    CHECK(python_sites(hints) == Sites{site});
    hints.own_directory.clear();
    CHECK(python_sites(hints).empty());
}

TEST_CASE("a process that is a Python has the packages of its environment and installation") {
    const Tree tree;
    const std::string base = tree.site("base", "python3.11");
    const std::string real = tree.interpreter("base", "python3.11");
    const std::string site = tree.site("env", "python3.11");
    const std::string link = tree.interpreter("env", "python", real);
    PythonHints hints;
    hints.program = real;
    hints.called_as = real;
    CHECK(python_sites(hints) == Sites{base});
    hints.called_as = link;
    tree.make_virtual("env", "home = " + (tree.root / "base/bin") + "\n");
    CHECK(python_sites(hints) == Sites{site, base});
    hints.called_as = "python";
    hints.search_path = {"", "relative", tree.root / "none", tree.root / "env/bin"};
    CHECK(python_sites(hints) == Sites{site, base});
    // Of a process that is none, what it was called says nothing.
    hints.program = "/usr/bin/server";
    hints.called_as = link;
    hints.search_path.clear();
    CHECK(python_sites(hints).empty());
    hints.loaded = {"/usr/lib/libm.so", site + "/torch/lib/libtorch.so", site + "/numpy/core.so"};
    CHECK(python_sites(hints) == Sites{site});
}

TEST_CASE("VIRTUAL_ENV, CONDA_PREFIX and the first python3 on PATH") {
    const Tree tree;
    const std::string old = tree.site("env", "python3.9");
    const std::string young = tree.site("env", "python3.13");
    tree.site("env", "python3.x");
    tree.site("env", "python2.7");
    PythonHints hints;
    hints.virtual_environment = tree.root / "env";
    CHECK(python_sites(hints) == Sites{young, old});
    const std::string conda = tree.site("conda", "python3.10");
    hints.conda_prefix = tree.root / "conda";
    CHECK(python_sites(hints) == Sites{young, old, conda});
    const std::string real = tree.interpreter("real", "python3.11");
    const std::string debian = tree.site("real", "python3", "dist-packages");
    tree.interpreter("path", "python3", real);
    tree.interpreter("later", "python3");
    tree.site("later", "python3.8");
    hints.search_path = {tree.root / "path/bin", tree.root / "later/bin"};
    CHECK(python_sites(hints) == Sites{young, old, conda, debian});
    // What a user has installed for himself goes with an installation, not with an environment.
    const std::string own = tree.site("home", "python3.11");
    hints.user_base = tree.root / "home";
    CHECK(python_sites(hints) == Sites{young, old, conda, own, debian});
    tree.make_virtual("path", "");
    CHECK(python_sites(hints) == Sites{young, old, conda});
    hints = {};
    hints.virtual_environment = "env";  // depends on the working directory
    CHECK(python_sites(hints).empty());
}

TEST_CASE("an environment sees the packages of its base where its file says so") {
    const Tree tree;
    const std::string base = tree.site("base", "python3.11");
    const std::string site = tree.site("env", "python3.11");
    PythonHints hints;
    hints.virtual_environment = tree.root / "env";
    const std::string home = "home = " + (tree.root / "base/bin") + "\n";
    tree.make_virtual("env", home + "include-system-site-packages = false\n");
    CHECK(python_sites(hints) == Sites{site});
    tree.make_virtual("env", "include-system-site-packages=true \r\n" + home);
    CHECK(python_sites(hints) == Sites{site, base});
    // One that names itself as its base has an end.
    tree.make_virtual(
        "env", "home = " + (tree.root / "env/bin") + "\ninclude-system-site-packages = true\n");
    CHECK(python_sites(hints) == Sites{site});
    tree.make_virtual("env", "no file of this kind\n=\n = \nhome\n");
    CHECK(python_sites(hints) == Sites{site});
}
