"""The variants that bench/ladder_attention.py compares, and on what."""
from ladder.variants import Variant

BUDGET = 0.05
PEERS = ("cudnn",)

VARIANTS = {}
CALLS = {}


def add(name, stays=True, **constants):
    VARIANTS[name] = Variant(**constants)
    CALLS[name] = {"stays": stays}


for causal in (0, 1):
    end = "c" if causal else "f"
    add(f"plain-{end}", stays=False, causal=causal, turns=0)
    add(f"turns-{end}", stays=False, causal=causal)
    add(f"stays-noturns-{end}", causal=causal, turns=0)
    add(f"stays-{end}", causal=causal)
    add(f"d64-192x128-{end}", head_dim=64, tile_m=192, causal=causal)
    add(f"d64-192x128-noturns-{end}", head_dim=64, tile_m=192, causal=causal, turns=0)
    add(f"d64-192x128s3-{end}", head_dim=64, tile_m=192, causal=causal, stages=3)
    add(f"d64-128x128-{end}", head_dim=64, causal=causal)
    add(f"d64-128x192-{end}", head_dim=64, tile_n=192, causal=causal)
    add(f"d256-80-{end}", head_dim=256, tile_n=80, causal=causal)
    add(f"d256-80-noturns-{end}", head_dim=256, tile_n=80, causal=causal, turns=0)
    add(f"d192/128-{end}", head_dim=192, head_dim_v=128, tile_n=112, causal=causal)
    add(f"d192/128-128-{end}", head_dim=192, head_dim_v=128, tile_n=128, causal=causal)
    add(f"d192-{end}", head_dim=192, tile_n=112, causal=causal)
    add(f"d96-{end}", head_dim=96, tile_n=160, causal=causal)
add("n176-f", tile_n=176)
add("n160-f", tile_n=160)
add("n112s3-f", tile_n=112, stages=2)
add("d80-c", head_dim=80, causal=1)
add("window-c", causal=1, window=1)
add("window-f", window=1)
add("softcap-sinks-alibi-c", causal=1, softcap=1, alibi=1, sinks=1)
add("packed-c", causal=1, queries="packed")
add("packed-f", queries="packed")
add("fp16-c", causal=1, format="fp16")

# batch, query heads, KV heads, q_len, kv_len, options
CHECKS = {
    "dense": [
        (1, 1, 1, 128, 128),
        (2, 3, 3, 300, 300),
        (1, 2, 1, 1, 65),
        (2, 8, 2, 333, 517),
        (1, 12, 2, 500, 77),
        (1, 4, 4, 257, 2049, {"blhd": True}),
        (3, 6, 2, 190, 700, {"lens": True}),
        (1, 8, 1, 1000, 1000, {"scale": 0.7}),
        (2, 40, 8, 1500, 1500, {"blhd": True}),
        (2, 4, 4, 700, 700, {"stays": False}),
    ],
    "packed": [
        (8, 2, [5, 300, 0, 129, 64], [5, 900, 31, 129, 1]),
        (3, 3, [1000, 1], [1000, 4000]),
    ],
}

# batch, query heads, KV heads, q_len, kv_len, head_dim, head_dim of V, causal
CELLS = [
    (4, 16, 16, 4096, 4096, 128, 128, True),
    (4, 16, 16, 4096, 4096, 128, 128, False),
    (4, 32, 32, 4096, 4096, 64, 64, True),
    (4, 32, 32, 4096, 4096, 64, 64, False),
    (4, 8, 8, 4096, 4096, 256, 256, True),
    (4, 8, 8, 4096, 4096, 256, 256, False),
    (1, 16, 16, 16384, 16384, 128, 128, True),
    (1, 16, 16, 16384, 16384, 128, 128, False),
    (1, 16, 16, 4096, 4096, 192, 128, True),
    (32, 16, 16, 512, 512, 128, 128, True),
    (32, 16, 16, 512, 512, 128, 128, False),
    (2, 16, 16, 4096, 4096, 96, 96, True),
    (2, 8, 8, 4096, 4096, 192, 192, True),
]
