"""What one rank holds over a training step, with copies of the model and with shards (the chapter "Shards: FSDP and DTensor").

The model is a stack of blocks, each `Linear(d, 4d)`, ReLU and `Linear(4d, d)`, trained with AdamW; its loss is a sum. A point is a
moment at which the host looks: when a block has computed forward, and when the gradients of a block's parameters and of its input
are there. Bytes are those asked for, without the allocator's rounding. `tests/viz/test_shard_memory.py` measures the same points on
simulated devices, byte by byte.
"""

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Integer
from readtorch.viz.picture import drawing, tag, text

COPIES = ("ddp", "zero1")
WORDS = {
    "ddp": "DDP with bucket views",
    "zero1": "DDP with bucket views and ZeRO-1",
    "zero2": "fully_shard, whole after forward",
    "zero3": "fully_shard",
}
OPTIMIZERS = {"foreach": "AdamW (foreach, the default)", "fused": "AdamW, fused=True"}
PRECISIONS = {"float32": "float32", "bfloat16": "bfloat16", "mixed": "mixed: bfloat16 to compute"}
BANDS = {
    "kept": "parameters kept",
    "state": "optimizer's moments",
    "temp": "optimizer's temporary",
    "grads": "gradients kept",
    "whole": "parameters while needed",
    "sent": "gradients on their way",
    "acts": "activations",
}
WIDTHS = ["128", "256", "512", "1024", "2048", "4096", "8192", "16384"]
RANKS = ["2", "4", "8", "16", "32", "64", "128"]  # each divides each width: no shard is padded


def model(inputs):
    peaks = {strategy: summed(points_of(inputs | {"strategy": strategy})) for strategy in WORDS}
    points = points_of(inputs)
    most, where = peaks[inputs["strategy"]]
    rest, limit = total(points[0]), inputs["device"] * 1e9
    fits = "fits" if most <= limit else "does not fit"
    say = (
        f"With {WORDS[inputs['strategy']]} a rank holds {amount(rest)} between steps and {amount(most)} at most "
        f"({where}); that {fits} in {inputs['device']} GB. In a step it sends {amount(traffic(inputs))}."
    )
    return {
        "points": points,
        "peaks": [[name, *peak] for name, peak in peaks.items()],
        "numbers": numbers_of(inputs) * inputs["blocks"],
        "limit": limit,
        "say": say,
    }


def summed(points):
    """(the most bytes, at which point)"""
    totals = [total(point) for point in points]
    return max(totals), points[totals.index(max(totals))]["name"]


def total(point):
    return sum(point[band] for band in BANDS)


def numbers_of(inputs):
    """Parameters of a block: two matrices and their biases."""
    width = int(inputs["width"])
    return 8 * width * width + 5 * width


def points_of(inputs):
    """A dict of bytes for each moment of a step."""
    kept, state, grads = held(inputs)
    blocks, first = inputs["blocks"], {"kept": kept, "state": state, "temp": 0, "whole": 0, "sent": 0, "acts": 0}
    shards = inputs["strategy"] not in COPIES
    rest = {**first, "grads": 0 if shards else grads}
    moments = [rest | {"name": "between steps"}]
    moments += [rest | forward(inputs, i) | {"name": f"forward, block {i + 1}"} for i in range(blocks)]
    moments.append(rest | between(inputs) | {"name": "the loss"})
    for i in reversed(range(blocks)):
        there = grads * (blocks - 1 - i) / blocks if shards else grads
        moments.append(rest | backward(inputs, i) | {"grads": there, "name": f"backward, block {i + 1}"})
    temp = state / 2 if inputs["optimizer"] == "foreach" else 0  # the roots of the second moments, all at once
    return [*moments, rest | {"grads": grads, "temp": temp, "name": "the optimizer's step"}]


def held(inputs):
    """Bytes of parameters, of the optimizer's two moments and of gradients, when all are there."""
    size, ranks = 2 if inputs["precision"] == "bfloat16" else 4, int(inputs["ranks"])
    every = numbers_of(inputs) * inputs["blocks"] * size
    if inputs["strategy"] in COPIES:
        return every, 2 * (every if inputs["strategy"] == "ddp" else size * first_part(inputs)), every
    return every // ranks, 2 * every // ranks, every // ranks


def first_part(inputs):
    """How many numbers the first rank updates: ZeroRedundancyOptimizer deals out whole tensors, the largest first, each to the
    rank that has the fewest numbers.
    """
    width, loads = int(inputs["width"]), [0] * int(inputs["ranks"])
    for numbers, each in ((4 * width * width, 2), (4 * width, 1), (width, 1)):
        for _ in range(each * inputs["blocks"]):
            loads[loads.index(min(loads))] += numbers
    return loads[0]


