"""What the tests of these files share."""

import os

import pytest

from readtorch import cuda


@pytest.fixture
def gpu():
    """A real GPU, whose work is done when the test ends."""
    if os.environ.get("READTORCH_SIMULATE_CUDA") or not cuda.is_available():
        pytest.skip("needs an NVIDIA GPU")
    yield
    cuda.synchronize()
