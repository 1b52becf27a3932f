"""Kernels for the simulator's tests, plain functions as numba compiles them; the first few without a mistake,
so that numba's own simulator can run them too."""

import math

import numpy as np
from numba import cuda

TILE = 16
FULL = 0xFFFFFFFF
WEIGHTS = np.array([0.25, 0.5, 0.25], np.float32)


def block_sum(x, out):
    """One block of 256 threads sums 256 elements."""
    shared = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    shared[t] = x[i] if i < x.size else np.float32(0)
    cuda.syncthreads()
    step = 128
    while step > 0:
        if t < step:
            shared[t] += shared[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = shared[0]


def tiled_matmul(a, b, c):
    """Blocks of 16×16 threads; sizes are multiples of 16."""
    tile_a = cuda.shared.array((TILE, TILE), np.float32)
    tile_b = cuda.shared.array((TILE, TILE), np.float32)
    column, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    for k in range(0, a.shape[1], TILE):
        tile_a[y, x] = a[row, k + x]
        tile_b[y, x] = b[k + y, column]
        cuda.syncthreads()
        for j in range(TILE):
            total += tile_a[y, j] * tile_b[j, x]
        cuda.syncthreads()
    c[row, column] = total


def histogram(x, counts):
    """Counts in shared memory first; a grid-stride loop."""
    local = cuda.shared.array(8, np.int32)
    if cuda.threadIdx.x < 8:
        local[cuda.threadIdx.x] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(local, x[i], 1)
    cuda.syncthreads()
    if cuda.threadIdx.x < 8:
        cuda.atomic.add(counts, cuda.threadIdx.x, local[cuda.threadIdx.x])


def blur(x, out):
    """A constant table, a local array, and a view of a row."""
    weights = cuda.const.array_like(WEIGHTS)
    window = cuda.local.array(3, np.float32)
    i = cuda.grid(1)
    row = x[cuda.blockIdx.y]
    if i < out.shape[1]:
        for k in range(3):
            window[k] = row[i + k]
        total = np.float32(0)
        for k in range(3):
            total += weights[k] * window[k]
        out[cuda.blockIdx.y, i] = total


def softplus(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = math.log1p(math.exp(-math.fabs(x[i]))) + max(x[i], np.float32(0))


def counted_barriers(x, out):
    t = cuda.threadIdx.x
    out[0, t] = cuda.syncthreads_count(x[t] > 0)
    out[1, t] = cuda.syncthreads_and(x[t] > 0)
    out[2, t] = cuda.syncthreads_or(x[t] > 0)


def bits(x, out):
    i = cuda.grid(1)
    out[i, 0] = cuda.popc(x[i])
    out[i, 1] = cuda.clz(x[i])
    out[i, 2] = cuda.ffs(x[i])
    out[i, 3] = cuda.brev(x[i])


# ------------------------------------------------------------------ what numba's simulator cannot run: warps


def lanes_sum(value):
    """A device function: the sum of a warp's values, in every lane."""
    for distance in (16, 8, 4, 2, 1):
        value += cuda.shfl_xor_sync(FULL, value, distance)
    return value


def warp_sums(x, out):
    i = cuda.grid(1)
    total = lanes_sum(x[i])
    if cuda.laneid == 0:
        out[i // 32] = total


def shuffles(x, out):
    t = cuda.threadIdx.x
    out[0, t] = cuda.shfl_sync(FULL, x[t], 5)
    out[1, t] = cuda.shfl_up_sync(FULL, x[t], 3)
    out[2, t] = cuda.shfl_down_sync(FULL, x[t], 3)
    out[3, t] = cuda.shfl_xor_sync(FULL, x[t], 6)
    out[4, t] = cuda.shfl_down_sync(FULL, x[t], 3, 8)


def votes(x, out):
    t = cuda.threadIdx.x
    out[0, t] = cuda.ballot_sync(FULL, x[t] > 0)
    out[1, t] = cuda.any_sync(FULL, x[t] > 100)
    out[2, t] = cuda.all_sync(FULL, x[t] > -100)
    out[3, t] = cuda.match_any_sync(FULL, x[t] % 3)
    out[4, t] = cuda.match_all_sync(FULL, x[t])[1]
    out[5, t] = cuda.eq_sync(FULL, x[t] > 0)
    if t % 4 == 0:
        out[6, t] = cuda.activemask()


def whole_grid(x, out):
    """Two steps with a barrier of all blocks between."""
    i = cuda.grid(1)
    cuda.atomic.add(x, 0, 1)
    cuda.cg.this_grid().sync()
    out[i] = x[0]


def locked(lock, counter):
    """A spin lock: every thread adds one."""
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    counter[0] += 1
    cuda.atomic.exch(lock, 0, 0)


def dynamic(x, out):
    """All of the dynamic shared memory, reversed within the block."""
    memory = cuda.shared.array(0, np.float32)
    t = cuda.threadIdx.x
    memory[t] = x[t]
    cuda.syncthreads()
    out[t] = memory[cuda.blockDim.x - 1 - t]


# ------------------------------------------------------------------------------------------ planted mistakes


def missing_barrier(x, out):
    shared = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    shared[t] = x[t]
    out[t] = shared[63 - t]


def missing_syncwarp(x, out):
    shared = cuda.shared.array(32, np.float32)
    t = cuda.threadIdx.x
    shared[t] = x[t]
    out[t] = shared[31 - t]


def with_syncwarp(x, out):
    shared = cuda.shared.array(32, np.float32)
    t = cuda.threadIdx.x
    shared[t] = x[t]
    cuda.syncwarp()
    out[t] = shared[31 - t]


def half_syncwarp(x, out):
    """The lanes of each half wait for each other, and read from the other half."""
    shared = cuda.shared.array(32, np.float32)
    t = cuda.threadIdx.x
    shared[t] = x[t]
    if t < 16:
        cuda.syncwarp(0x0000FFFF)
    else:
        cuda.syncwarp(0xFFFF0000)
    out[t] = shared[31 - t]


def blocks_write_one(x):
    x[0] = cuda.blockIdx.x


def blocks_add_to_one(x):
    cuda.atomic.add(x, 0, 1)


def atomic_and_plain(x):
    if cuda.grid(1) == 0:
        x[0] = 1
    else:
        cuda.atomic.add(x, 0, 1)


def past_the_end(x, out):
    i = cuda.grid(1)
    out[i] = x[i]


def before_the_beginning(x, out):
    i = cuda.grid(1)
    out[i] = x[i - 1]


def one_thread_leaves(x):
    if cuda.threadIdx.x == 7:
        return
    cuda.syncthreads()


def two_barriers(x):
    if cuda.threadIdx.x < 7:
        cuda.syncthreads()
    else:
        cuda.syncthreads()


def lane_absent(x):
    t = cuda.threadIdx.x
    x[t] = cuda.shfl_down_sync(FULL, x[t], 4)


def half_a_warp(x):
    """The partner of each lane is there, but the mask names lanes that never come."""
    t = cuda.threadIdx.x
    if t < 16:
        x[t] += cuda.shfl_xor_sync(FULL, x[t], 1)


def half_a_vote(x):
    t = cuda.threadIdx.x
    if t % 2:
        x[t] = cuda.ballot_sync(FULL, x[t] > 0)


def lane_outside_mask(x):
    t = cuda.threadIdx.x
    if t < 16:
        x[t] = cuda.shfl_xor_sync(0xFFFF, x[t], 16)


def divides(x):
    x[0] = 1 // (cuda.threadIdx.x - 3)


def column_of_shared(x, out):
    """Every lane reads the same bank: 32 turns. The padded array has none of it."""
    plain = cuda.shared.array((32, 32), np.float32)
    padded = cuda.shared.array((32, 33), np.float32)
    t = cuda.threadIdx.x
    for i in range(32):
        plain[i, t] = x[i, t]
        padded[i, t] = x[i, t]
    cuda.syncthreads()
    out[t] = plain[t, 0] + padded[t, 0]


def strided_copy(x, out):
    t = cuda.threadIdx.x
    out[t] = x[8 * t]


def several_in_one_line(out):
    a, b = cuda.shared.array(4, np.float32), cuda.shared.array(4, np.float32)
    c, d, e, f = 1, cuda.shared.array(4, np.float32), 2, cuda.shared.array(4, np.float32)
    a[0] = b[0] = d[0] = f[0] = c + e
    out[0] = a[0]
