"""What numba has compiled, kept on disk: one file for a function and the types of its arguments.

A file's name says which function of which source file it is of, for which types, processor, Python and numba. It holds
the stamp of the source it was made from, a digest, and numba's pickle. A stamp that is another makes the file old: it
is written anew. A digest that does not fit makes it damaged: the same, with a warning. Processes that write one file at
once each put a whole one in its place. Where it lies, and that nobody else can write there: Note [ Whose code runs ] in
cache_dir_utils.py.

Note [ One name, one machine code ]
Machine code calls other machine code by its name, and a name that is there already is used, also by code that brings a function
of that name along. numba's names are a function's module, its qualified name and a number that counts functions in a
process. Two functions that are made from different texts may have the same in two processes: what one of them has kept would
call, in the other, another function. So a kept function's qualified name ends with a digest of what it is made from.

Files stand in no `__pycache__`, where numba by itself puts them: those can be written to by everyone who may write to
the source, and are read-only where a package is installed for all.

In PyTorch: `torch/_inductor/codecache.py`.
"""

import functools
import hashlib
import os
import pickle
import sys

import numba
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from . import cache_dir_utils

DIGEST = hashlib.sha256().digest_size
REMEDY = "Nothing need be done: the file is written again"


def cached(function=None, **options):
    """numba's `njit`, with what it has compiled kept."""
    if function is None:
        return functools.partial(cached, **options)
    return keep(numba.njit(**options)(function))


def keep(dispatcher, shared="", directory=cache_dir_utils.cache_directory, source=None):
    """Give a numba function a cache, and return it.

    shared: text that changes with whatever the function calls in other files. directory: a function that says where.
    source: the text that it was made from, if that is in no file.
    """
    dispatcher._cache = KernelCache(dispatcher.py_func, shared, directory, source)
    return dispatcher


class KernelCache(_Cache):
    """The cache of one function. Nothing is looked at before it is called."""

    def __init__(self, function, shared, directory, source):
        self.function, self.shared, self.directory, self.source = function, shared, directory, source
        self.enabled, self.named = True, False

    def enable(self):
        self.enabled = True

    def disable(self):
        self.enabled = False

    def flush(self):
        """Nothing needs to be removed: old files are recognised by their stamps."""

    @property
    def cache_path(self):
        directory = self.directory()
        return None if directory is None else str(directory)

    # numba calls `load_overload` before it compiles, `save_overload` afterwards.

    def load_overload(self, sig, target_context):
        self.name_by_content()
        target_context.refresh()
        path = self.path(sig, target_context.codegen())
        data = cache_dir_utils.read(path) if path else None
        if data is None or data[:DIGEST] != self.stamp:
            return None
        try:
            if hashlib.sha256(data[2 * DIGEST :]).digest() != data[DIGEST : 2 * DIGEST]:
                raise ValueError("it is cut off, or something else was written over it")
            types, payload = pickle.loads(data[2 * DIGEST :])
            return CompileResult._rebuild(target_context, *payload) if types == sig else None
        except Exception as error:
            cache_dir_utils.warn_once(path, f"{type(error).__name__}: {error}", REMEDY)
            return None

    def save_overload(self, sig, data):
        path = self.path(sig, data.codegen)
        if path and not data.library.has_dynamic_globals and all(lifted.can_cache for lifted in data.lifted):
            pickled = dumps((sig, data._reduce()))
            cache_dir_utils.write(path, self.stamp + hashlib.sha256(pickled).digest() + pickled)

    def name_by_content(self):
        """Give the function its name among all machine code, once. See Note [ One name, one machine code ]"""
        if not self.named:
            content = hashlib.sha256(self.stamp + self.closed_over()).hexdigest()[:12]
            self.function.__qualname__ += f"_{content}"
            self.named = True

    # ------------------------------------------------------------------------------------------ which file it is

    def path(self, sig, codegen):
        """The file for these types; None without a directory."""
        directory = self.directory() if self.enabled else None
        if directory is None:
            return None
        machine = (codegen.magic_tuple(), sys.version_info[:3], numba.__version__)
        which = repr((str(sig), self.source_line, machine)).encode() + self.closed_over()
        name = f"{self.function.__module__}.{self.function.__qualname__}".replace("<", "").replace(">", "")
        return os.path.join(directory, f"{name}-{hashlib.sha256(which).hexdigest()[:20]}.nbc")

    @property
    def source_line(self):
        code = self.function.__code__
        return os.path.abspath(code.co_filename), code.co_firstlineno

    def closed_over(self):
        """A loop that is made by a function around it depends on what that one has."""
        return dumps(tuple(cell.cell_contents for cell in self.function.__closure__ or ()))

    @functools.cached_property
    def stamp(self):
        """Changes with the text that the function was made from, and with what is shared."""
        text = file_digest(self.function.__code__.co_filename) if self.source is None else self.source
        shared = self.shared() if callable(self.shared) else self.shared
        return hashlib.sha256(repr((text, shared)).encode()).digest()


@functools.cache
def file_digest(path):
    """Of a source file, as it is now. (A file that changes while the process runs is not loaded anew.)"""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""
