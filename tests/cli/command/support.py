"""Runs the built command, and makes and reads its files.

    python3 test_X.py COMMAND DATA      COMMAND is the built jitney, DATA is examples/data
"""
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

COMMAND = sys.argv.pop(1) if len(sys.argv) > 2 else "jitney"
DATA = sys.argv.pop(1) if len(sys.argv) > 1 else "examples/data"

# As of all test programs: what is random follows from it, and it is the first line of the output.
SEED = int(os.environ.get("JITNEY_TEST_SEED") or random.SystemRandom().getrandbits(64))
print(f"JITNEY_TEST_SEED={SEED}", file=sys.stderr, flush=True)


class Outcome:
    def __init__(self, done):
        self.status = done.returncode
        self.out = done.stdout
        self.err = done.stderr

    @property
    def json(self):
        return json.loads(self.out)


class CommandTest(unittest.TestCase):
    """With a cache directory and a working directory of its own."""

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="jitney-command-")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.cache = os.path.join(self.directory, "cache")

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return self.path(name)

    def run_command(self, *arguments, gpu=True, stdout=subprocess.PIPE, stdin="", user=None,
                    command=COMMAND, **environment):
        """gpu=False: as on a machine without a driver. `stdin` comes through a pipe. `command` may
        be a copy elsewhere."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("JITNEY_")}
        env["JITNEY_CACHE_DIR"] = self.cache
        if "JITNEY_LIBNVRTC" in os.environ:  # where this machine has it
            env["JITNEY_LIBNVRTC"] = os.environ["JITNEY_LIBNVRTC"]
        if not gpu:
            env["JITNEY_LIBCUDA"] = self.path("no-such-driver.so")
        env.update(environment)
        done = subprocess.run(
            [command, *arguments],
            input=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=env,
            cwd=self.directory,
            timeout=300,
            text=True,
            user=user,
        )
        return Outcome(done)

    def plain_user(self):
        """Options for a run as somebody whom permissions bind, to whom all files are given."""
        if os.geteuid() != 0:
            return {}
        nobody = 65534
        for place, _, names in os.walk(self.directory):
            for path in (place, *(os.path.join(place, name) for name in names)):
                os.chown(path, nobody, nobody)
        try:
            subprocess.run([COMMAND, "--help"], user=nobody, stdout=subprocess.DEVNULL, check=True)
        except (OSError, subprocess.CalledProcessError):
            self.skipTest("the command can't be run by a plain user here")
        return {"user": nobody}

    def succeed(self, *arguments, **options):
        outcome = self.run_command(*arguments, **options)
        self.assertEqual(outcome.status, 0, f"{arguments}: {outcome.err}")
        return outcome

    def fail_with(self, status, words, *arguments, **options):
        """It fails with that status, and the first line on stderr is an error with these words."""
        outcome = self.run_command(*arguments, **options)
        self.assertEqual(outcome.status, status, f"{arguments}: {outcome.out}{outcome.err}")
        first = outcome.err.split("\n")[0]
        self.assertTrue(first.startswith("jitney: error: "), f"{arguments}: {outcome.err}")
        for word in words:
            self.assertIn(word, first)
        return outcome


FORMATS = {"F64": "d", "U8": "B", "F32": "f", "I32": "i", "I64": "q", "BF16": "H", "F16": "e", "BOOL": "?"}
FORMATS |= {"F8_E4M3": "B", "F8_E5M2": "B"}  # codes


def bf16(value):
    """The code of a number, rounded to nearest, ties to even."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def from_bf16(code):
    return struct.unpack("<f", struct.pack("<I", code << 16))[0]


def safetensors(tensors):
    """The bytes of a file: name -> (format, shape, values)."""
    header, data = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        content = struct.pack(f"<{len(values)}{FORMATS[dtype]}", *values)
        header[name] = {
            "dtype": dtype,
            "shape": shape,
            "data_offsets": [len(data), len(data) + len(content)],
        }
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def read_safetensors(path):
    """name -> (format, shape, values)"""
    with open(path, "rb") as file:
        content = file.read()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        count = (end - begin) // struct.calcsize("<" + FORMATS[entry["dtype"]])
        values = struct.unpack_from(f"<{count}{FORMATS[entry['dtype']]}", content, 8 + length + begin)
        tensors[name] = (entry["dtype"], entry["shape"], list(values))
    return tensors
