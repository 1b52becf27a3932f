"""python -m benchmarks.sass_products: the machine code of matrix products, convolutions and attention, and what it allows.
Needs no GPU.

    python -m benchmarks.sass_products            every case; the table goes to benchmarks/results/gpu/sass_products.json
    python -m benchmarks.sass_products tensor     cases whose name contains one of these words, printed only

Note [ What a product's machine code allows ]
These kernels do arithmetic, and what counts is the loop over K: what a warp does for one step of it. A scheduler of an H100
(there are 528) starts one instruction a cycle. So the share of FFMA among the instructions of a step bounds what part of the
chip's peak of float32 the kernel can reach. A tensor core does 512 multiply-adds of 16-bit numbers a cycle, half as many of
TF32, so it needs 4 cycles for an `mma`; started by `mma.sync` it reaches 62 % of that (as is reported for Hopper; `wgmma`
reaches the rest). The bound is that, or the tensor core's cycles for each instruction of the step. Both say nothing of
waiting: for memory, at barriers, for shared memory. Nothing here is a measurement.

All this is counted in cycles, so a bound is a share of the peak at any clock. TFLOP/s are that share of the data sheet's
numbers (without sparsity), which belong to two clocks: 66.9 of float32 to 1.98 GHz, 989 of 16-bit numbers to 1.83 GHz.

How often an inner loop runs is not in the code, but a step's FFMA are known: 16 for each result of a thread.

Note [ What attention's machine code allows ]
Its loop over tiles of keys has the products, and between them the softmax. Four things are busy in it: the tensor core; shared
memory, which gives a multiprocessor 128 bytes a cycle, so that a scheduler may have 512 (an `ldmatrix` of four, or a store of 16
bytes a lane) every 16 cycles; the unit for exp2, which takes 8 cycles for a warp; and the scheduler itself. If warps overlapped
perfectly, the busiest would be the bound: "of the peak". If nothing overlapped, all would add up: "TFLOP/s at least", as far as
nobody waits for memory or at a barrier. What it is compared with is FlashAttention-2 on an H100, forward, head dimension 128, no
mask, 16,384 positions: 370 TFLOP/s (J. Shah and others: FlashAttention-3, 2024, arXiv 2407.08608, figure 5). Its warps have 32 queries each
where ours have 16 at this head dimension, so its loads serve twice as many `mma`, and its own bound is that of `mma.sync`.
Counted is the shorter of our two loops, over tiles of which every key is seen; a causal mask sends the last one to three tiles
of a block through the other one.
"""

import argparse
import collections
import functools
import typing

import ml_dtypes
import numpy as np

from benchmarks import record, sass
from benchmarks.sass_loops import loops
from readtorch.aten.float32_precision import float32_precision
from readtorch.aten.native.cuda import conv_shared, cuda_blas
from readtorch.aten.native.transformers.cuda.flash_attn import flash_api

PEAK = {"FFMA": 66.9, "TF32": 495, "halves": 989, "attention": 989}  # TFLOP/s
CYCLES_OF_MMA, BY_MMA_SYNC = 4, 0.62
CYCLES_OF_SHARED, CYCLES_OF_EXP = 16, 8
FLASH_ATTENTION_2 = 370  # TFLOP/s: Note [ What attention's machine code allows ]
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


def attention():
    for name, numbers, causal in (("128", 128, False), ("128 causal", 128, True), ("64", 64, False)):
        x, logsumexp = room(4, 16, SIDE, numbers, dtype=ml_dtypes.bfloat16), room(4, 16, SIDE)
        yield f"attention forward {name}", Case("attention", flash_api.mha_fwd, (x, x, x, x, logsumexp, 0.1, causal))


def cases():
    return dict([*products(), *convolutions(), *attention()])


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
    if unit == "attention":
        return CYCLES_OF_MMA * counts["HMMA"] / max(busy(counts).values())
    return min(BY_MMA_SYNC, CYCLES_OF_MMA * counts["HMMA"] / started)


def busy(counts):
    """Cycles of a scheduler for a step of attention, by what is busy in them."""
    shared = counts["LDSM"] + counts["STS"] + counts["LDS"]
    return {
        "tensor core": CYCLES_OF_MMA * counts["HMMA"] / BY_MMA_SYNC,
        "shared memory": CYCLES_OF_SHARED * shared,
        "exp2": CYCLES_OF_EXP * counts["MUFU"],
        "scheduler": sum(counts.values()),
    }


def compared(counts):
    """The lower bound of attention, and what part of FlashAttention-2 it is."""
    least = PEAK["attention"] * CYCLES_OF_MMA * counts["HMMA"] / sum(busy(counts).values())
    return {"TFLOP/s at least": round(least), "of FlashAttention-2": round(least / FLASH_ATTENTION_2, 2)}


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
        **(compared(counts) if case.unit == "attention" else {}),
    }


SHOWN = {"case": 24, "registers": 9, "spills": 6, "shared": 6, "instructions a step": 19, "FFMA": 5, "HMMA": 5,
         "of the peak": 11, "TFLOP/s at most": 15, "TFLOP/s at least": 16, "of FlashAttention-2": 19}  # fmt: skip


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
            print(" ".join(str(rows[-1].get(key, "")).ljust(width) for key, width in SHOWN.items()), flush=True)
    if not words:
        print(record.write("sass_products", rows, sass.RESULTS))


if __name__ == "__main__":
    main()
