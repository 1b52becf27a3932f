"""Which elements a thread of PyTorch's pointwise kernel works on (the chapter "CUDA kernels with numba").

The rules are those of vectorized_elementwise_kernel and unrolled_elementwise_kernel (CUDALoops.cuh) with their policies
(MemoryAccess.cuh). `tests/viz/test_block_elements.py` runs such a kernel on the simulator and compares; it also looks the
constants up in the headers.
"""

from typing import NamedTuple

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Integer
from readtorch.viz.picture import box, drawing, text

THREADS, WARP = 128, 32


class Way(NamedTuple):
    words: str
    vector: int  # elements that one load of a thread moves
    each: int  # elements a thread


WAYS = {
    "float32": Way("float32, aligned", 4, 8),
    "float64": Way("float64, aligned", 2, 8),
    "float16": Way("float16, aligned, on an H100", 8, 8),
    "x[2:]": Way("x[2:] of float32", 2, 8),
    "x[1:]": Way("x[1:] of float32", 1, 4),
    "fill_": Way("fill_(True) of bool, on an H100", 8, 16),
}


def model(inputs):
    way, n, thread = WAYS[inputs["operands"]], inputs["n"], inputs["thread"]
    size = way.each * THREADS
    blocks = -(-n // size)
    shown = [block(number, min(size, n - number * size), way, thread) for number in sorted({0, blocks - 1})]
    result = {"blocks": blocks, "size": size, "each": way.each, "vector": way.vector, "thread": thread, "shown": shown}
    return result | {"say": sentence(n, result)}


def block(number, held, way, thread):
    """tested: whether each element is asked for. pieces, warp: (start, end) in the block, of the thread's and the warp's loads."""
    tested = held < way.each * THREADS or way.vector == 1
    width = 1 if tested else way.vector
    first = thread // WARP * WARP
    return {
        "number": number,
        "held": held,
        "tested": tested,
        "pieces": pieces(thread, 1, width, way.each, held),
        "warp": pieces(first, WARP, width, way.each, held),
    }


def pieces(first, threads, width, each, held):
    """Where the loads of these neighbouring threads lie, one after the other, as far as there are elements."""
    starts = [(first + THREADS * load) * width for load in range(each // width)]
    return [[start, min(start + threads * width, held)] for start in starts if start < held]


def sentence(n, result):
    blocks, shown = result["blocks"], result["shown"]
    whole = (
        f"{plural(n, 'element')}: {plural(blocks, 'block')} of {THREADS} threads, {result['each']} elements a thread. "
    )
    parts = [
        f"In block {one['number']:,}, which has {one['held']:,}, thread {result['thread']} {loads(one, result)}."
        for one in shown
    ]
    return whole + " ".join(parts)


def loads(one, result):
    if not one["tested"]:
        return f"moves {plural(len(one['pieces']), 'vector')} of {result['vector']}, without a test"
    return f"tests {result['each']} places and finds {plural(len(one['pieces']), 'element')}"


def plural(n, word):
    return f"{n:,} {word}" + ("" if n == 1 else "s")


# ---- the still picture


def picture(result, step):
    rows, high, parts = result["each"], 9, []
    for place, one in enumerate(result["shown"]):
        top = 22 + place * (rows * high + 30)
        parts.append(text(f"block {one['number']:,}: {plural(one['held'], 'element')}", 8, top - 6, "dim"))
        parts.append(box(8, top, 3 * THREADS, rows * high, "free"))
        for kind, spans in (("", [[0, one["held"]]]), ("pale", one["warp"]), ("pick", one["pieces"])):
            parts += [box(8 + 3 * x, top + y * high, 3 * w, high, kind) for x, y, w in in_rows(spans)]
    return drawing(400, 22 + len(result["shown"]) * (rows * high + 30), *parts)


def in_rows(spans):
    """(column, row, width) of each span, cut at the ends of rows of 128."""
    for start, end in spans:
        while start < end:
            stop = min(end, (start // THREADS + 1) * THREADS)
            yield start % THREADS, start // THREADS, stop - start
            start = stop


def sample(random):
    return {"n": random.choice([1, 100, 128, 511, 1024, 1025, 2048, 2500, 4096, random.randint(1, 1 << 26)])}


FIGURE = Figure(
    name="block_elements",
    title="Which elements a thread works on",
    inputs=(
        Integer("n", "elements", 2500, low=1, high=1 << 26),
        Choice("operands", "operands", "float32", {name: way.words for name, way in WAYS.items()}),
        Integer("thread", "thread", 0, low=0, high=THREADS - 1, slider=True),
    ),
    model=model,
    picture=picture,
    sample=sample,
)  # fmt: skip
