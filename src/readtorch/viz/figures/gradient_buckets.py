"""One step of DistributedDataParallel: which gradients share a bucket, and what of its all-reduce hides behind backward (the
chapter "Process groups, DDP and SyncBatchNorm").

Buckets are divided as `compute_bucket_assignment_by_size` and `torch/nn/parallel/distributed.py` do it; an all-reduce takes
what the cheapest algorithm of `csrc/distributed/algorithms.py` takes. `tests/viz/test_gradient_buckets.py` compares both.
Every layer has one gradient and needs the same time; rank 0 is punctual, the last rank may be late.
"""

import math

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Integer, Integers, Number
from readtorch.viz.picture import lanes

KIB, MIB = 2**10, 2**20
FIRST, LATER, UNUSED = "first", "later", "unused"
STEPS = {FIRST: "the first", LATER: "all others", UNUSED: "with find_unused_parameters"}
DEFAULT_CAP = 25  # MiB: then the first bucket has 1 MiB


def model(inputs):
    sizes, one = [KIB * size for size in inputs["layers"]], inputs["backward"]
    buckets = buckets_of(sizes, inputs["iteration"], inputs["cap"])
    step = timed(sizes, buckets, inputs)
    ends = {
        "whole": timed(sizes, [list(range(len(sizes)))], inputs)["end"],
        "single": timed(sizes, singles(sizes), inputs)["end"],
    }
    computing = 1.5 * len(sizes) * one
    result = {
        "buckets": buckets,
        "bytes": [sum(sizes[i] for i in bucket) for bucket in buckets],
        "computes": [[begin, begin + 1.5 * len(sizes) * one] for begin in delays(inputs)],
        "end": step["end"],
        "forward": 0.5 * len(sizes) * one,
        "hidden": step["hidden"],
        "sums": step["sums"],
        "waits": step["waits"],
        **ends,
    }
    return result | {"say": sentence(result, inputs, computing)}


# ---- which gradients share a bucket


def buckets_of(sizes, step, cap):
    """Lists of layers, in the order in which they travel."""
    limit = cap * MIB
    limits = [MIB if cap == DEFAULT_CAP else limit, limit]
    backwards = list(range(len(sizes)))[::-1]
    if step == FIRST:
        return [backwards]
    if step == UNUSED:  # cut from the first layer on, and reversed
        return divided(sizes, backwards[::-1], limits)[::-1]
    return divided(sizes, backwards, limits)


def divided(sizes, order, limits):
    """A bucket is full when it reaches its limit; no gradient is cut."""
    buckets, filled = [[]], 0
    for i in order:
        if filled >= limits[min(len(buckets) - 1, 1)]:
            buckets.append([])
            filled = 0
        buckets[-1].append(i)
        filled += sizes[i]
    return buckets


def singles(sizes):
    return [[i] for i in range(len(sizes))][::-1]


# ---- when they travel


def delays(inputs):
    return [0.0, inputs["late"]] if inputs["late"] and inputs["ranks"] > 1 else [0.0]


def timed(sizes, buckets, inputs):
    """sums: [begin, end] of each all-reduce. waits: [since when, begin] on each rank drawn, of all-reduces that could not begin."""
    late, one, free, sums, ready = delays(inputs), inputs["backward"], 0.0, [], 0.0
    waits = [[] for _ in late]
    for bucket in buckets:
        ready = max(
            ready, 0.5 * len(sizes) * one + (len(sizes) - min(bucket)) * one
        )  # in order, so never before the last one
        begin = max(free, ready + late[-1])
        for rank, delay in enumerate(late):
            waits[rank].append([max(free, ready + delay), begin])
        free = begin + milliseconds(sum(sizes[i] for i in bucket), inputs)
        sums.append([begin, free])
    backward = 1.5 * len(sizes) * one + late[-1]
    moving = sum(end - begin for begin, end in sums)
    behind = sum(max(0.0, min(end, backward) - begin) for begin, end in sums)
    return {"sums": sums, "waits": waits, "end": max(free, backward), "hidden": behind / moving if moving else 1.0}


