"""What a warp asks of memory: sectors of 32 bytes, turns of 32 banks (the chapter "CUDA kernels with numba").

The rules are those of Note [ A warp's access ] in c10/cuda/simulator/recording.py; `tests/viz/test_warp_access.py` runs a
kernel with these inputs on the simulator and compares.
"""

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Integer, Refusal
from readtorch.viz.picture import box, drawing, text

WARP, SECTOR, BANKS, WORD = 32, 32, 32, 4
ROW = BANKS * WORD  # bytes: four sectors, and every bank once
MOST_THREADS = 1024  # of a block
SIZES = {
    "1": "int8, 1 byte",
    "2": "float16, 2",
    "4": "float32, 4",
    "8": "float64, 8",
    "16": "vector of four float32, 16",
}
LINE, ROWS, COLUMNS = "line", "rows", "columns"
GLOBAL, SHARED = "global", "shared"
PATTERNS = {LINE: "x[stride·t + shift]", ROWS: "x[ty, tx + shift]", COLUMNS: "x[tx, ty + shift]"}


def model(inputs):
    threads = inputs["across"] * inputs["down"]
    if threads > MOST_THREADS:
        raise Refusal(f"That is a block of {threads:,} threads; a GPU allows {MOST_THREADS:,}.")
    warps = -(-threads // WARP)
    warp, size = min(inputs["warp"], warps - 1), int(inputs["size"])
    of_warps = [lanes_of(inputs, one, threads) for one in range(warps)]
    one, costs = of_warps[warp], [cost(addresses, size) for addresses in of_warps]
    sectors, least, turns, _ = (sum(column) for column in zip(*costs))
    result = {
        "warps": warps,
        "warp": warp,
        "lanes": one,
        "lines": lines_of(one, size),
        "banks": [words_in_banks(part, size) for part in parts_of(one, size)],
        "sectors": costs[warp][0],
        "least": costs[warp][1],
        "turns": costs[warp][2],
        "leastTurns": costs[warp][3],
        "all": {"sectors": sectors, "least": least, "turns": turns},
        "different": len(set().union(*(units(addresses, size, SECTOR) for addresses in of_warps))),
        "used": share_of(of_warps, size, sectors),
    }
    return result | {"memory": inputs["memory"], "say": sentence(result, inputs["memory"], size) + beyond(inputs)}


# ---- addresses


def lanes_of(inputs, warp, threads):
    """The address of each lane of a warp, in bytes from a multiple of 128."""
    return [address(inputs, t) for t in range(WARP * warp, min(WARP * (warp + 1), threads))]


def address(inputs, thread):
    ty, tx = divmod(thread, inputs["across"])
    if inputs["pattern"] == LINE:
        element = inputs["stride"] * thread
    elif inputs["pattern"] == ROWS:
        element = inputs["pitch"] * ty + tx
    else:
        element = inputs["pitch"] * tx + ty
    return (element + inputs["shift"]) * int(inputs["size"])


# ---- costs


def units(addresses, size, unit):
    """The pieces of memory of this many bytes that the elements lie in, each once, from low to high."""
    return sorted({u for a in addresses for u in range(a // unit, (a + size - 1) // unit + 1)})


def cost(addresses, size):
    """(sectors asked for, fewest that would do, turns of the banks, fewest)"""
    least = -(-len(set(addresses)) * size // SECTOR)
    parts = parts_of(addresses, size)
    turns = sum(max(words_in_banks(part, size)) for part in parts)
    return len(units(addresses, size, SECTOR)), least, turns, len(parts)


def parts_of(addresses, size):
    """The lanes that the banks serve at once: a warp, of 8 bytes each half a warp, of 16 a quarter."""
    together = max(1, ROW // max(size, WORD))
    return [addresses[i : i + together] for i in range(0, len(addresses), together)]


def words_in_banks(addresses, size):
    """How many different words each bank has to give."""
    counts = [0] * BANKS
    for word in units(addresses, size, WORD):
        counts[word % BANKS] += 1
    return counts


def lines_of(addresses, size):
    """[number of the row of 128 bytes, the words of it that are used], for each row that is touched."""
    lines = {}
    for word in units(addresses, size, WORD):
        lines.setdefault(word // BANKS, []).append(word % BANKS)
    return [[number, words] for number, words in lines.items()]


def share_of(of_warps, size, sectors):
    """What part of the bytes asked for is used."""
    return sum(len(set(addresses)) for addresses in of_warps) * size / (sectors * SECTOR)


# ---- words


def sentence(result, memory, size):
    asks = f"Warp {result['warp']} of {result['warps']} asks for {plural(len(result['lanes']), 'element')} of {plural(size, 'byte')}: "
    return asks + (of_sectors(result) if memory == GLOBAL else of_turns(result))


def beyond(inputs):
    """A word on an index that leaves its row."""
    last = inputs["shift"] + (inputs["across"] if inputs["pattern"] == ROWS else inputs["down"]) - 1
    if inputs["pattern"] == LINE or last < inputs["pitch"]:
        return ""
    return f" (The second index goes up to {last}, and a row has {inputs['pitch']}: it runs on into the next row.)"


def of_turns(result):
    conflict = "no" if result["turns"] == result["leastTurns"] else "a"
    return f"{plural(result['turns'], 'turn')}, {conflict} bank conflict. The accesses of the block take {plural(result['all']['turns'], 'turn')}."


def of_sectors(result):
    sectors = result["sectors"]
    moved = f"{plural(sectors, 'sector')} of {SECTOR} bytes"
    fewest = "as few as can be" if sectors == result["least"] else f"{result['least']} would do"
    whole, different = result["all"], result["different"]
    apart = "all different" if different == whole["sectors"] else f"{different:,} different"
    return (
        f"{moved}, {fewest}. The block asks for {plural(whole['sectors'], 'sector')}, {apart}: "
        f"without a cache {whole['sectors'] * SECTOR:,} bytes, {percent(result['used'])} of them used."
    )


def plural(n, word):
    return f"{n:,} {word}" + ("" if n == 1 else "s")


def percent(share):
    return f"{int(100 * share + 0.5 + 1e-9)} %"


# ---- the still picture


def picture(result, step):
    width, height, parts = 11, 11, []
    lines = result["lines"][:24]
    for row, (number, words) in enumerate(lines):
        y = 8 + row * height
        parts.append(text(number * ROW, 2, y + 9, "dim"))
        if result["memory"] == GLOBAL:
            sectors = sorted({word * WORD // SECTOR for word in words})
            parts += [box(50 + sector * 8 * width, y, 8 * width, height, "pale") for sector in sectors]
        parts += [box(50 + word * width, y + 1, width - 1, height - 2, "pick") for word in words]
    if result["memory"] == GLOBAL:
        return drawing(410, 16 + len(lines) * height, *parts)
    below = 20 + len(lines) * height
    high, most = 32 // len(result["banks"]) - 2, max(map(max, result["banks"]))
    for part, counts in enumerate(result["banks"]):
        foot = below + (part + 1) * (high + 2)
        for bank, count in enumerate(counts):
            tall = high * count / most
            kind = "gold" if count > 1 else "pale"
            parts.append(box(50 + bank * width, foot - tall, width - 1, tall, kind))
    return drawing(410, below + 36, *parts)


def sample(random):
    across = random.choice([1, 3, 8, 16, 32, 33, 64])
    return {
        "across": across,
        "down": random.randint(1, MOST_THREADS // across + 1),
        "stride": random.choice([0, 1, 2, 3, 8, 16, 32, 33]),
        "pitch": random.choice([1, 8, 31, 32, 33, 40]),
        "shift": random.choice([0, 1, 5, 8, 31]),
        "warp": random.choice([0, 0, 1, 5, 31]),
    }


FIGURE = Figure(
    name="warp_access",
    title="What a warp asks of memory",
    inputs=(
        Choice("memory", "memory", GLOBAL, {GLOBAL: "global", SHARED: "shared"}),
        Choice("pattern", "access", COLUMNS, PATTERNS, hint="t counts the threads of the block; tx and ty are threadIdx.x and threadIdx.y"),
        Choice("size", "an element", "4", SIZES),
        Integer("across", "block x", 32, low=1, high=1024),
        Integer("down", "block y", 8, low=1, high=1024),
        Integer("stride", "stride", 1, low=0, high=64, only=("pattern", LINE)),
        Integer("pitch", "elements a row", 32, low=1, high=129, hint="of the matrix x, from one row to the next"),
        Integer("shift", "shift", 0, low=0, high=127),
        Integer("warp", "warp", 0, low=0, high=31, slider=True),
    ),
    model=model,
    picture=picture,
    sample=sample,
)  # fmt: skip
