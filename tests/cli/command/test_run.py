"""jitney run on real and made tensors, on the GPU where there is one and on the reference backend."""
import math
import os
import random
import unittest

import support
from support import bf16, from_bf16, read_safetensors, safetensors

INPUT = os.path.join(support.DATA, "minilm_layer.safetensors")
EXPECTED = os.path.join(support.DATA, "minilm_layer.expected.safetensors")


def attention_file(q_len=3, kv_len=5, heads=2, head_dim=8, mask=None, seed=1):
    source = random.Random(seed)

    def tensor(length):
        count = length * heads * head_dim
        return ("BF16", [1, length, heads, head_dim], [bf16(source.gauss(0, 1)) for _ in range(count)])

    tensors = {"q": tensor(q_len), "k": tensor(kv_len), "v": tensor(kv_len)}
    if mask is not None:
        tensors["mask"] = ("BOOL", [1, kv_len], mask)
    return tensors


def attention_by_hand(tensors, causal=False, scale=None):
    """out and lse of one batch, in double precision."""
    _, (_, q_len, heads, head_dim), q = tensors["q"]
    _, (_, kv_len, _, _), k = tensors["k"]
    v = tensors["v"][2]
    mask = tensors.get("mask", (None, None, [True] * kv_len))[2]
    scale = 1 / math.sqrt(head_dim) if scale is None else scale
    out = [0.0] * len(q)
    lse = [-math.inf] * (heads * q_len)

    def row(values, position, head):
        start = (position * heads + head) * head_dim
        return [from_bf16(code) for code in values[start : start + head_dim]]

    for head in range(heads):
        for i in range(q_len):
            seen = [j for j in range(kv_len) if mask[j] and (not causal or j <= i + kv_len - q_len)]
            if not seen:
                continue
            query = row(q, i, head)
            scores = [scale * sum(a * b for a, b in zip(query, row(k, j, head))) for j in seen]
            largest = max(scores)
            weights = [math.exp(score - largest) for score in scores]
            lse[head * q_len + i] = largest + math.log(sum(weights))
            for d in range(head_dim):
                total = sum(w * row(v, j, head)[d] for w, j in zip(weights, seen))
                out[(i * heads + head) * head_dim + d] = total / sum(weights)
    return out, lse


