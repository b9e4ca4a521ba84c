"""The structures that fp8_gemm_wgmma is launched with, as ctypes has them."""
import ctypes

from ladder.structures import TensorMapBits

_POINTER = ctypes.c_void_p
_INT = ctypes.c_int


class Operand(ctypes.Structure):
    _fields_ = [("data", _POINTER), ("stride", ctypes.c_longlong)]


class Fp8GemmScales(ctypes.Structure):
    _fields_ = [(each, _POINTER) for each in ("a", "b")] + [
        (each, ctypes.c_longlong) for each in ("a_row", "a_block", "b_column", "b_block", "b_group")
    ]


class Fp8GemmParams(ctypes.Structure):
    _fields_ = (
        [("a", Operand), ("b", Operand), ("scale", _POINTER), ("scales", Fp8GemmScales)]
        + [(each, _POINTER) for each in ("bias", "out")]
        + [("out_stride", ctypes.c_longlong)]
        + [(each, _POINTER) for each in ("multiplier", "amax", "partials", "arrived", "amax_counters")]
        + [
            (each, _INT)
            for each in ("bias_format", "m", "n", "k", "m_tiles", "n_tiles", "group", "splits", "split_tiles")
        ]
        + [("out_vectors", _INT), ("group_indptr", _POINTER), ("groups", _INT)]
        + [(each, ctypes.c_longlong) for each in ("b_group", "bias_group")]
    )


class Fp8GemmWgmmaParams(ctypes.Structure):
    _fields_ = [(each, TensorMapBits) for each in ("u", "v", "out")] + [("gemm", Fp8GemmParams)]


def layout_checks():
    """Lines for the kernel's text: that the structures here are those of the headers."""
    lines = []
    for struct in (Fp8GemmParams, Fp8GemmScales, Fp8GemmWgmmaParams):
        for field, _ in struct._fields_:
            offset = getattr(struct, field).offset
            lines.append(f"static_assert(__INTADDR__(&static_cast<{struct.__name__}*>(0)->{field}) == {offset});\n")
    return "".join(lines)
