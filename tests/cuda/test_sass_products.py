"""The machine code of matrix products and convolutions is held to what benchmarks/results/gpu/sass_products.json says of it,
and that to what was asked of it. After a change that means to change it: `python -m benchmarks.sass_products`.
"""

import importlib.util
import json

import pytest

from benchmarks import sass, sass_products

RECORD = {
    row["case"]: row for row in json.loads((sass.RESULTS / "sass_products.json").read_text(encoding="utf8"))["rows"]
}

tools = pytest.mark.skipif(
    not (importlib.util.find_spec("numba_cuda") and sass.tool("ptxas") and sass.tool("nvdisasm")),
    reason="needs numba-cuda with its compiler, and nvdisasm (pip install nvidia-cuda-nvdisasm)",
)


def test_every_case_is_recorded():
    assert list(RECORD) == list(sass_products.cases())


def test_two_blocks_have_room():
    """128 registers and 100 KiB; one block where operands are read number by number."""
    for name, row in RECORD.items():
        of_256_threads = not ("odd" in name or name.startswith("attention"))
        assert row["registers"] <= (128 if of_256_threads else 255) and row["shared"] <= 100 << 10
        assert row["spills"] <= 16, name


@pytest.mark.parametrize(
    "name, least", [("FFMA nn", 0.7), ("FFMA tt", 0.7), ("TF32 nn", 0.5), ("halves nn", 0.5), ("conv2d", 0.5)]
)
def test_shares(name, least):
    assert RECORD[name]["of the peak"] >= least


def test_attention_beside_flash_attention_2():
    """Forty percent, even if nothing overlapped. (What only tiles on the diagonal of a causal mask need is not counted.)"""
    rows = [row for name, row in RECORD.items() if name.startswith("attention")]
    assert len(rows) == 3 and all(row["of FlashAttention-2"] >= 0.4 for row in rows)
    assert all(row["TFLOP/s at least"] < row["TFLOP/s at most"] and row["spills"] == 0 for row in rows)


@tools
@pytest.mark.slow
@pytest.mark.parametrize("name", ["FFMA nn", "halves nt", "conv2d", "attention forward 64"])
def test_as_recorded(name):
    row = sass_products.row_of(name, sass_products.cases()[name])
    assert row["registers"] <= RECORD[name]["registers"] + 4 and row["spills"] <= RECORD[name]["spills"] + 16
    assert row["of the peak"] >= RECORD[name]["of the peak"] - 0.05


def test_a_step_is_counted():
    """A loop over K with one inner loop of four FFMA, of which the step has 1024."""
    listing = ["LDG R2, [R8]", *["FFMA R1, R2, R3, R1"] * 4, "@P0 BRA `(.L_1)", "BAR.SYNC", "@P1 BRA `(.L_0)", "EXIT"]
    counts = sass_products.step(listing, {".L_0": 0, ".L_1": 1}, "FFMA")
    assert counts == {"LDG": 1, "FFMA": 1024, "BRA": 257, "BAR": 1}
    assert sass_products.bound(counts, "FFMA") == 1024 / 1283
    assert sass_products.bound({"HMMA": 10, "LDS": 90}, "TF32") == 0.4
