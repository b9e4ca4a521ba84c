"""Launches fp8_gemm_wgmma on torch tensors."""
import torch

from ladder import driver

from .structures import Fp8GemmWgmmaParams
from .variants import BYTES, FORMATS


def ceil_div(a, b):
    return -(-a // b)


class Kernel:
    def __init__(self, variant, cubin):
        self.variant = variant
        self.function = driver.load_kernel(cubin, "fp8_gemm_wgmma", variant.shared_bytes())
        self.counters = torch.zeros(2, dtype=torch.int32, device="cuda")


def takes(variant, m, n, k):
    """Whether a launch of this shape has a tile of K for each split."""
    k_tiles = ceil_div(k, 128)
    if variant.pieces and n * BYTES[variant.out] % 16:
        return False
    return (variant.splits - 1) * ceil_div(k_tiles, variant.splits) < k_tiles


class Call:
    """One launch: a [m, k], b [n, k], out [m, n], rows contiguous. `scale` is one fp32; or a pair, of a [1] or [m] and
    of b [1] or [n], or of a [m, ceil(k / 128)] and of b [ceil(n / 128), ceil(k / 128)] by any strides. With `indptr`, int32
    [groups + 1], b and its scales have the groups as their first dimension."""

    def __init__(self, kernel, a, b, out, scale, bias=None, multiplier=None, amax=None, group=None, early=True, sms=132,
                 indptr=None):
        v = kernel.variant
        self.kept = [kernel, a, b, out, scale, bias, multiplier, amax, indptr]
        (m, k), n = a.shape, b.shape[-2]
        groups = 0 if indptr is None else b.shape[0]
        if groups:
            b = b.view(-1, k)
        p = Fp8GemmWgmmaParams()
        u_tensor, v_tensor = (b, a) if v.swap else (a, b)

        def make_map(tensor, rows):
            return driver.encode_map(
                tensor.data_ptr(), "bytes", [k, tensor.shape[0]], [tensor.stride(0)], [128, rows]
            )

        p.u = make_map(u_tensor, v.tile_u)
        p.v = make_map(v_tensor, v.tile_v)
        size = BYTES[v.out]
        if v.pieces:
            p.out = driver.encode_map(
                out.data_ptr(), v.out, [n, m], [out.stride(0) * size], [128 // size, 16]
            )
        g = p.gemm
        g.out, g.out_stride = out.data_ptr(), out.stride(0)
        if v.scales == "one":
            g.scale = scale.data_ptr()
        else:
            of_a, of_b = scale
            g.scales.a, g.scales.b = of_a.data_ptr(), of_b.data_ptr()
            if groups:
                g.scales.b_group, of_b = of_b.stride(0), of_b[0]
            if v.scales == "sides":
                g.scales.a_row, g.scales.b_column = int(of_a.numel() > 1), int(of_b.numel() > 1)
            else:
                (g.scales.a_row, g.scales.a_block), (g.scales.b_column, g.scales.b_block) = of_a.stride(), of_b.stride()
        if bias is not None:
            g.bias, g.bias_format = bias.data_ptr(), 2 if bias.dtype == torch.bfloat16 else 0
        g.multiplier = multiplier.data_ptr() if multiplier is not None else None
        if amax is not None:
            g.amax, g.amax_counters = amax.data_ptr(), kernel.counters.data_ptr()
        g.m, g.n, g.k = m, n, k
        g.m_tiles = ceil_div(m, v.tile_m) if not groups else (m + groups * (v.tile_m - 1)) // v.tile_m
        if groups:
            g.group_indptr, g.groups, g.b_group = indptr.data_ptr(), groups, n * k
        g.n_tiles = ceil_div(n, v.tile_n)
        g.group = min(group or max(1, 2048 // (v.tile_m)), g.m_tiles)
        g.splits, g.split_tiles = v.splits, ceil_div(ceil_div(k, 128), v.splits)
        g.out_vectors = int(out.data_ptr() % 16 == 0 and out.stride(0) * size % 16 == 0)
        tiles = g.m_tiles * g.n_tiles
        blocks = tiles * v.splits if v.splits > 1 else min(tiles, sms)
        self.launch = driver.Launch(
            kernel.function, p, blocks, v.threads(), v.shared_bytes(), v.splits, early
        )

    def __call__(self):
        self.launch(torch.cuda.current_stream().cuda_stream)
