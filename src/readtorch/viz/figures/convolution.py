"""Which inputs and weights an element of a convolution reads, and which algorithm PyTorch takes
(the chapter "Layers: convolution, embedding, recurrence").

Note [ The choice, question by question ]
`choice` asks what `_select_conv_backend` of PyTorch's `aten/src/ATen/native/Convolution.cpp` asks about a convolution of
images, or of volumes (`depth` is not 0), on the CPU of the wheel for x86. A question is a row (words, what it is asked of, yes or no); those about a GPU,
which are answered no here, are one row, and whether there is an image at all is a row only where there is none. What
has decided nothing is not asked: the last row decides.
"""

from __future__ import annotations

from math import prod

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Integer, Integers, Refusal, Switch
from readtorch.viz.picture import box, drawing, text

FEW = 20480  # numbers of one image, up to which columns are faster than oneDNN


def model(inputs):
    call = call_of(inputs)
    whole = out_of(call)
    out = whole[-2:]
    at = [min(i, n - 1) for i, n in zip(inputs["at"], out)]
    filter_ = min(inputs["filter"], call["filters"] - 1)
    rows, columns = (taps(call, d, at[d]) if call["images"] else [] for d in (0, 1))
    group = filter_ // (call["filters"] // call["groups"])
    inner = call["channels"] // call["groups"]
    rows_asked, backend = choice(call)
    return {
        **call,
        "out": out,
        "at": at,
        "filter": filter_,
        "rows": rows,
        "columns": columns,
        "from": group * inner,
        "inner": inner,
        "asked": rows_asked,
        "backend": backend,
        "facts": facts(call, whole, inner, backend),
        "say": said(call, at, filter_, rows, columns, group * inner, inner, backend),
    }


# ---- the call, and what PyTorch refuses


def call_of(inputs):
    both = {
        name: inputs[name] * (3 - len(inputs[name])) for name in ("size", "kernel", "stride", "padding", "dilation")
    }
    names = ("depth", "images", "channels", "filters", "groups", "dtype", "transposed", "onednn", "threads")
    call = {name: inputs[name] for name in names} | both
    if call["channels"] % call["groups"]:
        raise Refusal("ValueError: in_channels must be divisible by groups")
    if call["filters"] % call["groups"]:
        raise Refusal("ValueError: out_channels must be divisible by groups")
    return call


def dimensions(call):
    """(size, kernel, stride, padding, dilation) of each. The depth of a volume has the settings of the height."""
    height, width = zip(*(call[name] for name in ("size", "kernel", "stride", "padding", "dilation")))
    return [(call["depth"], *height[1:]), height, width] if call["depth"] else [height, width]


