"""PTX made into C: single instructions and what kernels may do, on the fake GPU."""

import pytest

from .fake import missing
from .programs import said

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.fixture(autouse=True)
def same_seed_everywhere():
    """In place of the suite's fixture of that name: nothing is computed here."""


ASSERT = """
ASSERT = kernel('''
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e) .attribute(.unified(1, 1));
.global .align 1 .b8 message[6] = {105, 32, 60, 32, 51};
.global .align 1 .b8 file[4] = {97, 46, 99};
.global .align 1 .b8 function[2] = {107};
.visible .entry k(.param .u32 size) {
  .reg .b64 %rd<8>; .reg .b32 %r<4>; .reg .pred %p<2>;
  ld.param.u32 %r1, [size];
  mov.u32 %r2, %tid.x;
  setp.lt.s32 %p1, %r2, %r1;
  @%p1 bra $fine;
  mov.u64 %rd1, message; cvta.global.u64 %rd2, %rd1;
  mov.u64 %rd3, file; cvta.global.u64 %rd4, %rd3;
  mov.u64 %rd5, function; cvta.global.u64 %rd6, %rd5;
  {
  .param .b64 param0; st.param.b64 [param0+0], %rd2;
  .param .b64 param1; st.param.b64 [param1+0], %rd4;
  .param .b32 param2; st.param.b32 [param2+0], 12;
  .param .b64 param3; st.param.b64 [param3+0], %rd6;
  .param .b64 param4; st.param.b64 [param4+0], 1;
  call.uni __assertfail, (param0, param1, param2, param3, param4);
  }
$fine:
  ret;
}'''.replace(" .attribute(.unified(1, 1))", ""), "k")
"""


def test_assertions():
    text = said(
        ASSERT
        + """
for size in (4, 3):
    launch(ASSERT, 4, 0, np.int32(size))
    print(fails("cuCtxSynchronize"), flush=True)
print(fails("cuMemAlloc", 8))
"""
    )
    assert "a.c:12: k: block: [0,0,0], thread: [3,0,0] Assertion `i < 3` failed." in text
    assert [line for line in text.splitlines() if line.isupper() or line == "no error"] == [
        "no error",
        "ASSERT",
        "ASSERT",
    ]


def test_pinned_memory():
    text = said("""
attribute = driver.CUpointer_attribute
kinds = [attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, attribute.CU_POINTER_ATTRIBUTE_DEVICE_POINTER]
own = np.zeros(4096, np.uint8)
there, here = call("cuMemAlloc", 64), call("cuMemHostAlloc", 64, 0)
print(fails("cuMemHostUnregister", own.ctypes.data), fails("cuPointerGetAttribute", kinds[0], own.ctypes.data))
call("cuMemHostRegister", own.ctypes.data, 4096, 0)
print(fails("cuMemHostRegister", own.ctypes.data, 4096, 0))
for address in (int(there), int(here), own.ctypes.data + 5):
    print([int(call("cuPointerGetAttribute", kind, address)) - (address if i else 0) for i, kind in enumerate(kinds)])
print(int(call("cuMemHostGetDevicePointer", here, 0)) == int(here))
call("cuMemHostUnregister", own.ctypes.data)
call("cuMemFreeHost", here)
print(fails("cuMemFreeHost", here), fails("cuPointerGetAttribute", kinds[0], own.ctypes.data))
""")
    assert text.splitlines() == [
        "HOST_MEMORY_NOT_REGISTERED INVALID_VALUE",
        "HOST_MEMORY_ALREADY_REGISTERED",
        "[2, 0]",
        "[1, 0]",
        "[1, 0]",
        "True",
        "INVALID_VALUE INVALID_VALUE",
    ]


@pytest.mark.parametrize("pinned, seen", [(False, [1, 1]), (True, [2, 2])])
def test_pinned_memory_is_read_when_the_stream_comes_to_it(pinned, seen):
    text = said(
        f"""
there, stream = call("cuMemAlloc", 8), call("cuStreamCreate", 1)
own = np.ones(2, np.int32)
if {pinned}:
    call("cuMemHostRegister", own.ctypes.data, 8, 0)
call("cuMemcpyHtoDAsync", there, own.ctypes.data, 8, stream)
own[:] = 2
call("cuStreamSynchronize", stream)
print(read(there, 2, np.int32).tolist())
""",
        hold=1,
    )
    assert text == f"{seen}\n"