def sizes(inputs):
    """(bytes of a number that is computed with, of one that is kept, of one layer's activations, whether they differ)"""
    kept = 2 if inputs["precision"] == "bfloat16" else 4
    computed = 4 if inputs["precision"] == "float32" else 2
    return computed, kept, inputs["tokens"] * int(inputs["width"]), computed < kept


def forward(inputs, i):
    """When block i has computed: its input, the result of ReLU and its output are saved, as those of the blocks before."""
    computed, kept, one, mixed = sizes(inputs)
    acts = one * kept + one * computed * mixed + 5 * one * computed * (i + 1)
    block = numbers_of(inputs) * computed
    if inputs["strategy"] in COPIES:
        return {"acts": acts, "whole": block * (i + 1) * mixed}
    return {"acts": acts, "whole": block * (2 if inputs["strategy"] == "zero3" else i + 2)}


def between(inputs):
    last = forward(inputs, inputs["blocks"] - 1)
    block, biases = numbers_of(inputs) * sizes(inputs)[0], 5 * int(inputs["width"]) * sizes(inputs)[0]
    kept = {"ddp": last["whole"], "zero1": last["whole"], "zero2": block * inputs["blocks"], "zero3": 0}
    cast = (
        inputs["strategy"] in COPIES and sizes(inputs)[3]
    )  # autocast forgets its copies; those of biases nobody has saved
    return last | {"whole": kept[inputs["strategy"]] - biases * inputs["blocks"] * cast}


def backward(inputs, i):
    """When the gradients of block i are there and not yet reduced."""
    computed, kept, one, mixed = sizes(inputs)
    block, copies = numbers_of(inputs) * computed, inputs["strategy"] in COPIES
    saved = one * kept + (one * computed * (mixed + 5 * i - 1) if i else 0)
    at_input = one * (kept if copies and i == 0 else computed)
    acts = (
        saved + one * computed + at_input + 2 * computed
    )  # the output, the gradient of the input; the loss and its gradient
    if copies:
        return {"acts": acts, "whole": 8 * int(inputs["width"]) ** 2 * computed * i * mixed, "sent": 0}
    whole = block * (1 + (i if inputs["strategy"] == "zero2" else i > 0))
    return {"acts": acts, "whole": whole, "sent": block * (1 + (i < inputs["blocks"] - 1))}


def traffic(inputs):
    """Bytes that a rank sends in a step, where a ring carries each collective."""
    computed, kept, _, _ = sizes(inputs)
    every, ranks = numbers_of(inputs) * inputs["blocks"], int(inputs["ranks"])
    times = {"ddp": 2 * kept, "zero1": 3 * kept, "zero2": 2 * computed, "zero3": 3 * computed}
    return times[inputs["strategy"]] * every * (ranks - 1) / ranks


def amount(size):
    """Two digits after the point, in decimal units."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if size >= unit:
            return f"{rounded(size / unit)} {name}"
    return f"{rounded(size / 1e3)} kB"


def rounded(x):
    """As JavaScript rounds: halves up."""
    hundredths = int(x * 100 + 0.5)
    return f"{hundredths // 100}.{hundredths % 100:02}"


LOOKS = {
    "kept": "pick",
    "state": "pale",
    "temp": "pick",
    "grads": "gold",
    "whole": "gold",
    "sent": "free",
    "acts": "free",
}


def picture(result, step):
    points = result["points"]
    most, wide = max(result["limit"] * 0.05, *(total(point) for point in points)), 380 / len(points)
    parts = []
    for at, point in enumerate(points):
        y = 150
        for band, look in LOOKS.items():
            tall = 130 * point[band] / most
            y -= tall
            x = f"{10 + wide * at:.1f}"
            parts.append(tag("rect", x=x, y=f"{y:.1f}", width=f"{wide:.1f}", height=f"{tall:.1f}", class_=look))
    return drawing(400, 180, *parts, text("memory of a rank, from the beginning of a step to its end", 10, 170, "dim"))


FIGURE = Figure(
    name="shard_memory",
    title="What a rank holds over a step",
    inputs=(
        Choice("strategy", "strategy", "zero3", options=WORDS),
        Choice("precision", "precision", "mixed", options=PRECISIONS),
        Choice("optimizer", "optimizer", "foreach", options=OPTIMIZERS),
        Choice("ranks", "ranks", "8", options=RANKS),
        Integer("blocks", "blocks", 24, low=1, high=96),
        Choice("width", "width d", "4096", options=WIDTHS),
        Integer("tokens", "tokens a rank", 8192, low=1, high=1_000_000, step=1024),
        Integer("device", "GB a device", 80, low=1, high=1000, step=8),
    ),
    model=model,
    picture=picture,
    hint="A row below the curve is a strategy: press it to see its curve.",
)  # fmt: skip
