"""The variants that bench/ladder_fp8_gemm.py compares, and on what."""
from .variants import Variant

VARIANTS = {}
CALLS = {}  # what launches are given beside


def add(name, call=None, **constants):
    VARIANTS[name] = Variant(**constants)
    CALLS[name] = call or {}


# The letter at the end: fast, or promoting.
def both(name, **constants):
    add(name + "-f", **constants)
    add(name + "-p", promote=1, **constants)


# One may be chosen; the others are steps of the ladder.
CANDIDATES = []


def candidate(name, **constants):
    before = set(VARIANTS)
    both(name, **constants)
    CANDIDATES.extend(each for each in VARIANTS if each not in before)


for splits in (1, 2, 4):
    for rows in (16, 32, 64):
        candidate(f"s{rows}x64k{splits}", tile_m=rows, tile_n=64, stages=8, swap=1, splits=splits)
for splits in (1, 2):
    for rows in (96, 128, 192):
        candidate(f"s{rows}x64k{splits}", tile_m=rows, tile_n=64, stages={96: 8, 128: 7, 192: 5}[rows], swap=1,
                  splits=splits)
    candidate(f"64x64k{splits}", tile_m=64, tile_n=64, stages=8, splits=splits)
    candidate(f"128x64k{splits}", tile_n=64, stages=6 if splits == 2 else 8, splits=splits)
    candidate(f"128x128k{splits}t2", stages=6 if splits == 1 else 4, splits=splits, pieces=2)
    candidate(f"s192x128k{splits}", tile_m=192, stages=5 if splits == 1 else 3, swap=1, splits=splits)
candidate("128x64t2", tile_n=64, stages=7, pieces=2)
candidate("128x96", tile_n=96, stages=7)
candidate("128x192t3", tile_n=192, stages=4, pieces=3)
candidate("128x192", tile_n=192, stages=5)
candidate("128x256t4", tile_n=256, stages=3, pieces=4)
candidate("128x256t2", tile_n=256, pieces=2)
candidate("256x128t2", tile_m=256, pieces=2)
candidate("256x128t4", tile_m=256, stages=3, pieces=4)
for group in (4, 8, 32):
    add(f"128x256t4g{group}-f", {"group": group}, tile_n=256, stages=3, pieces=4)
    add(f"256x128t2g{group // 2}-p", {"group": group // 2}, tile_m=256, promote=1, pieces=2)
add("128x256t4late-f", {"early": False}, tile_n=256, stages=3, pieces=4)
add("s16x64k2late-f", {"early": False}, tile_m=16, tile_n=64, stages=8, swap=1, splits=2)
add("s16x64k2s16-f", tile_m=16, tile_n=64, stages=16, swap=1, splits=2)
add("s16x64k2s12-f", tile_m=16, tile_n=64, stages=12, swap=1, splits=2)
# Finer scales.
for end, scales in (("r", "sides"), ("b", "blocks")):
    for promote in (0, 1) if end == "r" else (1,):
        way = "p" if promote else "f"
        more = {"promote": promote, "scales": scales}
        add(f"256x128t2-{end}{way}", tile_m=256, pieces=2, **more)
        add(f"128x256t2-{end}{way}", tile_n=256, pieces=2, **more)
        add(f"128x256t4-{end}{way}", tile_n=256, stages=3, pieces=4, **more)
        add(f"128x128t2-{end}{way}", stages=6, pieces=2, **more)
        add(f"128x64-{end}{way}", tile_n=64, stages=8, **more)
        add(f"128x64k2-{end}{way}", tile_n=64, stages=6, splits=2, **more)
        add(f"64x64-{end}{way}", tile_m=64, tile_n=64, stages=8, **more)
        if end == "r":
            add(f"128x96-{end}{way}", tile_n=96, stages=7, **more)
            add(f"128x192t3-{end}{way}", tile_n=192, stages=4, pieces=3, **more)
        for rows in (16, 32, 64, 128):
            for splits in (1, 2):
                add(f"s{rows}x64k{splits}-{end}{way}", tile_m=rows, tile_n=64, stages=7, swap=1, splits=splits,
                    **more)
# Checked alone: formats.
for out in ("fp32", "fp16", "e4m3", "e5m2"):
    add(f"check-{out}", out=out, promote=1)
    add(f"check-{out}-t", out=out, promote=1, pieces=2)
    add(f"check-{out}-s", out=out, tile_m=32, swap=1, splits=2, stages=6)
add("check-52", a="e5m2", promote=1)
add("check-25", b="e5m2", swap=1, tile_m=64)
add("check-22", a="e5m2", b="e5m2")
add("check-s96k4", out="fp32", tile_m=96, swap=1, splits=4, stages=4)

# m, n, k, options
CHECKS = [
    (128, 128, 128, {}),
    (300, 520, 1040, {"bias": "fp32"}),
    (1, 264, 2064, {"bias": "bf16", "pad": 16}),
    (257, 720, 400, {"bias": "bf16", "pad_out": 16}),
    (17, 1001, 1152, {"pad_out": 3, "bias": "fp32"}),
    (700, 1300, 4112, {"group": 2, "lean": True}),
    (1500, 3000, 640, {"group": 4}),
]

CELLS = [
    (256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (1536, 1536, 1536), (2048, 2048, 2048),
    (4096, 4096, 4096), (8192, 8192, 8192),
    (1, 4096, 4096), (16, 4096, 4096), (64, 4096, 4096), (128, 4096, 4096), (256, 4096, 4096), (384, 4096, 4096),
    (512, 4096, 4096), (1024, 4096, 4096), (16, 14336, 4096), (128, 14336, 4096), (1024, 14336, 4096),
    (4096, 14336, 4096), (4096, 4096, 14336), (128, 4096, 14336),
]


def runs(variant, m, n, k):
    """Whether a variant is worth timing there."""
    tiles = -(-m // variant.tile_m) * -(-n // variant.tile_n) * variant.splits
    if variant.splits > 1 and tiles > 200:
        return False
    if tiles > 132 * 24 and variant.tile_m * variant.tile_n < 128 * 128:
        return False
    if tiles < 20 and n * k > 2_000_000:
        return False
    waste = -(-m // variant.tile_m) * variant.tile_m / m
    return waste <= 2 or variant.tile_m <= 16 or (variant.tile_m == 64 and variant.swap and m > 16)


# Where the choice among the candidates is checked.
GRID = [
    (m, n, k)
    for m in (1, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192)
    for n, k in ((4096, 4096), (14336, 4096), (4096, 14336), (2048, 2048), (7168, 2048), (1024, 8192), (6144, 4096),
                 (5120, 5120), (28672, 4096), (1536, 7168))
]
