"""Random programs of transforms, three deep, with PyTorch and with readtorch: python -m tests.functorch.random_nesting FIRST LAST [-v]

A program is a chain of operators on one tensor, which three transforms are put around in turn. What lies between them may use the inputs of
the levels outside, so that levels mix. Programs fail, too: then both must fail with the same words.
"""

import argparse
import random
import re
import warnings

import torch

import readtorch as rt
from tests.reference import to_torch

DEPTH = 3


class Program:
    """One program: the same decisions for whichever library runs it."""

    def __init__(self, seed):
        draw = random.Random(seed)
        self.shape = draw.choice([(3,), (2, 3), (3, 2), (2, 3, 2), (2, 2, 3)])
        self.body = [(draw.choice(draw.choice(FAMILIES)), draw.randrange(1000)) for _ in range(draw.randint(1, 5))]
        if draw.random() < 0.12:
            self.body.insert(draw.randrange(len(self.body) + 1), (draw.choice(REFUSED), draw.randrange(1000)))
        self.transforms = [(draw.choice(TRANSFORMS), draw.choice(BETWEEN), draw.randrange(1000)) for _ in range(DEPTH)]
        if sum(ORDER.get(transform, 1) for transform, _, _ in self.transforms) > 2:
            self.body = [(POINTWISE[0] if operator in ONLY_TWICE else operator, n) for operator, n in self.body]

    def __str__(self):
        body = " ".join(f"{operator.__name__}/{number}" for operator, number in self.body)
        outside = " ".join(f"{t.__name__}({b.__name__})/{number}" for t, b, number in reversed(self.transforms))
        return f"{self.shape}: {outside}: {body}"

    def run(self, T):
        """The tensors that it computes, or (type of an error, its text)."""
        T.manual_seed(0)
        x = T.arange(1.0, 1 + torch.Size(self.shape).numel(), dtype=T.float64).reshape(self.shape).sin()
        function = lambda a: self.computed(T, a)
        for transform, between, number in self.transforms:
            function = around(T, transform, between, number, function)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return leaves(function(x))
        except Exception as error:
            return type(error).__name__, said(error)

    def computed(self, T, a):
        for operator, number in self.body:
            a = operator(T, a, number)
            if a.numel() > 64:
                a = a.sum(-1)
        return a


def around(T, transform, between, number, function):
    """`transform` of the function, which besides may use the input of the level outside."""
    return lambda x: transform(T, lambda a: between(function(a), x), x, number)


def said(error):
    """An error's text without what may differ: addresses, names of the package, where it was raised in C++, and which of PyTorch's two
    sentences says that a tangent of zeros cannot be written to."""
    if str(error).startswith("ZeroTensors are immutable."):
        return "ZeroTensors are immutable."
    text = str(error).replace("readtorch._tensor.Tensor", "torch.Tensor").replace("readtorch", "torch")
    return re.sub(r"0x[0-9a-f]+|(?s:\nException raised from.*)", "", text)


def leaves(result):
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves(part)]
    result = result.detach().clone()  # which fills a ZeroTensor
    return [to_torch(result) if isinstance(result, rt.Tensor) else result]


def difference(program):
    """What differs between the two libraries; None if nothing does."""
    expected, ours = program.run(torch), program.run(rt)
    if isinstance(expected, tuple) or isinstance(ours, tuple):
        return None if expected == ours else f"torch: {str(expected)[:300]}\n    ours:  {str(ours)[:300]}"
    try:
        torch.testing.assert_close(ours, expected, rtol=1e-7, atol=1e-9, equal_nan=True, check_stride=False)
    except AssertionError as error:
        return str(error)
    return None


# --------------------------------------------------------------------------------------------------- transforms


def dim_of(x, number, more=0):
    """A dimension of x, from the front or from the back; 0 if it has none."""
    rank = x.dim() + more
    return number % (2 * rank) - rank if rank else 0


def vmap(T, f, x, number):
    return T.func.vmap(f, in_dims=dim_of(x, number), randomness=("different", "same", "error")[number % 3])(x)


def vmap_other_side(T, f, x, number):
    return T.func.vmap(f, in_dims=dim_of(x, number), out_dims=-1, chunk_size=(None, 1, 2)[number % 3])(x)


def grad(T, f, x, number):
    return T.func.grad(lambda a: f(a).sum())(x)


def grad_and_value(T, f, x, number):
    gradient, (value, aux) = T.func.grad_and_value(lambda a: (f(a).mean(), a * 2), has_aux=True)(x)
    return gradient * value + aux


