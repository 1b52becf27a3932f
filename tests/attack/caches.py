"""Caches of compiled kernels in places that others have prepared, that are full, closed or damaged.

    python -m tests.attack.caches --count 200 --seed 1 --report tests/attack/results/caches.json

Each case prepares a folder and the environment, and runs a small program with one kernel and one fused kernel twice, each time
in a process of its own. Held: the numbers are right, nothing of what was put there has run, a warning names each place that is
not used, once. `--count`: so many files of the cache damaged at random besides.
"""

import argparse
import collections
import datetime
import hashlib
import json
import os
import pathlib
import pickle
import platform
import random
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import warnings

import numba
import numpy as np

import readtorch
import readtorch.jit
from readtorch.c10 import cache_dir_utils
from readtorch.c10.codecache import DIGEST, cached
from readtorch.csrc.jit.tensorexpr import llvm_codegen
from tests.attack import limits

NOBODY = 65534
SETTINGS = ("NUMBA_CACHE_DIR", "READTORCH_FUSER_CACHE", "XDG_CACHE_HOME", "HOME", "TMPDIR")
SOURCE = llvm_codegen.HEAD.format(names="copy") + "\n\n@kernel\ndef fused(x0, out0):\n    out0[0] = x0[0] * 3.0\n"


def doubled(x, out):
    out[0] = x[0] * 2


def program():
    """What the two kernels compute, whether they came from the cache, and the warnings."""
    cache_dir_utils._reported.clear()
    cache_dir_utils._chosen.cache_clear()
    tempfile.tempdir = None
    x, out = np.ones(1), [np.zeros(1), np.zeros(1)]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        kernels = cached(doubled), llvm_codegen.compiled.__wrapped__(SOURCE)
        for kernel, result in zip(kernels, out):
            kernel(x, result)
    hits = [sum(kernel.stats.cache_hits.values()) for kernel in kernels]
    return {"numbers": [float(r[0]) for r in out], "hits": hits, "told": [str(w.message) for w in told]}


