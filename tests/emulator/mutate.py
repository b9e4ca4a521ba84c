"""Checks that the tests on the CPU notice faults in the kernels, or in host code.

    python3 tests/emulator/mutate.py [--host] [--build DIR] [--list] [--only NUMBER ...]
                                     [--cases NAME ...] [--kernels NAME ...] [--jobs N] [--trees N]

Plants the faults of mutations.py, one at a time, in a copy of the tree under DIR (build/mutations
unless given), builds the tests of the kernels, runs them, and prints a line a fault: caught, with
what noticed it; survived; or broken, where the fault does not compile or its text is not found.
With --trees there are several copies, each with a fault of its own at a time and --jobs of its own.
With --cases only those tests are run, in this order ("attn_mask_bits*" is all that begin so), and
with --kernels only those kernels are compiled, of which the tests then have to be.
Of the specializations only those with small heads are compiled, with few optimizations: that is
half of the time, and all of the code. With --host the faults are those of host_faults.py, each for the test
program that it names, and the tree is built as usual. Fails where more than two faults survived.
The source tree itself is not touched.
"""
import argparse
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import host_faults
import mutations

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TARGET = "test_emulator_kernels"
TEST_SECONDS = 600
LARGEST_HEAD = 80
SHARED_HEADS = range(129, 145)  # whose rows two warps share


def walk(root):
    """(folder, its files) of a tree, relative to it, without what is built."""
    for directory, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in {".git", "build", "__pycache__"}]
        yield os.path.relpath(directory, root), files


def copy_tree(to):
    """Files that are there already and the same keep their times, so that little is rebuilt; those
    of an earlier copy that are no more go, since the build takes every source that it finds."""
    for folder, files in walk(to):
        for file in files:
            if not os.path.exists(os.path.join(ROOT, folder, file)):
                os.remove(os.path.join(to, folder, file))
    for folder, files in walk(ROOT):
        os.makedirs(os.path.join(to, folder), exist_ok=True)
        for file in files:
            source = os.path.join(ROOT, folder, file)
            target = os.path.join(to, folder, file)
            if not os.path.exists(target) or read(source) != read(target):
                shutil.copyfile(source, target)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def run(command):
    """(exit status, output)"""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout.decode(errors="replace")


def head_dim(line):
    match = re.search(r"head_dim=(\d+)", line)
    return int(match.group(1)) if match else 0


def is_kept(dim):
    return dim <= LARGEST_HEAD or dim in SHARED_HEADS


class Unfit(Exception):
    """A tree without a fault that can't be used; says why."""


class Tree:
    """The kernels' tests, with small heads."""

    def __init__(self, folder, jobs, cases, kernels):
        self.source = os.path.join(folder, "source")
        self.build = os.path.join(folder, "build")
        self.jobs = jobs
        self.cases = cases
        self.kernels = kernels
        copy_tree(self.source)
        self.cover()

    def cover(self):
        covered = os.path.join(self.source, "tests", "emulator", "kernels", "covered.txt")
        with open(covered, encoding="utf-8") as file:
            lines = file.readlines()
        write(covered, "".join(line for line in lines if is_kept(head_dim(line))
                               and (not self.kernels or self.kernel(line) in self.kernels)))

    @staticmethod
    def kernel(line):
        return re.match(r"[a-z0-9_]*", line).group()

    # No warnings, which are errors: a fault may leave a name unused.
    options = ("-DCMAKE_CXX_FLAGS_RELEASE=-O1 -w", "-DJITNEY_BENCH=OFF", "-DJITNEY_CLI=OFF",
               "-DJITNEY_EXAMPLES=OFF")

    def configure(self):
        status, output = run(["cmake", "-S", self.source, "-B", self.build, "-G", "Ninja",
                              "-DCMAKE_BUILD_TYPE=Release", *self.options])
        if status != 0:
            raise Unfit(output)

    def make(self, target):
        return run(["ninja", "-C", self.build, "-j", str(self.jobs), target])

    def programs(self, _faults):
        """(program, its cases) to try without a fault."""
        return [self.program(None)]

    def program(self, _fault):
        return TARGET, self.cases

    @staticmethod
    def all_cases(program):
        listing = run([program, "--list-test-cases"])[1]
        return [line for line in listing.splitlines() if re.match(r"[a-z]", line)]

    def test(self, name, cases):
        """(whether all passed; what the first that failed said)"""
        program = os.path.join(self.build, "bin", name)
        waiting = list(cases) or self.all_cases(program)
        started = {}
        end = time.monotonic() + TEST_SECONDS
        said = None
        while (waiting or started) and said is None:
            while waiting and len(started) < self.jobs:
                case = waiting.pop(0)
                output = tempfile.TemporaryFile()
                process = subprocess.Popen([program, "--abort-after=1", "--test-case=" + case],
                                           stdout=output, stderr=subprocess.STDOUT)
                started[process] = output
            for process, output in list(started.items()):
                if process.poll() is None:
                    continue
                output.seek(0)
                text = output.read().decode(errors="replace")
                if process.returncode != 0 or re.search(r"test cases: +0 ", text):
                    said = text
                del started[process]
            if time.monotonic() > end:
                said = f"no end within {TEST_SECONDS} s"
            time.sleep(0.1)
        for process in started:
            process.kill()
            process.wait()
        return said is None, said


