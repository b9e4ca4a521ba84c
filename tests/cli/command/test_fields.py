"""The list of fields, as jitney ops tells it, and each operation run and explained by it: every field arrives."""
import math
import os
import random
import struct
import unittest

import support
from support import bf16, read_safetensors, safetensors

OPERATIONS = ["attention", "rotary", "append-kv", "merge-states", "fp8-quantize", "fp8-gemm", "fp8-linear",
              "fp8-linear-backward", "fp8-linear-inference"]


def numbers(seed, *shape):
    """Eighths from -2 to 2: exact in every format but FP8."""
    source = random.Random(seed)
    return ("F32", list(shape), [source.randint(-16, 16) / 8 for _ in range(math.prod(shape))])


def e4m3(code):
    """The number of a code that is not NaN."""
    sign = -1.0 if code & 0x80 else 1.0
    exponent, mantissa = code >> 3 & 15, code & 7
    return sign * (mantissa / 512 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7))


def fp32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


class Ops(support.CommandTest):
    def test_every_operation_is_listed(self):
        answer = self.succeed("ops", "--json").json
        self.assertLessEqual(set(OPERATIONS), {each["name"].replace("_", "-") for each in answer["operations"]})
        people = self.succeed("ops").out
        helped = self.succeed("run", "--help").out
        explained = self.succeed("explain", "--help").out
        for operation in answer["operations"]:
            name = operation["name"].replace("_", "-")
            self.assertIn(f"{name}  {operation['does']}\n", people)
            for text in (helped, explained):
                self.assertIn(f"\n  {name}", text)

    def test_what_a_field_tells(self):
        answer = self.succeed("ops", "--json").json
        by_name = {each["name"]: each for each in answer["operations"]}
        for operation in answer["operations"]:
            ends = set()
            for field in operation["fields"]:
                self.assertTrue(field["meaning"], field["name"])
                self.assertTrue(field["c"], field["name"])
                self.assertEqual(field["kind"] == "tensor", field["use"] != "none", field["name"])
                if field["kind"] == "tensor":
                    self.assertTrue(field["shape"], field["name"])
                    self.assertTrue(field["dtypes"] or field["like"], field["name"])
                    # No two tensors stand in one place.
                    self.assertNotIn(field["c"][0]["offset"], ends)
                    ends.add(field["c"][0]["offset"])
                for member in field["c"]:
                    self.assertLess(member["offset"], operation["c_bytes"])
        fields = {each["name"]: each for each in by_name["attention"]["fields"]}
        self.assertEqual(fields["q"]["use"], "read")
        self.assertEqual(fields["k"]["use"], "updated")
        self.assertEqual(fields["out"]["use"], "written")
        self.assertFalse(fields["out"]["optional"])
        self.assertTrue(fields["mask"]["optional"])
        self.assertEqual(fields["mask"]["dtypes"], ["bool"])
        self.assertEqual(fields["window_left"]["default"], "-1")
        self.assertEqual(len(fields["window_left"]["c"]), 2)
        recipe = {each["name"]: each for each in by_name["fp8_linear"]["fields"]}
        self.assertEqual(recipe["history"]["default"], "16")
        self.assertEqual(recipe["formats"]["words"], ["e4m3", "e5m2", "hybrid"])
        self.assertEqual(recipe["formats"]["default"], "hybrid")
        self.assertEqual(recipe["x_codes"]["group"], "saved")
        parts = by_name["merge_states"]["fields"][0]
        self.assertEqual([each["name"] for each in parts["elements"]], ["parts.out", "parts.lse"])


