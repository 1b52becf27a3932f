"""`mini.gpu`: kernels as generators run as on the kernel simulator, and the same mistakes are found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import cuda

from readtorch.c10.cuda import simulator
from readtorch.mini.gpu import BARRIER, Shuffle, launch

ALL = 0xFFFFFFFF


def turned(me, x, out):
    me.shared[me.index] = x[me.number]
    yield BARRIER
    out[me.number] = me.shared[me.width - 1 - me.index]


def shifted(me, x, out, turns=3):
    me.shared[me.index] = x[me.number]
    for _ in range(turns):
        yield BARRIER
        value = me.shared[(me.index - 1) % me.width]
        yield BARRIER
        me.shared[me.index] = value
    out[me.number] = me.shared[me.index]


def hasty(me, x, out):
    me.shared[me.index] = x[me.number]
    out[me.number] = me.shared[me.width - 1 - me.index]


def hasty_for_the_simulator(x, out):
    shared = cuda.shared.array(64, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    shared[t] = x[i]
    out[i] = shared[cuda.blockDim.x - 1 - t]


@given(st.integers(1, 4), st.integers(1, 48))
def test_barriers(grid, width):
    x, out = np.arange(grid * width, dtype=np.float32), np.zeros(grid * width, np.float32)
    assert not launch(turned, grid, width, x, out, shared=width).races
    assert out.tolist() == x.reshape(grid, width)[:, ::-1].ravel().tolist()
    assert not launch(shifted, grid, width, x, out, shared=width).races
    assert out.tolist() == np.roll(x.reshape(grid, width), 3, axis=1).ravel().tolist()


@given(st.integers(1, 3), st.integers(1, 31))
def test_shuffles(warps, lanes):
    """Whole warps by one mask; in two halves, each with its own."""

    def exchanged(me, x, out):
        value = yield Shuffle(ALL, x[me.number], me.lane ^ lanes)
        half = 0xFFFF if me.lane < 16 else 0xFFFF0000
        out[me.number] = yield Shuffle(half, value, me.lane ^ 15)

    x, out = np.arange(32 * warps, dtype=np.float32), np.zeros(32 * warps, np.float32)
    launch(exchanged, 1, 32 * warps, x, out)
    assert out.tolist() == [i ^ 15 ^ lanes for i in range(32 * warps)]


def test_races_are_those_of_the_simulator():
    x, out = np.arange(12, dtype=np.float32), np.zeros(12, np.float32)
    mine = launch(hasty, 2, 6, x, out, shared=6).races
    theirs = simulator.races_of(hasty_for_the_simulator, 2, 6, x, out)
    assert {i for name, i in mine if name == "shared 1"} == set(range(6)) and theirs
    assert not any(name.startswith("array") for name, _ in mine)


def test_two_blocks_race_whatever_the_barrier():
    def both(me, out):
        yield BARRIER
        out[0] = me.number

    assert launch(both, 2, 1, np.zeros(1)).races
    assert not launch(both, 1, 1, np.zeros(1)).races


def test_who_never_meets():
    def some(me, x):
        if me.index < 3:
            yield BARRIER

    with pytest.raises(
        RuntimeError, match=r"never meet: 3 threads at the barrier \(0 to 2\); 2 threads at the end \(3 to 4\)"
    ):
        launch(some, 1, 5, np.zeros(1))

    def half(me, x):
        if me.lane < 16:
            yield Shuffle(ALL, 1, me.lane ^ 1)

    with pytest.raises(
        RuntimeError, match=r"never meet: 16 threads at a shuffle of 0xffffffff \(0 to 15\); 16 threads at the end"
    ):
        launch(half, 1, 32, np.zeros(1))


def test_who_is_out_of_bounds():
    def double(me, x, out):
        out[me.number] = 2 * x[me.number]

    with pytest.raises(IndexError, match=r"^thread 36 of block 1 reads x\[100\] of 100$"):
        launch(double, 2, 64, np.ones(100), np.zeros(100))

    def before(me, x):
        x[me.number - 1] = 0

    with pytest.raises(IndexError, match=r"^thread 0 of block 0 writes x\[-1\] of 8$"):
        launch(before, 1, 8, np.ones(8))


def test_what_a_thread_may_wait_for():
    def bare(me, x):
        yield

    with pytest.raises(TypeError, match="^thread 0 of block 0 waits for None$"):
        launch(bare, 1, 4, np.zeros(4))

    def absent(me, x):
        yield Shuffle(0x1, 1, 0)

    with pytest.raises(ValueError, match="^thread 1 of block 0: lane 1 is not in its mask 0x1$"):
        launch(absent, 1, 4, np.zeros(4))

    def from_outside(me, x):
        yield Shuffle(0xF, 1, 4)

    with pytest.raises(ValueError, match="^thread 0 of block 0: lane 4 is not in its mask 0xf$"):
        launch(from_outside, 1, 4, np.zeros(4))
