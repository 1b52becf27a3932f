"""Still pictures of a kernel: they show what a thread does, and refuse what cannot be drawn."""

import re

import numpy as np
import pytest
from numba import cuda

from readtorch import viz
from readtorch.c10.cuda import simulator

f32 = np.float32


def turned(a, out):
    block = cuda.shared.array(4, f32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    block[t] = a[i]
    cuda.syncthreads()
    if i < out.size - 1:
        out[i] = block[3 - t]


def outer(a, b, out):
    x, y = cuda.grid(2)
    out[y, x] = a[y, 0] + b[0, x]


def shown(kernel, grid, block, *arrays, **which):
    return viz.kernel_picture(kernel, grid, block, *arrays, **which)._repr_html_()


def filled(picture):
    """The colours of its cells, row by row."""
    return re.findall(r'<rect [^>]*fill="(#\w+)"', picture)


def test_a_thread_of_a_block():
    picture = shown(turned, 2, 4, np.zeros(8, f32), np.zeros(8, f32), thread=1, of_block=1)
    assert "Thread 1 of block 1 reads a[5], writes block[1], reads block[2], writes out[5]." in picture
    assert filled(picture) == ["#2f7fc1", "#c4711b", "#2f7fc1", "#c4711b"]
    assert picture.count("<circle") == 8 and picture.count("<path") == 4


def test_global_memory_alone():
    arrays = np.zeros(8, f32), np.zeros(8, f32)
    picture = shown(turned, 2, 4, *arrays, thread=1, of_block=1, shared=False)
    assert "Thread 1 of block 1 reads a[5], writes out[5]." in picture and "shared" not in picture
    assert filled(picture) == ["#2f7fc1", "#c4711b"] and picture.count("<path") == 2


def test_long_rows_go_on_in_the_next_line():
    """A warp and a row of 40 still fit a phone: 20 elements of 15, 16 threads of 15."""

    def doubled(x, out):
        for k in range(cuda.threadIdx.x, x.shape[1], 32):
            out[0, k] = x[0, k]

    picture = shown(doubled, 1, 32, np.zeros((1, 40), f32), np.zeros((1, 40), f32), thread=17)
    assert "Thread 17 reads x[0, 17], writes out[0, 17]." in picture
    assert float(re.search(r'width="(\d+)"', picture)[1]) < 340
    assert picture.count("<circle") == 32 and picture.count("<rect") == 40 + 40 + 1
    [(x, y)] = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="4.5" fill="currentColor"', picture)
    assert float(x) == 4 + 1.5 * 15, "thread 17 is the second of the second line"
    assert len(set(re.findall(r'<circle cx="[\d.]+" cy="([\d.]+)"', picture))) == 2


def test_several_arrays_are_one_verb():
    picture = shown(outer, 1, (4, 3), np.zeros((3, 1), f32), np.zeros((1, 4), f32), np.zeros((3, 4), f32), thread=6)
    assert "Thread 6 reads a[1, 0] and b[0, 2], writes out[1, 2]." in picture
    assert picture.count("<rect") == 3 + 4 + 12 + 1


def test_a_thread_without_work():
    def first_only(out):
        if cuda.threadIdx.x == 0:
            for i in range(out.size):
                out[i] = f32(1)

    assert "Thread 2 does nothing." in shown(first_only, 1, 4, np.zeros(6, f32), thread=2)
    assert "Thread 0 writes 6 elements of out." in shown(first_only, 1, 4, np.zeros(6, f32))


def test_what_is_not_drawn():
    with pytest.raises(ValueError, match="a has 600 elements; the picture draws at most 512"):
        shown(turned, 150, 4, np.zeros(600, f32), np.zeros(8, f32))
    with pytest.raises(simulator.OutOfBounds, match=r"a\[8\]"):
        shown(turned, 3, 4, np.zeros(8, f32), np.zeros(8, f32))
    with pytest.raises(ValueError, match="three dimensions"):
        shown(turned, 1, (2, 1, 2), np.zeros(8, f32), np.zeros(8, f32))
