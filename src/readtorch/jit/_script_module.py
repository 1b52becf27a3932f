"""`ScriptModule`: a module whose methods are graphs.

Its parameters, buffers and attributes are those of the object that the graphs see; here they can be looked at
and set as in any `nn.Module`.

In PyTorch: `RecursiveScriptModule` in `torch/jit/_script.py`. Explained in the chapter "JIT: scripting".
"""

from collections.abc import MutableMapping

from readtorch.csrc.jit.ir.type import ClassType, InterfaceType
from readtorch.csrc.jit.passes.inliner import inlined
from readtorch.csrc.jit.python.pybind_utils import REJECTED, to_ivalue
from readtorch.csrc.jit.python.script_init import Compiled
from readtorch.nn import Module

__all__ = ["RecursiveScriptModule", "ScriptModule"]


class _Slots(MutableMapping):
    """The parameters (or the buffers) of an object, as the dictionary that `nn.Module` keeps them in."""

    def __init__(self, object, kind):
        self.object = object
        self.kind = kind

    def _names(self):
        return [a.name for a in self.object.type.attributes if a.kind == self.kind]

    def __getitem__(self, name):
        if name not in self:
            raise KeyError(name)
        return self.object.getattr(name)

    def __setitem__(self, name, value):
        if name not in self:
            raise RuntimeError(
                "Can't add a new parameter after ScriptModule construction. Tried to add '" + name + "'"
            )
        self.object.setattr(name, value)

    def __delitem__(self, name):
        raise RuntimeError("cannot delete methods or parameters of a script module")

    def __contains__(self, name):
        return name in self._names()

    def __iter__(self):
        return iter(self._names())

    def __len__(self):
        return len(self._names())


class ScriptModule(Module):
    """Base of all modules in TorchScript. `_c` is the object that the graphs are methods of."""


