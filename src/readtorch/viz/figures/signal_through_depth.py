"""What becomes of a signal in a deep network: its scale, what tells samples apart, and the gradient on its way back
(the chapter "Where numbers come from: init and random").

The weights are those that `nn.Linear` draws from the seed, times a factor. Results of layers are rounded to float32, sums are
taken in float64, and every operation before the last averages is one whose bits are the same in JavaScript.
In PyTorch: `torch/nn/init.py`, `aten/src/ATen/core/MT19937RNGEngine.h`. `tests/viz/test_signal_through_depth.py` runs it there.
"""

import math

import numpy as np

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Integer, Number
from readtorch.viz.picture import box, drawing, tag, text

SAMPLES = 16
NAMED = {"nn.Linear": 1 / math.sqrt(3), "Xavier": 1.0, "ReLU": math.sqrt(2), "tanh": 5 / 3}
F32 = np.float32


# ---- random numbers


class Engine:
    """mt19937, a word at a time."""

    def __init__(self, seed):
        self.words, self.position = [seed & 0xFFFFFFFF], 624
        for i in range(1, 624):
            last = self.words[-1]
            self.words.append((1812433253 * (last ^ last >> 30) + i) & 0xFFFFFFFF)

    def renew(self):
        old = np.array([*self.words, self.words[0]], np.uint32)
        new = np.empty(624, np.uint32)
        joined = (old[:-1] & np.uint32(0x80000000)) | (old[1:] & np.uint32(0x7FFFFFFF))
        new[:227] = old[397:624] ^ twisted(joined[:227])
        new[227:454] = new[:227] ^ twisted(joined[227:454])
        new[454:623] = new[227:396] ^ twisted(joined[454:623])
        last = (old[623] & np.uint32(0x80000000)) | (new[0] & np.uint32(0x7FFFFFFF))
        new[623] = new[396] ^ twisted(last)
        self.words, self.position = new, 0

    def draw(self, count):
        """The low 24 bits of so many words, as fractions."""
        blocks, missing = [], count
        while missing:
            if self.position == 624:
                self.renew()
            block = np.asarray(self.words[self.position : self.position + missing], np.uint32)
            self.position += len(block)
            missing -= len(block)
            blocks.append(block)
        y = np.concatenate(blocks)
        y ^= y >> np.uint32(11)
        y ^= (y << np.uint32(7)) & np.uint32(0x9D2C5680)
        y ^= (y << np.uint32(15)) & np.uint32(0xEFC60000)
        y ^= y >> np.uint32(18)
        return (y & np.uint32(0xFFFFFF)) / 2.0**24


def twisted(joined):
    return (joined >> np.uint32(1)) ^ (joined & np.uint32(1)) * np.uint32(0x9908B0DF)


def normals(engine, count):
    """`torch.randn` of a multiple of 16 numbers."""
    u = engine.draw(count).reshape(-1, 2, 8)
    radius, angle = np.sqrt(-2 * np.log(1 - u[:, 0])), 2 * math.pi * u[:, 1]
    return F32(np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1))


def uniforms(engine, count, bound):
    """`uniform_(-bound, bound)`: the sum is exact in float64, and rounded once."""
    bound = float(F32(bound))
    return F32(engine.draw(count) * (2 * bound) - bound)


# ---- the network


def tanh(x):
    """By a continued fraction for a sixteenth of x, and four doublings."""
    y = np.clip(x, -12, 12) / 16
    square = y * y
    t = y / (
        1 + square / (3 + square / (5 + square / (7 + square / (9 + square / (11 + square / (13 + square / 15))))))
    )
    for _ in range(4):
        t = 2 * t / (1 + t * t)
    return t


ACTIVATIONS = {
    "relu": (lambda z: np.maximum(z, 0), lambda a: (a > 0) * 1.0),
    "tanh": (tanh, lambda a: 1 - a * a),
    "sigmoid": (lambda z: (1 + tanh(z / 2)) / 2, lambda a: a * (1 - a)),
    "none": (lambda z: z, lambda a: a * 0 + 1.0),
}


def products(a, b):
    """a @ b of float32 numbers: exact products, added in order."""
    return (a.T.astype(float)[:, :, None] * b.astype(float)[:, None, :]).sum(0)


def exact_gain(gain):
    """0.577 stands for 1/√3, and likewise for the other gains that have a name."""
    return next((exact for exact in NAMED.values() if abs(exact - gain) < 6e-4), gain)


def network(inputs, gain):
    width, engine = inputs["width"], Engine(inputs["seed"])
    x = normals(engine, SAMPLES * width).reshape(SAMPLES, width)
    factor, bound = F32(gain * math.sqrt(3)), 1 / math.sqrt(width)
    layers = []
    for _ in range(inputs["depth"]):
        weight = uniforms(engine, width * width, bound).reshape(width, width)
        bias = uniforms(engine, width, bound) if inputs["bias"] != "none" else np.zeros(width, F32)
        layers.append(
            (weight if abs(gain * math.sqrt(3) - 1) < 1e-9 else weight * factor, bias * F32(inputs["bias"] == "drawn"))
        )
    return x, layers


