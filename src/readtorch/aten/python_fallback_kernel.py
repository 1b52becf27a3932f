"""The kernel of the key Python: hands a call to the thread's dispatch modes and to the tensors' `__torch_dispatch__`.

It turns the arguments into those of a Python call, asks the topmost mode, then each class of tensor that has a
`__torch_dispatch__`, and checks what the one that answered has returned.

In PyTorch: `aten/src/ATen/core/PythonFallbackKernel.cpp`, `torch/csrc/PyInterpreter.cpp` and, for the order of those
that are asked, `handle_torch_function_no_python_arg_parser`. Explained in the chapter "One operator call".
"""

import copy
import dataclasses
import functools

from readtorch.c10.device import cpu
from readtorch.c10.dispatch_key import ABOVE_PYTHON, PRE_DISPATCH, PYTHON, WRAPPED_NUMBER
from readtorch.c10.local_dispatch_key_set import tls, update_mask
from readtorch.c10.tensor_impl import TensorImpl, key_set, seen_by_python
from readtorch.c10.torch_dispatch_mode_tls import (
    PYTHON_KEYS,
    _disabled_torch_dispatch_impl,
    kind_of,
    mode_tls,
    pop,
    push,
    set_mode,
    set_mode_pre_dispatch,
)

from . import dispatcher
from .codegen import compile_function
from .python_arg_parser import default_of
from .torch_function import one_of_each_class


def make_python_kernel(operator, keys):
    """The Python kernel of `operator` (the dispatcher's fallback for the key Python)."""
    return _compiled(operator, call_python)


def make_pre_dispatch_kernel(operator, keys):
    """The same for the key PreDispatch, above all others: compositions are still whole there."""
    return _compiled(operator, call_pre_dispatch)


def _compiled(operator, call):
    source = kernel_source(operator if operator.schema.namespace == "aten" else _with_names_of_its_own(operator))
    return compile_function(f"{operator.schema.name}_python", source, kernel_names(operator) | {"call": call})


def _with_names_of_its_own(operator):
    """The operator with arguments that are named unlike all that the text of a kernel uses: `args` becomes `args_`."""
    made = copy.copy(operator)
    renamed = tuple(dataclasses.replace(a, name=f"{a.name}_") for a in operator.schema.arguments)
    made.schema = dataclasses.replace(operator.schema, arguments=renamed)
    return made


def kernel_source(operator):
    """The text of a Python kernel. Arguments that have their default value are left out: from the end of the
    positional ones, and anywhere among the keyword-only ones.

    For `add.Tensor` it returns:

        def add_python(self, other, alpha):
            overloaded = ()
            if (self._keys | other._keys) & PYTHON: overloaded = with_torch_dispatch((self, other,))
            if self._keys & WRAPPED_NUMBER: self = number_in(self)
            if other._keys & WRAPPED_NUMBER: other = number_in(other)
            args = (self, other,)
            kwargs = {}
            if not (type(alpha) is int and alpha == 1): kwargs['alpha'] = alpha
            result = call(func, overloaded, args, kwargs)
            return result if isinstance(result, TensorImpl) else returned(result)
    """
    arguments = operator.schema.arguments
    tensors = [a for a in arguments if a.type.is_tensor]
    plain = [a.name for a in tensors if not a.type.is_list and not a.type.optional]
    lines = ["overloaded = ()"]
    if tensors:
        everything = "".join(f"{'*' if a.type.is_list else ''}{_given(a)}, " for a in tensors)
        certain = len(plain) == len(tensors)
        condition = f"if ({' | '.join(f'{n}._keys' for n in plain)}) & PYTHON: " if certain else ""
        lines.append(f"{condition}overloaded = with_torch_dispatch(({everything}))")
    takes_numbers = operator.schema.name.removesuffix("_") in NUMBERS_AS_TENSORS or scalar_form(operator) is not None
    for a in arguments:
        lines += _conversion_lines(a, takes_numbers)
    lines += _scalar_form_lines(operator) + _factory_lines(arguments)
    lines += _args_lines([a for a in arguments if not a.keyword_only])
    lines.append("kwargs = {}")
    for a in arguments:
        if a.keyword_only:
            condition = f"if not ({_is_default(a)}): " if a.has_default else ""
            lines.append(f"{condition}kwargs[{a.name.removesuffix('_')!r}] = {a.name}")
    parameters = ", ".join(a.name for a in arguments)
    lines.append("result = call(func, overloaded, args, kwargs)")
    one_tensor = [(r.type.base, r.type.is_list) for r in operator.schema.returns] == [("Tensor", False)]
    check = "result if isinstance(result, TensorImpl) else " if one_tensor else ""
    lines.append(f"return {check}returned(result)")
    return f"def {operator.schema.name}_python({parameters}):\n    " + "\n    ".join(lines) + "\n"


