"""python -m tests.attack.files: spoiled files, each opened as their readers open them, beside PyTorch.

    python -m tests.attack.files                        22,000 of them
    … --count N --seed S --processes P --report FILE    N files from seed S; the summary goes to FILE as JSON

Checkpoints (`load`, and `readtorch inspect`), TorchScript archives, safetensors files, snapshots of memory. Files are opened in processes made
by fork, some in each. What counts as a fault: a process dies; a file takes more than 10 seconds or 1 GB; something runs that honest files do not
run (an audit hook sees imports, files that are opened, programs, code); a tensor reaches out of its storage, or shows bytes that lie about in
freed memory; an error that is not one of the clear ones; something else is loaded than PyTorch loads, or what PyTorch refuses.
What PyTorch loads and readtorch refuses is counted by its cause.
"""

import argparse
import collections
import datetime
import gc
import hashlib
import io
import json
import os
import pathlib
import pickle
import platform
import random
import re
import signal
import subprocess
import sys
import tempfile
import unicodedata  # noqa: F401  Python's parser imports it for names with other letters
import warnings

import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError

import readtorch
import readtorch._inspect
import readtorch.jit
import readtorch.viz.allocator_history
from readtorch.utils import safetensors as our_safetensors
from tests.attack import limits
from tests.attack.file_mutants import mutant
from tests.attack.watching import harmless
from tests.serialization import mutants as checkpoints
from tests.serialization.describe import describe
from tests.serialization.fuzz import LEAF_THAT_CANNOT_BE_SET

SHARES = {"ckpt": 8209, "jit": 5581, "inspect": 2656, "safetensors": 2743, "snapshot": 2811}
SECONDS = 10
BATCH = 200
CANARY = b"canary-in-memory"


class Late(BaseException):
    """An opener took too long."""


# ----------------------------------------------------------------------------------------------- the openers


def file_of(kind, seed):
    return checkpoints.mutant(seed)[1] if kind in ("ckpt", "inspect") else mutant(kind, seed)


def open_ours(kind, data):
    """(what was loaded, a description to compare with PyTorch's, or None)"""
    if kind == "ckpt":
        loaded = readtorch.load(io.BytesIO(data))
        return loaded, described(loaded)
    if kind == "jit":
        loaded = readtorch.jit.load(io.BytesIO(data))
        return dict(loaded.state_dict()), described_module(loaded)
    if kind == "safetensors":
        loaded = our_safetensors.load(data)
        return loaded, described(dict(sorted(loaded.items())))  # the library gives them in any order
    with open(_scratch(), "wb") as file:
        file.write(data)
    if kind == "inspect":
        lines = readtorch._inspect.lines_about(_scratch())
        if not all(line.isprintable() for line in lines):
            raise AssertionError("a line that cannot be printed")
        return None, None
    readtorch.viz.allocator_history.allocator_history(_scratch())
    return None, None


def open_theirs(kind, data):
    if kind == "ckpt":
        return described(torch.load(io.BytesIO(data)))
    if kind == "jit":
        return described_module(torch.jit.load(io.BytesIO(data)))
    return described(dict(sorted(safetensors.torch.load(data).items())))


def _scratch():
    return os.path.join(tempfile.gettempdir(), f"attack-{os.getpid()}")


def described(value):
    try:
        return hashlib.sha1(repr(describe(value)).encode("utf-8", "surrogatepass")).hexdigest()
    except RecursionError:
        return "deep"


def described_module(module):
    texts = []
    for name, part in module.named_modules():
        if part._c._has_method("forward") if isinstance(part, torch.nn.Module) else part._c.type.findMethod("forward"):
            texts.append(f"{name}: {re.sub(r'___torch_mangle_[0-9]+[.]', '', part.code)}")
    return described({name: tensor.detach() for name, tensor in module.state_dict().items()}) + described(texts)


CLEAR = {
    "ckpt": (pickle.UnpicklingError, RuntimeError, EOFError, ValueError),
    "jit": (RuntimeError,),
    "inspect": (pickle.UnpicklingError, RuntimeError, EOFError, ValueError),
    "safetensors": (SafetensorError, ValueError),
    "snapshot": (pickle.UnpicklingError, ValueError),
}


# ---------------------------------------------------------------------------------------------- what is a fault


def faults_of(loaded):
    """Tensors that reach out of their storages, or show freed memory."""
    waiting, seen = [loaded], set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, readtorch.Tensor):
            yield from _faults_of_tensor(value)
        elif isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif isinstance(value, (list, tuple, set)):
            waiting += value


