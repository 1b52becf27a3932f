"""What the lanes of a warp do together, on the kernel simulator: masks, `mma`, and no order that nobody made."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import cuda

from readtorch.c10.cuda import simulator

ALL = 0xFFFFFFFF


def lanes(size=32):
    return np.arange(size, dtype=np.float32)


# -------------------------------------------------------------------------------------------------- masks


def both_arms(x):
    """Valid since Volta: the lanes meet, although each half has a shuffle of its own."""
    t = cuda.threadIdx.x
    if t < 16:
        x[t] = cuda.shfl_xor_sync(ALL, x[t], 16)
    else:
        x[t] = cuda.shfl_xor_sync(ALL, x[t], 16)


def neighbours(x):
    t = cuda.threadIdx.x
    x[t] = cuda.shfl_xor_sync(ALL, x[t], 1)


def signed_mask(x):
    t = cuda.threadIdx.x
    x[t] = cuda.shfl_xor_sync(-1 if t % 2 else ALL, x[t], 16)


@pytest.mark.parametrize("kernel", [both_arms, signed_mask])
@pytest.mark.parametrize("order", [None, "reversed", 5])
def test_lanes_meet_wherever_they_are(kernel, order):
    x = lanes()
    simulator.check(kernel, 1, 32, x, order=order)
    assert x.tolist() == (np.arange(32) ^ 16).tolist()


def at_the_barrier(x):
    t = cuda.threadIdx.x
    if t < 16:
        x[t] += cuda.shfl_xor_sync(ALL, x[t], 1)
    cuda.syncthreads()


def another_mask(x):
    t = cuda.threadIdx.x
    x[t] = cuda.shfl_xor_sync(ALL if t < 16 else 0xFFFF0000, x[t], 1)
    cuda.syncthreads()


def another_operation(x):
    t = cuda.threadIdx.x
    if t < 16:
        x[t] = cuda.shfl_xor_sync(ALL, x[t], 1)
    else:
        x[t] = cuda.shfl_down_sync(ALL, x[t], 1)


def one_more_turn(x):
    """Lanes go round the loop as often as their number says, and each turn names all of them."""
    t = cuda.threadIdx.x
    for _ in range(1 + t // 31):
        x[t] += cuda.shfl_xor_sync(ALL, x[t], 0)


def empty_mask(x):
    x[cuda.threadIdx.x] = cuda.ballot_sync(0, True)


def half_a_syncwarp(x):
    t = cuda.threadIdx.x
    if t < 16:
        cuda.syncwarp()
    x[t] = 1


MISTAKES = {
    at_the_barrier: "names lane 16, which waits at syncthreads, line",
    another_mask: "names lane 16, which waits at syncthreads, line",
    another_operation: "names lane 16, which waits at shfl_down_sync with mask 0xffffffff",
    one_more_turn: "names lane 0, which left the kernel without it",
    empty_mask: "leaves out the lane itself, 0",
    half_a_syncwarp: "syncwarp with a mask .* names lane 16, which left the kernel without it",
}


@pytest.mark.parametrize("kernel", MISTAKES, ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("run", [simulator.launch, simulator.check])
def test_lanes_that_do_not_meet(kernel, run):
    with pytest.raises(simulator.InactiveLane, match=MISTAKES[kernel]):
        run(kernel, 1, 32, lanes())


def test_the_rest_of_a_warp_may_be_named():
    """The block ends within the warp: a mask of all lanes is what everybody writes."""
    x = lanes(20)
    simulator.check(neighbours, 1, 20, x)
    assert x.tolist() == [i ^ 1 for i in range(20)]


# ---------------------------------------------------------------------------- no order but by a barrier


def last_steps_of_a_sum(x):
    """As sums were written before Volta: the last warp works without barriers."""
    shared = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    shared[t], shared[t + 32] = x[t], x[t + 32]
    cuda.syncthreads()
    for distance in (32, 16, 8, 4, 2, 1):
        shared[t] += shared[t + distance] if t < distance else np.float32(0)
    x[t] = shared[0] if t == 0 else x[t]


def last_steps_in_order(x):
    shared = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    shared[t], shared[t + 32] = x[t], x[t + 32]
    cuda.syncthreads()
    for distance in (32, 16, 8, 4, 2, 1):
        if t < distance:
            shared[t] += shared[t + distance]
        cuda.syncwarp()
    if t == 0:
        x[0] = shared[0]


def shuffle_as_a_fence(x):
    shared = cuda.shared.array(32, np.float32)
    t = cuda.threadIdx.x
    shared[t] = x[t]
    cuda.shfl_sync(ALL, x[t], 0)
    x[t] = shared[31 - t]


def vote_as_a_fence(x):
    shared = cuda.shared.array(32, np.float32)
    t = cuda.threadIdx.x
    shared[t] = x[t]
    cuda.any_sync(ALL, True)
    x[t] = shared[31 - t]


def mma_as_a_fence(x):
    shared = cuda.shared.array(32, np.float32)
    t = cuda.threadIdx.x
    shared[t] = x[t]
    zero = np.float32(0)
    cuda.mma("m16n8k8.tf32", (zero,) * 4, (zero,) * 2, (zero,) * 4)
    x[t] = shared[31 - t]


@pytest.mark.parametrize("kernel", [last_steps_of_a_sum, shuffle_as_a_fence, vote_as_a_fence, mma_as_a_fence])
def test_a_warp_alone_orders_no_memory(kernel):
    with pytest.raises(simulator.DataRace, match="a race on shared"):
        simulator.check(kernel, 1, 32, lanes(64))


def test_syncwarp_orders_memory():
    x = lanes(64)
    simulator.check(last_steps_in_order, 1, 32, x)
    assert x[0] == np.arange(64).sum()


def syncwarp_in_both_arms(x):
    shared = cuda.shared.array(32, np.float32)
    t = cuda.threadIdx.x
    shared[t] = x[t]
    if t < 16:
        cuda.syncwarp()
    else:
        cuda.syncwarp()
    x[t] = shared[31 - t]


def test_syncwarp_in_two_places_is_one():
    x = lanes()
    simulator.check(syncwarp_in_both_arms, 1, 32, x)
    assert x.tolist() == list(range(31, -1, -1))


# ----------------------------------------------------------------------------------------------------- mma


def by_tf32(a, b, c, d):
    """The fragments of m16n8k8, as the PTX ISA's tables have them."""
    lane = cuda.threadIdx.x
    group, t = lane >> 2, lane % 4
    d[group, 2 * t], d[group, 2 * t + 1], d[group + 8, 2 * t], d[group + 8, 2 * t + 1] = cuda.mma(
        "m16n8k8.tf32",
        (a[group, t], a[group + 8, t], a[group, t + 4], a[group + 8, t + 4]),
        (b[t, group], b[t + 4, group]),
        (c[group, 2 * t], c[group, 2 * t + 1], c[group + 8, 2 * t], c[group + 8, 2 * t + 1]),
    )