def _given(a):
    return f"({a.name} or ())" if a.type.is_list else a.name


def _conversion_lines(a, takes_numbers):
    """Lines that make an argument what Python code expects: lists, numbers, nothing of the kernels' own."""
    name, kind = a.name, a.type
    if kind.is_tensor and not kind.is_list:
        return [f"if {name}._keys & WRAPPED_NUMBER: {name} = number_in({name})"] if takes_numbers else []
    if kind.is_list:
        size = f", {kind.size}" if kind.size else ""
        return [f"if type({name}) is not list: {name} = as_list({name}{size})"]
    if kind.base == "float":
        return [f"if type({name}) is int: {name} = float({name})"]
    return []


def _scalar_form_lines(operator):
    """`x > 1` is bound to `gt.Tensor` here, with the number in a tensor. In PyTorch: to `gt.Scalar`, which Python code sees."""
    schema = operator.schema
    if scalar_form(operator) is None:
        return []
    first, other = [a.name for a in schema.arguments[:2]]
    return [
        f"if not isinstance({other}, TensorImpl): "
        f"return returned(call(scalar_func, overloaded, ({first}, {other}), {{}}))"
    ]


def scalar_form(operator):
    """The operator whose second operand is a number, if PyTorch's parser would choose it for one; else None."""
    schema = operator.schema
    if schema.overload != "Tensor" or schema.name.removesuffix("_") in NUMBERS_AS_TENSORS or len(schema.arguments) != 2:
        return None
    if not all(a.type.is_tensor and not a.type.is_list for a in schema.arguments):
        return None
    return dispatcher.registry.get(f"aten::{schema.name}.Scalar")


# The operators that take a number in a tensor's place. In PyTorch: `should_allow_numbers_as_tensors`.
NUMBERS_AS_TENSORS = set("add sub subtract mul multiply div divide true_divide floor_divide copy to _to_copy".split())


def _factory_lines(arguments):
    """Lines for `device` and `pin_memory`, which PyTorch's bindings of factories always hand on."""
    names = {a.name for a in arguments}
    if "pin_memory" not in names or not names.isdisjoint(("non_blocking", "indices")):
        return []
    lines = ["if pin_memory is None and layout is None: pin_memory = False"]
    if not any(a.type.is_tensor for a in arguments):
        lines.append("if device is None: device = cpu")
    return lines


def _args_lines(positional):
    """`args = (…)` without the last ones that have their default."""
    names = [a.name for a in positional]
    lines, indent = [f"args = ({''.join(f'{n}, ' for n in names)})"], ""
    for count in reversed(range(len(positional))):
        a = positional[count]
        if not a.has_default:
            break
        lines.append(f"{indent}if {_is_default(a)}:")
        indent += "    "
        lines.append(f"{indent}args = ({''.join(f'{n}, ' for n in names[:count])})")
    return lines


def _is_default(a):
    """The text of the question whether an argument has its default: a value of the same type."""
    default = default_in_python(a)
    if default is None or isinstance(default, bool):
        return f"{a.name} is {default}"
    if type(default) in (int, float, str):
        return f"type({a.name}) is {type(default).__name__} and {a.name} == {default!r}"
    return f"{a.name} == default_of_{a.name}"


def default_in_python(argument):
    """The default as Python code is given it: a list for `int[2] x=0`."""
    default = default_of(argument)
    return list(default) if argument.type.is_list and default is not None else default


