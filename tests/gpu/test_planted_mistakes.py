"""The fake GPU finds the mistakes that a chip would punish, or would let pass unseen; and what is right passes."""

import textwrap

import pytest

from . import programs
from .fake import missing

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.fixture(autouse=True)
def same_seed_everywhere():
    """In place of the suite's fixture of that name: nothing is computed here."""


HEAD = """
import ctypes
import numpy as np, readtorch as rt
from numba import cuda
from readtorch.c10.cuda.launch import launch

f32 = np.float32

def wait():
    "Says how the work ended."
    try:
        rt.cuda.synchronize()
        print("no error")
    except RuntimeError as error:
        print(error)
"""


def said(body, **settings):
    """In a process of its own, as a fault ends the device's context."""
    return programs.said(body, HEAD, devices=2, **settings)


ADDRESSES = """
    def k(x):
        x[cuda.grid(1) + {beyond}] = 1

    launch(k, 1, 32, {array})
    wait()
"""


@pytest.mark.parametrize(
    "array, beyond, fault",
    [
        ('rt.ones(32, device="cuda")._array', 0, "no error"),
        ('rt.ones(32, device="cuda")._array', 100_000_000, "illegal address"),
        ('rt.ones(32, device="cuda:1")._array', 0, "memory of another device"),
        ("np.ones(32, f32)", 0, "host memory"),
        ("rt.ones(32).pin_memory()._array", 0, "no error|host memory"),
    ],
    ids=["right", "beyond the segment", "another device's", "the host's", "pinned"],
)
def test_addresses(array, beyond, fault):
    text = said("rt.cuda.init()\n" + textwrap.dedent(ADDRESSES.format(array=array, beyond=beyond)))
    assert any(one in text for one in fault.split("|")), text


def test_the_host_cannot_read_device_memory():
    assert "signal 11" in said('print(rt.ones(9, device="cuda")._array[0])')


def test_fresh_memory_is_not_zero():
    assert said('print(rt.empty(2, device="cuda").tolist())') == "[nan, nan]\n"


@pytest.mark.parametrize("start, fault", [(0, "no error"), (1, "misaligned address")])
def test_four_numbers_from_an_address_that_is_no_multiple_of_16(start, fault):
    text = said(f"""
        from readtorch.aten.native.cuda.memory_access import load4

        def k(x, start, out):
            out[0] = load4(x, start)[0]

        launch(k, 1, 1, rt.ones(9, device="cuda")._array, {start}, rt.ones(1, device="cuda")._array)
        wait()""")
    assert fault in text


BARRIER = """
    def k(x, out):
        s, t = cuda.shared.array(64, f32), cuda.threadIdx.x
        s[t] = x[t]
        {barrier}
        out[t] = s[63 - t]

    x, out = rt.arange(64.0, device="cuda"), rt.zeros(64, device="cuda")
    launch(k, 1, 64, x._array, out._array)
    print("right" if out.tolist() == x.flip(0).tolist() else "wrong")
"""


@pytest.mark.parametrize("order", ["reversed", "shuffled"])
@pytest.mark.parametrize("barrier, result", [("pass", "wrong"), ("cuda.syncthreads()", "right")])
def test_a_barrier(barrier, result, order):
    assert said(BARRIER.format(barrier=barrier), order=order) == result + "\n"


def test_threads_that_wait_for_ever():
    text = said("""
        def k(out):
            t = cuda.threadIdx.x
            v = f32(t)
            if t < 16:
                v = cuda.shfl_xor_sync(0xFFFFFFFF, v, 16)
            else:
                cuda.syncthreads()
            out[t] = v

        launch(k, 1, 32, rt.ones(32, device="cuda")._array)
        wait()""")
    assert "deadlock: 32 of 32 threads" in text


@pytest.mark.parametrize("lanes, fault", [(32, "no error"), (16, "different places")])
def test_a_shuffle_that_half_of_the_lanes_reach(lanes, fault):
    text = said(f"""
        def k(out):
            t = cuda.threadIdx.x
            v = f32(t)
            if t < {lanes}:
                v = cuda.shfl_xor_sync(0xFFFFFFFF, v, 16)
            else:
                v = cuda.shfl_xor_sync(0xFFFFFFFF, v, 8)
            out[t] = v

        launch(k, 1, 32, rt.ones(32, device="cuda")._array)
        wait()""")
    assert fault in text


@pytest.mark.parametrize("waits, result", [("pass", "stale"), ("s.wait_stream(rt.cuda.current_stream())", "fresh")])
def test_a_stream_that_waits_for_another(waits, result):
    text = said(
        f"""
        x = rt.zeros(4, device="cuda")
        rt.cuda.synchronize()
        s = rt.cuda.Stream()
        x.add_(1)
        {waits}
        with rt.cuda.stream(s):
            got = (x * 1).tolist()
        print("fresh" if got == [1, 1, 1, 1] else "stale")""",
        hold=1,
    )
    assert text == result + "\n"


@pytest.mark.parametrize("threads, refused", [(1024, False), (2048, True)])
def test_more_threads_than_a_block_may_have(threads, refused):
    text = said(f"""
        def k(x):
            x[cuda.grid(1) % 9] = 1

        try:
            launch(k, 1, {threads}, rt.ones(9, device="cuda")._array)
        except RuntimeError as error:
            print(type(error).__name__, error)
        wait()""")
    assert ("launch refused" in text and "AcceleratorError" in text) == refused and "no error" in text


def test_an_error_is_there_to_stay():
    text = said("""
        def k(x):
            x[100_000_000] = 1

        x = rt.ones(9, device="cuda")
        launch(k, 1, 1, x._array)
        wait()
        wait()""")
    assert text.count("CUDA error: an illegal memory access was encountered") == 2
