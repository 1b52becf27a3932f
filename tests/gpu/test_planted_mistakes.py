"""The fake GPU finds the mistakes that a chip would punish, or would let pass unseen; and what is right passes.

A fault ends its device's context, so each program has a device of its own; all that share the settings are one process.
"""

import functools
import textwrap

import pytest

from .fake import missing
from .programs import said

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.fixture(autouse=True)
def same_seed_everywhere():
    """In place of the suite's fixture of that name: nothing is computed here."""


HEAD = """
import numpy as np, readtorch as rt
from numba import cuda
from readtorch.aten.native.cuda.memory_access import load4
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

WRITE = """
def k(x):
    x[cuda.grid(1) + {beyond}] = 1
launch(k, 1, 32, {array})
wait()
"""
VECTOR = """
def k(x, start, out):
    out[0] = load4(x, start)[0]
launch(k, 1, 1, rt.ones(9, device="cuda")._array, {start}, rt.ones(1, device="cuda")._array)
wait()
"""
SHUFFLE = """
def k(out):
    t = cuda.threadIdx.x
    v = f32(t)
    if t < {lanes}:
        v = cuda.shfl_xor_sync(0xFFFFFFFF, v, 16)
    else:
        v = cuda.shfl_xor_sync(0xFFFFFFFF, v, 8)
    out[t] = v
launch(k, 1, 32, rt.ones(32, device="cuda")._array)
wait()
"""
FOR_EVER = """
def k(out):
    t = cuda.threadIdx.x
    v = f32(t)
    if t < 16:
        v = cuda.shfl_xor_sync(0xFFFFFFFF, v, 16)
    else:
        cuda.syncthreads()
    out[t] = v
launch(k, 1, 32, rt.ones(32, device="cuda")._array)
wait()
wait()
"""
THREADS = """
def k(x):
    x[cuda.grid(1) % 9] = 1
try:
    launch(k, 1, {threads}, rt.ones(9, device="cuda")._array)
except RuntimeError as error:
    print(type(error).__name__, error)
wait()
"""
HERE, OTHER, HOST = 'rt.ones(32, device="cuda")._array', 'rt.ones(32, device="cuda:0")._array', "np.ones(32, f32)"

# A program, and what it says.
IN_ORDER = {
    "fresh memory": ('print(rt.empty(2, device="cuda").tolist())', "[nan, nan]"),
    "an address of one's own": (WRITE.format(array=HERE, beyond=0), "no error"),
    "beyond the segment": (WRITE.format(array=HERE, beyond=100_000_000), "illegal address"),
    "another device's memory": (WRITE.format(array=OTHER, beyond=0), "memory of another device"),
    "the host's memory": (WRITE.format(array=HOST, beyond=0), "host memory"),
    "four numbers from a multiple of 16": (VECTOR.format(start=0), "no error"),
    "... and from no such address": (VECTOR.format(start=1), "misaligned address"),
    "all lanes shuffle": (SHUFFLE.format(lanes=32), "no error"),
    "half of them shuffle otherwise": (SHUFFLE.format(lanes=16), "lanes of a warp meet at different places"),
    "who waits for ever": (FOR_EVER, "deadlock: 32 of 32 threads"),
    "as many threads as there may be": (THREADS.format(threads=1024), "no error"),
    "more threads": (THREADS.format(threads=2048), "AcceleratorError CUDA error: invalid configuration argument"),
}

BARRIER = """
def k(x, out):
    s, t = cuda.shared.array(64, f32), cuda.threadIdx.x
    s[t] = x[t]
    {barrier}
    out[t] = s[63 - t]
x, out = rt.arange(64.0, device="cuda"), rt.zeros(64, device="cuda")
launch(k, 1, 64, x._array, out._array)
print("right" if out.tolist() == x.tolist()[::-1] else "wrong")
"""
BARRIERS = {
    "no barrier": (BARRIER.format(barrier="pass"), "wrong"),
    "a barrier": (BARRIER.format(barrier="cuda.syncthreads()"), "right"),
}

WAIT = """
x = rt.zeros(4, device="cuda")
rt.cuda.synchronize()
s = rt.cuda.Stream()
x.add_(1)
{wait}
with rt.cuda.stream(s):
    got = (x * 1).tolist()
print("fresh" if got == [1, 1, 1, 1] else "stale")
"""
WAITS = {
    "a stream that does not wait": (WAIT.format(wait="pass"), "stale"),
    "a stream that waits": (WAIT.format(wait="s.wait_stream(rt.cuda.current_stream())"), "fresh"),
}
SETTINGS = {"in order": {}, "reversed": {"order": "reversed"}, "shuffled": {"order": "shuffled"}, "held": {"hold": 1}}
PROGRAMS = {"in order": IN_ORDER, "reversed": BARRIERS, "shuffled": BARRIERS, "held": WAITS}


@functools.cache
def results(settings):
    """name -> what its program said"""
    faults, text, device = ("no error", "right", "wrong", "stale", "fresh", "[nan"), "", 0
    for name, (program, end) in PROGRAMS[settings].items():
        own = not end.startswith(faults) and "AcceleratorError" not in end
        device += own
        lines = textwrap.indent(program, "    ")
        text += f"\nprint('===', {name!r}, flush=True)\nwith rt.cuda.device({device if own else 0}):{lines}\n"
    found = said(text, HEAD, devices=device + 1, **SETTINGS[settings])
    parts = [part.partition("\n") for part in found.split("=== ")[1:]]
    return {name: rest for name, _, rest in parts}


@pytest.mark.parametrize("settings, name", [(settings, name) for settings in PROGRAMS for name in PROGRAMS[settings]])
def test_program(settings, name):
    assert PROGRAMS[settings][name][1] in results(settings)[name]


def test_an_error_is_there_to_stay():
    assert results("in order")["who waits for ever"].count("CUDA error: the launch timed out") == 2


def test_the_host_cannot_read_device_memory():
    program = 'x = rt.empty(9, device="cuda")._array\nprint("there", flush=True)\nprint(x[0])'
    assert said(program, HEAD) == "there\nsignal 11"