def kernel_names(operator):
    """What the text of a Python kernel refers to."""
    return {
        "func": op_overload(operator),
        "scalar_func": op_overload(scalar_form(operator)) if scalar_form(operator) else None,
        "TensorImpl": TensorImpl,
        "cpu": cpu,
        "PYTHON": PYTHON,
        "WRAPPED_NUMBER": WRAPPED_NUMBER,
        "with_torch_dispatch": with_torch_dispatch,
        "number_in": number_in,
        "as_list": as_list,
        "returned": result_check(operator.schema),
    } | {f"default_of_{a.name}": default_in_python(a) for a in operator.schema.arguments if a.has_default}


def number_in(t):
    """The Python number that was wrapped in a tensor."""
    return t._creation


def as_list(value, size=None):
    """A list argument as a new list; one number stands for `size` of them."""
    if value is None:
        return None
    return list(value) if isinstance(value, (list, tuple)) else [value] * (size or 1)


# ------------------------------------------------------------------------------------------------- who is asked


def with_torch_dispatch(tensors):
    """The first tensor of each class that has a `__torch_dispatch__`; subclasses before their base classes."""
    return one_of_each_class([t for t in tensors if t is not None and key_set(t) & PYTHON])


def call_python(func, overloaded, args, kwargs):
    """What the topmost mode returns, or the first class that does not return NotImplemented.

    While they run, the keys above Python are excluded: autograd has done its part when the call comes here.
    """
    modes, on_entry, grad_mode = mode_tls.modes, mode_tls.on_entry, tls.grad_mode
    before = included, excluded, mask = tls.included, tls.excluded, tls.mask
    mode_tls.on_entry = before
    try:
        if modes:
            mode = modes.pop()
            tls.included = included = included if modes else included & ~PYTHON_KEYS
            tls.excluded = excluded = excluded | ABOVE_PYTHON
            inside = (mask, included, excluded, tls.observers, tls.function_modes)
            tls.mask = _masks_inside.get(inside) or mask_inside(inside)
            try:
                types = tuple([type(t) for t in overloaded])
                rule = rules and rules.get((func._name, type(mode)))
                result = (
                    rule(mode, func, types, args, kwargs)
                    if rule
                    else mode.__torch_dispatch__(func, types, args, kwargs)
                )
            finally:
                put_back(mode)
            if result is not NotImplemented:
                return result
        else:
            mode = None
        tls.included, tls.excluded = before[0], excluded | ABOVE_PYTHON
        update_mask()
        return ask_classes(func, overloaded, args, kwargs, mode)
    finally:
        mode_tls.on_entry = on_entry
        tls.included, tls.excluded, tls.mask = before
        if not modes or tls.grad_mode is not grad_mode:
            update_mask()


def call_pre_dispatch(func, overloaded, args, kwargs):
    """What the mode of the key PreDispatch returns. While it runs, it sees nothing."""
    mode = set_mode_pre_dispatch(None)
    try:
        return mode.__torch_dispatch__(func, tuple([type(t) for t in overloaded]), args, kwargs)
    finally:
        set_mode_pre_dispatch(mode)


_masks_inside = {}  # what the mask inside a mode follows from -> that mask


def mask_inside(state):
    """The mask of this thread inside a mode's `__torch_dispatch__`, kept for the next call."""
    update_mask()
    _masks_inside[state] = tls.mask
    return tls.mask


# Operator -> the object `ops.NAMESPACE.NAME.OVERLOAD`, which is what Python code is given as `func`. `_ops.py`, which is above
# this room, puts its function here.
op_overload = None

# (full name of an operator, class of modes or tensors) -> function that is asked in place of the class's `__torch_dispatch__`, with
# the mode or the class as its first argument: `torch.library.register_torch_dispatch`.
rules = {}


def ask_classes(func, overloaded, args, kwargs, mode, name=None):
    """What the first class returns that implements the call. Raises TypeError if none does. mode: the one that was asked before.

    In PyTorch: `handle_torch_function_no_python_arg_parser`.
    """
    types = tuple([type(t) for t in overloaded])
    for t in overloaded:
        handler = t.__torch_dispatch__
        if rules and (func._name, type(t)) in rules:
            handler = functools.partial(rules[func._name, type(t)], type(t))
        if handler is not _disabled_torch_dispatch_impl:
            result = handler(func, types, args, kwargs)
            if result is not NotImplemented:
                return result
    raise TypeError(multiple_dispatch_failed(name or f"torch._ops.{func}", mode, overloaded))


