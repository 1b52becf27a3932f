"""Random programs of views, writes, hooks, nested backward and freed graphs: values, errors, versions and the order of hooks as in PyTorch.

The programs are in random_programs.py, which runs thousands of others from the command line.
"""

import warnings

import pytest

from . import random_programs


@pytest.mark.parametrize("part", range(10))
def test_random_programs_of_the_engine(part):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(50 * part, 50 * part + 50):
            difference = random_programs.differs(seed)
            if difference is not None:
                pytest.fail(random_programs.printed(*random_programs.shortest(difference[0])), pytrace=False)


def test_a_difference_is_found_and_shortened(monkeypatch):
    """With hooks on tensors that are called in the wrong order, the program that is left is a few lines long."""
    original = random_programs.Run.do

    def do(self, statement):
        original(self, statement)
        if self.T.__name__ == "readtorch" and ".exp()" not in statement and "sigmoid" in statement:
            self.lines[-1].append(("log", "something else"))

    monkeypatch.setattr(random_programs.Run, "do", do)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        difference = next(filter(None, map(random_programs.differs, range(100))))
        statements, theirs, ours = random_programs.shortest(difference[0])
    assert len(statements) <= 4 and "sigmoid" in statements[-1]
    assert "# readtorch: ('log', 'something else')" in random_programs.printed(statements, theirs, ours)
