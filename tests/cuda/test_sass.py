"""The kernels' machine code is held to what benchmarks/results/gpu/sass.json says of it; no GPU is needed.

Compiled anew is a handful of them. Registers, stack and spills are ptxas's words, divisions and 16-byte loads are counted in
PTX; where `nvdisasm` is, the loops of the machine code are compared as well. After a change that means to change them:
`python -m benchmarks.sass`.
"""

import importlib.util
import json
import re

import pytest

from benchmarks import sass, sass_loops
from benchmarks.sass_cases import cases

RECORD = {row["case"]: row for row in json.loads((sass.RESULTS / "sass.json").read_text(encoding="utf8"))["rows"]}
QUICK = ("exp", "softmax", "layer_norm", "sum of rows", "transpose")

compiler = pytest.mark.skipif(
    not (importlib.util.find_spec("numba_cuda") and importlib.util.find_spec("nvidia") and sass.tool("ptxas")),
    reason="needs numba-cuda with its compiler (pip install readtorch[ptx])",
)
disassembler = pytest.mark.skipif(not sass.tool("nvdisasm"), reason="needs nvdisasm (pip install nvidia-cuda-nvdisasm)")


def test_every_case_is_recorded():
    assert {name: row["bytes an element"] for name, row in RECORD.items()} == {
        name: case.bytes for name, case in cases().items()
    }
    assert list(RECORD) == list(cases())


def test_no_spills_and_no_division_in_a_loop_are_recorded():
    assert [row["case"] for row in RECORD.values() if row["spills"] or row["in the loop"]] == []


@compiler
@pytest.mark.parametrize("name", QUICK)
def test_resources(name):
    [launch] = dict.fromkeys(sass.launches(cases()[name].launcher, cases()[name].arguments))
    registers, stack, spills, _ = sass.resources(launch)
    text, record = sass.ptx(launch), RECORD[name]
    assert spills == 0 and stack <= record["stack"]
    assert registers <= record["registers"] + 8  # another version of the compiler may take a few more
    if record["64-bit divisions"] == 0:
        assert sass.divisions(text) == 0
    if record["bytes a load"] == 16:
        assert re.search(r"ld(\.global)?\.v4\.(f32|b32|u32)", text)


@compiler
@disassembler
@pytest.mark.parametrize("name", QUICK)
def test_loops(name):
    row, _ = sass.read(name, cases()[name])
    record = RECORD[name]
    assert row["in the loop"] <= record["in the loop"] and row["bytes a load"] >= record["bytes a load"]
    assert row["instructions an element"] <= 1.1 * record["instructions an element"]
    assert row["of the copy"] >= record["of the copy"] - 0.05


LISTING = [
    "MOV R0, RZ",
    "LDG.E R2, desc[UR4][R8.64]",
    "IADD3 R8, R8, 0x4, RZ",
    "@P0 BRA `(.L_0)",
    "EXIT",
    "BRA `(.L_9)",
]


def test_a_loop_is_found_in_the_graph_of_jumps():
    assert sass_loops.loops(LISTING, {".L_0": 1, ".L_9": 5}) == [{1, 2, 3}]
    assert sass_loops.executed(LISTING, {".L_0": 1, ".L_9": 5}) == {0, 1, 2, 3, 4}


def test_a_block_elsewhere_belongs_to_the_loop():
    # 1: the loop's head, which jumps to the block at 4; that one jumps back to 2
    listing = ["NOP", "@P1 BRA `(.L_far)", "@P0 BRA `(.L_head)", "EXIT", "FADD R1, R1, R2", "BRA `(.L_back)"]
    assert sass_loops.loops(listing, {".L_head": 1, ".L_back": 2, ".L_far": 4}) == [{1, 2, 4, 5}]


def test_instructions_are_read():
    assert sass.name_of("@!P0 LDG.E.128 R4, desc[UR4][R8.64]") == "LDG.E.128"
    assert sass.moved(["LDG.E.128 R4, desc[UR4][R8.64]", "STG.E.U8 desc[UR4][R2.64], R7", "LDS R1, [R2]"]) == 17
    assert sass.cycles("FFMA R1, R2, R3, R4") == 1 and sass.cycles("@P0 MUFU.EX2 R1, R2") == 8
    assert sass.division_calls(["CALL.REL.NOINC `($__internal_1_$__cuda_sm20_rem_s64)", "CALL.REL.NOINC `(other)"]) == 1


def test_a_loop_that_stands_is_not_the_one():
    standing = ["LDG.E R2, desc[UR4][R8.64]", "STG.E desc[UR4][R6.64], R2", "IADD3 R3, R3, 0x1, RZ"]
    assert sass.stands(standing) and not sass.stands([*standing, "IADD3 R8, R8, 0x4, RZ"])
