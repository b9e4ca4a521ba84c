"""Plants what the rules forbid in a tree that is otherwise clean, and expects to hear of it."""
import os
import subprocess
import sys
import tempfile
import unittest

import rules

CLEAN = {
    "core/include/jitney/error.hpp": '#pragma once\n#include <stdexcept>\n#include "jitney/export.hpp"\n',
    "core/include/jitney/export.hpp": "#pragma once\n",
    "api/include/jitney/jitney.h": "#pragma once\n#include <dlpack/dlpack.h>\n#include <stdint.h>\n",
    "operations/attention/attention.cpp": '#include "policy/spec.hpp"\n#include "runtime/launch.hpp"\n'
    '#include "jitney/attention.hpp"\n#include "kernel_sources/attention/params.h"\n',
    "operations/rotary/choose.hpp": '#pragma once\n#include "policy/spec.hpp"\n',
    "operations/rotary/reference.cpp": '#include "operations/reference/rows.hpp"\n#include <thread>\n',
    "operations/reference/rows.hpp": '#pragma once\n#include "jitney/error.hpp"\n',
    "policy/spec.hpp": '#pragma once\n#include <string>\n#include "jitney/error.hpp"\n',
    "policy/models/fields.cpp": "#include <nlohmann/json.hpp>\n",
    "runtime/launch.cpp": '#include <cuda.h>\n#include <dlfcn.h>\n#include "cache/store.hpp"\n',
    "runtime/log.cpp": "#include <spdlog/spdlog.h>\n",
    "cache/store.cpp": '#include <sys/stat.h>\n#include <xxhash.h>\n#include "cache/store.hpp"\n',
    "kernel_sources/attention/decode.cuh": '#include "common/mma.cuh"\n',
    "kernel_sources/attention/params.h": "#pragma once\n",
    "kernel_sources/common/mma.cuh": 'void f() { asm volatile("mma;"); }\n',
    "tests/emulator/include/common/mma.cuh": '#include "common/builtins.cuh"\n',
    "tests/emulator/include/common/builtins.cuh": "#include <cstdint>\n",
    "tests/emulator/toys/product.cpp": '#include "attention/params.h"\n#include "common/mma.cuh"\n',
    "tests/wrappers/kernels.cuh": '#include "common/mma.cuh"\n',
    "cli/cache.cpp": '#include "jitney/error.hpp"\n#include "core/arch.hpp"\n',
    "core/arch.hpp": "#pragma once\n",
    "cli/main.cpp": "#include <CLI/CLI.hpp>\n#include <nlohmann/json.hpp>\nint main() { exit(1); }\n",
    "tests/cache/test_store.cpp": '#include <doctest/doctest.h>\n#include "cache/store.hpp"\n'
    'const char* text = R"(\n#include <cuda.h>\nasm("")\n)";\n',
    "examples/decode.cpp": "#include <jitney/attention.hpp>\n#include <iostream>\n",
    "policy/notes.cpp": '// asm, exit(1), getenv("HOME")\nconst char* s = "asm exit(1) getenv";\n'
    "/* #include <cuda.h> */\nconst int n = 1'000'000;  // a mark, not a character\n",
}

