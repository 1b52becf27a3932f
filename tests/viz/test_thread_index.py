"""The figure "Which element does this thread get?" says what a kernel with that index does on the simulator."""

import importlib.util

import numpy as np
import pytest

from readtorch.c10.cuda import simulator
from readtorch.viz.figures import thread_index as figure
from readtorch.viz.inputs import Refusal

CONDITION = {figure.NONE: "True", figure.LESS: "i < n", figure.BOTH: "0 <= i < n", figure.MOST: "i <= n"}
KERNEL = """
import numpy as np
from numba import cuda

def kernel(x, out):
    threadIdx, blockIdx, blockDim, gridDim = cuda.threadIdx, cuda.blockIdx, cuda.blockDim, cuda.gridDim
    n = x.size
    i = {index}
    if {condition}:
        out[i] = np.float32(2) * x[i]
"""


@pytest.fixture
def kernel_of(tmp_path):
    def made(index, guard):
        file = tmp_path / "written.py"
        file.write_text(KERNEL.format(index=index, condition=CONDITION[guard]), encoding="utf8")
        spec = importlib.util.spec_from_file_location("written", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.kernel

    return made


INDICES = [
    *figure.INDICES,
    "-threadIdx.x % 7",
    "(threadIdx.x - 5) // 2 * 3",
    "threadIdx.x ^ 1 | blockIdx.x << 5",
    "-5 & threadIdx.x >> 1",
    "blockIdx.x * blockDim.x - -threadIdx.x",
]


@pytest.mark.parametrize("guard", figure.GUARDS)
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("n, grid, block", [(100, 4, 32), (128, 4, 32), (5, 2, 4)])
def test_what_the_simulator_says(kernel_of, index, guard, n, grid, block):
    result = figure.FIGURE.result(index=index, guard=guard, n=n, grid=grid, block=block)
    x, out = np.ones(n, np.float32), np.zeros(n, np.float32)
    kernel = kernel_of(index, guard)
    if result["outside"]:
        with pytest.raises(simulator.OutOfBounds):
            simulator.launch(kernel, grid, block, x, out)
        return
    recording = simulator.record(kernel, grid, block, x, out)
    written = [(a.address - out.ctypes.data) // 4 for a in recording.accesses if a.kind == "write"]
    assert np.bincount(written, minlength=n).tolist() == result["counts"]
    assert (result["left"], result["states"].count("works")) == ((out == 0).sum(), len(written))
    if result["raced"]:
        with pytest.raises(simulator.DataRace):
            simulator.check(kernel, grid, block, x, out)
    else:
        simulator.check(kernel, grid, block, x, out)


def test_thread_4_of_block_3():
    say = figure.FIGURE.result()["say"]
    assert say == "Block 3, thread 4: i = 3 * 32 + 4 = 100, out of bounds. In all: 28 threads out of bounds."
    assert figure.FIGURE.result(guard=figure.LESS)["say"].endswith("Each element is written once: right.")
    said = figure.FIGURE.result(index="threadIdx.x", at=4)["say"]
    assert said.startswith("Block 0, thread 4: i = 4, it writes out[4]. ")
    assert said.endswith("In all: 32 elements written by several threads, a race; 68 elements written by none.")


def test_backwards_needs_both_bounds():
    """What the chapter asks for."""
    says = {guard: figure.FIGURE.result(index=figure.INDICES[-1], guard=guard, at=0)["say"] for guard in figure.GUARDS}
    assert all(
        said.startswith("Block 0, thread 0: i = 100 - 1 - (0 * 32 + 0) = 99, it writes out[99]. ")
        for said in says.values()
    )
    assert [guard for guard, said in says.items() if said.endswith("right.")] == [figure.BOTH]


def test_numba_s_prefix_is_read():
    with_prefix = figure.FIGURE.result(index="cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x")
    assert with_prefix == figure.FIGURE.result()


def test_the_number_in_the_grid_is_read():
    shifted = figure.FIGURE.result(index="cuda.grid(1) - 1", guard=figure.BOTH)
    assert shifted["index"] == [number - 1 for number in range(128)]
    assert "i = (3 * 32 + 4) - 1 = 99, it writes out[99]. " in shifted["say"]


@pytest.mark.parametrize(
    "index, said",
    [
        ("", "I did not expect the end here."),
        ("3 +", "I did not expect the end here."),
        ("n n", "I did not expect n here."),
        ("2 * (n", "A parenthesis is not closed."),
        ("nn", "I cannot read nn: an index has numbers, threadIdx.x"),
        ("7 // blockIdx.x", "That divides by 0."),
        ("999999999 * 9", "That is a very large number."),
        ("1 << n", "Shift by 0 to 31 bits."),
        ("1 >> 0 - 1", "Shift by 0 to 31 bits."),
    ],
)
def test_what_is_no_index(index, said):
    with pytest.raises(Refusal, match="^" + said.replace("(", r"\(").replace("*", r"\*")):
        figure.FIGURE.result(index=index)
