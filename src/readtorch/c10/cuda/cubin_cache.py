"""Compiled kernels on disk: a second process neither compiles nor loads a compiler.

Note [ Which cubin it is ]
A kernel's key is the text of all that its machine code follows from: its bytecode with that of every function that it calls, the
values that these find in closures and globals, the types of the arguments, launch bounds, the chip's compute capability, and
the versions of numba, numba-cuda, the bindings and Python. A key that cannot be made (a value of which nothing is known) means
that the kernel is compiled in each process. A file holds a digest, its key, the name of the entry and the cubin; it is of no use
unless digest and key fit. Nothing in it is unpickled or run here: the driver loads the cubin. Where it lies, and that nobody else
can write there: Note [ Whose code runs ] in c10/cache_dir_utils.py.

PyTorch has no such file: nvcc compiles its kernels when the library is built. Its other caches are in
`torch/_inductor/codecache.py` and `aten/src/ATen/native/cuda/jit_utils.cpp`.
"""

import functools
import hashlib
import importlib.metadata
import os
import re
import sys
import types

import numpy as np

from readtorch.c10 import cache_dir_utils
from readtorch.c10.global_names import names_in

from .compile import Intrinsic, bounds_of
from .cuda_device_assertion import KernelAssertion, assertions_in

MARK, DIGEST, MOST = b"readtorch cubin 1\n", hashlib.sha256().digest_size, 64 << 20
ENTRY = re.compile(rb"[A-Za-z0-9_$]{1,4096}")
REMEDY = "Nothing need be done: the file is written again"


class Unknown(Exception):
    """A value of which nothing is known."""


def load(key):
    """(the entry's name, the cubin) that were kept under a key, or None."""
    path = path_of(key)
    data = read(path) if path else None
    if data is None:
        return None
    try:
        return parse(data, key)
    except ValueError as error:
        cache_dir_utils.warn_once(path, str(error), REMEDY)
        return None


def read(path):
    try:
        return cache_dir_utils.read_private(path, 0o022, MOST)
    except FileNotFoundError:
        return None
    except OSError as error:
        cache_dir_utils.warn_once(path, str(error), "Remove it")
        return None


def parse(data, key):
    """(name, cubin); ValueError if this is not the file of that key."""
    body = data[len(MARK) + DIGEST :]
    if data[: len(MARK)] != MARK or data[len(MARK) : len(MARK) + DIGEST] != hashlib.sha256(body).digest():
        raise ValueError("it is cut off, or something else was written over it")
    found, _, rest = body.partition(b"\n")
    name, _, cubin = rest.partition(b"\n")
    if found != key.encode() or not ENTRY.fullmatch(name) or cubin[:4] != b"\x7fELF":
        raise ValueError("it holds another kernel")
    return name.decode(), cubin


def save(key, name, cubin):
    path = path_of(key)
    if path and ENTRY.fullmatch(name.encode()) and len(cubin) < MOST // 2:
        body = b"\n".join([key.encode(), name.encode(), cubin])
        cache_dir_utils.write(path, MARK + hashlib.sha256(body).digest() + body)


def path_of(key):
    directory = cache_dir_utils.cache_directory()
    name = hashlib.sha256(key.encode()).hexdigest()[:40]
    return None if directory is None or key is None else os.path.join(directory, f"{name}.cubin")


# ------------------------------------------------------------------------------------------------------- the key


def key_of(kernel, arguments, capability):
    """One line of text, or None."""
    text = Text()
    try:
        text.function(kernel)
    except Unknown:
        return None
    source = hashlib.sha256("\n".join(text.lines).encode()).hexdigest()
    return repr((kernel.__name__, source, types_of(arguments), bounds_of(kernel), tuple(capability), versions()))


def versions():
    """Of all that has a part in making the code."""
    return tuple([*sys.version_info[:3], *map(version_of, ("numba", "numba-cuda", "cuda-bindings", "llvmlite"))])


@functools.cache
def version_of(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def types_of(value):
    """What the types of arguments depend on, as text."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}[{value.ndim}{'C' if value.flags.c_contiguous else 'A'}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(types_of, value))})"
    return type(value).__name__


class Text:
    """What a function and all that it reaches are made of, line by line."""

    def __init__(self):
        self.lines, self.seen = [], {}

    def function(self, function):
        if function in self.seen:
            return self.lines.append(f"function {self.seen[function]}")
        self.seen[function] = len(self.seen)
        self.code(function.__code__)
        self.value(function.__defaults__)
        for cell in function.__closure__ or ():
            self.value(cell.cell_contents, function)
        names = function.__globals__
        for name in sorted(names_in(function.__code__) & names.keys()):
            self.lines.append(name)
            self.value(names[name], function)

    def code(self, code):
        self.lines.append(f"{code.co_name} {code.co_argcount} {code.co_flags} {code.co_code.hex()}")
        self.lines.append(repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)))
        self.lines.append(getattr(code, "co_exceptiontable", b"").hex())
        for constant in code.co_consts:
            self.value(constant)

    def value(self, value, user=None):
        if isinstance(value, types.FunctionType):
            self.function(value)
        elif isinstance(value, types.CodeType):
            self.code(value)
        elif isinstance(value, Intrinsic):
            self.value(value.simulated)
            self.value(value.make)
        elif isinstance(value, KernelAssertion):  # it says where it stands
            self.value(value.simulated)
            self.value((user.__code__.co_filename, user.__code__.co_firstlineno))
            self.value(assertions_in(user.__code__.co_filename))
        elif isinstance(value, functools.partial):
            self.value((value.func, value.args, tuple(sorted(value.keywords.items()))))
        elif isinstance(value, tuple | list):
            self.lines.append(f"{type(value).__name__} of {len(value)}")
            for one in value:
                self.value(one)
        elif isinstance(value, frozenset):
            self.lines.append(f"set {sorted(map(repr, value))}")
        else:
            self.lines.append(f"{type(value).__name__} {plain(value)}")


def plain(value):
    """A value without parts, as text."""
    if isinstance(value, types.ModuleType):
        return value.__name__
    if isinstance(value, type | types.BuiltinFunctionType | np.ufunc):
        return f"{getattr(value, '__module__', '')} {getattr(value, '__qualname__', value.__name__)}"
    if (
        value is None
        or value is Ellipsis
        or isinstance(value, bool | int | float | complex | str | bytes | np.generic | np.dtype)
    ):
        return repr(value)
    raise Unknown(value)
