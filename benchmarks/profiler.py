"""python -m benchmarks.profiler: what profiling adds to a training step, here and in PyTorch.

The same step with and without a profiler, in turns, on both sides in one process; its time with the profiler less its time
without is what profiling adds. The medians of the rounds count. What is worked out after the run is not timed.
"""

import os
import statistics
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

import readtorch
from benchmarks import cases, record
from tests.training import models

ROUNDS = 61
STEPS = 10  # of a round, each way
AT_MOST = 1.5  # of what profiling adds in PyTorch

SETTINGS = {"": {}, ", with shapes": {"record_shapes": True}}
# Small ones: what profiling adds to a step of tens of milliseconds is lost in what such a step varies by.
SMALL_MLP, SMALL_GPT = "MLP 64-128-64-10, batch 32", "GPT d=32, one block, batch 2"


def small_mlp(api):
    layers = (api.nn.Linear(64, 128), api.nn.ReLU(), api.nn.Linear(128, 64), api.nn.ReLU(), api.nn.Linear(64, 10))
    batch = api.randn(32, 64), api.randint(0, 10, (32,))
    return cases._classifier(api, api.nn.Sequential(*layers), batch)


def small_gpt(api):
    return cases._language(api, models.gpt(api, layers=1, d=32, heads=2, context=16), 2, 16)


cases.NETWORKS |= {SMALL_MLP: small_mlp, SMALL_GPT: small_gpt}


def microseconds(step):
    """Of a step. The first ones bring back what other code has driven out of the caches."""
    for _ in range(3):
        step()
    begin = time.perf_counter()
    for _ in range(STEPS):
        step()
    return (time.perf_counter() - begin) / STEPS * 1e6


def added(T, step, settings):
    """Microseconds that a profiler adds to the step, once."""
    without = microseconds(step)
    with T.profiler.profile(activities=[T.profiler.ProfilerActivity.CPU], **settings):
        profiled = microseconds(step)
    return profiled - without


def measured(network, settings):
    """(here, in PyTorch): microseconds that profiling adds to a step, the median of the rounds."""
    sides = [(T, cases._training(T, network)) for T in (readtorch, torch)]
    for _, step in sides:
        microseconds(step)
    rounds = [[added(T, step, settings) for T, step in sides] for _ in range(ROUNDS)]
    return [statistics.median(times) for times in zip(*rounds)]


def main():
    torch.set_num_threads(1)
    rows = []
    for network in (SMALL_MLP, SMALL_GPT):
        for name, settings in SETTINGS.items():
            ours, theirs = measured(network, settings)
            what = f"profiling a training step of {network}{name}"
            rows.append(record.row(f"{what}: what it adds, over PyTorch's", round(ours / theirs, 2), "", AT_MOST))
            rows.append(record.row("… in microseconds, here", round(ours), "µs"))
            rows.append(record.row("… in PyTorch", round(theirs), "µs"))
    for row in rows:
        print(f"{row['what']}: {row['value']} {row['unit']}")
    record.write("profiler", rows)


if __name__ == "__main__":
    main()
