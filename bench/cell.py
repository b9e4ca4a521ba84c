"""What every cell is: a problem, who solves it, the check, the times, the rates."""
import contextlib
import math

import torch

import accuracy
import shapes
import timing

DTYPE = torch.bfloat16


def stream():
    return torch.cuda.current_stream().cuda_stream


def on_stream(call):
    def run():
        call(stream())

    run.call = call
    return run


def poisoned(tensor):
    return torch.full_like(tensor, math.nan)


class Cell:
    """measure() checks, times and returns the figures; the ratio is against the fastest of those in
    `against` that were measured."""

    against = ("flash",)

    def __init__(self, library, shape, options):
        self.library = library
        self.shape = shape
        self.options = options
        self.kernel = shapes.kernel_of(options.force, shape)

    def checked(self, call, check):
        """Runs the call once; (kernel, largest and mean difference)."""
        with self.library.forced(self.kernel):
            call()
            ran = self.library.last_run()
        if self.kernel and not ran.startswith(self.kernel + "<"):
            raise accuracy.Wrong(f"{self.kernel} was to run, and '{ran}' ran")
        if not ran or ran == "reference":
            raise accuracy.Wrong(f"a kernel was to run, and '{ran}' ran")
        torch.cuda.synchronize()
        return (ran, *check())

    def bring_workspace(self, calls):
        """Gives calls that come one after the other memory of their own to share, so that a graph
        of them allocates nothing."""
        with self.library.forced(self.kernel):
            size = max(self.library.workspace_bytes(call) for call in calls)
        if size == 0:
            return
        memory = torch.empty(size, device="cuda", dtype=torch.uint8)
        self.library.init_workspace(memory.data_ptr(), size, memory.device.index, stream())
        torch.cuda.synchronize()
        for call in calls:
            call.args.workspace = memory.data_ptr()
            call.args.workspace_bytes = size
            call.keep["memory"] = memory

    def timed(self, contenders, small):
        before = self.options.before
        with contextlib.ExitStack() as forced:
            forced.enter_context(self.library.forced(self.kernel))
            if before:
                forced.enter_context(before.forced(self.kernel))
                calls = [on_stream(before.same(run.call)) for run in contenders["jitney"]]
                contenders = {**contenders, "before": calls}
            return timing.by_graph(contenders) if small else timing.by_events(contenders)

    def figures(self, times, ran, largest, mean):
        others = {name: us for name, us in times.items() if name != "jitney"}
        before = times["before"] / times["jitney"] if "before" in times else None
        return {
            "mode": self.shape.mode,
            "cell": self.shape.name(),
            "us": {name: round(us, 3) for name, us in times.items()},
            "ratio": self.ratio(times) if others.keys() & set(self.against) else None,
            "before": before,
            "kernel": ran,
            "max_error": largest,
            "mean_error": mean,
            **self.rates(times),
        }

    def ratio(self, times):
        return min(times[name] for name in self.against if name in times) / times["jitney"]

    def rates(self, times):
        return {"TFLOPS": {name: self.shape.flops() / us / 1e6 for name, us in times.items()}}
