"""The arrows between the rooms of the house, and what else a file may not hold.

    python3 rules.py ROOT     checks a source tree: one line a finding, and fails if there is one

A room is a directory of the root. Some are seen apart: the public headers (api/include) from the
bodies of api; device code from the host code that embeds it; and of an operation's folder the files
that choose, which are as pure as policy, and its reference, which knows tensors alone.
"""
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass

# Room -> the rooms whose headers it may include; "public" is api/include.
ARROWS = {
    "core": {"core"},
    "public": {"public", "core"},
    "device": {"device"},
    "kernel_sources": {"kernel_sources", "device"},
    "cache": {"cache", "core"},
    "policy": {"policy", "device", "core"},
    "choice": {"choice", "policy", "device", "core"},
    "reference": {"reference", "device", "core"},
    "runtime": {"runtime", "cache", "kernel_sources", "device", "core"},
}
ARROWS["operations"] = ARROWS["runtime"] | {"operations", "choice", "reference", "policy", "public"}
ARROWS["api"] = ARROWS["operations"] | {"api"}
ARROWS["bench"] = ARROWS["api"] | {"bench"}
ARROWS["cli"] = {"cli", "public", "core"}
ARROWS["examples"] = {"examples", "public", "core"}
ARROWS["tests"] = ARROWS["tools"] = ARROWS["bench"] | {"cli", "tests"}

# The files of an operation's folder that are seen apart.
CHOICE = re.compile(r"operations/\w+/(?:choose|tile|wgmma_tile|splits|update|column_sums)\.[ch]pp")
REFERENCE = re.compile(r"operations/(?:reference/\w+|\w+/reference\w*)\.[ch]pp")

# Directories of headers that are named jitney/...
PUBLIC_ROOTS = ("api/include/", "core/include/")

# Header that is not of this project -> who may include it: rooms, or a single file.
LIBRARIES = [
    (r"nvrtc\.h", {"runtime", "tests"}),
    (r"cuda\w*\.h(pp)?|vector_types\.h|crt/.*", {"runtime", "tests", "bench", "examples"}),
    (r"dlfcn\.h", {"runtime", "tests", "bench", "examples"}),
    (r"spdlog/.*", {"runtime/log.cpp"}),
    (r"fmt/.*", set(ARROWS) - {"public", "device", "examples"}),
    (r"xxhash\.h", {"cache", "tests", "bench"}),
    (
        r"nlohmann/.*",
        {"cli", "tests", "bench", "examples", "policy/models/fields.hpp", "policy/models/fields.cpp"},
    ),
    (r"CLI/.*", {"cli"}),
    (r"dlpack/.*", {"public", "api", "tests", "examples"}),
    (r"doctest/.*", {"tests"}),
    (r"benchmark/.*", {"bench"}),
    (r"boost/context/.*", {"tests"}),
    (r"sanitizer/.*", {"tests"}),
    # Policy is pure functions: it reads no clock, no file, no environment, and keeps no state.
    (
        r"fstream|iostream|filesystem|chrono|random|thread|mutex|shared_mutex|atomic"
        r"|unistd\.h|sys/.*",
        set(ARROWS) - {"public", "device", "policy", "choice"},
    ),
    (r"sys/\w+\.h|std(int|def|bool)\.h", set(ARROWS) - {"device"}),
    (r"\w+\.h", set(ARROWS) - {"public", "device"}),
    (r"\w+", set(ARROWS) - {"device"}),
]

LIBRARY_ROOMS = set(ARROWS) - {"cli", "bench", "examples", "tests", "tools", "device"}

# A token of the code, comments and strings aside -> where it may stand, and why not elsewhere.
TOKENS = [
    (
        r"\b(?:__)?asm(?:__)?\b",
        lambda room, path: path.startswith("kernel_sources/common/"),
        "assembly lives in kernel_sources/common alone",
    ),
    (
        r"(?<![\w.>])(?:std::)?(?:exit|abort|_Exit|quick_exit|terminate)\s*\(",
        lambda room, path: room not in LIBRARY_ROOMS,
        "a library throws an Error; it does not end the process",
    ),
    (
        r"\b(?:random_device|mt19937(?:_64)?|default_random_engine|s?rand48|s?rand)\b",
        lambda room, path: room != "tests" or path == "tests/support/run_seed.cpp",
        "what is random in a test follows from the run's seed: tests/support/random.hpp",
    ),
    (
        r"\b(?:secure_)?getenv\b",
        lambda room, path: room not in {"public", "policy", "choice"},
        "policy is pure functions: it reads no environment",
    ),
]

# Words of any text file: what names the machine that a file was written on, and what is unfinished.
WORDS = [
    (r"(?<![\w.*~-])/(?:work|root|home)/", "a path of one machine"),
    (r"\.\./shared\b", "a path outside the project"),
    (r"pypi\.org|python[h]osted|deb\.debian\.org", "the host of a package registry"),
    (r"\b(?:TO[D]O|FIX[M]E|HA[C]K)\b", "a note of unfinished work"),
    (r"(?i)\bas request[e]d\b", "speaks of the making, not of the project"),
]

CODE = (".c", ".h", ".cpp", ".hpp", ".cu", ".cuh")
TEXT = CODE + (".py", ".sh", ".cmake", ".in", ".txt", ".md", ".json", ".yml", "")

