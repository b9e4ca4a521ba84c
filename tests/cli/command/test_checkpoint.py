"""A small Llama layer as FP8 checkpoints hold it, computed by the command, beside fp64 of what its codes mean.

The names and layouts are those of compressed-tensors: `weight` in E4M3 with `weight_scale`, which is [n, 1] (a scale an
output channel, activations cast token by token) or [ceil(n / 128), ceil(k / 128)] (blocks, activations cast by 128).
"""
import math
import random
import unittest

import support
from support import read_safetensors, safetensors

TOKENS, HIDDEN, HEADS, KV_HEADS, HEAD_DIM, INNER = 5, 192, 4, 2, 48, 320
LINEARS = {
    "self_attn.q_proj": (HEADS * HEAD_DIM, HIDDEN),
    "self_attn.k_proj": (KV_HEADS * HEAD_DIM, HIDDEN),
    "self_attn.v_proj": (KV_HEADS * HEAD_DIM, HIDDEN),
    "self_attn.o_proj": (HIDDEN, HEADS * HEAD_DIM),
    "mlp.gate_proj": (INNER, HIDDEN),
    "mlp.up_proj": (INNER, HIDDEN),
    "mlp.down_proj": (HIDDEN, INNER),
}


def e4m3(code):
    sign = -1.0 if code & 0x80 else 1.0
    exponent, mantissa = code >> 3 & 15, code & 7
    return sign * (mantissa / 512 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7))


def checkpoint(source, blocks):
    tensors = {}
    for name, (n, k) in LINEARS.items():
        codes = [source.randrange(0x20, 0x48) | source.choice((0, 0x80)) for _ in range(n * k)]
        shape = [-(-n // 128), -(-k // 128)] if blocks else [n, 1]
        scales = [source.uniform(0.02, 0.06) for _ in range(shape[0] * shape[1])]
        tensors[f"{name}.weight"] = ("F8_E4M3", [n, k], codes)
        tensors[f"{name}.weight_scale"] = ("F32", shape, scales)
    return tensors


def dequantized(tensors, name):
    _, (n, k), codes = tensors[f"{name}.weight"]
    _, (rows, columns), scales = tensors[f"{name}.weight_scale"]
    blocks = rows != n
    return [
        [e4m3(codes[i * k + j]) * scales[i // 128 * columns + j // 128 if blocks else i] for j in range(k)]
        for i in range(n)
    ]


def matrix(values, columns):
    return [values[i : i + columns] for i in range(0, len(values), columns)]


def product(x, weight):
    return [[math.fsum(a * b for a, b in zip(row, column)) for column in weight] for row in x]


def normed(x):
    return [[value / math.sqrt(sum(v * v for v in row) / len(row) + 1e-6) for value in row] for row in x]


def relative(actual, expected):
    """Of all elements together."""
    pairs = [(a, e) for one, other in zip(actual, expected) for a, e in zip(one, other)]
    return math.sqrt(sum((a - e) ** 2 for a, e in pairs) / sum(e * e for _, e in pairs))


class Checkpoint(support.CommandTest):
    def run_on(self, operation, tensors, *arguments):
        source = self.write("in", safetensors(tensors))
        self.succeed("run", operation, source, "-o", self.path("out"), *arguments)
        return read_safetensors(self.path("out"))

    def linear(self, tensors, name, x):
        n, k = LINEARS[name]
        flat = [value for row in x for value in row]
        out = self.run_on("fp8-linear-inference", {
            "x": ("F32", [len(x), k], flat),
            "weight": tensors[f"{name}.weight"],
            "weight_scale": tensors[f"{name}.weight_scale"],
        })
        self.assertEqual(out["y"][:2], ("F32", [len(x), n]))
        y = matrix(out["y"][2], n)
        # x is cast on the way: a relative error of at most 1/16 an element, most of which cancel.
        self.assertLess(relative(y, product(x, self.weights[name])), 0.04, name)
        return y

    def attention(self, q, k, v):
        """Without rotation: its own tests have that."""
        shapes = ((q, HEADS), (k, KV_HEADS), (v, KV_HEADS))
        q, k, v = (
            ("F32", [1, TOKENS, heads, HEAD_DIM], [value for row in x for value in row]) for x, heads in shapes
        )
        out = self.run_on("attention", {"q": q, "k": k, "v": v}, "--causal")
        return matrix(out["out"][2], HEADS * HEAD_DIM)

    def layer(self, x, linear, attention):
        q, k, v = (linear(f"self_attn.{name}_proj", normed(x)) for name in "qkv")
        attended = linear("self_attn.o_proj", attention(q, k, v))
        x = [[a + b for a, b in zip(one, other)] for one, other in zip(x, attended)]
        gate, up = (linear(f"mlp.{name}_proj", normed(x)) for name in ("gate", "up"))
        inner = [[g / (1 + math.exp(-g)) * u for g, u in zip(one, other)] for one, other in zip(gate, up)]
        down = linear("mlp.down_proj", inner)
        return [[a + b for a, b in zip(one, other)] for one, other in zip(x, down)]

    def check_layer(self, blocks):
        source = random.Random(support.SEED)
        tensors = checkpoint(source, blocks)
        self.weights = {name: dequantized(tensors, name) for name in LINEARS}
        x = [[source.gauss(0, 1) for _ in range(HIDDEN)] for _ in range(TOKENS)]

        def exact_attention(q, k, v):
            out = []
            for i, row in enumerate(q):
                out.append([])
                for head in range(HEADS):
                    own = slice(head * HEAD_DIM, (head + 1) * HEAD_DIM)
                    kv = head // (HEADS // KV_HEADS)
                    keys = slice(kv * HEAD_DIM, (kv + 1) * HEAD_DIM)
                    scores = [sum(a * b for a, b in zip(row[own], k[j][keys])) / math.sqrt(HEAD_DIM)
                              for j in range(i + 1)]
                    weights = [math.exp(score - max(scores)) for score in scores]
                    out[-1] += [sum(w * v[j][keys][d] for j, w in enumerate(weights)) / sum(weights)
                                for d in range(HEAD_DIM)]
            return out

        exact = self.layer(x, lambda name, rows: product(rows, self.weights[name]), exact_attention)
        actual = self.layer(x, lambda name, rows: self.linear(tensors, name, rows), self.attention)
        error = relative(actual, exact)
        self.assertLess(error, 0.1)  # of seven products, and of a softmax between
        self.assertGreater(error, 1e-6)  # codes were multiplied

    def test_scales_of_channels(self):
        self.check_layer(blocks=False)

    def test_scales_of_blocks(self):
        self.check_layer(blocks=True)

    def test_a_scale_of_x_that_a_calibration_found(self):
        source = random.Random(support.SEED)
        tensors = checkpoint(source, blocks=False)
        name = "mlp.gate_proj"
        x = [[source.gauss(0, 1) for _ in range(HIDDEN)] for _ in range(TOKENS)]
        largest = max(abs(value) for row in x for value in row)
        out = self.run_on("fp8-linear-inference", {
            "x": ("F32", [TOKENS, HIDDEN], [value for row in x for value in row]),
            "weight": tensors[f"{name}.weight"],
            "weight_scale": tensors[f"{name}.weight_scale"],
            "x_scale": ("F32", [1], [largest / 448]),
        })
        y = matrix(out["y"][2], INNER)
        self.assertLess(relative(y, product(x, dequantized(tensors, name))), 0.05)


if __name__ == "__main__":
    unittest.main()