def milliseconds(size, inputs):
    """Of an all-reduce by whichever is quickest: the ring, recursive doubling, or halving and doubling."""
    n, latency, byte = inputs["ranks"], inputs["latency"] / 1000, 1e-6 / inputs["bandwidth"]
    if n == 1:
        return 0.0
    rounds = math.floor(math.log2(n))
    power = 2**rounds
    message = latency + byte * size
    fold = 0.0 if power == n else 2 * message
    return min(
        2 * (n - 1) * (latency + byte * size / n),
        rounds * message + fold,
        2 * (rounds * latency + byte * size * (power - 1) / power) + fold,
    )


# ---- words


def sentence(result, inputs, computing):
    count, sizes = len(result["buckets"]), result["bytes"]
    drawn = f"{count} bucket{'' if count == 1 else 's'} of {volumes(sizes)}. "
    if inputs["ranks"] == 1:
        return f"{drawn}A single rank has nothing to sum: {time(computing)}."
    return (
        f"{drawn}{percent(result['hidden'])} of the communication is hidden behind backward. The step takes {time(result['end'])}; "
        f"it would take {time(computing + delays(inputs)[-1])} without communication, {time(result['whole'])} with one bucket for all, "
        f"and {time(result['single'])} with one for each layer."
    )


def volumes(sizes):
    low, high = volume(min(sizes)), volume(max(sizes))
    return low if low == high else f"{low} to {high}"


def volume(count):
    return f"{digits(count / MIB)} MiB" if count >= MIB else f"{digits(count / KIB)} KiB"


def digits(x):
    """Three or more digits, the same in both languages."""
    unit = 1 if x >= 100 else 10 if x >= 10 else 100
    parts = math.floor(unit * x + 0.5 + 1e-9)
    whole, rest = divmod(parts, unit)
    return f"{whole:,}" + (f".{rest:0{len(str(unit)) - 1}}".rstrip("0") if rest else "")


def time(ms):
    return f"{digits(ms)} ms"


def percent(share):
    return f"{math.floor(100 * share + 0.5 + 1e-9)} %"


# ---- the still picture


def picture(result, step):
    rows = []
    for (begin, end), waits, who in zip(result["computes"], result["waits"], ("rank 0", "last")):
        rows.append((who, [(begin, begin + result["forward"], "pale"), (begin + result["forward"], end, "pick")]))
        rows.append(
            (
                "sums",
                [(*wait, "free") for wait in waits if wait[0] < wait[1]] + [(*one, "gold") for one in result["sums"]],
            )
        )
    return lanes(rows, result["end"], lambda row, kind: kind)


def sample(random):
    return {
        "layers": [random.randint(1, 9000) for _ in range(random.randint(1, 16))],
        "cap": random.choice([0.25, 0.5, 1, 2, 25, 25, random.uniform(0.01, 40)]),
        "backward": random.uniform(0.1, 40),
        "ranks": random.choice([1, 2, 3, 4, 8, 48, 64, 1000]),
    }


FIGURE = Figure(
    name="gradient_buckets",
    title="One step of DDP, computed",
    inputs=(
        Integers("layers", "gradients, KiB", [256] * 8, low=1, high=1_000_000, longest=16, shortest=1, hint="one a layer, from the first layer on"),
        Choice("iteration", "iteration", LATER, STEPS),
        Number("cap", "bucket_cap_mb", 0.25, low=0.001, high=1000, step=0.25, hint="MiB; 25 is the default; then the first bucket has 1 MiB"),
        Integer("ranks", "ranks", 4, low=1, high=1024),
        Number("latency", "latency", 200, low=0, high=100_000, unit="µs", step=100, hint="of one message"),
        Number("bandwidth", "bandwidth", 0.1, low=0.001, high=1000, unit="GB/s", step=0.1, hint="of a rank's line"),
        Number("backward", "backward a layer", 8, low=0.001, high=1000, unit="ms", step=1, hint="forward takes half of it"),
        Number("late", "last rank late by", 0, low=0, high=1000, unit="ms", step=5),
    ),
    model=model,
    picture=picture,
    helpers=("_lanes",),
    sample=sample,
)  # fmt: skip
