"""python -m tests.mutation: plant bugs drawn at random, run the room's tests on each, and report which survive.

    python -m tests.mutation                         100 bugs, three at a time; results.json gets the table
    … --count N   --seed S   --rooms aten optim      fewer, others
    … --numbers 17 30                                these again, from the drawing with this seed
    … --commit NAME                                  of another commit than HEAD
    … --list                                         which bugs would be planted

A bug is planted into a copy of the commit, the tests run until the first failure, and the file is put back. A bug is caught if a
test fails or does not end. Before the first bug every test of the rooms runs once on the copy as it is, and what functions it
runs is recorded (a quarter of an hour, once for a commit). Tests that fail there, without a bug, do not count.

Which tests run: those of the room that run the function in which the bug stands, the nearest (which run the fewest other
functions) first. Where code runs at import, all tests of the room run it. No test that runs the function is left out before a
bug counts as surviving; tests that do not run it cannot see it (but for those that start another Python: see --whole).
A run that is interrupted goes on where it was.

A bug that no test can see because the program does the same (a hint for speed, a branch with the same result) is named in
`equivalent.json`, with its reason, after somebody has read it; the next one drawn takes its place.
"""

import argparse
import concurrent.futures
import json
import pathlib
import shutil
import tempfile

from benchmarks import record
from tests.mutation import plant, trace

HERE = pathlib.Path(__file__).parent
SEED = 20261122
LONGEST = 300  # seconds of tests that pass, after which a bug counts as surviving
NEAREST = 40  # tests that run before those of other files are even collected

# Tests of what everything shares: tensors, their texts, random numbers, pickles, graphs.
GENERAL = [
    f"tests/test_{name}.py"
    for name in ("front_door", "graphs", "pickle", "random", "random_kernels", "tensor_constructor", "tensor_str")
]

# Tests of how a call finds its kernel, and who sees it on the way.
DISPATCH = [f"tests/test_{name}.py" for name in ("fake_tensor", "library", "ops", "overrides", "python_dispatch")]

# Files under the first path (but not under a room of their own) are guarded by these tests.
ROOMS = {
    "aten": [
        "tests/aten",
        "tests/autograd",
        "tests/conformance",
        "tests/multiprocessing",
        "tests/cuda",
        *DISPATCH,
        *GENERAL,
    ],
    "aten/native/cuda": ["tests/cuda"],
    "csrc/autograd": ["tests/autograd", "tests/aten", "tests/viz/test_record_backward.py", *GENERAL],
    "optim": ["tests/optim", "tests/conformance"],
    "nn/modules": ["tests/nn", "tests/conformance", "tests/lockstep", "tests/distributed/test_sync_batch_norm.py"],
    "c10": [
        "tests/aten",
        "tests/autograd",
        "tests/serialization",
        "tests/multiprocessing",
        "tests/allocator",
        "tests/attack/test_caches.py",
        *GENERAL,
    ],
    "c10/cuda": ["tests/allocator", "tests/cuda"],
    "utils/data": ["tests/data", "tests/lockstep"],
}


def files_of(room, package):
    own = [name for name in ROOMS if name.startswith(room + "/")]
    return [
        path for path in (package / room).rglob("*.py") if not any(path.is_relative_to(package / name) for name in own)
    ]


def drawn(options, package):
    """[(number, room, file, bug)]: the bugs of this seed without those that are excused."""
    excused, bugs = equivalents(), []
    places = {room: files_of(room, package) for room in options.rooms}
    for number, (room, file, bug) in enumerate(plant.draw(places, options.count + len(excused), options.seed)):
        if options.numbers or key_of(file.relative_to(package), bug, file.read_text(encoding="utf8")) not in excused:
            bugs.append((number, room, file, bug))
    return [bug for bug in bugs if bug[0] in options.numbers] if options.numbers else bugs[: options.count]


def equivalents():
    path = HERE / "equivalent.json"
    return json.loads(path.read_text(encoding="utf8")) if path.exists() else {}


