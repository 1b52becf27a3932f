"""Random programs of transforms, three deep, compute or refuse what PyTorch does. More: `python -m tests.functorch.random_nesting FIRST LAST`."""

import pytest

from tests.functorch.random_nesting import Program, difference

COUNT, AT_ONCE = 200, 20


@pytest.mark.parametrize("first", range(0, COUNT, AT_ONCE))
def test_random_nesting(first):
    for seed in range(first, first + AT_ONCE):
        program = Program(seed)
        differs = difference(program)
        assert differs is None, f"{seed} {program}: {differs}"
