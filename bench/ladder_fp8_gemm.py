#!/usr/bin/env python3
"""Variants of fp8_gemm_wgmma side by side, beside torch._scaled_mm, on one GPU in one process.

    python3 bench/ladder_fp8_gemm.py [check] [time] [errors] [--out FOLDER]
    python3 bench/ladder_fp8_gemm.py inspect

bench/ladder_fp8/plan.py has the variants and cells. Each variant is checked against torch in fp64 on
random data, in a process of its own that may hang, before it is timed; one that is wrong is not timed.
`inspect` needs neither a GPU nor torch: it compiles, says what ptxas says, and fails where a variant
spills or where ptxas serializes its products.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import select
import subprocess
import sys
import time

from ladder import compiler
from ladder_fp8 import plan
from ladder_fp8.structures import layout_checks

HERE = pathlib.Path(__file__).resolve().parent


def build(name):
    begin = time.process_time()
    cubin, log = compiler.compile_cubin(plan.VARIANTS[name].text(layout_checks()))
    return cubin, compiler.remarks(log), time.process_time() - begin


def inspect():
    worst = 0
    for name, variant in plan.VARIANTS.items():
        _, said, seconds = build(name)
        print(f"{name}: {variant.shared_bytes()} bytes shared, {said}, {seconds:.2f} s", flush=True)
        if said["spill"] or said["codes"] or variant.shared_bytes() > 232448:
            worst = 1
    return worst


def compile_all(folder):
    with concurrent.futures.ProcessPoolExecutor(14) as pool:
        for name, (cubin, said, _) in zip(plan.VARIANTS, pool.map(build, plan.VARIANTS)):
            if said["spill"] or said["codes"]:
                print(f"{name}: {said}", flush=True)
            (folder / f"{name}.cubin").write_bytes(cubin)


def load(folder, name):
    from ladder_fp8 import launcher

    return launcher.Kernel(plan.VARIANTS[name], (folder / f"{name}.cubin").read_bytes())


def check_here(folder, names, seed):
    """A line before and one after each variant."""
    import torch

    from ladder_fp8 import checks, launcher

    torch.manual_seed(seed)
    for name in names:
        print(json.dumps(["begin", name]), flush=True)
        wrong = None
        kernel = load(folder, name)
        for case in plan.CHECKS:
            if launcher.takes(kernel.variant, *case[:3]):
                wrong = checks.check_case(kernel, case)
                if wrong:
                    wrong = f"{case}: {wrong}"
                    break
        print(json.dumps(["end", name, wrong]), flush=True)


def check(folder, names, patience=15):
    """name -> None, or what is wrong."""
    found = {}
    hung = 0
    while True:
        left = [name for name in names if name not in found]
        if not left or hung > 4:
            return {name: found.get(name, "not checked") for name in names}
        command = [sys.executable, __file__, "check-here", "--out", str(folder), "--names", *left]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        at, buffer = None, b""
        wait = 60  # torch has to be loaded
        while True:
            ready, _, _ = select.select([child.stdout], [], [], wait)
            some = os.read(child.stdout.fileno(), 65536) if ready else b""
            if not some:
                break
            wait = patience
            buffer += some
            *lines, buffer = buffer.split(b"\n")
            for line in lines:
                word = json.loads(line)
                at = word[1]
                if word[0] == "end":
                    found[at] = word[2]
                    at = None
        hangs = not ready
        hung += hangs
        if child.poll() is None and hangs:
            child.kill()
        error = child.communicate()[1].decode()[-300:]
        if at is not None:
            found[at] = "hangs" if hangs else f"fails: {error}"
        elif hangs or child.returncode:
            print(error, flush=True)
            for name in left:
                found.setdefault(name, "the process ended")


def sets_of(m, n, k):
    """Inputs that together pass the L2."""
    return max(1, min(24, -(-160_000_000 // (m * k + n * k + 2 * m * n))))


def time_cell(kernels, cell, names=None, replays=9):
    import timing
    import torch

    from ladder_fp8 import checks, launcher, peers

    m, n, k = cell
    one = torch.ones(1, device="cuda")
    sides = torch.ones(m, device="cuda"), torch.ones(n, device="cuda")
    k_blocks = -(-k // 128)
    blocks = torch.ones(k_blocks, m, device="cuda").t(), torch.ones(-(-n // 128), k_blocks, device="cuda")
    scales = {"one": one, "sides": sides, "blocks": blocks}
    contenders = {}
    last = None
    for _ in range(sets_of(m, n, k)):
        a, b = checks.operand(m, k, "e4m3"), checks.operand(n, k, "e4m3")
        out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        for name, peer in peers.of(a, b, out, scales).items():
            contenders.setdefault(name, []).append(peer)
        for name, kernel in kernels.items():
            if (name in names if names else not name.startswith("check")) and launcher.takes(kernel.variant, *cell) and plan.runs(kernel.variant, *cell):
                contenders.setdefault(name, []).append(launcher.Call(kernel, a, b, out, scales[kernel.variant.scales], **plan.CALLS[name]))
        last = a, b, out
    a, b, out = last
    contenders["torch-p"][-1]()
    expected = out.float()
    for name in [name for name in contenders if not name.startswith("torch")]:
        out.fill_(float("nan"))
        contenders[name][-1]()
        torch.cuda.synchronize()
        error = float((out.float() - expected).norm() / expected.norm())
        if not error < 8e-3:
            print(f"  {name}: differs from the peer by {error:.2e}", flush=True)
            del contenders[name]
    if 2 * m * n * k < 2.5e11:
        return timing.by_graph(contenders, replays=replays, least_calls=8)
    return timing.by_events(contenders, budget_s=0.2 if replays > 5 else 0.05, warm=1, least=5 if replays < 9 else 8, most=20)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=["check", "time", "errors"])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("ladder-out"))
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--names", nargs="*")
    parser.add_argument("--seconds", type=float, default=110, help="no cell begins later than that")
    options = parser.parse_args()
    begin = time.time()
    if "inspect" in options.what:
        return inspect()
    folder = options.out
    if "check-here" in options.what:
        check_here(folder, options.names, int(begin))
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    compile_all(folder)
    print(f"compiled {len(plan.VARIANTS)} in {time.time() - begin:.1f} s", flush=True)
    wrong = {name: None for name in plan.VARIANTS}
    if "check" in options.what:
        wrong = check(folder, list(plan.VARIANTS))
        for name, why in wrong.items():
            if why:
                print(f"WRONG {name}: {why}", flush=True)
        print(f"checked, {time.time() - begin:.1f} s", flush=True)
    import torch

    from ladder_fp8 import checks

    kernels = {name: load(folder, name) for name in plan.VARIANTS if not wrong[name]}
    rows = []
    if "time" in options.what:
        print(torch.cuda.get_device_name(), torch.__version__, flush=True)
        for cell in plan.CELLS:
            if time.time() - begin > options.seconds:
                print("out of time", flush=True)
                break
            times = time_cell(kernels, cell)
            rows.append({"cell": cell, "us": times})
            if options.json:
                options.json.write_text(json.dumps(rows))
            words = []
            for end in ("f", "p", "rf", "rp", "bp"):
                ours = sorted((us, name) for name, us in times.items() if name.split("-")[1].replace("2", "") == end
                              and "torch" not in name)
                peer = times.get(f"torch-{end}")
                said = f"torch-{end} {peer:.2f} ({2 * cell[0] * cell[1] * cell[2] / peer / 1e6:.0f})" if peer else f"no torch-{end}"
                said += ": " + " ".join(f"{name} {us:.2f}" for us, name in ours[:4])
                words.append(said + (f" = {peer / ours[0][0]:.2f}" if peer and ours else ""))
            print("x".join(map(str, cell)) + "\n    " + "\n    ".join(words), flush=True)
            torch.cuda.empty_cache()
    if "grid" in options.what:
        for cell in plan.GRID:
            if time.time() - begin > options.seconds:
                print("out of time", flush=True)
                break
            rows.append({"cell": cell, "us": time_cell(kernels, cell, plan.CANDIDATES, 5)})
            if options.json:
                options.json.write_text(json.dumps(rows))
            torch.cuda.empty_cache()
        print(f"{len(rows)} cells, {time.time() - begin:.1f} s", flush=True)
    if "errors" in options.what:
        for k in (1024, 16384):
            words = [f"torch {'fast' if fast else 'precise'} {checks.peer_errors(k, fast)}" for fast in (True, False)]
            for name in ("check-fp32", "check-fp32c"):
                if name in kernels:
                    words.append(f"{name} promote={kernels[name].variant.promote} {checks.errors(kernels[name], k)}")
            print(f"errors at k {k}, largest and rms: " + "; ".join(words), flush=True)
    print(f"{time.time() - begin:.1f} s in all", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