class RunAttention(support.CommandTest):
    def attention(self, *arguments, **options):
        return self.run_command("run", "attention", *arguments, **options)

    def test_foreign_text_is_shown_and_not_obeyed(self):
        source = self.write("in", safetensors(attention_file()))
        evil = self.path("a\n\x1b[2Jb")
        self.succeed("run", "attention", source, "-o", evil, gpu=False)
        out = self.succeed("run", "attention", source, "-o", self.path("c\x1bd"), "--expect", evil,
                           gpu=False).out
        self.assertNotIn("\x1b", out)
        ran, compared, wrote = out.splitlines()
        self.assertTrue(compared.endswith("a\\n\\x1b[2Jb"), compared)
        self.assertEqual(wrote, "wrote " + self.path("c\\x1bd"))

    def test_the_input_is_not_replaced(self):
        content = safetensors(attention_file())
        source = self.write("in", content)
        os.symlink("in", self.path("link"))
        os.link(source, self.path("hard"))
        expected = self.write("expected", safetensors({}))
        operations = ("attention", "rotary", "fp8-quantize", "fp8-gemm")
        for operation in operations:
            for output in (source, "in", "./in", self.path("link"), self.path("hard")):
                self.fail_with(2, ["would replace it", output], "run", operation, source, "-o", output,
                               gpu=False)
        self.fail_with(2, ["would replace it"], "run", "attention", self.path("link"), "-o", source,
                       gpu=False)
        self.fail_with(2, ["would replace it"], "run", "attention", source, "-o", expected,
                       "--expect", expected, gpu=False)
        with open(source, "rb") as file:
            self.assertEqual(file.read(), content)

    def test_a_number_of_threads_that_is_none_is_a_warning(self):
        source = self.write("in", safetensors(attention_file()))
        for threads in ("q", "0", "-1"):
            outcome = self.succeed("run", "attention", source, "-o", self.path("out"), gpu=False,
                                   JITNEY_NUM_THREADS=threads)
            self.assertEqual(outcome.err.count(f'JITNEY_NUM_THREADS is "{threads}"'), 1)

    def test_a_real_layer_here(self):
        outcome = self.succeed(
            "run", "attention", INPUT, "-o", self.path("out"), "--expect", EXPECTED, "--json"
        )
        result = outcome.json
        self.assertIn(result["backend"], ("jit", "reference"))
        self.assertEqual(result["spec"] is None, result["backend"] == "reference")
        self.assertGreater(result["ms"], 0)
        expect = result["expect"]
        self.assertLess(expect["max_abs_error"], 0.016)
        self.assertGreater(expect["max_abs_error"], 1e-4, "bf16 can't be exact: was it compared?")
        self.assertLess(expect["mean_abs_error"], 1e-3)
        self.assertEqual(expect["tolerance"], 0.02)
        out = read_safetensors(self.path("out"))
        self.assertEqual(list(out), ["out"])
        self.assertEqual(out["out"][:2], ("BF16", [4, 28, 12, 32]))

    def test_a_real_layer_without_a_gpu(self):
        result = self.succeed(
            "run", "attention", INPUT, "-o", self.path("out"), "--expect", EXPECTED, "--json", gpu=False
        ).json
        self.assertEqual((result["backend"], result["spec"]), ("reference", None))
        people = self.succeed(
            "run", "attention", INPUT, "-o", self.path("out"), "--expect", EXPECTED, gpu=False
        )
        self.assertIn("reference backend", people.out)
        self.assertIn("largest absolute error 0.00", people.out)

    def test_the_reference_backend_by_name(self):
        for choice in ({}, {"JITNEY_BACKEND": "reference"}):
            flags = [] if choice else ["--backend", "reference"]
            result = self.succeed(
                "run", "attention", INPUT, "-o", self.path("out"), *flags, "--json", **choice
            ).json
            self.assertEqual(result["backend"], "reference")

    def test_above_the_tolerance(self):
        outcome = self.fail_with(
            1, ["above the tolerance of 1e-05"], "run", "attention", INPUT, "-o", self.path("out"),
            "--expect", EXPECTED, "--tolerance", "0.00001", "--json",
        )
        self.assertFalse(outcome.json["expect"]["within"])
        self.assertTrue(os.path.exists(self.path("out")), "the result is there to be looked at")

    def test_options_against_numbers_made_here(self):
        plain = attention_file()
        masked = attention_file(mask=[True, False, True, False, True])
        longer = attention_file(q_len=5, kv_len=3)
        for tensors, causal, scale in (
            (plain, False, None),
            (plain, True, None),
            (plain, False, 0.5),
            (masked, True, 0.25),
            (longer, True, None),  # the first rows see nothing
        ):
            flags = (["--causal"] if causal else []) + (["--scale", str(scale)] if scale else [])
            with self.subTest(flags=flags, mask="mask" in tensors):
                source = self.write("in", safetensors(tensors))
                self.succeed("run", "attention", source, "-o", self.path("out"), "--lse", *flags)
                result = read_safetensors(self.path("out"))
                out, lse = attention_by_hand(tensors, causal, scale)
                self.assertEqual(result["lse"][1], [1, 2, tensors["q"][1][1]])
                for got, wanted in zip(result["out"][2], out):
                    self.assertAlmostEqual(from_bf16(got), wanted, delta=0.01 + 0.01 * abs(wanted))
                for got, wanted in zip(result["lse"][2], lse):
                    self.assertTrue(got == wanted or abs(got - wanted) < 0.01, (got, wanted))

    def test_what_must_be_compared_is_there(self):
        source = self.write("in", safetensors(attention_file()))
        lse = self.write("lse", safetensors({"lse": ("F32", [1, 2, 3], [0.0] * 6)}))
        arguments = ["run", "attention", source, "-o", self.path("out"), "--expect", lse]
        self.fail_with(2, ["lse"], *arguments)
        self.fail_with(1, ["above the tolerance"], *arguments, "--lse")
        shape = self.write("shape", safetensors({"out": ("F32", [1, 3, 16], [0.0] * 48)}))
        self.fail_with(2, ["[1, 3, 16]", "[1, 3, 2, 8]"], *arguments[:-1], shape)
        nan = self.write("nan", safetensors({"out": ("F32", [1, 3, 2, 8], [math.nan] * 48)}))
        outcome = self.fail_with(1, ["inf"], *arguments[:-1], nan, "--tolerance", "1e300", "--json")
        self.assertIsNone(outcome.json["expect"]["max_abs_error"])
        self.fail_with(2, ["holds no tensor"], *arguments[:-1], self.write("none", safetensors({})))

    def test_dtypes_that_no_operation_takes(self):
        foreign = dict(attention_file(), step=("F64", [1], [7.0]), blocks=("U8", [3], [1, 2, 3]))
        source = self.write("in", safetensors(foreign))
        self.succeed("run", "attention", source, "-o", self.path("out"))
        asked = self.write("asked", safetensors(dict(attention_file(), mask=("U8", [1, 3], [1] * 3))))
        self.fail_with(2, ['"mask" as U8', "BOOL"], "run", "attention", asked, "-o", self.path("out"))
        wanted = ["run", "attention", source, "-o", self.path("out"), "--expect"]
        out = self.write("expected", safetensors({"out": ("F64", [1, 3, 2, 8], [0.0] * 48)}))
        self.fail_with(2, ['"out" as F64'], *wanted, out)

    def test_another_file_in_place_of_safetensors(self):
        for content, word in ((b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
                              (b"<!DOCTYPE html>\n<html>", "HTML page")):
            source = self.write("in", content)
            self.fail_with(2, [word, source], "run", "rotary", source, "-o", self.path("out"))

    def test_empty_problems(self):
        for tensors in (attention_file(q_len=0), attention_file(kv_len=0)):
            source = self.write("in", safetensors(tensors))
            self.succeed("run", "attention", source, "-o", self.path("out"), "--json")
            self.assertTrue(all(code == 0 for code in read_safetensors(self.path("out"))["out"][2]))

    def test_hostile_inputs(self):
        output = ["-o", self.path("out")]
        whole = safetensors(attention_file())
        for name, content in (
            ("empty", b""),
            ("short", whole[:100]),
            ("long", whole + b"x"),
            ("huge-header", b"\xff" * 8 + whole[8:]),
            ("no-json", b"\x08" + b"\0" * 7 + b"hello wo"),
        ):
            with self.subTest(name=name):
                self.fail_with(2, [name], "run", "attention", self.write(name, content), *output)
        self.fail_with(1, ["absent"], "run", "attention", self.path("absent"), *output)
        self.fail_with(1, [self.directory], "run", "attention", self.directory, *output)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_tensors_that_do_not_fit(self):
        def refuse(words, change):
            tensors = attention_file()
            change(tensors)
            source = self.write("in", safetensors(tensors))
            self.fail_with(2, words, "run", "attention", source, "-o", self.path("out"))

        refuse(["no tensor \"v\""], lambda t: t.pop("v"))
        refuse(["\"masks\"", "mask"], lambda t: t.update(masks=("BOOL", [1], [True])))
        refuse(["q", "dimensions"], lambda t: t.update(q=("BF16", [16], [0] * 16)))
        refuse(["k"], lambda t: t.update(k=("BF16", [1, 5, 2, 4], [0] * 40)))
        refuse(["k"], lambda t: t.update(k=("F32", [1, 5, 2, 8], [0.0] * 80)))
        refuse(["mask"], lambda t: t.update(mask=("BOOL", [1, 4], [True] * 4)))
        refuse(["q"], lambda t: t.update(q=("I32", [1, 3, 2, 8], [0] * 48)))

    def test_options_that_cannot_be_meant(self):
        start = ["run", "attention", INPUT, "-o", self.path("out")]
        for flags, words in (
            (["--scale", "-1"], ["scale"]),
            (["--scale", "nan"], ["--scale", "nan"]),
            (["--scale", "big"], ["--scale", "big"]),
            (["--scale", "1e999"], ["--scale"]),
            (["--tolerance", "0.1"], ["--expect"]),
            (["--expect", EXPECTED, "--tolerance", "-1"], ["--tolerance", "-1"]),
            (["--backend", "cuda"], ["--backend", "jit, reference"]),
            (["--device", "-1"], ["--device"]),
            (["--force", "attn_flash"], ["attn_flash", "attn_prefill_mma"]),
            (["--force", "rotary_emb"], ["rotary_emb", "attn_prefill_mma"]),
            (["--force", "attn_prefill_mma", "--backend", "reference"], ["--force"]),
        ):
            with self.subTest(flags=flags):
                self.fail_with(2, words, *start, *flags)

    def test_a_gpu_that_is_not_there(self):
        start = ["run", "attention", INPUT, "-o", self.path("out")]
        for flags in (["--backend", "jit"], ["--force", "attn_prefill_mma"], ["--device", "0"]):
            with self.subTest(flags=flags):
                self.fail_with(1, ["no CUDA driver"], *start, *flags, gpu=False)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_outputs_that_cannot_be_written(self):
        for target in (self.path("no/such/out"), self.directory):
            self.fail_with(1, [target], "run", "attention", INPUT, "-o", target)


def rotate(values, heads, head_dim, cos, sin, half, positions, half_split):
    """Of fp32 values [length, heads, head_dim]."""
    out = list(values)
    for token, position in enumerate(positions):
        for head in range(heads):
            start = (token * heads + head) * head_dim
            for i in range(half):
                first, second = (i, i + half) if half_split else (2 * i, 2 * i + 1)
                a, b = values[start + first], values[start + second]
                c, s = cos[position * half + i], sin[position * half + i]
                out[start + first] = a * c - b * s
                out[start + second] = b * c + a * s
    return out


class RunRotary(support.CommandTest):
    LENGTH, HEADS, HEAD_DIM, TABLE = 4, 3, 16, 9

    def tables(self, half):
        angles = [p / 100 ** (i / half) for p in range(self.TABLE) for i in range(half)]
        return {
            "cos": ("F32", [self.TABLE, half], [math.cos(angle) for angle in angles]),
            "sin": ("F32", [self.TABLE, half], [math.sin(angle) for angle in angles]),
        }

    def tensor(self, heads, seed):
        source = random.Random(seed)
        count = self.LENGTH * heads * self.HEAD_DIM
        values = [round(source.uniform(-2, 2) * 1024) / 1024 for _ in range(count)]
        return ("F32", [1, self.LENGTH, heads, self.HEAD_DIM], values)

    def check(self, got, tensor, tables, positions, half_split):
        _, (_, _, heads, head_dim), values = tensor
        half = tables["cos"][1][1]
        wanted = rotate(
            values, heads, head_dim, tables["cos"][2], tables["sin"][2], half, positions, half_split
        )
        self.assertEqual(got[:2], tensor[:2])
        self.assertEqual(len(got[2]), len(wanted))
        for a, b in zip(got[2], wanted):
            self.assertAlmostEqual(a, b, delta=1e-5)

    def test_styles_widths_and_positions(self):
        for style in ("interleaved", "half_split"):
            for half in (8, 3):
                for positions in (None, [8, 0, 3, 3]):
                    with self.subTest(style=style, half=half, positions=positions):
                        tensors = {"x": self.tensor(self.HEADS, 1), **self.tables(half)}
                        if positions:
                            tensors["positions"] = ("I64", [self.LENGTH], positions)
                        source = self.write("in", safetensors(tensors))
                        result = self.succeed(
                            "run", "rotary", source, "-o", self.path("out"), "--style", style, "--json"
                        ).json
                        self.assertIn(result["backend"], ("jit", "reference"))
                        out = read_safetensors(self.path("out"))
                        self.assertEqual(list(out), ["out"])
                        self.check(
                            out["out"], tensors["x"], tensors,
                            positions or range(self.LENGTH), style == "half_split",
                        )

    def test_q_and_k(self):
        tensors = {"q": self.tensor(4, 2), "k": self.tensor(1, 3), **self.tables(8)}
        source = self.write("in", safetensors(tensors))
        self.succeed("run", "rotary", source, "-o", self.path("out"))
        out = read_safetensors(self.path("out"))
        self.assertEqual(sorted(out), ["k_out", "q_out"])
        self.check(out["q_out"], tensors["q"], tensors, range(self.LENGTH), False)
        self.check(out["k_out"], tensors["k"], tensors, range(self.LENGTH), False)

    def test_against_a_file(self):
        tensors = {"x": self.tensor(2, 4), **self.tables(8)}
        source = self.write("in", safetensors(tensors))
        self.succeed("run", "rotary", source, "-o", self.path("first"))
        arguments = ["run", "rotary", source, "-o", self.path("out"), "--expect", self.path("first")]
        expect = self.succeed(*arguments, "--json", "--tolerance", "0").json["expect"]
        self.assertEqual(expect["max_abs_error"], 0)
        self.fail_with(1, ["above the tolerance"], *arguments, "--style", "half_split")

    def test_tensors_that_do_not_fit(self):
        def refuse(words, change):
            tensors = {"x": self.tensor(2, 5), **self.tables(8)}
            change(tensors)
            source = self.write("in", safetensors(tensors))
            self.fail_with(2, words, "run", "rotary", source, "-o", self.path("out"))

        refuse(["\"sin\""], lambda t: t.pop("sin"))
        refuse(["\"q\""], lambda t: t.pop("x"))
        refuse(["both x and q"], lambda t: t.update(q=t["x"]))
        refuse([], lambda t: t.update(self.tables(9)))
        refuse(["x has 3 dimensions"], lambda t: t.update(x=("F32", [4, 2, 16], [0.0] * 128)))
        short = ("F32", [1, 8], [0.0] * 8)
        refuse(["x has 4 rows and cos only 1"], lambda t: t.update(cos=short, sin=short))
        refuse(["positions"], lambda t: t.update(positions=("F32", [4], [0.0] * 4)))
        refuse([], lambda t: t.update(cos=("BF16", [9, 8], [0] * 72)))


class RunFp8Quantize(support.CommandTest):
    def quantize(self, tensors, *arguments):
        source = self.write("in", safetensors(tensors))
        self.succeed("run", "fp8-quantize", source, "-o", self.path("out"), *arguments)
        return read_safetensors(self.path("out"))

    def test_codes_and_amax(self):
        x = ("BF16", [2, 3], [bf16(value) for value in (1.0, -2.5, 1000.0, 0.0, -0.0, 0.25)])
        out = self.quantize({"x": x, "multiplier": ("F32", [], [2.0])})
        self.assertEqual(out["out"], ("F8_E4M3", [2, 3], [0x40, 0xCA, 0x7E, 0x00, 0x80, 0x30]))
        self.assertEqual(out["amax"], ("F32", [1], [1000.0]))
        self.assertEqual(sorted(out), ["amax", "out"])

    def test_without_a_multiplier_transposed_in_e5m2(self):
        x = ("F32", [1, 2, 2], [1.0, 2.0, 4.0, 65536.0])
        out = self.quantize({"x": x}, "--out-format", "e5m2", "--transposed")
        self.assertEqual(out["out"], ("F8_E5M2", [1, 2, 2], [0x3C, 0x40, 0x44, 0x7B]))
        self.assertEqual(out["out_transposed"], ("F8_E5M2", [2, 2], [0x3C, 0x44, 0x40, 0x7B]))

    def test_dynamic(self):
        x = ("F16", [4], [1.0, -7.0, 3.5, 0.0])
        out = self.quantize({"x": x}, "--dynamic")
        self.assertEqual(out["multiplier"][2], [64.0])
        self.assertEqual(out["scale"][2], [1 / 64])
        self.assertEqual(out["amax"][2], [7.0])
        self.assertEqual(out["out"][2][1], 0xFE)

    def test_scales_of_rows_groups_and_blocks(self):
        x = ("F32", [2, 130], [1.0] * 128 + [2.0, 4.0] + [0.0] * 128 + [-7.0, 7.0])
        scales = {"row": ([2], [1 / 112, 1 / 64]),
                  "group": ([2, 2], [1 / 448, 1 / 112, 1.0, 1 / 64]),
                  "block": ([1, 2], [1 / 448, 1 / 64])}
        for granularity, (shape, wanted) in scales.items():
            with self.subTest(granularity=granularity):
                out = self.quantize({"x": x}, "--dynamic", "--granularity", granularity)
                self.assertEqual(sorted(out), ["out", "scale"])
                self.assertEqual(out["scale"][1], shape)
                for scale, want in zip(out["scale"][2], wanted):
                    self.assertAlmostEqual(scale, want, 7)
                self.assertEqual(out["out"][2][259], 0x7E)
        out = self.quantize({"x": x}, "--dynamic", "--granularity", "row", "--power-of-two")
        self.assertEqual(out["scale"][2], [1 / 64, 1 / 64])

    def test_what_does_not_fit(self):
        x = ("F32", [2], [1.0, 2.0])

        def refuse(words, tensors, *arguments):
            source = self.write("in", safetensors(tensors))
            self.fail_with(2, words, "run", "fp8-quantize", source, "-o", self.path("out"), *arguments)

        refuse(['"x"'], {"multiplier": ("F32", [1], [1.0])})
        refuse(["multiplier", "[2]"], {"x": x, "multiplier": x})
        refuse(["--dynamic"], {"x": x, "multiplier": ("F32", [1], [1.0])}, "--dynamic")
        refuse(["int32"], {"x": ("I32", [1], [1])})


class RunFp8Gemm(support.CommandTest):
    # [[1, 2, -0.5], [0, 4, 1]] and, transposed, [[1, 1, 2], [0.5, -1, 4]]
    A = ("F8_E4M3", [2, 3], [0x38, 0x40, 0xB0, 0x00, 0x48, 0x38])
    B = ("F8_E5M2", [2, 3], [0x3C, 0x3C, 0x40, 0x38, 0xBC, 0x44])
    SCALE = ("F32", [1], [0.5])

    def multiply(self, tensors, *arguments):
        source = self.write("in", safetensors(tensors))
        self.succeed("run", "fp8-gemm", source, "-o", self.path("out"), *arguments)
        return read_safetensors(self.path("out"))

    def test_a_product_in_each_format(self):
        tensors = {"a": self.A, "b": self.B, "dequant_scale": self.SCALE}
        out = self.multiply(tensors, "--trans-b")
        self.assertEqual(out["out"], ("BF16", [2, 2], [bf16(v) for v in (1.0, -1.75, 3.0, 0.0)]))
        self.assertEqual(sorted(out), ["out"])
        tensors["bias"] = ("F32", [2], [10.0, -10.0])
        out = self.multiply(tensors, "--trans-b", "--out", "fp32", "--fast-accum")
        self.assertEqual(out["out"], ("F32", [2, 2], [11.0, -11.75, 13.0, -10.0]))
        tensors["out_multiplier"] = ("F32", [], [2.0])
        out = self.multiply(tensors, "--trans-b", "--out", "e4m3")
        self.assertEqual(out["amax"], ("F32", [1], [13.0]))
        self.assertEqual(out["out"][2][0], 0x5B)

    def test_both_transposed(self):
        a = ("F8_E4M3", [3, 2], [0x38, 0x00, 0x40, 0x48, 0xB0, 0x38])
        b = ("F8_E5M2", [3, 2], [0x3C, 0x38, 0x3C, 0xBC, 0x40, 0x44])
        tensors = {"a": a, "b": b, "dequant_scale": self.SCALE}
        out = self.multiply(tensors, "--trans-a", "--out", "fp32")
        self.assertEqual(out["out"], ("F32", [2, 2], [1.0, -1.75, 3.0, 0.0]))

    def test_what_does_not_fit(self):
        def refuse(words, tensors, *arguments):
            source = self.write("in", safetensors(tensors))
            self.fail_with(2, words, "run", "fp8-gemm", source, "-o", self.path("out"), *arguments)

        good = {"a": self.A, "b": self.B, "dequant_scale": self.SCALE}
        refuse(["trans_b"], good)
        refuse(["no scale", "dequant_scale, or scale_a and scale_b"], {"a": self.A, "b": self.B}, "--trans-b")
        refuse(["out_multiplier"], good, "--trans-b", "--out", "e5m2")
        refuse(["a of", "[6]", "[m, k]"], {**good, "a": ("F8_E4M3", [6], [0] * 6)}, "--trans-b")
        refuse(["bf16"], {**good, "a": ("BF16", [2, 3], [0] * 6)}, "--trans-b")


if __name__ == "__main__":
    unittest.main()
