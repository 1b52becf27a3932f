"""The twelve puzzles of the chapter "CUDA kernels with numba": what PyTorch says, the check, and the pictures.

Each has two more forms here. Pictures are drawn of the first, which is right, and not the solution that the chapter shows; the
other ones are wrong, or miss what the puzzle is about. `try_the_checks` says whether the checks tell them apart.
"""

import collections
import contextlib
import io
import itertools
import math

import numpy as np
import torch
from IPython.display import HTML
from numba import cuda

from readtorch import viz
from readtorch.c10.cuda import simulator

ALL = 0xFFFFFFFF
f32 = np.float32


def device(array):
    """A copy that begins at a multiple of 256, as memory of a GPU does."""
    room = np.empty(array.nbytes + 256, np.uint8)
    start = -room.ctypes.data % 256
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def numbers(*shape, seed=0):
    return device(np.random.default_rng(seed).integers(-9, 10, shape).astype(f32))


def scans(a):
    return a.view(-1, 8).cumsum(1).flatten()


def pooled(a):
    return torch.nn.functional.pad(a, (2, 0)).unfold(0, 3, 1).sum(1)


def convolved(a, b):
    return torch.nn.functional.pad(a, (0, 3)).unfold(0, 4, 1) @ b


def ten_more(a):
    return a + 10


def plus(a, b):
    return a + b


