"""The figure "One epoch, in virtual time" sends, fetches and hands over as PyTorch's DataLoader does."""

import random
import time

import pytest
import torch

from readtorch import viz
from readtorch.viz.figures import loader_epoch as figure

UNIT = 0.012  # seconds for a virtual millisecond: far more than what the processes cost


class Timed(torch.utils.data.Dataset):
    """Sample i sleeps as long as the figure says, and answers who fetched it."""

    def __init__(self, epoch):
        self.seconds = [UNIT * epoch.fetch_time(i) for i in range(epoch.inputs["batches"])]

    def __len__(self):
        return len(self.seconds)

    def __getitem__(self, index):
        time.sleep(self.seconds[index])
        return index, torch.utils.data.get_worker_info().id


def theirs(inputs):
    """[(batch, worker)] as PyTorch hands them over."""
    dataset = Timed(figure.Epoch(inputs))
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=None, num_workers=inputs["workers"], prefetch_factor=inputs["prefetch"],
        in_order=inputs["ordered"], multiprocessing_context="fork",
    )  # fmt: skip
    seen = []
    for batch, worker in loader:
        time.sleep(UNIT * inputs["work"])
        seen.append((batch, worker))
    return seen


@pytest.mark.parametrize(
    "changed",
    [
        {"workers": 2, "every": 10, "slow": 60, "ordered": False},
        {"workers": 2, "every": 7, "slow": 77, "ordered": False, "prefetch": 1},  # two never end at the same moment
        {"workers": 3, "every": 4, "slow": 30, "ordered": True},
    ],
)
def test_order_and_workers_are_pytorchs(changed):
    inputs = figure.FIGURE.read({"batches": 12, "fetch": 4, "work": 1.5, "start": 0} | changed)
    epoch = figure.Epoch(inputs).run()
    mine = [(batch, epoch.worker_of[batch]) for _, _, batch in epoch.works]
    assert mine == theirs(inputs)


@pytest.mark.parametrize("seed", range(40))
def test_what_holds_in_every_epoch(seed):
    inputs = figure.FIGURE.random_inputs(random.Random(seed))
    result = figure.model(inputs)
    assert sorted(result["order"]) == list(range(inputs["batches"]))
    if inputs["ordered"] or not inputs["workers"]:
        assert result["order"] == sorted(result["order"])
    trained = inputs["work"] * inputs["batches"]
    assert result["total"] == pytest.approx(trained + result["waited"])
    fetched = {batch: end for lane in result["lanes"] for _, end, batch in lane}
    for start, _, batch in result["works"]:
        assert start >= fetched.get(batch, 0)
    for lane in [result["works"], *result["lanes"]]:
        assert all(one[1] <= other[0] for one, other in zip(lane, lane[1:]))
    assert result["ready"] <= inputs["workers"] * inputs["prefetch"]


def test_what_the_sentence_says():
    alone = figure.FIGURE.result(workers=0)
    assert alone["total"] == 16 * 14 and "With one worker more: 154 ms." in alone["say"]
    assert "With one worker more: 124 ms." in figure.FIGURE.result(workers=1)["say"]
    assert "One worker more changes nothing." in figure.FIGURE.result(workers=2)["say"]
    assert "another order" in figure.FIGURE.result(every=5, ordered=False)["say"]
    assert figure.FIGURE.result(batches=1, workers=1)["say"].startswith("1 batch with 1 worker takes 34 ms")


def test_workers_in_turn_may_make_it_worse():
    """What the chapter says of slow batches that fall to one worker."""
    total = lambda **inputs: figure.FIGURE.result(**inputs)["total"]  # noqa: E731
    assert (total(every=2), total(every=2, workers=3)) == (352, 180)
    assert total(every=5, workers=5) > total(every=5, workers=4)
    assert total(every=5, fetch=2, prefetch=4) < total(every=5, fetch=2)


@pytest.mark.browser
@pytest.mark.slow
def test_more_workers_have_more_lanes(visit, page_with):
    with visit(page_with(viz.figure("loader_epoch"))) as seen:
        field, lanes = seen.page.get_by_label("num_workers").first, seen.page.locator("svg[role=img]")
        assert "worker 1: 1, 3" in lanes.get_attribute("aria-label")
        field.fill("3")
        field.press("Enter")
        assert "worker 2: 2, 5" in lanes.get_attribute("aria-label")
        assert seen.problems == []
