"""Attention in tiles: which tiles of the scores are computed, what moves, and one query's softmax (the chapter "Attention").

In PyTorch: `aten/src/ATen/native/cpu/FlashAttentionKernel.cpp`. The bytes are those of the loops of FlashAttention-2,
queries outside. `tests/viz/test_attention_tiles.py` compares the numbers with torch, and the bytes with loops that count.
"""

import math

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Integer, Refusal
from readtorch.viz.picture import box, drawing, text

MOST = 256  # tiles in a row or a column
SHOWN = 8  # scores of a tile that are shown one by one
BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
MASKS = {"none": "none", "causal": "causal", "window": "sliding window"}


def model(inputs):
    queries, keys, head = inputs["queries"], inputs["keys"], inputs["head"]
    rows, columns = min(inputs["rows"], queries), min(inputs["columns"], keys)
    down, across = -(-queries // rows), -(-keys // columns)
    if down > MOST or across > MOST:
        raise Refusal(
            f"That makes {down:,} times {across:,} tiles; the figure draws up to {MOST} of each. Take larger blocks."
        )
    reach = reach_of(inputs["mask"], inputs["window"], queries)
    ranges = [tiles_of(r, rows, columns, queries, keys, across, reach) for r in range(down)]
    fetched = sum(min(end * columns, keys) - min(first * columns, keys) for first, end, _, _ in ranges)
    size = BYTES[inputs["dtype"]]
    plain = size * (2 * queries * head + 2 * keys * head + 4 * queries * keys)
    tiled = size * (2 * queries * head + 2 * head * fetched) + 4 * queries
    need = size * (rows + 2 * columns) * head + 4 * (rows * columns + rows * head + 2 * rows)
    block = min(inputs["block"], down - 1)
    query = min((block + 1) * rows, queries) - 1
    states = steps_of(query, ranges[block], columns, keys, reach, inputs["seed"])
    result = {
        "rows": rows,
        "columns": columns,
        "down": down,
        "across": across,
        "ranges": ranges,
        "computed": sum(end - first for first, end, _, _ in ranges),
        "masked": sum(end - first - (whole_end - whole) for first, end, whole, whole_end in ranges),
        "plain": plain,
        "tiled": tiled,
        "scores": size * queries * keys,
        "need": need,
        "fits": need <= inputs["chip"] * 1024,
        "block": block,
        "query": query,
        "states": states,
    }
    return result | {"say": sentences(result)}


def reach_of(mask, window, queries):
    """How far a query looks: (the smallest, the largest) difference of positions, query minus key, that is visible."""
    return {"none": (-math.inf, math.inf), "causal": (0, math.inf), "window": (0, window - 1)}[mask]


def tiles_of(row, rows, columns, queries, keys, across, reach):
    """[first, end, first, end]: the tiles of a row of tiles that are computed, and those among them that need no mask."""
    low, high = row * rows, min((row + 1) * rows, queries) - 1
    some, whole = [], []
    for c in range(across):
        left, right = c * columns, min((c + 1) * columns, keys) - 1
        if low - right <= reach[1] and high - left >= reach[0]:
            some.append(c)
            if low - right >= reach[0] and high - left <= reach[1]:
                whole.append(c)
    return [*ends(some), *ends(whole)]


def ends(tiles):
    return [tiles[0], tiles[-1] + 1] if tiles else [0, 0]


# ---- one query: invented scores and values, and what becomes of them


def score(query, key, seed):
    """Spread like a sum of dice, so that large scores are rare, and with them a new maximum."""
    x = (query * 7919 + key * 10_007 + seed * 31_337 + 1) % 65_521
    x = x * x % 65_521 * 40_503 % 65_521
    return (x % 8 + x // 8 % 8 + x // 64 % 8 + x // 512 % 8 + x // 4096 % 8) / 4 - 4.5


def value(key):
    return (key * 3 + 1) % 10


def steps_of(query, tiles, columns, keys, reach, seed):
    """The query's maximum, sum and output before the first tile and after each; None is -infinity."""
    top, total, out = None, 0.0, 0.0
    states = [
        {
            "tile": None,
            "keys": 0,
            "scores": [],
            "largest": None,
            "before": None,
            "top": None,
            "factor": 1.0,
            "total": 0.0,
            "out": 0.0,
        }
    ]
    for tile in range(tiles[0], tiles[1]):
        places = range(tile * columns, min((tile + 1) * columns, keys))
        seen = [j for j in places if reach[0] <= query - j <= reach[1]]
        before, largest = top, max((score(query, j, seed) for j in seen), default=None)
        top = largest if before is None else before if largest is None else max(before, largest)
        factor = 1.0 if largest is None else 0.0 if before is None else math.exp(before - top)
        weights = [math.exp(score(query, j, seed) - top) for j in seen]
        total = total * factor + sum(weights)
        out = out * factor + sum(w * value(j) for w, j in zip(weights, seen))
        shown = [score(query, j, seed) if j in seen else None for j in places] if len(places) <= SHOWN else []
        states.append(
            {
                "tile": tile,
                "keys": len(places),
                "scores": shown,
                "largest": largest,
                "before": before,
                "top": top,
                "factor": factor,
                "total": total,
                "out": out,
            }
        )
    return states


# ---- words


def sentences(result):
    rows, query, states = result["rows"], result["query"], result["states"]
    first = result["block"] * rows
    named = f"query {first}" if first == query else f"queries {first} to {query}"
    tiles = result["down"] * result["across"]
    rises = sum(state["before"] is not None and state["top"] > state["before"] for state in states)
    begin = (
        f"{result['computed']:,} of {tiles:,} tiles are computed. Tiles move {amount(result['tiled'])} a head, the plain form "
        f"{amount(result['plain'])}. Now {named}, {count_tiles(len(states) - 1)}; query {query} is followed: "
        f"after its first tile the maximum rises {times(rises)}."
    )
    said = [begin]
    for state in states[1:]:
        said.append(told(state, result["columns"]))
    last = states[-1]
    if last["top"] is None:
        return [*said, f"Query {query} sees no key: its sum is 0, and the kernel writes 0."]
    return [
        *said,
        f"Divided by the sum {number(last['total'])}, the output of query {query} is {number(last['out'] / last['total'])}; "
        f"its logsumexp, {number(last['top'])} + log {number(last['total'])} = {number(last['top'] + math.log(last['total']))}, is kept for backward.",
    ]


def count_tiles(n):
    return "no tile" if n == 0 else "one tile" if n == 1 else f"{n} tiles"


def times(n):
    return "never" if n == 0 else "once" if n == 1 else f"{n} times"


def told(state, columns):
    left = state["tile"] * columns
    right = left + state["keys"] - 1
    where = f"Key {left}" if left == right else f"Keys {left} to {right}"
    if state["largest"] is None:
        return f"{where}: this query may see none of them, and nothing changes."
    if state["before"] is None:
        return f"{where}: the maximum is {number(state['top'])}, the sum {number(state['total'])}."
    if state["top"] > state["before"]:
        return (
            f"{where}: the maximum rises from {number(state['before'])} to {number(state['top'])}. What was collected is multiplied by "
            f"{number(state['factor'])}; with this tile the sum is {number(state['total'])}."
        )
    return f"{where}: the maximum stays {number(state['top'])}, nothing is rescaled; with this tile the sum is {number(state['total'])}."


def number(x):
    return f"{x:.4f}"


def amount(n):
    """Bytes in words; rounded half up, in whole tenths."""
    for unit, name in ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB")):
        if n >= unit:
            tenths = math.floor(n * 10 / unit + 0.5)
            return f"{tenths // 10:,}.{tenths % 10} {name}"
    return f"{n} bytes"


# ---- the still picture


def picture(result, step):
    width, height = 240 / result["across"], 240 / result["down"]
    parts = []
    for r, (first, end, whole, whole_end) in enumerate(result["ranges"]):
        y = 10 + r * height
        if first > 0:
            parts.append(box(10, y, first * width, height, "free"))
        if end < result["across"]:
            parts.append(box(10 + end * width, y, (result["across"] - end) * width, height, "free"))
        for c in range(first, end) if result["across"] <= 32 else []:
            parts.append(box(10 + c * width, y, width, height, "pick" if whole <= c < whole_end else "pale"))
        if result["across"] > 32 and end > first:
            parts.append(box(10 + first * width, y, (end - first) * width, height, "pale"))
    state = result["states"][min(step, len(result["states"]) - 1)]
    if state["tile"] is not None:
        parts.append(box(10 + state["tile"] * width, 10 + result["block"] * height, width, height, "gold"))
    lines = [
        f"plain form, all in one dtype: {amount(result['plain'])} a head",
        f"tiles: {amount(result['tiled'])} a head",
        f"scores: {amount(result['scores'])} a head",
        f"a tile on the chip: {amount(result['need'])}" + ("" if result["fits"] else ", too much"),
    ]
    words = [text(line, 270, 30 + 24 * i) for i, line in enumerate(lines)]
    return drawing(560, 260, *parts, *words)


def sample(random):
    lengths = {name: random.choice([1, 2, 7, 8, 12, 100, 1000, 4096]) for name in ("queries", "keys")}
    blocks = {name: random.choice([1, 2, 3, 5, 16, 64, 128, 512]) for name in ("rows", "columns")}
    return (
        lengths
        | blocks
        | {
            "window": random.choice([1, 2, 5, 100]),
            "block": random.choice([0, 0, 1, 3, 200]),
            "seed": random.choice([0, 2, 999]),
        }
    )


FIGURE = Figure(
    name="attention_tiles",
    title="Attention in tiles",
    inputs=(
        Integer("queries", "queries", 8, low=1, high=65_536),
        Integer("keys", "keys", 8, low=1, high=65_536),
        Integer("head", "head dimension", 4, low=1, high=1024),
        Integer("rows", "queries a block", 4, low=1, high=8192),
        Integer("columns", "keys a block", 2, low=1, high=8192),
        Choice("dtype", "dtype", "float32", options=list(BYTES)),
        Choice("mask", "mask", "none", options=MASKS),
        Integer("window", "window", 4, low=1, high=65_536, hint="how many keys a query sees in a sliding window: its own and those before", only=("mask", "window")),
        Integer("chip", "KiB on chip", 192, low=1, high=1_000_000, hint="memory for one tile: 192 is an A100's multiprocessor"),
        Integer("seed", "seed", 0, low=0, high=999, hint="the scores are invented; another number, other scores"),
        Integer("block", "row of tiles", 0, low=0, high=255, hidden=True, undone=True),
    ),
    model=model,
    picture=picture,
    hint="Click in the matrix, or use its arrow keys, to choose another row of tiles.",
    sample=sample,
)  # fmt: skip
