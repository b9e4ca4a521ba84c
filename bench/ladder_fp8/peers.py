"""torch's own products of FP8 matrices: cuBLASLt, and torch's kernels for scales of rows and columns."""
import torch

_found = {}  # name -> whether it runs


def of(a, b, out, scales):
    """name -> call. The letters: fast or precise, before them r for scales of rows and columns, b for blocks."""
    one = scales["one"]
    of_a, of_b = scales["sides"]
    calls = {}
    for end, fast in (("f", True), ("p", False)):
        def one_scale(fast=fast):
            torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=fast, out=out)

        def sides(fast=fast):
            torch._scaled_mm(a, b.t(), of_a.view(-1, 1), of_b.view(1, -1), out_dtype=torch.bfloat16, use_fast_accum=fast)

        calls[f"torch-{end}"] = one_scale
        calls[f"torch-r{end}"] = sides

    # The scales of b fill up to a multiple of four blocks of k.
    of_blocks = scales["blocks"][1]
    wide_b = torch.ones(of_blocks.shape[0], -(-of_blocks.shape[1] // 4) * 4, device="cuda").t()

    def blocks():
        from torch.nn.functional import ScalingType, scaled_mm

        scaled_mm(a, b.t(), scales["blocks"][0], ScalingType.BlockWise1x128, wide_b,
                  ScalingType.BlockWise128x128, output_dtype=torch.bfloat16)

    if a.shape[0] >= 16:
        calls["torch-bp"] = blocks
    return {name: call for name, call in calls.items() if _runs(name, call)}


def _runs(name, call):
    if name not in _found:
        try:
            call()
            torch.cuda.synchronize()
            _found[name] = True
        except (RuntimeError, ValueError, ImportError, AttributeError, TypeError, NotImplementedError) as error:
            print(f"  {name}: {str(error)[:160]}", flush=True)
            _found[name] = False
    return _found[name]
