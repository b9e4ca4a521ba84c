"""Cells of attention and rotary embedding beside torch, and which class measures which mode."""
import ctypes
import itertools
import random

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import accuracy
import shapes
import timing
from binding import tensor_of
from cell import DTYPE, Cell, on_stream, poisoned, stream
from fp8_cells import Linear, Product, Quantize, QuantizeParts
from row_cells import Gate, Norm

TORCH = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}


class Dense(Cell):
    """Prefill, GQA prefill and decode, beside torch's SDPA, and FlashAttention-4 where it is wanted,
    over the same memory."""

    against = (*TORCH, "fa4")

    def tensors(self):
        """q, k, v and out in blhd, in the memory order that the options ask for."""
        s = self.shape

        def make(length, heads, fill):
            if self.options.layout == "bhld":
                return fill(s.batch, heads, length, s.head_dim).transpose(1, 2)
            return fill(s.batch, length, heads, s.head_dim)

        def random(*sizes):
            return torch.randn(*sizes, device="cuda", dtype=DTYPE)

        q = make(s.q_len, s.q_heads, random)
        k = make(s.kv_len, s.kv_heads, random)
        v = make(s.kv_len, s.kv_heads, random)
        return q, k, v, poisoned(q)

    def call(self, q, k, v, out, **more):
        return self.library.attention(
            q=tensor_of(q), k=tensor_of(k), v=tensor_of(v), out=tensor_of(out),
            causal=int(self.shape.causal), **more
        )

    def peer(self, name, q, k, v):
        if name == "fa4":
            from flash_attn.cute import flash_attn_func

            return lambda: flash_attn_func(q, k, v, causal=self.shape.causal)
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        grouped = self.shape.q_heads != self.shape.kv_heads

        def run():
            with sdpa_kernel(TORCH[name]):
                return F.scaled_dot_product_attention(
                    q, k, v, is_causal=self.shape.causal, enable_gqa=grouped
                )

        return run

    def peers(self, sets):
        """name -> a function for each set, of those that can run the cell."""
        found = {}
        for name in self.options.peers:
            runs = [self.peer(name, *each[:3]) for each in sets]
            try:
                runs[0]()
                torch.cuda.synchronize()
                found[name] = runs
            except (RuntimeError, NotImplementedError, AssertionError) as error:
                print(f"  {name} does not run {self.shape.name()}: {str(error).partition(chr(10))[0]}")
        return found

    def measure(self):
        s = self.shape
        small = s.mode in ("gqa", "decode")
        bytes_a_set = s.kv_bytes() + 4 * s.batch * s.q_len * s.q_heads * s.head_dim
        count = shapes.sets_needed(bytes_a_set, self.options.sets) if small else 1
        sets = [self.tensors() for _ in range(count)]
        calls = [self.call(*each) for each in sets]
        if small:
            self.bring_workspace(calls)
        calls = [on_stream(call) for call in calls]
        q, k, v, out = sets[0]

        def check():
            requests = [(q[b], k[b], v[b], out[b], None) for b in range(s.batch)]
            return accuracy.check_attention(requests, s.kv_heads, s.causal)

        with torch.no_grad():
            checked = self.checked(calls[0], check)
            contenders = {"jitney": calls, **self.peers(sets)}
            return self.figures(self.timed(contenders, small), *checked)

    def rates(self, times):
        if self.shape.q_len > 1:
            return super().rates(times)
        return {"GBps": {name: self.shape.kv_bytes() / us / 1e3 for name, us in times.items()}}


