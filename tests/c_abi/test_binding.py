"""bench/compare.py without a GPU and without torch: the binding over host memory, the cells' shapes,
the report.

    python3 test_binding.py LIBRARY BENCH_DIRECTORY
"""
import ctypes
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

LIBRARY, BENCH = sys.argv[1:3]
sys.path.insert(0, BENCH)

import binding
import compare
import shapes


def floats(*values):
    return (ctypes.c_float * len(values))(*values)


def host(array, shape, dtype="float32", strides=None):
    return binding.Tensor(ctypes.addressof(array), dtype, shape, strides, keep=array)


class Binding(unittest.TestCase):
    def setUp(self):
        self.library = binding.Library(LIBRARY)
        self.q = floats(0.5, -1)
        self.k = floats(1, 2, -3, 0.25)
        self.v = floats(10, 20, 30, 40)
        self.out = floats(0, 0)
        self.fields = {
            "q": host(self.q, (1, 1, 1, 2)),
            "k": host(self.k, (1, 2, 1, 2)),
            "v": host(self.v, (1, 2, 1, 2)),
            "out": host(self.out, (1, 1, 1, 2)),
        }

    def test_the_structs_are_those_of_the_library(self):
        for function, struct in (
            (self.library.dll.jitney_attention, binding.AttentionArgs),
            (self.library.dll.jitney_rotary_emb, binding.RotaryArgs),
            (self.library.dll.jitney_rms_norm, binding.RmsNormArgs),
            (self.library.dll.jitney_gated_activation, binding.GatedActivationArgs),
            (self.library.dll.jitney_fp8_quantize, binding.Fp8QuantizeArgs),
            (self.library.dll.jitney_fp8_gemm, binding.Fp8GemmArgs),
        ):
            self.assertNotEqual(function(ctypes.byref(struct(size=1)), None), 0)
            known = re.search(r"which is (\d+) in this version", self.library.last_error())
            self.assertEqual(int(known.group(1)), ctypes.sizeof(struct))

    def test_attention(self):
        lse = floats(0)
        call = self.library.attention(
            **self.fields, lse=host(lse, (1, 1, 1)), scale=2.0, causal=1, mask=None
        )
        call()
        scores = [2 * (0.5 * 1 - 2), 2 * (0.5 * -3 - 0.25)]
        weights = [math.exp(score) for score in scores]
        for i, pair in enumerate(((10, 30), (20, 40))):
            want = sum(w * x for w, x in zip(weights, pair)) / sum(weights)
            self.assertAlmostEqual(self.out[i], want, places=4)
        self.assertAlmostEqual(lse[0], math.log(sum(weights)), places=5)
        self.assertEqual(self.library.last_run(), "reference")

    def test_strides(self):
        mixed = floats(10, 30, 20, 40)  # the same V, columns first, is no tensor of Jitney
        self.fields["v"] = host(mixed, (1, 2, 1, 2), strides=(4, 1, 4, 2))
        with self.assertRaisesRegex(binding.JitneyError, "innermost"):
            self.library.attention(**self.fields)()
        twice = floats(10, 20, 0, 0, 30, 40)
        self.fields["v"] = host(twice, (1, 2, 1, 2), strides=(6, 4, 2, 1))
        self.library.attention(**self.fields)()
        self.assertTrue(10 < self.out[0] < 30)

    def test_ragged_queries(self):
        starts = (ctypes.c_int32 * 2)(0, 1)
        ends = (ctypes.c_int32 * 2)(0, 2)
        self.library.attention(
            q=host(self.q, (1, 1, 2)),
            k=host(self.k, (2, 1, 2)),
            v=host(self.v, (2, 1, 2)),
            out=host(self.out, (1, 1, 2)),
            qo_indptr=host(starts, (2,), "int32"),
            kv_indptr=host(ends, (2,), "int32"),
            qo_indptr_host=starts,
        )()
        packed = list(self.out)
        self.library.attention(**self.fields)()
        self.assertEqual(packed, list(self.out))

    def test_rotary(self):
        x, out = floats(3, 4), floats(0, 0)
        cos, sin = floats(0.6), floats(0.8)
        self.library.rotary_emb(
            q=host(x, (1, 1, 1, 2)),
            q_out=host(out, (1, 1, 1, 2)),
            cos=host(cos, (1, 1)),
            sin=host(sin, (1, 1)),
        )()
        self.assertAlmostEqual(out[0], 3 * 0.6 - 4 * 0.8, places=5)
        self.assertAlmostEqual(out[1], 3 * 0.8 + 4 * 0.6, places=5)

    def test_rms_norm(self):
        x, residual, total, out = floats(1, 2), floats(2, 2), floats(0, 0), floats(0, 0)
        weight = floats(2, 1)
        self.library.rms_norm(
            x=host(x, (1, 2)),
            residual=host(residual, (1, 2)),
            sum=host(total, (1, 2)),
            weight=host(weight, (2,)),
            out=host(out, (1, 2)),
            eps=3.5,  # the mean square of 3 and 4 is 12.5
        )()
        self.assertEqual(list(total), [3, 4])
        self.assertAlmostEqual(out[0], 2 * 3 / 4, places=5)
        self.assertAlmostEqual(out[1], 4 / 4, places=5)

    def test_gated_activation(self):
        both, out = floats(3, -2, 5, 7), floats(0, 0)
        self.library.gated_activation(
            gate=host(both, (1, 4)), out=host(out, (1, 2)), activation=3
        )()
        self.assertEqual(list(out), [45, 0])

    def test_fp8_quantize(self):
        x, multiplier, amax = floats(1.5, -3), floats(2), floats(0)
        codes = (ctypes.c_uint8 * 2)()
        self.library.fp8_quantize(
            x=host(x, (1, 2)),
            out=host(codes, (1, 2), "float8_e4m3fn"),
            multiplier=host(multiplier, (1,)),
            amax=host(amax, (1,)),
        )()
        self.assertEqual(list(codes), [0x44, 0xCC])
        self.assertEqual(amax[0], 3)

    def test_fp8_gemm(self):
        a = (ctypes.c_uint8 * 2)(0x38, 0x40)  # 1, 2
        b = (ctypes.c_uint8 * 2)(0x40, 0xB0)  # 2, -0.5
        scale, out = floats(3), floats(0)
        self.library.fp8_gemm(
            a=host(a, (1, 2), "float8_e4m3fn"),
            b=host(b, (2, 1), "float8_e4m3fn"),
            out=host(out, (1, 1)),
            dequant_scale=host(scale, (1,)),
        )()
        self.assertEqual(out[0], 3)

    def test_errors(self):
        with self.assertRaisesRegex(binding.JitneyError, "scale") as caught:
            self.library.attention(**self.fields, scale=-1.0)()
        self.assertEqual(caught.exception.status, 1)
        self.assertFalse(caught.exception.unknown_field)

    def test_a_library_that_is_older_than_a_field(self):
        class Later(binding.AttentionArgs):
            _fields_ = [("later", ctypes.c_int64)]

        args = Later.from_buffer_copy(
            bytes(self.library.attention(**self.fields).args) + bytes(8)
        )
        args.size = ctypes.sizeof(Later)
        call = binding.Call(
            self.library,
            lambda reference, stream: self.library.dll.jitney_attention(
                ctypes.cast(reference, ctypes.POINTER(binding.AttentionArgs)), stream
            ),
            args,
            self.fields,
        )
        call()
        args.later = 1
        with self.assertRaises(binding.JitneyError) as caught:
            call()
        self.assertTrue(caught.exception.unknown_field)

    def test_plan(self):
        call = self.library.attention(**self.fields, causal=1)
        plan = self.library.plan(call)
        self.assertEqual((plan.workspace_bytes(), self.library.workspace_bytes(call)), (0, 0))
        call()
        expected = list(self.out)
        self.out[0] = self.out[1] = 0
        plan()
        self.assertEqual(list(self.out), expected)
        self.q[0] = 2
        plan()
        self.assertNotEqual(list(self.out), expected)
        call.args.causal = 0
        with self.assertRaisesRegex(binding.JitneyError, "causal"):
            plan()
        with self.assertRaisesRegex(binding.JitneyError, "scale"):
            self.library.plan(self.library.attention(**self.fields, scale=-1.0))

    def test_workspace(self):
        with self.assertRaisesRegex(binding.JitneyError, "workspace"):
            self.library.init_workspace(None, 1 << 20)
        with self.assertRaisesRegex(binding.JitneyError, "workspace"):
            self.library.attention(**self.fields, workspace_bytes=8)()
        self.library.attention(**self.fields, batch_invariant=1)()

    def test_forced(self):
        call = self.library.attention(**self.fields)
        with self.library.forced(None):
            call()
        with self.library.forced("attn_decode_mma"):
            with self.assertRaises(binding.JitneyError):
                call()
        call()
        with self.assertRaisesRegex(binding.JitneyError, "attn_flash"):
            with self.library.forced("attn_flash"):
                self.fail("it was taken")
        self.assertNotEqual(self.library.dll.jitney_pop(), 0)

    def test_torch_tensors(self):
        class Device:
            type, index = "cuda", None

        class Like:
            dtype, shape, device = "torch.bfloat16", (2, 3), Device

            def data_ptr(self):
                return 4096

            def stride(self):
                return (5, 1)

        made = binding.tensor_of(Like()).view
        self.assertEqual((made.data, made.ndim, made.shape[:2], made.strides[:2]),
                         (4096, 2, [2, 3], [5, 1]))
        self.assertEqual((made.dtype.code, made.dtype.bits, made.dtype.lanes), (4, 16, 1))
        self.assertEqual((made.device.device_type, made.device.device_id), (2, 0))


