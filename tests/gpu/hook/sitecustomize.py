"""Gives the fake driver the PTX of every kernel that numba links. Python loads this file itself: PYTHONPATH names its folder.

numba makes a cubin and no PTX, since it optimizes while linking; here it is asked for both. Nothing else of numba changes, and a
process that loads no numba notices nothing.
"""

import importlib.abc
import os
import pathlib
import sys

ROOT = str(pathlib.Path(__file__).parents[3])
NAMES = ("numba.cuda.codegen", "numba_cuda.numba.cuda.codegen")


def add_code(ptx, cubin):
    sys.path.insert(0, ROOT)
    try:
        from tests.gpu.ptx import module, objects
    finally:
        sys.path.remove(ROOT)
    try:
        objects.add_code(ptx, cubin)
    except module.Unsupported as error:
        print(f"fake GPU: PTX that cannot be run: {error}", file=sys.stderr)


class Loader(importlib.abc.Loader):
    """Loads numba's code generator, and puts a function before its `get_cubin`."""

    def __init__(self, loader):
        self.loader = loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        library = module.CUDACodeLibrary
        link = library.get_cubin

        def get_cubin(self, cc=None):
            cc = self._ensure_cc(cc)
            is_new = not self._cubin_cache.get(cc)
            cubin = link(self, cc)
            if is_new:
                add_code(self.get_lto_ptx(cc) if self._lto else self.get_asm_str(cc), bytes(cubin.code))
            return cubin

        library.get_cubin = get_cubin

    def __getattr__(self, name):
        return getattr(self.loader, name)


class Finder(importlib.abc.MetaPathFinder):
    busy = False

    def find_spec(self, name, path, target=None):
        if name not in NAMES or self.busy:
            return None
        self.busy = True
        try:
            for finder in sys.meta_path:
                if finder is not self and (spec := finder.find_spec(name, path, target)):
                    spec.loader = Loader(spec.loader)
                    return spec
        finally:
            self.busy = False


if os.environ.get("FAKE_GPU_RUN", "1") != "0":
    sys.meta_path.insert(0, Finder())
