"""Copies of a commit to plant bugs in, and the record of which tests run which function.

A copy holds the files of the commit and this folder as it is now. What the record needs (a run of every test of every room)
is kept for the commit, with the compiled kernels, among the temporary files.
"""

import ast
import collections
import concurrent.futures
import contextlib
import functools
import json
import os
import pathlib
import queue
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEMORY = 6 << 30  # bytes that a process with a bug may have
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def commit_of(name):
    return subprocess.run(
        ["git", "rev-parse", name], cwd=ROOT, text=True, capture_output=True, check=True
    ).stdout.strip()


class Workplace:
    """The folder of one commit: copies, compiled kernels, the record."""

    def __init__(self, commit, workers):
        self.commit = commit
        self.folder = pathlib.Path(tempfile.gettempdir()) / f"readtorch-mutation-{os.getuid()}" / commit[:12]
        self.folder.mkdir(parents=True, exist_ok=True)
        self.kernels = self.folder / "kernels"
        self.kernels.mkdir(exist_ok=True)
        self.copies = queue.Queue()
        for i in range(workers):
            self.copies.put(Copy(self.folder / str(i), self))

    @property
    def package(self):
        return self.folder / "0/src/readtorch"

    def failing(self, tests):
        """Which of the tests fail on the copy as it is."""
        if not tests:
            return []
        copy = self.copies.get()
        with tempfile.TemporaryDirectory() as folder:
            orders = {"tests": tests, "limits": dict.fromkeys(tests, 600), "now": f"{folder}/now"}
            _, _, output = copy.pytest(files_of(tests), orders, self.kernels, 3000, stop=False)
        self.copies.put(copy)
        failed = {
            line.partition(" ")[2].partition(" - ")[0]
            for line in output.splitlines()
            if line.startswith(("FAILED", "ERROR"))
        }
        return [test for test in tests if test.partition(" - ")[0] in failed]


