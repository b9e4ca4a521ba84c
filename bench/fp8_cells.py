"""Cells of FP8: casts beside torch's own operations, products beside cuBLASLt."""
import math

import torch

import accuracy
import shapes
from binding import tensor_of
from cell import DTYPE, Cell, on_stream


class Quantize(Cell):
    """fp8_quantize, beside torch (eager or compiled) and a device copy of as many bytes."""

    against = ("torch",)

    def measure(self):
        s = self.shape
        dynamic = s.variant == "dynamic"
        count = shapes.sets_needed(s.bytes(), self.options.sets)
        fp8 = torch.float8_e4m3fn
        largest = torch.finfo(fp8).max
        number = torch.full((1,), 0.5, device="cuda")
        rows = not s.variant.startswith("transposed")
        columns = s.variant.startswith(("both", "transposed"))

        def cast(x):
            multiplier = largest / x.abs().amax().float() if dynamic else number
            codes = (x.float() * multiplier).clamp(-largest, largest).to(fp8)
            turned = codes.t().contiguous() if columns else None
            return codes, turned, x.abs().amax() if "amax" in s.variant else None

        peer = torch.compile(cast) if self.options.inductor else cast
        sets = []
        for _ in range(count):
            x = torch.randn(s.rows, s.cols, device="cuda", dtype=DTYPE)
            out = torch.zeros(s.rows, s.cols, device="cuda", dtype=torch.uint8).view(fp8)
            turned = torch.zeros(s.cols, s.rows, device="cuda", dtype=torch.uint8).view(fp8)
            sets.append((x, out, turned))
        amax = torch.zeros(1, device="cuda") if "amax" in s.variant else None
        multiplier = torch.zeros(1, device="cuda") if dynamic else number
        prepared = [
            self.library.fp8_quantize(
                x=tensor_of(x),
                out=tensor_of(out) if rows else None,
                out_transposed=tensor_of(turned) if columns else None,
                multiplier=tensor_of(multiplier),
                amax=None if amax is None else tensor_of(amax),
                dynamic=int(dynamic),
            )
            for x, out, turned in sets
        ]
        self.bring_workspace(prepared)
        calls = [on_stream(call) for call in prepared]
        x, out, turned = sets[0]
        checked = self.checked(
            calls[0],
            lambda: accuracy.check_codes(
                x, multiplier, out if rows else None, turned if columns else None, amax
            ),
        )
        half = s.bytes() // 2
        memory = [
            tuple(torch.empty(half, device="cuda", dtype=torch.uint8) for _ in range(2))
            for _ in range(count)
        ]
        contenders = {
            "jitney": calls,
            "torch": [lambda x=x: peer(x) for x, _, _ in sets],
            "copy": [lambda to=to, source=source: to.copy_(source) for to, source in memory],
        }
        return self.figures(self.timed(contenders, True), *checked)

    def rates(self, times):
        return {"GBps": {name: self.shape.bytes() / us / 1e3 for name, us in times.items()}}


class Product(Cell):
    """fp8_gemm, beside torch._scaled_mm, which is cuBLASLt: with exact sums, and with fast ones."""

    against = ("precise",)

    def measure(self):
        s = self.shape
        trans_a, trans_b = (letter == "t" for letter in s.layout)
        scale = torch.full((1,), 1 / math.sqrt(s.k), device="cuda")
        one = torch.ones(1, device="cuda")

        def random(rows, columns):
            return torch.randn(rows, columns, device="cuda").to(torch.float8_e4m3fn)

        def laid_out(x, turned):
            return x.view(torch.uint8).t().contiguous().view(x.dtype) if turned else x

        sets = []
        for _ in range(shapes.sets_needed(s.bytes(), self.options.sets)):
            a, b = random(s.m, s.k), random(s.n, s.k)
            out = torch.full((s.m, s.n), math.nan, device="cuda", dtype=DTYPE)
            sets.append((a, b, laid_out(a, trans_a), laid_out(b, not trans_b), out))
        prepared = [
            self.library.fp8_gemm(
                a=tensor_of(a), b=tensor_of(b), out=tensor_of(out),
                dequant_scale=tensor_of(scale), trans_a=int(trans_a), trans_b=int(trans_b),
            )
            for _, _, a, b, out in sets
        ]
        self.bring_workspace(prepared)
        calls = [on_stream(call) for call in prepared]
        a, b, *_, out = sets[0]
        checked = self.checked(calls[0], lambda: accuracy.check_product(a, b, scale, out))
        contenders = {"jitney": calls}
        if s.layout == "nt":
            for name, fast in (("precise", False), ("fast", True)):
                contenders[name] = [
                    lambda a=a, b=b, fast=fast: torch._scaled_mm(
                        a, b.t(), scale_a=scale, scale_b=one, out_dtype=DTYPE, use_fast_accum=fast
                    )
                    for a, b, *_ in sets
                ]
        return self.figures(self.timed(contenders, True), *checked)


FP8 = torch.float8_e4m3fn
LARGEST = torch.finfo(FP8).max