class Ruin:
    """A pickle that leaves a mark when it is read."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


# ------------------------------------------------------------------------------------------------- the cases
#
# A case is f(folder) -> (environment, expected, what to do between the two runs or None). expected: "kept", or a word of the
# warning. `folder / "mark"` appears if something of what was prepared has run.

CASES = {}


def case(f):
    CASES[f.__name__] = f
    return f


def of_home(folder):
    return {"HOME": str(folder / "home")}


def own(folder, mode=0o700):
    """The directory that would be used, made before."""
    path = folder / "home/.cache/readtorch/kernels"
    path.mkdir(parents=True)
    path.chmod(mode)
    return path


def poisoned(directory, mark, user=None, mode=0o600):
    """Files of the names that are looked for, written by somebody who knows how: they leave a mark if they are believed."""

    def between(environment):
        for file in list(directory.glob("*.nbc")):
            data = pickle.dumps(Ruin(mark))
            file.write_bytes(file.read_bytes()[:DIGEST] + hashlib.sha256(data).digest() + data)
            _give(file, user, mode)
        for file in directory.glob("*.py"):
            file.write_text(f"import os\nos.mkdir({str(mark)!r})\n" + SOURCE)
            _give(file, user, mode)

    return between


def _give(path, user, mode):
    path.chmod(mode)
    if user is not None:
        os.chown(path, user, user)


@case
def nothing_is_there(folder):
    return of_home(folder), "kept", lambda environment: _assert_closed(folder / "home/.cache/readtorch/kernels")


@case
def a_cache_home(folder):
    return (
        {"XDG_CACHE_HOME": str(folder / "x"), "HOME": "/nowhere"},
        "kept",
        lambda e: _assert_closed(folder / "x/readtorch/kernels"),
    )


@case
def a_relative_cache_home(folder):
    return {"XDG_CACHE_HOME": "x", "HOME": "/proc/nowhere", "TMPDIR": str(folder)}, "kept", None


@case
def a_setting(folder):
    return {"NUMBA_CACHE_DIR": str(folder / "x")}, "kept", lambda e: _assert_closed(next((folder / "x").iterdir()))


@case
def a_setting_that_is_open_to_all(folder):
    (folder / "x").mkdir()
    (folder / "x").chmod(0o1777)  # ours stands inside
    return {"NUMBA_CACHE_DIR": str(folder / "x")}, "kept", lambda e: _assert_closed(next((folder / "x").iterdir()))


@case
def a_setting_for_the_fuser(folder):
    return (
        {"READTORCH_FUSER_CACHE": str(folder / "x"), **of_home(folder)},
        "kept",
        lambda e: _assert_closed(folder / "x"),
    )


@case
def no_home_but_temporary_files(folder):
    return {"HOME": "/proc/nowhere", "TMPDIR": str(folder)}, "kept", None


@case
def a_umask_that_opens_everything(folder):
    os.umask(0)
    return of_home(folder), "kept", lambda environment: _assert_closed(folder / "home/.cache/readtorch/kernels")


def _assert_closed(path):
    info = os.lstat(path)
    assert stat.S_ISDIR(info.st_mode) and info.st_mode & 0o077 == 0, f"{path} has mode {info.st_mode:o}"
    assert all(os.lstat(file).st_mode & 0o077 == 0 for file in path.iterdir())


def _open_directory(mode):
    def prepare(folder):
        own(folder, mode)
        return of_home(folder), f"open to others .mode {mode:o}", None

    prepare.__name__ = f"a_directory_of_mode_{mode:o}"
    return case(prepare)


for _mode in (0o755, 0o750, 0o770, 0o777, 0o1777, 0o701):
    _open_directory(_mode)


@case
def a_fusers_directory_that_is_open(folder):
    (folder / "x").mkdir(mode=0o755)
    (folder / "x").chmod(0o777)
    return {"READTORCH_FUSER_CACHE": str(folder / "x"), **of_home(folder)}, "open to others", None


@case
def a_directory_that_is_a_link(folder):
    (folder / "other").mkdir(mode=0o700)
    (folder / "home/.cache/readtorch").mkdir(parents=True)
    (folder / "home/.cache/readtorch/kernels").symlink_to(folder / "other")
    return of_home(folder), "a link", None


@case
def a_directory_that_is_a_link_to_nothing(folder):
    (folder / "home/.cache/readtorch").mkdir(parents=True)
    (folder / "home/.cache/readtorch/kernels").symlink_to(folder / "nothing")
    return of_home(folder), "a link", None


@case
def a_file_in_the_place_of_the_directory(folder):
    (folder / "home/.cache/readtorch").mkdir(parents=True)
    (folder / "home/.cache/readtorch/kernels").write_text("")
    return of_home(folder), "no directory", None


@case
def a_file_in_the_place_of_the_home(folder):
    (folder / "home").write_text("")
    return {**of_home(folder), "TMPDIR": str(folder)}, "kept", None


@case
def nothing_can_be_written_to(folder):
    return {"HOME": "/proc/nowhere", "TMPDIR": "/proc/nowhere"}, "kept|no directory|not kept", lambda e: None


@case
def a_setting_that_cannot_be_made(folder):
    return {"NUMBA_CACHE_DIR": "/proc/nowhere"}, "cannot be made", None


@case
def the_disk_is_full(folder):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    return {**of_home(folder), "": limit}, "cannot be written to", None


@case
def poison_in_a_directory_that_was_open_between(folder):
    directory = folder / "home/.cache/readtorch/kernels"

    def between(environment):
        poisoned(directory, folder / "mark")(environment)
        directory.chmod(0o777)

    return of_home(folder), ("kept", "open to others"), between


@case
def files_that_others_can_write_to(folder):
    return (
        of_home(folder),
        ("kept", "open to others"),
        poisoned(folder / "home/.cache/readtorch/kernels", folder / "mark", mode=0o666),
    )


@case
def a_text_of_a_fused_kernel_that_is_another(folder):
    def between(environment):
        for file in (folder / "home/.cache/readtorch/kernels").glob("*.py"):
            file.write_text(f"import os\nos.mkdir({str(folder / 'mark')!r})\n" + SOURCE)

    return of_home(folder), "kept", between


@case
def a_pickle_without_its_digest(folder):
    def between(environment):
        for file in (folder / "home/.cache/readtorch/kernels").glob("*.nbc"):
            file.write_bytes(file.read_bytes()[: 2 * DIGEST] + pickle.dumps(Ruin(folder / "mark")))

    return of_home(folder), ("kept", "cut off"), between


def _damaged(name, change, told="cut off"):
    def prepare(folder):
        def between(environment):
            for file in (folder / "home/.cache/readtorch/kernels").glob("*.nbc"):
                change(file)

        return of_home(folder), ("kept", told), between

    prepare.__name__ = name
    return case(prepare)


def _cut(size):
    return lambda file: os.truncate(file, size if size >= 0 else file.stat().st_size + size)


def _replaced(make):
    def change(file):
        file.unlink()
        make(file)

    return change


_damaged("an_empty_file", _cut(0), None)
_damaged("a_few_bytes", _cut(10), None)
_damaged("a_stamp_alone", _cut(DIGEST))
_damaged("stamp_and_digest_alone", _cut(2 * DIGEST))
_damaged("half_a_file", _cut(5000))
_damaged("a_file_without_its_last_byte", _cut(-1))
_damaged("garbage", lambda file: file.write_bytes(bytes(range(256)) * 40), None)
_damaged("another_source", lambda file: file.write_bytes(b"?" + file.read_bytes()[1:]), None)
_damaged("another_processor", lambda file: file.write_bytes(file.read_bytes()[:-100] + bytes(100)))
_damaged("a_file_that_is_a_directory", _replaced(lambda file: file.mkdir()), "no plain file")
_damaged("a_file_that_is_a_pipe", _replaced(os.mkfifo), "no plain file")
_damaged(
    "a_file_that_is_a_link", _replaced(lambda file: file.symlink_to("/etc/passwd")), "symbolic link|Too many levels"
)
_damaged("a_file_that_is_gone", os.unlink, None)

if os.geteuid() == 0:

    @case
    def a_directory_of_another_user(folder):
        os.chown(own(folder), NOBODY, NOBODY)
        return of_home(folder), f"belongs to user {NOBODY}", None

    @case
    def poison_of_another_user(folder):
        directory = folder / "home/.cache/readtorch/kernels"
        return (
            of_home(folder),
            ("kept", f"belongs to user {NOBODY}"),
            poisoned(directory, folder / "mark", NOBODY, 0o644),
        )

    @case
    def a_directory_of_another_user_among_the_temporary_files(folder):
        path = folder / "tmp" / f"readtorch_{os.geteuid()}"
        path.mkdir(parents=True, mode=0o777)
        os.chown(path, NOBODY, NOBODY)
        return {"HOME": "/proc/nowhere", "TMPDIR": str(folder / "tmp")}, f"belongs to user {NOBODY}", None

    @case
    def a_link_of_another_user(folder):
        (folder / "home/.cache/readtorch").mkdir(parents=True)
        link = folder / "home/.cache/readtorch/kernels"
        link.symlink_to(folder / "other")
        (folder / "other").mkdir(mode=0o700)
        os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
        return of_home(folder), "a link", None

    @case
    def a_user_without_a_home(folder):
        folder.chmod(0o755)
        return {"HOME": "/nowhere", "TMPDIR": "/nowhere", "": _become(NOBODY)}, "kept|no directory", None

    @case
    def a_user_that_the_system_does_not_know(folder):
        folder.chmod(0o755)
        return {"TMPDIR": "/nowhere", "": _become(54321)}, "kept|no directory", None

    @case
    def a_directory_that_cannot_be_written_to(folder):
        folder.chmod(0o755)
        path = own(folder, 0o500)
        os.chown(path, NOBODY, NOBODY)
        return {**of_home(folder), "": _become(NOBODY)}, "cannot be written to", None

    @case
    def a_full_disk(folder):
        path = own(folder)
        if subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=8k,mode=700", "tmpfs", path], capture_output=True
        ).returncode:
            return the_disk_is_full(folder)
        return of_home(folder), "No space left", None


def _become(user):
    def change():
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)

    return change


# --------------------------------------------------------------------------------------------------- running


def run(environment):
    """The program's outcome in a process of its own."""

    def inside():
        for name in SETTINGS:
            os.environ.pop(name, None)
        os.environ.update({name: value for name, value in environment.items() if name})
        environment.get("", lambda: None)()
        return program()

    return limits.alone(inside, seconds=60)