# (path, planted text, part of what must be said)
PLANTED = [
    ("policy/models/read.cpp", "#include <nlohmann/json.hpp>\n", "<nlohmann/json.hpp>: only for"),
    ("policy/choose.cpp", "#include <cuda.h>\n", "<cuda.h>: only for"),
    ("policy/choose.cpp", "#  include  <cuda_runtime_api.h>\n", "<cuda_runtime_api.h>: only for"),
    ("policy/choose.cpp", '#include "runtime/launch.hpp"\n', "policy may not include runtime"),
    (
        "policy/choose.cpp",
        '#include "operations/rotary/reference.hpp"\n',
        "policy may not include reference",
    ),
    ("policy/choose.cpp", '#include "operations/rotary/choose.hpp"\n', "may not include choice"),
    ("operations/rotary/choose.cpp", '#include "runtime/launch.hpp"\n', "may not include runtime"),
    ("operations/rotary/choose.hpp", '#include "jitney/rotary.hpp"\n', "may not include public"),
    ("operations/rotary/choose.cpp", "#include <chrono>\n", "<chrono>: only for"),
    ("operations/rotary/choose.cpp", 'auto home = getenv("HOME");\n', "reads no environment"),
    ("operations/rotary/check.cpp", '#include "api/c_abi.hpp"\n', "operations may not include api"),
    ("core/tensor.cpp", '#include "policy/spec.hpp"\n', "core may not include policy"),
    ("tests/policy/random_test.cpp", "const unsigned seed = std::random_device{}();\n", "run's seed"),
    ("policy/choose.cpp", "#include <chrono>\n", "<chrono>: only for"),
    ("policy/choose.cpp", 'auto home = std::getenv("HOME");\n', "reads no environment"),
    ("cache/store.cpp", "#include <nvrtc.h>\n", "<nvrtc.h>: only for"),
    ("cache/store.cpp", '#include "policy/spec.hpp"\n', "cache may not include policy"),
    ("cache/store.cpp", '#include "kernel_sources/sources.hpp"\n', "may not include kernel_sources"),
    ("cache/store.cpp", '#include "store.hpp"\n', "begin with the name of a room"),
    ("cache/store.cpp", '#include "../policy/spec.hpp"\n', "never relative"),
    ("cache/store.cpp", "void f() { std::abort(); }\n", "does not end the process"),
    ("runtime/launch.cpp", '#include "policy/spec.hpp"\n', "runtime may not include policy"),
    ("runtime/launch.cpp", '#include "jitney/attention.hpp"\n', "runtime may not include public"),
    ("runtime/launch.cpp", "#include <spdlog/spdlog.h>\n", "only for runtime/log.cpp"),
    ("runtime/launch.cpp", 'void f() { asm(""); }\n', "assembly lives in"),
    ("operations/rotary/reference.cpp", '#include "policy/spec.hpp"\n', "may not include policy"),
    ("operations/attention/attention.cpp", '#include "cli/table.hpp"\n', "may not include cli"),
    ("api/attention.cpp", '#include "cli/table.hpp"\n', "api may not include cli"),
    ("cli/run.cpp", '#include "policy/spec.hpp"\n', "cli may not include policy"),
    ("cli/cache.hpp", '#include "cache/store.hpp"\n', "cli may not include cache"),
    ("api/include/jitney/rotary.hpp", '#include "policy/spec.hpp"\n', "public may not include policy"),
    ("api/include/jitney/rotary.hpp", "#include <fmt/format.h>\n", "<fmt/format.h>: only for"),
    ("api/include/jitney/rotary.hpp", "#include <cuda.h>\n", "<cuda.h>: only for"),
    ("cli/main.cpp", "#include <boost/asio.hpp>\n", "a new dependency is a decision"),
    ("examples/decode.cpp", '#include "runtime/launch.hpp"\n', "may not include runtime"),
    ("attic/old.cpp", "#include <string>\n", "no room of the house"),
    ("kernel_sources/fp8/gemm.cuh", "#include <cstdint>\n", "no header of a toolkit"),
    ("kernel_sources/fp8/gemm.cuh", "#include <cuda_fp8.h>\n", "no header of a toolkit"),
    ("kernel_sources/fp8/gemm.cuh", '#include "jitney/error.hpp"\n', "may not include core"),
    ("kernel_sources/fp8/gemm.cuh", '#include "cuda_fp8.h"\n', "nothing from outside"),
    ("kernel_sources/fp8/params.h", "#include <stdint.h>\n", "no header of a toolkit"),
    ("kernel_sources/fp8/gemm.cuh", 'void f() { asm volatile("mma;"); }\n', "assembly lives in"),
    ("tests/cache/test_store.cpp", "#include <CLI/CLI.hpp>\n", "only for cli"),
    ("tests/emulator/toys/product.cpp", '#include "common/gone.cuh"\n', "the name of a room"),
    ("docs/guide.md", "see /" + "work/notes\n", "a path of one machine"),
    ("docs/guide.md", "see ../" + "shared/plan.md\n", "outside the project"),
    ("quickstart", "pip -i https://pypi" + ".org/simple\n", "package registry"),
    ("cli/main.cpp", "// TO" + "DO: the rest\n", "unfinished"),
    ("README.md", "Done as " + "requested.\n", "of the making"),
]


def check(extra):
    """Findings in the clean tree with these files' texts appended."""
    with tempfile.TemporaryDirectory() as root:
        tree = dict(CLEAN)
        for path, text in extra:
            tree[path] = tree.get(path, "") + text
        for path, text in tree.items():
            path = os.path.join(root, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return rules.check_tree(root)


class Rules(unittest.TestCase):
    def test_a_clean_tree_has_no_finding(self):
        findings, count = check([])
        self.assertEqual([], [str(finding) for finding in findings])
        self.assertEqual(len(CLEAN), count)

    def test_what_is_planted_is_found(self):
        for path, text, message in PLANTED:
            with self.subTest(path=path, text=text):
                findings, _ = check([(path, text)])
                self.assertEqual(1, len(findings), findings)
                self.assertEqual(path, findings[0].path)
                self.assertIn(message, findings[0].message)
                expected = CLEAN.get(path, "").count("\n") + 1
                self.assertEqual(expected, findings[0].line)

    def test_the_command_fails_on_a_finding_and_on_an_empty_tree(self):
        with tempfile.TemporaryDirectory() as root:
            command = [sys.executable, rules.__file__, root]
            self.assertEqual(1, subprocess.run(command, capture_output=True).returncode)
            with open(os.path.join(root, "README.md"), "w", encoding="utf-8") as file:
                file.write("Jitney\n")
            self.assertEqual(0, subprocess.run(command, capture_output=True).returncode)
            with open(os.path.join(root, "README.md"), "a", encoding="utf-8") as file:
                file.write("see /" + "root/notes\n")
            result = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(1, result.returncode)
            self.assertIn("README.md:2: ", result.stdout)


if __name__ == "__main__":
    unittest.main()