class Paged(Dense):
    """Attention from pages, beside Jitney's own dense one of the same lengths: what the ratio is
    against. Both read the lengths on the device. As the layers of a model do, all sets share the
    lengths and the table, and each has pools of its own."""

    against = ("dense",)

    def pages(self):
        """Where each page of the dense cache goes in the pool, and the fields that say so."""
        s = self.shape
        page_size = int(s.variant.split()[1])
        arrange = torch.arange if self.options.ordered_pages else torch.randperm
        order = arrange(s.batch * s.kv_len // page_size, device="cuda")
        table = order.to(torch.int32).view(s.batch, s.kv_len // page_size)
        if page_size > 1:
            return order, {"block_table": tensor_of(table)}
        rows = torch.arange(s.batch, device="cuda", dtype=torch.int32)
        return order, {"req_to_token": tensor_of(table), "req_pool_indices": tensor_of(rows)}

    def pool(self, dense, order):
        s = self.shape
        flat = dense.reshape(len(order), -1, s.kv_heads, s.head_dim)
        scattered = torch.empty_like(flat)
        scattered[order] = flat
        return scattered.squeeze(1) if flat.shape[1] == 1 else scattered

    def measure(self):
        s = self.shape
        small = s.q_len == 1
        count = shapes.sets_needed(s.kv_bytes(), self.options.sets) if small else 1
        sets = [self.tensors() for _ in range(count)]
        order, table = self.pages()
        lengths = torch.full((s.batch,), s.kv_len, device="cuda", dtype=torch.int32)
        lengths = {"kv_lens": tensor_of(lengths)}
        dense = [self.call(*each, **lengths) for each in sets]
        calls = [
            self.call(q, self.pool(k, order), self.pool(v, order), out, **lengths, **table)
            for q, k, v, out in sets
        ]
        for contender in (dense, calls):
            self.bring_workspace(contender)
        dense, calls = ([on_stream(call) for call in each] for each in (dense, calls))
        q, k, v, out = sets[0]

        def check():
            requests = [(q[b], k[b], v[b], out[b], None) for b in range(s.batch)]
            return accuracy.check_attention(requests, s.kv_heads, s.causal)

        checked = self.checked(calls[0], check)
        return self.figures(self.timed({"jitney": calls, "dense": dense}, small), *checked)


class Ragged(Dense):
    """Packed prefill, beside Jitney's own dense prefill; the ratio is one of rates."""

    against = ("dense",)

    def measure(self):
        s = self.shape
        lengths = shapes.ragged_lengths(s)
        self.work = sum(n * n for n in lengths) / (s.batch * s.q_len * s.q_len)
        ends = [0]
        for n in lengths:
            ends.append(ends[-1] + n)

        def packed(heads):
            return torch.randn(ends[-1], heads, s.head_dim, device="cuda", dtype=DTYPE)

        q, k, v = packed(s.q_heads), packed(s.kv_heads), packed(s.kv_heads)
        out = poisoned(q)
        indptr = torch.tensor(ends, device="cuda", dtype=torch.int32)
        call = self.library.attention(
            q=tensor_of(q), k=tensor_of(k), v=tensor_of(v), out=tensor_of(out),
            qo_indptr=tensor_of(indptr), kv_indptr=tensor_of(indptr),
            qo_indptr_host=(ctypes.c_int32 * len(ends))(*ends),
            causal=int(s.causal),
        )
        dense = self.call(*self.tensors())

        def check():
            requests = [
                (*(x[a:b] for x in (q, k, v, out)), None) for a, b in zip(ends, ends[1:])
            ]
            return accuracy.check_attention(requests, s.kv_heads, s.causal)

        checked = self.checked(on_stream(call), check)
        contenders = {"jitney": [on_stream(call)], "dense": [on_stream(dense)]}
        return self.figures(self.timed(contenders, False), *checked)

    def ratio(self, times):
        return super().ratio(times) * self.work

    def rates(self, times):
        work = {"dense": 1}
        return {"TFLOPS": {n: work.get(n, self.work) * self.shape.flops() / us / 1e6 for n, us in times.items()}}


class Mixed(Dense):
    """Packed requests of few queries over pages of 16 keys, beside Jitney's dense decode of as many
    keys, in which every request has as many queries as the one with the most."""

    against = ("dense",)

    def measure(self):
        s = self.shape
        lengths = shapes.mixed_lengths(s, random)
        self.keys = sum(keys for _, keys in lengths)
        ends = [0, *itertools.accumulate(queries for queries, _ in lengths)]
        pages = torch.randperm(s.batch * s.kv_len // 16, device="cuda").view(s.batch, -1)

        def some(*sizes):
            return torch.randn(*sizes, s.head_dim, device="cuda", dtype=DTYPE)

        q = some(ends[-1], s.q_heads)
        k, v = (some(pages.numel(), 16, s.kv_heads) for _ in range(2))
        out = poisoned(q)
        indptr, kv_lens = (
            torch.tensor(each, device="cuda", dtype=torch.int32) for each in (ends, [keys for _, keys in lengths])
        )
        call = self.library.attention(
            q=tensor_of(q), k=tensor_of(k), v=tensor_of(v), out=tensor_of(out), qo_indptr=tensor_of(indptr),
            block_table=tensor_of(pages.to(torch.int32)), kv_lens=tensor_of(kv_lens), causal=int(s.causal),
        )
        dense = self.call(*self.tensors(), kv_lens=tensor_of(kv_lens))
        for contender in (call, dense):
            self.bring_workspace([contender])

        def check():
            requests = [
                (q[a:b], *(x[pages[i]].flatten(0, 1)[:keys] for x in (k, v)), out[a:b], None)
                for i, (a, b, (_, keys)) in enumerate(zip(ends, ends[1:], lengths))
            ]
            return accuracy.check_attention(requests, s.kv_heads, s.causal)

        checked = self.checked(on_stream(call), check)
        return self.figures(self.timed({"jitney": [on_stream(call)], "dense": [on_stream(dense)]}, True), *checked)

    def rates(self, times):
        read = 4 * self.keys * self.shape.kv_heads * self.shape.head_dim
        return {"GBps": {name: read / us / 1e3 for name, us in times.items()}}


class Mask(Dense):
    """A 3-D mask: random, beside no mask; causal in disguise, beside causal."""

    against = ("plain",)

    def measure(self):
        s = self.shape
        q, k, v, out = self.tensors()
        sizes = (s.batch, s.q_len, s.kv_len)
        if s.causal:
            mask = torch.ones(sizes, device="cuda", dtype=torch.bool).tril_(s.kv_len - s.q_len)
        else:
            mask = torch.rand(sizes, device="cuda", dtype=torch.bfloat16) < 0.5
        plain = self.call(q, k, v, poisoned(q))
        masked = self.library.attention(
            q=tensor_of(q), k=tensor_of(k), v=tensor_of(v), out=tensor_of(out),
            mask=tensor_of(mask),
        )

        def check():
            requests = [(q[b], k[b], v[b], out[b], mask[b]) for b in range(s.batch)]
            return accuracy.check_attention(requests, s.kv_heads, False)

        checked = self.checked(on_stream(masked), check)
        contenders = {"jitney": [on_stream(masked)], "plain": [on_stream(plain)]}
        return self.figures(self.timed(contenders, False), *checked)


class Window(Dense):
    """A window, beside the same kernel without one: what it reads and multiplies is less."""

    against = ("plain",)

    def measure(self):
        s = self.shape
        before = int(s.variant.split()[1]) - 1
        small = s.q_len == 1
        sets = [self.tensors() for _ in range(shapes.sets_needed(s.kv_bytes(), self.options.sets))]
        plain = [self.call(*each) for each in sets]
        calls = [
            self.call(*each, has_window=1, window_left=before, window_right=-1) for each in sets
        ]
        for contender in (plain, calls):
            self.bring_workspace(contender)
        plain, calls = ([on_stream(call) for call in each] for each in (plain, calls))
        q, k, v, out = sets[0]
        places = torch.arange(s.kv_len - s.q_len, s.kv_len, device="cuda")[:, None]
        keep = torch.arange(s.kv_len, device="cuda")[None, :] >= places - before

        def check():
            requests = [(q[b], k[b], v[b], out[b], keep) for b in range(s.batch)]
            return accuracy.check_attention(requests, s.kv_heads, s.causal)

        checked = self.checked(calls[0], check)
        return self.figures(self.timed({"jitney": calls, "plain": plain}, small), *checked)


class Options(Dense):
    """One option, beside the same call without it."""

    against = ("plain",)

    def measure(self):
        s = self.shape
        q, k, v, out = self.tensors()
        slopes = torch.rand(s.q_heads, device="cuda") * 0.05
        sinks = torch.randn(s.q_heads, device="cuda")
        given, more = {
            "softcap": ({"softcap": 30.0}, {"softcap": 30.0}),
            "alibi": ({"alibi_slopes": tensor_of(slopes)}, {"alibi": slopes}),
            "sinks": ({"sinks": tensor_of(sinks)}, {"sinks": sinks}),
            "wide window": ({"has_window": 1, "window_left": s.kv_len, "window_right": -1}, {}),
        }[s.variant]
        plain = self.call(q, k, v, poisoned(q))
        call = self.call(q, k, v, out, **given)

        def check():
            requests = [(q[b], k[b], v[b], out[b], None) for b in range(s.batch)]
            return accuracy.check_attention(requests, s.kv_heads, s.causal, **more)

        checked = self.checked(on_stream(call), check)
        contenders = {"jitney": [on_stream(call)], "plain": [on_stream(plain)]}
        return self.figures(self.timed(contenders, False), *checked)


class Rotary(Cell):
    """Rotary of one tensor, beside complex multiplication in torch, eager or compiled."""

    against = ("torch",)

    def measure(self):
        s = self.shape
        count = shapes.sets_needed(s.bytes(), self.options.sets)
        angle = torch.rand(s.length, s.head_dim // 2, device="cuda") * 6.28
        cos, sin = angle.cos(), angle.sin()

        def rotate(x):
            turned = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
            turned = turned * torch.complex(cos, sin)[None, :, None, :]
            return torch.view_as_real(turned).flatten(-2).to(x.dtype)

        peer = torch.compile(rotate) if self.options.inductor else rotate
        sets = []
        for _ in range(count):
            x = torch.randn(s.batch, s.length, s.heads, s.head_dim, device="cuda", dtype=DTYPE)
            sets.append((x, poisoned(x)))
        calls = [
            on_stream(
                self.library.rotary_emb(
                    q=tensor_of(x), q_out=tensor_of(out), cos=tensor_of(cos), sin=tensor_of(sin)
                )
            )
            for x, out in sets
        ]
        x, out = sets[0]
        checked = self.checked(calls[0], lambda: accuracy.check_rotary(x, cos, sin, out))
        contenders = {"jitney": calls, "torch": [lambda x=x: peer(x) for x, _ in sets]}
        return self.figures(self.timed(contenders, True), *checked)

    def rates(self, times):
        return {"GBps": {name: self.shape.bytes() / us / 1e3 for name, us in times.items()}}


def host_times(library, options):
    """Microseconds of the host for one call of a tiny problem; ctypes' own share beside them."""
    shape = shapes.Attention("decode", 1, 32, 8, 1, 128, 128)
    cell = Dense(library, shape, options)
    q, k, v, out = cell.tensors()
    here = stream()
    call = cell.call(q, k, v, out)
    with library.forced(cell.kernel):
        plan = library.plan(call)
    contenders = {
        "jitney": lambda: call(here),
        "plan": lambda: plan(here),
        "ctypes": library.dll.jitney_version,
    }
    for name in options.peers:
        contenders[name] = cell.peer(name, q, k, v)
    cell.checked(contenders["jitney"], lambda: ())
    with torch.no_grad(), library.forced(cell.kernel):
        return timing.on_host(contenders)


def quantize_cell(library, shape, options):
    kind = QuantizeParts if shape.variant.startswith("scales") else Quantize
    return kind(library, shape, options)


KINDS = {
    "prefill": Dense,
    "gqa": Dense,
    "decode": Dense,
    "rotary": Rotary,
    "paged": Paged,
    "ragged": Ragged,
    "mixed": Mixed,
    "mask": Mask,
    "window": Window,
    "pages": Paged,
    "options": Options,
    "quantize": quantize_cell,
    "gemm": Product,
    "linear": Linear,
    "norm": Norm,
    "gate": Gate,
}
