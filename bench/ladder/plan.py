"""The variants that bench/ladder_attention.py compares, and on what."""
from ladder.variants import Variant

BUDGET = 0.04
PEERS = ("cudnn",)

VARIANTS = {}
CALLS = {}


def add(name, l2_mib=32, **constants):
    VARIANTS[name] = Variant(**constants)
    CALLS[name] = {"l2_bytes": l2_mib << 20}


for causal in (0, 1):
    end = "c" if causal else "f"
    add(f"128-{end}", causal=causal)
    add(f"128q2-{end}", causal=causal, q_stages=2)
    add(f"64-{end}", head_dim=64, tile_m=192, stages=3, causal=causal)
    add(f"64q2-{end}", head_dim=64, tile_m=192, stages=3, q_stages=2, causal=causal)
    add(f"64m128-{end}", head_dim=64, stages=3, causal=causal)
    add(f"256-{end}", head_dim=256, tile_n=80, q_stages=1, causal=causal)
    add(f"256n64-{end}", head_dim=256, tile_n=64, q_stages=1, causal=causal)
    add(f"192/128-{end}", head_dim=192, head_dim_v=128, q_stages=1, causal=causal)
    add(f"192/128n96-{end}", head_dim=192, head_dim_v=128, tile_n=96, q_stages=2, causal=causal)
    add(f"192-{end}", head_dim=192, tile_n=112, q_stages=1, causal=causal)
    add(f"192n80-{end}", head_dim=192, tile_n=80, q_stages=2, causal=causal)
    add(f"96-{end}", head_dim=96, causal=causal)
    add(f"96q2-{end}", head_dim=96, q_stages=2, causal=causal)
    add(f"80-{end}", head_dim=80, causal=causal)
    add(f"packed-{end}", causal=causal, queries="packed")
    add(f"window-{end}", causal=causal, window=1)
add("128L8-c", causal=1, l2_mib=8)
add("64L8-c", head_dim=64, tile_m=192, stages=3, causal=1, l2_mib=8)
add("softcap-sinks-alibi-c", causal=1, softcap=1, alibi=1, sinks=1)
add("packed64-c", head_dim=64, tile_m=192, causal=1, queries="packed")
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
        (4, 40, 2, 1000, 700, {"lens": True}),
        (1, 8, 1, 1000, 1000, {"scale": 0.7}),
        (2, 40, 8, 1500, 1500, {"blhd": True}),
        (30, 40, 8, 150, 150, {"blhd": True}),
        (2, 4, 4, 700, 700, {"stays": False}),
        (1, 10, 2, 700, 900, {"together": 1}),
    ],
    "packed": [
        (8, 2, [5, 300, 0, 129, 64], [5, 900, 31, 129, 1]),
        (8, 2, [5, 300, 0, 129, 64, 7, 900] * 5, [5, 900, 31, 129, 0, 7, 1] * 5),
        (3, 3, [1000, 1], [1000, 4000]),
    ],
}


def cells(dim, heads, lengths, dim_v=None):
    for length in lengths:
        for causal in (False, True):
            batch = max(1, 16384 // length)
            yield (batch, heads, heads, length, length, dim, dim_v or dim, causal)


# batch, query heads, KV heads, q_len, kv_len, head_dim, head_dim of V, causal
CELLS = [
    *cells(128, 16, (512, 1024, 2048, 4096, 8192, 16384)),
    *cells(64, 32, (512, 1024, 2048, 4096, 8192, 16384)),
    *cells(256, 8, (512, 1024, 2048, 4096, 8192, 16384)),
    (1, 32, 4, 1024, 1024, 64, 64, True),
    (1, 32, 4, 4096, 4096, 64, 64, True),
    (1, 32, 4, 512, 512, 128, 128, False),
    (1, 32, 4, 1024, 1024, 128, 128, False),
    (1, 32, 4, 2048, 2048, 128, 128, False),
    (1, 32, 4, 2048, 2048, 128, 128, True),
    (4, 32, 4, 2048, 2048, 128, 128, True),
    (1, 32, 4, 4096, 4096, 128, 128, True),
    (8, 32, 8, 2048, 2048, 128, 128, True),
    (2, 8, 8, 8192, 8192, 96, 96, True),
    (4, 16, 2, 4096, 4096, 80, 80, True),
    (2, 8, 8, 8192, 8192, 192, 192, True),
    (4, 16, 16, 4096, 4096, 192, 128, True),
    (2, 16, 16, 8192, 8192, 192, 128, False),
]
