#!/usr/bin/env python3
"""Jitney beside torch on this GPU, side by side in one process: one line a cell, and a JSON.

    python3 bench/compare.py [MODE...] [--force mma] [--json FILE]

Each cell is checked against torch in fp32, and then timed in turns with the peer: by CUDA events
where a call is long, else as CUDA graphs whose inputs rotate past the L2. The ratio is the time of
the fastest peer over Jitney's: more than 1 is faster. Needs torch with CUDA. docs/benchmarks.md
says more.
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import subprocess
import sys

import shapes
from binding import JitneyError, Library

ROOT = pathlib.Path(__file__).resolve().parent.parent


def parse(arguments):
    parser = argparse.ArgumentParser(
        description="Jitney beside torch on this GPU, in one process and one run."
    )
    modes = [*shapes.MODES, "host"]
    parser.add_argument("modes", nargs="*", metavar="MODE", help=f"{', '.join(modes)} (all)")
    parser.add_argument("--library", default=ROOT / "build/lib/libjitney.so", type=pathlib.Path)
    parser.add_argument(
        "--force",
        metavar="KERNEL",
        help="fail where another kernel runs: attn_prefill_mma, or mma for that variant of each",
    )
    parser.add_argument(
        "--before", metavar="LIBRARY", type=pathlib.Path, help="an earlier libjitney.so, beside"
    )
    parser.add_argument("--cudnn", action="store_true", help="torch's cuDNN backend as well")
    parser.add_argument(
        "--fa4",
        action="store_true",
        help="FlashAttention-4 as well, where Python finds it (flash_attn.cute)",
    )
    parser.add_argument("--inductor", action="store_true", help="rotary, quantize: torch.compile as the peer")
    parser.add_argument("--layout", choices=("bhld", "blhd"), default="bhld", help="memory order")
    parser.add_argument("--ordered-pages", action="store_true", help="pages one after the other")
    parser.add_argument("--sets", type=int, default=320, help="most inputs to rotate over")
    parser.add_argument("--quick", action="store_true", help="every third cell")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--list", action="store_true", help="print the cells, and measure nothing")
    options = parser.parse_args(arguments)
    for mode in options.modes:
        if mode not in modes:
            parser.error(f"{mode} is no mode; there are {', '.join(modes)}")
    if options.sets < 1:
        parser.error("--sets is 1 or more")
    options.modes = options.modes or modes
    options.peers = ["flash"] + ["cudnn"] * options.cudnn + ["fa4"] * has_fa4(options)
    return options


def has_fa4(options):
    if not options.fa4 or options.list:
        return False
    try:
        from flash_attn.cute import flash_attn_func  # noqa: F401
    except ImportError as error:
        print(f"FlashAttention-4 is left out: {error}", flush=True)
        return False
    return True


def driver_version():
    try:
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def line_of(cell):
    """One line: who took how long, at which rate, the ratio, the largest error, the kernel."""
    unit = "TFLOPS" if "TFLOPS" in cell else "GBps"
    words = [f"{cell['mode']:8}{cell['cell']:40}"]
    for name, us in cell["us"].items():
        words.append(f"{name} {us:.4g} us {cell[unit][name]:.4g} {unit.replace('ps', '/s')}")
    if cell["ratio"] is not None:
        words.append(f"ratio {cell['ratio']:.3f}")
    if cell["before"] is not None:
        words.append(f"before {cell['before']:.3f}")
    return "  ".join([*words, f"err {cell['max_error']:.1e}", cell["kernel"]])


def summary_of(cells, ratio="ratio"):
    """mode -> geometric mean, minimum (with its cell) and number of these ratios."""
    summary = {}
    for mode in dict.fromkeys(cell["mode"] for cell in cells):
        rated = [cell for cell in cells if cell["mode"] == mode and cell[ratio]]
        if not rated:
            continue
        least = min(rated, key=lambda cell: cell[ratio])
        summary[mode] = {
            "geometric_mean": geometric_mean([cell[ratio] for cell in rated]),
            "minimum": least[ratio],
            "minimum_cell": least["cell"],
            "cells": len(rated),
        }
    return summary


class Report:
    def __init__(self):
        self.cells = []
        self.failed = []
        self.skipped = []

    def run(self, library, shape, options):
        import cells
        import torch

        try:
            cell = cells.KINDS[shape.mode](library, shape, options).measure()
            self.cells.append(cell)
            print(line_of(cell), flush=True)
        except JitneyError as error:
            if error.unknown_field:
                self.skip(shape, str(error))
            else:
                self.fail(shape, str(error))
        except (AssertionError, RuntimeError) as error:
            self.fail(shape, str(error))
        torch.cuda.empty_cache()

    def fail(self, shape, why):
        self.failed.append({"mode": shape.mode, "cell": shape.name(), "error": why})
        print(f"{shape.mode:8}{shape.name():40}FAILED: {why.partition(chr(10))[0]}", flush=True)

    def skip(self, shape, why):
        self.skipped.append({"mode": shape.mode, "cell": shape.name(), "reason": why})
        print(f"{shape.mode:8}{shape.name():40}skipped: {why}", flush=True)


def measure(options):
    import torch

    import cells

    if not torch.cuda.is_available():
        sys.exit("compare.py: torch sees no GPU here")
    torch.manual_seed(int.from_bytes(os.urandom(4), "little"))
    torch.backends.cuda.matmul.allow_tf32 = False
    library = Library(options.library)
    options.before = Library(options.before) if options.before else None
    facts = {
        "card": torch.cuda.get_device_name(),
        "driver": driver_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "jitney": library.version(),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "options": {"force": options.force, "layout": options.layout, "sets": options.sets},
    }
    print(
        f"{facts['card']}, driver {facts['driver']}, CUDA {facts['cuda']}, torch {facts['torch']}, "
        f"jitney {facts['jitney']}, {facts['date']}",
        flush=True,
    )
    report = Report()
    host = None
    for mode in options.modes:
        if mode == "host":
            host = cells.host_times(library, options)
            print("host    " + "  ".join(f"{name} {us:.3g} us" for name, us in host.items()))
            continue
        for shape in shapes.shapes_of(mode, options.quick):
            report.run(library, shape, options)
    summary = summary_of(report.cells)
    against_before = summary_of(report.cells, "before")
    lines = [*summary.items(), *((f"before {mode}", each) for mode, each in against_before.items())]
    for mode, each in lines:
        print(
            f"{mode}: geometric mean {each['geometric_mean']:.3f}, minimum {each['minimum']:.3f} "
            f"({each['minimum_cell']}), {each['cells']} cells"
        )
    print(
        f"{len(report.cells)} cells measured, {len(report.failed)} failed, "
        f"{len(report.skipped)} skipped on {facts['card']}, driver {facts['driver']}, "
        f"{facts['date']}"
    )
    if options.json:
        figures = {
            **facts,
            "cells": report.cells,
            "failed": report.failed,
            "skipped": report.skipped,
            "host_us": host,
            "summary": summary,
            "summary_before": against_before,
        }
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 1 if report.failed else 0


def require_torch():
    try:
        import torch  # noqa: F401
    except ImportError as error:
        sys.exit(
            f"compare.py: measuring needs torch with CUDA, and this Python has none ({error}): "
            "install it, or see the cells alone by --list"
        )


def main():
    options = parse(sys.argv[1:])
    if options.list:
        for mode in options.modes:
            if mode != "host":
                for shape in shapes.shapes_of(mode, options.quick):
                    print(f"{mode:8}{shape.name()}")
        return 0
    require_torch()
    return measure(options)


if __name__ == "__main__":
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:  # nobody reads on, such as `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status)
