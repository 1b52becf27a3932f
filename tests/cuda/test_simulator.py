"""The kernel simulator: results against NumPy and numba's own simulator, and each kind of mistake, planted
and found.
"""

import inspect
import json
import math
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import cuda

from readtorch.c10.cuda import simulator
from readtorch.c10.cuda.simulator import arithmetic
from tests.cuda import simulated_kernels as kernels

MODES = [simulator.launch, simulator.check, simulator.record]
each_mode = pytest.mark.parametrize("run", MODES)


def line_of(kernel, text):
    """Counted from the kernel's `def`."""
    return next(number for number, line in enumerate(inspect.getsourcelines(kernel)[0], 1) if text in line)


def line_in_file(kernel, text):
    """As a recording counts."""
    return kernel.__code__.co_firstlineno - 1 + line_of(kernel, text)


def floats(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


# -------------------------------------------------------------------------------------------- right results


@each_mode
@pytest.mark.parametrize("order", [None, "reversed", 3])
def test_block_sum(run, order):
    x, out = floats(500), np.zeros(2, np.float32)
    run(kernels.block_sum, 2, 256, x, out, order=order)
    np.testing.assert_allclose(out, [x[:256].sum(), x[256:].sum()], rtol=1e-5, atol=1e-5)


@each_mode
def test_tiled_matmul(run):
    a, b, c = floats(32, 64), floats(64, 32), np.zeros((32, 32), np.float32)
    run(kernels.tiled_matmul, (2, 2), (16, 16), a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)


@each_mode
def test_atomics_and_grid_stride(run):
    x, counts = np.random.default_rng(0).integers(0, 8, 300), np.zeros(8, np.int32)
    run(kernels.histogram, 2, 64, x, counts)
    np.testing.assert_array_equal(counts, np.bincount(x, minlength=8))


@each_mode
def test_constant_and_local_memory(run):
    x, out = floats(3, 20), np.zeros((3, 18), np.float32)
    run(kernels.blur, (2, 3), 16, x, out)
    np.testing.assert_allclose(out, 0.25 * x[:, :-2] + 0.5 * x[:, 1:-1] + 0.25 * x[:, 2:], rtol=1e-5, atol=1e-6)


@each_mode
def test_device_functions_and_shuffles(run):
    x, out = floats(96), np.zeros(3, np.float32)
    run(kernels.warp_sums, 1, 96, x, out)
    np.testing.assert_allclose(out, x.reshape(3, 32).sum(1), rtol=1e-4, atol=1e-5)


def test_where_shuffles_read():
    x, out = np.arange(32), np.zeros((5, 32), int)
    simulator.launch(kernels.shuffles, 1, 32, x, out)
    lanes = np.arange(32)
    assert out[0].tolist() == [5] * 32
    assert out[1].tolist() == np.where(lanes >= 3, lanes - 3, lanes).tolist()
    assert out[2].tolist() == np.where(lanes + 3 < 32, lanes + 3, lanes).tolist()
    assert out[3].tolist() == (lanes ^ 6).tolist()
    assert out[4].tolist() == np.where(lanes % 8 + 3 < 8, lanes + 3, lanes).tolist()


def test_votes():
    x, out = np.arange(32) % 5, np.zeros((7, 32), np.int64)
    simulator.launch(kernels.votes, 1, 32, x, out)
    assert set(out[0]) == {sum(1 << i for i in range(32) if i % 5)}
    assert (set(out[1]), set(out[2]), set(out[4]), set(out[5])) == ({0}, {1}, {0}, {0})
    assert all(out[3, t] == sum(1 << u for u in range(32) if x[u] % 3 == x[t] % 3) for t in range(32))
    assert set(out[6, ::4]) == {0x11111111}


@each_mode
def test_barriers_that_count(run):
    x, out = np.array([1, 0, 3, 4] * 10), np.zeros((3, 40), int)
    run(kernels.counted_barriers, 1, 40, x, out)
    assert [set(row) for row in out.tolist()] == [{30}, {0}, {1}]


@each_mode
def test_a_barrier_of_the_grid(run):
    x, out = np.zeros(1, int), np.zeros(120, int)
    run(kernels.whole_grid, 3, 40, x, out)
    assert set(out) == {120}


def test_a_spin_lock():
    lock, counter = np.zeros(1, np.int32), np.zeros(1, np.int32)
    simulator.launch(kernels.locked, 2, 40, lock, counter)
    assert counter[0] == 80


@each_mode
def test_dynamic_shared_memory(run):
    x, out = floats(48), np.zeros(48, np.float32)
    run(kernels.dynamic, 1, 48, x, out, shared=48 * 4)
    np.testing.assert_array_equal(out, x[::-1])
    with pytest.raises(simulator.OutOfBounds, match="memory"):
        simulator.launch(kernels.dynamic, 1, 48, x, out, shared=47 * 4)


def test_strided_arguments():
    a, b = floats(64, 32).T, floats(64, 64)[:, ::2]
    c = np.zeros((64, 64), np.float32)[::2, 1::2]
    simulator.check(kernels.tiled_matmul, (2, 2), (16, 16), a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)


# -------------------------------------------------------------------------------------------------- numbers


@given(st.floats(width=32), st.floats(width=32), st.floats(width=32))
def test_fma_rounds_once(a, b, c):
    from fractions import Fraction

    numbers = list(map(np.float32, (a, b, c)))
    with np.errstate(all="ignore"):
        got = arithmetic.fma(*numbers)
        assert got.dtype == np.float32
        if not all(map(math.isfinite, (a, b, c))):
            np.testing.assert_equal(got, numbers[0] * numbers[1] + numbers[2])
            return
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        if not np.isfinite(got):
            assert abs(exact) > Fraction(float(np.finfo(np.float32).max))
            return
        for neighbour in (np.nextafter(got, np.float32(np.inf)), np.nextafter(got, np.float32(-np.inf))):
            if np.isfinite(neighbour):
                assert abs(Fraction(float(got)) - exact) <= abs(Fraction(float(neighbour)) - exact)


def test_math_keeps_float32():
    x, out = floats(32), np.zeros(32)
    simulator.launch(kernels.softplus, 1, 32, x, out)
    assert np.array_equal(out, out.astype(np.float32))  # no digit beyond float32
    np.testing.assert_allclose(out, np.logaddexp(0, x), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.uint32, np.int32, np.uint64])