# What PyTorch says, the launches (grid, block, inputs), and how often a thread
# may read and write global memory.
PUZZLES = {
    "map": (ten_more, [(1, 4, numbers(4))], (1, 1)),
    "guard": (ten_more, [(1, 8, numbers(5)), (1, 8, numbers(8)), (1, 8, numbers(1))], (1, 1)),
    "map2d": (ten_more, [(1, (3, 3), numbers(2, 3)), (1, (3, 3), numbers(3, 2)), (1, (3, 3), numbers(1, 1))], (1, 1)),
    "broadcast": (plus, [(1, (4, 4), numbers(3, 1), numbers(1, 4)), (1, (4, 4), numbers(4, 1), numbers(1, 2))], (2, 1)),
    "blocks": (ten_more, [(3, 4, numbers(10)), (1, 4, numbers(3)), (4, 4, numbers(16))], (1, 1)),
    "reverse": (lambda a: a.view(-1, 8).flip(1).flatten(), [(2, 8, numbers(16)), (1, 8, numbers(8))], (1, 1)),
    "pooling": (pooled, [(1, 8, numbers(8))], (1, 1)),
    "dot": (lambda a, b: (a * b).sum()[None], [(1, 8, numbers(8), numbers(8, seed=1))], (2, 1)),
    "convolution": (
        convolved,
        [(2, 8, numbers(15), numbers(4)), (2, 8, numbers(16), numbers(4)), (2, 8, numbers(9), numbers(4))],
        (3, 1),
    ),
    "scan": (scans, [(2, 8, numbers(16)), (1, 8, numbers(8))], (1, 1)),
    "matmul": (
        torch.matmul,
        [
            ((2, 2), (4, 4), numbers(5, 7), numbers(7, 6)),
            ((1, 1), (4, 4), numbers(4, 4), numbers(4, 4)),
            ((1, 2), (4, 4), numbers(8, 3), numbers(3, 2)),
        ],
        lambda a, b: (2 * -(-a.shape[1] // 4), 1),
    ),
    "softmax": (
        lambda x: x.softmax(1),
        [(1, 32, numbers(1, 40)), (2, 32, numbers(2, 40)), (1, 32, numbers(1, 7)), (3, 32, numbers(3, 32) * f32(20))],
        lambda x: (3 * -(-x.shape[1] // 32), -(-x.shape[1] // 32)),
    ),
}


def at(index):
    return ", ".join(map(str, index))


def try_out(name, kernel):
    """The kernel's results are PyTorch's, in any order of the threads, without races, within the budget."""
    expected, launches, budget = PUZZLES[name]
    for (grid, block, *inputs), order in itertools.product(launches, (None, "reversed", 7)):
        wanted = expected(*map(torch.from_numpy, inputs)).numpy()
        out = device(np.full_like(wanted, np.nan))
        simulator.check(kernel, grid, block, *inputs, out, order=order)
        wrong = np.argwhere(~np.isclose(out, wanted, rtol=1e-4, atol=1e-5))
        if len(wrong):
            index = tuple(wrong[0])
            raise AssertionError(
                f"out[{at(index)}] is {out[index]}, and PyTorch says {wanted[index]} (grid {grid}, block {block})"
            )
    for grid, block, *inputs in launches:
        recording = simulator.record(kernel, grid, block, *inputs, out_for(expected, inputs))
        keep_to(budget(*inputs) if callable(budget) else budget, recording)
        in_shared = [a for a in recording.accesses if a.space == "shared"]
        place = {a.thread[:2]: a.address for a in recording.accesses if (a.space, a.kind) == ("global", "write")}
        side_by_side = all(place[x, y] == place[x - 1, y] + 4 for x, y in place if (x - 1, y) in place)
        assert name not in ("map2d", "broadcast") or side_by_side, (
            "neighbours in x write neighbours in memory: x is the column"
        )
        assert name != "softmax" or not in_shared, "use shuffles, not shared memory"
        assert name != "reverse" or in_shared, "each thread at its own place: hand over in shared memory"
        read = collections.Counter((a.block, a.thread) for a in in_shared if a.kind == "read")
        assert name != "scan" or max(read.values(), default=0) <= 7, "seven readings of shared memory are enough"
    print("right")


def out_for(expected, inputs):
    return device(np.zeros_like(expected(*map(torch.from_numpy, inputs)).numpy()))


def keep_to(budget, recording):
    counts = collections.Counter((a.block, a.thread, a.kind) for a in recording.accesses if a.space == "global")
    for (block, thread, kind), count in counts.items():
        most = dict(zip(("read", "write", "atomic"), (*budget, 0)))[kind]
        assert count <= most, (
            f"thread {thread} of block {block}: {count} accesses of global memory to {kind}, and {most} are enough"
        )


def drawn(name, **which):
    expected, launches, _ = PUZZLES[name]
    grid, block, *inputs = launches[0]
    return viz.kernel_picture(ANOTHER_WAY[name], grid, block, *inputs, out_for(expected, inputs), **which)._repr_html_()


def picture(name, **which):
    """Global memory; where the kernel uses shared memory, that is a hint, folded."""
    apart, whole = drawn(name, shared=False, **which), drawn(name, **which)
    hint = f"<details><summary>A hint: shared memory, too</summary>{whole}</details>"
    return HTML(apart if apart == whole else apart + hint)


# ---- another right form of each


def map_another(a, out):
    out[cuda.grid(1)] = f32(10) + a[cuda.grid(1)]


def guard_another(a, out):
    if cuda.threadIdx.x >= out.size:
        return
    out[cuda.threadIdx.x] = a[cuda.threadIdx.x] + f32(10)


def map2d_another(a, out):
    x, y = cuda.grid(2)
    for i in range(y, out.shape[0], cuda.blockDim.y):
        for j in range(x, out.shape[1], cuda.blockDim.x):
            out[i, j] = a[i, j] + f32(10)


def broadcast_another(a, b, out):
    x, y = cuda.grid(2)
    if max(x - out.shape[1], y - out.shape[0]) < 0:
        out[y, x] = b[0, x] + a[y, 0]


def blocks_another(a, out):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        out[i] = a[i] + f32(10)


def reverse_another(a, out):
    turned = cuda.shared.array(8, f32)
    t = cuda.threadIdx.x
    turned[7 - t] = a[cuda.grid(1)]
    cuda.syncthreads()
    out[cuda.grid(1)] = turned[t]


def pooling_another(a, out):
    padded = cuda.shared.array(10, f32)
    t = cuda.threadIdx.x
    if t < 2:
        padded[t] = f32(0)
    padded[t + 2] = a[t]
    cuda.syncthreads()
    out[t] = padded[t] + padded[t + 1] + padded[t + 2]


def dot_another(a, b, out):
    block = cuda.shared.array(8, f32)
    t = cuda.threadIdx.x
    block[t] = a[t] * b[t]
    cuda.syncthreads()
    if t == 0:
        total = f32(0)
        for k in range(8):
            total += block[k]
        out[0] = total


def convolution_another(a, b, out):
    block, taps = cuda.shared.array(11, f32), cuda.shared.array(4, f32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    for k in range(t, 11, 8):
        j = cuda.blockIdx.x * 8 + k
        block[k] = a[j] if j < a.size else f32(0)
    if t < 4:
        taps[t] = b[t]
    cuda.syncthreads()
    if i < out.size:
        out[i] = block[t] * taps[0] + block[t + 1] * taps[1] + block[t + 2] * taps[2] + block[t + 3] * taps[3]


def scan_another(a, out):
    sums = cuda.shared.array((4, 8), f32)
    t = cuda.threadIdx.x
    sums[0, t] = a[cuda.grid(1)]
    for k in range(3):
        cuda.syncthreads()
        sums[k + 1, t] = sums[k, t] + (sums[k, t - (1 << k)] if t >= 1 << k else f32(0))
    out[cuda.grid(1)] = sums[3, t]


def matmul_another(a, b, out):
    tiles = cuda.shared.array((2, 4, 4), f32)
    column, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = f32(0)
    for k in range(0, a.shape[1], 4):
        tiles[0, y, x] = a[row, k + x] if row < a.shape[0] and k + x < a.shape[1] else f32(0)
        tiles[1, y, x] = b[k + y, column] if k + y < b.shape[0] and column < b.shape[1] else f32(0)
        cuda.syncthreads()
        for j in range(4):
            total += tiles[0, y, j] * tiles[1, j, x]
        cuda.syncthreads()
    if row < out.shape[0] and column < out.shape[1]:
        out[row, column] = total


def softmax_another(x, out):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    most, total = f32(-math.inf), f32(0)
    for k in range(lane, x.shape[1], 32):  # one pass: the sum is rescaled when a larger number comes
        value = x[row, k]
        larger = max(most, value)
        total = total * math.exp(most - larger) + math.exp(value - larger)
        most = larger
    for distance in (16, 8, 4, 2, 1):
        other = cuda.shfl_xor_sync(ALL, most, distance)
        part = cuda.shfl_xor_sync(ALL, total, distance)
        larger = max(most, other)
        if larger > -math.inf:
            total = total * math.exp(most - larger) + part * math.exp(other - larger)
            most = larger
    for k in range(lane, x.shape[1], 32):
        out[row, k] = math.exp(x[row, k] - most) / total


ANOTHER_WAY = {name: globals()[name + "_another"] for name in PUZZLES}


# ---- wrong ones


def wrong_map(a, out):
    out[cuda.threadIdx.x] = a[cuda.threadIdx.x] - f32(10)


def wrong_map2d(a, out):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if x < a.shape[0] and y < a.shape[0]:
        out[y, x] = a[y, x] + f32(10)


def swapped_map2d(a, out):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if x < a.shape[0] and y < a.shape[1]:
        out[x, y] = a[x, y] + f32(10)


def swapped_broadcast(a, b, out):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if x < out.shape[0] and y < out.shape[1]:
        out[x, y] = a[x, 0] + b[0, y]


def flat_map2d(a, out):
    t = cuda.threadIdx.x + cuda.blockDim.x * cuda.threadIdx.y
    if t < a.size:
        out[t // a.shape[1], t % a.shape[1]] = a[t // a.shape[1], t % a.shape[1]] + f32(10)


def wrong_broadcast(a, b, out):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if y < a.shape[0] and x < b.shape[1]:
        out[y, x] = a[y, 0] + b[0, y if y < b.shape[1] else 0]


def wrong_blocks(a, out):
    if cuda.threadIdx.x < a.size:
        out[cuda.threadIdx.x] = a[cuda.threadIdx.x] + f32(10)


def wrong_reverse(a, out):
    block = cuda.shared.array(8, f32)
    block[cuda.threadIdx.x] = a[cuda.grid(1)]
    out[cuda.grid(1)] = block[7 - cuda.threadIdx.x]


def wrong_pooling(a, out):
    t = cuda.threadIdx.x
    total = a[t]
    for k in range(1, 3):
        if t >= k:
            total += a[t - k]
    out[t] = total


def wrong_dot(a, b, out):
    cuda.atomic.add(out, 0, a[cuda.threadIdx.x] * b[cuda.threadIdx.x])


def wrong_convolution(a, b, out):
    i, total = cuda.grid(1), f32(0)
    if i < a.size:
        for k in range(4):
            if i + k < a.size:
                total += a[i + k] * b[k]
        out[i] = total


def wrong_scan(a, out):
    block = cuda.shared.array(8, f32)
    t = cuda.threadIdx.x
    block[t] = a[cuda.grid(1)]
    for step in (1, 2, 4):
        cuda.syncthreads()
        if t >= step:
            block[t] += block[t - step]
    out[cuda.grid(1)] = block[t]


def wrong_matmul(a, b, out):
    column, row = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        total = f32(0)
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, column]
        out[row, column] = total


def wrong_softmax(x, out):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    total = f32(0)
    for k in range(lane, x.shape[1], 32):
        total += math.exp(x[row, k])
    for distance in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(ALL, total, distance)
    for k in range(lane, x.shape[1], 32):
        out[row, k] = math.exp(x[row, k]) / total


def serial_softmax(x, out):
    row = cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        most, total = f32(-math.inf), f32(0)
        for k in range(x.shape[1]):
            most = max(most, x[row, k])
        for k in range(x.shape[1]):
            total += math.exp(x[row, k] - most)
        for k in range(x.shape[1]):
            out[row, k] = math.exp(x[row, k] - most) / total


def shared_softmax(x, out):
    shared = cuda.shared.array(32, f32)
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    shared[lane] = f32(-math.inf)
    for k in range(lane, x.shape[1], 32):
        shared[lane] = max(shared[lane], x[row, k])
    cuda.syncthreads()
    most = shared[0]
    for k in range(1, 32):
        most = max(most, shared[k])
    cuda.syncthreads()
    shared[lane] = f32(0)
    for k in range(lane, x.shape[1], 32):
        shared[lane] += math.exp(x[row, k] - most)
    cuda.syncthreads()
    total = f32(0)
    for k in range(32):
        total += shared[k]
    for k in range(lane, x.shape[1], 32):
        out[row, k] = math.exp(x[row, k] - most) / total


def serial_scan(a, out):
    block = cuda.shared.array(8, f32)
    t = cuda.threadIdx.x
    block[t] = a[cuda.grid(1)]
    cuda.syncthreads()
    total = f32(0)
    for k in range(t + 1):
        total += block[k]
    out[cuda.grid(1)] = total


def try_the_checks():
    """Each check takes another right kernel, and no wrong one."""
    for name, another in ANOTHER_WAY.items():
        accepted(name, another)
        refused(name, globals().get("wrong_" + name, wrong_map))
    accepted("map2d", flat_map2d)  # neighbours in x are neighbours in memory, too
    for name, another in [
        ("scan", serial_scan),
        ("softmax", serial_softmax),
        ("softmax", shared_softmax),
        ("map2d", swapped_map2d),
        ("broadcast", swapped_broadcast),
    ]:
        refused(name, another)


def accepted(name, kernel):
    with contextlib.redirect_stdout(io.StringIO()):
        try_out(name, kernel)


def refused(name, kernel):
    try:
        accepted(name, kernel)
    except (AssertionError, simulator.SimulatorError):
        return
    raise RuntimeError(f"the check of {name} takes {kernel.__name__}")
