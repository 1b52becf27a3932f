"""`utils.deterministic.fill_uninitialized_memory`: whether memory that nothing was written to is filled, which makes it
the same in each run, while `use_deterministic_algorithms` is on. True unless set; floats get NaN, integers their maximum.

`empty` and its relatives ask it, and `resize_`. Raises RuntimeError for anything but a bool.

In PyTorch: `torch/utils/deterministic.py`.
"""

import sys
import types

from readtorch.aten.context import context


class _Deterministic(types.ModuleType):
    @property
    def fill_uninitialized_memory(self):
        return context.fill_uninitialized_memory

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode):
        context.set_fill_uninitialized_memory(mode)


sys.modules[__name__].__class__ = _Deterministic
