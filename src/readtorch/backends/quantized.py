"""The library for networks in small integers: there is none. In PyTorch: `torch/backends/quantized/__init__.py`."""

import sys

from ._settings import PropModule

ENGINES = {"fbgemm": "FBGEMM", "qnnpack": "QNNPACK", "onednn": "ONEDNN", "x86": "X86"}


class _Engine:
    """RuntimeError for names that do not exist, and for those of libraries that are not here."""

    def __get__(self, module, kind):
        return "none"

    def __set__(self, module, name):
        if name in ENGINES:
            raise RuntimeError(f"quantized engine {ENGINES[name]} is not supported")
        if name not in ("none", "", None):
            raise RuntimeError(f"{name} is not a valid value for quantized engine")


class _SupportedEngines:
    def __get__(self, module, kind):
        return ["none"]

    def __set__(self, module, value):
        raise RuntimeError("Assignment not supported")


class _QuantizedModule(PropModule):
    engine = _Engine()
    supported_engines = _SupportedEngines()


sys.modules[__name__].__class__ = _QuantizedModule
