"""Which element each thread of a launch works on, for an index that the reader writes (the chapter "CUDA kernels with numba").

The kernel is ``if GUARD: out[i] = 2 * x[i]``. `tests/viz/test_thread_index.py` runs it on the simulator and compares: the
elements, an index out of bounds, a race.
"""

import operator
import re
from typing import NamedTuple

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Expression, Integer, Refusal
from readtorch.viz.picture import box, drawing, text

ACROSS = 32  # elements in a row of the picture
FARTHEST = 256  # behind the end: what the picture still shows of indices out of bounds
LARGEST = 10**9
NAMES = ("threadIdx.x", "blockIdx.x", "blockDim.x", "gridDim.x", "x.size", "n")
IN_GRID = "blockIdx.x * blockDim.x + threadIdx.x"  # what cuda.grid(1) is
TOKEN = re.compile(r"\s*(\d+|//|<<|>>|[-+*%()&^|]|" + "|".join(map(re.escape, NAMES)) + r"(?!\w))")
NAME = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in NAMES))
NONE, LESS, BOTH, MOST = "none", "less", "both", "most"
GUARDS = {NONE: "no test", LESS: "if i < n", BOTH: "if 0 <= i < n", MOST: "if i <= n"}
PASSES = {NONE: lambda i, n: True, LESS: lambda i, n: i < n, BOTH: lambda i, n: 0 <= i < n, MOST: lambda i, n: i <= n}
IDLE, WORKS, OUTSIDE = "idle", "works", "outside"


class Launch(NamedTuple):
    grid: int
    block: int
    n: int


def model(inputs):
    launch, written = Launch(inputs["grid"], inputs["block"], inputs["n"]), plain(inputs["index"])
    value_of = parsed(written)
    threads = launch.grid * launch.block
    index = [value_of(names_of(launch, number)) for number in range(threads)]
    states = [state(i, launch.n, PASSES[inputs["guard"]]) for i in index]
    counts = [0] * launch.n
    for i, kind in zip(index, states):
        if kind == WORKS:
            counts[i] += 1
    at = min(inputs["at"], threads - 1)
    result = {
        "at": at,
        "index": index,
        "states": states,
        "counts": counts,
        "behind": sorted(
            {i for i, kind in zip(index, states) if kind == OUTSIDE and launch.n <= i < launch.n + FARTHEST}
        ),
        "outside": states.count(OUTSIDE),
        "raced": sum(count > 1 for count in counts),
        "left": counts.count(0),
    }
    steps = dict.fromkeys(
        ["i", in_numbers(written, names_of(launch, at)), str(index[at])]
    )  # each once: a number is its own value
    one = f"{of_thread(launch, at)}: {' = '.join(steps)}, {what(index[at], states[at])}. "
    return result | {"say": one + verdict(result)}


def state(i, n, passes):
    if not passes(i, n):
        return IDLE
    return WORKS if 0 <= i < n else OUTSIDE


def names_of(launch, number):
    block, thread = divmod(number, launch.block)
    return dict(zip(NAMES, (thread, block, launch.block, launch.grid, launch.n, launch.n)))


# ---- expressions: numbers, names, + - * // % << >> & ^ |, parentheses


def plain(written):
    return written.replace("cuda.grid(1)", f"({IN_GRID})").replace("cuda.", "").strip()


def in_numbers(written, names):
    return NAME.sub(lambda found: str(names[found[0]]), written)


def parsed(written):
    """The function from names to a number. Raises Refusal."""
    tokens = tokens_of(written)
    value_of = bits_of(tokens)
    if tokens:
        raise Refusal(f"I did not expect {tokens[0]} here.")
    return value_of


def tokens_of(written):
    tokens, at = [], 0
    while written[at:].strip():
        found = TOKEN.match(written, at)
        if not found:
            raise Refusal(
                f"I cannot read {written[at:].strip()}: an index has numbers, {', '.join(NAMES)}, + - * // % << >> & ^ | and parentheses."
            )
        tokens.append(found[1])
        at = found.end()
    return tokens


def bits_of(tokens, signs="| ^ &"):
    """Of these signs, the last binds strongest."""
    first, _, others = signs.partition(" ")
    return chain(tokens, first, lambda rest: bits_of(rest, others)) if first else shift_of(tokens)


def shift_of(tokens):
    return chain(tokens, "<< >>", sum_of)


def sum_of(tokens):
    return chain(tokens, "+ -", product_of)


def product_of(tokens):
    return chain(tokens, "* // %", factor)


