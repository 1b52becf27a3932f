"""Which words of the generator make which number (the chapter "Where numbers come from: init and random").

Two programs draw from the same seed. Words are counted from 1, in the order in which the twister hands them out.
In PyTorch: `aten/src/ATen/native/cpu/DistributionTemplates.h`, `aten/src/ATen/core/DistributionsHelper.h`.
`tests/viz/test_words_to_numbers.py` runs the programs there, and exchanges words in the generator's state.
"""

import math
import re

import numpy as np

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Expression, Integer, Refusal
from readtorch.viz.picture import box, drawing, text
from readtorch.viz.wording import counted

MOST = 40  # numbers of a program
DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
ALIASES = {"half": "float16", "float": "float32", "double": "float64"}
KNOWN = (
    "rand(5)", "randn(4, 4, dtype=float64)", "randint(10, (5,))", "randperm(6)", "empty(4, 8).t().normal_()", "empty(5).uniform_(-1, 1)",
    "empty(5).bernoulli_(0.3)", "empty(5).exponential_()", "bernoulli(full((5,), 0.3))", "dropout(ones(8), 0.3)", "nn.Linear(4, 2)",
)  # fmt: skip

# ---- the generator


def state_of(seed):
    words = [seed & 0xFFFFFFFF]
    for i in range(1, 624):
        words.append((1812433253 * (words[-1] ^ words[-1] >> 30) + i) & 0xFFFFFFFF)
    return words


def words_of(seed):
    """The first 624 words that a seed gives."""
    w, out = state_of(seed), []
    for i in range(624):
        joined = w[i] & 0x80000000 | w[(i + 1) % 624] & 0x7FFFFFFF
        w[i] = w[(i + 397) % 624] ^ joined >> 1 ^ (0x9908B0DF if joined & 1 else 0)
        y = w[i] ^ w[i] >> 11
        y ^= y << 7 & 0x9D2C5680
        y ^= y << 15 & 0xEFC60000
        out.append(y ^ y >> 18)
    return out


class Source:
    """The words, how many are gone, and the half of a pair that waits."""

    def __init__(self, seed):
        self.words, self.gone, self.spare = words_of(seed), 0, None

    def word(self):
        self.gone += 1
        return self.gone

    def fraction(self, bits):
        """A number in [0, 1), and its words: the low 24 bits of one, or 53 of two."""
        if bits == 24:
            word = self.word()
            return (self.words[word - 1] & 0xFFFFFF) / 2**24, [word]
        high, low = self.word(), self.word()
        return ((self.words[high - 1] & 0x1FFFFF) * 2**32 + self.words[low - 1]) / 2**53, [high, low]


# ---- numbers in the order of memory: value, text, words, how


def rounded(x, dtype):
    """To so many binary digits, half to even."""
    if dtype == "float64" or x == 0:
        return x
    if dtype == "float32":
        return float(np.float32(x))
    unit = 2.0 ** (math.floor(math.log2(abs(x))) - DIGITS[dtype] + 1)
    low = math.floor(x / unit)
    rest = x / unit - low
    return (low + 1 if rest > 0.5 or (rest == 0.5 and low % 2) else low) * unit


def four(x):
    """Four digits behind the point."""
    whole = math.floor(abs(x) * 10_000 + 0.5)
    return f"{'-' if x < 0 and whole else ''}{whole // 10_000}.{whole % 10_000:04d}"


def real(value, words, how):
    return {"value": value, "text": four(value), "words": words, "how": how}


def listed(words):
    return f"word {words[0]}" if len(words) == 1 else f"words {', '.join(map(str, words[:-1]))} and {words[-1]}"


def bits_of(words):
    return (
        f"the low 24 bits of word {words[0]}, over 2²⁴,"
        if len(words) == 1
        else f"53 bits of {listed(words)}, over 2⁵³,"
    )


def uniform(source, count, low, high, dtype):
    wide = dtype if dtype == "float64" else "float32"
    low, high = rounded(low, wide), rounded(high, wide)
    span = rounded(high - low, wide)
    numbers = []
    for _ in range(count):
        u, words = source.fraction(53 if wide == "float64" else 24)
        value = rounded(rounded(u * span + low, wide), dtype)
        value = rounded(low, dtype) if value == rounded(high, dtype) else value
        how = f"{bits_of(words)} are {four(u)}"
        how += "" if (low, high) == (0, 1) else f"; times {four(span)}, plus {four(low)}"
        numbers.append(real(value, words, how))
    return numbers


