"""python -m tests.mutation: plant bugs drawn at random, run the room's tests on each, and report which survive.

    python -m tests.mutation                         100 bugs, two at a time; the table goes to tests/mutation/results.json
    … --count N   --seed S   --rooms aten optim      fewer, others
    … --only 17                                      bug number 17 alone, with what its tests print

Each worker has a copy of the repository (files are linked, so that it costs little), in which it plants a bug, runs the tests
until the first failure, and puts the file back. A bug is caught if a test fails or does not end in time. Before the first bug
every room's tests run on the copy as it is: they must pass, and say how long they take. A bug that no test can see because the
program does the same (a larger buffer, a hint for speed) is marked so by hand, with its reason, in `equivalent.json`.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from benchmarks import record
from tests.mutation import plant

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).parent
PACKAGE = ROOT / "src/readtorch"
SEED = 20261122
LONGEST = 1200  # seconds of one room's tests

# Files under the first path (but not under a room of their own) are guarded by these tests, in this order.
ROOMS = {
    "aten": ["tests/aten", "tests/autograd", "tests/conformance"],
    "aten/native/cuda": ["tests/cuda"],
    "csrc/autograd": ["tests/autograd", "tests/test_graphs.py", "tests/aten", "tests/viz/test_record_backward.py"],
    "optim": ["tests/optim", "tests/conformance"],
    "nn/modules": ["tests/nn", "tests/conformance", "tests/lockstep"],
    "c10": ["tests/test_random.py", "tests/serialization", "tests/aten", "tests/test_tensor_str.py", "tests/allocator"],
    "c10/cuda": ["tests/allocator", "tests/cuda/test_simulator.py", "tests/cuda/test_simulated_device.py", "tests/cuda"],
    "utils/data": ["tests/data", "tests/lockstep"],
}


def files_of(room):
    own = [name for name in ROOMS if name.startswith(room + "/")]
    return [path for path in (PACKAGE / room).rglob("*.py")
            if not any(path.is_relative_to(PACKAGE / name) for name in own)]


class Copy:
    """A copy of the repository to plant bugs in."""

    def __init__(self, folder):
        self.root = pathlib.Path(folder)
        for name in ("src", "tests", "benchmarks", "book", "tools"):
            shutil.copytree(ROOT / name, self.root / name, copy_function=os.link, symlinks=True)
        for name in ("pyproject.toml", "README.md", "_toc.yml", "_config.yml", "Makefile", "CONTRIBUTING.md"):
            os.link(ROOT / name, self.root / name)
        (self.root / ".venv").symlink_to((ROOT / ".venv").resolve())

    def tested(self, tests):
        """(what came of it, seconds, the last lines printed)."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=line", *tests]
        began = time.monotonic()
        process = subprocess.Popen(command, cwd=self.root, env=self.environment(), text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            output, _ = process.communicate(timeout=LONGEST)
            outcome = "survives" if process.returncode == 0 else "caught"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, outcome = process.communicate()[0], "caught"
        lines = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))] or output.splitlines()[-1:]
        return outcome, time.monotonic() - began, lines[0] if lines else "did not end"

    def environment(self):
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
        return {**os.environ, **threads, "PYTHONPATH": str(self.root / "src")}

    def try_out(self, room, file, bug):
        path = self.root / file.relative_to(ROOT)
        source = file.read_text(encoding="utf8")
        replace(path, bug.planted(source))
        if "njit" in source or "cpu" in file.parts:  # compiled code of other files may contain it
            self.forget_compiled()
        try:
            return self.tested(ROOMS[room])
        finally:
            replace(path, source)

    def forget_compiled(self):
        for path in (self.root / "src").rglob("*.nb[ic]"):
            path.unlink()


def replace(path, text):
    """A new file in the place of the linked one: the original must not change."""
    path.unlink()
    path.write_text(text, encoding="utf8")


def run(options):
    rooms = {room: files_of(room) for room in options.rooms}
    bugs = list(enumerate(plant.draw(rooms, options.count, options.seed)))
    if options.only is not None:
        bugs = [bugs[options.only]]
    with tempfile.TemporaryDirectory() as folder:
        copies = queue.Queue()
        for i in range(options.workers):
            copies.put(Copy(pathlib.Path(folder) / str(i)))
        if not options.unchecked:
            check_the_tests(rooms, copies)
        with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
            return list(pool.map(lambda numbered: one(*numbered, copies), bugs))


def check_the_tests(rooms, copies):
    copy = copies.get()
    for room in rooms:
        outcome, seconds, last = copy.tested(ROOMS[room])
        print(f"{room}: the tests take {seconds:.0f} s: {last}", flush=True)
        if outcome != "survives":
            sys.exit(f"the tests of {room} fail without a bug: {last}")
    copies.put(copy)


def one(number, drawn, copies):
    room, file, bug = drawn
    source = file.read_text(encoding="utf8")
    copy = copies.get()
    try:
        outcome, seconds, line = copy.try_out(room, file, bug)
    finally:
        copies.put(copy)
    row = {"number": number, "room": room, "file": str(file.relative_to(PACKAGE)), "line": bug.line, "kind": bug.kind,
           "was": source[bug.start:bug.end], "became": bug.text, "outcome": outcome, "seconds": round(seconds), "test": line}
    print(f"{number:3} {outcome:8} {seconds:5.0f} s  {row['file']}:{bug.line}  {bug.kind}: {row['was']!r} -> {bug.text!r}  {line}",
          flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS), choices=list(ROOMS))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", type=int)
    parser.add_argument("--unchecked", action="store_true", help="do not run the tests without a bug first")
    parser.add_argument("--list", action="store_true", help="say which bugs would be planted")
    options = parser.parse_args()
    if options.list:
        for number, (room, file, bug) in enumerate(plant.draw({room: files_of(room) for room in options.rooms}, options.count, options.seed)):
            print(number, room, f"{file.relative_to(PACKAGE)}:{bug.line}", bug.kind, repr(file.read_text()[bug.start:bug.end]), "->", repr(bug.text))
        return
    rows = run(options)
    excused = json.loads((HERE / "equivalent.json").read_text(encoding="utf8")) if (HERE / "equivalent.json").exists() else {}
    for row in rows:
        reason = excused.get(f"{row['file']}:{row['was']} -> {row['became']}")
        if row["outcome"] == "survives" and reason:
            row |= {"outcome": "equivalent", "why": reason}
    counts = {outcome: sum(row["outcome"] == outcome for row in rows) for outcome in ("caught", "survives", "equivalent")}
    print(counts)
    if options.only is None and options.count == 100:
        record.write("results", rows, folder=HERE, seed=options.seed, counts=counts)


if __name__ == "__main__":
    main()
