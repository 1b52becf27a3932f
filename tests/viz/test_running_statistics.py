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


def laid_out(x, layout):
    """A batch of shape (1, 1, n) as the figure's input says: itself, as rows, or as a column of a larger tensor."""
    rows = x.view(-1, 1)
    return {"image": x, "rows": rows, "slice": torch.cat([rows, rows], 1)[:, :1]}[layout]


def layer_of(inputs):
    return torch.nn.BatchNorm1d(1, momentum=None if inputs["cumulative"] else inputs["momentum"])


@pytest.fixture
def threads():
    """torch.set_num_threads, undone after the test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("seed", range(18))
def test_the_buffers_are_those_of_batch_norm_1d(seed, threads):
    """Bit by bit; the variance of rows only where the processor squares and adds with one rounding."""
    generator = random.Random(seed)
    for _ in range(4):
        inputs = FIGURE.random_inputs(generator)
        threads(inputs["threads"])
        layer, running = layer_of(inputs), []
        for x in batches(inputs):
            layer(laid_out(x, inputs["layout"]))
            running.append([layer.running_mean.item(), layer.running_var.item()])
        means, variances = zip(*FIGURE.model(inputs)["running"])
        torch_means, torch_variances = zip(*running)
        assert means == torch_means, inputs
        if inputs["layout"] == "rows":
            assert variances == pytest.approx(torch_variances, rel=1e-3), inputs
        else:
            assert variances == torch_variances, inputs


def test_a_wrong_variance_gives_the_outputs_the_deviation_that_the_figure_says(threads):
    threads(1)
    for offset in (1e5, 1e6, 1e7):
        x = batches({"values": 512, "offset": offset})[0].view(512, 1)
        output = torch.nn.BatchNorm1d(1)(x).double().std(correction=0).item()
        assert FIGURE.result(values=512, offset=offset)["outputs"][1] == pytest.approx(output, rel=0.02)


def test_rows_are_wrong_where_a_slice_is_right():
    rows, one_slice = (
        FIGURE.result(values=512, offset=1e7, layout=layout)["unbiased"][0] for layout in ("rows", "slice")
    )
    exact = FIGURE.result(values=512, offset=1e7)["exact"]
    assert rows > 100 * exact and one_slice == pytest.approx(exact, rel=1)


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


def test_two_passes_in_float32_are_batch_norm_of_rows(threads):
    """Where the sums have to round, they round alike: the variance is hundreds of times too large in both."""
    for values, offset, many in ((512, 1e4, 1), (512, 1e6, 2), (300, 3e6, 1), (512, 1e7, 4)):
        threads(many)
        x = batches({"values": values, "offset": offset})[0].view(values, 1)
        rows = torch.native_batch_norm(x, None, None, None, None, True, 0.1, 0)[2].item() ** -2
        found = FIGURE.result(values=values, offset=offset, threads=many)["variances"][1]
        assert found == pytest.approx(rows, rel=1e-3)


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