def pair(source, mean, std, dtype):
    if source.spare:
        spare, source.spare = source.spare, None
    else:
        v, angle = source.fraction(53)
        u, radius = source.fraction(53)
        r = math.sqrt(-2 * math.log1p(-u))
        made = f"{listed(angle)} make the angle, {listed(radius)} the radius"
        source.spare = r * math.sin(2 * math.pi * v), [*angle, *radius], f"{made}; the sine waited in the generator"
        spare = r * math.cos(2 * math.pi * v), [*angle, *radius], f"{made}; this is the cosine"
    value, words, how = spare
    return real(rounded(value * std + mean, dtype), words, how)


def block(fractions, mean, std, dtype):
    """Of 8 radii and 8 angles, 16 numbers."""
    numbers = [None] * 16
    for i in range(8):
        (u, radius), (v, angle) = fractions[i], fractions[i + 8]
        r, made = math.sqrt(-2 * math.log(1 - u)), "makes" if len(radius) == 1 else "make"
        how = f"{listed(radius)} {made} the radius, {listed(angle)} the angle; this is the "
        for place, turn, name in (i, math.cos, "cosine"), (i + 8, math.sin, "sine"):
            value = rounded(r * turn(2 * math.pi * v) * std + mean, dtype)
            numbers[place] = real(value, [*radius, *angle], how + name)
    return numbers


def normal(source, count, mean, std, dtype, contiguous):
    if count < 16 or not contiguous:
        return [pair(source, mean, std, dtype) for _ in range(count)]
    bits = 53 if dtype == "float64" else 24
    whole = count // 16 * 16
    # float16 and bfloat16 draw a block at a time, the others all numbers first: also those that are drawn anew.
    first = [source.fraction(bits) for _ in range(count if dtype in ("float32", "float64") else whole)]
    numbers = [None] * count
    for i in range(0, whole, 16):
        numbers[i : i + 16] = block(first[i : i + 16], mean, std, dtype)
    if count % 16:
        numbers[-16:] = block([source.fraction(bits) for _ in range(16)], mean, std, dtype)
    return numbers


def exponential(source, count, rate, dtype):
    numbers = []
    for _ in range(count):
        u, words = source.fraction(53)
        value = rounded(-1 / rate * math.log1p(-u), dtype)
        numbers.append(
            real(
                value,
                words,
                f"{bits_of(words)} are {four(u)}; −ln(1 − that){f', over {four(rate)}' if rate != 1 else ''}",
            )
        )
    return numbers


def integer(source, low, high):
    span, first = high - low, source.word()
    words = [first, source.word()] if span >= 2**28 else [first]
    number = source.words[first - 1]
    if len(words) == 2:
        number = number << 32 | source.words[words[1] - 1]
    value = number % span + low
    how = f"{listed(words)}, modulo {span:,}{f', plus {low:,}' if low else ''}"
    return {"value": float(value), "text": str(value), "words": words, "how": how}


def permutation(source, count):
    order, numbers = list(range(count)), []
    for i in range(count):
        if i < count - 1:
            word = source.word()
            j = i + source.words[word - 1] % (count - i)
            order[i], order[j] = order[j], order[i]
            how = f"word {word}, modulo {count - i}, chooses one of the {count - i} that are left"
        words = [word] if i < count - 1 else []
        numbers.append(
            {
                "value": float(order[i]),
                "text": str(order[i]),
                "words": words,
                "how": how if words else "the one that is left",
            }
        )
    return numbers


def yes_or_no(source, count, p, bits, value):
    numbers = []
    for _ in range(count):
        u, words = source.fraction(bits)
        hit = u < p
        how = f"{bits_of(words)} are {four(u)}, {'less' if hit else 'not less'} than {four(p)}"
        numbers.append(real(value if hit else 0.0, words, how))
    return numbers


# ---- calls

