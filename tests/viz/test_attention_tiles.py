"""The figure of attention in tiles: its tiles and bytes against loops that count, its numbers against torch."""

import random

import pytest
import torch

from readtorch import viz
from readtorch.viz.figure_kit import find
from readtorch.viz.figures import attention_tiles
from readtorch.viz.inputs import Refusal

FIGURE = find("attention_tiles")


def drawn(count, largest=40):
    generator = random.Random(14)
    for _ in range(count):
        number = lambda high: generator.randint(1, high)
        yield {
            "queries": number(largest), "keys": number(largest), "head": number(9), "rows": number(12), "columns": number(12),
            "dtype": generator.choice(["float32", "float16", "bfloat16"]), "mask": generator.choice(["none", "causal", "window"]),
            "window": number(20), "block": generator.randint(0, 5), "seed": number(999),
        }  # fmt: skip


def visible(inputs):
    """The mask as torch would be given it: True takes part."""
    i, j = torch.arange(inputs["queries"])[:, None], torch.arange(inputs["keys"])
    if inputs["mask"] == "none":
        return torch.ones(len(i), len(j), dtype=torch.bool)
    return (j <= i) & ((i - j < inputs["window"]) if inputs["mask"] == "window" else True)


def counted(inputs):
    """What the two loops of FlashAttention-2 read and write, tile by tile: (bytes, computed tiles, those with a mask)."""
    seen, size = visible(inputs), getattr(torch, inputs["dtype"]).itemsize
    q, k = torch.empty(inputs["queries"], inputs["head"]), torch.empty(inputs["keys"], inputs["head"])
    moved = computed = masked = 0
    for rows, own in zip(q.split(inputs["rows"]), seen.split(inputs["rows"])):
        moved += 2 * rows.numel() * size + 4 * len(rows)  # queries in; outputs and logsumexp out
        for keys, tile in zip(k.split(inputs["columns"]), own.split(inputs["columns"], 1)):
            if tile.any():
                moved += 2 * keys.numel() * size
                computed, masked = computed + 1, masked + (not tile.all().item())
    return moved, computed, masked


@pytest.mark.parametrize("inputs", list(drawn(60)))
def test_tiles_and_bytes(inputs):
    result = FIGURE.result(**inputs)
    assert (result["tiled"], result["computed"], result["masked"]) == counted(inputs)
    tiles = [tile for rows in visible(inputs).split(inputs["rows"]) for tile in rows.split(inputs["columns"], 1)]
    assert len(tiles) == result["down"] * result["across"]
    size, d = getattr(torch, inputs["dtype"]).itemsize, inputs["head"]
    q, k, scores = inputs["queries"] * d, inputs["keys"] * d, inputs["queries"] * inputs["keys"]
    steps = [q + k + scores, scores + scores, scores + k + q]  # product, softmax, product: each reads and writes
    assert result["plain"] == size * sum(steps)


@pytest.mark.parametrize("inputs", list(drawn(60)))
def test_one_query_step_by_step(inputs):
    """The last state, divided, is torch's attention of that query; each state is that of the keys so far."""
    result = FIGURE.result(**inputs)
    query, keys = result["query"], inputs["keys"]
    scores = torch.tensor([attention_tiles.score(query, j, inputs["seed"]) for j in range(keys)], dtype=torch.float64)
    values = torch.tensor([[attention_tiles.value(j)] for j in range(keys)], dtype=torch.float64)
    seen = visible(inputs)[query]
    one = torch.ones(1, 1, 1, 1, dtype=torch.float64)
    out = torch.nn.functional.scaled_dot_product_attention(
        one, scores[None, None, :, None], values[None, None], seen[None], scale=1.0
    ).item()
    last = result["states"][-1]
    assert (last["out"] / last["total"] if last["total"] else 0.0) == pytest.approx(out)
    for state in result["states"][1:]:
        end = state["tile"] * result["columns"] + state["keys"]
        some = scores[:end][seen[:end]]
        if not len(some):
            assert state["top"] is None and state["total"] == 0
        else:
            assert state["top"] == some.max().item()
            assert state["total"] == pytest.approx((some - some.max()).exp().sum().item())
    if last["top"] is not None:
        assert f"= {scores[seen].logsumexp(0).item():.4f}," in result["say"][-1]


def test_the_claims_of_the_chapter():
    real = {"queries": 4096, "keys": 4096, "head": 64, "rows": 128, "columns": 128, "dtype": "float16"}
    result = FIGURE.result(**real)
    assert (
        result["fits"]
        and result["plain"] / result["tiled"] == pytest.approx(4, rel=0.02)
        and result["scores"] == 32 * 2**20
    )
    wide = FIGURE.result(**real | {"head": 128})
    assert not wide["fits"] and wide["plain"] / wide["tiled"] == pytest.approx(2, rel=0.05)
    flat = FIGURE.result(**real | {"rows": 16})
    assert flat["tiled"] > 1.9 * flat["plain"]
    narrow = FIGURE.result(**real | {"mask": "window", "window": 512})
    assert narrow["computed"] / result["computed"] == pytest.approx(1 / 7, abs=0.01)
    rising = FIGURE.result(**real | {"block": 31, "seed": 2})
    assert "rises 3 times" in rising["say"][0] and "rises from" in rising["say"][3]
    inside = FIGURE.result(**real | {"mask": "window", "window": 512, "block": 16, "seed": 2})
    assert "rises from" in inside["say"][3]
    one = FIGURE.result(**real | {"queries": 1, "keys": 8192})
    assert one["tiled"] < one["plain"] < 1.05 * one["tiled"]
    first = FIGURE.result()
    assert "rises" in first["say"][2]


def test_too_many_tiles_are_refused():
    with pytest.raises(Refusal, match="Take larger blocks"):
        FIGURE.result(queries=65_536, keys=65_536, rows=64, columns=64)


@pytest.mark.browser
@pytest.mark.slow
def test_the_window_is_open_under_its_own_mask_only(visit, page_with):
    with visit(page_with(viz.figure("attention_tiles", step=2))) as seen:
        window = seen.page.locator("[data-focus=input-window]")
        mask = seen.page.locator("[data-focus=input-mask]")
        assert "rises" in seen.page.locator(".rt-now").inner_text() and window.is_disabled()
        mask.select_option("window")
        assert window.is_enabled()
        window.fill("2")
        window.press("Enter")
        window.press("Control+z")
        assert window.input_value() == "4" and window.is_enabled()
        mask.focus()
        mask.select_option("causal")
        assert window.is_disabled()
        assert seen.problems == []