class RecursiveScriptModule(ScriptModule):
    """object: a ScriptObject whose type is a module's. concrete: what the compiler knows of it. original: the
    Python module, of which methods that stay in Python are kept."""

    def __init__(self, object, concrete, original=None):
        super().__init__()
        state = self.__dict__
        state.update(
            _c=object,
            _concrete_type=concrete,
            _original=original,
            _parameters=_Slots(object, "parameter"),
            _buffers=_Slots(object, "buffer"),
        )
        for name in ("training", "_is_full_backward_hook"):
            if object.hasattr(name):
                del state[name]

    @property
    def original_name(self):
        """The name of the Python class that it was made from."""
        return self._c.type.name()

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        return f"original_name={self.original_name}"

    # ------------------------------------------------------------------------------------------ attributes

    def __getattr__(self, name):
        object = self.__dict__.get("_c")
        if object is None:
            raise AttributeError(f"ScriptModule has not been initialized; '{name}' is not there yet")
        type = object.type
        if name in self.__dict__["_modules"]:
            return self.__dict__["_modules"][name]
        if type.findMethod(name) is not None:
            return ScriptMethod(object, type.getMethod(name))
        if type.hasAttribute(name):
            return object.getattr(name)
        if name in type.constants:
            return type.constants[name]
        if name in type.properties:
            return ScriptMethod(object, type.getMethod(type.properties[name][0]))()
        return self._python_attribute(name)

    def _python_attribute(self, name):
        """What stayed in Python: methods marked `@ignore`, attributes without a type."""
        original = self.__dict__["_original"]
        if original is not None and not name.startswith("__"):
            function = getattr(type(original), name, None)
            if callable(function) and hasattr(function, "__get__"):
                return function.__get__(self)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        object = self.__dict__.get("_c")
        if object is None or name in self.__dict__ and not object.hasattr(name):
            super().__setattr__(name, value)
            return
        if object.hasattr(name):
            self._set_slot(object, name, value)
        elif name in object.type.constants:
            raise AttributeError(f"Cannot mutate TorchScript constant value: '{name}'. Value: '{value}'")
        else:
            super().__setattr__(name, value)

    def _set_slot(self, object, name, value):
        found = object.type.getAttribute(name)
        converted = to_ivalue(value, found)
        if converted is REJECTED:
            raise RuntimeError(
                f"Could not assign a value of type {type(value).__name__} to attribute '{name}' of type "
                f"{found.annotation_str}"
            )
        object.setattr(name, converted)
        if isinstance(found, (ClassType, InterfaceType)) and isinstance(value, Module):
            self.__dict__["_modules"][name] = value

    # --------------------------------------------------------------------------------------------- methods

    def forward(self, *args, **kwargs):
        """Run the graph of `forward`."""
        return self.forward_magic_method("forward", *args, **kwargs)

    def forward_magic_method(self, name, *args, **kwargs):
        method = self._c.type.findMethod(name)
        if method is None:
            raise NotImplementedError(
                f'Module [{self.original_name}] is missing the required "{name}" function'
            )
        return method(self._c, *args, **kwargs)

    def __len__(self):
        return (
            len(self._modules)
            if self._c.type.findMethod("__len__") is None
            else self.forward_magic_method("__len__")
        )

    def __iter__(self):
        return iter(self._modules.values())

    def __getitem__(self, key):
        modules = self._modules
        if isinstance(key, int):
            return list(modules.values())[key]
        return modules[key] if isinstance(key, str) else list(modules.values())[key]

    def __contains__(self, key):
        return key in self._modules

    def __bool__(self):
        return True

    def keys(self):
        return self._modules.keys()

    def items(self):
        return self._modules.items()

    def values(self):
        return self._modules.values()

    @property
    def graph(self):
        """The graph of `forward`."""
        return self._c.type.getMethod("forward").graph

    @property
    def inlined_graph(self):
        """The same, with the graphs of all calls in the place of the calls."""
        return inlined(self.graph)

    @property
    def code(self):
        """The graph of `forward` as TorchScript text."""
        return self.code_with_constants[0]

    @property
    def code_with_constants(self):
        from readtorch.csrc.jit.serialization.python_print import code_of_function

        return code_of_function(self._c.type.getMethod("forward"))

    def graph_for(self, *args, **kwargs):
        """The graph that really runs, after optimisation."""
        self(*args, **kwargs)
        return self._c.type.getMethod("forward").executor().plan()[0]

    def define(self, src):
        """Add methods: a text in TorchScript."""
        from readtorch.jit._script import define_methods_from_text

        define_methods_from_text(self._concrete_type, src)

    def save(self, f, **kwargs):
        """Write it to a file."""
        from readtorch.jit._serialization import save

        save(self, str(f), **kwargs)

    def save_to_buffer(self, **kwargs):
        """The bytes of the archive."""
        import io

        from readtorch.jit._serialization import save

        buffer = io.BytesIO()
        save(self, buffer, **kwargs)
        return buffer.getvalue()

    def __reduce_ex__(self, protocol):
        raise RuntimeError("ScriptModules cannot be pickled: use torch.jit.save")

    def _replicate_for_data_parallel(self):
        """A copy of the object alone: `replicate` then sets its submodules, parameters and buffers."""
        return RecursiveScriptModule(self._c.copy(), self._concrete_type, self._original)

    def __copy__(self):
        return _wrapped_copy(self, self._c.copy())

    def __deepcopy__(self, memo):
        import copy

        return _wrapped_copy(self, copy.deepcopy(self._c, memo))


def _wrapped_copy(module, object):
    made = RecursiveScriptModule(object, module._concrete_type, module._original)
    for name, child in module._modules.items():
        made._modules[name] = _wrapped_copy(child, object.getattr(name))
    return made


class ScriptMethod(Compiled):
    """A method of an object, bound to it."""

    def __init__(self, object, function):
        super().__init__(function)
        self._object = object

    def __call__(self, *args, **kwargs):
        return self._function(self._object, *args, **kwargs)

    @property
    def owner(self):
        return self._object
