"""Kernel texts to cubins: NVRTC through ctypes, and what it and the disassembler say of a cubin."""
import ctypes
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCES = pathlib.Path(os.environ.get("JITNEY_KERNEL_SOURCES", ROOT / "kernel_sources"))


def _nvrtc():
    places = [os.path.join(path, "nvidia", "*", "lib", "libnvrtc.so.*") for path in sys.path]
    places += ["/usr/local/cuda/lib*/libnvrtc.so.*"]
    for place in places:
        for found in sorted(glob.glob(place), reverse=True):
            if "builtins" not in found and ".alt" not in found:
                return ctypes.CDLL(found)
    raise RuntimeError("libnvrtc.so was found neither among Python's packages nor with CUDA")


class CompileError(RuntimeError):
    pass


def compile_cubin(text, arch="sm_90a"):
    """(cubin, log) of a text whose includes are rooted at kernel_sources."""
    nvrtc = _nvrtc()
    program = ctypes.c_void_p()
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"ladder.cu", 0, None, None):
        raise CompileError("nvrtcCreateProgram failed")
    options = [
        f"--gpu-architecture={arch}",
        "--std=c++20",
        "--device-as-default-execution-space",
        f"--include-path={SOURCES}",
        "--ptxas-options=-v",
    ]
    options = [each.encode() for each in options]
    status = nvrtc.nvrtcCompileProgram(
        program, len(options), (ctypes.c_char_p * len(options))(*options)
    )
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    log = log.value.decode()
    if status:
        raise CompileError(log)
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, cubin)
    return cubin.raw, log


def remarks(log):
    """What ptxas says of registers, spills, and of wgmma and setmaxnreg where they are not as meant."""
    spills = sum(int(number) for number in re.findall(r"(\d+) bytes spill", log))
    registers = re.findall(r"Used (\d+) registers", log)
    codes = sorted(set(re.findall(r"C75\d\d", log)))
    return {"registers": int(registers[0]) if registers else None, "spill": spills, "codes": codes}


def disassemble(cubin):
    """SASS, or None where there is no nvdisasm."""
    tool = os.environ.get("NVDISASM") or shutil.which("nvdisasm")
    if tool is None:
        return None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        return subprocess.run([tool, "-c", file.name], capture_output=True, text=True, check=True).stdout


def count_instructions(sass):
    names = ("HGMMA", "LDL", "STL", "R2UR", "WARPGROUP.ARRIVE", "WARPGROUP.DEPBAR", "MUFU.EX2", "SHFL", "BAR")
    counts = {name: len(re.findall(r"\b" + re.escape(name), sass)) for name in names}
    counts["all"] = len(re.findall(r"^\s+/\*[0-9a-f]{4,}\*/", sass, re.MULTILINE))
    return counts
