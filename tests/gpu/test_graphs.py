"""Stream capture and graphs of the fake driver."""

import pytest

from .fake import missing
from .programs import said

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.fixture(autouse=True)
def same_seed_everywhere():
    """In place of the suite's fixture of that name: nothing is computed here."""


# `step` does x = 2 * x + plus.
STEP = """
STEP = kernel('''
.visible .entry step(.param .u64 x, .param .u32 plus) {
  .reg .b64 %rd<3>; .reg .b32 %r<4>;
  ld.param.u64 %rd1, [x];
  ld.param.u32 %r1, [plus];
  ld.global.u32 %r2, [%rd1];
  mad.lo.s32 %r3, %r2, 2, %r1;
  st.global.u32 [%rd1], %r3;
  ret;
}''', "step")
GLOBAL, LOCAL, RELAXED = 0, 1, 2
x = call("cuMemAlloc", 8)
one, two = (call("cuStreamCreate", 1) for _ in range(2))
event, done = (call("cuEventCreate", 0) for _ in range(2))

def step(stream, plus):
    launch(STEP, 1, stream, np.uint64(int(x)), np.uint32(plus))

def set_x(value):
    call("cuMemsetD32", x, value, 1)
    call("cuCtxSynchronize")

def begin(stream=one, mode=RELAXED):
    call("cuStreamBeginCapture", stream, driver.CUstreamCaptureMode(mode))

def ready(graph):
    return call("cuGraphInstantiate", graph, 0)

def replayed(graph, value):
    set_x(value)
    call("cuGraphLaunch", graph, two)
    call("cuStreamSynchronize", two)
    return int(read(x, 1, np.uint32)[0])
"""


def results(program, **settings):
    return said(STEP + program, **settings).splitlines()


@pytest.mark.parametrize("hold", [0, 1])
def test_what_is_captured_is_done_at_each_launch(hold):
    program = """
set_x(5)
begin()
step(one, 1)
step(one, 3)
call("cuMemcpyDtoDAsync", int(x) + 4, x, 4, one)
call("cuMemsetD8Async", int(x) + 4, 7, 1, one)
print(int(call("cuStreamIsCapturing", one)), int(call("cuStreamIsCapturing", two)), call("cuStreamGetCaptureInfo", one)[-1])
graph = call("cuStreamEndCapture", one)
print(int(read(x, 1, np.uint32)[0]))
nodes = call("cuGraphGetNodes", graph, 9)
print([int(call("cuGraphNodeGetType", node)) for node in nodes[0][:4]], nodes[1])
made = ready(graph)
call("cuGraphDestroy", graph)
call("cuGraphUpload", made, one)
print(replayed(made, 5), replayed(made, 6), int(read(int(x) + 4, 1, np.uint32)[0]))
call("cuGraphExecDestroy", made)
"""
    assert results(program, hold=hold) == ["1 0 1", "5", "[0, 0, 1, 2] 4", "25 29 7"]


FORK = """
begin()
step(one, 1)
call("cuEventRecord", event, one)
call("cuStreamWaitEvent", two, event, 0)
step(two, 10)
{join}
step(one, 100)
{late}
print(fails("cuStreamEndCapture", one) if {fail} else replayed(ready(call("cuStreamEndCapture", one)), 1))
"""
JOIN = 'call("cuEventRecord", done, two); call("cuStreamWaitEvent", one, done, 0)'


def test_streams_join_a_capture_by_events():
    in_order = (2 * (2 * 3 + 10) + 100,)
    assert results(FORK.format(join=JOIN, late="", fail=0), order="reversed") == [str(in_order[0])]
    assert results(FORK.format(join="", late="", fail=1)) == ["STREAM_CAPTURE_UNJOINED"]
    other_order = 2 * (2 * 3 + 100) + 10
    assert results(FORK.format(join="", late=JOIN, fail=0), order="reversed") == [str(other_order)]


FORBIDDEN = {
    'fails("cuStreamSynchronize", one)': "STREAM_CAPTURE_UNSUPPORTED",
    'fails("cuStreamQuery", one)': "STREAM_CAPTURE_UNSUPPORTED",
    'fails("cuCtxSynchronize")': "STREAM_CAPTURE_UNSUPPORTED",
    'fails("cuMemAlloc", 8)': "STREAM_CAPTURE_UNSUPPORTED",
    'fails("cuEventQuery", event)': "STREAM_CAPTURE_UNSUPPORTED",
    'call("cuEventRecord", done, one) or fails("cuEventQuery", done)': "CAPTURED_EVENT",
    'call("cuEventRecord", event, two) or fails("cuStreamWaitEvent", one, event, 0)': "STREAM_CAPTURE_ISOLATION",
}


def test_what_a_capture_forbids():
    lines = "".join(
        f"begin(mode=GLOBAL)\nprint({call})\nprint(fails('cuStreamEndCapture', one))\n" for call in FORBIDDEN
    )
    wanted = [line for error in FORBIDDEN.values() for line in (error, "STREAM_CAPTURE_INVALIDATED")]
    assert results(lines) == wanted


def test_modes():
    program = """
import threading

def in_a_thread(mode):
    found = []
    def work():
        call("cuCtxSetCurrent", call("cuDevicePrimaryCtxRetain", 0))
        call("cuThreadExchangeStreamCaptureMode", driver.CUstreamCaptureMode(mode))
        found.append(fails("cuMemAlloc", 8))
    thread = threading.Thread(target=work)
    thread.start(); thread.join()
    return found[0]

for mode in (GLOBAL, LOCAL, RELAXED):
    begin(mode=mode)
    print([in_a_thread(other) for other in (RELAXED, LOCAL, GLOBAL)], fails("cuMemAlloc", 8), fails("cuStreamEndCapture", one))
print(fails("cuStreamEndCapture", one), fails("cuStreamBeginCapture", 0, driver.CUstreamCaptureMode(0)))
"""
    allowed, void = "no error", "STREAM_CAPTURE_INVALIDATED"
    no = "STREAM_CAPTURE_UNSUPPORTED"
    assert results(program) == [
        f"{[allowed, allowed, no]} {no} {void}",
        f"{[allowed] * 3} {no} {void}",
        f"{[allowed] * 3} {allowed} {allowed}",
        f"ILLEGAL_STATE {no}",
    ]
