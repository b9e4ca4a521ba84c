"""jitney prewarm --manifest of somebody's own kernels: lines that carry the code, or name its files."""
import json
import os
import unittest

import support

TEXT = """#include "axpy.cuh"
__global__ void saxpy(int n, float a, const float* x, float* y) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < n) y[i] = axpy(a, x[i], y[i]);
}
"""
HEADER = "__device__ float axpy(float a, float x, float y) { return a * x + y; }\n"
ROTARY = "rotary_emb<format=bf16,style=interleaved,pairs=4>@sm_80"


class PrewarmOwn(support.CommandTest):
    def prewarm(self, *arguments, **options):
        return self.succeed("prewarm", *arguments, "--json", **options).json

    def kernel(self, **changes):
        fields = {
            "arch": "sm_80", "file": "saxpy.cu", "function": "saxpy", "constants": {"THREADS": 256},
            "headers": {"axpy.cuh": HEADER}, "options": ["--fmad=false"], "source": TEXT, **changes,
        }
        fields = {name: value for name, value in fields.items() if value is not None}
        return "own " + json.dumps(fields)

    def test_a_line_that_carries_the_code(self):
        manifest = self.write("manifest", f"# two\n{ROTARY} # one\n  {self.kernel()}\n{self.kernel()}\n")
        summary = self.prewarm("--manifest", manifest, gpu=False)
        self.assertEqual((summary["compiled"], summary["failed"]), (2, 0))
        spec = summary["entries"][1]["spec"]
        self.assertRegex(spec, r"^own:saxpy\.cu:saxpy\(THREADS=256\):[0-9a-f]{32}@sm_80$")
        self.assertEqual(self.prewarm("--manifest", manifest)["cached"], 2)
        listed = self.succeed("cache", "list", "--json").json["entries"]
        self.assertEqual([entry["spec"] for entry in listed], sorted([ROTARY, spec]))
        self.assertIn(spec, self.succeed("cache", "list").out)
        self.assertEqual(self.succeed("cache", "verify", "--json").json["bad"], [])

    def test_files_beside_the_manifest(self):
        os.mkdir(self.path("kernels"))
        self.write("kernels/saxpy.cu", TEXT.replace("\n", "\r\n"))
        self.write("kernels/axpy.cuh", HEADER)
        line = self.kernel(source=None, headers=["axpy.cuh"], arch=["sm_90a", "sm_80"])
        named = self.prewarm("--manifest", self.write("kernels/manifest", line))
        self.assertEqual([entry["status"] for entry in named["entries"]], ["compiled", "compiled"])
        self.assertTrue(named["entries"][0]["spec"].endswith("@sm_90a"))
        # The same kernel as the one whose code the line has.
        carried = self.prewarm("--manifest", self.write("manifest", self.kernel()))
        self.assertEqual(carried["entries"][0]["status"], "cached")
        self.assertEqual(carried["entries"][0]["spec"], named["entries"][1]["spec"])

    def test_a_list_carries_the_code(self):
        manifest = self.write("manifest", f"{ROTARY}\n{self.kernel()}\n")
        listed = self.succeed("prewarm", "--manifest", manifest, "--list").out
        lines = listed.splitlines()
        self.assertEqual(lines[0], ROTARY)
        self.assertEqual(json.loads(lines[1].removeprefix("own "))["source"], TEXT)
        first = self.prewarm("--manifest", manifest)
        again = self.prewarm("--manifest", self.write("list", listed))
        self.assertEqual(again["cached"], 2)
        self.assertEqual([e["spec"] for e in again["entries"]], [e["spec"] for e in first["entries"]])
        specs = self.prewarm("--manifest", manifest, "--list")["specs"]
        self.assertEqual(specs, [e["spec"] for e in first["entries"]])

    def test_a_bundle_takes_it_to_another_machine(self):
        manifest = self.write("manifest", self.kernel())
        spec = self.prewarm("--manifest", manifest)["entries"][0]["spec"]
        bundle = self.path("bundle")
        self.succeed("cache", "export", bundle)
        other = {"JITNEY_CACHE_DIR": self.path("other")}
        self.succeed("cache", "import", bundle, **other)
        listed = self.succeed("cache", "list", "--json", **other).json["entries"]
        self.assertEqual([entry["spec"] for entry in listed], [spec])
        self.assertEqual(self.prewarm("--manifest", manifest, **other)["cached"], 1)

    def test_constants_of_every_kind(self):
        values = {"A": 1, "B": -2, "C": 2.5, "D": True, "E": "float", "F": 2**64 - 1, "G": ""}
        text = ("__global__ void k(E* x) { static_assert(A == 1 && B == -2 && C == 2.5 && D && "
                "F == ~0ull); *x = 1 G; }")
        line = self.kernel(source=text, function="k", constants=values, headers=None, options=None)
        (entry,) = self.prewarm("--manifest", self.write("manifest", line))["entries"]
        self.assertEqual(entry["status"], "compiled", entry["error"])
        self.assertIn("(A=1,B=(-2),C=2.5,D=true,E=float,F=18446744073709551615ULL,G=)", entry["spec"])

    def test_instructions_of_one_arch(self):
        text = ("#ifndef __CUDA_ARCH_FEAT_SM100_ALL\n#error not sm_100a\n#endif\n"
                "__global__ void k(int* x) { *x = 1; }")
        fields = {"source": text, "function": "k", "headers": None, "options": None}
        line = self.kernel(arch=["sm_100a", "sm_100"], **fields)
        outcome = self.run_command("prewarm", "--manifest", self.write("manifest", line), "--json")
        statuses = {entry["spec"][-7:]: entry["status"] for entry in outcome.json["entries"]}
        self.assertEqual(statuses, {"sm_100a": "compiled", "@sm_100": "failed"})
        listed = self.succeed("prewarm", "--manifest", self.path("manifest"), "--list").out
        self.assertIn('"arch":"sm_100a"', listed)
        again = self.write("list", listed.splitlines()[0])
        self.assertEqual(self.prewarm("--manifest", again)["cached"], 1)

    def test_an_error_of_the_compiler(self):
        manifest = self.write("manifest", self.kernel(source=TEXT.replace("axpy(a", "axpyy(a")))
        outcome = self.run_command("prewarm", "--manifest", manifest, "--json")
        self.assertEqual(outcome.status, 1)
        self.assertIn('saxpy.cu(4): error: identifier "axpyy"', outcome.json["entries"][0]["error"])

    def test_lines_that_are_none(self):
        for line, words in (
            ("own", ["no JSON object"]),
            ("own {", ["no JSON object"]),
            ("own []", ["no JSON object"]),
            (self.kernel(arch=None), ["'arch'"]),
            (self.kernel(arch=[]), ["'arch'"]),
            (self.kernel(arch="sm_90"), ["sm_90a"]),
            (self.kernel(arch=["sm_80", 7]), ["'arch'", "7"]),
            (self.kernel(function=None), ["names no function"]),
            (self.kernel(source=3), ["'source'", "3"]),
            (self.kernel(constants=["A"]), ["'constants'"]),
            (self.kernel(constants={"A": [1]}), ["'A'"]),
            (self.kernel(source=None), ["saxpy.cu"]),
            (self.kernel(headers=["none.cuh"]), ["none.cuh"]),
            (self.kernel(options=["-I/usr/include"]), ["reads a file"]),
            (self.kernel(extra=1), ["no 'extra'"]),
            (self.kernel(source="__DATE__"), ["__DATE__"]),
            ("own:saxpy.cu:saxpy:0@sm_80", ["somebody's own kernel"]),
        ):
            with self.subTest(line=line):
                manifest = self.write("manifest", f"{ROTARY}\n\n{line}\n")
                outcome = self.run_command("prewarm", "--manifest", manifest)
                self.assertIn(outcome.status, (1, 2))
                first = outcome.err.split("\n")[0]
                for word in [f"{manifest}:3: ", *words]:
                    self.assertIn(word, first)
        self.assertEqual(self.succeed("cache", "list", "--json").json["entries"], [])
        self.fail_with(2, ["somebody's own kernel"], "prewarm", "--spec", "own:saxpy.cu:saxpy:0@sm_80")


if __name__ == "__main__":
    unittest.main()
