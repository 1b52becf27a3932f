"""python -m benchmarks.footprint: the memory of a training step, and the wait for the compiler before the first one.

Each measurement is a process of its own. Memory: the greatest resident size after three steps of ResNet-18 at batch 32, as
a whole and above what was resident before the first. The wait: seconds in numba's compiler during the first step, with an
empty cache and with the cache that this left.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time

from benchmarks import record
from benchmarks.__main__ import IMPLEMENTATIONS, ROOT, environment
from benchmarks.record import RESULTS

NETWORK = "ResNet-18, batch 32"


def in_process(what, implementation, **extra):
    command = [sys.executable, "-m", "benchmarks.footprint", what, implementation]
    done = subprocess.run(command, env={**environment(), **extra}, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def resident(status="VmRSS"):
    """MiB of this process now, or at most so far (VmHWM)."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(status)) / 1024


def memory(api):
    from benchmarks.cases import _training

    step = _training(api, NETWORK)
    before = resident()
    for _ in range(3):
        step()
    return {"before": before, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def wait(api):
    """Seconds of the first step, and how many of them went into compiling."""
    from numba.core import event

    from benchmarks.cases import _training

    step = _training(api, NETWORK)
    with event.install_timer("numba:compile", lambda seconds: None) as timer:
        began = time.perf_counter()
        step()
        whole = time.perf_counter() - began
    return {"first_step": whole, "compiling": timer.duration if timer.done else 0.0}


def main():
    sizes = {implementation: in_process("memory", implementation) for implementation in IMPLEMENTATIONS}
    with tempfile.TemporaryDirectory() as cache:
        cold, warm = (in_process("wait", "readtorch", NUMBA_CACHE_DIR=cache) for _ in range(2))
    lines = [
        f"# Footprint of a training step of {NETWORK}",
        "",
        "| | before the first step, MiB | peak, MiB | growth, MiB |",
        "|---|---:|---:|---:|",
    ]
    for implementation, size in sizes.items():
        lines.append(
            f"| {implementation} | {size['before']:.0f} | {size['peak']:.0f} | {size['peak'] - size['before']:.0f} |"
        )
    ours, theirs = sizes["readtorch"], sizes["torch"]
    growth = (ours["peak"] - ours["before"]) / (theirs["peak"] - theirs["before"])
    lines += [
        "",
        f"Peak: {ours['peak'] / theirs['peak']:.2f} of the reference's; growth: {growth:.2f} (target: at most 1.5).",
        "",
        f"First step with an empty cache of kernels: {cold['first_step']:.1f} s, of them {cold['compiling']:.1f} s in the "
        f"compiler (target: under 30); with a full one: {warm['first_step']:.1f} s, {warm['compiling']:.1f} s.",
    ]
    text = "\n".join([line.replace("| | before", "| implementation | before") for line in lines]) + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "footprint.md").write_text(text)
    record.write(
        "footprint",
        [
            record.row(f"memory that training steps of {NETWORK} add: over PyTorch's", round(growth, 3), "", 1.5),
            record.row("first training step with an empty cache of kernels", round(cold["first_step"], 1), "s", 30),
            record.row("… with a full one", round(warm["first_step"], 1), "s"),
        ],
    )
    print(text)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        import importlib

        os.environ.setdefault("OMP_NUM_THREADS", "1")
        print(json.dumps({"memory": memory, "wait": wait}[sys.argv[1]](importlib.import_module(sys.argv[2]))))
    else:
        main()
