"""The problems that compare.py measures. Nothing here needs torch or a GPU."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Attention:
    mode: str
    batch: int
    q_heads: int
    kv_heads: int
    q_len: int
    kv_len: int
    head_dim: int
    causal: bool = False
    variant: str = ""  # what sets cells of one shape apart: "page 16", "random mask"

    def name(self):
        lengths = f"S{self.q_len}" if self.q_len == self.kv_len else f"q{self.q_len} kv{self.kv_len}"
        words = [
            f"d{self.head_dim}",
            f"B{self.batch}",
            f"H{self.q_heads}/{self.kv_heads}",
            lengths,
            "causal" if self.causal else "full",
            self.variant,
        ]
        return " ".join(filter(None, words))

    def flops(self):
        """Both products, halved where causal, as the field counts them."""
        pairs = self.batch * self.q_heads * self.q_len * self.kv_len
        return 4 * pairs * self.head_dim * (0.5 if self.causal else 1)

    def kv_bytes(self):
        return 2 * 2 * self.batch * self.kv_heads * self.kv_len * self.head_dim


@dataclass(frozen=True)
class Rotary:
    batch: int
    length: int
    heads: int
    head_dim: int
    mode: str = "rotary"

    def name(self):
        return f"d{self.head_dim} B{self.batch} H{self.heads} S{self.length}"

    def bytes(self):
        return 2 * 2 * self.batch * self.length * self.heads * self.head_dim


TOKENS = 16384


def prefill():
    for head_dim, heads in ((64, 32), (128, 16), (256, 8)):
        for length in (512, 1024, 2048, 4096, 8192, 16384):
            for causal in (False, True):
                batch = max(1, TOKENS // length)
                yield Attention("prefill", batch, heads, heads, length, length, head_dim, causal)


def gqa():
    for batch, kv_heads, length, head_dim, causal in (
        (1, 4, 1024, 64, True),
        (1, 4, 4096, 64, True),
        (1, 4, 512, 128, False),
        (1, 4, 1024, 128, False),
        (1, 4, 2048, 128, False),
        (1, 4, 2048, 128, True),
        (4, 4, 2048, 128, True),
        (1, 4, 4096, 128, True),
        (8, 8, 2048, 128, True),
    ):
        yield Attention("gqa", batch, 32, kv_heads, length, length, head_dim, causal)


DECODE = (
    (1, 32, 4, 512, 128),
    (1, 32, 4, 1024, 128),
    (1, 32, 4, 2048, 128),
    (1, 32, 4, 4096, 128),
    (16, 32, 4, 2048, 128),
    (32, 32, 4, 1024, 128),
    (1, 32, 8, 8192, 128),
    (1, 32, 8, 131072, 128),
    (16, 32, 8, 8192, 128),
    (64, 32, 8, 4096, 128),
    (128, 32, 8, 2048, 128),
    (128, 64, 8, 4096, 128),
    (64, 32, 32, 2048, 128),
    (64, 32, 8, 4096, 64),
    (32, 16, 4, 4096, 256),
)


def decode():
    for batch, q_heads, kv_heads, kv_len, head_dim in DECODE:
        yield Attention("decode", batch, q_heads, kv_heads, 1, kv_len, head_dim)


def paged():
    """Decode from pages in random order, beside dense decode of the same lengths."""
    for batch, q_heads, kv_heads, kv_len, head_dim in DECODE:
        if batch == 1 and kv_len < 4096:
            continue
        for page_size in (16, 1):
            yield Attention(
                "paged", batch, q_heads, kv_heads, 1, kv_len, head_dim, False, f"page {page_size}"
            )


def pages():
    """Prefill from pages in random order, beside dense prefill of the same lengths."""
    for head_dim, heads in ((64, 32), (128, 16), (256, 8)):
        for page_size in (1, 16, 64, 128):
            for causal in (False, True):
                yield Attention(
                    "pages", 4, heads, heads, 4096, 4096, head_dim, causal, f"page {page_size}"
                )


def ragged():
    """Packed prefill, beside dense prefill of the shape; lengths are in ragged_lengths()."""
    for head_dim, heads in ((64, 32), (128, 16), (256, 8)):
        for variant in ("equal", "mixed"):
            for causal in (False, True):
                yield Attention("ragged", 4, heads, heads, 4096, 4096, head_dim, causal, variant)


def ragged_lengths(shape):
    if shape.variant == "equal":
        return [shape.q_len] * shape.batch
    # The sum of squares, which is the work, is that of 4 requests of 4096 within 1%.
    return [6144, 3584, 2816, 2048, 1792, 896, 640, 384, 128, 1]


def mixed():
    """Packed requests of few queries, whose lengths are in mixed_lengths(), beside dense decode."""
    yield Attention("mixed", 4, 32, 8, 1, 32768, 128)
    yield Attention("mixed", 32, 32, 8, 1, 4096, 128)
    yield Attention("mixed", 32, 32, 8, 4, 4096, 128, True)
    yield Attention("mixed", 64, 32, 8, 8, 16384, 128, True, "random")


def mixed_lengths(shape, random):
    """(queries, keys) of each request; a shape has the most of them. `random` has randint()."""
    if shape.variant != "random":
        return [(shape.q_len, shape.kv_len)] * shape.batch
    return [(random.randint(1, shape.q_len), random.randint(512, shape.kv_len)) for _ in range(shape.batch)]


def mask():
    for head_dim, heads in ((64, 32), (128, 16), (256, 8)):
        for variant, causal in (("random mask", False), ("causal as a mask", True)):
            yield Attention("mask", 4, heads, heads, 4096, 4096, head_dim, causal, variant)


def window():
    """A window of 1024 keys, of as many causal queries or of one query a request."""
    for head_dim, heads in ((64, 32), (128, 16), (256, 8)):
        yield Attention("window", 4, heads, heads, 4096, 4096, head_dim, True, "window 1024")
    for batch, q_heads, kv_heads, kv_len, head_dim in ((16, 32, 8, 8192, 128), (64, 32, 8, 4096, 64)):
        yield Attention(
            "window", batch, q_heads, kv_heads, 1, kv_len, head_dim, True, "window 1024"
        )


def options():
    """What edits or adds to the scores, beside the same without it, which visits the same tiles."""
    for head_dim, heads in ((64, 32), (128, 16), (256, 8)):
        for variant in ("softcap", "alibi", "sinks", "wide window"):
            for causal in (False, True):
                yield Attention(
                    "options", 4, heads, heads, 4096, 4096, head_dim, causal, variant
                )


def rotary():
    for batch, length in ((1, 1), (32, 1), (1, 2048), (8, 2048)):
        yield Rotary(batch, length, 32, 128)


@dataclass(frozen=True)
class Quantize:
    rows: int
    cols: int
    # "dynamic"; "scales " and what shares one; or which codes come of a given multiplier, and with
    # amax or without.
    variant: str
    mode: str = "quantize"

    def name(self):
        return f"{self.rows}x{self.cols} {self.variant}"

    def codes(self):
        return 2 if "both" in self.variant else 1

    def bytes(self):
        """x is read, the codes are written; that dynamic scaling reads x twice is its own affair."""
        return (2 + self.codes()) * self.rows * self.cols


def quantize():
    for rows, cols in ((4096, 4096), (8192, 8192), (128, 4096), (16384, 1616)):
        for variant in ("row", "row amax", "transposed", "both amax", "dynamic"):
            yield Quantize(rows, cols, variant)
    for rows, cols in ((1, 4096), (16, 4096), (128, 4096), (4096, 4096), (8192, 8192), (16384, 5120)):
        for part in ("row", "group", "block"):
            if part != "block" or rows >= 128:
                yield Quantize(rows, cols, f"scales {part}")


@dataclass(frozen=True)
class Linear:
    """A layer whose weight is in FP8: x [m, k] in bf16 is cast, and multiplied by weight [n, k]."""

    m: int
    n: int
    k: int
    scales: str  # "channel": a scale a row of x and of weight; "block": 1x128 and 128x128
    mode: str = "linear"

    def name(self):
        return f"{self.m}x{self.n}x{self.k} {self.scales}"

    def bytes(self):
        return 2 * self.m * self.k + self.n * self.k + 2 * self.m * self.n

    def flops(self):
        return 2 * self.m * self.n * self.k


def linear():
    for m in (1, 16, 128, 1024, 4096):
        for n, k in ((4096, 4096), (14336, 4096), (4096, 14336)):
            for scales in ("channel", "block"):
                yield Linear(m, n, k, scales)


@dataclass(frozen=True)
class Product:
    m: int
    n: int
    k: int
    layout: str = "nt"  # whether a and b are transposed; torch takes "nt" alone
    mode: str = "gemm"

    def name(self):
        return f"{self.m}x{self.n}x{self.k} {self.layout}"

    def flops(self):
        return 2 * self.m * self.n * self.k

    def bytes(self):
        return (self.m + self.n) * self.k + 2 * self.m * self.n


def gemm():
    """FP8 products as a linear layer makes them, and one size in the other layouts."""
    for side in (256, 512, 1024, 1536, 2048, 4096, 8192):
        yield Product(side, side, side)
    for m in (1, 16, 32, 64, 128, 256, 384, 512, 1024):
        yield Product(m, 4096, 4096)
    for m in (16, 32, 64, 128, 1024, 4096):
        yield Product(m, 14336, 4096)
    yield Product(4096, 4096, 14336)
    yield Product(128, 4096, 14336)
    for layout in ("nn", "tt", "tn"):
        yield Product(4096, 4096, 4096, layout)
        yield Product(16, 4096, 4096, layout)


CODES = ("values", "multiplier", "scales")


@dataclass(frozen=True)
class Norm:
    rows: int
    cols: int
    residual: bool
    codes: str  # of CODES: what the call gives
    mode: str = "norm"

    def name(self):
        return f"{self.rows}x{self.cols}{' residual' if self.residual else ''} {self.codes}"

    def bytes(self):
        """x and the residual are read, their sum and the result written; weights count for nothing."""
        result = 2 if self.codes == "values" else 1
        return (2 + (4 if self.residual else 0) + result) * self.rows * self.cols


@dataclass(frozen=True)
class Gate:
    rows: int
    cols: int
    activation: str
    codes: str
    mode: str = "gate"

    def name(self):
        return f"{self.rows}x{self.cols} {self.activation} {self.codes}"

    def bytes(self):
        return (4 + (2 if self.codes == "values" else 1)) * self.rows * self.cols


def norm():
    """The rows of a layer from one token to a long prompt, with the residual and without; heads."""
    for residual in (False, True):
        for rows, cols in ((1, 4096), (64, 4096), (2048, 4096), (16384, 4096), (16384, 8192)):
            for codes in CODES:
                yield Norm(rows, cols, residual, codes)
    for rows, cols in ((131072, 128), (8192, 16384)):
        yield Norm(rows, cols, False, "values")


def gate():
    for rows in (1, 64, 2048, 16384):
        for codes in CODES:
            yield Gate(rows, 14336, "silu", codes)
    for activation in ("gelu", "gelu_tanh", "relu2"):
        yield Gate(16384, 14336, activation, "values")


MODES = {
    "prefill": prefill,
    "gqa": gqa,
    "decode": decode,
    "rotary": rotary,
    "paged": paged,
    "ragged": ragged,
    "mixed": mixed,
    "mask": mask,
    "window": window,
    "pages": pages,
    "options": options,
    "quantize": quantize,
    "gemm": gemm,
    "linear": linear,
    "norm": norm,
    "gate": gate,
}


def shapes_of(mode, quick=False):
    every = list(MODES[mode]())
    return every[::3] if quick else every


def kernel_of(force, shape):
    """The kernel that --force means for this cell: a name, or a variant such as mma."""
    if force is None or shape.mode in ("rotary", "quantize", "gemm", "linear", "norm", "gate"):
        return None
    if force.startswith("attn_"):
        return force
    return f"attn_{'decode' if shape.q_len == 1 else 'prefill'}_{force}"


def sets_needed(bytes_a_set, most):
    """Input sets to rotate over, so that each is gone from the L2 when its turn comes again."""
    return max(1, min(most, int(300e6 / max(bytes_a_set, 1)) + 1))
