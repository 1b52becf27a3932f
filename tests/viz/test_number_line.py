"""The model of the figure of the chapter on mixed precision against PyTorch: every number that is stored, and the scaler's decision."""

import math
import random

import pytest
import torch

from readtorch import viz
from readtorch.viz.figure_kit import find
from readtorch.viz.inputs import Refusal

FIGURE = find("number_line")


def results(seed, count):
    generator = random.Random(seed)
    for _ in range(count):
        inputs = FIGURE.random_inputs(generator)
        try:
            yield inputs, FIGURE.model(inputs)
        except Refusal:
            continue


@pytest.mark.parametrize("seed", range(8))
def test_what_is_stored_is_what_torch_stores(seed):
    for inputs, result in results(seed, 40):
        dtype = getattr(torch, inputs["dtype"])
        for row in result["rows"]:
            exact = torch.tensor(row["scaled"], dtype=torch.float64)
            if exact.abs() < 2.0**127 and exact.float().double() == exact:
                stored = exact.float().to(dtype).item()
                assert stored == (math.copysign(math.inf, row["scaled"]) if row["stored"] is None else row["stored"]), (
                    inputs,
                    row,
                )
                assert (row["kind"] == "inf") == math.isinf(stored)
                info = torch.finfo(dtype)
                assert (row["kind"] == "subnormal") == (0 < abs(stored) < info.smallest_normal)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_neighbours_are_nextafter(dtype):
    for gradient in ("1", "3e-8", "2^-20", "0.3", "1000", "2^-126"):
        row = FIGURE.result(gradients=gradient, dtype=dtype)["rows"][0]
        below = torch.tensor(row["below"]).to(getattr(torch, dtype))
        assert below.item() == row["below"]
        above = torch.nextafter(below, torch.tensor(math.inf).to(below.dtype))
        assert above.item() - below.item() == row["step"]


@pytest.mark.parametrize("seed", range(4))
def test_the_decision_is_that_of_a_grad_scaler(seed):
    """Gradients come to the scaler in float32, with what 16 bits have left of them."""
    for inputs, result in results(seed, 25):
        scale = 2.0 ** inputs["exponent"]
        stored = [math.inf if row["stored"] is None else row["stored"] for row in result["rows"]]
        weight = torch.nn.Parameter(torch.zeros(len(stored)))
        weight.grad = torch.tensor(stored)
        optimizer = torch.optim.SGD([weight], lr=1.0)
        scaler = torch.amp.GradScaler("cpu")
        scaler.load_state_dict(scaler.state_dict() | {"scale": scale, "_growth_tracker": inputs["good"]})
        scaler.scale(torch.ones(()))
        scaler.step(optimizer)
        scaler.update()
        then = result["then"]
        assert scaler.get_scale() == 2.0 ** then["exponent"]
        assert scaler.state_dict()["_growth_tracker"] == then["good"]
        if then["skipped"]:
            assert not weight.any()
        else:
            back = torch.tensor([row["back"] for row in result["rows"]])
            assert torch.equal(weight.detach(), -back)


def test_what_the_chapter_says_of_it():
    kinds = [row["kind"] for row in FIGURE.result()["rows"]]
    assert kinds == ["zero", "zero", "subnormal", "subnormal"] + ["normal"] * 4
    assert FIGURE.result(exponent=16)["then"] == {"skipped": True, "exponent": 15, "good": 0}
    good = FIGURE.result(exponent=13)
    assert [row["kind"] for row in good["rows"]] == ["subnormal"] + ["normal"] * 7 and not good["then"]["skipped"]
    assert {row["kind"] for row in FIGURE.result(dtype="bfloat16")["rows"]} == {"normal"}
    assert FIGURE.result(exponent=13, good=1999)["then"] == {"skipped": False, "exponent": 14, "good": 0}
    assert FIGURE.result(exponent=14)["then"] == {"skipped": True, "exponent": 13, "good": 0}
    twice, tie = FIGURE.result(gradients="2.99e-8, 2^-25")["rows"]
    assert 0.99 < twice["error"] < 1 and tie["kind"] == "zero"
    assert [row["kind"] for row in FIGURE.result(gradients="65504,65519,65520")["rows"]] == ["normal", "normal", "inf"]


@pytest.mark.browser
@pytest.mark.slow
def test_steps_are_left_out_until_the_scale_fits(visit, page_with):
    with visit(page_with(viz.figure("number_line", exponent=16))) as seen:
        exponent, step = [seen.page.locator(f"[data-focus={name}]") for name in ("input-exponent", "next")]
        for scale in ("15", "14", "13", "13"):
            step.click()
            assert exponent.input_value() == scale
        assert seen.page.locator("[data-focus=input-good]").input_value() == "1"
        assert seen.problems == []


@pytest.mark.browser
@pytest.mark.slow
def test_the_end_of_float16_can_be_read(visit, page_with):
    with visit(page_with(viz.figure("number_line", gradients="65504,65519,65520", at=3))) as seen:
        cells = [row.locator("td").nth(1).inner_text() for row in seen.page.locator("table tbody tr").all()]
        assert cells == ["65504", "65519", "65520"]
        marks = seen.page.locator(".rt-nl-mark + text").all_text_contents()
        assert marks == ["65472", "65504", "∞", "∞"]
        assert seen.problems == []


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize(
    "inputs", [{"exponent": -20, "gradients": "1e12"}, {"exponent": 40, "good": 1999, "gradients": "0"}]
)
def test_no_step_leads_beyond_the_input(visit, page_with, inputs):
    with visit(page_with(viz.figure("number_line", **inputs))) as seen:
        assert seen.page.locator("[data-focus=next]").is_disabled()
        assert seen.problems == []


@pytest.mark.parametrize("words", ["", "x", "1e999", "2^200", "1e-60"])
def test_what_is_no_gradient_is_refused(words):
    with pytest.raises(Refusal):
        FIGURE.result(gradients=words)
