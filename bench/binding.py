"""libjitney.so through its C ABI, by ctypes alone. See api/include/jitney/jitney.h.

    library = Library("build/lib/libjitney.so")
    library.attention(q=tensor_of(q), k=tensor_of(k), v=tensor_of(v), out=tensor_of(out))(stream)
"""
import contextlib
import ctypes
import os
from ctypes import POINTER, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_void_p


class DLDevice(ctypes.Structure):
    _fields_ = [("device_type", c_int), ("device_id", c_int)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device", DLDevice),
        ("ndim", c_int),
        ("dtype", DLDataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


# Fields that a library does not know yet may stay in the struct as long as they are zero.
class LogitsValue(ctypes.Union):
    _fields_ = [
        ("pointer", c_void_p),
        ("fp32", c_float),
        ("int32", c_int32),
        ("int64", c_int64),
    ]


class AttentionArgs(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("q", POINTER(DLTensor)),
        ("k", POINTER(DLTensor)),
        ("v", POINTER(DLTensor)),
        ("out", POINTER(DLTensor)),
        ("mask", POINTER(DLTensor)),
        ("lse", POINTER(DLTensor)),
        ("scale", c_float),
        ("causal", c_int32),
        ("qo_indptr", POINTER(DLTensor)),
        ("qo_indptr_host", POINTER(c_int32)),
        ("kv_lens", POINTER(DLTensor)),
        ("kv_indptr", POINTER(DLTensor)),
        ("req_to_token", POINTER(DLTensor)),
        ("req_pool_indices", POINTER(DLTensor)),
        ("block_table", POINTER(DLTensor)),
        ("kv_page_indptr", POINTER(DLTensor)),
        ("kv_page_indices", POINTER(DLTensor)),
        ("last_page_len", POINTER(DLTensor)),
        ("max_kv_len", c_int64),
        ("has_window", c_int32),
        ("window_left", c_int32),
        ("window_right", c_int32),
        ("softcap", c_float),
        ("alibi_slopes", POINTER(DLTensor)),
        ("sinks", POINTER(DLTensor)),
        ("new_k", POINTER(DLTensor)),
        ("new_v", POINTER(DLTensor)),
        ("batch_invariant", c_int32),
        ("reserved", c_int32),
        ("workspace", c_void_p),
        ("workspace_bytes", c_size_t),
        ("logits", c_void_p),
        ("logits_values", LogitsValue * 4),
    ]


class RotaryArgs(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("q", POINTER(DLTensor)),
        ("k", POINTER(DLTensor)),
        ("q_out", POINTER(DLTensor)),
        ("k_out", POINTER(DLTensor)),
        ("cos", POINTER(DLTensor)),
        ("sin", POINTER(DLTensor)),
        ("positions", POINTER(DLTensor)),
        ("style", c_int32),
        ("reserved", c_int32),
    ]


class RmsNormArgs(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("x", POINTER(DLTensor)),
        ("residual", POINTER(DLTensor)),
        ("sum", POINTER(DLTensor)),
        ("weight", POINTER(DLTensor)),
        ("bias", POINTER(DLTensor)),
        ("out", POINTER(DLTensor)),
        ("multiplier", POINTER(DLTensor)),
        ("scale", POINTER(DLTensor)),
        ("eps", c_float),
        ("one_plus_weight", c_int32),
        ("subtract_mean", c_int32),
        ("reserved", c_int32),
    ]


class GatedActivationArgs(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("gate", POINTER(DLTensor)),
        ("up", POINTER(DLTensor)),
        ("out", POINTER(DLTensor)),
        ("multiplier", POINTER(DLTensor)),
        ("scale", POINTER(DLTensor)),
        ("activation", c_int32),
        ("reserved", c_int32),
    ]


class Fp8QuantizeArgs(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("x", POINTER(DLTensor)),
        ("out", POINTER(DLTensor)),
        ("out_transposed", POINTER(DLTensor)),
        ("multiplier", POINTER(DLTensor)),
        ("scale", POINTER(DLTensor)),
        ("amax", POINTER(DLTensor)),
        ("dynamic", c_int32),
        ("granularity", c_int32),
        ("workspace", c_void_p),
        ("workspace_bytes", c_size_t),
        ("power_of_two", c_int32),
        ("reserved", c_int32),
    ]


class Fp8GemmArgs(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("a", POINTER(DLTensor)),
        ("b", POINTER(DLTensor)),
        ("out", POINTER(DLTensor)),
        ("dequant_scale", POINTER(DLTensor)),
        ("bias", POINTER(DLTensor)),
        ("out_multiplier", POINTER(DLTensor)),
        ("amax", POINTER(DLTensor)),
        ("trans_a", c_int32),
        ("trans_b", c_int32),
        ("fast_accum", c_int32),
        ("reserved", c_int32),
        ("workspace", c_void_p),
        ("workspace_bytes", c_size_t),
        ("scale_a", POINTER(DLTensor)),
        ("scale_b", POINTER(DLTensor)),
        ("group_indptr", POINTER(DLTensor)),
    ]


class Fp8LinearInferenceArgs(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("x", POINTER(DLTensor)),
        ("weight", POINTER(DLTensor)),
        ("weight_scale", POINTER(DLTensor)),
        ("x_scale", POINTER(DLTensor)),
        ("bias", POINTER(DLTensor)),
        ("y", POINTER(DLTensor)),
        ("fast_accum", c_int32),
        ("reserved", c_int32),
        ("workspace", c_void_p),
        ("workspace_bytes", c_size_t),
    ]


# name -> DLPack's code and bits
DTYPES = {
    "float32": (2, 32),
    "float16": (2, 16),
    "bfloat16": (4, 16),
    "int32": (0, 32),
    "int64": (0, 64),
    "bool": (6, 8),
    "uint8": (1, 8),
    "float8_e4m3fn": (10, 8),
    "float8_e5m2": (12, 8),
}
DEVICES = {"cpu": 1, "cuda": 2}
UNSUPPORTED = 2


class JitneyError(RuntimeError):
    def __init__(self, status, sentence):
        super().__init__(sentence)
        self.status = status

    @property
    def unknown_field(self):
        """Whether the library is older than a field that was set."""
        return self.status == UNSUPPORTED and "newer libjitney" in str(self)


class Tensor:
    """A DLTensor with the arrays that it points to. The memory of the elements is the caller's."""

    def __init__(self, pointer, dtype, shape, strides=None, device=("cpu", 0), keep=None):
        code, bits = DTYPES[dtype]
        self.keep = keep
        self.shape = (c_int64 * len(shape))(*shape)
        self.strides = None if strides is None else (c_int64 * len(strides))(*strides)
        self.view = DLTensor(
            data=pointer,
            device=DLDevice(DEVICES[device[0]], device[1]),
            ndim=len(shape),
            dtype=DLDataType(code, bits, 1),
            shape=ctypes.cast(self.shape, POINTER(c_int64)),
            strides=None if strides is None else ctypes.cast(self.strides, POINTER(c_int64)),
            byte_offset=0,
        )


def tensor_of(tensor):
    """A torch tensor: same memory, same strides."""
    return Tensor(
        tensor.data_ptr(),
        str(tensor.dtype).removeprefix("torch."),
        tuple(tensor.shape),
        tuple(tensor.stride()),
        (tensor.device.type, tensor.device.index or 0),
        keep=tensor,
    )


class Call:
    """A call whose arguments are laid out once: call(stream) runs it."""

    def __init__(self, library, function, args, keep):
        self.library = library
        self.function = function
        self.args = args
        self.reference = ctypes.byref(args)
        self.keep = keep

    def __call__(self, stream=None):
        status = self.function(self.reference, stream)
        if status:
            raise JitneyError(status, self.library.last_error())


class Plan:
    """What a call of attention needs, prepared once: plan(stream) runs it with the call's fields as
    they are then."""

    def __init__(self, library, call):
        self.library = library
        self.call = call
        self.pointer = c_void_p()
        library.check(
            library.dll.jitney_attention_plan_create(call.reference, ctypes.byref(self.pointer))
        )

    def __call__(self, stream=None):
        run = self.library.dll.jitney_attention_plan_run
        status = run(self.pointer, self.call.reference, stream)
        if status:
            raise JitneyError(status, self.library.last_error())

    def workspace_bytes(self):
        size = c_size_t()
        self.library.check(
            self.library.dll.jitney_attention_plan_workspace(self.pointer, ctypes.byref(size))
        )
        return size.value

    def __del__(self):
        if self.pointer:
            self.library.dll.jitney_attention_plan_destroy(self.pointer)


class Library:
    def __init__(self, path):
        self.dll = ctypes.CDLL(os.path.abspath(path))
        args = POINTER(AttentionArgs)
        for name, arguments in (
            ("attention", [args, c_void_p]),
            ("attention_workspace", [args, POINTER(c_size_t)]),
            ("init_workspace", [c_void_p, c_size_t, c_int32, c_void_p]),
            ("attention_plan_create", [args, POINTER(c_void_p)]),
            ("attention_plan_run", [c_void_p, args, c_void_p]),
            ("attention_plan_workspace", [c_void_p, POINTER(c_size_t)]),
            ("attention_plan_destroy", [c_void_p]),
            ("rotary_emb", [POINTER(RotaryArgs), c_void_p]),
            ("rms_norm", [POINTER(RmsNormArgs), c_void_p]),
            ("gated_activation", [POINTER(GatedActivationArgs), c_void_p]),
            ("fp8_quantize", [POINTER(Fp8QuantizeArgs), c_void_p]),
            ("fp8_quantize_workspace", [POINTER(Fp8QuantizeArgs), POINTER(c_size_t)]),
            ("fp8_gemm", [POINTER(Fp8GemmArgs), c_void_p]),
            ("fp8_gemm_workspace", [POINTER(Fp8GemmArgs), POINTER(c_size_t)]),
            ("fp8_linear_inference", [POINTER(Fp8LinearInferenceArgs), c_void_p]),
            ("fp8_linear_inference_workspace", [POINTER(Fp8LinearInferenceArgs), POINTER(c_size_t)]),
            ("push_kernel", [c_char_p]),
            ("push_backend", [c_int]),
            ("pop", []),
        ):
            function = getattr(self.dll, f"jitney_{name}", None)
            if function is None:  # of an earlier library
                continue
            function.argtypes = arguments
            function.restype = c_int
        for name in ("version", "last_error", "last_compile_log", "last_run"):
            function = getattr(self.dll, f"jitney_{name}")
            function.argtypes = []
            function.restype = c_char_p

    def version(self):
        return self.dll.jitney_version().decode()

    def last_error(self):
        return self.dll.jitney_last_error().decode()

    def last_run(self):
        return self.dll.jitney_last_run().decode()

    def _call(self, function, args_type, fields):
        args = args_type(size=ctypes.sizeof(args_type))
        for name, value in fields.items():
            if value is None:
                continue
            if isinstance(value, Tensor):
                value = ctypes.pointer(value.view)
            elif isinstance(value, ctypes.Array):
                value = ctypes.cast(value, dict(args_type._fields_)[name])
            setattr(args, name, value)
        return Call(self, function, args, fields)

    def same(self, call):
        """The call of another library with the same arguments, made of this one."""
        function = getattr(self.dll, call.function.__name__, None)
        if function is None:
            raise RuntimeError(f"the library before has no {call.function.__name__}")
        return Call(self, function, type(call.args).from_buffer_copy(call.args), call.keep)

    def attention(self, **fields):
        return self._call(self.dll.jitney_attention, AttentionArgs, fields)

    def rotary_emb(self, **fields):
        return self._call(self.dll.jitney_rotary_emb, RotaryArgs, fields)

    def rms_norm(self, **fields):
        return self._call(self.dll.jitney_rms_norm, RmsNormArgs, fields)

    def gated_activation(self, **fields):
        return self._call(self.dll.jitney_gated_activation, GatedActivationArgs, fields)

    def fp8_quantize(self, **fields):
        return self._call(self.dll.jitney_fp8_quantize, Fp8QuantizeArgs, fields)

    def fp8_gemm(self, **fields):
        return self._call(self.dll.jitney_fp8_gemm, Fp8GemmArgs, fields)

    def fp8_linear_inference(self, **fields):
        return self._call(self.dll.jitney_fp8_linear_inference, Fp8LinearInferenceArgs, fields)

    def plan(self, call):
        return Plan(self, call)

    def workspace_bytes(self, call):
        """What a call needs beside its tensors, where it brings its own memory."""
        size = c_size_t()
        asks = {
            AttentionArgs: self.dll.jitney_attention_workspace,
            Fp8QuantizeArgs: self.dll.jitney_fp8_quantize_workspace,
            Fp8GemmArgs: self.dll.jitney_fp8_gemm_workspace,
        }
        if isinstance(call.args, Fp8LinearInferenceArgs):  # which an earlier library lacks
            ask = self.dll.jitney_fp8_linear_inference_workspace
        else:
            ask = asks[type(call.args)]
        self.check(ask(call.reference, ctypes.byref(size)))
        return size.value

    def init_workspace(self, pointer, size, device=0, stream=None):
        self.check(self.dll.jitney_init_workspace(pointer, size, device, stream))

    def check(self, status):
        if status:
            raise JitneyError(status, self.last_error())

    @contextlib.contextmanager
    def forced(self, kernel):
        """Calls of this thread run this kernel or fail; None: as the library chooses."""
        if kernel is None:
            yield
            return
        self.check(self.dll.jitney_push_kernel(kernel.encode()))
        try:
            yield
        finally:
            self.check(self.dll.jitney_pop())