SIZES = r"[(\[]?([0-9]{1,9}(?:,[0-9]{1,9})*),?[)\]]?"
REAL = r"(-?(?:[0-9]{1,4}\.?[0-9]{0,8}|\.[0-9]{1,8}))"
WHOLE = r"(-?[0-9]{1,15}|2\*\*[0-9]{1,2}(?:[+-][0-9]{1,15})?)"
DTYPE = r"(?:,dtype=([a-z0-9]+))?"
SHAPES = {
    "fill": rf"(rand|randn)\({SIZES}{DTYPE}\)",
    "method": rf"empty\({SIZES}{DTYPE}\)(\.t\(\))?\.(uniform|normal|bernoulli|exponential)_\((?:{REAL}(?:,{REAL})?)?\)",
    "integers": rf"randint\((?:{WHOLE},)?{WHOLE},[(\[]{SIZES}[)\]]\)",
    "permutation": r"randperm\(([0-9]{1,9})\)",
    "tensor": rf"bernoulli\(full\([(\[]?([0-9]{{1,9}}(?:,[0-9]{{1,9}})*),?[)\]]?,{REAL}\)\)",
    "dropout": rf"(?:nn\.functional\.|F\.)?dropout\(ones\({SIZES}\)(?:,{REAL})?\)",
    "linear": r"nn\.Linear\(([0-9]{1,9}),([0-9]{1,9})(?:,(?:bias=)?(True|False))?\)",
}
NAMES = r"\b(low|high|size|p|mean|std|lambd|n|from|to|in_features|out_features|fill_value)="


def parts(program):
    """The calls of a program, each as (kind, its arguments)."""
    calls = []
    for line in filter(None, (line.strip() for line in program.split(";"))):
        bare = re.sub(r"^[A-Za-z_][A-Za-z_0-9]*=", "", re.sub(r"\s", "", line))
        bare = re.sub(NAMES, "", bare.replace("torch.", ""))
        if bare.startswith("manual_seed("):
            raise Refusal("The seed has a field of its own.")
        found = ((kind, re.fullmatch(shape, bare, re.ASCII)) for kind, shape in SHAPES.items())
        kind, match = next(((kind, match) for kind, match in found if match), (None, None))
        if not match:
            raise Refusal(f"“{line}” is none of the calls that the figure knows: {', '.join(KNOWN)}.")
        calls.append((kind, match.groups()))
    if not calls:
        raise Refusal(f"A program draws, such as {KNOWN[0]}.")
    return calls


def sizes_of(written):
    sizes = [int(size) for size in written.split(",")]
    if math.prod(sizes) > MOST:
        raise Refusal(f"A program makes at most {MOST} numbers.")
    return sizes


def dtype_of(written):
    dtype = ALIASES.get(written, written or "float32")
    if dtype not in DIGITS:
        raise Refusal(f"{dtype} is none of {', '.join(DIGITS)}.")
    return dtype


def whole(written):
    power, rest = re.fullmatch(r"(2\*\*[0-9]+)?(.*)", written).groups()
    number = (2 ** int(power[3:]) if power else 0) + int(rest or 0)
    if number >= 2**63:
        raise Refusal("Overflow when unpacking long long.")
    return number


def probability(written, otherwise):
    p = otherwise if written is None else float(written)
    if not 0 <= p <= 1:
        raise Refusal(f"A probability lies between 0 and 1, and {written} does not.")
    return p


def method(source, sizes, dtype, transposed, name, one, two):
    sizes, dtype = sizes_of(sizes), dtype_of(dtype)
    if transposed and len(sizes) > 2:
        raise Refusal("t() expects a tensor with <= 2 dimensions.")
    count = math.prod(sizes)
    contiguous = not transposed or len(sizes) < 2 or min(sizes) < 2
    low, high = float(one or 0), float(two or 1)
    if name == "uniform":
        if low > high:
            raise Refusal(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}.")
        numbers = uniform(source, count, low, high, dtype)
    elif name == "normal":
        if high < 0:
            raise Refusal(f"normal expects std >= 0.0, but found std {high:g}.")
        numbers = normal(source, count, low, high, dtype, contiguous)
    elif name == "exponential":
        rate = float(one or 1)
        if rate <= 0:
            raise Refusal(f"exponential_ expects lambda > 0.0, but found lambda={rate:g}.")
        numbers = exponential(source, count, rate, dtype)
    else:
        p = float(one or 0.5)
        if not 0 <= p <= 1:
            raise Refusal(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}.")
        numbers = yes_or_no(source, count, p, 53, 1.0)
    if contiguous:
        return numbers
    rows, columns = sizes  # in memory; the tensor is read column by column
    return [numbers[row * columns + column] for column in range(columns) for row in range(rows)]


