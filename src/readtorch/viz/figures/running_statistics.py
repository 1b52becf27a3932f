"""What a batch norm remembers, batch by batch, and four ways to compute one variance (the chapter "Normalization").

In PyTorch: `aten/src/ATen/native/Normalization.cpp` (`batch_norm_cpu_update_stats_template`), `native/cpu/batch_norm_kernel.cpp`
and, for the mean of a slice, `native/cpu/SumKernel.cpp` (`row_sum`).
`tests/viz/test_running_statistics.py` runs random inputs with `torch.nn.BatchNorm1d`.
"""

import math

import numpy as np

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Integer, Number, Refusal, Switch
from readtorch.viz.picture import drawing, tag, text

BATCHES = 40
DECADES = 10
FLOAT, DOUBLE = np.float32, np.float64
EPS = 1e-5
LAYOUTS = {"image": "an image, contiguous", "rows": "(N, C), or channels last", "slice": "a slice, with strides"}
FORMULAS = ["E[x²] − E[x]²", "two passes, float32", "two passes, double", "Welford, float32"]


# ---- data: numbers with deviation 1 that JavaScript draws as well


def mix(x):
    """32 bits without a pattern, of the number of the draw."""
    x = (x ^ (x >> 16)) * np.uint32(0x45D9F3B)
    x = (x ^ (x >> 16)) * np.uint32(0x45D9F3B)
    return x ^ (x >> 16)


def noise(count):
    """Sums of twelve random bytes less their mean, in 256ths: deviation 1, nearly normal, and exact in float32."""
    places = np.arange(3 * count, dtype=np.uint32) + np.uint32(1)
    drawn = mix(places)
    total = sum((drawn >> shift) & 255 for shift in (0, 8, 16, 24)).astype(np.int64)
    return (total.reshape(count, 3).sum(1) - 1530) / 256


def values_at(offset, noise):
    return (DOUBLE(offset) + noise).astype(FLOAT)


# ---- three ways through the layer, by memory: mean and Σ (x - mean)² along the last axis


def in_order(x):
    """The sum along the last axis, from left to right, in the type of x."""
    return np.add.accumulate(x, -1)[..., -1]


def of_image(x):
    """Wide sums; the mean, each difference and its square are float32."""
    mean = (in_order(x.astype(DOUBLE)) / x.shape[-1]).astype(FLOAT)
    d = x - mean[..., None]
    return mean, in_order((d * d).astype(DOUBLE)).astype(FLOAT)


