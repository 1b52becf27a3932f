"""Random operators, Generator and states: the same bits as PyTorch from the same seed, the same errors."""

import copy
import itertools
import pickle
import re
import warnings

import numpy as np
import pytest
import torch

import readtorch as rt
from tests.reference import FUSES, both, last_bits, to_torch

FLOATS = ["float32", "float64", "float16", "bfloat16"]
COMPLEX = ["complex64", "complex128"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
SHAPES = [(), (0,), (1,), (7,), (15,), (16,), (33,), (1250,), (3, 4), (5, 0), (9, 11), (2, 3, 5), (2, 3, 4, 5)]
SEEDS = itertools.cycle([0, 1, 2**31, 2**40 + 3, 2**64 - 1, -1])


def array(tensor):
    """A tensor's numbers as a NumPy array; bfloat16 as float32, which holds them exactly."""
    tensor = tensor.detach()
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()


class Bits:
    """Numbers that are equal if all their bits are. See Note [ Processors without FMA ] in reference.py."""

    def __init__(self, numbers, tensor):
        self.numbers = np.ascontiguousarray(numbers)
        self.allowed = last_bits(to_torch(tensor)) if isinstance(tensor, rt.Tensor) and not FUSES else 0.0

    def __eq__(self, other):
        if FUSES:
            return self.numbers.tobytes() == other.numbers.tobytes()
        return np.allclose(self.numbers, other.numbers, rtol=0, atol=max(self.allowed, other.allowed), equal_nan=True)

    def __repr__(self):
        return repr(self.numbers)


def visible(result):
    """What can be seen of a result: type, shape, strides and numbers of tensors, the text of anything else."""
    if isinstance(result, (tuple, list)):
        return [visible(r) for r in result]
    if isinstance(result, (torch.Tensor, rt.Tensor)):
        numbers = array(result)
        return (
            str(result.dtype),
            tuple(result.shape),
            result.stride() if numbers.size else (),
            Bits(numbers, result),
            result.requires_grad,
        )
    return re.sub(r" at 0x\w+", "", str(result))


def outcome(T, function):
    """The result of `function(T)`, or the type and text of its error; and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = visible(function(T))
        except Exception as error:
            result = type(error).__name__, str(error)
    return result, [str(w.message).split(" (Triggered")[0] for w in caught]


def state(T):
    return T.get_rng_state().numpy().tobytes()


def same(function):
    """`function(T)` must do the same in both, and leave the same state behind if it succeeds."""
    theirs, ours = outcome(torch, function), outcome(rt, function)
    assert ours == theirs
    failed = isinstance(theirs[0], tuple) and theirs[0][0].endswith("Error")
    if failed:
        rt.set_rng_state(rt.tensor(torch.get_rng_state().tolist(), dtype=rt.uint8))
    assert state(rt) == state(torch)


def seed_both():
    seed = next(SEEDS)
    torch.manual_seed(seed)
    rt.manual_seed(seed)


def layouts(T, shape, dtype):
    """Tensors of zeros of one shape: rows first, columns first, with gaps, with an offset, channels last."""
    dtype = getattr(T, dtype)
    yield T.zeros(shape, dtype=dtype)
    if len(shape) > 1:
        yield T.zeros(shape[::-1], dtype=dtype).permute(*range(len(shape))[::-1])
    if len(shape) == 4:
        yield T.zeros([shape[i] for i in (0, 2, 3, 1)], dtype=dtype).permute(0, 3, 1, 2)
    if len(shape) > 0:
        yield T.zeros(shape[:-1] + (2 * shape[-1] + 3,), dtype=dtype)[..., 3::2]


IN_PLACE = {
    "uniform_": [(), (-2.3, 5.7), (3, 3), (0.5, 0.25), (-1e6, 1e6)],
    "normal_": [(), (2.3, 0.7), (1e-3, 30), (0, 0), (0, -1)],
    "log_normal_": [(), (0.4, 0.8), (0, 0)],
    "cauchy_": [(), (0.4, 0.8), (0, -1)],
    "exponential_": [(), (0.37,), (20,), (0,), (-1,)],
    "geometric_": [(0.4,), (0.999,), (0,), (1,)],
    "bernoulli_": [(), (0.3,), (0,), (1,), (1.5,)],
    "random_": [
        (),
        (2,),
        (0, 2),
        (3, 100),
        (-7, 9),
        (5, 2),
        (-1,),
        (3, None),
        (100, None),
        (2**28,),
        (2**28 - 1,),
        (-(2**40), 2**40),
        (-(2**63), None),
        (-(2**63), 2**63 - 1),
        (2**60, 2**62),
    ],
}


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize("dtype", FLOATS + COMPLEX + INTEGERS + ["bool", "uint16", "uint32", "uint64"])
def test_filling(name, dtype):
    """About 9,000 calls: every type, sizes around the blocks of 16, several strides."""
    for shape, arguments in itertools.product(SHAPES, IN_PLACE[name]):
        seed_both()
        for which in range(len(list(layouts(torch, shape, dtype)))):
            same(lambda T: getattr(list(layouts(T, shape, dtype))[which], name)(*arguments))


def test_named_from():
    same(lambda T: T.zeros(4).uniform_(**{"from": 2, "to": 3}))
    same(lambda T: T.zeros(4).random_(**{"from": 2, "to": 30}))


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX + ["int32", None])
@pytest.mark.parametrize("name", ["rand", "randn"])
def test_rand_and_randn(name, dtype):
    for shape in SHAPES:
        seed_both()
        options = lambda T: {} if dtype is None else {"dtype": getattr(T, dtype)}
        same(lambda T: getattr(T, name)(shape, **options(T)))
        same(lambda T: getattr(T, name)(*shape, **options(T)) if shape else None)
        same(lambda T: getattr(T, name)(size=list(shape), **options(T)))
        same(lambda T: getattr(T, name)(shape, generator=T.Generator().manual_seed(5), **options(T)))
        same(lambda T: getattr(T, name)(shape, requires_grad=True, **options(T)))
        same(lambda T: getattr(T, name)(shape, out=T.zeros(0, dtype=getattr(T, dtype or "float32"))))
        same(lambda T: getattr(T, name + "_like")(T.zeros(shape), **options(T)))
        same(lambda T: getattr(T, name + "_like")(T.zeros(shape).transpose(0, -1) if shape else T.zeros(())))


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS + ["bool", "complex64", None])
def test_randint_and_randperm(dtype):
    options = lambda T: {} if dtype is None else {"dtype": getattr(T, dtype)}
    for shape in SHAPES:
        seed_both()
        for ends in [(2,), (100,), (3, 90), (-5, 5), (300,), (5, 2), (2**33,), (0, 2**62)]:
            same(lambda T: T.randint(*ends, shape, **options(T)))
            same(lambda T: T.randint_like(T.zeros(shape), *ends, **options(T)))
        same(lambda T: T.randint(100, shape, generator=T.Generator().manual_seed(5), **options(T)))
        same(lambda T: T.randint(100, shape, out=T.zeros(0, dtype=getattr(T, dtype or "int64"))))
        same(lambda T: T.randint_like(T.zeros(shape), T.tensor(50)))
    for n in [0, 1, 2, 100, 256, 257, 2049, 2050, 5000, -1]:
        same(lambda T: T.randperm(n, **options(T)))
        same(lambda T: T.randperm(n, generator=T.Generator().manual_seed(5), **options(T)))
        same(lambda T: T.randperm(n, out=T.zeros(0, dtype=getattr(T, dtype or "int64"))))


def given(T, numbers, dtype):
    """The same numbers in either library."""
    return (
        T.tensor(numbers.tolist(), dtype=getattr(T, dtype))
        if numbers.size
        else T.zeros(numbers.shape, dtype=getattr(T, dtype))
    )


NUMBERS = np.random.default_rng(3)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES)
def test_parameters_in_tensors(shape, dtype):
    seed_both()
    p = NUMBERS.random(shape)
    scaled = [p * scale for scale in (0.5, 8, 300)]
    backwards = range(len(shape))[::-1]
    for source in (
        lambda T: given(T, p, dtype),
        lambda T: given(T, p.T, dtype).permute(*backwards) if shape else given(T, p, dtype),
    ):
        same(lambda T: T.bernoulli(source(T)))
        same(lambda T: source(T).bernoulli())
        same(lambda T: T.bernoulli(source(T), 0.3))
        same(lambda T: T.bernoulli(source(T), out=T.zeros(0)))
        same(lambda T: T.zeros(shape).bernoulli_(source(T)))
        same(lambda T: T.zeros((2,) + shape, dtype=T.int32).bernoulli_(source(T)))
        same(lambda T: T.normal(source(T)))
        same(lambda T: T.normal(mean=source(T), out=T.zeros(0)))
        same(lambda T: T.normal(source(T), generator=T.Generator().manual_seed(3)))
        same(lambda T: T.ops.aten.normal.Tensor_float(source(T)))
        same(lambda T: T.normal(source(T), std=3))
        same(lambda T: T.normal(source(T), 1.5))
        same(lambda T: T.normal(0.25, source(T)))
        same(lambda T: T.normal(source(T), source(T)))
        same(lambda T: T.normal(source(T), source(T), generator=T.Generator().manual_seed(3)))
        same(lambda T: T.normal(T.zeros(shape), source(T), out=T.zeros(0)))
    for rate in scaled:
        same(lambda T: T.poisson(given(T, rate, dtype)))
        same(lambda T: T.binomial(given(T, rate.round(), dtype), given(T, p, dtype)))
        same(lambda T: T._standard_gamma(given(T, rate, dtype)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_multinomial(dtype):
    for rows, categories in [(1, 1), (1, 5), (3, 17), (4, 500), (0, 3)]:
        seed_both()
        p = NUMBERS.random((rows, categories)) + 0.01
        for count, replacement in itertools.product([1, 2, categories, categories + 1], [False, True]):
            if replacement or count < 2 or dtype in ("float32", "float64"):  # 16 bits: ties, in no set order
                same(lambda T: T.multinomial(given(T, p, dtype), count, replacement))
                same(lambda T: T.multinomial(given(T, p[:1], dtype).expand(4, categories), count, replacement))
                if rows:
                    same(lambda T: given(T, p[0], dtype).multinomial(count, replacement))
                same(
                    lambda T: T.multinomial(
                        given(T, p.T.copy(), dtype).t(), count, replacement, generator=T.Generator().manual_seed(2)
                    )
                )


@pytest.mark.parametrize("dtype", FLOATS + ["int64"])
@pytest.mark.parametrize(
    "name", ["dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout", "native_dropout"]
)
def test_dropout(name, dtype):
    for shape, p, train in itertools.product(SHAPES, [0, 0.3, 0.5, 1.0, 1.5], [True, False]):
        if name.startswith("native") and (p == 1.5 or not np.prod(shape)):
            continue
        numbers = NUMBERS.random(shape) * 10
        seed_both()
        same(lambda T: getattr(T, name)(given(T, numbers.round(2), dtype), p, train))
        if not name.startswith("native"):
            same(lambda T: getattr(T, name + "_")(given(T, numbers.round(2), dtype), p, train))


GRAPHS = {
    "uniform_": lambda T, x: x.uniform_(),
    "normal_": lambda T, x: x.normal_(),
    "random_": lambda T, x: x.random_(),
    "random_to": lambda T, x: x.random_(5),
    "random_from": lambda T, x: x.random_(1, 5),
    "bernoulli_": lambda T, x: x.bernoulli_(0.5),
    "bernoulli_p": lambda T, x: x.bernoulli_(T.full((4,), 0.5)),
    "exponential_": lambda T, x: x.exponential_(),
    "geometric_": lambda T, x: x.geometric_(0.5),
    "cauchy_": lambda T, x: x.cauchy_(),
    "log_normal_": lambda T, x: x.log_normal_(),
    "bernoulli": lambda T, x: T.bernoulli(x),
    "poisson": lambda T, x: T.poisson(x),
    "normal_mean": lambda T, x: T.normal(x, 1.0),
    "normal_std": lambda T, x: T.normal(0.0, x),
    "normal_both": lambda T, x: T.normal(x, x),
    "dropout": lambda T, x: T.dropout(x, 0.5, True),
    "alpha_dropout": lambda T, x: T.alpha_dropout(x, 0.5, True),
    "native_dropout": lambda T, x: T.native_dropout(x, 0.5, True)[0],
    "native_dropout_off": lambda T, x: T.native_dropout(x, 0.5, False)[0],
}


@pytest.mark.parametrize("name", GRAPHS)
def test_graph_and_gradient(name):
    """The node's name, and the gradient: zeros where the numbers no longer depend on the input."""

    def run(T):
        leaf = T.tensor([0.5, 0.25, 0.75, 1.0], requires_grad=True)
        result = GRAPHS[name](T, leaf * 1)
        result.sum().backward()
        return [type(result.grad_fn).__name__, result, leaf.grad]

    same(run)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gradient_through_gamma_numbers(dtype):
    """Within rounding, over the three regions of the approximation."""
    shapes = np.exp(np.linspace(-5, 8, 400))

    def run(T):
        T.manual_seed(2)
        leaf = given(T, shapes, dtype).requires_grad_()
        result = T._standard_gamma(leaf)
        result.backward(T.ones_like(result))
        return type(result.grad_fn).__name__, leaf.grad.numpy()

    (ours, gradient), (theirs, expected) = run(rt), run(torch)
    assert ours == theirs
    np.testing.assert_allclose(gradient, expected, rtol=1e-6 if dtype == "float32" else 1e-9)
    shapes = np.append(np.exp(np.linspace(-6, 3.5, 60)), 8)  # at 8 another formula begins
    grid = np.meshgrid(shapes, np.exp(np.linspace(-9, 7, 60)))
    results = [T._standard_gamma_grad(*[given(T, numbers, dtype) for numbers in grid]) for T in (rt, torch)]
    tolerance = 1e-5 if dtype == "float32" else 1e-9
    np.testing.assert_allclose(results[0].numpy(), results[1].numpy(), rtol=tolerance, atol=1e-9)


@pytest.mark.parametrize("name", ["binomial", "_sample_dirichlet"])
def test_derivatives_that_pytorch_lacks(name):
    def run(T):
        leaf = T.tensor([1.0, 2.0], requires_grad=True)
        result = getattr(T, name)(*([leaf] if name[0] == "_" else [leaf, T.tensor([0.5, 0.5])]))
        assert result.requires_grad
        result.sum().backward()

    same(run)


def test_native_dropout_twice():
    def run(T):
        x = T.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
        (grad,) = T.autograd.grad((T.native_dropout(x, 0.5, True)[0] ** 2).sum(), x, create_graph=True)
        return T.autograd.grad(grad.sum(), x)[0]

    same(run)


def test_leaf_that_requires_grad():
    same(lambda T: T.zeros(3, requires_grad=True).uniform_())
    with torch.no_grad(), rt.no_grad():
        same(lambda T: T.zeros(3, requires_grad=True).uniform_())


ERRORS = [
    lambda T: T.zeros(1).expand(3).uniform_(),
    lambda T: T.zeros(1).expand(20).normal_(),
    lambda T: T.zeros(1).expand(3).bernoulli_(),
    lambda T: T.zeros(1).expand(3).random_(),
    lambda T: T.rand(-3),
    lambda T: T.randint(0, (3,)),
    lambda T: T.rand(3, out=T.zeros(3), dtype=T.float64),
    lambda T: T.randint(3, (2,), requires_grad=True),
    lambda T: T.normal(T.zeros(2), T.ones(3)),
    lambda T: T.normal(T.zeros(2), -1.0),
    lambda T: T.normal(0.0, T.tensor([1.0, -1.0])),
    lambda T: T.normal(T.zeros(2).int(), 1.0),
    lambda T: T.zeros(3).bernoulli_(T.tensor([0.1, 0.2, 1.5])),
    lambda T: T.zeros(3).bernoulli_(T.ones(4)),
    lambda T: T.bernoulli(T.tensor([1, 0])),
    lambda T: T.zeros(3).geometric_(),
    lambda T: T.zeros(3).uniform_(-3e38, 3e38),
    lambda T: T.zeros(3, dtype=T.half).uniform_(0, 1e5),
    lambda T: T.multinomial(T.ones(3), 0),
    lambda T: T.multinomial(T.ones(3), 4),
    lambda T: T.multinomial(T.ones(2, 2, 2), 1),
    lambda T: T.multinomial(T.ones(3).int(), 1),
    lambda T: T.multinomial(T.tensor([1.0, -1.0]), 1),
    lambda T: T.multinomial(T.tensor([1.0, float("nan")]), 2, True),
    lambda T: T.multinomial(T.tensor([1.0, float("inf")]), 2, True),
    lambda T: T.multinomial(T.tensor([0.0, 0.0]), 2, True),
    lambda T: T.multinomial(T.tensor([0.0, 0.0]), 1),
    lambda T: T.multinomial(T.ones(3), 1, out=T.zeros(1)),
    lambda T: T.poisson(T.tensor([-1.0])),
    lambda T: T.poisson(T.tensor([1])),
    lambda T: T.binomial(T.tensor([1]), T.tensor([1])),
    lambda T: T.binomial(T.tensor([1.0]), T.tensor([0.5], dtype=T.float64)),
    lambda T: T.binomial(T.zeros(2), T.zeros(3)),
    lambda T: T._standard_gamma(T.tensor([1])),
    lambda T: T.Generator().manual_seed(2**64),
    lambda T: T.Generator().manual_seed(-(2**63) - 1),
    lambda T: T.Generator().manual_seed(1.5),
    lambda T: T.Generator().manual_seed("a"),
    lambda T: T.manual_seed("x"),
    lambda T: T.manual_seed(2**64),
    lambda T: T.set_rng_state(T.zeros(3)),
    lambda T: T.set_rng_state(T.zeros(3, dtype=T.uint8)),
    lambda T: T.set_rng_state([1]),
    lambda T: T.Generator().set_state(T.zeros(5056, dtype=T.uint8)),
    lambda T: T.Generator().get_offset(),
    lambda T: T.Generator().set_offset(3),
    lambda T: T.Generator().graphsafe_get_state(),
    lambda T: T.Generator("meta"),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number):
    with pytest.raises(Exception):
        ERRORS[number](torch)
    same(ERRORS[number])


# ------------------------------------------------------------------------------------ Generator, seed, state


def test_seeds():
    for seed in [0, 5, -1, -(2**63), 2**64 - 1, 1.7, "3", True]:
        same(lambda T: (T.manual_seed(seed).initial_seed(), T.initial_seed(), T.rand(3)))
    same(lambda T: (T.Generator().initial_seed(), T.Generator().device, T.rand(3, generator=T.Generator())))
    seeds = {rt.seed() for _ in range(3)}
    assert len(seeds) == 3 and rt.initial_seed() in seeds


def test_state_moves_between_the_libraries():
    torch.randn(5)
    rt.set_rng_state(rt.tensor(torch.get_rng_state().tolist(), dtype=rt.uint8))
    same(lambda T: (T.randn(3), T.rand(700)))
    rt.randn(3), rt.rand(100)
    torch.set_rng_state(torch.tensor(rt.get_rng_state().tolist(), dtype=torch.uint8))
    same(lambda T: (T.randn(3), T.rand(700)))


def test_fork_rng():
    def run(T):
        before = T.rand(2)
        with T.random.fork_rng():
            inside = T.rand(2)
        with T.random.fork_rng(enabled=False):
            counted = T.rand(2)
        return before, inside, counted, T.rand(2)

    same(run)


@pytest.mark.parametrize("twin", [lambda g: g.clone_state(), copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_copies_of_a_generator(twin):
    def run(T):
        generator = T.Generator().manual_seed(9)
        T.randn(3, generator=generator)
        other = twin(generator)
        return T.randn(5, generator=other), T.randn(5, generator=generator), other.initial_seed()

    same(run)


def test_default_generator():
    same(lambda T: T.default_generator.manual_seed(4).initial_seed())
    same(lambda T: T.rand(2, generator=T.default_generator))
    assert rt.random.thread_safe_generator() is None


def test_version_counts_writes():
    same(lambda T: T.zeros(3).uniform_().normal_().random_().bernoulli_()._version)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_how_dirichlet_numbers_move(dtype):
    """All four approximations: near 0, near 1, large shapes (also at the mean), and the fitted one."""
    x = torch.tensor([1e-6, 0.001, 0.2, 0.4, 0.5, 0.501, 0.6, 0.9, 0.999, 1 - 1e-6], dtype=dtype)
    alpha = torch.tensor([0.01, 0.3, 1.0, 4.0, 7.0, 30.0], dtype=dtype)
    beta = torch.tensor([0.05, 0.7, 2.0, 8.0, 30.0], dtype=dtype)
    x, alpha, beta = (t.contiguous() for t in torch.broadcast_tensors(x[:, None, None], alpha[:, None], beta))
    rtol = 1e-9 if dtype == torch.float64 else 5e-3  # PyTorch adds up its series in float32
    both(
        lambda T, x, a, total: T._dirichlet_grad(x, a, total),
        x,
        alpha,
        alpha + beta,
        rtol=rtol,
        atol=1e-5 if rtol > 1e-6 else 0,
    )


def test_dirichlet_gradients_refuse():
    both(lambda T, x: T._dirichlet_grad(x, x, x), torch.rand(3).half())
    both(lambda T, x: T._dirichlet_grad(x, x, x + 1).sum().backward(), torch.rand(3).requires_grad_())


@pytest.mark.parametrize("median, sigma", [(0.0, 1.0), (0.4, 0.8), (-3.0, 2.0)])
@pytest.mark.parametrize("count", [1, 15, 16, 1000])
def test_cauchy_of_doubles(count, median, sigma):
    """To the last digit but one: the tangent is another library's."""
    found = []
    for T in (torch, rt):
        T.manual_seed(3)
        x = T.empty(count, dtype=T.float64).cauchy_(median, sigma)
        found.append(torch.tensor([*x.tolist(), T.rand(1, dtype=T.float64).item()], dtype=torch.float64))
    torch.testing.assert_close(found[1], found[0], rtol=1e-13, atol=1e-13)


WRONG = [True, np.int64(3), "1", None, 1.5, 2**64, -(2**63) - 1]


@pytest.mark.parametrize("seed", WRONG, ids=repr)
def test_seeds_that_a_generator_refuses(seed):
    same(lambda T: T.Generator().manual_seed(seed))


METHODS = {
    "an offset that is none": lambda T: T.Generator().set_offset("a"),
    "an offset on the CPU": lambda T: T.Generator().set_offset(4),
    "no generator": lambda T: T.Generator().graphsafe_set_state(3),
    "another generator": lambda T: T.Generator().graphsafe_set_state(T.Generator()),
    "a state of another shape": lambda T: T.Generator().set_state(T.Generator().manual_seed(3).get_state().view(2, -1)).initial_seed(),
    "a state with gaps": lambda T: T.Generator().set_state(T.Generator().get_state().repeat_interleave(2)[::2]),
    "the seed of a new one": lambda T: T.Generator().initial_seed(),
    "a fork of no device": lambda T: T.random.fork_rng(device_type="foo").__enter__(),
    "names of nn.init": lambda T: T.nn.init.__all__,
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_what_a_generator_accepts(name):
    same(METHODS[name])


def test_a_generator_is_reduced_to_seed_offset_and_state():
    for T in (torch, rt):
        made, arguments, (seed, offset, state) = T.Generator().manual_seed(5).__reduce__()
        assert made is T.Generator and arguments == (T.device("cpu"),) and (seed, offset) == (5, None)
        assert T.equal(state, T.Generator().manual_seed(5).get_state())