def integers(source, low, high, sizes):
    low, high, count = whole(low or "0"), whole(high), math.prod(sizes_of(sizes))
    if low >= high:
        raise Refusal(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}.")
    return [integer(source, low, high) for _ in range(count)]


def dropout(source, sizes, written):
    count, p = math.prod(sizes_of(sizes)), probability(written, 0.5)
    if p in (0, 1):
        return [real(1.0 - p, [], "no word: every element has the same fate") for _ in range(count)]
    return yes_or_no(source, count, 1 - p, 53, rounded(1 / rounded(1 - p, "float32"), "float32"))


def linear(source, n_in, n_out, bias):
    n_in, n_out = int(n_in), int(n_out)
    if not n_in or not n_out:
        raise Refusal("A layer has at least one input and one output.")
    sizes_of(f"{n_in},{n_out}")
    bound = 1 / math.sqrt(n_in)
    weight = uniform(source, n_in * n_out, -bound, bound, "float32")
    return [*weight, *([] if bias == "False" else uniform(source, n_out, -bound, bound, "float32"))]


CALLS = {
    "fill": lambda source, name, sizes, dtype: method(source, sizes, dtype, None, {"rand": "uniform", "randn": "normal"}[name], None, None),
    "method": method,
    "integers": integers,
    "permutation": lambda source, count: permutation(source, *sizes_of(count)),
    "tensor": lambda source, sizes, p: yes_or_no(source, math.prod(sizes_of(sizes)), rounded(probability(p, None), "float32"), 24, 1.0),
    "dropout": dropout,
    "linear": linear,
}  # fmt: skip


def drawn(program, seed):
    """What a program draws: its numbers in the order in which one reads them, and what became of each word."""
    source, numbers = Source(seed), []
    for kind, arguments in parts(program):
        numbers += CALLS[kind](source, *arguments)
        if len(numbers) > MOST:
            raise Refusal(f"A program makes at most {MOST} numbers.")
    users = [[k + 1 for k, number in enumerate(numbers) if word + 1 in number["words"]] for word in range(source.gone)]
    waits = source.spare[1] if source.spare else []
    lost = [word + 1 for word, those in enumerate(users) if not those and word + 1 not in waits]
    return {"numbers": numbers, "users": users, "waits": waits, "lost": lost}


def about(one):
    """What one program does with its words."""
    said = f"{counted(len(one['numbers']), 'number')} from {counted(len(one['users']), 'word')}"
    if one["lost"]:
        said += f"; {counted(len(one['lost']), 'word')} (dashed) made numbers that were drawn anew"
    return said + ("; the sine of the last pair waits in the generator" if one["waits"] else "")


def shared(one, two):
    """Of each number of the first program: whether the second has it, too, made of the same words; and how many more
    have the same words there without being equal."""
    whole = {(*number["words"], number["text"], number["value"]) for number in two}
    words = {(*number["words"],) for number in two if number["words"]}
    equal = [(*number["words"], number["text"], number["value"]) in whole for number in one]
    related = [not same and (*number["words"],) in words for same, number in zip(equal, one, strict=True)]
    return equal, sum(related)


def twins(one, two, at):
    """The numbers of the second program that are made of the words of number `at` of the first."""
    words = one[at - 1]["words"] if at <= len(one) else []
    return [k + 1 for k, number in enumerate(two) if words and number["words"] == words]


def made_of(numbers, at):
    if at > len(numbers):
        return "not there"
    return listed(numbers[at - 1]["words"]) if numbers[at - 1]["words"] else "no word"


def model(inputs):
    one, two = drawn(inputs["one"], inputs["seed"]), drawn(inputs["two"], inputs["seed"])
    at = max(1, min(inputs["at"], max(len(one["numbers"]), len(two["numbers"]))))
    for each, other in (one, two), (two, one):
        each["about"] = about(each)
        each["same"], each["related"] = shared(each["numbers"], other["numbers"])
        each["twins"] = twins(other["numbers"], each["numbers"], at)
        each["how"] = each["numbers"][at - 1]["how"] if at <= len(each["numbers"]) else "there is none"
    # A program shows at most 624 words: 40 numbers never take so many.
    hexadecimal = [f"{word:08x}" for word in words_of(inputs["seed"])[: max(len(one["users"]), len(two["users"]))]]
    first, second = (made_of(each["numbers"], at) for each in (one, two))
    equal, related = sum(one["same"]), one["related"]
    say = f"{equal or 'None'} of the {counted(len(one['same']), 'number')} of the first program {'are' if equal > 1 else 'is'} in the second{', too' if equal else ''}."
    say += (
        f" {related} {'is' if related == 1 else 'are'} made of the same words there, with another value."
        if related
        else ""
    )
    say += f" Number {at}: {first} in the first program, {second} in the second."
    return {"one": one, "two": two, "at": at, "words": hexadecimal, "say": say}


