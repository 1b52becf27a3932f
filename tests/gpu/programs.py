"""Programs for processes that have a fake GPU."""

import subprocess
import sys
import textwrap

from .fake import environment

DRIVER = '''
import ctypes
import numpy as np
from cuda.bindings import driver, nvjitlink
from tests.gpu.ptx import objects

def call(name, *arguments):
    """A function of the driver: its result, or what went wrong."""
    status, *result = getattr(driver, name)(*arguments)
    if status:
        raise RuntimeError(status.name.removeprefix("CUDA_ERROR_"))
    return result[0] if len(result) == 1 else result

def fails(name, *arguments):
    try:
        call(name, *arguments)
    except RuntimeError as error:
        return str(error)
    return "no error"

call("cuInit", 0)
call("cuCtxSetCurrent", call("cuDevicePrimaryCtxRetain", 0))

def kernel(ptx, name):
    """A kernel of a PTX module, which is linked as numba links its own."""
    text = (".version 8.0\\n.target sm_90\\n.address_size 64\\n" + ptx).encode()
    handle = nvjitlink.create(1, ["-arch=sm_90"])
    nvjitlink.add_data(handle, nvjitlink.InputType.PTX, text, len(text), "text")
    nvjitlink.complete(handle)
    cubin = bytearray(nvjitlink.get_linked_cubin_size(handle))
    nvjitlink.get_linked_cubin(handle, cubin)
    objects.add_code(text.decode(), bytes(cubin))
    return call("cuModuleGetFunction", call("cuModuleLoadData", bytes(cubin)), name.encode())

def launch(function, threads, stream, *values):
    """With one block; each value is a NumPy number."""
    places = (ctypes.c_void_p * max(len(values), 1))(*(np.asarray(v).ctypes.data for v in values))
    call("cuLaunchKernel", function, 1, 1, 1, threads, 1, 1, 0, stream, ctypes.addressof(places), 0)

def read(address, count, dtype):
    values = np.empty(count, dtype)
    call("cuMemcpyDtoH", values.ctypes.data, address, values.nbytes)
    return values
'''


def said(program, head=DRIVER, **settings):
    """What it prints on both streams, and the signal that ended it."""
    command = [sys.executable, "-W", "ignore", "-c", head + textwrap.dedent(program)]
    outputs = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    done = subprocess.run(command, **outputs, env={**environment(**settings), "PYTHONUNBUFFERED": "1"}, timeout=300)
    return done.stdout + (f"signal {-done.returncode}" if done.returncode < 0 else "")