def test_bits(dtype):
    x = np.array([0, 1, 6, 0x7FFFFFFF]).astype(dtype)
    out = np.zeros((4, 4), np.uint64)
    simulator.launch(kernels.bits, 1, 4, x, out)
    width = 8 * x.itemsize
    for value, row in zip(x.tolist(), out.tolist()):
        text = format(value, f"0{width}b")
        lowest = len(text) - text.rindex("1") if value else 0
        assert row == [text.count("1"), width - value.bit_length(), lowest, int(text[::-1], 2)]


# ----------------------------------------------------------------------------------------- planted mistakes


def test_past_the_end():
    with pytest.raises(simulator.OutOfBounds) as error:
        simulator.launch(kernels.past_the_end, 2, 40, floats(64), floats(128))
    text = str(error.value)
    assert "x[64]" in text and "(64,)" in text and "Thread (24, 0, 0) of block (1, 0, 0)" in text
    assert f"line {line_of(kernels.past_the_end, 'out[i] = x[i]')}" in text


@each_mode
def test_before_the_beginning(run):
    with pytest.raises(simulator.OutOfBounds, match=r"x\[-1\]"):
        run(kernels.before_the_beginning, 1, 32, floats(32), floats(32))


@pytest.mark.parametrize(
    "kernel, threads", [(kernels.missing_barrier, 64), (kernels.missing_syncwarp, 32), (kernels.half_syncwarp, 32)]
)
def test_a_missing_barrier(kernel, threads):
    with pytest.raises(simulator.DataRace) as error:
        simulator.check(kernel, 1, threads, floats(64), floats(64))
    for text in ("shared[t] = x[t]", "out[t] = shared["):
        assert f"line {line_of(kernel, text)} of {kernel.__name__}: {text}" in str(error.value)


def test_a_missing_barrier_shows():
    """In another order of the threads the result is another one."""
    x = floats(64)
    results = []
    for order in (None, "reversed"):
        results.append(np.zeros(64, np.float32))
        simulator.launch(kernels.missing_barrier, 1, 64, x, results[-1], order=order)
    assert not np.array_equal(*results, equal_nan=True)


def test_syncwarp_is_enough_in_a_warp():
    x, out = floats(32), floats(32)
    simulator.check(kernels.with_syncwarp, 1, 32, x, out)
    np.testing.assert_array_equal(out, x[::-1])


def test_races_between_blocks():
    with pytest.raises(simulator.DataRace, match=r"block \(0, 0, 0\)[^$]*block \(1, 0, 0\)"):
        simulator.check(kernels.blocks_write_one, 2, 1, floats(1))
    x = np.zeros(1, np.float32)
    simulator.check(kernels.blocks_add_to_one, 2, 3, x)
    assert x[0] == 6
    assert len(simulator.races_of(kernels.atomic_and_plain, 2, 3, x)) == 1


