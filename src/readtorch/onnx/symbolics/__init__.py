"""How PyTorch's operators are said in ONNX: a small function each, one file a family.

In PyTorch: `torch/onnx/_internal/torchscript_exporter/symbolic_opset9.py` to `symbolic_opset20.py`, one file
for each version of ONNX; what changed in a version stands there. Here the versions from 13 on are known, and
the decorator `onnx_symbolic(…, opset=18)` says from when on a function holds.

Explained in the chapter "Multiprocessing, TensorBoard, ONNX".
"""
from readtorch.onnx.symbolics import (
    activation,
    arithmetic,
    attention,
    comparison,
    convolution,
    embedding,
    factories,  # noqa: F401
    indexing,
    linear,
    normalization,
    numbers,
    padding,
    pooling,
    reduction,
    rnn,
    shape,
    sorting,
)