def parts_of(x, part):
    """x as parts that share a scale, the last of rows and columns filled up with zeros."""
    rows, cols = x.shape
    height = 128 if part == "block" else 1
    width = cols if part == "row" else 128
    filled = torch.nn.functional.pad(x.float(), (0, -cols % width, 0, -rows % height))
    return filled.view(filled.shape[0] // height, height, filled.shape[1] // width, width)


def cast_parts(x, part):
    """Codes, and a scale for each part, as fp8_quantize documents them."""
    parts = parts_of(x, part)
    amax = parts.abs().amax((1, 3))
    multiplier = torch.where(amax > 0, torch.full_like(amax, LARGEST) / amax, torch.ones_like(amax))
    codes = (parts * multiplier[:, None, :, None]).clamp(-LARGEST, LARGEST).to(FP8)
    rows, cols = x.shape
    codes = codes.view(parts.shape[0] * parts.shape[1], -1)[:rows, :cols]
    return codes.contiguous(), torch.ones_like(multiplier) / multiplier


class QuantizeParts(Cell):
    """fp8_quantize with a scale a row, a group or a block, beside torch.compile of the same
    arithmetic and a device copy of as many bytes."""

    against = ("torch",)

    def measure(self):
        s = self.shape
        part = s.variant.removeprefix("scales ")
        count = shapes.sets_needed(s.bytes(), self.options.sets)
        granularity = {"row": 1, "group": 2, "block": 3}[part]
        torch._dynamo.reset()
        peer = torch.compile(lambda x: cast_parts(x, part))
        sets = []
        for _ in range(count):
            x = torch.randn(s.rows, s.cols, device="cuda", dtype=DTYPE)
            codes, scale = cast_parts(x, part)
            out = torch.zeros_like(codes.view(torch.uint8)).view(FP8)
            turned = torch.zeros(scale.shape[::-1], device="cuda").t()
            sets.append((x, out, turned))
        calls = [
            on_stream(
                self.library.fp8_quantize(
                    x=tensor_of(x), out=tensor_of(out), scale=tensor_of(scale), dynamic=1,
                    granularity=granularity,
                )
            )
            for x, out, scale in sets
        ]
        x, out, scale = sets[0]
        checked = self.checked(calls[0], lambda: accuracy.check_parts(out, scale, *cast_parts(x, part)))
        half = s.bytes() // 2
        memory = [
            tuple(torch.empty(half, device="cuda", dtype=torch.uint8) for _ in range(2))
            for _ in range(count)
        ]
        kept = []
        contenders = {
            "jitney": calls,
            "torch": [lambda x=x: kept.append(peer(x)) for x, _, _ in sets],
            "copy": [lambda to=to, source=source: to.copy_(source) for to, source in memory],
        }
        return self.figures(self.timed(contenders, True), *checked)

    def rates(self, times):
        return {"GBps": {name: self.shape.bytes() / us / 1e3 for name, us in times.items()}}


class Linear(Cell):
    """fp8_linear_inference, beside torch.compile's cast and torch._scaled_mm, which takes scales of
    rows and columns; with scales of blocks torch.nn.functional.scaled_mm, where there is one."""

    against = ("torch",)

    def peer(self):
        blocks = self.shape.scales == "block"
        cast = torch.compile(lambda x: cast_parts(x, "group" if blocks else "row"))
        if not blocks:
            return lambda x, weight, scale: torch._scaled_mm(
                (casted := cast(x))[0], weight.t(), scale_a=casted[1], scale_b=scale.t(),
                out_dtype=DTYPE, use_fast_accum=False,
            )
        functional = torch.nn.functional
        kinds = functional.ScalingType

        def product(x, weight, scale):
            codes, of_x = cast(x)
            return functional.scaled_mm(
                codes, weight.t(), of_x.t().contiguous().t(), kinds.BlockWise1x128, scale.t(),
                kinds.BlockWise128x128, output_dtype=DTYPE,
            )

        return product

    def measure(self):
        s = self.shape
        sets = []
        for _ in range(shapes.sets_needed(s.bytes(), self.options.sets)):
            x = torch.randn(s.m, s.k, device="cuda", dtype=DTYPE)
            weight, scale = cast_parts(
                torch.randn(s.n, s.k, device="cuda"), "block" if s.scales == "block" else "row"
            )
            y = torch.full((s.m, s.n), math.nan, device="cuda", dtype=DTYPE)
            sets.append((x, weight, scale, y))
        prepared = [
            self.library.fp8_linear_inference(
                x=tensor_of(x), weight=tensor_of(weight), weight_scale=tensor_of(scale),
                y=tensor_of(y),
            )
            for x, weight, scale, y in sets
        ]
        self.bring_workspace(prepared)
        calls = [on_stream(call) for call in prepared]
        x, weight, scale, y = sets[0]
        checked = self.checked(calls[0], lambda: accuracy.check_linear(x, weight, scale, y))
        contenders = {"jitney": calls}
        torch._dynamo.reset()
        try:
            peer = self.peer()
            peer(*sets[0][:3])
            kept = []
            contenders["torch"] = [
                lambda each=each: kept.append(peer(*each[:3])) for each in sets
            ]
        except (RuntimeError, AttributeError, ValueError) as error:
            print(f"linear  {s.name()}: torch can't: {str(error).splitlines()[0][:100]}")
        return self.figures(self.timed(contenders, True), *checked)

