"""Python's own builtins for numba, whatever the program has put in their place.

Note [ Builtins that a program has replaced ]

Programs that train on several ranks replace `builtins.print` by a function of their own that prints on rank 0 only.
numba is imported when the first kernel is needed, and registers `print` as what it finds under that name; when it
compiles, it looks `range`, `len` and the like up in the kernel's builtins. So both happen with the builtins that
were there when readtorch was imported, and then the program's are put back. Other threads see Python's own
meanwhile.

PyTorch has no such file: the kernels of eager operators are compiled before a program starts.
"""

import builtins
import contextlib
import importlib.util
import sys

_PYTHONS = {name: value for name, value in vars(builtins).items() if callable(value) and not name.startswith("_")}


@contextlib.contextmanager
def pythons_own():
    """Within it builtins are Python's own. See Note [ Builtins that a program has replaced ]."""
    now = vars(builtins)
    programs = {name: now[name] for name, own in _PYTHONS.items() if now.get(name, own) is not own}
    now.update({name: _PYTHONS[name] for name in programs})
    try:
        yield
    finally:
        now.update(programs)


class NumbaFinder:
    """A finder for `sys.meta_path`: numba is loaded with Python's own builtins, whenever it is imported."""

    def find_spec(self, name, path=None, target=None):
        if name != "numba":
            return None
        sys.meta_path = [
            finder for finder in sys.meta_path if finder is not self
        ]  # another thread may walk along the old
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module if spec else None

        def exec_module(module):
            with pythons_own():
                load(module)

        if spec:
            spec.loader.exec_module = exec_module
        return spec


if "numba" not in sys.modules:
    sys.meta_path.insert(0, NumbaFinder())
