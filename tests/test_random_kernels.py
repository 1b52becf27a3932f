"""The CPU generator and the distribution kernels: every bit, and the state left behind, as PyTorch's."""

import itertools
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from readtorch.aten.native.cpu import distribution_kernels as kernels
from readtorch.c10.cpu_generator_impl import CPUGeneratorImpl
from tests.reference import last_bits

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
SHAPES = [(), (1,), (5,), (15,), (16,), (17,), (624,), (1281,), (3, 4), (7, 9), (1, 3, 1, 6), (2, 3, 5), (2, 3, 4, 5)]


def as_array(tensor):
    """The same memory as a NumPy array."""
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def layouts(shape, dtype):
    """Zeros of one shape in several layouts: rows first, columns first, with gaps, channels last."""
    yield torch.zeros(shape, dtype=dtype)
    yield torch.zeros(shape[::-1], dtype=dtype).permute(list(range(len(shape)))[::-1])
    yield torch.zeros([2 * n + 1 for n in shape], dtype=dtype)[tuple(slice(0, 2 * n, 2) for n in shape)]
    if len(shape) == 4:
        yield torch.zeros(shape, dtype=dtype).to(memory_format=torch.channels_last)


def same(array, tensor):
    return np.allclose(
        array.astype("f8"), as_array(tensor).astype("f8"), rtol=0, atol=last_bits(tensor), equal_nan=True
    )


class Pair:
    """A generator of each kind, in the same state, and the calls made with both."""

    def __init__(self, seed=7):
        self.ours = CPUGeneratorImpl(seed)
        self.theirs = torch.Generator().manual_seed(seed)

    def check_state(self):
        assert self.ours.get_state().tobytes() == self.theirs.get_state().numpy().tobytes()

    def check(self, shape, dtype, reference, kernel):
        """`reference(tensor, generator)` and `kernel(array, generator)` must fill every layout alike."""
        for theirs, ours in zip(layouts(shape, dtype), layouts(shape, dtype)):
            reference(theirs, self.theirs)
            kernel(as_array(ours), self.ours)
            assert same(as_array(ours), theirs), (shape, dtype, theirs.stride())
        self.check_state()


@given(seed=st.integers(0, 2**64 - 1), draws=st.integers(0, 1300))
def test_engine_and_state(seed, draws):
    pair = Pair(seed)
    pair.check_state()
    words = torch.empty(draws, dtype=torch.int32).random_(generator=pair.theirs).tolist()
    assert [pair.ours.random() % 2**31 for _ in range(draws)] == words
    pair.check_state()
    whole = torch.empty((), dtype=torch.int64).random_(generator=pair.theirs).item()
    assert pair.ours.random64() % 2**63 == whole
    assert pair.ours.initial_seed == pair.theirs.initial_seed()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES)
def test_continuous(shape, dtype):
    pair = Pair()
    for low, high in [(0, 1), (-2.3, 5.7), (-0.1, 0.1), (3, 3)]:
        pair.check(
            shape,
            dtype,
            lambda t, g: t.uniform_(low, high, generator=g),
            lambda a, g: kernels.uniform_(a, low, high, g),
        )
    for mean, std in [(0, 1), (2.3, 0.7), (0, 0), (1e-3, 30)]:
        pair.check(
            shape, dtype, lambda t, g: t.normal_(mean, std, generator=g), lambda a, g: kernels.normal_(a, mean, std, g)
        )
    pair.check(
        shape,
        dtype,
        lambda t, g: t.log_normal_(0.4, 0.8, generator=g),
        lambda a, g: kernels.log_normal_(a, 0.4, 0.8, g),
    )
    pair.check(
        shape, dtype, lambda t, g: t.cauchy_(0.4, 0.8, generator=g), lambda a, g: kernels.cauchy_(a, 0.4, 0.8, g)
    )
    for rate in [1, 0.37, 20]:
        pair.check(
            shape, dtype, lambda t, g: t.exponential_(rate, generator=g), lambda a, g: kernels.exponential_(a, rate, g)
        )


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS + [torch.bool])
@pytest.mark.parametrize("shape", SHAPES)
def test_discrete(shape, dtype):
    pair = Pair()
    if dtype != torch.bool:
        pair.check(
            shape, dtype, lambda t, g: t.geometric_(0.4, generator=g), lambda a, g: kernels.geometric_(a, 0.4, g)
        )
        pair.check(
            shape, dtype, lambda t, g: t.random_(3, 100, generator=g), lambda a, g: kernels.random_from_to_(a, 97, 3, g)
        )
    pair.check(
        shape, dtype, lambda t, g: t.random_(0, 2, generator=g), lambda a, g: kernels.random_from_to_(a, 2, 0, g)
    )
    pair.check(shape, dtype, lambda t, g: t.random_(generator=g), lambda a, g: kernels.random_(a, g))
    for p in [0, 0.3, 0.5, 1]:
        pair.check(shape, dtype, lambda t, g: t.bernoulli_(p, generator=g), lambda a, g: kernels.bernoulli_(a, p, g))
    for p_dtype in FLOATS:
        p = torch.rand(shape).to(p_dtype)
        for p in [p, p.mT.contiguous().mT if p.dim() > 1 else p, p[0] if p.dim() > 1 else p]:
            pair.check(
                shape,
                dtype,
                lambda t, g: t.bernoulli_(p, generator=g),
                lambda a, g: kernels.bernoulli_(a, as_array(p), g),
            )


