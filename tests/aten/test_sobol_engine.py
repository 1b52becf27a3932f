"""Sobol sequences next to the reference: direction numbers, points, scrambling, passing over points."""

import pytest
import torch

from tests.reference import both


def state(dimension):
    return torch._sobol_engine_initialize_state_(torch.zeros(dimension, 30, dtype=torch.int64), dimension)


@pytest.mark.parametrize("dimension", [1, 2, 40, 3000])
def test_direction_numbers(dimension):
    both(lambda T: T._sobol_engine_initialize_state_(T.zeros(dimension, 30, dtype=T.int64), dimension))


def test_points():
    quasi = torch.zeros(5, dtype=torch.int64)
    for start, count in ((0, 9), (7, 20), (1023, 3), (5, 1)):
        for dtype in ("float32", "float64", None):
            both(
                lambda T, q, s: T._sobol_engine_draw(q, count, s, 5, start, dtype and getattr(T, dtype)),
                quasi,
                state(5),
                versions=False,
            )
        # In PyTorch passing over points is not counted as a write.
        both(lambda T, q, s: T._sobol_engine_ff_(q.clone(), count, s, 5, start), quasi + 3, state(5), versions=False)


def test_scrambled():
    torch.manual_seed(0)
    ltm = torch.randint(2, (4, 30, 30)).tril()
    both(lambda T, s, ltm: T._sobol_engine_scramble_(s.clone(), ltm, 4), state(4), ltm, versions=False)


def test_the_sequence_fills_the_square():
    """The first 64 points of two dimensions: one in each of 8 × 8 fields, as PyTorch's engine draws them."""
    engine = torch.quasirandom.SobolEngine(2)
    points = engine.draw(64)
    ours, _ = both(
        lambda T, s: T._sobol_engine_draw(T.zeros(2, dtype=T.int64), 63, s, 2, 0, T.float32)[0],
        state(2),
        versions=False,
    )
    assert ours.tolist() == points[1:].tolist()
    fields = {(int(8 * x), int(8 * y)) for x, y in [(0.0, 0.0), *ours.tolist()]}
    assert len(fields) == 64
