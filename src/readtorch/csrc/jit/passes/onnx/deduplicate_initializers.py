"""Equal weights are stored once: the others become a copy of the first, made when the model runs.

In PyTorch: `torch/csrc/jit/passes/onnx/deduplicate_initializers.cpp`. Explained in the chapter
"export and ONNX".
"""

from readtorch.c10.tensor_impl import host_array
from readtorch.csrc.jit.ir.scope import Scope


def DeduplicateInitializers(graph, initializers):
    """Biases that are all zeros are the usual case."""
    first = {}
    for value in graph.inputs():
        name = value.debugName()
        if name in initializers:
            original = first.setdefault(_key(initializers[name]), value)
            if original is not value:
                _replace_by_copy(graph, original, value)
                del initializers[name]


def _key(tensor):
    return tensor.dtype, tuple(tensor.shape), host_array(tensor.contiguous()).tobytes()


def _replace_by_copy(graph, original, value):
    """An Identity of `original` instead of the input `value`, before all other nodes."""
    node = graph.create("onnx::Identity", [original]).setScope(Scope())
    copy = graph.prependNode(node).output().setType(value.type())
    value.replaceAllUsesWith(copy)
    name = value.debugName()
    graph.eraseInput(graph.inputs().index(value))
    copy.setDebugName(name)