@pytest.mark.parametrize("kernel", [kernels.one_thread_leaves, kernels.two_barriers])
def test_barrier_divergence(kernel):
    with pytest.raises(simulator.BarrierDivergence) as error:
        simulator.launch(kernel, 1, 40, floats(40))
    assert "(7, 0, 0)" in str(error.value) and "cuda.syncthreads()" in str(error.value)


def test_inactive_lanes():
    with pytest.raises(simulator.InactiveLane, match="lane 4"):
        simulator.launch(kernels.lane_absent, 1, 36, floats(36))
    with pytest.raises(simulator.InactiveLane, match="lane 16"):
        simulator.launch(kernels.lane_outside_mask, 1, 32, floats(32))


@each_mode
@pytest.mark.parametrize("kernel, lane", [(kernels.half_a_warp, 16), (kernels.half_a_vote, 0)])
def test_lanes_that_the_mask_names_must_come(run, kernel, lane):
    with pytest.raises(simulator.InactiveLane, match=f"names lane {lane}, which left the kernel without it"):
        run(kernel, 1, 32, floats(32))


def test_other_exceptions_name_the_thread():
    with pytest.raises(ZeroDivisionError) as error:
        simulator.launch(kernels.divides, 1, 8, floats(1))
    assert error.value.__notes__ == ["in thread (3, 0, 0) of block (0, 0, 0)"]


def test_arguments_are_counted():
    for arguments in ((floats(8),), (floats(8), floats(8), 1)):
        with pytest.raises(TypeError):
            simulator.launch(kernels.past_the_end, 1, 8, *arguments)


def test_sizes_that_no_gpu_takes():
    for grid, block in ((1, 1025), (0, 32), ((1, 1, 1, 1), 32)):
        with pytest.raises(ValueError):
            simulator.launch(kernels.past_the_end, grid, block, floats(1), floats(1))


# -------------------------------------------------------------------------------------------- the recording


def test_bank_conflicts():
    recording = simulator.record(kernels.column_of_shared, 1, 32, floats(32, 32), floats(32))
    line = line_in_file(kernels.column_of_shared, "out[t] =")
    conflicts = recording.bank_conflicts()
    assert conflicts[line, "plain", "read"] == (32, 1)
    assert conflicts[line, "padded", "read"] == (1, 1)
    line = line_in_file(kernels.column_of_shared, "plain[i, t]")
    assert conflicts[line, "plain", "write"] == (32, 32)
    assert recording.races == []


def test_names_of_shared_arrays():
    recording = simulator.record(kernels.several_in_one_line, 1, 1, floats(1))
    assert [a.array for a in recording.accesses if a.kind == "write"] == ["a", "b", "d", "f", "out"]


def from_a_sector(size):
    """Zeros whose first one lies at the beginning of a sector."""
    memory = np.zeros(size + 8, np.float32)
    start = -memory.ctypes.data % 32 // 4
    return memory[start : start + size]


def test_coalescing():
    x, out = from_a_sector(256), from_a_sector(32)
    recording = simulator.record(kernels.strided_copy, 1, 32, x, out)
    line = line_in_file(kernels.strided_copy, "out[t] =")
    assert recording.coalescing()[line, "x", "read"] == (32, 4)
    assert recording.coalescing()[line, "out", "write"] == (4, 4)
    assert recording.traffic()[(0, 0, 0), (5, 0, 0)] == {("global", "read"): 4, ("global", "write"): 4}


def test_the_accesses_of_a_thread():
    recording = simulator.record(kernels.block_sum, 1, 256, floats(256), floats(1))
    mine = [a for a in recording.accesses if a.thread == (130, 0, 0)]
    expected = [("x", "read", (130,), 0), ("shared", "write", (130,), 0)]
    assert [(a.array, a.kind, a.index, a.phase) for a in mine] == expected
    first = [a for a in recording.accesses if a.thread == (0, 0, 0)]
    assert [a.step for a in first] == list(range(len(first)))
    assert max(a.phase for a in first) == 9


# ----------------------------------------------------------------------------------------- a second opinion

SECOND_OPINION = """
import json, sys
import numpy as np
from numba import cuda
from tests.cuda import simulated_kernels as kernels
from tests.cuda.test_simulator import samples
for name, (grid, block, arguments) in samples().items():
    cuda.jit(getattr(kernels, name))[grid, block](*arguments)
    print(json.dumps([name, arguments[-1].tolist()]))
"""