class Copy:
    """One copy of the repository."""

    def __init__(self, root, workplace):
        self.root, self.workplace = root, workplace
        root.mkdir(
            exist_ok=True
        )  # what Python has compiled for an earlier run is kept: the files have the commit's date
        archive = subprocess.run(["git", "archive", workplace.commit], cwd=ROOT, capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x"], cwd=root, input=archive, check=True)
        shutil.copytree(ROOT / "tests/mutation", root / "tests/mutation", dirs_exist_ok=True)
        if not (root / ".venv").exists():
            (root / ".venv").symlink_to((ROOT / ".venv").resolve())

    @contextlib.contextmanager
    def planted(self, path, text):
        """The file with this text; afterwards as it was."""
        path = self.root / path
        source = path.read_text(encoding="utf8")
        path.write_text(text, encoding="utf8")
        try:
            yield
        finally:
            path.write_text(source, encoding="utf8")
            for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
                compiled.unlink()

    def pytest(self, arguments, orders, kernels, limit, *, stop=True):
        """(exit status, None if it did not end in time; seconds; what was printed)."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "orders.json"
            file.write_text(json.dumps(orders), encoding="utf8")
            environment = {
                **os.environ,
                **dict.fromkeys(THREADS, "1"),
                "PYTHONPATH": f"{self.root}/src:{self.root}",
                "NUMBA_CACHE_DIR": str(kernels),
                "READTORCH_MUTATION": str(file),
                "READTORCH_QUIET": "1",
                "COLUMNS": "300",
            }
            command = [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                "-p",
                "tests.mutation.watch",
                "--no-header",
                "--tb=line",
                *(["-x"] if stop else []),
                *arguments,
            ]
            with open(pathlib.Path(folder) / "printed", "w+", errors="replace") as printed:
                began = time.monotonic()
                process = subprocess.Popen(
                    command,
                    cwd=self.root,
                    env=environment,
                    stdout=printed,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                try:
                    status = watched(process, began + limit)
                finally:
                    kill(process)  # and what it left running
                printed.seek(0)
                return status, time.monotonic() - began, printed.read()


def watched(process, end):
    """The exit status; None of a process that did not end in time. One that takes too much memory is killed."""
    while time.monotonic() < end:
        try:
            return process.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            if memory_of(process) > MEMORY:
                kill(process)
    return None


def memory_of(process):
    try:
        pages = pathlib.Path(f"/proc/{process.pid}/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * resource.getpagesize()


def kill(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def files_of(tests):
    return list(dict.fromkeys(test.partition("::")[0] for test in tests))


# ------------------------------------------------------------------------------------------------- the record


class Record:
    """Which tests of which files run which functions."""

    def __init__(self, files):
        self.files = files  # {test file: what watch.py wrote}
        self.imported = {name for file in files.values() for name in file["imported"]}
        self.compiled = {name for file in files.values() for name in file["compiled"]}
        self.failing = [test for file in files.values() for test, ran in file["tests"].items() if ran["failed"]]

    def without(self, failing):
        """The record where these fail, and no others."""
        for file in self.files.values():
            for test, ran in file["tests"].items():
                ran["failed"] = test in failing
        return Record(self.files)

    @functools.cached_property
    def runs(self):
        """{function: [(how far the test is from it: the functions that it runs, and how long; test)]}"""
        found = collections.defaultdict(list)
        for file in self.files.values():
            for test, ran in file["tests"].items():
                if not ran["failed"]:
                    for number in ran["ran"]:
                        found[file["functions"][number]].append((len(ran["ran"]) * (0.2 + ran["seconds"]), test))
        return found

    @functools.cached_property
    def seconds(self):
        return {test: ran["seconds"] for file in self.files.values() for test, ran in file["tests"].items()}

    def tests_of(self, paths):
        """Every test that passes in these files or folders."""
        return [
            test
            for file, found in self.files.items()
            for test, ran in found["tests"].items()
            if not ran["failed"] and is_within(file, paths)
        ]


def is_within(file, paths):
    return any(file == path or file.startswith(path + "/") for path in paths)


def recorded(workplace, paths):
    """The record for the tests in these paths; made where there is none."""
    folder = workplace.folder / "record"
    folder.mkdir(exist_ok=True)
    copy = workplace.folder / "0"
    files = sorted(
        {
            str(file.relative_to(copy))
            for path in paths
            for file in ([copy / path] if path.endswith(".py") else (copy / path).rglob("test_*.py"))
        }
    )
    with concurrent.futures.ThreadPoolExecutor(workplace.copies.qsize()) as pool:
        found = pool.map(lambda file: one_file(workplace, file, folder / (file.replace("/", "-") + ".json")), files)
        known = Record(dict(zip(files, found)))
    return known.without(workplace.failing(known.failing))  # some fail only while they are recorded


def one_file(workplace, file, record):
    if not record.exists():
        copy = workplace.copies.get()
        try:
            _, seconds, output = copy.pytest([file], {"record": str(record)}, workplace.kernels, 3000, stop=False)
        finally:
            workplace.copies.put(copy)
        print(f"{seconds:5.0f} s  {file}: {output.splitlines()[-1]}", flush=True)
        for line in output.splitlines():
            if line.startswith(("FAILED", "ERROR")):
                print("        " + line, flush=True)
    return json.loads(record.read_text(encoding="utf8"))


# ------------------------------------------------------------------------------------------- where a bug stands


def function_around(source, start, end):
    """The line where the innermost function begins whose body holds this piece of the source; None outside of all functions."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    first, last = len(source[:start].encode()), len(source[:end].encode())
    inner = None
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            body = node.body if isinstance(node.body, list) else [node.body]
            if (
                starts[body[0].lineno - 1] + body[0].col_offset <= first
                and last <= starts[body[-1].end_lineno - 1] + body[-1].end_col_offset
            ):
                inner = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
    return inner  # ast.walk comes to inner nodes later
