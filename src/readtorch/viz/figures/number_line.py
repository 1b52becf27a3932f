"""Which gradients a dtype can hold, times a scale, and what a GradScaler makes of it (the chapter "Mixed precision").

In PyTorch: `torch/headeronly/util/Half.h`, `BFloat16.h`, and `aten/src/ATen/native/cpu/AmpGradScalerKernels.cpp`.
`tests/viz/test_number_line.py` compares what is stored with `torch`, and the decision with `torch.amp.GradScaler`.
"""

import math
import re
from dataclasses import dataclass

import numpy as np

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Expression, Integer, Refusal
from readtorch.viz.picture import drawing, tag, text

MOST = 10  # gradients
GROWTH_INTERVAL = 2000
GRADIENT = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]{1,2})?|2\^[+-]?[0-9]{1,3})", re.IGNORECASE)
WANTED = f"Gradients are 1 to {MOST} numbers, such as 3e-8, 0.02, 2^-20."
OUT = "A gradient is 0, or its size is from 2^-149 to less than 2^127."
OUTCOMES = ("normal", "subnormal", "zero", "inf")


@dataclass(frozen=True)
class Format:
    """fraction: bits behind the leading one; lowest, highest: exponents of the smallest and the largest normal numbers."""

    fraction: int
    lowest: int
    highest: int

    @property
    def largest(self):
        return (2 - 2.0**-self.fraction) * 2.0**self.highest

    def step_at(self, x):
        """The distance between the numbers of this format around x."""
        exponent = math.frexp(x)[1] - 1 if x else self.lowest
        return 2.0 ** (min(max(exponent, self.lowest), self.highest) - self.fraction)

    def round(self, x):
        step = self.step_at(x)
        nearest = round(x / step) * step  # halfway: to the even multiple
        return nearest if abs(nearest) <= self.largest else math.copysign(math.inf, x)

    def kind_of(self, stored):
        if not math.isfinite(stored):
            return "inf"
        return "zero" if stored == 0 else "subnormal" if abs(stored) < 2.0**self.lowest else "normal"


FORMATS = {"float16": Format(10, -14, 15), "bfloat16": Format(7, -126, 127), "float32": Format(23, -126, 127)}


def gradients_of(words):
    parts = [part for part in re.split(r"[,\s]+", words) if part]
    if not 1 <= len(parts) <= MOST or not all(map(GRADIENT.fullmatch, parts)):
        raise Refusal(WANTED)
    values = [number_of(part) for part in parts]
    if any(value and not 2.0**-149 <= abs(value) < 2.0**127 for value in values):
        raise Refusal(OUT)
    return [float(np.float32(value)) for value in values]


def number_of(part):
    if "^" not in part:
        return float(part)
    sign = -1 if part.startswith("-") else 1
    return sign * 2.0 ** int(part.partition("^")[2])


def row_of(gradient, form, scale):
    """One gradient: what is stored of it, its neighbours there, and what the optimizer gets."""
    scaled = gradient * scale
    stored = form.round(scaled)
    finite = math.isfinite(stored)
    back = stored / scale if finite else None
    step = form.step_at(scaled)
    return {
        "gradient": gradient,
        "scaled": scaled,
        "stored": stored if finite else None,
        "kind": form.kind_of(stored) if gradient else "zero",
        "step": step,
        "below": math.floor(scaled / step) * step,
        "back": back,
        "error": abs(back - gradient) / abs(gradient) if finite and gradient else None,
    }


def decision(rows, exponent, good):
    """What `step` and `update` do: whether it is left out, the next scale's exponent, the next count of good steps."""
    if any(row["kind"] == "inf" for row in rows):
        return {"skipped": True, "exponent": exponent - 1, "good": 0}
    if good + 1 == GROWTH_INTERVAL:
        return {"skipped": False, "exponent": exponent + 1, "good": 0}
    return {"skipped": False, "exponent": exponent, "good": good + 1}


