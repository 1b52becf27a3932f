"""Notes dtype, sizes and strides of each value of a graph. In PyTorch: `torch/fx/passes/shape_prop.py`."""

import copy
import traceback
from typing import Any, NamedTuple

import readtorch
from readtorch._subclasses import FakeTensorMode
from readtorch.c10.memory_format import channels_last_order
from readtorch.c10.symbolic_shape_meta import SymbolicArray
from readtorch.fx.interpreter import Interpreter
from readtorch.fx.node import map_aggregate

__all__ = ["TensorMetadata", "ShapeProp"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor. memory_format: the first that its strides fit, or None."""

    shape: readtorch.Size
    dtype: readtorch.dtype
    requires_grad: bool
    stride: tuple
    memory_format: readtorch.memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result, include_contiguity=True):
    """The TensorMetadata of a tensor. include_contiguity: with its memory format."""
    formats = (readtorch.contiguous_format, readtorch.channels_last, readtorch.channels_last_3d)
    is_strided = result.layout is readtorch.strided
    memory_format = None
    if include_contiguity and is_strided:
        memory_format = next((f for f in formats if _has_format(result, f)), None)
    stride = result.stride() if is_strided else ()
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, stride, memory_format, False, {})


def _has_format(t, memory_format):
    """Whether a tensor lies in memory so. A note is no reason to settle sizes that are left open: it says what is sure."""
    array = t._array
    if type(array) is not SymbolicArray:
        return t.is_contiguous(memory_format=memory_format)
    if memory_format is readtorch.contiguous_format:
        return array.is_contiguous_or_false()
    ndim = 4 if memory_format is readtorch.channels_last else 5
    return array.ndim == ndim and array.transpose(channels_last_order(ndim)).is_contiguous_or_false()


class ShapeProp(Interpreter):
    """Runs a graph and notes of each node `meta["tensor_meta"]`, with TensorMetadata in place of tensors, and `meta["type"]`.

    fake_mode: a FakeTensorMode, with which nothing is computed but sizes.
    """

    def __init__(self, gm, fake_mode=None):
        super().__init__(gm)
        self.fake_mode = fake_mode
        self.real_module = gm
        self.fake_module = None if fake_mode is None else _with_fake_tensors(gm, fake_mode)

    def run_node(self, n):
        try:
            if self.fake_mode is None:
                result = super().run_node(n)
            else:
                result = self._run_fake_node(n)
        except Exception as e:
            traceback.print_exc()
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from e
        found = False

        def metadata(obj):
            nonlocal found
            if not isinstance(obj, readtorch.Tensor):
                return obj
            found = True
            return _extract_tensor_metadata(obj)

        meta = map_aggregate(result, metadata)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def _run_fake_node(self, n):
        self.module = self.fake_module
        try:
            with self.fake_mode:
                return super().run_node(n)
        finally:
            self.module = self.real_module

    def propagate(self, *args):
        """Run the graph with these arguments. Returns what it returns."""
        if self.fake_mode is not None:
            args = [self.fake_mode.from_tensor(t) if isinstance(t, readtorch.Tensor) else t for t in args]
        return super().run(*args)


def _with_fake_tensors(module, fake_mode: FakeTensorMode):
    """A copy of a module in which fake tensors stand for its parameters and buffers."""
    memo = {id(t): fake_mode.from_tensor(t) for t in (*module.parameters(), *module.buffers())}
    return copy.deepcopy(module, memo)
