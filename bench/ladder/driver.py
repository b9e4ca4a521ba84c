"""The driver's own functions through ctypes: kernels of a cubin, tensor maps, launches."""
import ctypes
import re

from .structures import TensorMapBits

_INT = ctypes.c_int

_driver = ctypes.CDLL("libcuda.so.1")


def check(status, what):
    if status:
        text = ctypes.c_char_p()
        _driver.cuGetErrorName(status, ctypes.byref(text))
        raise RuntimeError(f"{what} failed: {text.value.decode() if text.value else status}")


def encode_map(tensor_address, format, sizes, strides_bytes, box):
    """A map of a tensor, innermost dimension first, swizzled over 128 bytes."""
    rank = len(sizes)
    memory = (ctypes.c_char * (128 + 64))()
    aligned = (ctypes.addressof(memory) + 63) // 64 * 64
    kinds = {"bytes": 0, "fp16": 6, "fp32": 7, "bf16": 9, "e4m3": 0, "e5m2": 0}
    check(
        _driver.cuTensorMapEncodeTiled(
            ctypes.c_void_p(aligned),
            _INT(kinds[format]),
            ctypes.c_uint(rank),
            ctypes.c_void_p(tensor_address),
            (ctypes.c_uint64 * rank)(*sizes),
            (ctypes.c_uint64 * (rank - 1))(*strides_bytes),
            (ctypes.c_uint32 * rank)(*box),
            (ctypes.c_uint32 * rank)(*[1] * rank),
            _INT(0),  # no interleave
            _INT(3),  # 128-byte swizzle
            _INT(3),  # promotion to 256 bytes in the L2
            _INT(0),  # zeros outside
        ),
        f"cuTensorMapEncodeTiled({sizes}, {strides_bytes}, {box})",
    )
    bits = TensorMapBits()
    ctypes.memmove(ctypes.byref(bits), aligned, 128)
    return bits


def load_kernel(cubin, name, shared_bytes):
    """The function of that name in a cubin, in torch's context."""
    import torch

    torch.cuda.current_stream()
    module = ctypes.c_void_p()
    check(_driver.cuModuleLoadData(ctypes.byref(module), cubin), "cuModuleLoadData")
    symbols = {each.decode() for each in re.findall(rb"_ZN6jitney[A-Za-z0-9_]+", cubin)}
    names = sorted((each for each in symbols if name in each), key=len)
    function = ctypes.c_void_p()
    check(_driver.cuModuleGetFunction(ctypes.byref(function), module, names[0].encode()), "cuModuleGetFunction")
    check(_driver.cuFuncSetAttribute(function, _INT(8), _INT(shared_bytes)), "shared memory")
    return function


class _Attribute(ctypes.Structure):
    _fields_ = [("id", _INT), ("pad", _INT), ("value", ctypes.c_uint * 16)]


class _Config(ctypes.Structure):
    _fields_ = [
        (each, ctypes.c_uint)
        for each in ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared_bytes")
    ] + [("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(_Attribute)), ("count", ctypes.c_uint)]


class Launch:
    """A launch along x with parameters by value. `early`: it may begin before its predecessor ends."""

    def __init__(self, function, params, grid, threads, shared_bytes, cluster=1, early=False):
        self.function = function
        self.params = params
        self.pointers = (ctypes.c_void_p * 1)(ctypes.addressof(params))
        self.attributes = (_Attribute * 2)()
        count = 0
        if cluster > 1:
            self.attributes[count].id = 4
            self.attributes[count].value[0:3] = [cluster, 1, 1]
            count += 1
        if early:
            self.attributes[count].id = 6
            self.attributes[count].value[0] = 1
            count += 1
        self.config = _Config(grid, 1, 1, threads, 1, 1, shared_bytes, None, self.attributes, count)

    def __call__(self, stream):
        self.config.stream = stream
        check(
            _driver.cuLaunchKernelEx(ctypes.byref(self.config), self.function, self.pointers, None),
            "cuLaunchKernelEx",
        )

    def clusters_at_once(self):
        number = _INT()
        check(
            _driver.cuOccupancyMaxActiveClusters(ctypes.byref(number), self.function, ctypes.byref(self.config)),
            "cuOccupancyMaxActiveClusters",
        )
        return number.value
