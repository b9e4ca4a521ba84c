"""Jitney's output against torch in fp32, over some requests and heads of a call."""
import math

import torch

ABSOLUTE = RELATIVE = 1e-2
MEAN = 1e-3


class Wrong(AssertionError):
    pass


def some(count, most=3):
    """The first, the last and those evenly between."""
    if count <= most:
        return list(range(count))
    return sorted({round(i * (count - 1) / (most - 1)) for i in range(most)})


def _attention_in_fp32(q, k, v, causal, mask, softcap=None, slope=None, sink=None, chunk=2048):
    """q [q_len, head_dim], k and v [kv_len, head_dim], mask [q_len, kv_len] or None."""
    q, k, v = q.float(), k.float(), v.float()
    parts = []
    keys = torch.arange(k.shape[0], device=k.device)
    for first in range(0, q.shape[0], chunk):
        rows = q[first : first + chunk]
        queries = torch.arange(first, first + rows.shape[0], device=k.device)
        ahead = keys[None, :] - (queries[:, None] + (k.shape[0] - q.shape[0]))
        scores = rows @ k.t() / math.sqrt(q.shape[1])
        if softcap is not None:
            scores = softcap * torch.tanh(scores / softcap)
        if slope is not None:
            scores -= slope * ahead.abs()
        if causal:
            scores.masked_fill_(ahead > 0, -math.inf)
        if mask is not None:
            scores.masked_fill_(~mask[first : first + chunk], -math.inf)
        if sink is not None:
            scores = torch.cat((scores, sink.expand(scores.shape[0], 1)), -1)
        # A row that sees nothing is 0.
        weights = torch.softmax(scores, -1).nan_to_num_(0.0)
        parts.append(weights[:, : k.shape[0]] @ v)
    return torch.cat(parts)


class Errors:
    """Gathers the differences; raises Wrong where one is too large."""

    def __init__(self):
        self.largest = 0.0
        self.sum = 0.0
        self.count = 0

    def add(self, got, want, what):
        difference = (got.float() - want).abs()
        bad = ~(difference <= ABSOLUTE + RELATIVE * want.abs())  # NaN is bad
        if bool(bad.any()):
            raise Wrong(f"{what}: {int(bad.sum())} of {bad.numel()} elements are wrong, "
                        f"the largest difference is {float(difference.max()):.3g}")
        self.largest = max(self.largest, float(difference.max()))
        self.sum += float(difference.sum())
        self.count += difference.numel()

    def mean(self):
        mean = self.sum / max(self.count, 1)
        if not mean < MEAN:
            raise Wrong(f"the mean difference is {mean:.3g}, and must be under {MEAN:g}")
        return mean


def check_attention(requests, kv_heads, causal, softcap=None, alibi=None, sinks=None):
    """requests: (q, k, v, out, mask) each [length, heads, head_dim]; alibi and sinks [heads].
    Largest and mean difference."""
    errors = Errors()
    for b in some(len(requests)):
        q, k, v, out, mask = requests[b]
        group = q.shape[1] // kv_heads
        for h in some(q.shape[1]):
            want = _attention_in_fp32(
                q[:, h], k[:, h // group], v[:, h // group], causal, mask, softcap,
                None if alibi is None else alibi[h], None if sinks is None else sinks[h],
            )
            errors.add(out[:, h], want, f"request {b}, head {h}")
    return errors.largest, errors.mean()


def check_codes(x, multiplier, out, out_transposed, amax):
    """Bit for bit: the saturating cast of x * multiplier. 0 and 0."""
    largest = torch.finfo(torch.float8_e4m3fn).max
    want = (x.float() * multiplier).clamp(-largest, largest).to(torch.float8_e4m3fn)
    for codes in (out, None if out_transposed is None else out_transposed.t()):
        if codes is not None and not torch.equal(codes.view(torch.uint8), want.view(torch.uint8)):
            raise Wrong("codes differ from the saturating cast")
    if amax is not None and float(amax) != float(x.abs().max()):
        raise Wrong(f"amax is {float(amax)}, not {float(x.abs().max())}")
    return 0.0, 0.0


def check_product(a, b, scale, out):
    """a [m, k] and b [n, k] of any format."""
    tf32 = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    want = (a.float() @ b.float().t()) * scale
    torch.backends.cuda.matmul.allow_tf32 = tf32
    errors = Errors()
    errors.add(out, want, "product")
    return errors.largest, errors.sum / max(errors.count, 1)


def check_rows(out, want):
    errors = Errors()
    errors.add(out, want, "rows")
    return errors.largest, errors.sum / max(errors.count, 1)


def check_row_codes(out, scale, want):
    """Codes times their scale, which are off by half a step of E4M3 at most, of what they mean."""
    largest = torch.finfo(torch.float8_e4m3fn).max
    limit = want.clamp(-largest * scale, largest * scale)
    off = (out.float() * scale - limit).abs()
    if not bool((off <= limit.abs() / 15 + scale * 0.002).all()):
        raise Wrong("codes are not those of their rows")
    return float(off.max()), float(off.mean())


def check_rotary(x, cos, sin, out):
    errors = Errors()
    pairs = x.float().unflatten(-1, (-1, 2))
    c, s = cos[None, :, None, :], sin[None, :, None, :]
    a, b = pairs[..., 0], pairs[..., 1]
    want = torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)
    errors.add(out, want, "rotary")
    return errors.largest, errors.sum / max(errors.count, 1)


def check_parts(out, scale, want_codes, want_scale):
    """Bit for bit. 0 and 0."""
    if not torch.equal(scale, want_scale):
        raise Wrong("scales differ from those of their parts")
    if not torch.equal(out.view(torch.uint8), want_codes.view(torch.uint8)):
        raise Wrong("codes differ from the saturating cast")
    return 0.0, 0.0


def check_linear(x, weight, scale, y):
    """Against fp32 of what the weight's codes mean, and of x as it is: casting x loses most."""
    whole = scale.repeat_interleave(-(-weight.shape[0] // scale.shape[0]), 0)[: weight.shape[0]]
    whole = whole.repeat_interleave(-(-weight.shape[1] // scale.shape[1]), 1)[:, : weight.shape[1]]
    want = x.float() @ (weight.float() * whole).t()
    error = float((y.float() - want).norm() / want.norm())
    if not error < 0.05:
        raise Wrong(f"the relative error is {error}")
    return float((y.float() - want).abs().max()), error
