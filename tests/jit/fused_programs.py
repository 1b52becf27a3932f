"""Programs for the fuser's tests, written over `api`: the module torch or the module readtorch."""

import random


def unary_operators(api, x):
    """Fused functions of one float, one kernel with several results."""
    x = x * 1.0
    return (
        api.exp(x),
        api.expm1(x),
        api.tanh(x),
        api.sin(x),
        api.cos(x),
        api.erf(x),
        api.sigmoid(x),
        api.floor(x),
        api.ceil(x),
    )


def of_positive_numbers(api, x):
    positive = x.abs() + 0.1
    return (
        api.log(positive),
        api.log1p(positive),
        api.sqrt(positive),
        api.rsqrt(positive),
        api.reciprocal(positive),
        api.square(positive),
        -positive,
        positive.sign(),
        api.relu(positive),
    )


def activations(api, x):
    f = api.nn.functional
    x = x * 1.0
    return (
        f.silu(x),
        f.gelu(x),
        f.gelu(x, approximate="tanh"),
        f.hardswish(x),
        f.leaky_relu(x, 0.2),
        f.elu(x, 0.7),
        f.softplus(x, 2.0, 1.5),
        f.hardtanh(x, -0.5, 0.75),
    )


def powers(api, x):
    x = x * 1.0
    size = x.abs() + 0.25
    return x**2, x**3, x**-1, x**-2, size**0.5, size**-0.5, size**2.5, x**4, 2.0**x, size**x, x**0, x**1


def clamps(api, x):
    x = x * 1.0
    return x.clamp(min=-0.3), x.clamp(max=0.3), x.clamp(-0.2, 0.9)


def binary_operators(api, x, y):
    x, y = x * 1.0, y + 0.0
    return (
        api.add(x, y, alpha=0.5),
        api.sub(x, y, alpha=3),
        x * y,
        x / (y.abs() + 1),
        api.maximum(x, y),
        api.minimum(x, y),
        1 - x,
        2.5 / (y.abs() + 1),
        x**2,
        (x.abs() + 0.5) ** y,
        api.lerp(x, y, 0.3),
        api.lerp(x, y, 0.7),
        api.addcmul(x, y, y, value=0.5),
        api.addcdiv(x, y, y.abs() + 1, value=-2),
    )


def masks(api, x, y):
    x, y = x * 1.0, y + 0.0
    low, same = x < y, x == y
    return (
        low,
        x >= 0.5,
        y != 0,
        low & same,
        low.logical_or(y > 1),
        low.logical_not(),
        api.where(low, x * 2, y),
        x.masked_fill(low, -1.0),
        (x * 2 > y).to(api.float32) * 3,
        api.where(x > 0, x, 0.0),
    )


def chain(api, x, y):
    """The chain of the benchmark: eight operators."""
    return api.tanh((x * y + 1.0) * 0.5 - y) * api.sigmoid(x) + api.exp(-y)


STEPS = [
    lambda api, a, b: api.tanh(a),
    lambda api, a, b: api.sigmoid(a) * b,
    lambda api, a, b: a * b,
    lambda api, a, b: a - 0.5 * b,
    lambda api, a, b: api.exp(-(a * a)),
    lambda api, a, b: a / (b * b + 1.0),
    lambda api, a, b: api.relu(a) + b,
    lambda api, a, b: api.maximum(a, b),
    lambda api, a, b: a.clamp(-1.5, 1.5),
    lambda api, a, b: api.where(a > b, a, b * 0.25),
    lambda api, a, b: api.nn.functional.silu(a),
    lambda api, a, b: api.log1p(a * a),
    lambda api, a, b: api.nn.functional.gelu(a),
]
ENDS = [lambda a: a, lambda a: a.sum(-1), lambda a: a.mean(), lambda a: a.sum(), lambda a: a.mean(-1, keepdim=True)]


class RandomChain:
    """A program of `length` steps on three operands, drawn from a seed."""

    def __init__(self, seed, length=6):
        draw = random.Random(seed)
        self.steps = [(draw.choice(STEPS), draw.randrange(3)) for _ in range(length)]
        self.end = draw.choice(ENDS)

    def __call__(self, api, *operands):
        value = operands[0]
        for step, which in self.steps:
            value = step(api, value, operands[which])
        return self.end(value)
