"""What CUDA operators refuse: the same calls as on the CPU, with an error of the same type and, but for the backend's name, the same words."""

import re

import pytest

import readtorch as rt
from tests.aten.refused_calls import CALLS
from tests.cuda.test_operator_table import device  # noqa: F401  a fixture

# CUDA refuses these with words of its own, as PyTorch's does, or finds another fault of the call first.
OTHER_WORDS = {"histc, bins", "max_unpool3d, dtype", "nansum of complex", "eye"}


def refusal(place, call):
    try:
        call(rt, rt.ones(2, 2, device=place))
    except Exception as error:
        words = re.sub(r"'?cuda(:0)?'?|'?cpu'?|CUDA|CPU", "DEVICE", str(error))
        return type(error).__name__, re.sub(r'"\w+" not implemented', '"…" not implemented', words)
    return "none", "it was not refused"


@pytest.mark.parametrize("name", CALLS)
def test_refused_as_on_the_cpu(name):
    ours, expected = refusal("cuda", CALLS[name]), refusal("cpu", CALLS[name])
    assert "none" not in (ours[0], expected[0])
    assert ours[0] == expected[0]
    assert name in OTHER_WORDS or ours == expected
