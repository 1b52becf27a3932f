"""The figure "Which elements a thread works on" says what such a kernel does on the simulator, and counts as the headers do."""

import random
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch
from numba import cuda

from readtorch.c10.cuda import simulator
from readtorch.viz.figures import block_elements as figure

HEADERS = Path(torch.__file__).parent / "include/ATen/native/cuda"


def copied(x, out, vector, each):
    """Loads and stores as by the two policies, with an identity between them."""
    t, first = cuda.threadIdx.x, cuda.blockIdx.x * each * 128
    remaining = out.size - first
    if vector > 1 and remaining >= each * 128:
        for i in range(each // vector):
            for j in range(vector):
                out[first + vector * (t + i * 128) + j] = x[first + vector * (t + i * 128) + j]
    else:
        for i in range(each):
            if t + i * 128 < remaining:
                out[first + t + i * 128] = x[first + t + i * 128]


def written(n, way):
    """{(block, thread): elements}, in the order in which they are stored."""
    x, out = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    recording = simulator.record(copied, -(-n // (way.each * 128)), 128, x, out, way.vector, way.each)
    assert (out == x).all()
    begin, found = out.ctypes.data, defaultdict(list)
    for access in recording.accesses:
        if access.kind == "write":
            found[access.block[0], access.thread[0]].append((access.address - begin) // 4)
    return found


@pytest.mark.parametrize("operands", figure.WAYS)
@pytest.mark.parametrize("n", [1, 100, 1024, 2500])
def test_a_thread_has_the_elements_that_the_figure_gives_it(operands, n):
    found = written(n, figure.WAYS[operands])
    for thread in random.Random(n).sample(range(128), 12) + [0, 127]:
        result = figure.FIGURE.result(n=n, operands=operands, thread=thread)
        assert result["blocks"] == max(block for block, _ in found) + 1
        for one in result["shown"]:
            first = one["number"] * result["size"]
            own = [first + k for start, end in one["pieces"] for k in range(start, end)]
            assert own == found[one["number"], thread]


@pytest.mark.parametrize("operands", figure.WAYS)
def test_a_warp_has_what_its_lanes_have(operands):
    lanes = [figure.FIGURE.result(n=2500, operands=operands, thread=t)["shown"] for t in range(32, 64)]
    for place, one in enumerate(lanes[5]):
        own = {k for shown in lanes for start, end in shown[place]["pieces"] for k in range(start, end)}
        assert own == {k for start, end in one["warp"] for k in range(start, end)}


def test_constants_are_those_of_the_headers():
    loops, constants = ((HEADERS / name).read_text() for name in ("CUDALoops.cuh", "thread_constants.h"))
    assert (
        re.search(r"num_threads\(\) \{\s*return C10_WARP_SIZE \* 4;", constants) and figure.THREADS == 4 * figure.WARP
    )
    few, most, usual = re.search(
        r"io_sizes == (\d+)\) \{\s*return (\d+);\s*\} else \{\s*return (\d+);\s*\}\s*\}\s*#endif", loops
    ).groups()
    assert (few, int(most), int(usual)) == ("1", figure.WAYS["fill_"].each, figure.WAYS["float32"].each)
    (unrolled,) = re.search(r"elementwise_thread_work_size\(\) \{return (\d+);\}", loops).groups()
    assert int(unrolled) == figure.WAYS["x[1:]"].each


@pytest.mark.parametrize(
    "operands, size, offset",
    [("float32", 4, 0), ("float64", 8, 0), ("float16", 2, 0), ("x[2:]", 4, 2), ("x[1:]", 4, 1), ("fill_", 1, 0)],
)
def test_a_vector_has_sixteen_bytes_where_the_address_allows(operands, size, offset):
    """The rule of launch_vectorized_kernel, for compute capability 9: 16 bytes, 8 elements, and the address's alignment."""
    aligned = max(v for v in (8, 4, 2, 1) if offset * size % (v * size) == 0)
    assert figure.WAYS[operands].vector == min(16 // size, aligned)


def test_sentences():
    assert figure.FIGURE.result()["say"] == (
        "2,500 elements: 3 blocks of 128 threads, 8 elements a thread. In block 0, which has 1,024, thread 0 moves 2 vectors of 4, "
        "without a test. In block 2, which has 452, thread 0 tests 8 places and finds 4 elements."
    )
    assert figure.FIGURE.result(n=100, thread=100)["say"].endswith("thread 100 tests 8 places and finds 0 elements.")
