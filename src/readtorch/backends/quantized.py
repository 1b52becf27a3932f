"""Whose rounding networks in small integers have: FBGEMM's. In PyTorch: `torch/backends/quantized/__init__.py`.

"x86" is PyTorch's default, and FBGEMM for linear layers. No such library is used here; `ao.nn.quantized` rounds as it does.
"""

import sys

from ._settings import PropModule

SUPPORTED = ["x86", "fbgemm"]
NOT_HERE = {"qnnpack": "QNNPACK", "onednn": "ONEDNN", "none": "NoQEngine", "": "NoQEngine", None: "NoQEngine"}


class _Engine:
    """RuntimeError for names that do not exist, and for those of libraries that round otherwise."""

    chosen = "x86"

    def __get__(self, module, kind):
        return self.chosen

    def __set__(self, module, name):
        if name in NOT_HERE:
            raise RuntimeError(f"quantized engine {NOT_HERE[name]} is not supported")
        if name not in SUPPORTED:
            raise RuntimeError(f"{name} is not a valid value for quantized engine")
        self.chosen = name


class _SupportedEngines:
    def __get__(self, module, kind):
        return list(SUPPORTED)

    def __set__(self, module, value):
        raise RuntimeError("Assignment not supported")


class _QuantizedModule(PropModule):
    engine = _Engine()
    supported_engines = _SupportedEngines()


sys.modules[__name__].__class__ = _QuantizedModule
