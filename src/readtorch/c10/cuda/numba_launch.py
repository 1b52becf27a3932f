"""Launches on a real GPU: numba compiles the kernels, and we launch them.

Note [ A launch of our own ]
numba's dispatcher looks at every launch anew: it wraps each array, asks for the type of each argument, looks for the kernel
that was compiled for these types, and packs the arguments. That takes longer than most kernels. Here a launch has a key:
the kernel, the device, and what the arguments' types depend on. What belongs to a key is made once: the handle of the
compiled kernel, and a `struct.Struct` that writes the arguments one behind the other, each at a multiple of its size, as PTX
lays out parameters. What is left is to write them and to call the driver.

An array is several parameters, in the order in which numba's compiled code takes them: two pointers that stay null, the
number of its elements, the bytes of one, the address, the sizes and the strides.

PyTorch has no such file: nvcc turns `<<<grid, block, shared, stream>>>` into a call of `cudaLaunchKernel`.
"""

import ctypes
import struct
import threading

import numpy as np

from . import cubin_cache
from .compile import compiled, signature_of
from .cuda_exception import AcceleratorError

_BUFFER_POINTER, _BUFFER_SIZE, _END = 1, 2, 0  # CU_LAUNCH_PARAM_…: how a launch says where its parameters are
_LETTERS = {"l": "q", "L": "Q", "E": "f"}  # NumPy's types by struct's names; a bfloat16 number travels as float32
_entries = {}  # key -> CompiledLaunch


class CompiledLaunch:
    """A kernel that is compiled for the types of some arguments, and the buffer that launches put theirs into."""

    def __init__(self, driver, device, kernel, arguments):
        self.handle, self.code = handle_of(driver, device, kernel, arguments)
        self.struct = struct.Struct("@" + "".join(letters(arguments)))
        self.parameters = parameters_of(arguments)
        self.buffer = ctypes.create_string_buffer(self.struct.size)
        self.size = ctypes.c_size_t(self.struct.size)
        places = _BUFFER_POINTER, ctypes.addressof(self.buffer), _BUFFER_SIZE, ctypes.addressof(self.size), _END
        self.places = (ctypes.c_void_p * len(places))(*places)
        self.extra = ctypes.addressof(self.places)
        self.lock = threading.Lock()  # from the writing of the parameters to the driver's copy of them

    def launch(self, call, stream, grid, block, arguments, shared):
        with self.lock:
            self.struct.pack_into(self.buffer, 0, *self.parameters(arguments))
            call(self.handle, *three(grid), *three(block), shared, stream, 0, self.extra)


def launch(driver, device, stream, kernel, grid, block, arguments, shared):
    """Put a kernel on a stream of the current context, which is the device's."""
    key = kernel, device, key_of(arguments)
    entry = _entries.get(key)
    if entry is None:
        with driver.stream_capture_mode_guard():  # to load code is unsafe while a graph is captured
            entry = _entries[key] = CompiledLaunch(driver, device, kernel, arguments)
    entry.launch(driver.launch_kernel, stream, grid, block, arguments, shared)


def handle_of(driver, device, kernel, arguments):
    """(the driver's handle of the kernel's code for a device, whose context is the current one, what keeps it loaded). The code is
    on disk, or compiled now."""
    properties = driver.get_device_properties(device)
    key = cubin_cache.key_of(kernel, arguments, (properties.major, properties.minor))
    kept = key and cubin_cache.load(key)
    if kept:
        try:
            return driver.module_function(*kept), None
        except AcceleratorError:  # made for another driver
            pass
    made = compiled(kernel).compile(signature_of(arguments))
    library = made._codelibrary
    handle = int(library.get_cufunc().kernel.handle)
    if key:
        cubin_cache.save(key, made.entry_name, bytes(library.get_cubin().code))
    return handle, made


def three(size):
    return (size, 1, 1) if not isinstance(size, tuple) else size + (1,) * (3 - len(size))


def key_of(values):
    """Arguments with equal keys are of the same types."""
    return tuple(
        [
            (value.dtype.num, value.ndim, value.flags.c_contiguous)
            if type(value) is np.ndarray
            else (key_of(value) if type(value) is tuple else type(value))
            for value in values
        ]
    )


def parameters_of(arguments):
    """A function of arguments of these types: the numbers that a launch hands over, in order.

    For a matrix of float32 and a tuple of two numbers it is made of this text:

        lambda a: (0, 0, a[0].size, 4, a[0].__array_interface__["data"][0] if a[0].size else 0, *a[0].shape, *a[0].strides, *a[1])
    """
    return eval(f"lambda a: ({''.join([f'{each}, ' for each in expressions(arguments, 'a')])})")


def expressions(values, name):
    """The text of each parameter."""
    if not any(isinstance(value, np.ndarray | tuple | complex | np.complexfloating) for value in values):
        yield f"*{name}"
        return
    for i, value in enumerate(values):
        one = f"{name}[{i}]"
        if isinstance(value, np.ndarray):
            address = f'{one}.__array_interface__["data"][0] if {one}.size else 0'
            yield f"0, 0, {one}.size, {value.itemsize}, {address}, *{one}.shape, *{one}.strides"
        elif isinstance(value, tuple):
            yield from expressions(value, one)
        else:
            yield f"{one}.real, {one}.imag" if isinstance(value, complex | np.complexfloating) else one


def letters(values):
    """Each parameter's type, as `struct` writes it."""
    for value in values:
        if type(value) is np.ndarray:
            yield f"4qQ{2 * value.ndim}q"
        elif type(value) is tuple:
            yield from letters(value)
        elif isinstance(value, complex | np.complexfloating):
            yield "ff" if isinstance(value, np.complex64) else "dd"
        elif isinstance(value, np.generic):
            yield _LETTERS.get(value.dtype.char, value.dtype.char)
        else:
            yield "?" if isinstance(value, bool) else "q" if isinstance(value, int) else "d"
