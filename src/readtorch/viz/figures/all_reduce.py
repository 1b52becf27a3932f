"""An all-reduce, message by message: what each rank holds after each round, and what it costs (the chapter "Process groups,
DDP and SyncBatchNorm").

The messages are those of `csrc/distributed/algorithms.py`, compared in `tests/viz/test_all_reduce.py`. A message of B bytes takes
latency + B / bandwidth; messages of one round travel at the same time, and adding costs nothing.
"""

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Integer, Number
from readtorch.viz.picture import box, drawing, text

RING, TREE, DOUBLING, HALVING = "ring", "tree", "doubling", "halving"
NAMES = {RING: "ring", TREE: "tree", DOUBLING: "recursive doubling", HALVING: "halving and doubling"}
SIZES = {
    "8": "8 B, a count",
    "4096": "4 KiB, a bias",
    "262144": "256 KiB",
    "1048576": "1 MiB, DDP's first bucket",
    "26214400": "25 MiB, DDP's others",
    "1073741824": "1 GiB",
}
LEAST, MOST = 3, 30  # powers of two of bytes, in the chart


def model(inputs):
    n, name = inputs["ranks"], inputs["algorithm"]
    rounds, parts = rounds_of(name, n), parts_of(name, n)
    held, done = [[1 << rank] * parts for rank in range(n)], [0.0]
    states = [held]
    for one in rounds:
        held = after(held, one)
        states.append(held)
        done.append(done[-1] + seconds(one, parts, int(inputs["size"]), inputs))
    result = {
        "parts": parts,
        "rounds": rounds,
        "held": states,
        "done": done,
        "sent": [bytes_sent(rounds, rank, parts, int(inputs["size"])) for rank in range(n)],
        "curves": {other: [total(other, n, 2**power, inputs) for power in range(LEAST, MOST + 1)] for other in NAMES},
        "totals": {other: total(other, n, int(inputs["size"]), inputs) for other in NAMES},
    }
    return result | {"say": sentences(result, inputs)}


# ---- who sends what to whom: rounds of [source, target, first part, how many parts, whether it is added]


def rounds_of(name, n):
    return {RING: ring, TREE: tree, DOUBLING: doubling, HALVING: halving}[name](n)


def parts_of(name, n):
    """In how many pieces the array is cut."""
    return {RING: n, HALVING: power_below(n)}.get(name, 1)


def power_below(n):
    return 1 << (n.bit_length() - 1)


def ring(n):
    collecting = [[[r, (r + 1) % n, (r - step) % n, 1, True] for r in range(n)] for step in range(n - 1)]
    passing = [[[r, (r + 1) % n, (r + 1 - step) % n, 1, False] for r in range(n)] for step in range(n - 1)]
    return collecting + passing


def tree(n):
    up, down, bit = [], [], 1
    while bit < n:
        up.append([[r, r - bit, 0, 1, True] for r in range(n) if r & (2 * bit - 1) == bit])
        down.insert(0, [[r, r + bit, 0, 1, False] for r in range(0, n, 2 * bit) if r + bit < n])
        bit *= 2
    return up + down


def doubling(n):
    power, rounds, bit = power_below(n), [], 1
    while bit < power:
        rounds.append([[r, r ^ bit, 0, 1, True] for r in range(power)])
        bit *= 2
    return folded(rounds, n, 1)


def halving(n):
    """Partners far away first: each keeps half of what it has, until it has one part; then the same way back."""
    power, rounds, bit = power_below(n), [], power_below(n) // 2
    while bit:
        rounds.append([[r, r ^ bit, (r ^ bit) & ~(bit - 1), bit, True] for r in range(power)])
        bit //= 2
    bit = 1
    while bit < power:
        rounds.append([[r, r ^ bit, r & ~(bit - 1), bit, False] for r in range(power)])
        bit *= 2
    return folded(rounds, n, power)


def folded(rounds, n, parts):
    """Ranks beyond the largest power of two give their numbers away first, and get the sums at the end."""
    power = power_below(n)
    if n == power:
        return rounds
    first = [[r, r - power, 0, parts, True] for r in range(power, n)]
    return [first, *rounds, [[r - power, r, 0, parts, False] for r in range(power, n)]]


