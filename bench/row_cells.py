"""Cells of kernels on rows, norms and gates, beside torch: its own rms_norm, and torch.compile of
the same function."""
import torch
import torch.nn.functional as F

import accuracy
import shapes
from binding import tensor_of
from cell import DTYPE, Cell, on_stream, poisoned

EPS = 1e-6
LARGEST = torch.finfo(torch.float8_e4m3fn).max


def kept(function):
    """The call, whose results stay: a graph gives what is dropped to the next call, which then
    writes to memory that is in the L2."""
    results = []
    return lambda: results.append(function())


def codes_of(values):
    return values.clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn)


def codes_like(x, cols):
    return torch.zeros(x.shape[0], cols, device="cuda", dtype=torch.uint8).view(torch.float8_e4m3fn)


class Rows(Cell):
    """measure() of a kind that says what a set of inputs is, the call, the check and the peers."""

    def measure(self):
        s = self.shape
        count = shapes.sets_needed(s.bytes(), min(self.options.sets, 128))
        self.multiplier = torch.full((1,), 30.0, device="cuda")
        sets = [self.inputs() for _ in range(count)]
        calls = [on_stream(self.call(each)) for each in sets]
        checked = self.checked(calls[0], lambda: self.check(sets[0]))
        contenders = {"jitney": calls}
        torch._dynamo.reset()
        for name, function in self.peers().items():
            contenders[name] = [kept(lambda each=each: function(each)) for each in sets]
        half = s.bytes() // 2
        memory = [
            tuple(torch.empty(half, device="cuda", dtype=torch.uint8) for _ in range(2))
            for _ in range(count)
        ]
        contenders["copy"] = [lambda to=to, source=source: to.copy_(source) for to, source in memory]
        return self.figures(self.timed(contenders, True), *checked)

    def results(self, x, cols):
        """What the call is to give, as its fields, and where it goes."""
        if self.shape.codes == "values":
            out = poisoned(torch.empty(x.shape[0], cols, device="cuda", dtype=DTYPE))
            return {"out": out}
        out = codes_like(x, cols)
        if self.shape.codes == "multiplier":
            return {"out": out, "multiplier": self.multiplier}
        return {"out": out, "scale": torch.zeros(x.shape[0], device="cuda")}

    def check_results(self, results, want):
        if self.shape.codes == "values":
            return accuracy.check_rows(results["out"], want)
        scale = results["scale"][:, None] if "scale" in results else 1 / self.multiplier
        return accuracy.check_row_codes(results["out"], scale, want)

    def finished(self, values):
        """What a peer makes of its values, which a compiler does in the same pass."""
        if self.shape.codes == "values":
            return values
        if self.shape.codes == "multiplier":
            return codes_of(values.float() * self.multiplier)
        scale = values.float().abs().amax(1, keepdim=True) / LARGEST
        return codes_of(values.float() / scale), scale

    def ratio(self, times):
        """Against the faster of the peers."""
        return min(times[name] for name in ("compile", "torch") if name in times) / times["jitney"]

    def rates(self, times):
        return {"GBps": {name: self.shape.bytes() / us / 1e3 for name, us in times.items()}}


class Norm(Rows):
    """rms_norm of x, or of x + residual, which is written as well."""

    against = "compile"

    def inputs(self):
        s = self.shape
        each = {"x": torch.randn(s.rows, s.cols, device="cuda", dtype=DTYPE)}
        if not hasattr(self, "weight"):
            self.weight = torch.randn(s.cols, device="cuda", dtype=DTYPE)
        if s.residual:
            each["residual"] = torch.randn_like(each["x"])
            each["sum"] = poisoned(each["x"])
        return {**each, **self.results(each["x"], s.cols)}

    def call(self, each):
        fields = {name: tensor_of(tensor) for name, tensor in each.items()}
        return self.library.rms_norm(**fields, weight=tensor_of(self.weight), eps=EPS)

    def check(self, each):
        x = each["x"] + each["residual"] if self.shape.residual else each["x"]
        if self.shape.residual and not torch.equal(each["sum"], x):
            raise accuracy.Wrong("the sum is not x + residual")
        want = F.rms_norm(x.float(), x.shape[1:], self.weight.float(), EPS)
        return self.check_results(each, want)

    def peers(self):
        weight = self.weight

        def normalised(x):
            return F.rms_norm(x, x.shape[1:], weight, EPS)

        def added(x, residual):
            x = x + residual
            return x, self.finished(normalised(x))

        if self.shape.residual:
            compiled = torch.compile(added, dynamic=False)
            return {"compile": lambda each: compiled(each["x"], each["residual"])}
        compiled = torch.compile(lambda x: self.finished(normalised(x)), dynamic=False)
        peers = {"compile": lambda each: compiled(each["x"])}
        if self.shape.codes == "values":
            peers["torch"] = lambda each: normalised(each["x"])
        return peers


class Gate(Rows):
    """gated_activation of one tensor that has the gate before up."""

    against = "compile"

    def inputs(self):
        s = self.shape
        gate = torch.randn(s.rows, 2 * s.cols, device="cuda", dtype=DTYPE)
        return {"gate": gate, **self.results(gate, s.cols)}

    def call(self, each):
        fields = {name: tensor_of(tensor) for name, tensor in each.items()}
        return self.library.gated_activation(**fields, activation=ACTIVATIONS.index(self.shape.activation))

    def check(self, each):
        gate, up = each["gate"].float().chunk(2, dim=1)
        return self.check_results(each, FUNCTIONS[self.shape.activation](gate) * up)

    def peers(self):
        function = FUNCTIONS[self.shape.activation]

        def gated(both):
            gate, up = both.chunk(2, dim=1)
            return self.finished(function(gate) * up)

        compiled = torch.compile(gated, dynamic=False)
        return {"compile": lambda each: compiled(each["gate"])}


ACTIVATIONS = ("silu", "gelu", "gelu_tanh", "relu2")
FUNCTIONS = {
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu2": lambda x: F.relu(x).square(),
}
