"""Modules and classes as TorchScript types, and the rules for which of their methods are compiled.

In PyTorch: `torch/jit/_recursive.py`, `torch/csrc/jit/python/script_init.cpp` (ConcreteModuleType). Explained
in the chapter "JIT: scripting".
"""

import readtorch
from readtorch import nn
from readtorch._jit_internal import EXPORT, get_torchscript_modifier, is_ignored_fn
from readtorch.csrc.jit.api.object import ScriptObject
from readtorch.csrc.jit.ir.type import InterfaceType
from readtorch.csrc.jit.python.pybind_utils import REJECTED, to_ivalue
from readtorch.jit._concrete_type import concrete_type_of, types_kept_only_on_success


def methods_to_compile(module):
    """`forward`, unless it is ignored or missing, and the methods marked `@export`."""
    names = []
    forward = getattr(module.forward, "__func__", None)
    if forward is not None and forward is not nn.Module.forward and not is_ignored_fn(forward):
        names.append("forward")
    cls = type(module)
    names += [
        n for n in dir(cls) if get_torchscript_modifier(getattr(cls, n, None)) == EXPORT and n not in names
    ]
    return names


def create_script_module(module):
    """A RecursiveScriptModule of an `nn.Module`. Raises RuntimeError for what cannot be compiled."""
    _check_initialized(module)
    with types_kept_only_on_success():
        return _create(module, concrete_type_of(module), methods_to_compile)


def _check_initialized(module):
    for name, tensor in [*module._parameters.items(), *module._buffers.items()]:
        if tensor is not None and nn.parameter.is_lazy(tensor):
            kind = "parameters" if name in module._parameters else "buffers"
            raise RuntimeError(
                f"'{readtorch.typename(type(module))}' has uninitialized {kind} {name}. Did you forget to "
                "run a "
                "forward pass?"
            )


def _create(module, concrete, names_of):
    from readtorch.jit._script_module import RecursiveScriptModule

    if isinstance(module, RecursiveScriptModule):
        return module
    names = names_of(module)
    object = ScriptObject(concrete.type)
    for name, found, _ in concrete.attributes:
        object.setattr(name, _attribute_value(module, name, found))
    scripted = RecursiveScriptModule(object, concrete, original=module)
    for name, child_type in concrete.modules.items():
        child = module._modules[name]
        if isinstance(child_type.type, InterfaceType):
            wanted = list(child_type.type.schemas)
            made = _create(child, concrete_type_of(child), lambda m: wanted)
        else:
            made = _create(child, child_type, names_of)
        object.setattr(name, made._c)
        scripted._modules[name] = made
    concrete.compile_all(names)
    return scripted


def _attribute_value(module, name, found):
    value = getattr(module, name)
    value = value.value if isinstance(value, readtorch.jit.Attribute) else value
    converted = to_ivalue(value, found)
    if converted is REJECTED:
        raise RuntimeError(f"Could not cast attribute '{name}' to type {found.annotation_str}: {value!r}")
    return converted
