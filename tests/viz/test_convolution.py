"""The model of the convolution figure against PyTorch: shapes, what an element reads, the algorithm, refusals."""

import random

import pytest
import torch

from readtorch import viz
from readtorch.viz.figures.convolution import FIGURE
from readtorch.viz.inputs import Refusal

BFLOAT16 = torch.ops.mkldnn._is_mkldnn_bf16_supported()


@pytest.fixture(scope="module", autouse=True)
def threads_as_before():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def layer_of(inputs, **options):
    kind = f"Conv{'Transpose' * inputs['transposed']}{'3d' if inputs['depth'] else '2d'}"
    names = ("kernel", "stride", "padding", "dilation")
    both = {name: tuple(inputs[name] * (3 - len(inputs[name]))) for name in names}
    if inputs["depth"]:  # it has the settings of the height
        both = {name: (height, height, width) for name, (height, width) in both.items()}
    settings = {name: both[name] for name in ("stride", "padding", "dilation")}
    return getattr(torch.nn, kind)(
        inputs["channels"],
        inputs["filters"],
        both["kernel"],
        groups=inputs["groups"],
        bias=False,
        **settings,
        **options,
    )


def sizes(inputs):
    depth = [inputs["depth"]] if inputs["depth"] else []
    return depth + inputs["size"] * (3 - len(inputs["size"]))


def drawn(count):
    generator = random.Random(13)
    for _ in range(count):
        inputs = FIGURE.random_inputs(generator)
        if inputs["dtype"] != "bfloat16" or BFLOAT16:
            yield inputs


def outcome(inputs):
    try:
        return FIGURE.model(inputs)
    except Refusal as refusal:
        return str(refusal)


def test_the_algorithm_and_the_shapes():
    seen, refused = set(), 0
    for inputs in drawn(2000):
        found = outcome(inputs)
        try:
            layer = layer_of(inputs, dtype=getattr(torch, inputs["dtype"]))
            x = torch.empty(inputs["images"], inputs["channels"], *sizes(inputs), dtype=layer.weight.dtype)
            settings = [list(one) for one in (layer.stride, layer.padding, layer.dilation)]
            torch.set_num_threads(inputs["threads"])
            with torch.backends.mkldnn.flags(enabled=inputs["onednn"]):
                wanted = torch._C._select_conv_backend(
                    x, layer.weight, None, *settings, inputs["transposed"], [0] * len(sizes(inputs)), inputs["groups"]
                )
            shape = layer.to("meta")(x.to("meta")).shape
        except (RuntimeError, ValueError) as error:
            words = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            assert found == words or isinstance(found, str) and found.startswith("The result would have"), (
                inputs,
                words,
            )
            refused += 1
            continue
        if min(shape[1:]) < 1:
            assert isinstance(found, str)
            continue
        if found["backend"] == "NnpackSpatial" and not torch.backends.nnpack.is_available():
            continue
        facts = dict(found["facts"])
        assert found["backend"] == {9: "MkldnnTranspose"}.get(int(wanted), wanted.name), inputs
        assert (facts["result"], facts["weight"]) == (str(tuple(shape)), str(tuple(layer.weight.shape)))
        seen.add(found["backend"])
    volumes = {"Slow3d", "SlowDilated3d", "SlowTranspose3d"}
    images = {"Slow2d", "SlowDilated2d", "SlowTranspose2d", "NnpackSpatial"}
    assert seen == volumes | images | {"Mkldnn", "MkldnnTranspose", "Empty"}
    assert refused > 50


def test_what_an_element_reads():
    """Gradients with respect to input and weights are zero where nothing was read."""
    compared = 0
    for inputs in drawn(500):
        found = outcome(inputs)
        if isinstance(found, str) or max(inputs["size"]) > 20 or not inputs["images"] or inputs["depth"]:
            continue
        layer = layer_of(inputs)
        x = torch.rand(1, inputs["channels"], *sizes(inputs), requires_grad=True)
        i, j = found["at"]
        with torch.no_grad():
            layer.weight.fill_(1)
        layer(x)[0, found["filter"], i, j].backward()
        reads = torch.zeros(x.shape[1:])
        weights = torch.zeros(found["kernel"])
        for k, row in found["rows"]:
            for l, column in found["columns"]:
                if 0 <= row < found["size"][0] and 0 <= column < found["size"][1]:
                    reads[found["from"] : found["from"] + found["inner"], row, column] = 1
                    weights[k, l] = 1
        assert (x.grad[0] != 0).equal(reads != 0), inputs
        assert (layer.weight.grad.sum((0, 1)) != 0).equal(weights != 0), inputs
        compared += 1
    assert compared > 100


def test_products_are_those_of_the_flop_counter():
    from torch.utils.flop_counter import FlopCounterMode

    for inputs in drawn(200):
        found = outcome(inputs)
        if isinstance(found, str):
            continue
        layer = layer_of(inputs, device="meta")
        with FlopCounterMode(display=False) as counter:
            layer(torch.empty(inputs["images"], inputs["channels"], *sizes(inputs), device="meta"))
        products = int(dict(found["facts"])["products"].replace(",", ""))
        assert counter.get_total_flops() == 2 * products, inputs


@pytest.mark.browser
@pytest.mark.slow
def test_home_and_end_stay_in_the_row_of_the_result(visit, page_with):
    inputs = {"size": [20, 20], "at": [3, 4]}
    with visit(page_with(viz.figure("convolution", **inputs))) as seen:
        page = seen.page
        page.locator("[data-focus='out-3,4']").focus()
        for key, there in (("End", "[3, 19]"), ("Home", "[3, 0]")):
            page.keyboard.press(key)
            focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
            assert focused == there
        assert seen.problems == []


@pytest.mark.browser
@pytest.mark.slow
def test_a_batch_of_none_has_no_size_of_the_result(visit, page_with):
    with visit(page_with(viz.figure("convolution", images=0))) as seen:
        words = seen.page.locator(".rt-cv-grids").inner_text()
        assert "Result: no image" in words and "Result 5" not in words