def model(inputs):
    form, exponent = FORMATS[inputs["dtype"]], inputs["exponent"]
    rows = [row_of(gradient, form, 2.0**exponent) for gradient in gradients_of(inputs["gradients"])]
    counts = [sum(row["kind"] == kind for row in rows) for kind in OUTCOMES]
    then = decision(rows, exponent, inputs["good"])
    return {
        "rows": rows,
        "at": min(inputs["at"], len(rows)) - 1,
        "lowest": form.lowest,
        "highest": form.highest,
        "fraction": form.fraction,
        "then": then,
        "say": f"Times 2^{exponent}, {inputs['dtype']} holds {counts[0]} of {len(rows)} as normal numbers, {counts[1]} as subnormal ones; {counts[2]} become 0, "
        f"{counts[3]} infinite. {said(then, exponent)}",
    }


def said(then, exponent):
    if then["skipped"]:
        return f"The scaler leaves this step out and halves the scale to 2^{then['exponent']}."
    if then["exponent"] > exponent:
        return f"The step is taken; it was the {GROWTH_INTERVAL:,}th in a row, so the scale doubles to 2^{then['exponent']}."
    return f"The step is taken; {then['good']:,} in a row."


CLASSES = {"normal": "pick", "subnormal": "pale", "zero": "free", "inf": "gold"}


def picture(result, step):
    def across(x):
        exponent = math.frexp(abs(x))[1] - 1 if x else -60
        return 20 + 460 * (min(max(exponent, -48), 32) + 48) / 80

    parts = [text("powers of two from 2^-48 to 2^32: gradients, and below them what is stored", 10, 18, "dim")]
    for row in result["rows"]:
        x, there = across(row["gradient"]), across(row["scaled"])
        parts += [
            tag("path", d=f"M{x},40 L{there},90", class_="bare"),
            tag("circle", cx=x, cy=40, r=4),
            tag("circle", cx=there, cy=90, r=5, class_=CLASSES[row["kind"]]),
        ]
    rows = [text(f"{row['gradient']:.3g}: {row['kind']}", 10 + 240 * (i % 2), 125 + 18 * (i // 2), "mono") for i, row in enumerate(result["rows"])]  # fmt: skip
    return drawing(500, 225, *parts, *rows)


BAD = ("", "x", "1e-9, ", "1e999", "2^200", "1e-60", "٣", "1,,2", "1 2 3 4 5 6 7 8 9 10 11", "nan", "2^-149", "3e38")


def sample(random):
    """Lists of numbers of all sizes, with ties and borders of the formats."""

    def one():
        power = random.randint(-60, 40)
        return random.choice([
            f"{random.uniform(-9, 9):.4f}e{power // 3}", f"2^{power}", f"{random.choice([1, 3, 5, 2049, 65519, 65520, 65504]) * 2.0**random.randint(-30, 2)!r}", "0",
        ])  # fmt: skip

    words = random.choice(BAD) if random.random() < 0.1 else ", ".join(one() for _ in range(random.randint(1, MOST)))
    return {"gradients": words, "good": random.choice([0, 7, GROWTH_INTERVAL - 1])}


FIGURE = Figure(
    name="number_line",
    title="What is left of your gradients",
    inputs=(
        Expression(
            "gradients",
            "gradients",
            "2e-9, 2.9e-8, 7e-7, 2e-5, 4e-4, 0.01, 0.3, 6",
            hint="numbers, or powers such as 2^-20",
        ),
        Choice("dtype", "dtype", "float16", options=list(FORMATS)),
        Integer("exponent", "scale: 2 to the", 0, low=-20, high=40, slider=True, hint="a GradScaler begins at 16"),
        Integer(
            "good", "good steps before", 0, low=0, high=GROWTH_INTERVAL - 1, hint="steps since the scale was changed"
        ),
        Integer("at", "gradient", 1, low=1, high=MOST, hidden=True),
    ),
    model=model,
    picture=picture,
    sample=sample,
)
