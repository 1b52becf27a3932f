"""python -m tests.serialization.fuzz: spoiled checkpoints, each of which must load as the reference loads it, or raise a clear error.

    python -m tests.serialization.fuzz                      20,000 of them, zip archives
    python -m tests.serialization.fuzz --old                20,000 in the formats of before 1.6, tar archives among them
    … --count N   --first SEED

While a file loads, an audit hook sees whether anything runs (a process, a compiler, an import, a file), a clock whether it hangs,
and tracemalloc how much memory it takes.
"""

import argparse
import codecs
import collections
import io
import json
import os
import pickle
import signal
import sys
import tempfile
import time
import tracemalloc
import warnings

import torch

import readtorch
from tests.serialization import old_mutants
from tests.serialization.describe import describe
from tests.serialization.mutants import FORBIDDEN, mutant

CLEAR = (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, AssertionError)
SECONDS = 5
# What PyTorch answers to its own files with a float8 or uint16 tensor that requires grad; readtorch loads it.
LEAF_THAT_CANNOT_BE_SET = "a leaf Variable that requires grad is being used in an in-place operation"
# … and to those in the old format with a tensor of such a dtype; readtorch loads them.
UNTYPED_IN_THE_OLD_FORMAT = "type object 'torch.storage.UntypedStorage' has no attribute 'dtype'"
# Memory: what the file holds, once as bytes and once as Python objects, and a little for the machinery.
BYTES_PER_BYTE, BYTES_MORE = 120, 3_000_000
WATCHED = (
    "os.",
    "subprocess.",
    "exec",
    "compile",
    "import",
    "open",
    "socket.",
    "ctypes.",
    "shutil.",
    "sys.unraisablehook",
    "pty.",
    "marshal.",
    "tempfile.",
    "webbrowser.",
    "winreg.",
    "code.__new__",
    "function.__new__",
)


class Watch:
    """What happens while `load` runs."""

    def __init__(self):
        self.on = False
        self.events = []
        sys.addaudithook(self.hook)

    def hook(self, event, arguments):
        if self.on and event.startswith(WATCHED):
            self.events.append(f"{event} {str(arguments)[:100]}")


def expanded_size(data):
    """The file's size, with what it says that its compressed records expand to (which DEFLATE bounds to 1032 to 1)."""
    return (
        len(data)
        if len(data) > 100_000 or b"PK\x01\x02" not in data
        else max(len(data), min(1032 * len(data), declared(data)))
    )


def declared(data):
    total, at = 0, data.find(b"PK\x01\x02")
    while at >= 0:
        total += int.from_bytes(data[at + 24 : at + 28], "little")
        at = data.find(b"PK\x01\x02", at + 4)
    return total


def as_file(data, on_disk):
    """A file object: tar archives are read from files of the system alone."""
    if not on_disk:
        return io.BytesIO(data)
    file = tempfile.TemporaryFile()
    file.write(data)
    file.seek(0)
    return file


def load_watched(data, watch, on_disk=False):
    """(description or None, name of the error's class, complaints)"""
    complaints, found, error = [], None, None
    watch.events.clear()
    file = as_file(data, on_disk)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    watch.on = True
    try:
        found = readtorch.load(file)
    except CLEAR as raised:
        error = raised
    except TimeoutError:
        complaints.append(f"took more than {SECONDS} seconds")
    except BaseException as raised:
        complaints.append(f"unclear error {type(raised).__name__}: {str(raised)[:200]}")
    finally:
        watch.on = False
        signal.setitimer(signal.ITIMER_REAL, 0)
    took = tracemalloc.get_traced_memory()[1] - before
    if took > BYTES_PER_BYTE * expanded_size(data) + BYTES_MORE:
        complaints.append(f"took {took} bytes for a file of {len(data)}")
    if error is not None and isinstance(error, RecursionError | NotImplementedError):
        complaints.append(f"unclear error {type(error).__name__}")
    if error is not None and not str(error) and not isinstance(error, EOFError):
        complaints.append("an error without words")
    if watch.events:
        complaints.append(f"ran {watch.events}")
    if FORBIDDEN in os.environ:
        complaints.append("wrote to the environment")
    return found, error, complaints


def compare_with_reference(data, found, on_disk=False):
    """Complaints if the reference loads something else from the file, or nothing."""
    try:
        theirs = torch.load(as_file(data, on_disk))
    except Exception as error:
        if LEAF_THAT_CANNOT_BE_SET in str(error) or UNTYPED_IN_THE_OLD_FORMAT in str(error):
            return []
        return [f"loads what the reference refuses: {type(error).__name__}: {str(error)[-300:]}"]
    try:
        return [] if describe(found) == describe(theirs) else ["loads something else than the reference"]
    except RecursionError:
        return []  # lists within lists, deeper than Python can follow: both made them


def run(first, count, report=print, make=mutant):
    """Try `count` mutants. Returns ({kind: [loaded, refused]}, [(seed, kind, complaint)])."""

    def too_long(*_):
        raise TimeoutError

    signal.signal(signal.SIGALRM, too_long)
    watch = Watch()
    warm_up()
    tracemalloc.start()
    outcomes, failures = collections.defaultdict(lambda: [0, 0]), []
    for seed in range(first, first + count):
        kind, data = make(seed)
        on_disk = make is old_mutants.mutant and seed % 2 == 0
        found, error, complaints = load_watched(data, watch, on_disk)
        if error is None and not complaints:
            tracemalloc.stop()
            complaints = compare_with_reference(data, found, on_disk)
            tracemalloc.start()
        outcomes[kind][error is not None] += 1
        for complaint in complaints:
            failures.append((seed, kind, complaint))
            report(f"seed {seed}, {kind}: {complaint}")
        found = None
    return dict(outcomes), failures


def warm_up():
    """Import and compile beforehand what the first load would."""
    codecs.encode("", "latin1"), codecs.encode("", "latin-1")
    for place in (None, "meta", "cuda", "xpu"):
        for new in (True, False):
            file = io.BytesIO()
            torch.save([torch.ones(2), torch.ones(2, device="meta")], file, _use_new_zipfile_serialization=new)
            try:
                readtorch.load(io.BytesIO(file.getvalue()), map_location=place and {"cpu": place})
            except (RuntimeError, AssertionError):
                pass
    for seed in range(60, 90):
        try:
            readtorch.load(io.BytesIO(mutant(seed)[1]))
        except Exception:
            pass


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tests.serialization.fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--old", action="store_true", help="files in the formats of before PyTorch 1.6")
    parser.add_argument("--json", action="store_true", help="the result as one line of JSON")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    began = time.monotonic()
    make = old_mutants.mutant if options.old else mutant
    outcomes, failures = run(options.first, options.count, lambda line: print(line, file=sys.stderr, flush=True), make)
    if options.json:
        print(json.dumps({"outcomes": outcomes, "failures": failures}))
        return 0
    print(f"{'':24}{'loaded':>8}{'refused':>9}")
    for kind, (loaded, refused) in sorted(outcomes.items()):
        print(f"{kind:24}{loaded:8}{refused:9}")
    print(f"{options.count} files in {time.monotonic() - began:.0f} s, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
