"""What a kernel can reach: the roofline of a chip, and how much of it the resident threads can keep busy (the chapter
"Fast kernels").

The chips' numbers are NVIDIA's data sheets', without sparsity. The time that memory takes to answer is assumed, as in
benchmarks/sass.py, and so is that of the shortest kernel; `tests/viz/test_roofline.py` compares the resident blocks with NVIDIA's own example.
"""

import math
from typing import NamedTuple

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Integer, Refusal
from readtorch.viz.picture import box, drawing, tag, text


class Chip(NamedTuple):
    name: str
    multiprocessors: int
    shared: int  # KiB of a multiprocessor
    bandwidth: float  # GB/s
    peak: dict  # units -> TFLOP/s


FMA, TF32, BF16 = "fma", "tf32", "bf16"
CHIPS = {
    "h100": Chip("H100 SXM", 132, 228, 3350.0, {FMA: 66.9, TF32: 494.7, BF16: 989.4}),
    "a100": Chip("A100 80 GB", 108, 164, 2039.0, {FMA: 19.5, TF32: 156.0, BF16: 312.0}),
}
UNITS = {FMA: "float32", TF32: "TF32, tensor cores", BF16: "bfloat16, tensor cores"}
NAMES = {FMA: "float32 units", TF32: "TF32 tensor cores", BF16: "bfloat16 tensor cores"}
DTYPES = {"float32": "float32", "bfloat16": "bfloat16"}
BYTES = {FMA: 4, TF32: 4, BF16: 2, "float32": 4, "bfloat16": 2}  # of an element
LATENCY = 0.6  # µs until memory answers (assumed)
SHORTEST = 2.0  # µs of a kernel that does nothing (assumed)
WARP, WARPS, BLOCKS, QUARTERS, REGISTERS = 32, 64, 32, 4, 16384  # of a multiprocessor; registers of a quarter of it
MOST = 255  # registers of a thread
ADD, SOFTMAX, MATMUL, SCORES, FLASH = "add", "softmax", "matmul", "scores", "flash"
WORK = {
    ADD: "x + y, n × n",
    SOFTMAX: "softmax, n × n",
    MATMUL: "a @ b, n × n",
    SCORES: "attention, scores in memory",
    FLASH: "attention, tile by tile",
}
PRODUCTS = (MATMUL, SCORES, FLASH)  # what tensor cores can do
HEAD, ROWS = 64, 128  # of attention: numbers of a query, queries of a block
DEEP = 16  # numbers along the sum in a tile