def forward(x, layers, act):
    seen, scale, difference = [], [], []
    for weight, bias in layers:
        seen.append(x)
        z = F32(products(x, weight.T) + bias)
        wide = z.astype(float)
        scale.append(math.sqrt((wide * wide).mean()))
        apart = wide - wide.sum(0) / SAMPLES
        difference.append(float(np.sqrt((apart * apart).sum(0) / (SAMPLES - 1)).mean()))
        x = F32(act(wide))
    return [*seen, x], scale, difference


def backward(seen, layers, slope):
    """The root mean square of each weight's gradient. A product's: from the products of its factors' rows with one another."""
    dz, norms = np.ones_like(seen[0]), []
    for i in reversed(range(len(layers))):
        norms.append(math.sqrt(max(0.0, (products(dz, dz.T) * products(seen[i], seen[i].T)).sum())) / dz.size)
        if i:
            da = F32(products(dz, layers[i][0]))
            dz = F32(da.astype(float) * slope(seen[i].astype(float)))
    return norms[::-1]


def model(inputs):
    gain = exact_gain(inputs["gain"])
    x, layers = network(inputs, gain)
    act, slope = ACTIVATIONS[inputs["act"]]
    seen, scale, difference = forward(x, layers, act)
    gradient = backward(seen, layers, slope)
    at = min(inputs["layer"], len(layers))
    count = len(layers)
    say = (
        f"{count} layer{'s' * (count > 1)} of {inputs['width']}, gain {gain:.3f}: the scale goes from {short(scale[0])} to {short(scale[-1])}, "
        f"the difference between samples from {short(difference[0])} to {short(difference[-1])}; the gradient, on its way back, "
        f"from {short(gradient[-1])} to {short(gradient[0])}."
    )
    lines = {"scale": scale, "difference": difference, "gradient": gradient}
    zeros = [f"the {name} of {layers_at_zero(line)}" for name, line in lines.items() if not all(line)]
    say += f" Exactly 0, and therefore not drawn: {', '.join(zeros)}." if zeros else ""
    powers = [math.floor(math.log10(x)) for line in lines.values() for x in line if x]
    return {**lines, "at": at, "low": min([*powers, -1]), "high": max([*powers, -1]) + 1, "say": say}


def layers_at_zero(line):
    where = [i + 1 for i, x in enumerate(line) if not x]
    if len(where) == 1:
        return f"layer {where[0]}"
    together = where[-1] - where[0] == len(where) - 1
    return f"layers {where[0]} to {where[-1]}" if together else f"{len(where)} layers"


def short(x):
    """Two digits: 0.083, 1.6, 120, 3.1e-12."""
    mantissa, exponent = f"{x:.1e}".split("e")
    power = int(exponent)
    return f"{x:.{max(0, 1 - power)}f}" if -3 <= power <= 3 else f"{mantissa}e{power}"


def picture(result, step):
    count, low, high = len(result["scale"]), result["low"], result["high"]

    def path(line, class_):
        points = [
            f"{30 + 350 * i / max(1, count - 1):.1f} {10 + 150 * (high - math.log10(x)) / (high - low):.1f}"
            for i, x in enumerate(line)
            if x
        ]
        return tag("path", d="M" + "L".join(points), class_=f"{class_} bare")

    parts = [path(result["scale"], "pale"), path(result["difference"], "gold"), path(result["gradient"], "free")]
    words = "blue: scale; dashed gold: difference between samples; dashed grey: gradient"
    return drawing(400, 190, box(30, 10, 350, 150, "free"), *parts, text(words, 30, 180, "dim"))


FIGURE = Figure(
    name="signal_through_depth",
    title="A signal through a deep network",
    inputs=(
        Number("gain", "gain", 0.577, low=0.2, high=3, step=0.05, slider=True, named={"1/√3": 0.577, "√2": 1.414, "5/3": 1.667, "1/sqrt(3)": 0.577, "sqrt(2)": 1.414}),
        Integer("depth", "layers", 30, low=1, high=50, slider=True),
        Choice("bias", "bias", "drawn", options={"drawn": "as drawn", "zero": "set to zero", "none": "bias=False"}),
        Choice("act", "between", "relu", options={"relu": "ReLU", "tanh": "tanh", "sigmoid": "sigmoid", "none": "nothing"}),
        Integer("width", "width", 64, low=8, high=128),
        Integer("seed", "seed", 0, low=-(2**32), high=2**33),
        Integer("layer", "layer", 30, low=1, high=50, hidden=True, undone=True),
    ),
    model=model,
    picture=picture,
)  # fmt: skip