@pytest.mark.parametrize("span", [1, 2, 2**24, 2**28 - 1, 2**28, 2**31, 2**32 + 1, 2**62])
@pytest.mark.parametrize("base", [0, -5, 2**40])
def test_spans(span, base):
    Pair().check(
        (700,),
        torch.int64,
        lambda t, g: t.random_(base, base + span, generator=g),
        lambda a, g: kernels.random_from_to_(a, span, base, g),
    )


def test_full_64_bit_span():
    Pair().check(
        (7, 9),
        torch.int64,
        lambda t, g: t.random_(-(2**63), None, generator=g),
        lambda a, g: kernels.random_from_to_(a, 0, 0, g),
    )


@pytest.mark.parametrize("low, high", [(1, 1 + 2**-22), (3.0, 3.0000005), (0.1, 0.1 + 1e-8)])
def test_upper_end_is_open(low, high):
    for dtype in FLOATS:
        Pair().check(
            (5000,),
            dtype,
            lambda t, g: t.uniform_(low, high, generator=g),
            lambda a, g: kernels.uniform_(a, low, high, g),
        )


def test_randperm():
    pair = Pair()
    for n, dtype in itertools.product([0, 1, 2, 10, 255, 2000, 70000], INTEGERS + FLOATS):
        try:
            theirs = torch.randperm(n, dtype=dtype, generator=pair.theirs)
        except RuntimeError:  # n is too large for dtype
            continue
        ours = kernels.randperm(n, as_array(theirs).dtype, pair.ours)
        assert ours.dtype == as_array(theirs).dtype and same(ours, theirs)
    pair.check_state()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("scale", [0.5, 8, 300])
def test_rejection(dtype, scale):
    pair = Pair()
    for shape in SHAPES:
        rate, p = (torch.rand(shape) * scale).to(dtype), torch.rand(shape).to(dtype)
        count = rate.round()
        cases = [(torch.poisson(rate, generator=pair.theirs), kernels.poisson, [rate])]
        if dtype in (torch.float32, torch.float64):
            cases.append((torch.binomial(count, p, generator=pair.theirs), kernels.binomial, [count, p]))
            cases.append((torch._standard_gamma(rate, generator=pair.theirs), kernels.standard_gamma, [rate]))
        for expected, kernel, parameters in cases:
            ours = np.empty_like(as_array(expected))
            kernel(ours, *map(as_array, parameters), pair.ours)
            assert same(ours, expected), (kernel, shape)
    pair.check_state()


def test_dirichlet():
    pair = Pair()
    concentration = torch.rand(40, 6, dtype=torch.float64) * 3
    expected = torch._sample_dirichlet(concentration, pair.theirs).numpy()
    ours = np.empty_like(expected)
    kernels.dirichlet(ours, concentration.numpy(), pair.ours)
    np.testing.assert_allclose(ours, expected, rtol=1e-15)  # the sum of a row is rounded in another order
    pair.check_state()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rows, categories", [(1, 5), (3, 17), (4, 1000), (2, 2)])
def test_multinomial_with_replacement(dtype, rows, categories):
    pair = Pair()
    for probabilities in [torch.rand(rows, categories).to(dtype), torch.rand(categories, rows).to(dtype).T]:
        expected = torch.multinomial(probabilities, 7, True, generator=pair.theirs)
        ours = kernels.multinomial_with_replacement(as_array(probabilities), 7, pair.ours)
        assert np.array_equal(ours, expected.numpy())
    pair.check_state()


@pytest.mark.parametrize("dtype", FLOATS)
def test_exponential_race(dtype):
    pair = Pair()
    probabilities = torch.rand(4, 30).to(dtype)
    expected = torch.multinomial(probabilities, 1, generator=pair.theirs)
    race = kernels.exponential_race(as_array(probabilities), pair.ours).astype("f8")
    assert np.array_equal(race.argmax(-1)[:, None], expected.numpy())
    pair.check_state()


def test_spare_normal_travels_in_the_state():
    pair = Pair()
    ours = np.empty(5)
    kernels.normal_(ours, 0, 1, pair.ours)
    assert pair.ours.next_double_normal_sample is not None
    theirs = torch.Generator()
    theirs.set_state(torch.from_numpy(pair.ours.get_state()))
    other = CPUGeneratorImpl()
    other.set_state(theirs.get_state().numpy())
    copy = other.clone()
    expected = torch.empty(7, dtype=torch.float64).normal_(generator=theirs).numpy()
    for generator in [pair.ours, other, copy]:
        result = np.empty(7)
        kernels.normal_(result, 0, 1, generator)
        assert np.array_equal(result, expected)


def test_states_that_are_refused():
    generator = CPUGeneratorImpl()
    theirs = torch.Generator()
    states = [np.zeros(5056, np.uint8), np.zeros(100, np.uint8)]
    for state in states:
        with pytest.raises(RuntimeError) as ours:
            generator.set_state(state)
        with pytest.raises(RuntimeError) as expected:
            theirs.set_state(torch.from_numpy(state))
        assert str(ours.value) == str(expected.value)


def test_seed_is_not_deterministic():
    generator = CPUGeneratorImpl()
    seeds = {generator.seed() for _ in range(4)}
    assert len(seeds) == 4 and all(0 <= seed < 2**53 for seed in seeds)


def test_numba_is_loaded_by_the_first_draw_only():
    code = (
        "import sys, numpy, readtorch.aten.native.cpu.distribution_kernels as kernels\n"
        "from readtorch.c10.cpu_generator_impl import CPUGeneratorImpl\n"
        "generator = CPUGeneratorImpl(3)\n"
        "assert 'numba' not in sys.modules\n"
        "kernels.uniform_(numpy.empty(3), 0, 1, generator)\n"
        "assert 'numba' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
