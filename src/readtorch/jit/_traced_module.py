"""What tracing a module gives: a module of the same shape whose methods are graphs.

In PyTorch: `TracedModule`, `TopLevelTracedModule` in `torch/jit/_trace.py`. Explained in the chapter
"JIT: tracing".
"""
from readtorch.csrc.jit.api.compilation_unit import python_cu
from readtorch.csrc.jit.api.object import ScriptObject
from readtorch.csrc.jit.ir.constants import qualified_name
from readtorch.csrc.jit.ir.type import BoolType, ClassType, NoneType, OptionalType, TensorType
from readtorch.csrc.jit.passes.inliner import inlined
from readtorch.jit._script_module import ScriptModule


def make_object(module, seen=None):
    """A ScriptObject for a module: its parameters, buffers and submodules, in a new class without methods.

    Raises ValueError for a parameter that two modules share, and for backward hooks.
    """
    if isinstance(module, TracedModule):
        return module._c
    seen = set() if seen is None else seen
    if module._backward_hooks:
        raise ValueError(f"Modules that have backward hooks assigned can't be compiled: {module}")
    type = ClassType(python_cu.free_name(qualified_name(module.__class__)), python_cu, is_module=True)
    python_cu.register_type(type)
    slots = []
    for kind, tensors in (("parameter", module._parameters), ("buffer", module._buffers)):
        for name, tensor in tensors.items():
            if tensor is None:
                type.addAttribute(name, NoneType.get())
            else:
                _check_unique(tensor, seen)
                type.addAttribute(name, TensorType.get(), kind == "parameter", kind == "buffer")
            slots.append(tensor)
    type.addAttribute("training", BoolType.get())
    type.addAttribute("_is_full_backward_hook", OptionalType(BoolType.get()))
    slots += [module.training, None]
    for name, child in module._modules.items():
        if child is not None:
            object = make_object(child)
            type.addAttribute(name, object.type)
            slots.append(object)
    return ScriptObject(type, slots)


def _check_unique(tensor, seen):
    if id(tensor) in seen:
        raise ValueError("TracedModules don't support parameter sharing between modules")
    seen.add(id(tensor))


class TracedModule(ScriptModule):
    """A submodule of a traced module. `_c` is the object that its graphs are methods of."""

    def __init__(self, object):
        super().__init__()
        self.__dict__["_c"] = object
        self.__dict__["_name"] = object.type.name()
        for attribute, value in zip(object.type.attributes, object.slots):
            if attribute.kind == "parameter":
                self._parameters[attribute.name] = value
            elif attribute.kind == "buffer":
                self._buffers[attribute.name] = value
            elif attribute.type.is_module():
                self._modules[attribute.name] = TracedModule(value)
            elif attribute.name == "training":
                self.training = value

    def forward(self, *args, **kwargs):
        raise RuntimeError("Trace submodules cannot be called.")

    def _get_name(self):
        return self._name

    @property
    def original_name(self):
        return self._name

    def extra_repr(self):
        return f"original_name={self._name}"

    @property
    def graph(self):
        return self._c.type.getMethod("forward").graph

    @property
    def inlined_graph(self):
        return inlined(self.graph)

    @property
    def code(self):
        """The graph of `forward` as TorchScript text."""
        return self.code_with_constants[0]

    @property
    def code_with_constants(self):
        from readtorch.csrc.jit.serialization.python_print import code_of_function
        return code_of_function(self._c.type.getMethod("forward"))

    def train(self, mode=True):
        """Set the flag. What was traced stays as it was traced: graphs do not look at it."""
        super().train(mode)
        if self._c.hasattr("training"):
            self._c.setattr("training", mode)
        return self


class TopLevelTracedModule(TracedModule):
    """A traced module: calling it runs the graph of `forward`; other traced methods are attributes."""

    def forward(self, *args, **kwargs):
        return self._c.method("forward")(*args, **kwargs)

    def __getattr__(self, name):
        object = self.__dict__.get("_c")
        if object is not None and object.type.findMethod(name) is not None:
            return object.method(name)
        return super().__getattr__(name)

    def graph_for(self, *args, **kwargs):
        """The graph that really runs, after optimisation."""
        self(*args, **kwargs)
        return self._c.type.getMethod("forward").executor().plan()[0]
