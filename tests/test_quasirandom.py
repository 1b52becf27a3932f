"""SobolEngine against the reference: points, scrambling, steps and errors."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.reference import both

STEPS = {
    "draw": lambda engine, n: engine.draw(n),
    "draw_base2": lambda engine, n: engine.draw_base2(n % 6),
    "fast_forward": lambda engine, n: (engine.fast_forward(n), engine.num_generated)[1],
    "reset": lambda engine, n: (engine.reset() is engine, engine.num_generated),
}
steps = st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(1, 20)), min_size=1, max_size=5)


def attempt(function, *args):
    try:
        return function(*args)
    except ValueError as error:
        return str(error)


@given(
    dimension=st.sampled_from([1, 2, 3, 7, 40]), scramble=st.booleans(), seed=st.sampled_from([None, 0, 17]), made=steps
)
def test_steps(dimension, scramble, seed, made):
    def points(T):
        engine = T.quasirandom.SobolEngine(dimension, scramble, seed)
        drawn = [attempt(STEPS[name], engine, n) for name, n in made]
        return drawn, engine.draw(), engine.quasi, engine.shift, repr(engine), T.rand(1)

    both(points, exact=True, versions=False, strides=False)


def test_dtypes_and_out():
    def points(T):
        engine = T.quasirandom.SobolEngine(3)
        out = T.empty(0)
        given = engine.draw(5, out=out)
        return given is out, out, engine.draw(3, dtype=T.float64), engine.reset().draw(1, dtype=T.float64)

    both(points, exact=True, versions=False)


def test_the_last_dimension():
    both(lambda T: T.quasirandom.SobolEngine(21201).draw(9)[:, -20:], exact=True, versions=False, strides=False)


@pytest.mark.parametrize("dimension", [0, 21202])
def test_dimensions_out_of_range(dimension):
    both(lambda T: T.quasirandom.SobolEngine(dimension))


def test_names():
    import readtorch

    assert set(readtorch.quasirandom.__all__) <= set(dir(torch.quasirandom))