def grad_of_a_number(T, f, x, number):
    """An error unless f returns one."""
    return T.func.grad(f)(x) if number % 3 == 0 else T.func.grad(lambda a: f(a).flatten()[0])(x)


def jvp(T, f, x, number):
    value, tangent = T.func.jvp(f, (x,), (x.cos() if number % 2 else T.ones_like(x),))
    return tangent if number % 3 else value * tangent


def vjp(T, f, x, number):
    value, pull = T.func.vjp(f, x)
    return pull(value.cos() if number % 2 else T.ones_like(value))[0]


def jacobian(T, f, x, number):
    make = (T.func.jacrev, T.func.jacfwd)[number % 2]
    return make(lambda a: f(a).flatten()[:2])(x)


def hessian(T, f, x, number):
    result = T.func.hessian(lambda a: f(a).sum())(x)
    return result.sum(0) if result.dim() and result.numel() > 36 else result


TRANSFORMS = [
    vmap,
    vmap,
    vmap_other_side,
    grad,
    grad,
    grad_and_value,
    grad_of_a_number,
    jvp,
    jvp,
    vjp,
    jacobian,
    hessian,
]


def alone(result, x):
    return result


def scaled(result, x):
    return result * x.mean()


def shifted(result, x):
    return result + x.detach().sum()


def squeezed(result, x):
    return (result * x.flatten()[0]).tanh()


ORDER = {vmap: 0, vmap_other_side: 0, hessian: 2}  # how often they differentiate; the others once
BETWEEN = [alone, alone, scaled, shifted, squeezed]

# ---------------------------------------------------------------------------------------------------- operators


def named(**functions):
    """Operators of lambdas (T, a, number), by their names."""
    for name, function in functions.items():
        function.__name__ = name
    return list(functions.values())


def in_place(T, a, number):
    b = a.clone()
    b.mul_(2)
    if b.dim():
        b.select(dim_of(b, number), 0).add_(1)
    return b * a


def filled(T, a, number):
    b = a * 1
    b[..., :1] = 0.5 if a.dim() else b
    return b


def zeros_written(T, a, number):
    b = T.zeros_like(a)
    return b.add_(a).exp()


def without_grad(T, a, number):
    with T.no_grad():
        b = a * 2
    return a * b


