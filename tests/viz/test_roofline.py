"""The figure "What a kernel can reach": what fits on a multiprocessor, and the work's bytes against the simulator's."""

import numpy as np
import pytest
from numba import cuda

from readtorch.c10.cuda import simulator
from readtorch.viz.figures import roofline as figure
from readtorch.viz.inputs import Refusal


@pytest.mark.parametrize(("threads", "registers", "blocks"), [(128, 32, 16), (128, 37, 12), (320, 37, 4)])
def test_resident_blocks_are_those_of_nvidias_example(threads, registers, blocks):
    """From the CUDA C++ Best Practices Guide, "Calculating Occupancy"; its chips have as many registers and warps."""
    assert figure.resident_blocks(threads, registers, 0, 228)[0] == blocks


def test_shared_memory_and_places_for_blocks_are_limits_too():
    assert figure.resident_blocks(32, 16, 0, 228) == (32, "places for blocks")
    assert figure.resident_blocks(256, 32, 100, 228) == (2, "shared memory")
    with pytest.raises(Refusal, match="Not one block"):
        figure.FIGURE.result(chip="a100", shared=200)


def test_the_sums_of_a_tile_need_registers():
    for threads, registers in [(256, 255), (512, 255), (1024, 64)]:
        with pytest.raises(Refusal, match="256 × 256 results are 65,536, as many as a multiprocessor has registers"):
            figure.FIGURE.result(tile="256", registers=registers, threads=threads)
    with pytest.raises(Refusal, match="no thread has more than 255, so take more threads"):
        figure.FIGURE.result(tile="128", registers=255, threads=32)
    with pytest.raises(Refusal, match="give it about 128"):
        figure.FIGURE.result(tile="128")
    assert figure.FIGURE.result(tile="256", registers=255, work=figure.ADD)["blocks"] == 1


def test_too_few_loads_in_flight_are_not_the_bound_of_bandwidth():
    assert figure.FIGURE.result()["bound"] == "memory"
    assert figure.FIGURE.result(tile="128", registers=128)["bound"] == "latency"
    assert figure.FIGURE.result(tile="128", registers=128, asked="64")["bound"] == "arithmetic"
    assert figure.FIGURE.result(work=figure.ADD, registers=255, asked="8")["bound"] == "latency"
    assert figure.FIGURE.result(work=figure.ADD, registers=255, asked="64")["bound"] == "memory"


def test_a_kernel_is_never_shorter_than_the_shortest():
    result = figure.FIGURE.result(work=figure.ADD, n=64)
    assert result["bound"] == "launch" and result["reached"] == pytest.approx(64 * 64 / figure.SHORTEST / 1e6)
    assert figure.FIGURE.result(work=figure.ADD, n=4096)["bound"] == "memory"


def test_half_the_bytes_take_half_the_time():
    whole, half = (figure.FIGURE.result(work=figure.SOFTMAX, dtype=dtype) for dtype in ("float32", "bfloat16"))
    assert half["limits"]["memory"] == whole["limits"]["memory"] / 2 and half["intensity"] == 2 * whole["intensity"]


@pytest.mark.parametrize("work", [figure.ADD, figure.SOFTMAX])
def test_tensor_cores_neither_add_nor_exponentiate(work):
    assert figure.FIGURE.result(work=work, units=figure.BF16) == figure.FIGURE.result(work=work)


def test_little_is_not_reported_as_nothing():
    assert figure.duration(0.004) == "4.00 ns" and figure.duration(0.5) == "0.50 µs"
    assert [figure.percent(share) for share in (0, 0.004, 0.005, 1)] == ["0 %", "under 1 %", "1 %", "100 %"]


def tiled_product(a, b, out):
    tile_a, tile_b = cuda.shared.array((8, 8), np.float32), cuda.shared.array((8, 8), np.float32)
    column, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    for k in range(0, a.shape[1], 8):
        tile_a[y, x] = a[row, k + x]
        tile_b[y, x] = b[k + y, column]
        cuda.syncthreads()
        for j in range(8):
            total += tile_a[y, j] * tile_b[j, x]
        cuda.syncthreads()
    out[row, column] = total


def test_a_tiled_product_moves_as_many_bytes_as_the_figure_says():
    a, b, out = (np.ones((16, 16), np.float32) for _ in range(3))
    recording = simulator.record(tiled_product, (2, 2), (8, 8), a, b, out)
    of_global = [access for access in recording.accesses if access.space == "global"]
    assert 4 * len(of_global) == figure.cost(figure.MATMUL, 16, 8, 4)[1]


def test_only_loads_must_be_in_flight():
    """Two thirds of what x + y moves is loaded: at 2 KiB of a multiprocessor and 0.6 µs, that takes longer than all bytes would."""
    result = figure.FIGURE.result(work=figure.ADD, registers=255, asked="8")
    loads, at_once = 2 * 4 * 4096**2, 132 * 256 * 8
    assert result["moving"] == pytest.approx(loads / at_once * figure.LATENCY) and round(result["moving"]) == 298
    alone = figure.FIGURE.result(work=figure.ADD, asked="128")
    assert alone["moving"] == pytest.approx(3 * 4 * 4096**2 / 3.35e6)


def test_a_product_stores_as_many_bytes_as_the_figure_says():
    a, b, out = (np.ones((16, 16), np.float32) for _ in range(3))
    recording = simulator.record(tiled_product, (2, 2), (8, 8), a, b, out)
    stores = [access for access in recording.accesses if (access.space, access.kind) == ("global", "write")]
    assert 4 * len(stores) == figure.written(figure.MATMUL, 16, 4)


def test_what_the_chapter_says():
    naive = figure.FIGURE.result()
    assert naive["moving"] > naive["computing"] and naive["warps"] == 64
    tiled = figure.FIGURE.result(tile="128", registers=128, shared=33, asked="64")
    assert tiled["moving"] < tiled["computing"] and tiled["blocks"] == 2
    assert figure.FIGURE.result(work=figure.SCORES)["bytes"] > 10 * figure.FIGURE.result(work=figure.FLASH)["bytes"] / 4


@pytest.mark.parametrize(("n", "time"), [(128, 8.3), (1024, 66.3), (1536, 199)])
def test_few_blocks_leave_multiprocessors_idle(n, time):
    """128 × 128 × n multiply-adds a block, 128 a cycle at 1.98 GHz; 1536 has 144 blocks, so some multiprocessors have two."""
    result = figure.FIGURE.result(tile="128", registers=128, asked="128", n=n)
    assert result["bound"] == "arithmetic" and result["limits"]["arithmetic"] == pytest.approx(time, rel=0.01)
    assert result["blocks"] == result["busiest"] == -(-n // 1024)


def test_a_tile_needs_shared_memory():
    given = {"tile": "128", "registers": 128}
    assert [figure.FIGURE.result(**given, shared=kib)["shared"] for kib in (0, 33)] == [16, 33]
    assert figure.FIGURE.result(**given, units=figure.BF16)["shared"] == 8
    assert figure.FIGURE.result()["shared"] == figure.FIGURE.result(tile="128", work=figure.ADD)["shared"] == 0
