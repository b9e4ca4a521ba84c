#!/usr/bin/env python3
"""Drawings of a comparison: SVG files of prefill and decode beside the peers.

    python3 bench/compare.py prefill decode --cudnn --json RUN.json
    python3 bench/plot.py RUN.json --out docs/plots

Prefill: TFLOPS over the sequence length, a panel for each head_dim and mask. Decode: GB/s of a cell
over the time that Jitney takes, a panel for each head_dim. The title has the card and the date.
Needs matplotlib.
"""
import argparse
import json
import pathlib
import re
import sys

CELL = re.compile(
    r"d(?P<head_dim>\d+) B(?P<batch>\d+) H(?P<heads>\d+)/(?P<kv_heads>\d+) "
    r"(?:S(?P<length>\d+)|q\d+ kv(?P<kv_len>\d+)) (?P<mask>\w+)$"
)
NAMES = {"jitney": "Jitney", "cudnn": "cuDNN", "flash": "FlashAttention-2", "fa4": "FlashAttention-4"}
COLORS = {"jitney": "#d1495b", "cudnn": "#00798c", "flash": "#8d96a3", "fa4": "#edae49"}


def parsed(run, mode):
    """(fields of its name, rate by library, time by library) of each cell of a mode that has a shape
    such as these draw."""
    for cell in run["cells"]:
        match = CELL.match(cell["cell"])
        if cell["mode"] == mode and match:
            rates = cell["TFLOPS"] if "TFLOPS" in cell else cell["GBps"]
            yield match.groupdict(), rates, cell["us"]


def libraries(rows):
    return [name for name in NAMES if any(name in rates for _, rates, _ in rows)]


def draw_lines(axes, rows, x_of):
    for name in libraries(rows):
        points = sorted((x_of(fields, times), rates[name]) for fields, rates, times in rows
                        if name in rates)
        axes.plot(*zip(*points), marker="o", markersize=3, color=COLORS[name], label=NAMES[name],
                  linewidth=2 if name == "jitney" else 1.2)
    axes.set_xscale("log", base=2 if x_of is length_of else 10)
    axes.set_ylim(bottom=0)
    axes.grid(True, linewidth=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def length_of(fields, _times):
    return int(fields["length"])


def time_of(_fields, times):
    return times["jitney"]


def title_of(run, what):
    return f"{what}: {run['card']}, {run['date'][:10]}, torch {run['torch']}"


def prefill(pyplot, run):
    rows = [row for row in parsed(run, "prefill") if row[0]["length"]]
    dims = sorted({int(fields["head_dim"]) for fields, _, _ in rows})
    masks = [mask for mask in ("full", "causal") if any(f["mask"] == mask for f, _, _ in rows)]
    figure, panels = pyplot.subplots(len(masks), len(dims), figsize=(3.2 * len(dims), 2.5 * len(masks)),
                                     sharex=True, squeeze=False)
    for line, mask in zip(panels, masks):
        for axes, dim in zip(line, dims):
            of_panel = [row for row in rows
                        if int(row[0]["head_dim"]) == dim and row[0]["mask"] == mask]
            draw_lines(axes, of_panel, length_of)
            lengths = sorted({int(fields["length"]) for fields, _, _ in of_panel})
            axes.set_xticks(lengths, [f"{n // 1024}k" if n >= 1024 else str(n) for n in lengths])
            axes.set_title(f"head_dim {dim}, {mask}", fontsize=9)
    for line in panels:
        line[0].set_ylabel("TFLOPS")
    for axes in panels[-1]:
        axes.set_xlabel("sequence length (16,384 tokens in all)")
    panels[0][0].legend(fontsize=8, loc="lower right", frameon=False)
    figure.suptitle(title_of(run, "Prefill in bf16"), fontsize=10)
    return figure


def decode(pyplot, run):
    rows = list(parsed(run, "decode"))
    dims = sorted({int(fields["head_dim"]) for fields, _, _ in rows})
    figure, panels = pyplot.subplots(1, len(dims), figsize=(4.2 * len(dims), 3), sharey=True,
                                     squeeze=False)
    for axes, dim in zip(panels[0], dims):
        draw_lines(axes, [row for row in rows if int(row[0]["head_dim"]) == dim], time_of)
        axes.set_title(f"head_dim {dim}", fontsize=9)
        axes.set_xlabel("time of the call with Jitney, µs")
    panels[0][0].set_ylabel("GB/s of K and V read")
    panels[0][0].legend(fontsize=8, loc="lower right", frameon=False)
    figure.suptitle(title_of(run, "Decode in bf16"), fontsize=10)
    return figure


DRAWINGS = {"prefill": prefill, "decode": decode}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=pathlib.Path, help="the JSON of bench/compare.py")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."), help="a directory")
    options = parser.parse_args()
    try:
        import matplotlib
    except ImportError as error:
        sys.exit(f"plot.py: drawing needs matplotlib, and this Python has none ({error})")
    matplotlib.use("svg")
    # Text stays text, and equal figures give equal files.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "jitney", "font.size": 8})
    from matplotlib import pyplot

    run = json.loads(options.run.read_text())
    modes = {cell["mode"] for cell in run["cells"]} & DRAWINGS.keys()
    if not modes:
        sys.exit(f"plot.py: {options.run} has cells of none of {', '.join(DRAWINGS)}")
    options.out.mkdir(parents=True, exist_ok=True)
    for mode in sorted(modes):
        figure = DRAWINGS[mode](pyplot, run)
        figure.tight_layout()
        target = options.out / f"{mode}.svg"
        figure.savefig(target, metadata={"Date": None, "Creator": None})
        print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
