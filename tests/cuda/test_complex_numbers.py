"""Complex numbers on CUDA: every pointwise operator computes what the CPU does, or refuses them."""

import warnings

import numpy as np
import pytest

import readtorch
from readtorch import cuda
from readtorch.aten.dispatcher import registry

NAMES = sorted(name for name, operator in registry.items() if operator.scalar_function is not None)
VALUES = (1 + 2j, 0.5 - 1j, -0.7 + 0.2j, 2 - 0.5j)


@pytest.fixture(autouse=True, scope="module")
def devices():
    cuda.simulate(1, "64MiB", kernels=True)
    yield
    cuda.simulate(0)


def arguments_of(operator):
    """Complex tensors, and 1 or the default for the rest."""
    for i, argument in enumerate(operator.schema.arguments):
        if i in operator.scalar_function.places:
            yield readtorch.tensor([value * (1 + i / 10) for value in VALUES])
        else:
            yield argument.default if argument.has_default else 1


@pytest.mark.parametrize("name", NAMES)
def test_computed_or_refused(name):
    operator = registry[name]
    arguments = list(arguments_of(operator))
    on_device = [a.cuda() if isinstance(a, readtorch.Tensor) else a for a in arguments]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # NumPy warns where an imaginary part is lost
        try:
            found = operator.call(*on_device).cpu()
        except (NotImplementedError, RuntimeError, TypeError):
            return
    expected = operator.call(*arguments)
    assert np.allclose(found.numpy(), expected.numpy(), 1e-4, equal_nan=True)


def test_most_are_one_or_the_other():
    assert len(NAMES) > 150
