"""Launches attn_prefill_wgmma on torch tensors through the driver's own functions."""
import math

import torch

from . import compiler, driver
from .structures import PrefillWgmmaParams, Strides, layout_checks


class Kernel:
    def __init__(self, variant, cubin):
        self.variant = variant
        self.function = driver.load_kernel(cubin, "attn_prefill_wgmma", variant.shared_bytes())
        self.next_tile = torch.zeros(1, dtype=torch.int32, device="cuda")


def kernel_of(variant):
    cubin, log = compiler.compile_cubin(variant.text(layout_checks()))
    return variant, cubin, log


def heads_taken_together(variant, group):
    """How many query heads of a KV head share a tile."""
    return max(g for g in range(1, group + 1) if group % g == 0 and 64 % g == 0)


def strides_of(tensor):
    """Of [batch, length, heads, head_dim], as the kernel counts them."""
    return Strides(tensor.stride(0), tensor.stride(1), tensor.stride(2))


class Call:
    """One launch. Tensors are [batch, length, heads, head_dim] by any strides; packed ones
    [1, total, heads, head_dim] with q_indptr and kv_indptr on the device."""

    def __init__(self, kernel, q, k, v, out, lse=None, scale=None, kv_lens=None, q_indptr=None, kv_indptr=None,
                 window=None, softcap=None, alibi=None, sinks=None, together=None, stays=True, l2_bytes=32 << 20):
        variant = kernel.variant
        self.kernel = kernel
        self.kept = [q, k, v, out, lse, kv_lens, q_indptr, kv_indptr, alibi, sinks]
        q_heads, kv_heads = q.shape[2], k.shape[2]
        group = q_heads // kv_heads
        g = together or heads_taken_together(variant, group)
        packed = q_indptr is not None
        p = PrefillWgmmaParams()
        a = p.attention
        positions, keys = q.shape[1], k.shape[1]
        batch = (q_indptr.numel() - 1) if packed else q.shape[0]

        def at(tensor):
            return tensor.data_ptr() if tensor is not None else None

        def key_map(tensor, dim):
            row, head, request = (each * 2 for each in (tensor.stride(1), tensor.stride(2), tensor.stride(0)))
            return driver.encode_map(
                tensor.data_ptr(), variant.format,
                [dim, keys, kv_heads, tensor.shape[0]], [row, head, request], [64, variant.tile_n, 1, 1],
            )

        def row_map(tensor, dim):
            row, head, request = (each * 2 for each in (tensor.stride(1), tensor.stride(2), tensor.stride(0)))
            return driver.encode_map(
                tensor.data_ptr(), variant.format,
                [dim, g, positions, q_heads // g, tensor.shape[0]], [head, row, head * g, request],
                [64, g, 64 // g, 1, 1],
            )

        p.q = row_map(q, variant.head_dim)
        p.out = row_map(out, variant.dim_v)
        p.k = key_map(k, variant.head_dim)
        p.v = key_map(v, variant.dim_v)
        a.q, a.k, a.v, a.out, a.lse = at(q), at(k), at(v), at(out), at(lse)
        a.q_strides, a.k_strides, a.v_strides, a.out_strides = map(strides_of, (q, k, v, out))
        if packed:
            a.q_strides.batch = a.out_strides.batch = 0
        if kv_indptr is not None:
            a.k_strides.batch = a.v_strides.batch = 0
        if lse is not None:  # [batch, heads, q], packed [total, heads]
            a.lse_strides = Strides(0, lse.stride(0), lse.stride(1)) if packed else Strides(
                lse.stride(0), lse.stride(2), lse.stride(1))
        a.batch, a.q_len, a.kv_len = batch, positions, keys
        a.kv_heads, a.group = q_heads // g, g
        scale = scale or 1 / math.sqrt(variant.head_dim)
        a.scale_log2 = scale * math.log2(math.e)
        if packed:
            ends = q_indptr.tolist()
            tiles = [(b, t) for b in range(batch)
                     for t in reversed(range(-(-(ends[b + 1] - ends[b]) * g // variant.tile_m)))]
            tiles.append((-1, 0))
            slots = torch.tensor(tiles, dtype=torch.int32, device="cuda").t().contiguous()
            self.kept.append(slots)
            a.qo_indptr, a.tile_batch, a.tile_index = at(q_indptr), at(slots[0]), at(slots[1])
            a.row_tiles = len(tiles)
        else:
            a.row_tiles = -(-positions * g // variant.tile_m)
        if kv_indptr is not None:
            a.kv_lengths, a.kv_indptr = 1, at(kv_indptr)
        if kv_lens is not None:
            a.kv_lengths, a.kv_lens = 2, at(kv_lens)
        a.window_left, a.window_right = window or (-1, -1)
        if softcap:
            a.softcap_scale = scale / softcap
        a.alibi_slopes, a.sinks = at(alibi), at(sinks)
        p.groups_a_kv_head = group // g
        a_head = keys * (variant.head_dim + variant.dim_v) * 2
        heads = a.kv_heads * (1 if packed else batch)
        p.heads_at_a_time = max(1, min(heads, l2_bytes // a_head * p.groups_a_kv_head))
        p.next_tile = at(kernel.next_tile)
        self.tiles = a.row_tiles * heads
        sms = torch.cuda.get_device_properties(0).multi_processor_count
        self.grid = min(self.tiles, sms) if stays else self.tiles
        self.launch = driver.Launch(kernel.function, p, self.grid, variant.threads(), variant.shared_bytes())

    def __call__(self):
        self.launch(torch.cuda.current_stream().cuda_stream)
