"""The model of the figure of the chapter on normalization against PyTorch: the buffers bit by bit, the formulas up to what their sums round."""

import random

import numpy as np
import pytest
import torch

from readtorch import viz
from readtorch.viz.figure_kit import find
from readtorch.viz.figures import running_statistics
from readtorch.viz.inputs import Refusal

FIGURE = find("running_statistics")


def batches(inputs):
    count = inputs["values"]
    numbers = running_statistics.noise(running_statistics.BATCHES * count)
    return torch.from_numpy(running_statistics.values_at(inputs["offset"], numbers)).view(-1, 1, 1, count)


def layer_of(inputs):
    return torch.nn.BatchNorm1d(1, momentum=None if inputs["cumulative"] else inputs["momentum"])


@pytest.mark.parametrize("seed", range(12))
def test_the_buffers_are_those_of_batch_norm_1d(seed):
    generator = random.Random(seed)
    for _ in range(6):
        inputs = FIGURE.random_inputs(generator)
        layer, running = layer_of(inputs), []
        for x in batches(inputs):
            layer(x)
            running.append([layer.running_mean.item(), layer.running_var.item()])
        assert FIGURE.model(inputs)["running"] == running, inputs


@pytest.mark.parametrize("seed", range(8))
def test_the_variances_are_those_of_pytorchs_kernels(seed):
    inputs = FIGURE.read({}) | {"values": 2**seed * 4, "offset": 10.0 ** (seed % 5)}
    x = batches(inputs)[0]
    _, _, double, welford = FIGURE.model(inputs)["variances"]
    image = torch.native_batch_norm(x, None, None, None, None, True, 0.1, 0)[2].item() ** -2
    row = torch.native_layer_norm(x, [x.shape[-1]], None, None, 0)[2].item() ** -2
    assert double == pytest.approx(image, rel=1e-6)
    assert welford == pytest.approx(row, rel=1e-3)
    assert FIGURE.model(inputs)["exact"] == pytest.approx(x.double().var(correction=0).item(), rel=1e-12)


def test_two_passes_in_float32_are_batch_norm_of_rows_on_one_thread():
    """Where the sums have to round, they round alike: the variance is hundreds of times too large in both."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for values, offset in ((512, 1e4), (512, 1e6), (300, 3e6), (512, 1e7)):
            x = batches({"values": values, "offset": offset})[0].view(values, 1)
            rows = torch.native_batch_norm(x, None, None, None, None, True, 0.1, 0)[2].item() ** -2
            assert FIGURE.result(values=values, offset=offset)["variances"][1] == pytest.approx(rows, rel=1e-3)
    finally:
        torch.set_num_threads(threads)


def test_numbers_have_mean_zero_and_deviation_one():
    numbers = running_statistics.noise(200_000)
    assert abs(numbers.mean()) < 0.01 and abs(numbers.std() - 1) < 0.01
    assert (numbers.astype(np.float32) == numbers).all()


def test_one_value_is_refused_in_pytorchs_words():
    with pytest.raises(Refusal) as refusal:
        FIGURE.result(values=1)
    with pytest.raises(ValueError) as error:
        torch.nn.BatchNorm1d(1)(torch.ones(1, 1, 1))
    assert str(refusal.value) == str(error.value)


def test_cancellation_is_seen_at_a_mean_of_ten_thousand():
    textbook, single, double, welford = FIGURE.result(offset=1e4, values=512)["variances"]
    assert abs(textbook - 1) > 0.5 and all(abs(one - double) < 0.01 for one in (single, welford))


def test_what_the_chapter_says_of_ten_million():
    _, single, double, welford = FIGURE.result(values=512, offset=1e7)["variances"]
    assert round(single) == 623 and round(double, 1) == round(welford, 1) == 1.1


@pytest.mark.browser
@pytest.mark.slow
def test_momentum_is_disabled_where_it_has_no_effect(visit, page_with):
    with visit(page_with(viz.figure("running_statistics"))) as seen:
        momentum, none = [seen.page.locator(f"[data-focus={name}]") for name in ("input-momentum", "input-cumulative")]
        slider = seen.page.locator("[data-focus=slider-momentum]")
        none.check()
        assert momentum.is_disabled() and slider.is_disabled()
        none.uncheck()
        assert momentum.is_enabled() and slider.is_enabled()
        assert seen.problems == []
