"""python -m benchmarks.allocator: what the caching allocator costs, in microseconds of this process.

Pairs of malloc and free that find a free block, without and with a history; then the recorded runs of
tests/allocator/traces, an operation each. There is no reference to take turns with: PyTorch's allocator needs a
GPU. Targets: 5 microseconds a pair without history, 8 an operation of the recorded random runs.
"""

import logging
import statistics
import sys
import time
from pathlib import Path

from benchmarks import record
from benchmarks.__main__ import ROOT
from benchmarks.record import RESULTS
from readtorch.c10.cuda.cuda_caching_allocator import CachingAllocator
from readtorch.c10.cuda.simulated_driver import SimulatedDriver

sys.path.insert(0, str(ROOT))
MIB = 1 << 20
BATCH, ROUNDS = 1000, 100
PAIR_TARGET, OPERATION_TARGET = 5, 8
PAIRS = {
    "512 B (split and merge)": 512,
    "4 MiB out of 20 MiB (split and merge)": 4 * MIB,
    "20 MiB, exact hit": 20 * MIB,
}


def pair(size, others=0, history=False):
    """Microseconds of a malloc and its free, in each of ROUNDS batches; beside `others` free blocks."""
    allocator = CachingAllocator(SimulatedDriver(1, "1024GiB"))
    blocks = [allocator.malloc(0, 20 * MIB + i * 2 * MIB) for i in range(others)]
    for block in [*blocks, allocator.malloc(0, size)]:
        allocator.free(block)
    if history:
        allocator.record_history(True, context=None, max_entries=BATCH)
    malloc, free = allocator.malloc, allocator.free
    batches = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(BATCH):
            free(malloc(0, size))
        batches.append((time.process_time() - began) / BATCH * 1e6)
    return batches


def recorded(path, history=False):
    """Microseconds of an operation of a recorded run."""
    from tests.allocator.replay import Replay, load

    replay = Replay(load(path), history)
    operations = [(getattr(replay, name), arguments) for name, *arguments in replay.recording["ops"]]
    began = time.process_time()
    for operation, arguments in operations:
        operation(*arguments)
    return (time.process_time() - began) / len(operations) * 1e6


def main():
    logging.getLogger("readtorch.c10.cuda").setLevel(logging.ERROR)  # the runs run out of memory often
    lines = [
        "# The caching allocator",
        "",
        "| malloc and free | µs a pair, least | median | with history |",
        "|---|---:|---:|---:|",
    ]
    kept, rows = True, []
    for name, size in PAIRS.items():
        plain, written = pair(size), pair(size, history=True)
        kept &= min(plain) <= PAIR_TARGET
        rows.append(record.row(f"malloc and free, {name}", round(min(plain), 2), "µs", PAIR_TARGET))
        lines.append(f"| {name} | {min(plain):.2f} | {statistics.median(plain):.2f} | {min(written):.2f} |")
    plain, written = pair(20 * MIB, 1000), pair(20 * MIB, 1000, history=True)
    lines.append(
        f"| 20 MiB, 1,000 other free blocks | {min(plain):.2f} | {statistics.median(plain):.2f} | {min(written):.2f} |"
    )
    lines += ["", "| recorded run | µs an operation | with history |", "|---|---:|---:|"]
    runs = {
        path: min(recorded(path) for _ in range(3))
        for path in sorted(Path(ROOT).glob("tests/allocator/traces/[fr]*.json.gz"))
    }
    for path, took in runs.items():
        lines.append(f"| {path.name.split('.')[0]} | {took:.2f} | {recorded(path, history=True):.2f} |")
    random = statistics.mean(took for path, took in runs.items() if path.name.startswith("fuzz"))
    kept &= random <= OPERATION_TARGET
    lines += [
        "",
        f"Random runs, mean: {random:.2f} µs an operation. Targets "
        f"{'kept' if kept else 'MISSED'}: {PAIR_TARGET} µs a pair, {OPERATION_TARGET} an operation.",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    (RESULTS / "allocator.md").write_text(text)
    rows.append(record.row("an operation of the recorded random runs, mean", round(random, 2), "µs", OPERATION_TARGET))
    record.write("allocator", rows)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
