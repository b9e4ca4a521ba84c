"""Inputs, and torch's own attention on them."""
import torch
import torch.nn.functional as functional
from torch.nn.attention import SDPBackend, sdpa_kernel


def inputs(batch, q_heads, kv_heads, q_len, kv_len, dim, dim_v, dtype=torch.bfloat16):
    def random(heads, length, width):
        return torch.randn(batch, heads, length, width, device="cuda", dtype=dtype)

    return random(q_heads, q_len, dim), random(kv_heads, kv_len, dim), random(kv_heads, kv_len, dim_v)


def name_of(cell):
    batch, q_heads, kv_heads, q_len, kv_len, dim, dim_v, causal = cell
    dims = f"d{dim}" if dim == dim_v else f"d{dim}/{dim_v}"
    lengths = f"S{q_len}" if q_len == kv_len else f"S{q_len}/{kv_len}"
    return f"{dims} B{batch} H{q_heads}/{kv_heads} {lengths} {'causal' if causal else 'full'}"


def _torch(backend):
    def make(q, k, v, causal):
        def call():
            with sdpa_kernel(backend):
                return functional.scaled_dot_product_attention(
                    q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1]
                )

        return call

    return make


PEERS = {"flash": _torch(SDPBackend.FLASH_ATTENTION), "cudnn": _torch(SDPBackend.CUDNN_ATTENTION)}