def model(inputs):
    chip, threads = CHIPS[inputs["chip"]], inputs["threads"]
    units = inputs["units"] if inputs["work"] in PRODUCTS else FMA
    size = BYTES[units if inputs["work"] in PRODUCTS else inputs["dtype"]]
    flops, moved = cost(inputs["work"], inputs["n"], int(inputs["tile"]), size)
    read = moved - written(inputs["work"], inputs["n"], size)
    if inputs["work"] == MATMUL:
        results_in_registers(int(inputs["tile"]), threads, inputs["registers"])
    shared = max(inputs["shared"], for_tiles(inputs["work"], int(inputs["tile"]), size))
    blocks, limit = resident_blocks(threads, inputs["registers"], shared, chip.shared)
    if blocks == 0:
        raise Refusal(f"Not one block fits on a multiprocessor; limited by {limit}.")
    grid = grid_of(inputs["work"], inputs["n"], int(inputs["tile"]), threads)
    busiest = -(-grid // chip.multiprocessors)  # blocks of one multiprocessor, one after the other or together
    idle = busiest * chip.multiprocessors / grid if grid else 1.0  # how many times as long, since some have fewer
    if grid and busiest < blocks:
        blocks, limit = busiest, "the number of blocks"
    warps = blocks * -(-threads // WARP)
    asked = blocks * threads * int(inputs["asked"]) / 1024
    needed = chip.bandwidth * LATENCY / chip.multiprocessors * 1000 / 1024 * read / moved * idle  # stores go unawaited
    kept = min(1.0, asked / needed)
    peak = chip.peak[units]
    moving, computing = moved / (chip.bandwidth * 1000), flops / (peak * 1000000) * idle  # µs
    limits = {"memory": moving, "latency": moving * needed / asked, "arithmetic": computing, "launch": SHORTEST}
    slowest = max(limits.values())
    result = {
        "flops": flops,
        "bytes": moved,
        "intensity": flops / moved,
        "ridge": peak * 1000 / chip.bandwidth,
        "peak": peak,
        "bandwidth": chip.bandwidth,
        "kept": kept,
        "blocks": blocks,
        "warps": warps,
        "shared": shared,
        "grid": grid,
        "busiest": busiest,
        "idle": idle,
        "limit": limit,
        "asked": asked,
        "needed": needed,
        "moving": moving / kept,
        "computing": computing,
        "reached": flops / slowest / 1000000,  # TFLOP/s
        "limits": limits,
        "bound": next(name for name, time in limits.items() if time == slowest),
    }
    return result | {"say": sentence(result, inputs, NAMES[units])}


# ---- the work


def cost(work, n, tile, size):
    """(operations, bytes moved between the chip's memory and its multiprocessors). An exp counts as one operation."""
    if work == ADD:
        return n * n, 3 * n * n * size
    if work == SOFTMAX:
        return 5 * n * n, 2 * n * n * size
    if work == MATMUL:
        return 2 * n * n * n, (2 * n * n * -(-n // tile) + n * n) * size
    operations, ends = 4 * n * n * HEAD + 5 * n * n, 4 * n * HEAD
    if work == SCORES:  # written, read, written as probabilities, read
        return operations, (ends + 4 * n * n) * size
    return operations, (2 * n * HEAD + 2 * n * HEAD * -(-n // ROWS)) * size  # keys and values again for each block


def grid_of(work, n, tile, threads):
    """How many blocks a product has; 0: not counted, as of work that takes any number of blocks, or of many heads."""
    if work != MATMUL:
        return 0
    return -(-n * n // threads) if tile == 1 else (-(-n // tile)) ** 2


def for_tiles(work, tile, size):
    """KiB of shared memory that a block needs for a tile of each matrix, DEEP numbers along the sum."""
    return -(-2 * tile * DEEP * size // 1024) if work == MATMUL and tile > 1 else 0


def written(work, n, size):
    """How many of the bytes moved are stores."""
    return size * {SCORES: n * HEAD + 2 * n * n, FLASH: n * HEAD}.get(work, n * n)


# ---- what fits on a multiprocessor


def results_in_registers(tile, threads, registers):
    """A block's threads keep the sums of its tile in their registers."""
    each, all_of_them = -(-tile * tile // threads), QUARTERS * REGISTERS
    if tile * tile >= all_of_them:
        raise Refusal(
            f"{tile} × {tile} results are {tile * tile:,}, as many as a multiprocessor has registers: whatever the number of threads, none is left for anything else."
        )
    if each >= registers:
        advice = (
            f"give it about {min(2 * each, MOST)}"
            if each < MOST
            else f"no thread has more than {MOST}, so take more threads"
        )
        raise Refusal(
            f"{tile} × {tile} results are {each:,} for each of {threads} threads, too many for its {registers} registers: {advice}."
        )


def resident_blocks(threads, registers, shared, memory):
    """(how many blocks, what allows no more). shared: KiB of a block; memory: KiB of the multiprocessor."""
    warps = -(-threads // WARP)
    of_a_warp = -(-WARP * registers // 256) * 256  # registers are given 256 at a time
    limits = [
        (BLOCKS, "places for blocks"),
        (WARPS // warps, "places for warps"),
        (QUARTERS * (REGISTERS // of_a_warp) // warps, "registers"),
        (memory // (shared + 1), "shared memory"),  # one of each block is the system's
    ]
    return min(limits, key=lambda limit: limit[0])


# ---- words


def sentence(result, inputs, units):
    slowest, bound = result["limits"][result["bound"]], result["bound"]
    why = "as long as the shortest kernel" if bound == "launch" else f"bound by {bound}"
    waits = (
        "enough to keep memory busy"
        if result["kept"] == 1
        else f"too few, {short(result['needed'])} would keep memory busy"
    )
    memory = f" and {result['shared']} KiB of shared memory" if result["shared"] else ""
    return (
        f"{duration(slowest)}, {why}: {short(result['reached'])} TFLOP/s, {percent(result['reached'] / result['peak'])} of the {units}, if every byte comes from memory. "
        f"{short(result['intensity'])} operations a byte; the corner lies at {short(result['ridge'])}. "
        f"{plural(result['blocks'], 'block')} of {inputs['threads']} threads{memory} at a time on a multiprocessor, {result['warps']} of {WARPS} warps "
        f"({percent(result['warps'] / WARPS)}), limited by {result['limit']}. {filling(result)}They ask for {short(result['asked'])} KiB at once: {waits}."
    )


def filling(result):
    """How well a product's blocks fill the chip."""
    if not result["grid"]:
        return ""
    return f"{plural(result['grid'], 'block')} in all, at most {result['busiest']:,} for a multiprocessor: {percent(1 / result['idle'])} of the chip has work. "


def short(x):
    """Three digits or so, the same in both languages."""
    if x >= 100:
        return f"{int(x + 0.5):,}"
    if x >= 10:
        tenths = int(10 * x + 0.5)
        return f"{tenths // 10}.{tenths % 10}"
    hundredths = int(100 * x + 0.5)
    return f"{hundredths // 100}.{hundredths % 100:02}"


def duration(us):
    if us >= 1000:
        return f"{short(us / 1000)} ms"
    return f"{short(us)} µs" if us >= 0.1 else f"{short(us * 1000)} ns"


def percent(share):
    return "under 1 %" if 0 < share < 0.005 else f"{int(100 * share + 0.5 + 1e-9)} %"


def plural(n, word):
    return f"{n:,} {word}" + ("" if n == 1 else "s")


# ---- the still picture

LEFT, RIGHT, LOW, HIGH = -2.0, 4.0, -2.0, 3.5  # powers of ten: operations a byte, TFLOP/s


def across(intensity):
    return 40 + 300 * (min(max(math.log10(intensity), LEFT), RIGHT) - LEFT) / (RIGHT - LEFT)


def down(tflops):
    return 10 + 150 * (HIGH - min(max(math.log10(tflops), LOW), HIGH)) / (HIGH - LOW)


def picture(result, step):
    low, ridge, peak = 10**LEFT, result["ridge"], result["peak"]
    corner = f"L{across(ridge):.1f} {down(peak):.1f} L340 {down(peak):.1f}"
    start = down(low * result["bandwidth"] / 1000)
    parts = [
        box(40, 10, 300, 150, "bare"),
        tag("path", d=f"M40 {start:.1f} {corner}", class_="bare"),
        tag("circle", cx=f"{across(result['intensity']):.1f}", cy=f"{down(result['reached']):.1f}", r=5, class_="pick"),
        text("operations a byte (10⁻² … 10⁴)", 190, 176, "dim mid"),
        text("TFLOP/s", 44, 24, "dim"),
    ]
    for warp in range(WARPS):
        parts.append(
            box(350 + warp % 4 * 11, 10 + warp // 4 * 9.5, 10, 8, "pick" if warp < result["warps"] else "free")
        )
    return drawing(400, 184, *parts)


def sample(random):
    return {
        "n": random.choice([64, 100, 1024, 4096, 65536]),
        "threads": random.choice([32, 33, 128, 256, 320, 1000, 1024]),
        "registers": random.choice([16, 32, 37, 64, 128, 255]),
        "shared": random.choice([0, 1, 16, 48, 100, 163, 227]),
    }


FIGURE = Figure(
    name="roofline",
    title="What a kernel can reach",
    inputs=(
        Choice("chip", "chip", "h100", {name: chip.name for name, chip in CHIPS.items()}),
        Choice("work", "work", MATMUL, WORK, hint=f"attention: one head of {HEAD}, n queries and n keys"),
        Integer("n", "n", 4096, low=64, high=65536),
        Choice("tile", "tile", "1", {side: f"{side} × {side}" for side in ("1", "16", "32", "64", "128", "256")}, only=("work", MATMUL),
               hint="results that share what a block has read"),
        Choice("units", "computed in", FMA, UNITS, only=("work", *PRODUCTS)),
        Choice("dtype", "numbers", "float32", DTYPES, only=("work", ADD, SOFTMAX)),
        Integer("threads", "threads a block", 256, low=32, high=1024),
        Integer("registers", "registers a thread", 32, low=16, high=MOST),
        Integer("shared", "shared KiB a block", 0, low=0, high=227, hint=f"at least a tile of each matrix, {DEEP} numbers deep"),
        Choice("asked", "asked for at once", "16", {n: f"{n} bytes a thread" for n in ("4", "8", "16", "32", "64", "128")}),
    ),
    model=model,
    picture=picture,
    sample=sample,
)  # fmt: skip