def samples():
    """Launches that both simulators can run; the last argument is the result."""
    x = floats(40)
    return {
        "block_sum": (1, 256, (floats(200), np.zeros(1, np.float32))),
        "histogram": (2, 32, (np.arange(50) % 8, np.zeros(8, np.int32))),
        "blur": ((1, 2), 16, (floats(2, 12), np.zeros((2, 10), np.float32))),
        "counted_barriers": (1, 40, (x > 0, np.zeros((3, 40), np.int64))),
        "softplus": (1, 64, (x, np.zeros(40, np.float32))),
    }


def test_numbas_simulator_agrees():
    root = pathlib.Path(__file__).parents[2]
    environment = {
        **os.environ,
        "NUMBA_ENABLE_CUDASIM": "1",
        "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)]),
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SECOND_OPINION],
        env=environment,
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    theirs = dict(map(json.loads, done.stdout.splitlines()))
    assert theirs.keys() == samples().keys()
    for name, (grid, block, arguments) in samples().items():
        simulator.launch(getattr(kernels, name), grid, block, *arguments)
        np.testing.assert_allclose(arguments[-1], theirs[name], rtol=1e-6, err_msg=name)


def test_numba_is_not_needed():
    """A kernel that only names `cuda` runs where numba cannot be imported."""
    program = (
        "import sys; sys.modules['numba'] = None\n"
        "import numpy as np\n"
        "from readtorch.c10.cuda import simulator\n"
        "def double(x): x[cuda.grid(1)] *= 2\n"
        "x = np.arange(8); simulator.check(double, 2, 4, x); print(x.tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parents[2] / "src")},
    )
    assert done.stdout.strip() == "[0, 2, 4, 6, 8, 10, 12, 14]", done.stderr


@each_mode
def test_rows_and_slices(run):
    """Parts of arrays, in device memory and in shared memory: read, written, refused beyond the end."""
    x, out = np.arange(24, dtype=np.float32).reshape(2, 3, 4), np.zeros((2, 3, 4), np.float32)

    def parts(x, out):
        i = cuda.threadIdx.x
        tile = cuda.shared.array((2, 4), np.float32)
        tile[i] = x[i, 2]
        cuda.syncthreads()
        row = tile[1 - i]
        out[i, 0] = row
        out[i, 1, 1:3] = x[i, 1][1:3]
        out[i, 2, :] = i + 0.5

    run(parts, 1, 2, x, out)
    expected = np.zeros_like(x)
    expected[:, 0], expected[:, 1, 1:3] = x[::-1, 2], x[:, 1, 1:3]
    expected[:, 2] = [[0.5], [1.5]]
    np.testing.assert_array_equal(out, expected)


def test_memory_that_a_block_does_not_have():
    def large(x):
        tile = cuda.shared.array(20_000, np.float32)
        tile[0] = x[0]

    with pytest.raises(MemoryError, match="shared arrays of 80000 bytes: a kernel may have 49152"):
        simulator.launch(large, 1, 1, floats(1))
    for shared in (233_473, 1 << 20):
        with pytest.raises(ValueError, match=f"{shared} bytes of shared memory"):
            simulator.launch(kernels.histogram, 1, 1, floats(1), floats(1), shared=shared)
    with pytest.raises(ValueError, match="1025 threads in a block"):
        simulator.launch(kernels.histogram, 1, 1025, floats(1), floats(1))


@pytest.mark.parametrize("value", [np.float16(1), np.int8(1), True])
def test_shuffles_of_other_sizes(value):
    def shuffled(out):
        out[0] = cuda.shfl_sync(0xFFFFFFFF, value, 0) != 0

    with pytest.raises(TypeError, match=f"a shuffle moves 32 or 64 bits, not {type(value).__name__}"):
        simulator.launch(shuffled, 1, 32, np.zeros(1, np.int32))


@each_mode
def test_compare_and_swap(run):
    x, old = np.zeros(3, np.int32), np.zeros(4, np.int32)

    def swaps(x, old):
        i = cuda.threadIdx.x
        old[i] = cuda.atomic.cas(x, i % 3, 0, i + 10)

    run(swaps, 1, 4, x, old)
    assert x[1:].tolist() == [11, 12] and x[0] in (10, 13)
    assert old[1:3].tolist() == [0, 0] and {int(old[0]), int(old[3])} == {0, int(x[0])}
