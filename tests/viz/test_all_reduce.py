"""The figure "An all-reduce, message by message": the messages and times are those of csrc/distributed/algorithms.py."""

import numpy as np
import pytest

from readtorch import distributed as dist
from readtorch.csrc.distributed import algorithms
from readtorch.viz.figures import all_reduce as figure

CASES = pytest.mark.parametrize(("name", "ranks"), [(name, n) for name in figure.NAMES for n in (2, 3, 4, 6, 7, 8)])


class Watched(algorithms.GroupLinks):
    """Notes what this rank sends, in order: (to whom, how many elements)."""

    def __init__(self, group):
        super().__init__(group)
        self.sent = []

    def _begin_send(self, array, to):
        self.sent.append((to, len(array)))
        return super()._begin_send(array, to)


@CASES
def test_messages_are_those_of_the_algorithm(name, ranks):
    parts = figure.parts_of(name, ranks)
    values = [np.arange(3.0 * parts) + rank for rank in range(ranks)]

    def fn(rank):
        links, array = Watched(dist.group.WORLD), values[rank].copy()
        algorithms.ALL_REDUCE[figure.NAMES[name]](links, array)
        return links.sent, array

    result = figure.FIGURE.result(algorithm=name, ranks=ranks)
    for rank, (sent, array) in enumerate(dist.run_threads(fn, ranks)):
        messages = [message for one in result["rounds"] for message in one if message[0] == rank]
        assert sent == [(target, 3 * count) for _, target, _, count, _ in messages]
        assert array.tolist() == sum(values).tolist()


@CASES
def test_no_number_is_added_twice_and_none_is_missing(name, ranks):
    result = figure.FIGURE.result(algorithm=name, ranks=ranks)
    for held, messages in zip(result["held"], result["rounds"]):
        for source, target, first, count, added in messages:
            for part in range(first, first + count):
                assert not (added and held[source][part] & held[target][part])
    assert all(mask == 2**ranks - 1 for row in result["held"][-1] for mask in row)


@CASES
def test_times_are_those_of_the_cost_model(name, ranks):
    size, result = 26214400, figure.FIGURE.result(algorithm=name, ranks=ranks, latency=5, bandwidth=2)
    expected = algorithms.COST[figure.NAMES[name]](ranks, size, 5e-6, 1 / 2e9)
    assert result["done"][-1] == pytest.approx(1e6 * expected)
    assert result["totals"][name] == pytest.approx(1e6 * expected)


def test_who_is_quickest():
    small, large = (figure.FIGURE.result(ranks=8, size=size)["totals"] for size in ("8", "1073741824"))
    assert min(small, key=small.get) == figure.DOUBLING
    assert large[figure.RING] < large[figure.DOUBLING] < large[figure.TREE]