def by_threads(count, threads):
    """Where each thread's share of the rows begins and ends."""
    share = -(-count // threads) if count > threads else count
    return [(low, min(low + share, count)) for low in range(0, count, share)]


def of_rows(x, threads):
    """Each thread adds its rows in float32, squares with one rounding (fmadd); the threads' sums are added wide."""
    shares = by_threads(x.shape[-1], threads)
    mean = (sum(in_order(x[..., low:high]).astype(DOUBLE) for low, high in shares) / x.shape[-1]).astype(FLOAT)
    d, squares = (x - mean[..., None]).astype(DOUBLE), 0
    for low, high in shares:
        total = np.zeros(mean.shape, FLOAT)
        for i in range(low, high):
            total = (d[..., i] * d[..., i] + total).astype(FLOAT)
        squares = squares + total.astype(DOUBLE)
    return mean, squares.astype(FLOAT)


def cascade(x):
    """PyTorch's float32 sum of up to a thousand numbers with strides: four lanes, each of which puts 16 aside at a time."""
    quarter = x.shape[-1] // 4
    lanes = x[..., : 4 * quarter].reshape(*x.shape[:-1], quarter, 4)
    aside = total = np.zeros((*x.shape[:-1], 4), FLOAT)
    for i in range(quarter):
        total = total + lanes[..., i, :]
        if i % 16 == 15:
            aside, total = aside + total, np.zeros_like(total)
    first, *others = np.moveaxis(total + aside, -1, 0)
    for one in [*np.moveaxis(x[..., 4 * quarter :], -1, 0), *others]:
        first = first + one
    return first


def of_slice(x):
    """A mean in float32, then all in double."""
    mean = cascade(x) / FLOAT(x.shape[-1])
    d = x.astype(DOUBLE) - mean[..., None]
    return mean, in_order(d * d)


def statistics(x, layout, threads):
    return of_rows(x, threads) if layout == "rows" else of_image(x) if layout == "image" else of_slice(x)


def remembered(means, unbiased, factors, kind):
    """The two running statistics after each batch, with products of this type. They begin as 0 and 1."""
    running_mean, running_var, rows = FLOAT(0), FLOAT(1), []
    for mean, variance, factor in zip(means, unbiased, map(kind, factors)):
        old = kind(1) - factor
        running_mean = FLOAT(factor * mean + old * running_mean)
        running_var = FLOAT(DOUBLE(factor) * DOUBLE(variance) + DOUBLE(old * running_var))
        rows.append((float(running_mean), float(running_var)))
    return rows


# ---- four formulas for the variance of one batch


def textbook(x):
    count = FLOAT(x.shape[-1])
    mean = in_order(x) / count
    return in_order(x * x) / count - mean * mean


def welford(x):
    mean, squares = np.zeros(x.shape[:-1], FLOAT), np.zeros(x.shape[:-1], FLOAT)
    for i in range(x.shape[-1]):
        delta = x[..., i] - mean
        mean = mean + delta / FLOAT(i + 1)
        squares = squares + delta * (x[..., i] - mean)
    return squares / FLOAT(x.shape[-1])


def four_variances(x, threads):
    """By each of FORMULAS, of the rows of x; then of the numbers that are there, in float64."""
    count = x.shape[-1]
    single, double = of_rows(x, threads)[1], of_image(x)[1]
    wide = x.astype(DOUBLE)
    d = wide - (in_order(wide) / count)[..., None]
    exact = in_order(d * d) / count
    by_formula = [textbook(x), single / FLOAT(count), double / FLOAT(count), welford(x)]
    return [one.astype(DOUBLE) for one in by_formula], exact


# ---- the figure


def shown(x):
    """A number in a sentence: three digits behind the point, none of a large one."""
    if abs(x) >= 1000:
        return f"{math.floor(x + 0.5):,}"
    return f"{math.floor(x * 1000 + 0.5) / 1000:.3f}"


def model(inputs):
    count, offset = inputs["values"], inputs["offset"]
    if count == 1:
        raise Refusal("Expected more than 1 value per channel when training, got input size torch.Size([1, 1, 1])")
    layout, threads = inputs["layout"], inputs["threads"]
    numbers = noise(BATCHES * count)
    means, sums = statistics(values_at(offset, numbers).reshape(BATCHES, count), layout, threads)
    unbiased = sums / sums.dtype.type(count - 1)
    factors = [1 / (i + 1) if inputs["cumulative"] else inputs["momentum"] for i in range(BATCHES)]
    running = remembered(means, unbiased, factors, DOUBLE if layout == "slice" else FLOAT)
    offsets = np.array([offset, *(10.0**k for k in range(DECADES))])
    variances, exact = four_variances(values_at(offsets[:, None], numbers[:count]), threads)
    errors = [np.abs(one - exact).tolist() for one in variances]
    now = [float(one[0]) for one in variances]
    return {
        "means": means.astype(DOUBLE).tolist(),
        "unbiased": unbiased.astype(DOUBLE).tolist(),
        "running": [list(pair) for pair in running],
        "variances": now,
        "outputs": [math.sqrt(exact[0] / (max(one, 0) + EPS)) for one in now],
        "exact": float(exact[0]),
        "errors": [[row[0] for row in errors], *([row[k + 1] for row in errors] for k in range(DECADES))],
        "say": f"After {BATCHES} batches of {count} the running mean is {shown(running[-1][0])}, the running variance "
        f"{shown(running[-1][1])}. Of the first batch E[x²] − E[x]² makes {shown(now[0])}, Welford {shown(now[3])}.",
    }


def chart(x, y, batch, running):
    """A still chart: what each batch had, and what was remembered."""
    low, high = min(batch + running), max(batch + running)
    place = lambda i, v: (x + 10 + 170 * i / (BATCHES - 1), y + 110 - 100 * (v - low) / ((high - low) or 1))
    dots = [tag("circle", cx=px, cy=py, r=2) for px, py in (place(i, v) for i, v in enumerate(batch))]
    line = " ".join(f"{px:.1f},{py:.1f}" for px, py in (place(i, v) for i, v in enumerate(running)))
    path = tag("path", d=f"M{line.replace(' ', ' L')}", class_="bare", style="stroke:var(--blue);stroke-width:2")
    return [*dots, path, text(f"{high:.4g}", x + 184, y + 14, "dim"), text(f"{low:.4g}", x + 184, y + 114, "dim")]


def picture(result, step):
    means, variances = zip(*result["running"])
    rows = [
        text(f"{name}: {shown(value)}", 10, 180 + 20 * i, "mono")
        for i, (name, value) in enumerate(zip(FORMULAS, result["variances"]))
    ]
    return drawing(
        500, 260, text("mean of each batch, running mean", 10, 18), text("variance of each batch, running variance", 250, 18),
        *chart(0, 24, result["means"], list(means)), *chart(240, 24, result["unbiased"], list(variances)),
        text("the variance of the first batch, by", 10, 158), *rows,
    )  # fmt: skip


FIGURE = Figure(
    name="running_statistics",
    title="What a batch norm remembers",
    inputs=(
        Integer("values", "values per channel", 32, low=1, high=512, slider=True, hint="batch size times pixels"),
        Choice("layout", "the batch is", "image", LAYOUTS),
        Number(
            "momentum",
            "momentum",
            0.1,
            low=0,
            high=1,
            step=0.01,
            slider=True,
            hint="without effect under momentum=None",
            only=("cumulative", False),
        ),
        Switch("cumulative", "momentum=None", False),
        Integer("threads", "threads", 1, low=1, high=8, hint="they share the rows of (N, C)"),
        Number(
            "offset", "mean of the data", 3, low=-1_000_000_000, high=1_000_000_000, step=1, hint="the deviation is 1"
        ),
    ),
    model=model,
    picture=picture,
    sample=lambda random: {
        "values": random.choice([2, 3, 16, 512, random.randint(2, 512)]),
        "offset": random.choice([0, -1, 1]) * 10 ** random.uniform(0, 9),
    },
)