def picture(result, step):
    parts, y = [], 10
    for name in "one", "two":
        numbers, at = result[name]["numbers"], result["at"]
        chosen = numbers[at - 1]["words"] if at <= len(numbers) else []
        for k, number in enumerate(numbers[:20]):
            parts.append(
                box(
                    10 + 56 * (k % 10),
                    y + 24 * (k // 10),
                    52,
                    20,
                    "pick" if k + 1 == at else "plain",
                    number["text"][:7],
                )
            )
        y += 24 * (1 + (len(numbers[:20]) - 1) // 10) + 6
        for word in range(min(len(result[name]["users"]), 40)):
            kind = "pick" if word + 1 in chosen else "free" if word + 1 in result[name]["lost"] else "pale"
            parts.append(box(10 + 28 * (word % 20), y + 24 * (word // 20), 26, 20, kind, str(word + 1)))
        y += 24 * (1 + (min(len(result[name]["users"]), 40) - 1) // 20) + 14
    return drawing(
        580, y + 20, *parts, text("numbers, and below them the words that they are made of", 10, y + 8, "dim")
    )


BAD = (
    "", "manual_seed(3)", "rand(41)", "rand(3, dtype=int64)", "normal(3)", "randint(5, 5, (2,))", "empty(3).bernoulli_(1.5)",
    "empty(2, 2, 2).t().normal_()", "nn.Linear(0, 3)", "randn(3))", "rand(٣)", "x = y = rand(2)", "rand(100000)", "empty(3).exponential_(0)", "empty(3).uniform_(2, 1)", "empty(3).normal_(0, -1.5)", "randint(2**64, (2,))", "dropout(ones(3), 1.5)",
)  # fmt: skip


def sample(random):
    """Programs of random calls, and now and then one that is refused."""

    def call():
        rows, columns, dtype = random.randint(0, 6), random.randint(0, 6), random.choice([*DIGITS, "half"])
        number, p = random.randint(-9, 2**30), random.choice(["0", "1", ".25", "0.3", "0.5"])
        return random.choice([
            f"rand({rows * columns}, dtype={dtype})", f"x = torch.randn(({rows}, {columns}), dtype=torch.{dtype})", f"randn({rows + 14})", f"randn({rows + 28}, dtype={dtype})",
            f"randint({number}, {number + random.choice([1, 7, 2**28, 2**33])}, size=({rows},))", f"randint(2**28 - {rows + 1}, (2,))", f"empty({rows}).exponential_(lambd={rows + 1})", f"torch.randperm({rows})", f"empty({rows}, {columns}).t().normal_(1, .5)",
            f"empty({rows}, {columns}, dtype={dtype}).t().uniform_(-{p}, 3)", f"empty({rows}).bernoulli_(p={p})", f"bernoulli(full(({rows},), {p}))", f"F.dropout(torch.ones({rows}), {p})",
            f"nn.Linear({rows}, {columns}, bias={random.random() < 0.5})",
        ])  # fmt: skip

    def program():
        return random.choice(BAD) if random.random() < 0.1 else "; ".join(call() for _ in range(random.randint(1, 3)))

    return {"one": program(), "two": program()}


FIGURE = Figure(
    name="words_to_numbers",
    title="Which words make which number",
    inputs=(
        Expression("one", "a program", "randn(15)", examples=("randn(1); rand(3); randn(1)", "empty(4, 8).t().normal_()", "nn.Linear(4, 2)", *KNOWN)),
        Expression("two", "another", "randn(16)", examples=("randn(17)", "randn(4, 8)", "rand(5, dtype=torch.float64)", "randint(2**28, (3,))", "randint(100, (3,))", "dropout(ones(8))", "randn(33, dtype=bfloat16)")),
        Integer("seed", "seed", 0, low=-(2**32), high=2**33),
        Integer("at", "number", 1, low=1, high=MOST, hidden=True),
    ),
    model=model,
    picture=picture,
    sample=sample,
)  # fmt: skip