def after(held, messages):
    """What the ranks hold when the messages of a round have come: of each part, whose numbers are in it, a bit a rank."""
    new = [list(row) for row in held]
    for source, target, first, count, added in messages:
        for part in range(first, first + count):
            new[target][part] = held[source][part] | (held[target][part] if added else 0)
    return new


# ---- what it costs


def seconds(messages, parts, size, inputs):
    """µs of a round: of its largest message."""
    most = max(count for _, _, _, count, _ in messages)
    return inputs["latency"] + size * most / parts / (inputs["bandwidth"] * 1000)


def total(name, n, size, inputs):
    return sum(seconds(one, parts_of(name, n), size, inputs) for one in rounds_of(name, n))


def bytes_sent(rounds, rank, parts, size):
    return sum(size * count / parts for one in rounds for source, _, _, count, _ in one if source == rank)


# ---- words


def sentences(result, inputs):
    n, rounds = inputs["ranks"], result["rounds"]
    first = f"{n} ranks, {volume(int(inputs['size']))} each; every rank holds its own numbers. {rounds_text(len(rounds))} to come."
    said = [first, *(round_text(i, one, result, n) for i, one in enumerate(rounds))]
    said[-1] += " " + verdict(result, inputs)
    return said


def round_text(i, messages, result, n):
    part = " of a part" if result["parts"] > 1 else ""
    pairs = ", ".join(f"{source} → {target}" for source, target, *_ in messages)
    count, added = messages[0][3], messages[0][4]
    what = f"{count} of {result['parts']} parts" if result["parts"] > 1 else "everything"
    does = "the receiver adds it to its own" if added else f"the receiver takes the sums{part}"
    complete = sum(all(mask == 2**n - 1 for mask in row) for row in result["held"][i + 1])
    return (
        f"Round {i + 1} of {len(result['rounds'])}: {pairs}. Each message is {what}; {does}. "
        f"{complete} of {n} ranks have all sums. {duration(result['done'][i + 1])} so far."
    )


def verdict(result, inputs):
    totals = result["totals"]
    best = min(NAMES, key=lambda name: totals[name])
    quickest = totals[inputs["algorithm"]] <= totals[best]
    other = "Nothing here is quicker" if quickest else f"By {NAMES[best]} it takes {duration(totals[best])}"
    return f"The busiest rank has sent {volume(max(result['sent']))}. {other}."


def rounds_text(count):
    return f"{count} round" + ("" if count == 1 else "s")


def short(x):
    """Three digits or so, the same in both languages."""
    if x >= 100:
        return f"{int(x + 0.5):,}"
    unit, places = (10, 1) if x >= 10 else (100, 2)
    parts = int(unit * x + 0.5)
    digits = f"{parts // unit}.{parts % unit:0{places}}"
    return digits.rstrip("0").rstrip(".")


def duration(us):
    return f"{short(us / 1000)} ms" if us >= 1000 else f"{short(us)} µs"


def volume(count):
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if count >= unit:
            return f"{short(count / unit)} {name}"
    return f"{short(count)} B"


# ---- the still picture


def picture(result, step):
    held, n, parts = result["held"][step], len(result["held"][step]), result["parts"]
    width, drawn = 300 / parts, []
    for rank, row in enumerate(held):
        drawn.append(text(f"rank {rank}", 2, 26 + 24 * rank, "dim"))
        for part, mask in enumerate(row):
            whose = "".join(str(r) for r in range(n) if mask >> r & 1)
            shade = "pick" if mask == 2**n - 1 else "pale" if mask != 1 << rank else ""
            drawn.append(
                box(60 + width * part, 12 + 24 * rank, width, 20, shade, whose if width > 8 * len(whose) else "")
            )
    return drawing(370, 24 + 24 * n, *drawn)


FIGURE = Figure(
    name="all_reduce",
    title="An all-reduce, message by message",
    inputs=(
        Choice("algorithm", "algorithm", RING, NAMES),
        Integer("ranks", "ranks", 4, low=2, high=8),
        Choice("size", "bytes of each rank", "26214400", SIZES),
        Number("latency", "latency", 20.0, low=0, high=10_000, unit="µs", step=5, hint="of one message"),
        Number("bandwidth", "bandwidth", 10.0, low=0.01, high=1000, unit="GB/s", step=1, hint="of each rank's link, both ways at once"),
    ),
    model=model,
    picture=picture,
)  # fmt: skip
