#!/usr/bin/env python3
"""Variants of attn_prefill_wgmma side by side, beside torch, on one GPU in one process.

    python3 bench/ladder_attention.py [check] [time] [--plan FILE] [--json FILE]
    python3 bench/ladder_attention.py inspect [--plan FILE]

A plan is a Python file with VARIANTS (name -> Variant), CHECKS and CELLS; bench/ladder/plan.py is the
one that is taken where none is named. Each variant is checked against torch in fp32 on random data
before it is timed; one that is wrong, or whose kernel fails, is not timed. `inspect` needs neither a
GPU nor torch: it compiles, says what ptxas says, counts instructions where there is an nvdisasm, and
fails where a variant spills or where ptxas serializes its products.
"""
import argparse
import concurrent.futures
import importlib.util
import json
import pathlib
import sys
import time

from ladder import compiler
from ladder.structures import layout_checks

HERE = pathlib.Path(__file__).resolve().parent


def load_plan(path):
    spec = importlib.util.spec_from_file_location("plan", path)
    plan = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plan)
    return plan


def inspect(plan):
    worst = 0
    for name, variant in plan.VARIANTS.items():
        cubin, log = compiler.compile_cubin(variant.text(layout_checks()))
        said = compiler.remarks(log)
        sass = compiler.disassemble(cubin)
        counts = compiler.count_instructions(sass) if sass else {}
        print(f"{name}: {variant.name()}, {variant.shared_bytes()} bytes shared, {said} {counts}", flush=True)
        if said["spill"] or said["codes"]:
            worst = 1
    return worst


def compile_all(variants):
    """name -> Kernel; says what ptxas says of each."""
    from ladder import launcher

    kernels = {}
    with concurrent.futures.ProcessPoolExecutor(12) as pool:
        built = dict(zip(variants, pool.map(launcher.kernel_of, variants.values())))
    for name, (variant, cubin, log) in built.items():
        said = compiler.remarks(log)
        if said["spill"] or said["codes"]:
            print(f"{name}: {said}", flush=True)
        kernels[name] = launcher.Kernel(variant, cubin)
    return kernels


def tflops(shape, us):
    batch, q_heads, _, q_len, kv_len, dim, dim_v, causal = shape
    operations = 2 * batch * q_heads * q_len * kv_len * (dim + dim_v)
    return operations * (0.5 if causal else 1) / us / 1e6


def time_cell(plan, kernels, cell, right):
    import timing
    import torch

    from ladder import checks, launcher, peers

    batch, q_heads, kv_heads, q_len, kv_len, dim, dim_v, causal = cell
    names = [
        name
        for name, kernel in kernels.items()
        if right[name]
        and (kernel.variant.head_dim, kernel.variant.dim_v) == (dim, dim_v)
        and kernel.variant.causal == int(causal)
        and kernel.variant.queries == "dense"
        and kernel.variant.format == "bf16"
        and not (kernel.variant.window or kernel.variant.softcap or kernel.variant.alibi or kernel.variant.sinks)
    ]
    work = 2 * batch * q_heads * q_len * kv_len * (dim + dim_v)
    short = work < 1.2e11
    sets = max(1, min(8, int(80e6 / (2 * batch * (q_heads * q_len * dim + kv_heads * kv_len * (dim + dim_v)))) + 1))
    sets = sets if short else 1
    contenders, outputs = {}, {}
    for turn in range(sets):
        q, k, v = peers.inputs(batch, q_heads, kv_heads, q_len, kv_len, dim, dim_v)
        for name in names:
            out = torch.full((batch, q_heads, q_len, dim_v), float("nan"), device="cuda", dtype=q.dtype)
            options = getattr(plan, "CALLS", {}).get(name, {})
            call = launcher.Call(kernels[name], *(each.transpose(1, 2) for each in (q, k, v, out)), **options)
            contenders.setdefault(name, []).append(call)
            outputs.setdefault(name, out)
        for name, peer in peers.PEERS.items():
            if name in plan.PEERS:
                contenders.setdefault(name, []).append(peer(q, k, v, causal))
    for name in list(contenders):
        if name not in names:
            try:
                peer_out = contenders[name][0]()
            except RuntimeError as error:
                print(f"  {name}: {str(error)[:90]}")
                del contenders[name]
                continue
            expected = peer_out
    for name in names:
        contenders[name][0]()
    torch.cuda.synchronize()
    for name in names:
        if len(contenders) > len(names):
            error = checks.relative_error(outputs[name], expected.float())
            if not error < 8e-3:
                print(f"  {name}: differs from the peer by {error:.2e}", flush=True)
                right[name] = False
                del contenders[name]
    if short:
        times = timing.by_graph(contenders, replays=7, least_calls=4)
    else:
        times = timing.by_events(contenders, budget_s=plan.BUDGET, warm=1, least=5, most=15)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=["check", "time"])
    parser.add_argument("--plan", default=HERE / "ladder/plan.py")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=130, help="no cell begins later than that")
    options = parser.parse_args()
    begin = time.time()
    plan = load_plan(options.plan)
    if "inspect" in options.what:
        return inspect(plan)
    import torch

    from ladder import checks, peers

    kernels = compile_all(plan.VARIANTS)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; compiled in {time.time() - begin:.1f} s", flush=True)
    torch.manual_seed(int(begin))
    right = {name: True for name in kernels}
    if "check" in options.what:
        for name, kernel in kernels.items():
            right[name] = checks.check(name, kernel, plan.CHECKS)
        print(f"checked, {sum(right.values())} of {len(right)} right, {time.time() - begin:.1f} s", flush=True)
    rows = []
    if "time" in options.what:
        for cell in plan.CELLS:
            if time.time() - begin > options.seconds:
                print("out of time", flush=True)
                break
            times = time_cell(plan, kernels, cell, right)
            words = [f"{name} {us:.1f}us {tflops(cell, us):.0f}" for name, us in times.items()]
            print(peers.name_of(cell) + ": " + "  ".join(words), flush=True)
            rows.append({"cell": cell, "us": times, "tflops": {n: tflops(cell, us) for n, us in times.items()}})
            if options.json:
                options.json.write_text(json.dumps(rows))
            torch.cuda.empty_cache()
    print(f"{time.time() - begin:.1f} s in all", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