COMMENT = re.compile(
    r'(?P<raw>R"(?P<delimiter>[^()\s\\]{0,16})\(.*?\)(?P=delimiter)")'
    r"|(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)"
    r'|(?P<string>"(?:\\.|[^"\\\n])*")'
    r"|(?P<character>(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+')",
    re.DOTALL,
)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:<([^>\n]+)>|"([^"\n]+)")', re.MULTILINE)


@dataclass(frozen=True)
class Finding:
    path: str
    line: int
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.message}"


def room_of(path):
    if path.startswith("api/include/"):
        return "public"
    if CHOICE.fullmatch(path):
        return "choice"
    if REFERENCE.fullmatch(path):
        return "reference"
    room = path.split("/")[0]
    if room == "kernel_sources" and path.endswith((".h", ".cuh", ".cu")):
        return "device"
    return room


def blank(text, kinds):
    """The text with every comment, string... of these kinds blanked out, its lines kept."""

    def replace(match):
        if match.lastgroup == "delimiter" or match.group("raw"):
            kind = "raw"
        else:
            kind = match.lastgroup
        if kind not in kinds:
            return match.group()
        return re.sub(r"[^\n]", " ", match.group())

    return COMMENT.sub(replace, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def included(path, header, exists):
    """The path of a quoted include of this project, or None."""
    if header.startswith("jitney/"):
        held = [root + header for root in PUBLIC_ROOTS if exists(root + header)]
        return held[0] if held else PUBLIC_ROOTS[0] + header
    if room_of(path) == "device":
        # Embedded sources are named from kernel_sources on; a host compiler names them from the root.
        for base in ("", "kernel_sources/", os.path.dirname(path) + "/"):
            if exists(base + header):
                return base + header
        return None
    if path.startswith(("tests/emulator/", "tests/wrappers/")):
        # Device code on the CPU: includes as device code has them, some of twins.
        for base in ("kernel_sources/", "tests/emulator/include/"):
            if exists(base + header):
                return base + header
    return header if header.split("/")[0] in ARROWS else None


def include_fault(path, angle, quoted, exists):
    """Why this include is forbidden, or None."""
    room = room_of(path)
    if room not in ARROWS:
        return f"{room} is no room of the house: say in the rules what it may include"
    header = angle or quoted
    if ".." in header.split("/"):
        return f"{header}: paths are rooted at the repository, never relative"
    if quoted or angle.startswith("jitney/"):
        target = included(path, header, exists)
        if target is None:
            if room == "device":
                return f"{header}: device code includes nothing from outside kernel_sources"
            return f"{header}: quoted paths begin with the name of a room, or with jitney/"
        if room_of(target) not in ARROWS[room]:
            return f"{header}: {room} may not include {room_of(target)}"
        return None
    if room == "device":
        return f"<{header}>: device code includes no header of a toolkit or of the standard library"
    for pattern, allowed in LIBRARIES:
        if re.fullmatch(pattern, header):
            if room in allowed or path in allowed:
                return None
            return f"<{header}>: only for {', '.join(sorted(allowed))}"
    return f"<{header}>: no library that the rules know: a new dependency is a decision"


def check_code(path, text, exists):
    code = blank(text, {"comment", "raw"})
    for match in INCLUDE.finditer(code):
        fault = include_fault(path, match.group(1), match.group(2), exists)
        if fault:
            yield Finding(path, line_of(code, match.start()), fault)
    code = blank(text, {"comment", "raw", "string", "character"})
    for pattern, allowed, why in TOKENS:
        if allowed(room_of(path), path):
            continue
        for match in re.finditer(pattern, code):
            yield Finding(path, line_of(code, match.start()), f"{match.group().strip()}: {why}")


def check_words(path, text):
    for pattern, why in WORDS:
        for match in re.finditer(pattern, text):
            yield Finding(path, line_of(text, match.start()), f"{match.group()}: {why}")


def files_of(root):
    """The files under version control and those about to be; without git, all but build/."""
    if os.path.exists(os.path.join(root, ".git")) and shutil.which("git"):
        command = ["git", "-C", root, "ls-files", "-z", "-c", "-o", "--exclude-standard"]
        listing = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        names = sorted(set(filter(None, listing.decode().split("\0"))))
        return [name for name in names if os.path.isfile(os.path.join(root, name))]
    names = []
    for directory, folders, files in os.walk(root):
        folders[:] = [folder for folder in folders if folder not in {".git", "build", "__pycache__"}]
        names += [os.path.relpath(os.path.join(directory, file), root) for file in files]
    return sorted(names)


def check_tree(root):
    """(findings, number of files read)"""
    names = [name for name in files_of(root) if os.path.splitext(name)[1] in TEXT]
    known = set(names)
    findings = []
    for name in names:
        with open(os.path.join(root, name), encoding="utf-8") as file:
            text = file.read()
        findings += check_words(name, text)
        if name.endswith(CODE):
            findings += check_code(name, text, known.__contains__)
    return findings, len(names)


def main():
    findings, count = check_tree(sys.argv[1])
    for finding in findings:
        print(finding)
    print(f"{count} files, {len(findings)} findings")
    return 1 if findings or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
