"""python -m benchmarks.autocast: what a training step takes under autocast, over the same step in float32, here and in PyTorch.

The four steps (two libraries, with and without autocast) run in turns in one process; the medians of the rounds count. Here 16-bit
floats are converted to float32 and computed with the same kernels. PyTorch multiplies them by oneDNN, in bfloat16 with
the processor's own instructions where it has them (AVX-512 BF16, AMX), so that autocast can be faster than float32 there.
"""

import os
import statistics
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

import readtorch
from benchmarks import cases, record

ROUNDS = 15
NETWORKS = ("MLP 784-256-10, batch 64", "GPT d=128, batch 8", "GPT d=384, batch 4")
DTYPES = ("bfloat16", "float16")


def step_of(T, network, dtype=None):
    """A training step, under autocast if a dtype is given (backward too: it follows the dtypes of forward)."""
    step = cases._training(T, network)

    def lowered():
        with T.autocast("cpu", dtype=getattr(T, dtype)):
            step()

    return step if dtype is None else lowered


def milliseconds(step):
    begin = time.perf_counter()
    step()
    return (time.perf_counter() - begin) * 1e3


def measured(network):
    """{(library, dtype or None): milliseconds of a step}"""
    steps = {(T, dtype): step_of(T, network, dtype) for T in (readtorch, torch) for dtype in (None, *DTYPES)}
    times = {key: [] for key in steps}
    for i in range(ROUNDS + 2):
        for key, step in steps.items():
            took = milliseconds(step)
            if i >= 2:  # the first ones compile, and fill caches
                times[key].append(took)
    return {key: statistics.median(took) for key, took in times.items()}


def main():
    torch.set_num_threads(1)
    rows = []
    for network in NETWORKS:
        times = measured(network)
        for dtype in DTYPES:
            ours, theirs = [times[T, dtype] / times[T, None] for T in (readtorch, torch)]
            rows.append(
                record.row(f"training step of {network} under autocast, {dtype}: over float32", round(ours, 2), "")
            )
            rows.append(record.row("… in PyTorch", round(theirs, 2), ""))
        for dtype in (None, *DTYPES):
            ratio = times[readtorch, dtype] / times[torch, dtype]
            rows.append(record.row(f"{network}, {dtype or 'float32'}: over PyTorch's time", round(ratio, 2), ""))
    for row in rows:
        print(f"{row['what']}: {row['value']}")
    capability = torch.backends.cpu.get_cpu_capability()
    record.write(
        "autocast", rows, torch=f"oneDNN, {capability}, bfloat16 {torch.ops.mkldnn._is_mkldnn_bf16_supported()}"
    )


if __name__ == "__main__":
    main()