def out_of(call):
    """The size of the result. Raises Refusal where there is none."""
    lines = dimensions(call)
    if call["transposed"]:
        out = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, k, s, p, d in lines]
        if min(out) < 1:
            raise Refusal(
                f"The result would have the size {' × '.join(map(str, out))}: "
                "the padding of a transposed convolution cuts off."
            )
        return out
    padded = [n + 2 * p for n, _, _, p, _ in lines]
    wide = [d * (k - 1) + 1 for _, k, _, _, d in lines]
    if any(a < b for a, b in zip(padded, wide)):
        raise Refusal(
            f"RuntimeError: Calculated padded input size per channel: ({' x '.join(map(str, padded))}). "
            f"Kernel size: ({' x '.join(map(str, wide))}). Kernel size can't be greater than actual input size"
        )
    return [(a - b) // line[2] + 1 for a, b, line in zip(padded, wide, lines)]


def taps(call, d, place):
    """(tap, position in the input) for each tap of dimension `d` that meets `place` of the result. Positions outside of
    the input are padding."""
    size, k, s, p, gap = (call[name][d] for name in ("size", "kernel", "stride", "padding", "dilation"))
    if not call["transposed"]:
        return [[tap, place * s - p + tap * gap] for tap in range(k)]
    reached = [(tap, place + p - tap * gap) for tap in range(k)]
    return [[tap, place_ // s] for tap, place_ in reached if place_ % s == 0 and 0 <= place_ // s < size]


# ---- which algorithm: Note [ The choice, question by question ]


def choice(call):
    asked = []

    def ask(words, of, answer):
        asked.append([words, of, answer])
        return answer

    name = "transposed" if call["transposed"] else "direct"
    if not call["images"]:
        ask("an image at all?", "batch 0", False)
        return asked, "Empty"
    ask("on a GPU?", "the CPU", False)
    if ask("oneDNN allowed?", "backends.mkldnn.enabled", call["onednn"]):
        if ask("bfloat16, on AVX-512?", call["dtype"], call["dtype"] == "bfloat16"):
            return asked, onednn(call)
        single = call["dtype"] == "float32"
        if (
            ask("float32?", call["dtype"], single)
            and ask("worth a call?", *worth(call))
            and ask("large enough?", *large(call))
        ):
            return asked, onednn(call)
    dilated = max(call["dilation"]) > 1
    if call["depth"] and ask(
        "a plain volume?", f"{name}, dilation {pair(call['dilation'])}", name == "direct" and not dilated
    ):
        return asked, "Slow3d"
    kind = "3d" if call["depth"] else "2d"
    if ask("transposed?", name, call["transposed"]):
        return asked, f"SlowTranspose{kind}"
    if ask("dilated?", f"dilation {pair(call['dilation'])}", dilated):
        return asked, f"SlowDilated{kind}"
    return asked, "NnpackSpatial" if ask("NNPACK?", *nnpack(call)) else "Slow2d"


def onednn(call):
    return "MkldnnTranspose" if call["transposed"] else "Mkldnn"


def worth(call):
    """The first reason of several to call oneDNN at all; one is enough."""
    if max(call["stride"]) > 1:
        return f"stride {pair(call['stride'])}", True
    if max(call["dilation"]) > 1:
        return f"dilation {pair(call['dilation'])}", True
    if call["images"] >= 16:
        return f"batch {call['images']} ≥ 16", True
    if max(call["kernel"]) > 1:
        return f"kernel {pair(call['kernel'])}, not 1 × 1", True
    if call["threads"] > 1:
        return f"{call['threads']} threads", True
    return "1 × 1, no stride, batch < 16, one thread", False


def large(call):
    """The first reason to take oneDNN and not columns; one is enough."""
    seen = (
        call["size"] if not call["depth"] else [call["depth"], call["size"][0]]
    )  # in PyTorch: four sizes of any input
    numbers = call["images"] * call["channels"] * prod(seen)
    if call["groups"] > 1:
        return f"{call['groups']} groups", True
    if min(call["kernel"]) > 3:
        return f"kernel {pair(call['kernel'])}, over 3 × 3", True
    if call["images"] > 1:
        return f"batch {call['images']} > 1", True
    counted = f"{numbers:,} of {numbers * call['size'][1]:,}" if call["depth"] else f"{numbers:,}"
    return f"{counted} numbers {'>' if numbers > FEW else '≤'} {FEW:,}", numbers > FEW


def nnpack(call):
    """The first reason not to ask NNPACK; all must be absent."""
    if call["dtype"] != "float32":
        return call["dtype"], False
    if call["images"] < 16:
        return f"batch {call['images']} < 16", False
    if max(call["kernel"]) > 16:
        return f"kernel {pair(call['kernel'])}, over 16", False
    if any(p >= k for p, k in zip(call["padding"], call["kernel"])):
        return f"padding {pair(call['padding'])}, not below the kernel", False
    return f"float32, batch {call['images']} ≥ 16", True


# ---- what it costs, and sentences


def pair(two):
    return f"{two[0]} × {two[1]}"


def facts(call, out, inner, backend):
    """[name, value] rows: the shapes, the weights, and the work."""
    sizes, kernels, *_ = zip(*dimensions(call))
    taps_ = prod(kernels)
    per = call["filters"] // call["groups"]
    weight = [call["channels"], per] if call["transposed"] else [call["filters"], inner]
    places = prod(sizes if call["transposed"] else out)
    products = call["images"] * places * prod(weight) * taps_
    return [
        ["result", str((call["images"], call["filters"], *out))],
        ["weight", str((*weight, *kernels))],
        ["products", f"{products:,}"],
        ["numbers in columns (one image)", columns_of(call, taps_ * places, backend)],
    ]


def columns_of(call, places, backend):
    """How many numbers the columns of one image take; only PyTorch's own code makes columns."""
    if not backend.startswith("Slow"):
        return "–"
    plain = {*call["kernel"], *call["stride"]} == {1} and not any(call["padding"])
    if plain and backend in ("Slow2d", "Slow3d"):
        return "none: a view"
    return f"{(call['filters'] if call['transposed'] else call['channels']) * places:,}"


def listed(word, numbers):
    """rows 1, 2, 3; long runs by their ends."""
    if len(numbers) == 1:
        return f"{word} {numbers[0]}"
    all_ = ", ".join(map(str, numbers)) if len(numbers) < 6 else f"{numbers[0]}, {numbers[1]}, … {numbers[-1]}"
    return f"{word}s {all_}"


def said(call, at, filter_, rows, columns, first, inner, backend):
    if not call["images"]:
        return f"Without an image the result has no elements. PyTorch takes {backend}."
    inside = [sorted(i for _, i in line if 0 <= i < n) for line, n in zip((rows, columns), call["size"])]
    real, all_ = len(inside[0]) * len(inside[1]), len(rows) * len(columns)
    channels = f"channel {first}" if inner == 1 else f"channels {first} to {first + inner - 1}"
    start = "In one slice of the volume, output" if call["depth"] else "Output"
    start = f"{start} [{at[0]}, {at[1]}] of filter {filter_} reads"
    if not real:
        where = f"{start} nothing but padding" if all_ else f"{start} nothing"
    else:
        where = f"{start} {listed('row', inside[0])}, {listed('column', inside[1])} of {channels}"
    padding = f", and padding {all_ - real} times a channel" if real and all_ > real else ""
    return f"{where}{padding}. PyTorch takes {backend}."


# ---- still, and random


def picture(result, step):
    """The input around the window, and the questions."""
    parts = []
    rows, columns = ([i for _, i in result[name]] for name in ("rows", "columns"))
    for i in range(-2, 9):
        for j in range(-2, 9):
            inside = 0 <= i < result["size"][0] and 0 <= j < result["size"][1]
            read = i in rows and j in columns
            if inside or read:
                kind = ("pick" if inside else "gold") if read else "plain"
                parts.append(box(20 * (j + 2) + 10, 20 * (i + 2) + 10, 18, 18, kind))
    lines = [f"{words} {of}: {'yes' if answer else 'no'}" for words, of, answer in result["asked"]]
    lines.append(f"→ {result['backend']}")
    parts += [text(line, 250, 24 + 22 * n) for n, line in enumerate(lines)]
    return drawing(700, 240, *parts)


def sample(random):
    """Calls that mostly fit, small and large."""
    groups = random.choice([1, 1, 1, 2, 3])
    few = random.random() < 0.7
    sizes = [1, 2, 4, 5, 6, 7] if few else [20, 32, 64, 65, 224]
    return {
        "images": random.choice([1, 1, 1, 1, 1, 2, 2, 15, 16, 0]),
        "channels": groups * random.choice([1, 2, 5]) + (random.random() < 0.05),
        "filters": groups * random.choice([1, 2]) + (random.random() < 0.05),
        "groups": groups,
        "size": [random.choice(sizes) for _ in range(random.choice([1, 2, 2]))],
        "kernel": [random.choice([1, 1, 2, 3, 3, 4, 5]) for _ in range(random.choice([1, 2]))],
        "stride": [random.choice([1, 1, 2, 3]) for _ in range(random.choice([1, 2]))],
        "padding": [random.choice([0, 0, 1, 2]) for _ in range(random.choice([1, 2]))],
        "dilation": [random.choice([1, 1, 2]) for _ in range(random.choice([1, 2]))],
        "at": [random.randrange(7) for _ in range(2)],
        "dtype": random.choice(["float32"] * 4 + ["float64", "bfloat16"]),
        "threads": random.choice([1, 2]),
        "depth": random.choice([0, 0, 0, 1, 3, 50]),
    }


FIGURE = Figure(
    name="convolution",
    title="A convolution, element by element",
    inputs=(
        Integers("size", "image", [5, 5], low=1, high=1024, longest=2, shortest=1),
        Integers("kernel", "kernel", [3], low=1, high=31, longest=2, shortest=1),
        Integers("stride", "stride", [1], low=1, high=16, longest=2, shortest=1),
        Integers("padding", "padding", [1], low=0, high=31, longest=2, shortest=1),
        Integers("dilation", "dilation", [1], low=1, high=16, longest=2, shortest=1),
        Integer("depth", "depth", 0, hint="of a volume; 0: images", low=0, high=256),
        Integer("images", "batch", 1, low=0, high=4096),
        Integer("channels", "channels", 4, low=1, high=4096),
        Integer("filters", "filters", 4, low=1, high=4096),
        Integer("groups", "groups", 1, low=1, high=4096),
        Choice("dtype", "dtype", "float32", options=["float32", "float64", "bfloat16"]),
        Integer("threads", "threads", 4, low=1, high=256),
        Switch("transposed", "transposed", False),
        Switch("onednn", "oneDNN", True),
        Integer("filter", "filter looked at", 0, low=0, high=4095, hidden=True),
        Integers("at", "place looked at", [0, 0], low=0, high=65535, longest=2, shortest=2, hidden=True),
    ),
    model=model,
    picture=picture,
    sample=sample,
)