def put_back(mode):
    """The mode that has answered is at its place again."""
    key = kind_of(mode)
    if key is None:
        mode_tls.modes.append(mode)
    else:
        set_mode(mode, key)


def nobody_answered(error):
    """Whether an error is that of `ask_classes`: Python's own infix operators then ask the other operand."""
    return str(error).startswith("Multiple dispatch failed for 'torch._ops.")


def multiple_dispatch_failed(name, mode, overloaded):
    who = [] if mode is None else [f"  - mode object {mode!r}\n"]
    who += [f"  - tensor subclass {type(t)!r}\n" for t in overloaded]
    return (
        f"Multiple dispatch failed for '{name}'; all __torch_dispatch__ handlers returned NotImplemented:\n\n"
        + "".join(who)
        + "\nFor more information, try re-running with TORCH_LOGS=not_implemented"
    )


# ---------------------------------------------------------------------------------------------- what is returned


def result_check(schema):
    """The function that makes a Python result the operator's. It raises RuntimeError for what does not fit.

    In PyTorch: `pushPyOutToStack`.
    """
    returns = schema.returns
    if not returns:
        return _nothing(schema)
    if len(returns) == 1:
        return _CHECKS.get((returns[0].type.base, returns[0].type.is_list), lambda value: value)
    from .register_dispatch_key import returned as named
    from .register_dispatch_key import returned_out

    operator = dispatcher.registry[schema.full_name]
    checks = [_CHECKS.get((r.type.base, r.type.is_list), lambda value: value) for r in returns]

    def several(values):
        if not isinstance(values, (tuple, list, str)):
            raise RuntimeError(f"Object of type '{type(values).__name__}' is not an instance of 'sequence'")
        outs = [check(value) for check, value in zip(checks, values)]
        if len(outs) < len(checks):
            raise RuntimeError("Expected Tensor but got None")
        result = named(operator, outs)
        return returned_out(type(result), outs) if schema.is_out else result

    return several


def _nothing(schema):
    def nothing(value):
        if value is not None:
            raise RuntimeError(
                f"Expected __torch_dispatch__ for {schema.full_name} to return None but it returned something else instead."
            )

    return nothing


def _tensor(value):
    if value is None or isinstance(value, TensorImpl):
        return value
    raise RuntimeError(f"Unable to cast {value} to Tensor")


def _tensors(values):
    fits = isinstance(values, (tuple, list)) and all([isinstance(v, TensorImpl) for v in values])
    return tuple(values) if fits else _cast_fails(values)


def _scalar(value):
    if isinstance(value, (int, float, complex)):
        return value
    raise RuntimeError(f"Cannot cast {value} to number")


def _bool(value):
    return bool(value) if isinstance(value, (bool, int, float)) else _cast_fails(value)


def _cast_fails(value):
    raise RuntimeError(
        f"Unable to cast Python instance of type {type(value)} to C++ type '?' (#define PYBIND11_DETAILED_ERROR_MESSAGES or "
        "compile in debug mode for details)"
    )


_CHECKS = {("Tensor", False): _tensor, ("Tensor", True): _tensors, ("Scalar", False): _scalar, ("bool", False): _bool}


# --------------------------------------------------------------------------------- detach outside the dispatcher


def python_detach(t):
    """What a mode or the tensor's class returns for `detach`, or None if neither is asked.

    In PyTorch: `TensorImpl::shallow_copy_and_detach`, through which `x.data`, saved results and `nn.Parameter` go.
    It is no call of an operator, so no key is excluded.
    """
    if not seen_by_python(t):
        return None
    func, modes, mode, result = op_overload(dispatcher.registry["aten::detach"]), mode_tls.modes, None, NotImplemented
    if modes:
        mode = pop()
        try:
            result = mode.__torch_dispatch__(func, (type(t),), (t,), {})
        finally:
            push(mode)
    if result is NotImplemented:
        result = ask_classes(func, [t], (t,), {}, mode, "torch.ops.aten.detach")
    if not isinstance(result, TensorImpl):
        raise RuntimeError(f"detach returned invalid type {type(result).__name__}, expected Tensor")
    return result


dispatcher.set_fallback(PYTHON, make_python_kernel, written=True)
dispatcher.set_fallback(PRE_DISPATCH, make_pre_dispatch_kernel, written=True)
