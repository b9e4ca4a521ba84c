"""Checks that the tests on the CPU notice faults in the kernels.

    python3 tests/emulator/mutate.py [--build DIR] [--list] [--only NUMBER ...] [--jobs N]

Plants the faults of mutations.py, one at a time, in a copy of the tree under DIR (build/mutations
unless given), builds the tests of the kernels, runs them, and prints a line a fault: caught, with
what noticed it; survived; or broken, where the fault does not compile or its text is not found.
Of the specializations only those with small heads are compiled, with few optimizations: that is
half of the time, and all of the code. Fails where more than two faults survived. The source tree
itself is not touched.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import time

from mutations import FAULTS

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TARGET = "test_emulator_kernels"
TEST_SECONDS = 600
LARGEST_HEAD = 80


def copy_tree(to):
    """The tree's files, those that did not change with their times, so that little is rebuilt."""
    for directory, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in {".git", "build", "__pycache__"}]
        relative = os.path.relpath(directory, ROOT)
        os.makedirs(os.path.join(to, relative), exist_ok=True)
        for file in files:
            source = os.path.join(directory, file)
            target = os.path.join(to, relative, file)
            if not os.path.exists(target) or read(source) != read(target):
                shutil.copy2(source, target)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def run(command, seconds=None):
    """(exit status, or None where it took too long; output)"""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=seconds, check=False)
        return done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired:
        return None, ""


def head_dim(line):
    match = re.search(r"head_dim=(\d+)", line)
    return int(match.group(1)) if match else 0


class Tree:
    def __init__(self, folder, jobs):
        self.source = os.path.join(folder, "source")
        self.build = os.path.join(folder, "build")
        self.jobs = str(jobs)
        copy_tree(self.source)
        covered = os.path.join(self.source, "tests", "emulator", "kernels", "covered.txt")
        with open(covered, encoding="utf-8") as file:
            lines = file.readlines()
        write(covered, "".join(line for line in lines if head_dim(line) <= LARGEST_HEAD))

    def configure(self):
        status, output = run(["cmake", "-S", self.source, "-B", self.build, "-G", "Ninja",
                              "-DCMAKE_BUILD_TYPE=Release",
                              "-DCMAKE_CXX_FLAGS_RELEASE=-O1",
                              "-DJITNEY_BENCH=OFF"])
        if status != 0:
            sys.exit(output)

    def make(self):
        return run(["ninja", "-C", self.build, "-j", self.jobs, TARGET])

    def test(self):
        return run(["ctest", "--test-dir", self.build, "-R", r"^emulator\.", "-j", self.jobs,
                    "--stop-on-failure", "--output-on-failure"], TEST_SECONDS)

    def path(self, fault):
        return os.path.join(self.source, "kernel_sources", fault.file)


def notice(output):
    """What the failing test said first."""
    for pattern in (r"logged: .*?\n(.*block \(.*)", r"ERROR: (.*block \(.*)",
                    r"(\d+ of \d+ elements are not within.*?);", r"SIG\w+", r"ERROR: (.*)"):
        match = re.search(pattern, output)
        if match:
            return match.group(match.lastindex or 0).strip()[:150]
    return "a test failed"


def judge(tree, fault):
    path = tree.path(fault)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if text.count(fault.text) != 1:
        return "broken", f"its text stands {text.count(fault.text)} times in the file"
    write(path, text.replace(fault.text, fault.fault))
    try:
        status, output = tree.make()
        if status != 0:
            errors = [line for line in output.splitlines() if "error" in line]
            return "broken", errors[0] if errors else "does not build"
        status, output = tree.test()
    finally:
        write(path, text)
    if status is None:
        return "caught", f"no end within {TEST_SECONDS} s"
    return ("survived", "") if status == 0 else ("caught", notice(output))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "mutations"))
    parser.add_argument("--list", action="store_true", help="print the faults, plant none")
    parser.add_argument("--only", type=int, nargs="+", help="numbers of the faults to plant")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    chosen = [(number, fault) for number, fault in enumerate(FAULTS, 1)
              if not arguments.only or number in arguments.only]
    if arguments.list:
        for number, fault in chosen:
            print(f"{number:3} {fault.file}: {fault.what}")
        return 0

    tree = Tree(arguments.build, arguments.jobs)
    tree.configure()
    status, output = tree.make()
    if status != 0:
        sys.exit(output)
    status, output = tree.test()
    if status != 0:
        sys.exit("without a fault the tests fail already:\n" + output)
    counts = {"caught": 0, "survived": 0, "broken": 0}
    for number, fault in chosen:
        start = time.monotonic()
        verdict, why = judge(tree, fault)
        counts[verdict] += 1
        print(f"{number:3} {verdict:8} {time.monotonic() - start:4.0f} s  {fault.file}: {fault.what}"
              f"{' -- ' + why if why else ''}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return 0 if counts["broken"] == 0 and counts["survived"] <= 2 else 1


if __name__ == "__main__":
    sys.exit(main())
