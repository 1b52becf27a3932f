"""parallel_for: every step once, errors, nesting, forks, several callers; and products that are cut in bands."""

import multiprocessing
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import readtorch
from readtorch.aten import parallel


@pytest.fixture(autouse=True)
def three_threads():
    before = readtorch.get_num_threads()
    readtorch.set_num_threads(3)
    yield
    readtorch.set_num_threads(before)


@given(st.integers(-5, 50), st.integers(0, 60), st.integers(1, 20))
def test_the_pieces_cover_the_range_once(begin, length, grain):
    pieces = []
    parallel.parallel_for(begin, begin + length, grain, lambda b, e: pieces.append((b, e)))
    covered = sorted(i for b, e in pieces for i in range(b, e))
    assert covered == list(range(begin, begin + length))
    assert len(pieces) <= 3 and all(e - b >= min(grain, length) for b, e in sorted(pieces)[:-1])


def test_several_threads_work_at_a_time():
    together = threading.Barrier(3, timeout=60)
    parallel.parallel_for(0, 3, 1, lambda b, e: together.wait())


def test_a_loop_inside_a_piece_is_not_cut():
    inner = []
    parallel.parallel_for(0, 2, 1, lambda b, e: parallel.parallel_for(0, 8, 1, lambda b, e: inner.append((b, e))))
    assert inner == [(0, 8), (0, 8)]
    assert not parallel.in_parallel_region()


@pytest.mark.parametrize("where", [0, 2])
def test_an_error_in_a_piece_is_raised_when_all_have_ended(where):
    ended = []

    def body(begin, end):
        ended.append(begin)
        if begin == where:
            raise ValueError(f"in piece {begin}")

    with pytest.raises(ValueError, match=f"in piece {where}"):
        parallel.parallel_for(0, 3, 1, body)
    assert sorted(ended) == [0, 1, 2]


def test_several_callers_share_the_pool():
    def caller(results):
        for _ in range(50):
            out = np.zeros(300)

            def fill(b, e):
                out[b:e] = 1

            parallel.parallel_for(0, 300, 1, fill)
            results.append(out.sum())

    results = []
    callers = [threading.Thread(target=caller, args=(results,)) for _ in range(4)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join(20)
    assert results == [300] * 200


def _in_child(queue):
    total = []
    parallel.parallel_for(0, 6, 1, lambda b, e: total.append(e - b))
    queue.put(sum(total))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_makes_its_own_pool():
    parallel.parallel_for(0, 3, 1, lambda b, e: None)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    child.join(20)
    assert child.exitcode == 0 and queue.get() == 6


@pytest.mark.parametrize("m, k, n", [(300, 200, 400), (70, 3000, 60), (1500, 90, 100)])
@pytest.mark.parametrize("turned", [False, True])
def test_products_in_bands(m, k, n, turned):
    """More than the grain, so that the threads take part."""
    rng = np.random.default_rng(0)
    x, w, bias = (rng.standard_normal(s, np.float32) for s in ((m, k), (n, k) if turned else (k, n), (n,)))
    y = w.T if turned else w
    expected = x.astype(np.float64) @ y
    a, b, c = readtorch.from_numpy(x), readtorch.from_numpy(w), readtorch.from_numpy(bias)
    b = b.t() if turned else b
    np.testing.assert_allclose((a @ b).numpy(), expected, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(readtorch.addmm(c, a, b).numpy(), expected + bias, rtol=1e-4, atol=1e-3)
    stacked = readtorch.stack([a, 2 * a, -a]) @ b
    np.testing.assert_allclose(stacked.numpy(), np.stack([expected, 2 * expected, -expected]), rtol=1e-4, atol=1e-3)