def key_of(file, bug, source):
    return f"{file}: {context(source, bug)} -> {bug.text.strip()}"


def context(source, bug):
    """The piece that is replaced, between « and », in its line."""
    begin = source.rfind("\n", 0, bug.start) + 1
    end = source.find("\n", bug.end)
    return " ".join(
        f"{source[begin : bug.start]}«{source[bug.start : bug.end].strip()}»{source[bug.end : end]}".split()
    )


# ------------------------------------------------------------------------------------------------- one bug


def tests_for(room, name, known, whole=False):
    """The tests that can see a bug in the function, nearest first, and how that was decided."""
    all_of_room = known.tests_of(ROOMS[room])
    within = set(all_of_room)
    nearest = [test for _, test in sorted(known.runs.get(name, ())) if test in within]
    at_import = name.endswith(":None") or name in known.imported
    if not (at_import or whole):
        return nearest, "the tests that run it" if nearest else "no test runs it"
    related = sorted(
        (-share, test) for test, share in tests_of_file(name.partition(":")[0], known).items() if test in within
    )
    order = dict.fromkeys([*nearest, *(test for _, test in related), *all_of_room])
    return list(order), "all of the room" + ": it runs at import" * at_import


def tests_of_file(file, known):
    """{test: which share of the functions that it runs is of this file}"""
    found = {}
    for name, tests in known.runs.items():
        if name.startswith(file + ":"):
            for count, test in tests:
                found[test] = found.get(test, 0) + 1 / count
    return found


class Attempt:
    """One bug, in one copy."""

    def __init__(self, number, room, file, bug, workplace, known, whole):
        self.number, self.room, self.bug, self.workplace, self.known, self.whole = (
            number,
            room,
            bug,
            workplace,
            known,
            whole,
        )
        self.file = file.relative_to(workplace.package)
        self.source = file.read_text(encoding="utf8")
        self.name = f"{self.file}:{trace.function_around(self.source, bug.start, bug.end)}"

    def row(self):
        tests, why = tests_for(self.room, self.name, self.known, self.whole)
        copy = self.workplace.copies.get()
        try:
            with copy.planted(f"src/readtorch/{self.file}", self.bug.planted(self.source)):
                outcome, seconds, by, words = self.tried(copy, tests)
        finally:
            self.workplace.copies.put(copy)
        return {
            "seed": None,
            "number": self.number,
            "room": self.room,
            "file": str(self.file),
            "line": self.bug.line,
            "kind": self.bug.kind,
            "change": f"{context(self.source, self.bug)} -> {self.bug.text.strip()}",
            "outcome": outcome,
            "by": by,
            "words": words,
            "tests": f"{len(tests)}, {why}",
            "seconds": round(seconds),
        }

    def tried(self, copy, tests):
        spent = 0
        for chosen in filter(None, (tests[:NEAREST], tests[NEAREST:])):
            with tempfile.TemporaryDirectory() as folder:
                kernels = self.kernels(pathlib.Path(folder))
                now = pathlib.Path(folder) / "now"
                limits = {test: 60 + 20 * self.known.seconds[test] for test in chosen}
                orders = {"tests": chosen, "limits": limits, "now": str(now)}
                status, seconds, output = copy.pytest(trace.files_of(chosen), orders, kernels, LONGEST)
                spent += seconds
                at = now.read_text(encoding="utf8") if now.exists() else ""
            if status is None:
                return "survives", spent, "", f"(stopped after {round(spent)} s)"
            if status != 0:
                return "caught", spent, at or "import", words_of(status, output)
        return "survives", spent, "", ""

    def kernels(self, folder):
        """Compiled kernels for this attempt alone: those of the copies as they were, unless the bug stands in compiled code."""
        place = folder / "kernels"
        stem = str(self.file) + ":"
        if (
            any(name.startswith(stem) for name in self.known.compiled)
            or "njit" in self.source
            or "overload" in self.source
        ):
            place.mkdir()
        else:
            shutil.copytree(self.workplace.kernels, place, copy_function=linked)
        return place


