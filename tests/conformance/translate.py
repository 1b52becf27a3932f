"""Turn a callable made for torch into the same callable for readtorch.

A public function or method is looked up by its dotted name. Anything else that op_db contains (lambdas,
partials, helpers) is rebuilt from its own code with the globals and closure cells it uses translated, `torch`
becoming `readtorch`: op_db's test inputs are run as they are written, not as we would retell them.
"""

import dataclasses
import functools
import types

import torch

import readtorch as rt
from tests.reference import to_readtorch


class Missing(Exception):
    """readtorch lacks a name."""


def look_up(root, path):
    """`root.a.b.c`, or Missing with the full name."""
    found = root
    for part in path.split("."):
        if not hasattr(found, part):
            raise Missing(f"readtorch.{path}")
        found = getattr(found, part)
    return found


@functools.cache
def _public_names():
    """Every public callable of the reference -> its dotted name below `torch`."""
    places = {
        "": torch,
        "nn.functional.": torch.nn.functional,
        "linalg.": torch.linalg,
        "Tensor.": torch.Tensor,
        "special.": torch.special,
        "fft.": torch.fft,
        "nn.init.": torch.nn.init,
    }
    found = {}
    for prefix, place in places.items():
        for name in dir(place):
            value = getattr(place, name, None)
            if callable(value) and isinstance(value, _CALLABLES):
                found.setdefault(value, prefix + name)
    return found


_CALLABLES = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)


def translate(value):
    """`value` with torch's callables, modules, tensors and names replaced by readtorch's."""
    if value is torch:
        return rt
    if value is torch.Tensor:
        return rt.Tensor
    if isinstance(value, types.ModuleType):
        ours = value.__name__.startswith("torch.")
        return look_up(rt, value.__name__.removeprefix("torch.")) if ours else value
    if isinstance(value, functools.partial):
        return functools.partial(translate(value.func), *translate(value.args), **translate(value.keywords))
    if isinstance(value, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return look_up(rt, f"ops.{str(value).removeprefix('torch.ops.')}")
    if isinstance(value, _CALLABLES):
        return _translate_callable(value)
    return to_readtorch(value)


def is_torch_object(value):
    """Whether `value` is an object of one of torch's classes: a module, a packed sequence, options."""
    objects = (torch.nn.Module, torch.nn.Parameter, torch.nn.utils.rnn.PackedSequence)
    return isinstance(value, objects) or (_is_torchs(type(value)) and dataclasses.is_dataclass(value))


def translate_object(value, convert):
    """The same object of readtorch's class of that name; its parts go through `convert`."""
    cls = _our_class(type(value))
    if isinstance(value, torch.nn.Parameter):
        return cls(to_readtorch(value.data), value.requires_grad)
    if isinstance(value, tuple):
        return tuple.__new__(cls, map(convert, value))
    if dataclasses.is_dataclass(value):
        return cls(**{f.name: convert(getattr(value, f.name)) for f in dataclasses.fields(value)})
    made = cls.__new__(cls)
    made.__dict__.update({name: convert(part) for name, part in vars(value).items()})
    return made


def _is_torchs(cls):
    return cls.__module__.partition(".")[0] == "torch"


def _our_class(cls):
    if getattr(torch.nn, cls.__name__, None) is cls:
        return look_up(rt, f"nn.{cls.__name__}")
    return look_up(rt, f"{cls.__module__.removeprefix('torch.')}.{cls.__name__}")


@functools.cache
def _translate_callable(function):
    if function in _public_names():
        return look_up(rt, _public_names()[function])
    if not isinstance(function, types.FunctionType):
        return function  # a builtin of Python: operator.add, len
    if function.__name__ == "wrapper_set_seed":
        return _with_fixed_seed
    return _rebuild(function)


def _with_fixed_seed(op, *args, **kwargs):
    """op_db's wrapper_set_seed, without its bookkeeping of torch's generators."""
    rt.manual_seed(42)
    return op(*args, **kwargs)


def _rebuild(function):
    global_names = {n for n in _names(function.__code__) if n in function.__globals__}
    new_globals = {n: translate(function.__globals__[n]) for n in global_names}
    new_globals["__builtins__"] = __builtins__
    cells = tuple(types.CellType(translate(c.cell_contents)) for c in function.__closure__ or ())
    rebuilt = types.FunctionType(function.__code__, new_globals, function.__name__, None, cells)
    rebuilt.__defaults__ = translate(function.__defaults__)
    rebuilt.__kwdefaults__ = translate(function.__kwdefaults__)
    return rebuilt


def _names(code):
    """The global names that a function and the functions inside it use."""
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))
