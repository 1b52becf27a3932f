"""The figure "What a warp asks of memory" counts what the kernel simulator records."""

import random

import numpy as np
import pytest
from numba import cuda

from readtorch.c10.cuda import simulator
from readtorch.viz.figures import warp_access as figure
from readtorch.viz.inputs import Refusal

ELEMENT = {"1": "i1", "2": "f2", "4": "f4", "8": "f8", "16": "c16"}


def in_a_line(x, stride, pitch, shift):
    t = cuda.threadIdx.x + cuda.blockDim.x * cuda.threadIdx.y
    x[stride * t + shift] = 0


def in_rows(x, stride, pitch, shift):
    x[pitch * cuda.threadIdx.y + cuda.threadIdx.x + shift] = 0


def in_columns(x, stride, pitch, shift):
    x[pitch * cuda.threadIdx.x + cuda.threadIdx.y + shift] = 0


KERNELS = {figure.LINE: in_a_line, figure.ROWS: in_rows, figure.COLUMNS: in_columns}


def recorded(inputs):
    """The accesses of the warps, in their order, of an array that begins at a multiple of 128."""
    dtype = np.dtype(ELEMENT[inputs["size"]])
    room = np.zeros(140_000 * dtype.itemsize, np.uint8)
    x = room[-room.ctypes.data % 128 :][: 139_000 * dtype.itemsize].view(dtype)
    block = inputs["across"], inputs["down"]
    recording = simulator.Recording()
    launch = (KERNELS[inputs["pattern"]], 1, block, [x, inputs["stride"], inputs["pitch"], inputs["shift"]])
    simulator.launcher.Launch(*launch, watchers=[recording]).run()
    return x, sorted(recording.warp_accesses(), key=lambda access: access.warp)


@pytest.mark.parametrize("seed", range(40))
def test_costs_are_those_of_a_recorded_kernel(seed):
    inputs = figure.FIGURE.random_inputs(random.Random(seed))
    if inputs["across"] * inputs["down"] > 1024:
        with pytest.raises(Refusal, match="a GPU allows 1,024"):
            figure.model(inputs)
        return
    result = figure.model(inputs)
    x, accesses = recorded(inputs)
    assert len(accesses) == result["warps"]
    one = accesses[result["warp"]]
    begin = x.__array_interface__["data"][0]
    assert [a.address - begin for a in one.accesses] == result["lanes"]
    assert (one.sectors, one.fewest_sectors) == (result["sectors"], result["least"])
    assert (one.turns, one.fewest_turns) == (result["turns"], result["leastTurns"])
    assert result["all"] == {
        "sectors": sum(access.sectors for access in accesses),
        "least": sum(access.fewest_sectors for access in accesses),
        "turns": sum(access.turns for access in accesses),
    }
    held = [
        {sector for a in access.accesses for sector in sectors_of(a.address - begin, x.itemsize)} for access in accesses
    ]
    assert result["different"] == len(set().union(*held))
    assert sum(map(max, result["banks"])) == result["turns"]  # the bars are what the number says


def sectors_of(address, size):
    return range(address // 32, (address + size - 1) // 32 + 1)


def test_eight_warps_ask_for_the_same_sectors():
    result = figure.FIGURE.result(pattern=figure.COLUMNS, pitch=32)
    assert (result["all"]["sectors"], result["different"]) == (256, 32)
    assert "asks for 256 sectors, 32 different: without a cache 8,192 bytes, 13 % of them used" in result["say"]
    assert "8 sectors, all different" in figure.FIGURE.result(pattern=figure.ROWS, pitch=32, down=2)["say"]


def test_one_memory_at_a_time():
    """The chapter explains sectors before banks."""
    inputs = {"pattern": figure.COLUMNS, "pitch": 32}
    in_global, in_shared = (figure.FIGURE.result(memory=memory, **inputs) for memory in (figure.GLOBAL, figure.SHARED))
    assert "turn" not in in_global["say"] and "bank" not in in_global["say"]
    assert in_shared["say"] == (
        "Warp 0 of 8 asks for 32 elements of 4 bytes: 32 turns, a bank conflict. The accesses of the block take 256 turns."
    )
    pictures = [figure.picture(result, 0) for result in (in_global, in_shared)]
    assert ["gold" in picture.split("</style>")[1] for picture in pictures] == [False, True]


def test_half_a_warp_of_elements_of_eight_bytes():
    result = figure.FIGURE.result(pattern=figure.COLUMNS, size="8", across=16, down=16, pitch=32)
    assert (len(result["banks"]), [max(part) for part in result["banks"]], result["turns"]) == (2, [16, 16], 32)


def test_what_the_chapter_says():
    result = figure.FIGURE.result(pattern=figure.COLUMNS, pitch=32)
    assert (result["sectors"], result["least"], result["turns"]) == (32, 4, 32)
    assert figure.FIGURE.result(pattern=figure.COLUMNS, pitch=33)["turns"] == 1
    for size, turns in (("4", 1), ("8", 2), ("16", 4)):  # 128, 256, 512 bytes from banks that give 128 in a turn
        result = figure.FIGURE.result(pattern=figure.LINE, size=size, memory=figure.SHARED)
        assert (result["turns"], "no bank conflict" in result["say"]) == (turns, True)
    assert figure.FIGURE.result(pattern=figure.LINE, stride=8)["sectors"] == 32
    assert figure.FIGURE.result(pattern=figure.LINE, stride=1, shift=1)["sectors"] == 5
