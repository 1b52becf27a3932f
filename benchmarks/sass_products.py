"""python -m benchmarks.sass_products: the machine code of matrix products and convolutions, and what it allows. Needs no GPU.

    python -m benchmarks.sass_products            every case; the table goes to benchmarks/results/gpu/sass_products.json
    python -m benchmarks.sass_products tensor     cases whose name contains one of these words, printed only

Note [ What a product's machine code allows ]
These kernels do arithmetic, and what counts is the loop over K: what a warp does for one step of it. A scheduler of an H100
(there are 528, at 1.755 GHz) starts one instruction a cycle. So the share of FFMA among the instructions of a step bounds
what part of the chip's 59 TFLOP/s of float32 the kernel can reach. A tensor core needs 3.84 cycles for an `mma` (of 495
TFLOP/s of TF32, or 989 of 16-bit numbers, without sparsity); started by `mma.sync`, by which it reaches 62 % of that (as is
reported for Hopper; `wgmma` reaches the rest). The bound is that, or the tensor core's cycles for each instruction of the
step. Both say nothing of waiting: for memory, at barriers, for shared memory. Nothing here is a measurement.

How often an inner loop runs is not in the code, but a step's FFMA are known: 16 for each result of a thread.
"""

import argparse
import collections
import functools
import typing

import numpy as np

from benchmarks import record, sass
from benchmarks.sass_loops import loops
from readtorch.aten.float32_precision import float32_precision
from readtorch.aten.native.cuda import conv_shared, cuda_blas

PEAK = {"FFMA": 59.3, "TF32": 495, "halves": 989}  # TFLOP/s
CYCLES_OF_MMA, BY_MMA_SYNC = 3.84, 0.62
RESULTS = 64  # of a thread, in tiles of 128
SIDE = 4096


class Case(typing.NamedTuple):
    unit: str  # a key of PEAK
    launcher: typing.Callable
    arguments: tuple


def room(*shape, dtype=np.float32):
    """Memory that is reserved and never written."""
    return np.zeros(shape, dtype)


def with_tf32(a, b, out):
    before = float32_precision.table
    float32_precision.table = before | {("cuda", "matmul"): "tf32"}
    try:
        cuda_blas.matmul(a, b, out)
    finally:
        float32_precision.table = before


def products():
    a = room(SIDE, SIDE)
    half = room(SIDE, SIDE, dtype=np.float16)
    for unit, launcher, x in (
        ("FFMA", cuda_blas.matmul, a),
        ("TF32", with_tf32, a),
        ("halves", cuda_blas.matmul, half),
    ):
        for name, left, right in (("nn", x, x), ("nt", x, x.T), ("tn", x.T, x), ("tt", x.T, x.T)):
            yield f"{unit} {name}", Case(unit, launcher, (left, right, x))
    odd = room(SIDE - 1, SIDE - 1)
    yield "FFMA odd", Case("FFMA", cuda_blas.matmul, (odd, odd, odd))
    bias = functools.partial(cuda_blas.matmul, finish=cuda_blas.gelu)
    yield "FFMA bias gelu", Case("FFMA", bias, (a, a.T, a, a[0]))


def convolutions():
    x, weight, how = room(32, 256, 56, 56), room(256, 256, 3, 3), ((1, 1), (1, 1), (1, 1), 1)
    yield "conv2d", Case("FFMA", conv_shared.conv2d, (x, weight, None, *how, x))
    yield "conv2d backward input", Case("FFMA", conv_shared.conv2d_backward_input, (x, weight, *how, x))
    yield "conv2d backward weight", Case("FFMA", conv_shared.conv2d_backward_weight, (x, x, *how, weight))


def cases():
    return dict([*products(), *convolutions()])


def step(instructions, labels, unit):
    """How many of each instruction a warp starts in a step of K."""
    wanted = "FFMA" if unit == "FFMA" else "HMMA"
    kinds = [sass.name_of(one).split(".")[0] for one in instructions]
    count = lambda body: collections.Counter(kinds[k] for k in body)
    steps = [body for body in loops(instructions, labels) if {wanted, "BAR"} <= set(count(body))]
    body = min(steps, key=len)
    inner = [loop for loop in loops(instructions, labels) if loop < body and count(loop)[wanted]]
    own = count(body - set().union(*inner))
    within = sum(map(count, inner), collections.Counter())
    times = (16 * RESULTS - own[wanted]) // within[wanted] if within else 0
    return own + collections.Counter({kind: times * n for kind, n in within.items()})


def bound(counts, unit):
    """What part of the chip's peak the step allows."""
    started = sum(counts.values())
    if unit == "FFMA":
        return counts["FFMA"] / started
    return min(BY_MMA_SYNC, CYCLES_OF_MMA * counts["HMMA"] / started)


def row_of(name, case):
    launch = sass.launches(case.launcher, case.arguments)[0]  # what follows adds up or copies
    registers, stack, spills, shared = sass.resources(launch)
    counts = step(*sass.machine_code(launch), case.unit)
    share = bound(counts, case.unit)
    return {
        "case": name,
        "registers": registers,
        "stack": stack,
        "spills": spills,
        "shared": shared,
        "instructions a step": sum(counts.values()),
        "FFMA": counts["FFMA"],
        "HMMA": counts["HMMA"],
        "of the peak": round(share, 2),
        "TFLOP/s at most": round(share * PEAK[case.unit]),
    }


SHOWN = {"case": 24, "registers": 9, "spills": 6, "shared": 6, "instructions a step": 19, "FFMA": 5, "HMMA": 5,
         "of the peak": 11, "TFLOP/s at most": 15}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sass_products")
    parser.add_argument("words", nargs="*")
    words = parser.parse_args().words
    if not (sass.tool("nvdisasm") and sass.tool("ptxas")):
        parser.exit(1, "nvdisasm and ptxas are needed: pip install nvidia-cuda-nvdisasm nvidia-cuda-nvcc\n")
    print(" ".join(name.ljust(width) for name, width in SHOWN.items()))
    rows = []
    for name, case in cases().items():
        if not words or any(word in name for word in words):
            rows.append(row_of(name, case))
            print(" ".join(str(rows[-1][key]).ljust(width) for key, width in SHOWN.items()), flush=True)
    if not words:
        print(record.write("sass_products", rows, sass.RESULTS))


if __name__ == "__main__":
    main()