class Run(support.CommandTest):
    def run_on(self, operation, tensors, *flags):
        source = self.write("in", safetensors(tensors))
        self.succeed("run", operation, source, "-o", self.path("out"), *flags, gpu=False)
        return read_safetensors(self.path("out"))

    def refuse(self, operation, words, tensors, *flags):
        source = self.write("in", safetensors(tensors))
        self.fail_with(2, words, "run", operation, source, "-o", self.path("none"), *flags, gpu=False)

    def assert_close(self, got, wanted, tolerance=1e-5):
        self.assertEqual(len(got), len(wanted))
        for a, b in zip(got, wanted):
            self.assertAlmostEqual(a, b, delta=tolerance)

    def test_merge_states(self):
        out, lse = numbers(1, 2, 1, 3, 2, 4), numbers(2, 2, 1, 2, 3)
        result = self.run_on("merge-states", {"parts.out": out, "parts.lse": lse}, "--lse")
        self.assertEqual(sorted(result), ["lse", "out"])
        self.assertEqual(result["out"][:2], ("F32", [1, 3, 2, 4]))
        self.assertEqual(result["lse"][:2], ("F32", [1, 2, 3]))
        for i in range(3):
            for head in range(2):
                logs = [lse[2][part * 6 + head * 3 + i] for part in range(2)]
                total = sum(math.exp(value) for value in logs)
                self.assertAlmostEqual(result["lse"][2][head * 3 + i], math.log(total), delta=1e-5)
                for d in range(4):
                    at = (i * 2 + head) * 4 + d
                    wanted = sum(math.exp(logs[part]) * out[2][part * 24 + at] for part in range(2)) / total
                    self.assertAlmostEqual(result["out"][2][at], wanted, delta=1e-5)
        ragged = self.run_on("merge-states", {"parts.out": numbers(3, 3, 5, 2, 4), "parts.lse": numbers(4, 3, 5, 2)})
        self.assertEqual({name: each[1] for name, each in ragged.items()}, {"out": [5, 2, 4]})
        self.refuse("merge-states", ['"parts.lse"'], {"parts.out": out})

    def test_append_kv(self):
        new_k, new_v, q = numbers(1, 3, 2, 4), numbers(2, 3, 2, 4), numbers(3, 3, 4, 4)
        k, v = numbers(4, 2, 5, 2, 4), numbers(5, 2, 5, 2, 4)
        angles = [row * 0.5 + pair for row in range(9) for pair in range(2)]
        tensors = {
            "new_k": new_k, "new_v": new_v, "new_indptr": ("I64", [3], [0, 2, 3]), "k": k, "v": v,
            "kv_lens": ("I32", [2], [5, 2]), "q": q,
            "cos": ("F32", [9, 2], [fp32(math.cos(a)) for a in angles]),
            "sin": ("F32", [9, 2], [fp32(math.sin(a)) for a in angles]),
            "positions": ("I64", [3], [8, 0, 4]),
        }
        places = [(0, 3), (0, 4), (1, 1)]

        def turned(values, heads, row, half):
            position = tensors["positions"][2][row]
            out = []
            for head in range(heads):
                mine = values[(row * heads + head) * 4 :][:4]
                rotated = [0.0] * 4
                for pair in range(2):
                    one, two = (pair, pair + 2) if half else (2 * pair, 2 * pair + 1)
                    c, s = (tensors[name][2][position * 2 + pair] for name in ("cos", "sin"))
                    rotated[one] = mine[one] * c - mine[two] * s
                    rotated[two] = mine[one] * s + mine[two] * c
                out += rotated
            return out

        for half in (False, True):
            result = self.run_on("append-kv", tensors, "--style", "half_split" if half else "interleaved")
            self.assertEqual(sorted(result), ["k", "q_out", "v"])
            want_k, want_v = list(k[2]), list(v[2])
            for row, (request, place) in enumerate(places):
                at = (request * 5 + place) * 8
                want_k[at : at + 8] = turned(new_k[2], 2, row, half)
                want_v[at : at + 8] = new_v[2][row * 8 :][:8]
            self.assert_close(result["k"][2], want_k)
            self.assertEqual(result["v"][2], want_v)
            self.assert_close(result["q_out"][2], [x for row in range(3) for x in turned(q[2], 4, row, half)])
        pools = {name: tensors[name] for name in ("new_k", "new_v", "new_indptr", "kv_lens")}
        pools |= {"k_pool": numbers(6, 4, 4, 2, 4), "v_pool": numbers(7, 4, 4, 2, 4)}
        self.refuse("append-kv", ["nothing that names its pages", "block_table"], pools)
        table = ("I32", [2, 2], [3, 0, 2, 1])
        result = self.run_on("append-kv", {**pools, "block_table": table})
        self.assertEqual(sorted(result), ["k_pool", "v_pool"])
        want = list(pools["v_pool"][2])
        for row, slot in enumerate([3 * 4 + 3, 0, 2 * 4 + 1]):
            want[slot * 8 : slot * 8 + 8] = new_v[2][row * 8 :][:8]
        self.assertEqual(result["v_pool"][2], want)

    def linear(self, **more):
        return {"x": numbers(1, 2, 3, 4), "weight": numbers(2, 5, 4), **more}

    def product(self, left, right, rows, inner, columns):
        """left [rows, inner] right [columns, inner]^T"""
        return [sum(left[i * inner + k] * right[j * inner + k] for k in range(inner))
                for i in range(rows) for j in range(columns)]

    def test_fp8_linear(self):
        bias = ("F32", [5], [0.5, 1.0, -1.0, 2.0, 0.25])
        tensors = self.linear(bias=bias)
        flags = ["--recipe", "dynamic", "--formats", "e4m3", "--save"]
        result = self.run_on("fp8-linear", tensors, *flags)
        self.assertEqual(sorted(result), ["scales", "state", "weight_codes", "x_codes", "y"])
        self.assertEqual({name: each[:2] for name, each in result.items()}, {
            "y": ("F32", [2, 3, 5]), "state": ("F32", [3, 4]), "scales": ("F32", [2]),
            "x_codes": ("F8_E4M3", [2, 3, 4]), "weight_codes": ("F8_E4M3", [5, 4])})
        largest = [max(abs(value) for value in tensors[name][2]) for name in ("x", "weight")]
        self.assert_close(result["scales"][2], [each / 448 for each in largest], 1e-7)
        x = [e4m3(code) * result["scales"][2][0] for code in result["x_codes"][2]]
        weight = [e4m3(code) * result["scales"][2][1] for code in result["weight_codes"][2]]
        self.assert_close(x, tensors["x"][2], 0.1)
        self.assert_close(weight, tensors["weight"][2], 0.1)
        wanted = [value + bias[2][at % 5] for at, value in enumerate(self.product(x, weight, 6, 4, 5))]
        self.assert_close(result["y"][2], wanted)
        # The formats of codes and of the output; and a state that remembers.
        other = self.run_on("fp8-linear", tensors, "--fp8-format", "e5m2", "--scaling", "delayed", "--history", "3",
                            "--margin", "2", "--amax", "latest", "--y-format", "bf16", "--fast-accum", "--save")
        self.assertEqual(other["x_codes"][0], "F8_E5M2")
        self.assertEqual(other["y"][0], "BF16")
        self.assertEqual(other["state"][1], [3, 7])
        self.assertEqual(other["state"][2][0], fp32(57344 / largest[0] / 4))
        self.assertNotIn("saved", self.succeed("run", "fp8-linear", "--help").out.split("gives")[0])
        later = self.run_on("fp8-linear", {**tensors, "state": other["state"]}, "--formats", "e5m2", "--history", "3",
                            "--margin", "2", "--amax", "latest")
        self.assertEqual(sorted(later), ["state", "y"])
        self.assertEqual(later["state"][2][4:6], [largest[0], largest[0]])
        self.refuse("fp8-linear", ["state", "[3, 7]", "[3, 20]"], {**tensors, "state": other["state"]})

    def test_fp8_linear_backward(self):
        forward = self.run_on("fp8-linear", self.linear(), "--recipe", "dynamic", "--formats", "e4m3", "--save")
        saved = {name: forward[name] for name in ("x_codes", "weight_codes", "scales", "state")}
        grad = numbers(9, 2, 3, 5)
        result = self.run_on("fp8-linear-backward", {"grad_y": grad, **saved}, "--scaling", "dynamic", "--formats",
                             "e4m3", "--grad-bias-format", "bf16")
        self.assertEqual({name: each[:2] for name, each in result.items()}, {
            "grad_x": ("F32", [2, 3, 4]), "grad_weight": ("F32", [5, 4]), "grad_bias": ("BF16", [5]),
            "state": ("F32", [3, 4])})
        sums = [sum(grad[2][row * 5 + column] for row in range(6)) for column in range(5)]
        self.assertEqual(result["grad_bias"][2], [bf16(value) for value in sums])
        weight = [e4m3(code) * saved["scales"][2][1] for code in saved["weight_codes"][2]]
        columns = [weight[j * 4 + k] for k in range(4) for j in range(5)]
        self.assert_close(result["grad_x"][2], self.product(grad[2], columns, 6, 5, 4), 0.7)
        x = [e4m3(code) * saved["scales"][2][0] for code in saved["x_codes"][2]]
        turned = [grad[2][row * 5 + j] for j in range(5) for row in range(6)]
        columns = [x[row * 4 + k] for k in range(4) for row in range(6)]
        self.assert_close(result["grad_weight"][2], self.product(turned, columns, 5, 6, 4), 0.7)
        # The multipliers of x and weight stay, and that of grad_y is made of its amax.
        for row in (0, 4):
            self.assertEqual(result["state"][2][row : row + 3], saved["state"][2][row : row + 3])
        self.assertEqual(saved["state"][2][8:], [0.0] * 4)
        self.assertEqual(result["state"][2][8], fp32(448 / max(abs(value) for value in grad[2])))
        self.refuse("fp8-linear-backward", ['"scales"'], {"grad_y": grad, "x_codes": saved["x_codes"],
                                                          "weight_codes": saved["weight_codes"]})

    def test_options_are_those_of_the_list(self):
        x = {"x": numbers(1, 2, 4)}
        for flags, words in (
            (["--out-format", "bf16"], ["--out-format", "e4m3, e5m2"]),
            (["--causal"], ["no option --causal"]),
        ):
            self.refuse("fp8-quantize", words, x, *flags)
        for flags, words in (
            (["--history", "-1"], ["--history", "from 0 to"]),
            (["--formats", "int8"], ["--formats", "e4m3, e5m2, hybrid"]),
            (["--scaling", "static"], ["--scaling", "delayed, dynamic"]),
        ):
            self.refuse("fp8-linear", words, self.linear(), *flags)
        self.refuse("rotary", ["both x and q"], {"x": numbers(1, 1, 2, 1, 4), "q": numbers(1, 1, 2, 1, 4),
                                                 "cos": numbers(1, 2, 2), "sin": numbers(1, 2, 2)})

    def test_a_kernel_by_name_is_of_the_operation(self):
        source = self.write("in", safetensors({"x": numbers(1, 2, 4)}))
        self.fail_with(2, ["attn_decode_mma", "fp8_quantize"], "run", "fp8-quantize", source, "-o",
                       self.path("out"), "--force", "attn_decode_mma")
        self.assertFalse(os.path.exists(self.path("out")))