def chain(tokens, signs, part):
    """Parts with these signs between them, from left to right."""
    left = part(tokens)
    while tokens and tokens[0] in signs.split():
        left = joined(tokens.pop(0), left, part(tokens))
    return left


def joined(sign, left, right):
    return lambda names: computed(sign, left(names), right(names))


def factor(tokens):
    token = tokens.pop(0) if tokens else "the end"
    if token == "-":
        negated = factor(tokens)
        return lambda names: -negated(names)
    if token == "(":
        inside = bits_of(tokens)
        if not tokens or tokens.pop(0) != ")":
            raise Refusal("A parenthesis is not closed.")
        return inside
    if token in NAMES:
        return lambda names: names[token]
    if not token.isdigit():
        raise Refusal(f"I did not expect {token} here.")
    return lambda names: small(int(token))


def computed(sign, one, other):
    if sign in ("//", "%") and other == 0:
        raise Refusal("That divides by 0.")
    if sign in ("<<", ">>") and not 0 <= other < 32:
        raise Refusal("Shift by 0 to 31 bits.")
    return small(COMPUTES[sign](one, other))


COMPUTES = {
    **{"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod},
    **{"<<": operator.lshift, ">>": operator.rshift, "&": operator.and_, "^": operator.xor, "|": operator.or_},
}


def small(value):
    if abs(value) > LARGEST:
        raise Refusal("That is a very large number.")
    return value


# ---- words


def of_thread(launch, number):
    block, thread = divmod(number, launch.block)
    return f"Block {block}, thread {thread}"


def what(i, kind):
    return {IDLE: "and the test keeps it from working", WORKS: f"it writes out[{i}]", OUTSIDE: "out of bounds"}[kind]


def verdict(result):
    faults = [
        (result["outside"], f"{plural(result['outside'], 'thread')} out of bounds"),
        (result["raced"], f"{plural(result['raced'], 'element')} written by several threads, a race"),
        (result["left"], f"{plural(result['left'], 'element')} written by none"),
    ]
    found = "; ".join(words for count, words in faults if count)
    return f"In all: {found}." if found else "Each element is written once: right."


def plural(n, word):
    return f"{n:,} {word}" + ("" if n == 1 else "s")


# ---- the still picture


def picture(result, step):
    side, parts = 11, [text("elements, and how many threads write each", 8, 14, "dim")]
    own = result["index"][result["at"]]
    for i, count in [*enumerate(result["counts"]), *((i, "×") for i in result["behind"])]:
        y, x = divmod(i, ACROSS)
        kind = "pick" if i == own else "gold" if count == "×" or count > 1 else "pale" if count else "free"
        parts.append(box(8 + side * x, 20 + side * y, side, side, kind))
    rows = -(-max([len(result["counts"]), *(i + 1 for i in result["behind"])]) // ACROSS)
    return drawing(16 + side * ACROSS, 28 + side * rows, *parts)


def sample(random):
    examples = (
        "blockIdx.x*blockDim.x+threadIdx.x//2",
        "-threadIdx.x % 7",
        "(n - 1) - threadIdx.x",
        "3 +",
        "7 // blockIdx.x",
        "9 * (2",
        "y",
        "999999999*9",
        "n n",
        "threadIdx.x ^ 1 | blockIdx.x << 5",
        "-5 & threadIdx.x >> 1",
        "1 << blockIdx.x - 1",
    )
    return {
        "index": random.choice([*INDICES, *INDICES, *examples]),
        "n": random.choice([1, 32, 64, 100, 128, 512]),
        "at": random.randint(0, 130),
    }


INDICES = (
    IN_GRID,
    "threadIdx.x",
    "blockIdx.x + threadIdx.x",
    "threadIdx.x * gridDim.x + blockIdx.x",
    f"n - 1 - ({IN_GRID})",
)
FIGURE = Figure(
    name="thread_index",
    title="Which element does this thread get?",
    inputs=(
        Expression("index", "i =", INDICES[0], longest=80, examples=INDICES),
        Choice("guard", "test", NONE, GUARDS),
        Integer("n", "n", 100, low=1, high=512, hint="how many elements x and out have"),
        Integer("grid", "blocks", 4, low=1, high=8),
        Integer("block", "threads a block", 32, low=1, high=64),
        Integer("at", "thread", 100, low=0, high=511, slider=True, hint="counted through all blocks"),
    ),
    model=model,
    picture=picture,
    sample=sample,
)  # fmt: skip