def by_halves(kind, a, b, c, d):
    """The fragments of m16n8k16; `a` and `b` are the bits of 16-bit numbers."""
    lane = cuda.threadIdx.x
    group, t = lane >> 2, lane % 4
    of_a = cuda.local.array(8, np.uint32)
    for i in range(8):
        row = group if 0 <= i < 2 or 4 <= i < 6 else group + 8
        of_a[i] = a[row, t * 2 + (i & 1) + (8 if i >= 4 else 0)]
    of_b = cuda.local.array(4, np.uint32)
    for i in range(4):
        of_b[i] = b[t * 2 + (i & 1) + (8 if i >= 2 else 0), group]
    of_c = cuda.local.array(4, np.float32)
    for i in range(4):
        of_c[i] = c[group if i < 2 else group + 8, t * 2 + (i & 1)]
    found = cuda.mma(
        kind,
        (of_a[0] | of_a[1] << 16, of_a[2] | of_a[3] << 16, of_a[4] | of_a[5] << 16, of_a[6] | of_a[7] << 16),
        (of_b[0] | of_b[1] << 16, of_b[2] | of_b[3] << 16),
        (of_c[0], of_c[1], of_c[2], of_c[3]),
    )
    for i in range(4):
        d[group if i < 2 else group + 8, t * 2 + (i & 1)] = found[i]


def rounded_to_tf32(x):
    return (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


seeds = st.integers(0, 2**32 - 1)


def matrices(seed, k):
    numbers = np.random.default_rng(seed)
    return [numbers.standard_normal(shape).astype(np.float32) for shape in ((16, k), (k, 8), (16, 8))]


@settings(max_examples=15)
@given(seeds)
def test_mma_of_tf32(seed):
    a, b, c = matrices(seed, 8)
    d = np.zeros((16, 8), np.float32)
    simulator.check(by_tf32, 1, 32, a, b, c, d)
    exact = rounded_to_tf32(a).astype(np.float64) @ rounded_to_tf32(b) + c
    np.testing.assert_array_equal(d, exact.astype(np.float32))


@settings(max_examples=15)
@given(seeds, st.sampled_from([("m16n8k16.bf16", ml_dtypes.bfloat16), ("m16n8k16.f16", np.float16)]))
def test_mma_of_halves(seed, kind_and_dtype):
    kind, dtype = kind_and_dtype
    a, b, c = matrices(seed, 16)
    a, b, d = a.astype(dtype), b.astype(dtype), np.zeros((16, 8), np.float32)
    simulator.check(by_halves, 1, 32, kind, a.view(np.uint16), b.view(np.uint16), c, d)
    exact = a.astype(np.float64) @ b.astype(np.float64) + c
    np.testing.assert_allclose(d, exact, rtol=2**-22, atol=2**-22)


def product(x):
    """A device function, so that the place of the mma itself is the same for all who call it."""
    zero = np.float32(0)
    return cuda.mma("m16n8k8.tf32", (x, x, x, x), (x, x), (zero, zero, zero, zero))[0]


def mma_of_half_a_warp(x):
    t = cuda.threadIdx.x
    if t < 16:
        x[t] = product(x[t])


def mma_in_both_arms(x):
    t = cuda.threadIdx.x
    if t < 16:
        x[t] = product(x[t])
    else:
        x[t] = product(x[t])


def mma_of_all(x):
    t = cuda.threadIdx.x
    x[t] = product(x[t])


@pytest.mark.parametrize(
    "kernel, threads, message",
    [
        (mma_of_half_a_warp, 32, "names lane 16, which left the kernel"),
        (mma_in_both_arms, 32, r"names lane 16, which waits at mma.m16n8k8.tf32 .*mma_in_both_arms: x\[t\] = product"),
        (mma_of_all, 40, "needs 32 lanes, and this warp has 8"),
    ],
)
def test_mma_is_for_a_whole_warp_at_one_place(kernel, threads, message):
    with pytest.raises(simulator.InactiveLane, match=message):
        simulator.launch(kernel, 1, threads, lanes(64))


def test_mma_may_come_again():
    x = np.ones(64, np.float32)
    simulator.check(mma_of_all, 1, 64, x)
    assert x.tolist() == [8.0] * 64
