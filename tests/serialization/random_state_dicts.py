"""python -m tests.serialization.random_state_dicts: what one implementation saves the other loads.

    python -m tests.serialization.random_state_dicts        500 of them, of every dtype
    … --count N   --first SEED

Each is saved in both formats by both, and loaded by both to the CPU (with and without weights_only, mapped), to the Meta device
and, by readtorch, to simulated GPUs and from there.
"""

import argparse
import collections
import gc
import io
import pathlib
import sys
import tempfile
import time
import warnings

import torch

import readtorch
from tests.serialization.describe import describe
from tests.serialization.state_dicts import DTYPES, DTYPES_WITH_CLASS, random_checkpoint

NOT_ITS_OWN = "has no attribute 'dtype'"  # PyTorch's answer to an untyped storage in the old format: it wrote it itself
META = [
    "meta",
    torch.device("meta"),
    {"cpu": "meta"},
    lambda storage, tag: storage.to(device="meta") if tag != "cpu" else None,
]
CUDA = ["cuda", "cuda:1", {"cpu": "cuda:1"}, lambda storage, tag: storage.cuda(1), readtorch.device("cuda", 0)]


def saved(T, obj, new):
    file = io.BytesIO()
    T.save(obj, file, _use_new_zipfile_serialization=new)
    return file.getvalue()


class Checks:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.done = collections.Counter()  # what was compared -> how often
        self.failures = []

    def equal(self, what, seed, found, expected):
        self.done[what] += 1
        if found != expected:
            self.failures.append((seed, what))

    def check(self, seed):
        theirs = random_checkpoint(seed, DTYPES if seed % 2 else DTYPES_WITH_CLASS)
        expected = describe(torch.load(io.BytesIO(saved(torch, theirs, new=True))))
        ours = readtorch.load(io.BytesIO(saved(torch, theirs, new=True)))
        for new, form in ((True, "zip"), (False, "old format")):
            files = {torch: saved(torch, theirs, new), readtorch: saved(readtorch, ours, new)}
            self.both_ways(seed, files, form, expected)
            self.to_meta(seed, files[torch], form)
            self.to_simulated_devices(seed, files[torch], form, expected, new)
        self.mapped(seed, theirs, ours, expected)

    def both_ways(self, seed, files, form, expected):
        for writer, data in files.items():
            for reader in (torch, readtorch):
                for weights_only in (True, False):
                    what = f"{writer.__name__} to {reader.__name__}, {form}"
                    try:
                        found = describe(reader.load(io.BytesIO(data), weights_only=weights_only))
                    except AttributeError as error:
                        if reader is not torch or seed % 2 == 0 or NOT_ITS_OWN not in str(error):
                            raise
                        self.done["old format that PyTorch does not read"] += 1
                        continue
                    self.equal(what, seed, found, expected)

    def mapped(self, seed, theirs, ours, expected):
        for writer, obj, reader in ((torch, theirs, readtorch), (readtorch, ours, torch)):
            path = self.folder / f"{writer.__name__}.pt"
            writer.save(obj, path)
            found = reader.load(path, mmap=True)
            self.equal(f"{writer.__name__} to {reader.__name__}, mapped", seed, describe(found), expected)
            del found

    def to_meta(self, seed, data, form):
        """Sizes, strides, dtypes, devices, and what is the same object."""
        place = META[seed % len(META)]
        seen = []
        for T in (torch, readtorch):
            there = T.device("meta") if isinstance(place, torch.device) else place
            try:
                seen.append(describe(T.load(io.BytesIO(data), map_location=there)))
            except AttributeError as error:
                if T is not torch or NOT_ITS_OWN not in str(error):
                    raise
                return
        self.equal(f"to meta, {form}", seed, *seen)

    def to_simulated_devices(self, seed, data, form, expected, new):
        readtorch.cuda.simulate(2)
        try:
            place = CUDA[seed % len(CUDA)]
            there = readtorch.load(io.BytesIO(data), map_location=place)
            self.equal(f"to a simulated device, {form}", seed, describe(there), expected)
            back = saved(readtorch, there, new)
            self.equal(f"from there, {form}", seed, describe(readtorch.load(io.BytesIO(back))), expected)
            if seed % 2 == 0 or new:
                found = describe(torch.load(io.BytesIO(back), map_location="cpu"))
                self.equal(f"from there to torch, {form}", seed, found, expected)
            del there
        finally:
            gc.collect()
            readtorch.cuda.simulate(0)


def run(first, count):
    """Check `count` of them. Returns (what was compared -> how often, failures)."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checks = Checks(folder)
        for seed in range(first, first + count):
            checks.check(seed)
    return checks.done, checks.failures


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tests.serialization.random_state_dicts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    began = time.monotonic()
    done, failures = run(options.first, options.count)
    for what, times in sorted(done.items()):
        print(f"{what:45}{times:7}")
    for seed, what in failures:
        print(f"seed {seed}: {what}", file=sys.stderr)
    print(f"{options.count} state_dicts in {time.monotonic() - began:.0f} s, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
