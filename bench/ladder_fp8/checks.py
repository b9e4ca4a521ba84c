"""Whether a variant multiplies: against torch in fp64, on random data."""
import math

import torch

from . import launcher

TYPES = {
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "e4m3": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2,
}
# Half a step of the format, relative, and its smallest step.
STEPS = {"fp32": (2**-24, 0), "fp16": (2**-11, 2**-24), "bf16": (2**-8, 0), "e4m3": (2**-4, 2**-9), "e5m2": (2**-3, 2**-16)}


def operand(rows, k, kind, pad=0):
    room = torch.randn(rows, k + pad, device="cuda").mul_(2).to(TYPES[kind])
    return room[:, :k]


def scales_of(kind, m, n, k, lean):
    """What a launch takes, and of a [m, k] and b [n, k] what each element is multiplied by. `lean`: as few numbers, or
    scales of a along m, as the kernel takes too."""
    def some(*shape):
        return torch.rand(*shape, device="cuda") + 0.5

    if kind == "one":
        scale = torch.tensor([0.37], device="cuda")
        return scale, scale.view(1, 1), torch.ones(1, 1, device="cuda")
    if kind == "sides":
        of_a, of_b = some(1 if lean else m), some(n)
        return (of_a, of_b), of_a.view(-1, 1), of_b.view(-1, 1)
    blocks = -(-k // 128)
    of_a, of_b = (some(blocks, m).t() if lean else some(m, blocks)), some(-(-n // 128), blocks)
    wide = of_b.repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)[:, :k]
    return (of_a, of_b), of_a.repeat_interleave(128, 1)[:, :k], wide


def check_case(kernel, case):
    """What is wrong, or None."""
    m, n, k, extra = case
    v = kernel.variant
    a, b = operand(m, k, v.a, extra.get("pad", 0)), operand(n, k, v.b, extra.get("pad", 0))
    kind = TYPES[v.out]
    room = torch.full((m + 2, n + extra.get("pad_out", 0)), 77.0, device="cuda").to(kind)
    out = room[1:-1, :n]
    scale, times_a, times_b = scales_of(v.scales, m, n, k, extra.get("lean"))
    bias = None
    if extra.get("bias"):
        bias = torch.randn(n, device="cuda").to(TYPES[extra["bias"]])
    fp8 = v.out in ("e4m3", "e5m2")
    multiplier = torch.tensor([0.31 if v.out == "e4m3" else 2.5], device="cuda") if fp8 else None
    amax = torch.full((1,), math.nan, device="cuda") if fp8 else None
    call = launcher.Call(kernel, a, b, out, scale, bias, multiplier, amax, group=extra.get("group"))
    for _ in range(2):
        call()
    torch.cuda.synchronize()
    a64, b64 = a.float().double() * times_a, b.float().double() * times_b
    expected = a64 @ b64.t()
    sizes = a64.abs() @ b64.abs().t()
    if bias is not None:
        expected += bias.double()
    lost = sizes * (2**-11 * min(1, (256 / k) ** 0.5) if v.promote else 2**-10) + 1e-6
    if fp8:
        largest = expected.abs().max().item()
        if not abs(amax.item() - largest) <= largest * 5e-3:
            return f"amax {amax.item()} in place of {largest}"
        expected = (expected * multiplier.double()).clamp(-448 if v.out == "e4m3" else -57344, 448 if v.out == "e4m3" else 57344)
        lost = lost * multiplier.double()
    relative, smallest = STEPS[v.out]
    off = (out.float().double() - expected).abs()
    bound = expected.abs() * relative * 1.01 + smallest + lost
    bad = ~(off <= bound)
    if bad.any():
        at = bad.nonzero()[0].tolist()
        return f"{int(bad.sum())} of {m * n} off, first at {at}: {out[tuple(at)].item()} in place of {expected[tuple(at)].item():.6g}"
    untouched = torch.tensor(77.0, device="cuda").to(kind).float()
    if not ((room[0].float() == untouched).all() and (room[-1].float() == untouched).all()):
        return "rows beside the output were written"
    if room.shape[1] > n and not (room[:, n:].float() == untouched).all():
        return "columns beside the output were written"
    return None


def errors(kernel, k, seed=1):
    """Largest and root-mean-square error of fp32 outputs, as a share of the sum of magnitudes."""
    torch.manual_seed(seed)
    a, b = operand(256, k, "e4m3"), operand(512, k, "e4m3")
    out = torch.empty(256, 512, device="cuda")
    one = torch.ones(1, device="cuda")
    launcher.Call(kernel, a, b, out, one)()
    torch.cuda.synchronize()
    return judge(out, a, b)


def judge(out, a, b):
    a64, b64 = a.float().double(), b.float().double()
    sizes = a64.abs() @ b64.abs().t()
    off = (out.double() - a64 @ b64.t()).abs() / sizes
    return float(off.max()), float(off.square().mean().sqrt())


def peer_errors(k, fast, seed=1):
    torch.manual_seed(seed)
    a, b = operand(256, k, "e4m3"), operand(512, k, "e4m3")
    one = torch.ones(1, device="cuda")
    out = torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.float32, use_fast_accum=fast)
    return judge(out, a, b)