class HostTree(Tree):
    """Any test program, built as usual."""

    options = ()

    def cover(self):
        pass

    def programs(self, faults):
        return sorted({self.program(fault) for fault in faults})

    def program(self, fault):
        # A comma would part two names.
        return fault.program, tuple(name.replace(",", "\\,") + "*" for name in fault.cases)


def notice(output):
    """The gist of what a failed test said: a fault, a wrong result, a signal, a check."""
    for pattern in (r"ERROR: \w+, (block \(.*)", r"ERROR: (\w+ can't be launched.*)",
                    r"(\d+ of \d+ elements are not within)", r"(SIG\w+)", r"ERROR: (.*)",
                    r"(no end within.*)"):
        match = re.search(pattern, output)
        if match:
            return match.group(1).strip()[:160]
    return "a test failed"


def judge(tree, fault):
    path = fault.path(tree.source)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if text.count(fault.text) != 1:
        return "broken", f"its text stands {text.count(fault.text)} times in the file"
    write(path, text.replace(fault.text, fault.fault))
    try:
        program, cases = tree.program(fault)
        status, output = tree.make(program)
        if status != 0:
            errors = [line for line in output.splitlines() if "error: " in line]
            return "broken", errors[0] if errors else "does not build"
        passed, said = tree.test(program, cases)
    finally:
        write(path, text)
    return ("survived", "") if passed else ("caught", notice(said))


def prepared(folder, arguments, chosen):
    """A tree that builds, and whose tests pass as it is."""
    tree = (HostTree if arguments.host else Tree)(folder, arguments.jobs, arguments.cases,
                                                    arguments.kernels)
    tree.configure()
    for program, cases in tree.programs([fault for _, fault in chosen]):
        status, output = tree.make(program)
        if status != 0:
            raise Unfit(output)
        passed, said = tree.test(program, cases)
        if not passed:
            raise Unfit("without a fault the tests fail already:\n" + said)
    return tree


def plant_all(folder, arguments, chosen, faults, counts, tell):
    """Plants faults in a tree of its own until `faults`, a queue of the chosen, is empty."""
    tree = prepared(folder, arguments, chosen)
    while True:
        try:
            number, fault = faults.get_nowait()
        except queue.Empty:
            return
        start = time.monotonic()
        verdict, why = judge(tree, fault)
        with tell:
            counts[verdict] += 1
            print(f"{number:3} {verdict:8} {time.monotonic() - start:4.0f} s  {fault.file}: "
                  f"{fault.what}{' -- ' + why if why else ''}", flush=True)


def plant_in_trees(arguments, chosen):
    """How many faults had which verdict."""
    faults = queue.Queue()
    for one in chosen:
        faults.put(one)
    counts = {"caught": 0, "survived": 0, "broken": 0}
    tell = threading.Lock()
    unfit = []

    def work(folder):
        try:
            plant_all(folder, arguments, chosen, faults, counts, tell)
        except Unfit as why:
            unfit.append(str(why))

    folders = [arguments.build] if arguments.trees == 1 else [
        os.path.join(arguments.build, str(number)) for number in range(arguments.trees)]
    workers = [threading.Thread(target=work, args=(folder,)) for folder in folders]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if unfit:
        sys.exit(unfit[0])
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", action="store_true", help="the faults of host_faults.py")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "mutations"))
    parser.add_argument("--list", action="store_true", help="print the faults, plant none")
    parser.add_argument("--only", type=int, nargs="+", help="numbers of the faults to plant")
    parser.add_argument("--kernels", nargs="+", default=[], help="names of the kernels to compile")
    parser.add_argument("--cases", nargs="+", default=[], help="names of the tests to run")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--trees", type=int, default=1, help="faults to plant at a time")
    arguments = parser.parse_args()
    faults = host_faults.FAULTS if arguments.host else mutations.FAULTS
    chosen = [(number, fault) for number, fault in enumerate(faults, 1)
              if not arguments.only or number in arguments.only]
    if arguments.list:
        for number, fault in chosen:
            print(f"{number:3} {fault.file}: {fault.what}")
        return 0

    counts = plant_in_trees(arguments, chosen)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return 0 if counts["broken"] == 0 and counts["survived"] <= 2 else 1


if __name__ == "__main__":
    sys.exit(main())