def judged(prepare):
    """ "held", or what went wrong, for one case."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="readtorch_caches_"))
    umask = os.umask(0o022)
    try:
        environment, expected, between = prepare(folder)
        before, after = expected if isinstance(expected, tuple) else (expected, expected)
        problem = wrong(run(environment), before, first=True)
        if between is not None:
            between(environment)
        problem = problem or wrong(run(environment), after, first=isinstance(expected, tuple))
        return problem or ("something ran" if (folder / "mark").exists() else "held")
    finally:
        os.umask(umask)
        subprocess.run(["umount", folder / "home/.cache/readtorch/kernels"], capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


def wrong(outcome, expected, first):
    """What is wrong with a run. expected: "kept", a pattern that a warning must match, or None: no matter."""
    result = outcome.get("result")
    if result is None or result["numbers"] != [2.0, 3.0]:
        return str(outcome)
    told = result["told"]
    if len(set(told)) != len(told):
        return f"told twice: {told}"
    if expected == "kept" and (told or (not first and result["hits"] != [1, 1])):
        return f"not kept: {result}"
    if (
        expected not in ("kept", None)
        and not any(re.search(expected, text) for text in told)
        and "kept" not in expected
    ):
        return f"no word of {expected}: {result}"
    return None


def at_once(count=3):
    """So many processes that compile the same from cold at the same time; the numbers, and whether the next one finds it."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="readtorch_caches_"))
    try:
        code = "from tests.attack import caches; import json; print(json.dumps(caches.program()))"
        environment = {
            **os.environ,
            "HOME": str(folder),
            "PYTHONPATH": f"{limits.ROOT / 'src'}{os.pathsep}{limits.ROOT}",
        }
        for name in SETTINGS[:3]:
            environment.pop(name, None)
        command = dict(
            args=[sys.executable, "-c", code], env=environment, cwd=limits.ROOT, stdout=subprocess.PIPE, text=True
        )
        started = [subprocess.Popen(**command) for _ in range(count)]
        outcomes = [json.loads(process.communicate()[0]) for process in started]
        outcomes.append(run({"HOME": str(folder)})["result"])
        return outcomes
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def mutant(seed):
    """A case that damages each file of the cache at random."""

    def prepare(folder):
        def between(environment):
            chance = random.Random(seed)
            for file in (folder / "home/.cache/readtorch/kernels").glob("*"):
                data = bytearray(file.read_bytes())
                for _ in range(chance.choice((1, 1, 3, 50))):
                    place = chance.randrange(len(data))
                    data[place] = chance.randrange(256)
                if chance.random() < 0.3:
                    del data[chance.randrange(len(data)) :]
                elif chance.random() < 0.1:
                    data += bytes(chance.randrange(5000))
                file.write_bytes(data)

        return of_home(folder), ("kept", None), between

    return prepare


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--report")
    given = parser.parse_args()
    outcomes = {name: judged(prepare) for name, prepare in CASES.items()}
    mutants = collections.Counter(judged(mutant(given.seed * 100_000 + i)) for i in range(given.count))
    crowd = at_once()
    summary = {
        "date": datetime.date.today().isoformat(),
        "seed": given.seed,
        "readtorch": readtorch.__version__,
        "numba": numba.__version__,
        "python": platform.python_version(),
        "by_hand": dict(collections.Counter(outcomes.values())),
        "mutants": dict(mutants),
        "three_at_once": "held" if all(wrong(dict(result=o), "kept", True) is None for o in crowd) else str(crowd),
    }
    print(json.dumps(summary, indent=1))
    for name, outcome in outcomes.items():
        if outcome != "held":
            print(name, outcome)
    if given.report:
        pathlib.Path(given.report).write_text(json.dumps(summary, indent=1) + "\n")


if __name__ == "__main__":
    main()
