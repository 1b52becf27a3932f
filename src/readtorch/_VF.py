"""`torch._VF`: the functions of `torch._C._VariableFunctions` under another name.

In PyTorch: `torch/_VF.py`. It is no plain module there either, so that type checkers do not look for the functions.
"""

import sys
import types

from . import _C


class VFModule(types.ModuleType):
    def __init__(self, name):
        super().__init__(name)
        self.vf = _C._VariableFunctions

    def __getattr__(self, name):
        return getattr(self.vf, name)


sys.modules[__name__] = VFModule(__name__)
