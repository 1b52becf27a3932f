"""How operators are written in version 11 of ONNX, which readtorch does not export to: every function is refused by name.

In PyTorch: `torch/onnx/symbolic_opset11.py`. Packages import it to register operators of their own.
"""


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(f"module 'readtorch.onnx.symbolic_opset11' has no attribute '{name}'")

    def refused(*args, **kwargs):
        raise NotImplementedError(f"readtorch has no '{name}' of ONNX's version 11")

    return refused
