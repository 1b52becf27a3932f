"""From a graph of AOTAutograd to something that runs: lowered to loops, fused, written as numba code.

This is behind the backend "inductor_numba" of `readtorch.compile`: AOTAutograd makes graphs of forward and backward, and `compile_fx_inner`
compiles each. It is no default and no listed backend: "inductor" is still what `compile_fx.py` makes of TorchScript's
passes, until this one is quicker everywhere.

Sizes are constants of the code: a graph whose inputs may come with other sizes is compiled for each.

In PyTorch: `torch/_inductor/compile_fx.py` (`compile_fx` and `compile_fx_inner`).
"""

import readtorch as rt
from readtorch._functorch._aot_autograd.utils import make_boxed_func
from readtorch._tensor import Tensor

from .codegen.wrapper import PythonWrapperCodegen, load_wrapper
from .lowered_graph import LoweredGraph
from .scheduler import Scheduler

generated = []  # a CompiledFxGraph for each graph that was compiled while a test or a reader looked on, see `recording`


class recording:
    """`with recording() as graphs:` each graph that is compiled inside is in the list."""

    def __enter__(self):
        generated.append([])
        return generated[-1]

    def __exit__(self, *_):
        generated.pop()


def compile_fx_inner(module, example_inputs):
    """A boxed function of the graph's inputs. It is the graph as it is where nothing can be made of its tensors."""
    if not all(serves(node.meta.get("val")) for node in module.graph.nodes):
        return make_boxed_func(module.forward)
    compiled = CompiledFxGraph(module, example_inputs)
    for graphs in generated:
        graphs.append(compiled)
    return compiled


def serves(value):
    """Whether a node's value is a plain tensor of the CPU, or none."""
    if isinstance(value, list | tuple):
        return all(map(serves, value))
    return not isinstance(value, Tensor) or (value.device.type == "cpu" and value.layout is rt.strided)


class CompiledFxGraph:
    """source: the text of `call`. kernels: name -> NumbaKernel. fallbacks: operators that are called as they are, with the reason."""

    _boxed_call = True

    def __init__(self, module, example_inputs):
        self.module = module
        graph = LoweredGraph(module).lower()
        self.mutates = any(getattr(buffer, "mutates", ()) for buffer in graph.buffers)
        codegen = PythonWrapperCodegen(graph, Scheduler(graph))
        self.source, self.kernels, self.fallbacks = codegen.source, codegen.kernels, graph.fallbacks
        self.call = load_wrapper(codegen)
        nodes = module.graph.find_nodes(op="placeholder")
        self.expected = [  # and last the strides that the code was written for
            (k, tuple(x.shape), strides_of(x.shape, x.stride()), x.dtype, nodes[k].meta["val"].stride())
            for k, x in enumerate(example_inputs)
            if isinstance(x, Tensor)
        ]
        self.arrays = [(k, description(nodes[k].meta["val"])) for k, *_ in self.expected]

    def __call__(self, args):
        for k, expected in self.arrays:
            array = args[k]._array
            if (array.shape, array.strides, array.dtype) != expected:
                return self.call_with_others(args)
        return self.call(args)

    def call_with_others(self, args):
        """With tensors that may be others than the code was written for: with strides where no step is taken, which do not matter; with
        others, which a copy has not; or with other sizes, for which the graph runs as it is.
        """
        for k, size, stride, dtype, own_strides in self.expected:
            x = args[k]
            if tuple(x.shape) != size or x.dtype is not dtype:
                return self.module.forward(*args)
            if strides_of(size, x.stride()) != stride:
                if self.mutates:
                    return self.module.forward(*args)
                args[k] = rt.empty_strided(size, own_strides, dtype=dtype).copy_(x)
        return self.call(args)


def description(fake):
    """(shape, strides in bytes, dtype) of the array of a tensor like this one."""
    width = fake.dtype.itemsize
    return tuple(fake.shape), tuple([s * width for s in fake.stride()]), fake.dtype.numpy


def strides_of(size, stride):
    """Strides, but for dimensions in which no step is taken."""
    return tuple([s for n, s in zip(size, stride) if n != 1])