def custom(T, a, number):
    class Cube(T.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return g * 3 * ctx.saved_tensors[0] ** 2

        @staticmethod
        def jvp(ctx, t):
            return t * 3 * ctx.saved_tensors[0] ** 2

    return Cube.apply(a)


def weight(T, rows, columns):
    return T.arange(float(rows * columns), dtype=T.float64).reshape(rows, columns).cos()


def linear(T, a, number):
    return T.nn.functional.linear(a, weight(T, 2, a.shape[-1]), weight(T, 1, 2)[0]) if a.dim() else a


def matmul(T, a, number):
    return a @ weight(T, a.shape[-1], 2) if a.dim() else a * 2


def convolution(T, a, number):
    if a.dim() < 2 or a.dim() > 3:
        return a.sin()
    channels = a.shape[-2]
    kernel = weight(T, 2 * channels, 2).reshape(2, channels, 2)
    return T.nn.functional.conv1d(a, kernel, padding=1)


def layer_norm(T, a, number):
    return T.nn.functional.layer_norm(a, a.shape[-1:], weight(T, 1, a.shape[-1])[0]) if a.dim() else a.cos()


def gathered(T, a, number):
    return a.gather(-1, a.argsort(-1)) if a.dim() else a


POINTWISE = named(
    sin=lambda T, a, n: a.sin(),
    square=lambda T, a, n: a * a,
    power=lambda T, a, n: a**3,
    exp=lambda T, a, n: a.clamp(max=2).exp(),
    relu=lambda T, a, n: (a - 0.1).relu(),
    sigmoid=lambda T, a, n: T.sigmoid(a),
    gelu=lambda T, a, n: T.nn.functional.gelu(a),
    where=lambda T, a, n: T.where(a > 0.2, a * 2, a / 3),
    divide=lambda T, a, n: a / (a * a + 1),
    number_first=lambda T, a, n: 1 - a * T.tensor(2.0, dtype=T.float64),
    of_a_list=lambda T, a, n: a * T.tensor([0.5], dtype=T.float64),
    atan2=lambda T, a, n: T.atan2(a, a + 2),
    masked=lambda T, a, n: a.masked_fill(a < 0, 0.3),
)
SHAPES = named(
    transpose=lambda T, a, n: a.transpose(0, -1) if a.dim() else a,
    flatten=lambda T, a, n: a.flatten(),
    first=lambda T, a, n: a[..., 0] if a.dim() else a,
    chosen=lambda T, a, n: a[..., [0, -1, 0]] if a.dim() else a,
    flip=lambda T, a, n: a.flip(dim_of(a, n)) if a.dim() else a,
    unsqueeze=lambda T, a, n: a.unsqueeze(dim_of(a, n, 1)),
    expand=lambda T, a, n: a.unsqueeze(0).expand(2, *a.shape),
    cat=lambda T, a, n: T.cat([a, a.sin()], dim_of(a, n)) if a.dim() else T.stack([a, a * a]),
    stack=lambda T, a, n: T.stack([a, a.cos()], -1),
    diagonal=lambda T, a, n: a.diagonal(0, 0, -1) if a.dim() > 1 else a,
    split=lambda T, a, n: T.cat([p * (i + 1) for i, p in enumerate(a.split(1, -1))], -1) if a.dim() else a,
    strided=lambda T, a, n: a[..., ::2] if a.dim() else a,
)
REDUCTIONS = named(
    sum=lambda T, a, n: a.sum(dim_of(a, n)) if a.dim() else a.sum(),
    mean=lambda T, a, n: a.mean(dim_of(a, n), keepdim=True) if a.dim() else a,
    total=lambda T, a, n: a.sum(),
    amax=lambda T, a, n: a.amax(-1) if a.dim() else a,
    maximum=lambda T, a, n: a.max(-1).values if a.dim() else a,
    variance=lambda T, a, n: a.var(-1, correction=0) if a.dim() else a,
    norm=lambda T, a, n: a.norm(),
    logsumexp=lambda T, a, n: a.logsumexp(-1) if a.dim() else a,
    prod=lambda T, a, n: a.prod(-1) if a.dim() else a,
)
SCANS = named(
    cumsum=lambda T, a, n: a.cumsum(-1) if a.dim() else a,
    softmax=lambda T, a, n: a.softmax(-1) if a.dim() else a,
    sort=lambda T, a, n: a.sort(-1).values if a.dim() else a,
    outer=lambda T, a, n: T.outer(a.flatten()[:3], a.flatten()[:2]),
    einsum=lambda T, a, n: T.einsum("...i,...i->...", a, a.exp()) if a.dim() else a,
) + [linear, matmul, convolution, layer_norm, gathered]
WRITES = [in_place, filled, zeros_written, without_grad, custom] + named(detached=lambda T, a, n: a.detach() * a)
# Third derivatives of these are not right in PyTorch: its formulas take statistics for constants, or write to what they have saved.
ONLY_TWICE = [layer_norm, next(f for f in REDUCTIONS if f.__name__ == "norm")]
FAMILIES = [POINTWISE, POINTWISE, SHAPES, REDUCTIONS, SCANS, WRITES]
REFUSED = named(
    item=lambda T, a, n: a * a.sum().item(),
    branch=lambda T, a, n: a * 2 if a.sum() > 0 else a,
    nonzero=lambda T, a, n: a.flatten()[a.flatten().nonzero()[0]],
    numpy=lambda T, a, n: a + T.from_numpy(a.numpy()),
    requires_grad_=lambda T, a, n: a.requires_grad_() * 2,
    backward=lambda T, a, n: (a.sum().backward(), a)[1],
    random=lambda T, a, n: a + T.rand(1, dtype=T.float64),
    dropout=lambda T, a, n: T.nn.functional.dropout(a, 0.5),
    captured=lambda T, a, n: T.zeros(2, dtype=T.float64).add_(a.sum()),
    sizes=lambda T, a, n: a + T.ones(5, dtype=T.float64),
    out=lambda T, a, n: T.add(a, a, out=T.zeros_like(a)),
)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("-v", action="store_true")
    options = parser.parse_args()
    wrong = failed = 0
    for seed in range(options.first, options.last):
        program = Program(seed)
        differs = difference(program)
        failed += isinstance(program.run(torch), tuple)
        if options.v or differs:
            print(f"{seed} {program}", flush=True)
        if differs:
            wrong += 1
            print(f"    {differs}", flush=True)
    print(f"{wrong} of {options.last - options.first} differ; {failed} raise an error")


if __name__ == "__main__":
    main()