class Explain(support.CommandTest):
    def test_a_problem_told_by_its_fields(self):
        problem = ["explain", "fp8-linear-backward", "--grad-y", "64,96", "--x-codes", "64,128", "--weight-codes",
                   "96,128", "--scales", "2", "--state", "3,20", "--arch", "sm_89"]
        answer = self.succeed(*problem, "--json", gpu=False).json
        specs = [launch["spec"] for launch in answer["launches"]]
        self.assertEqual(specs[0].split("<")[0], "fp8_quantize")
        self.assertIn("format=bf16,out=e5m2", specs[0])
        fp32 = self.succeed(*problem, "--format", "fp32", "--formats", "e4m3", "--json", gpu=False).json
        self.assertIn("format=fp32,out=e4m3", fp32["launches"][0]["spec"])
        self.assertIn("workspace of the call: ", self.succeed(*problem, gpu=False).out)
        self.fail_with(2, ["grad_y"], "explain", "fp8-linear-backward", "--arch", "sm_89", gpu=False)
        # The same as the short form says of the same call.
        short = self.succeed("explain", "fp8-linear", "--x", "64,128", "--weight", "96,128", "--backward", "--bias",
                             "bf16", "--arch", "sm_89", "--json", gpu=False).json
        self.assertEqual(short, answer)


if __name__ == "__main__":
    unittest.main()
