"""What runs in place of a graph. In PyTorch: `torch/_inductor/output_code.py`."""

import readtorch as rt

from .codegen.wrapper import PythonWrapperCodegen, load_wrapper
from .graph import GraphLowering
from .scheduler import Scheduler
from .virtualized import V


class CompiledFxGraph:
    """source: the text of `call`. kernels: name -> NumbaKernel. fallbacks: operators that are called as they are, with the reason."""

    _boxed_call = True

    def __init__(self, module, example_inputs):
        self.module = module
        graph = GraphLowering(module).lower()
        self.mutates = any(getattr(buffer, "mutates", ()) for buffer in graph.buffers)
        with V.set_graph_handler(graph):
            codegen = PythonWrapperCodegen(graph, Scheduler(graph))
        self.source, self.kernels, self.fallbacks = codegen.source, codegen.kernels, graph.fallbacks
        self.call, self.fits, self.expected = load_wrapper(codegen)
        self.dtypes = [layout.dtype for layout in graph.input_layouts.values()]

    def __call__(self, args):
        return self.call(args) if self.fits(args) else self.call_with_others(args)

    def call_with_others(self, args):
        """With tensors that may be others than the code was written for: with strides where no step is taken, which do not matter; with
        others, which a copy has not; or with other sizes, for which the graph runs as it is.
        """
        for (k, size, stride), dtype in zip(self.expected(args), self.dtypes):
            x = args[k]
            if tuple(x.shape) != size or x.dtype is not dtype:
                return self.module.forward(*args)
            if strides_of(size, x.stride()) != strides_of(size, stride):
                if self.mutates:
                    return self.module.forward(*args)
                args[k] = rt.empty_strided(size, stride, dtype=x.dtype).copy_(x)
        return self.call(args)


def strides_of(size, stride):
    """Strides, but for dimensions in which no step is taken."""
    return tuple([s for n, s in zip(size, stride) if n != 1])