def linked(source, target):
    pathlib.Path(target).hardlink_to(source)


def words_of(status, output):
    """How a run that did not pass ended, in one line."""
    if "Timeout (" in output:
        return "does not end"
    failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if failed:
        return failed[0].rpartition(" - ")[2][:160]
    return f"signal {-status}" if status < 0 else f"status {status}: " + (output.splitlines() or [""])[-1][:160]


# ---------------------------------------------------------------------------------------------------- all bugs


def run(options):
    workplace = trace.Workplace(trace.commit_of(options.commit), options.workers)
    known = trace.recorded(workplace, sorted({path for room in options.rooms for path in ROOMS[room]}))
    if known.failing:
        print("without a bug fail, and do not count:", *known.failing, sep="\n    ", flush=True)
    bugs = drawn(options, workplace.package)

    done = workplace.folder / f"rows-{options.seed}.jsonl"  # of a run that was interrupted
    earlier = {row["number"]: row for row in map(json.loads, done.read_text().splitlines())} if done.exists() else {}

    def one(drawn):
        if drawn[0] in earlier and not options.numbers:
            return earlier[drawn[0]]
        row = Attempt(*drawn, workplace, known, options.whole).row() | {"seed": options.seed}
        with open(done, "a", encoding="utf8") as file:
            file.write(json.dumps(row) + "\n")
        print(
            f"{row['number']:3} {row['outcome']:8} {row['seconds']:4} s  {row['file']}:{row['line']}  {row['kind']}: {row['change']}\n"
            f"        {row['tests']}  {row['by']}  {row['words']}",
            flush=True,
        )
        return row

    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        rows = list(pool.map(one, bugs))
    doubtful = workplace.failing(sorted({row["by"] for row in rows if "::" in row["by"]}))
    for row in rows:
        if row["by"] in doubtful:
            row["outcome"] = "doubtful"
    return workplace.commit, rows


def write(rows, commit):
    """Put the rows into results.json, in the place of older ones of the same number and seed."""
    path = HERE / "results.json"
    old = json.loads(path.read_text(encoding="utf8")) if path.exists() else {"rows": [], "runs": {}}
    seed, new = rows[0]["seed"], {(row["seed"], row["number"]) for row in rows}
    kept = [row for row in old["rows"] if (row["seed"], row["number"]) not in new]
    everything = sorted(
        kept + rows,
        key=lambda row: (
            list(old["runs"]).index(str(row["seed"])) if str(row["seed"]) in old["runs"] else 99,
            row["number"],
        ),
    )
    counts = {
        outcome: sum(row["seed"] == seed and row["outcome"] == outcome for row in everything)
        for outcome in ("caught", "survives", "equivalent", "doubtful")
    }
    runs = old["runs"] | {str(seed): {**record.about(), "commit": commit, "counts": counts}}
    record.write("results", everything, folder=HERE, runs=runs)


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutation", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS), choices=list(ROOMS))
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--numbers", type=int, nargs="+", default=())
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument(
        "--whole",
        action="store_true",
        help="tests that do not run the function, too: what else they start is not recorded",
    )
    parser.add_argument("--list", action="store_true", help="say which bugs would be planted")
    options = parser.parse_args()
    if options.list:
        for number, room, file, bug in drawn(options, trace.ROOT / "src/readtorch"):
            source = file.read_text(encoding="utf8")
            print(
                number,
                room,
                f"{file.relative_to(trace.ROOT)}:{bug.line}",
                bug.kind,
                context(source, bug),
                "->",
                bug.text.strip(),
            )
        return
    commit, rows = run(options)
    print(
        {
            outcome: sum(row["outcome"] == outcome for row in rows)
            for outcome in sorted({row["outcome"] for row in rows})
        }
    )
    if options.rooms == list(ROOMS) and (options.numbers or options.count == 100):
        write(rows, commit)


if __name__ == "__main__":
    main()