class Shapes(unittest.TestCase):
    def test_the_grids(self):
        cells = {mode: shapes.shapes_of(mode) for mode in shapes.MODES}
        self.assertEqual({mode: len(cells[mode]) for mode in ("prefill", "gqa", "decode")},
                         {"prefill": 36, "gqa": 9, "decode": 15})
        for shape in cells["prefill"]:
            self.assertEqual(shape.batch * shape.q_len, 16384)
        for mode, every in cells.items():
            self.assertEqual(len({shape.name() for shape in every}), len(every))
            self.assertEqual(len(shapes.shapes_of(mode, quick=True)), -(-len(every) // 3))

    def test_figures(self):
        shape = shapes.Attention("decode", 2, 8, 4, 1, 16, 64)
        self.assertEqual(shape.flops(), 4 * 2 * 8 * 16 * 64)
        self.assertEqual(shape.kv_bytes(), 2 * 2 * 2 * 4 * 16 * 64)
        for shape in shapes.shapes_of("ragged"):
            work = sum(n * n for n in shapes.ragged_lengths(shape))
            self.assertAlmostEqual(work / (shape.batch * shape.q_len**2), 1, delta=0.01)
        self.assertEqual(shapes.sets_needed(1, 320), 320)
        self.assertEqual(shapes.sets_needed(100e6, 320), 4)
        self.assertEqual(shapes.sets_needed(1e12, 320), 1)

    def test_forced_kernels(self):
        def forced(force, mode):
            return {shapes.kernel_of(force, shape) for shape in shapes.shapes_of(mode)}

        self.assertEqual(forced("mma", "gqa"), {"attn_prefill_mma"})
        self.assertEqual(forced("mma", "paged"), {"attn_decode_mma"})
        self.assertEqual(forced("mma", "window"), {"attn_prefill_mma", "attn_decode_mma"})
        self.assertEqual(forced("attn_prefill_scalar", "decode"), {"attn_prefill_scalar"})
        self.assertEqual(forced("mma", "rotary"), {None})
        self.assertEqual(forced(None, "decode"), {None})


class Report(unittest.TestCase):
    def test_line_and_summary(self):
        cell = {
            "mode": "decode",
            "cell": "one",
            "us": {"jitney": 10.0, "flash": 20.0},
            "GBps": {"jitney": 4000.0, "flash": 2000.0},
            "ratio": 2.0,
            "before": 1.01,
            "kernel": "attn_decode_mma<head_dim=128>@sm_90a",
            "max_error": 0.001,
        }
        line = compare.line_of(cell)
        for part in ("jitney 10 us 4000 GB/s", "flash 20 us", "ratio 2.000", "before 1.010", "attn_decode_mma<"):
            self.assertIn(part, line)
        slow = {**cell, "cell": "two", "ratio": 0.5}
        unrated = {**cell, "cell": "three", "ratio": None}
        summary = compare.summary_of([cell, slow, unrated])["decode"]
        self.assertAlmostEqual(summary["geometric_mean"], 1.0)
        self.assertEqual((summary["minimum"], summary["minimum_cell"], summary["cells"]),
                         (0.5, "two", 2))
        self.assertEqual(compare.summary_of([unrated]), {})
        self.assertAlmostEqual(compare.summary_of([cell], "before")["decode"]["minimum"], 1.01)

    def test_the_command(self):
        def run(*arguments):
            command = [sys.executable, "-B", f"{BENCH}/compare.py", *arguments]
            return subprocess.run(command, capture_output=True, text=True)

        listed = run("decode", "--list")
        self.assertEqual((listed.returncode, len(listed.stdout.splitlines())), (0, 15))
        self.assertNotEqual(run("encode", "--list").returncode, 0)
        self.assertNotEqual(run("--sets", "0", "--list").returncode, 0)

    def test_the_command_without_torch(self):
        with tempfile.TemporaryDirectory() as directory:
            pathlib.Path(directory, "torch.py").write_text("raise ImportError('none here')")
            done = subprocess.run(
                [sys.executable, "-B", f"{BENCH}/compare.py", "decode"],
                capture_output=True, text=True, env={**os.environ, "PYTHONPATH": directory},
            )
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^compare.py: .*torch.*none here.*\n$")

    def test_a_list_that_nobody_reads_to_its_end(self):
        with subprocess.Popen(
            [sys.executable, "-B", f"{BENCH}/compare.py", "--list"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as listing:
            listing.stdout.close()
            self.assertEqual(listing.stderr.read(), "")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
