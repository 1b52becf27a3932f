"""How PyTorch's operators are written in ONNX: a symbolic function each, one file a family.

In PyTorch: `torch/onnx/_internal/torchscript_exporter/symbolic_opset9.py`, which has most of them, to
`symbolic_opset20.py`: a file for each version of ONNX, with what changed in it. Here the versions from 13 on are
supported, and the decorator `onnx_symbolic(…, opset=18)` says from which version on a function is used.

Explained in the chapter "export and ONNX".
"""

from . import (
    activation,
    arithmetic,
    attention,
    comparison,
    convolution,
    embedding,
    factories,
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
