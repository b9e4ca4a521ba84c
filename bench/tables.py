#!/usr/bin/env python3
"""The figures that compare.py wrote, as the tables of docs/performance.md.

    python3 bench/tables.py figures.json [MODE...]
"""
import json
import sys


def number(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def columns(cells):
    """The contenders of a mode, Jitney first, and what their rates count."""
    names = list(dict.fromkeys(name for cell in cells for name in cell["us"]))
    rate = next((unit for unit in ("TFLOPS", "GBps") if unit in cells[0]), None)
    return names, rate


def table(cells):
    names, rate = columns(cells)
    heads = ["cell"]
    for name in names:
        heads.append(f"{name} µs")
        if rate:
            heads.append(f"{name} {'GB/s' if rate == 'GBps' else rate}")
    heads += ["ratio", "tile"]
    yield "| " + " | ".join(heads) + " |"
    yield "|---|" + "--:|" * (len(heads) - 2) + "---|"
    for cell in cells:
        row = [cell["cell"]]
        for name in names:
            row.append(number(cell["us"][name]))
            if rate:
                row.append(number(cell[rate][name]))
        row.append("" if cell["ratio"] is None else f"{cell['ratio']:.2f}")
        tile = cell["kernel"].partition("tile=")[2].partition(",")[0]
        yield "| " + " | ".join([*row, tile]) + " |"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        figures = json.load(file)
    modes = sys.argv[2:] or list(dict.fromkeys(cell["mode"] for cell in figures["cells"]))
    print(f"{figures['card']}, driver {figures['driver']}, CUDA {figures['cuda']}, "
          f"torch {figures['torch']}, {figures['date']}")
    for mode in modes:
        cells = [cell for cell in figures["cells"] if cell["mode"] == mode]
        if not cells:
            sys.exit(f"tables.py: {sys.argv[1]} has no cells of {mode}")
        print(f"\n## {mode}\n")
        print("\n".join(table(cells)))
        summary = figures["summary"].get(mode)
        if summary:
            print(f"\nGeometric mean of the ratios {summary['geometric_mean']:.3f}, least "
                  f"{summary['minimum']:.3f} ({summary['minimum_cell']}).")


if __name__ == "__main__":
    main()
