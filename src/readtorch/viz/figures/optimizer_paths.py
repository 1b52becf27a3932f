"""Where five optimizers go from the reader's start, with the reader's rates (the chapter "torch.optim").

The formulas are written out, in float64 and with operations whose bits are the same in JavaScript, for on a steep surface a last
bit can decide where a path ends. In PyTorch: `torch/optim/sgd.py`, `adam.py`, `adagrad.py`, `rmsprop.py`.
`tests/viz/test_optimizer_paths.py` runs the same paths there.
"""

import math

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Integer, Number
from readtorch.viz.picture import box, drawing, tag, text

FAR = 1e6  # who is beyond has diverged
NEAR = 0.02  # who is as near to a minimum has arrived

# name: (gradient, loss, minima, x and y of the picture, words)
SURFACES = {
    "valley": (
        lambda x, y: (2 * (x - 1) - 40 * x * (y - x * x), 20 * (y - x * x)),
        lambda x, y: (1 - x) * (1 - x) + 10 * (y - x * x) * (y - x * x),
        [(1, 1)],
        "a curved valley, (1 − x)² + 10 (y − x²)²",
    ),
    "bowl": (
        lambda x, y: (x, 25 * y),
        lambda x, y: 0.5 * (x * x + 25 * y * y),
        [(0, 0)],
        "a long bowl, (x² + 25 y²) / 2",
    ),
    "wells": (
        lambda x, y: (4 * x * (x * x - 1), 2 * y),
        lambda x, y: (x * x - 1) * (x * x - 1) + y * y,
        [(-1, 0), (1, 0)],
        "two wells and a saddle between them, (x² − 1)² + y²",
    ),
}


class SGD:
    name, rate = "SGD", 0.018

    def __init__(self, beta):
        self.beta = 0.0
        self.buffer = None

    def direction(self, g):
        self.buffer = g if self.buffer is None else self.beta * self.buffer + g
        return self.buffer


class Momentum(SGD):
    name, rate = "momentum", 0.005

    def __init__(self, beta):
        super().__init__(beta)
        self.beta = beta


class Adagrad:
    name, rate = "Adagrad", 1.5

    def __init__(self, beta):
        self.sum = 0.0

    def direction(self, g):
        self.sum = self.sum + g * g
        return g / (math.sqrt(self.sum) + 1e-10)


class RMSprop:
    name, rate = "RMSprop", 0.02

    def __init__(self, beta):
        self.mean = 0.0

    def direction(self, g):
        self.mean = 0.99 * self.mean + (1 - 0.99) * (g * g)
        return g / (math.sqrt(self.mean) + 1e-8)


class Adam:
    name, rate = "Adam", 0.1

    def __init__(self, beta):
        self.beta = beta
        self.mean = self.square = 0.0
        self.left1 = self.left2 = 1.0  # of the zeros that the means began with

    def direction(self, g):
        self.mean = self.beta * self.mean + (1 - self.beta) * g
        self.square = 0.999 * self.square + (1 - 0.999) * (g * g)
        self.left1, self.left2 = self.left1 * self.beta, self.left2 * 0.999
        size = math.sqrt(self.square / (1 - self.left2)) + 1e-8
        return self.mean / (1 - self.left1) / size


OPTIMIZERS = (SGD, Momentum, Adagrad, RMSprop, Adam)


def path(kind, inputs):
    gradient, loss, minima, _ = SURFACES[inputs["surface"]]
    rate = kind.rate * inputs["rate"]
    axes = kind(inputs["momentum"]), kind(inputs["momentum"])
    x, y = inputs["x"], inputs["y"]
    points, arrived = [[x, y]], None
    for t in range(1, inputs["steps"] + 1):
        gx, gy = gradient(x, y)
        x, y = x - rate * axes[0].direction(gx), y - rate * axes[1].direction(gy)
        if not (abs(x) < FAR and abs(y) < FAR):
            return {"name": kind.name, "rate": rate, "points": points, "arrived": None, "loss": None}
        points.append([x, y])
        if arrived is None and any((x - a) * (x - a) + (y - b) * (y - b) < NEAR * NEAR for a, b in minima):
            arrived = t
    return {"name": kind.name, "rate": rate, "points": points, "arrived": arrived, "loss": loss(x, y)}


def model(inputs):
    paths = [path(kind, inputs) for kind in OPTIMIZERS if inputs["show"] in ("all", kind.name)]
    return {"paths": paths, "minima": SURFACES[inputs["surface"]][2], "say": sentence(inputs, paths)}


def sentence(inputs, paths):
    parts = [f"{one['name']} {ending(one)}" for one in paths]
    return f"After {inputs['steps']} step{'s' * (inputs['steps'] != 1)} from ({short(inputs['x'])}, {short(inputs['y'])}): {', '.join(parts)}."


def ending(one):
    if one["loss"] is None:
        return f"has diverged at step {len(one['points'])}"
    return f"has arrived at step {one['arrived']}" if one["arrived"] else "has not arrived"


def short(x):
    return f"{x * (1 + 1e-12):.2f}".rstrip("0").rstrip(".")


def picture(result, step):
    def place(point):
        x, y = (min(9.0, max(-9.0, value)) for value in point)
        return f"{20 + 90 * (x + 2):.1f} {190 - 45 * (y + 1):.1f}"

    looks = ["pale", "gold", "free", "pale", "gold"]
    lines = [
        tag("path", d="M" + "L".join(map(place, one["points"])), class_=f"{looks[i % 5]} bare")
        for i, one in enumerate(result["paths"])
    ]
    clip = tag("clipPath", tag("rect", x=20, y=10, width=360, height=180), id="frame")
    names = ", ".join(one["name"] for one in result["paths"])
    return drawing(
        400,
        215,
        clip,
        box(20, 10, 360, 180, "free"),
        f'<g clip-path="url(#frame)">{"".join(lines)}</g>',
        text(f"paths of {names}", 20, 206, "dim"),
    )


FIGURE = Figure(
    name="optimizer_paths",
    title="Five ways down",
    inputs=(
        Choice("surface", "surface", "valley", options={name: parts[3] for name, parts in SURFACES.items()}),
        Choice("show", "show", "all", options={"all": "all five", **{kind.name: kind.name for kind in OPTIMIZERS}}),
        Number("rate", "rates times", 1, low=0.01, high=100, step=0.1),
        Number("momentum", "momentum, β₁", 0.9, low=0, high=0.999, step=0.05),
        Number("x", "start x", -1.5, low=-2, high=2, step=0.1),
        Number("y", "y", 2, low=-1, high=3, step=0.1),
        Integer("steps", "steps", 600, low=1, high=1000, slider=True),
    ),
    model=model,
    picture=picture,
    hint="Drag the start in the picture, or type it.",
)  # fmt: skip