def _faults_of_tensor(tensor):
    if tensor.is_sparse:
        return
    storage = tensor.untyped_storage()
    array = tensor._array
    if array.size and array.dtype.itemsize:
        low, high = np.lib.array_utils.byte_bounds(array) if hasattr(np.lib, "array_utils") else np.byte_bounds(array)
        if low < storage.data_ptr() or high > storage.data_ptr() + storage.nbytes():
            yield "a tensor reaches out of its storage"
            return
    if CANARY in array.tobytes():
        yield "a tensor shows freed memory"


def leave_canaries():
    """Fill memory that is free again afterwards."""
    for size in (64, 256, 1024, 4096, 65536):
        blocks = [np.frombuffer(CANARY * (size // 16), np.uint8).copy() for _ in range(20)]
        del blocks


def try_ours(kind, seed, watch):
    """[outcome, description or the error's text, faults]"""
    data, faults, loaded = file_of(kind, seed), [], None
    leave_canaries()
    watch.events.clear()
    limits.forget_peak()
    before = limits.peak()
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        watch.on = True
        loaded, said = open_ours(kind, data)
        outcome = "loaded"
    except CLEAR[kind] as error:
        outcome, said = "refused", f"{type(error).__name__}: {error}"
        if (
            isinstance(error, (RecursionError, NotImplementedError))
            or not str(error)
            and not isinstance(error, EOFError)
        ):
            faults.append(f"unclear error {said[:200]}")
    except Late:
        outcome, said = "late", ""
        faults.append("late")
    except BaseException as error:
        outcome, said = "refused", f"{type(error).__name__}: {error}"
        faults.append(f"unclear error {said[:300]}")
    finally:
        watch.on = False
        signal.setitimer(signal.ITIMER_REAL, 0)
    if limits.peak() - before > limits.GIGABYTE:
        faults.append("more than 1 GB")
    faults += [f"ran {event}" for event in watch.events]
    if checkpoints.FORBIDDEN in os.environ:
        faults.append("wrote to the environment")
    return [outcome, said if outcome == "loaded" else said[:500], faults + list(faults_of(loaded))]


def try_theirs(kind, seed):
    data = file_of(kind, seed)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        return ["loaded", open_theirs(kind, data)]
    except Late:
        return ["late", ""]
    except BaseException as error:
        return ["refused", f"{type(error).__name__}: {error}"[:500]]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


# -------------------------------------------------------------------------------------------------- running it


def plan(count, seed):
    """[(kind, seed)], in the shares of the kinds."""
    rng = random.Random(seed)
    kinds = rng.choices(list(SHARES), list(SHARES.values()), k=count)
    return [(kind, seed * 1_000_000 + number) for number, kind in enumerate(kinds)]


def many(cases, attempt):
    """[answer], from a process for all; from another one for the rest if it dies or hangs."""
    answers = []
    while len(answers) < len(cases):
        rest = cases[len(answers) :]
        done, death = limits.one_by_one(attempt, rest, seconds=SECONDS + 5, memory=2 * limits.GIGABYTE)
        answers += done
        if death:
            answers.append(["died", json.dumps(death), [f"died: {json.dumps(death)}"]])
    return answers


def run(cases, report=lambda line: None):
    """What came of each: {"kind", "seed", "ours", "theirs", "faults"}"""

    def too_late(*_):
        raise Late

    signal.signal(signal.SIGALRM, too_late)
    warnings.simplefilter("ignore")
    watch = limits.Watch(
        lambda event, arguments: harmless(event, arguments) or event == "open" and arguments[0] == _scratch()
    )
    warm_up(watch)
    gc.freeze()  # a child copies less of what it only looks at
    found = []
    for start in range(0, len(cases), BATCH):
        batch = cases[start : start + BATCH]
        ours = many(batch, lambda kind, seed: try_ours(kind, seed, watch))
        compared = [case for case in batch if is_compared(*case)]
        theirs = dict(zip(compared, many(compared, try_theirs))) if compared else {}
        report(f"{start + len(batch)} of {len(cases)}")
        for case, (outcome, said, faults) in zip(batch, ours):
            answer = theirs.get(case, ["not asked", ""])
            faults = faults + compared_with(outcome, said, *answer[:2])
            found.append(
                {"kind": case[0], "seed": case[1], "ours": [outcome, said], "theirs": answer[:2], "faults": faults}
            )
            for fault in faults:
                report(f"{case}: {fault} | ours {said[:200]!r} | theirs {answer[:2]!r}")
    return found


def compared_with(outcome, said, their_outcome, their_answer):
    if outcome != "loaded" or their_outcome in ("not asked", "late", "died"):
        return []
    if their_outcome == "loaded":
        return [] if said == their_answer or "deep" in (said, their_answer) else ["loads something else than PyTorch"]
    return [] if any(reason in their_answer for reason in NO_FAULT_OF_OURS) else ["loads what PyTorch refuses"]


NO_FAULT_OF_OURS = (
    LEAF_THAT_CANNOT_BE_SET,
    "MemoryError: std::bad_alloc",  # its memo is a list up to the highest place
    "but found 'type comment' here",  # a comment in the middle of a line means nothing here
)


def is_compared(kind, seed):
    """PyTorch has no reader of the others; and short programs that take for ever do so there."""
    if kind == "ckpt":
        return checkpoints.mutant(seed)[0] not in ("exhausting", "zip bomb")
    return kind in ("jit", "safetensors")


def warm_up(watch):
    """Import and compile beforehand what the first files would."""
    for kind in SHARES:
        for seed in range(60):
            for attempt in (
                lambda: open_ours(kind, file_of(kind, seed)),
                lambda: kind in ("snapshot", "inspect") or open_theirs(kind, file_of(kind, seed)),
            ):
                if kind == "jit" and attempt.__code__.co_names[0] != "open_ours":
                    continue  # PyTorch may die of them
                try:
                    attempt()
                except Exception:
                    pass


def summary(found, seed):
    """Counts by outcome, and what PyTorch loads and readtorch refuses by cause."""
    counts = collections.defaultdict(collections.Counter)
    causes, faults = collections.defaultdict(collections.Counter), []
    for each in found:
        (ours, said), (theirs, _) = each["ours"], each["theirs"]
        counts[each["kind"]][f"{ours}, PyTorch {theirs}" if theirs != "not asked" else ours] += 1
        if ours == "refused" and theirs == "loaded":
            causes[each["kind"]][cause(said)] += 1
        faults += [{"kind": each["kind"], "seed": each["seed"], "fault": fault} for fault in each["faults"]]
    return {
        "date": datetime.date.today().isoformat(),
        "seed": seed,
        "files": len(found),
        "readtorch": readtorch.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "outcomes": {kind: dict(sorted(c.items())) for kind, c in sorted(counts.items())},
        "refused, though PyTorch loads": {kind: dict(c.most_common()) for kind, c in sorted(causes.items())},
        "faults": len(faults),
        "first faults": faults[:20],
    }


def cause(said):
    """An error's text without names and numbers."""
    first = said.strip().split("\n")[0] if not said.startswith("RuntimeError: \n") else said.split("\n")[1]
    if "WeightsUnpickler error" in said:
        first = said.rsplit("WeightsUnpickler error:", 1)[1].strip().split("\n")[0]
    return re.sub(r"0x[0-9a-f]+|'[^']*'|\"[^\"]*\"|\[[^]]*\]|\d+|b'.*", "…", first)[:90]


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tests.attack.files", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=sum(SHARES.values()))
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("--part", help=argparse.SUPPRESS)  # i/n: those files only; the answers go to stdout
    options = parser.parse_args()
    cases = plan(options.count, options.seed)
    if options.part:
        number, of = map(int, options.part.split("/"))
        print(json.dumps(run(cases[number::of], report=lambda line: print(line, file=sys.stderr, flush=True))))
        return 0
    found = (
        in_processes(options)
        if options.processes > 1
        else run(cases, report=lambda line: print(line, file=sys.stderr, flush=True))
    )
    told = json.dumps(summary(found, options.seed), indent=1)
    if options.report:
        options.report.write_text(told + "\n")
    print(told)
    return 1 if any(each["faults"] for each in found) else 0


def in_processes(options):
    command = [
        sys.executable,
        "-m",
        "tests.attack.files",
        "--count",
        str(options.count),
        "--seed",
        str(options.seed),
        "--part",
    ]
    parts = [
        subprocess.Popen([*command, f"{i}/{options.processes}"], stdout=subprocess.PIPE)
        for i in range(options.processes)
    ]
    return [each for part in parts for each in json.loads(part.communicate()[0])]


if __name__ == "__main__":
    sys.exit(main())
