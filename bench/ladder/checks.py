"""Whether a variant computes attention: against torch in fp32, on random data."""
import math

import torch

from . import launcher


def relative_error(out, expected):
    difference = (out.float() - expected).norm()
    return float(difference / expected.norm().clamp_min(1e-30))


def reference(q, k, v, causal, scale, window=None, softcap=None, alibi=None, sinks=None):
    """[length, heads, dim] of one request in fp32: output, LSE [heads, length]."""
    group = q.shape[1] // k.shape[1]
    q, k, v = q.float(), k.float(), v.float()
    k = k.repeat_interleave(group, 1)
    v = v.repeat_interleave(group, 1)
    logits = torch.einsum("qhd,khd->hqk", q, k) * scale
    if softcap:
        logits = softcap * torch.tanh(logits / softcap)
    q_len, kv_len = q.shape[0], k.shape[0]
    places = torch.arange(q_len, device="cuda")[:, None] + (kv_len - q_len)
    keys = torch.arange(kv_len, device="cuda")[None, :]
    if alibi is not None:
        logits = logits - alibi[:, None, None] * (places - keys).abs()
    keep = torch.ones(q_len, kv_len, dtype=torch.bool, device="cuda")
    if causal:
        keep &= keys <= places
    if window:
        left, right = window
        if left >= 0:
            keep &= keys >= places - left
        if right >= 0:
            keep &= keys <= places + right
    logits = logits.masked_fill(~keep, -math.inf)
    lse = torch.logsumexp(logits, -1) if kv_len else torch.full(logits.shape[:2], -math.inf, device="cuda")
    empty = lse == -math.inf
    if sinks is not None:
        lse = torch.where(empty, lse, torch.logaddexp(lse, sinks[:, None].expand_as(lse)))
    weights = torch.exp(logits - torch.where(empty, torch.zeros_like(lse), lse)[..., None])
    return torch.einsum("hqk,khd->qhd", weights, v), lse


def _tensor(batch, length, heads, dim, dtype, blhd):
    if blhd:
        return torch.randn(batch, length, heads, dim, device="cuda", dtype=dtype)
    return torch.randn(batch, heads, length, dim, device="cuda", dtype=dtype).transpose(1, 2)


def _judge(name, case, out, lse, expected, expected_lse):
    wrong = []
    error = relative_error(out, expected)
    worst = float((out.float() - expected).abs().max()) if out.numel() else 0.0
    limit = 2e-2 + 2e-2 * float(expected.abs().max()) if out.numel() else 1.0
    if not error < 6e-3 or not worst < limit:
        wrong.append(f"output off by {error:.1e} (largest {worst:.1e})")
    seen = expected_lse != -math.inf
    if not torch.equal(lse == -math.inf, ~seen):
        wrong.append("LSE of empty rows")
    elif seen.any():
        off = float((lse - expected_lse)[seen].abs().max())
        if not off < 1e-3:
            wrong.append(f"LSE off by {off:.1e}")
    if wrong:
        print(f"  WRONG {name} {case}: {'; '.join(wrong)}", flush=True)
    return not wrong


def check_dense(name, kernel, case):
    batch, q_heads, kv_heads, q_len, kv_len = case[:5]
    extra = case[5] if len(case) > 5 else {}
    variant = kernel.variant
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[variant.format]
    blhd = extra.get("blhd", False)
    q = _tensor(batch, q_len, q_heads, variant.head_dim, dtype, blhd)
    k = _tensor(batch, kv_len, kv_heads, variant.head_dim, dtype, blhd)
    v = _tensor(batch, kv_len, kv_heads, variant.dim_v, dtype, blhd)
    room = torch.full((batch, q_len + 2, q_heads, variant.dim_v), math.nan, device="cuda", dtype=dtype)
    out = room[:, 1:-1]
    lse = torch.full((batch, q_heads, q_len), math.nan, device="cuda")
    options = {}
    lens = [kv_len] * batch
    if extra.get("lens"):
        lens = [(kv_len - 37 * b - 5) % (kv_len + 1) for b in range(batch)]
        options["kv_lens"] = torch.tensor(lens, dtype=torch.int32, device="cuda")
        for b, length in enumerate(lens):
            k[b, length:] = math.nan
            v[b, length:] = math.nan
    if variant.window:
        options["window"] = (100, -1) if variant.causal else (100, 33)
    if variant.softcap:
        options["softcap"] = 20.0
    if variant.alibi:
        options["alibi"] = torch.rand(q_heads, device="cuda") * 0.2
    if variant.sinks:
        options["sinks"] = torch.randn(q_heads, device="cuda")
    scale = extra.get("scale", 1 / math.sqrt(variant.head_dim))
    launcher.Call(kernel, q, k, v, out, lse, scale=scale, together=extra.get("together"),
                  stays=extra.get("stays", True), **options)()
    torch.cuda.synchronize()
    expected, expected_lse = [], []
    shared = {key: value for key, value in options.items() if key != "kv_lens"}
    for b, length in enumerate(lens):
        e, l = reference(q[b], k[b, :length], v[b, :length], variant.causal, scale, **shared)
        expected.append(e)
        expected_lse.append(l)
    right = _judge(name, case, out, lse, torch.stack(expected), torch.stack(expected_lse))
    if not room[:, 0].isnan().all() or not room[:, -1].isnan().all():
        print(f"  WRONG {name} {case}: rows beside the output were written", flush=True)
        right = False
    return right


def check_packed(name, kernel, case):
    q_heads, kv_heads, q_lens, kv_lens = case[:4]
    variant = kernel.variant
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[variant.format]

    def indptr(lens):
        return torch.tensor([sum(lens[:i]) for i in range(len(lens) + 1)], dtype=torch.int32, device="cuda")

    q = _tensor(1, sum(q_lens), q_heads, variant.head_dim, dtype, True)
    k = _tensor(1, sum(kv_lens), kv_heads, variant.head_dim, dtype, True)
    v = _tensor(1, sum(kv_lens), kv_heads, variant.dim_v, dtype, True)
    out = torch.full((1, sum(q_lens), q_heads, variant.dim_v), math.nan, device="cuda", dtype=dtype)
    lse = torch.full((sum(q_lens), q_heads), math.nan, device="cuda")
    launcher.Call(kernel, q, k, v, out, lse, q_indptr=indptr(q_lens), kv_indptr=indptr(kv_lens))()
    torch.cuda.synchronize()
    right, at_q, at_k = True, 0, 0
    for q_len, kv_len in zip(q_lens, kv_lens):
        rows, keys = slice(at_q, at_q + q_len), slice(at_k, at_k + kv_len)
        expected, expected_lse = reference(q[0, rows], k[0, keys], v[0, keys], variant.causal,
                                           1 / math.sqrt(variant.head_dim))
        right &= _judge(name, (case, q_len, kv_len), out[0, rows], lse[rows].t(), expected, expected_lse)
        at_q, at_k = at_q + q_len, at_k + kv_len
    return right


def check(name, kernel, cases):
    right = True
    for case in cases["packed" if kernel.variant.queries == "packed" else "dense"]:
        try:
            if kernel.variant.queries == "packed":
                right &= check_packed(name, kernel, case)
            else:
                right &= check_dense(name, kernel, case)
        except RuntimeError as error:
            print(f"  FAILED {name} {case}: {str(error)[:200]}", flush=True)
            if "CUDA" in str(error) or "cuLaunch" in str(error):
                raise SystemExit("the GPU's context is lost")
            right = False
    return right
