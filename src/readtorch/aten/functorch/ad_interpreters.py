"""The interpreters of `grad` and `vjp`, and of `jvp`: autograd does its work on wrappers of their level.

A call comes here from the front mode. Arguments that have a history of another level are wrapped, so that this level sees none;
then the operator's Autograd kernel runs, as outside of transforms. What it calls below is the back mode's kernel, which unwraps
the arguments, sends the call to the next interpreter and wraps what comes back.

In PyTorch: `aten/src/ATen/functorch/ADInterpreters.cpp`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from readtorch.aten.codegen import compile_function
from readtorch.aten.dispatcher import NO_TENSOR_KEYS
from readtorch.aten.functions import at
from readtorch.aten.operator_entry import set_fallback
from readtorch.aten.register_dispatch_key import returned
from readtorch.c10.dispatch_key import (
    ADINPLACEORVIEW,
    AUTOGRAD,
    BACKENDS,
    FUNCTORCH_BACK_MODE,
    GRAD_FACTS,
    GRAD_WRAPPER,
    TANGENT,
)
from readtorch.c10.local_dispatch_key_set import set_forward_grad_mode, tls, update_mask
from readtorch.c10.tensor_impl import TensorImpl

from .interpreter import Interpreter, TransformType
from .tensor_wrapper import make_tensor_wrapper, unwrap_if_dead

FOLLOWED_FACTS = GRAD_FACTS | TANGENT  # with one of these a tensor has something to say about derivatives
LIFTED = FOLLOWED_FACTS | GRAD_WRAPPER  # it may have to be wrapped, or unwrapped if its wrapper is dead
KEPT = BACKENDS | AUTOGRAD | ADINPLACEORVIEW | FOLLOWED_FACTS


class _AutogradInterpreter(Interpreter):
    __slots__ = ()

    def process(self, operator, keys, arguments):
        lift = lifts.get(operator)
        if lift is None:
            lift = lifts[operator] = make_lift(operator)
        return lift(self, *arguments)

    def lift(self, t):
        """`t` as a tensor of this level if derivatives go through it: in PyTorch `materializeGradWrappers`."""
        t = unwrap_if_dead(t)
        return t if is_of(t, self) or not t._keys & FOLLOWED_FACTS else make_tensor_wrapper(t, self)


class GradInterpreter(_AutogradInterpreter):
    """prev_grad_mode: whether gradients were recorded around the transform, which decides it for the levels below.

    In PyTorch: NOTE [grad and vjp interaction with no_grad] in `torch/_functorch/eager_transforms.py`.
    """

    __slots__ = ("prev_grad_mode",)
    kind = TransformType.Grad

    def __init__(self, prev_grad_mode):
        super().__init__()
        self.prev_grad_mode = prev_grad_mode

    def send_below(self, call, arguments):
        if self.prev_grad_mode or not tls.grad_mode:
            return Interpreter.send_below(self, call, arguments)
        tls.grad_mode = False
        update_mask()
        try:
            return Interpreter.send_below(self, call, arguments)
        finally:
            tls.grad_mode = True
            update_mask()


class JvpInterpreter(_AutogradInterpreter):
    """prev_fwd_grad_mode: whether tangents were followed around the transform, which decides it for the levels below."""

    __slots__ = ("prev_fwd_grad_mode",)
    kind = TransformType.Jvp

    def __init__(self, prev_fwd_grad_mode):
        super().__init__()
        self.prev_fwd_grad_mode = prev_fwd_grad_mode

    def send_below(self, call, arguments):
        if self.prev_fwd_grad_mode or not tls.forward_grad_mode:
            return Interpreter.send_below(self, call, arguments)
        set_forward_grad_mode(False)
        try:
            return Interpreter.send_below(self, call, arguments)
        finally:
            set_forward_grad_mode(True)


def is_of(t, layer):
    """Whether a tensor is a wrapper of this transform."""
    return bool(t._keys & GRAD_WRAPPER) and t._storage_impl.layer is layer


# ------------------------------------------------------------------------------------------- towards autograd

lifts = {}  # operator -> what makes its arguments those of a level and calls the Autograd kernel


def make_lift(operator):
    names = {
        "table": operator.table,
        "tls": tls,
        "LIFTED": LIFTED,
        "GRAD_WRAPPER": GRAD_WRAPPER,
        "KEPT": KEPT,
        "BACK_MODE": FUNCTORCH_BACK_MODE,
        "NO_TENSOR_KEYS": NO_TENSOR_KEYS,
        "lift": _AutogradInterpreter.lift,
        "check_captured": check_captured,
        "operator": operator,
    }
    return compile_function(f"{operator.schema.name}_lift", lift_source(operator.schema), names)


def lift_source(schema):
    """The text of what calls an operator's Autograd kernel at a level. For `mul.Tensor` it returns:

        def mul_lift(layer, self, other):
            held = self._keys
            if held & LIFTED and not (held & GRAD_WRAPPER and self._storage_impl.layer is layer): self = lift(layer, self)
            keys = self._keys
            held = other._keys
            if held & LIFTED and not (held & GRAD_WRAPPER and other._storage_impl.layer is layer): other = lift(layer, other)
            keys |= other._keys
            return table[keys & KEPT & tls.mask | BACK_MODE](self, other)

    A tensor without a history needs no wrapper: autograd has nothing to say about it. In PyTorch every argument gets one.
    """
    parameters = ", ".join(a.name for a in schema.arguments)
    tensors = [a for a in schema.arguments if a.type.is_tensor]
    lines = ["check_captured(operator, layer, self)"] if schema.is_inplace and not tensors[0].type.is_list else []
    if not tensors or tensors[0].type.is_list or tensors[0].type.optional:
        lines.append(f"keys = {'0' if tensors else 'NO_TENSOR_KEYS'}")
    for a in tensors:
        lines += _lift_lines(a, "=" if a is tensors[0] else "|=")
    lines.append(f"return table[keys & KEPT & tls.mask | BACK_MODE]({parameters})")
    return f"def {schema.name}_lift(layer{', ' if parameters else ''}{parameters}):\n    " + "\n    ".join(lines) + "\n"


def _lift_lines(a, assign):
    name = a.name
    if a.type.is_list:
        some = f"{name} is not None" if a.type.optional else "True"
        return [
            f"if {some}:",
            f"    {name} = type({name})([lift(layer, t) if t is not None and t._keys & LIFTED else t for t in {name}])",
            f"    for t in {name}:",
            "        if t is not None: keys |= t._keys",
        ]
    at_home = f"held & GRAD_WRAPPER and {name}._storage_impl.layer is layer"
    lines = [f"held = {name}._keys", f"if held & LIFTED and not ({at_home}): {name} = lift(layer, {name})"]
    lines.append(f"keys {'|=' if a.type.optional else assign} {name}._keys")
    return [f"if {name} is not None:"] + [f"    {line}" for line in lines] if a.type.optional else lines


def check_captured(operator, layer, t):
    """RuntimeError for a write to a tensor that the function found outside: gradients could not follow it."""
    while t._keys & GRAD_WRAPPER and not t._storage_impl.layer.alive:
        t = t._storage_impl.value
    if not is_of(t, layer):
        raise RuntimeError(
            f"During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation "
            f"({operator.name}) that would mutate a captured Tensor. This is not supported; please rewrite the function being "
            "transformed to explicitly accept the mutated Tensor(s) as inputs."
        )


# ------------------------------------------------------------------------------------------------ below autograd


def make_back_kernel(operator, keys):
    """The back mode's kernel: to the next interpreter and back."""
    names = {
        "tls": tls,
        "GRAD_WRAPPER": GRAD_WRAPPER,
        "call": _TANGENTS_STAY.get(operator.name, operator.call),
        "wrap": make_tensor_wrapper,
        "wrap_results": wrap_results,
        "unwrapped_list": unwrapped_list,
        "operator": operator,
    }
    return compile_function(f"{operator.schema.name}_back", back_source(operator.schema), names)


set_fallback(FUNCTORCH_BACK_MODE, make_back_kernel, written=True)

# The making of duals is this level's affair: the levels below are asked for another tensor over the same memory.
_TANGENTS_STAY = {
    "aten::_make_dual": lambda primal, tangent, level: at.alias(primal),
    "aten::_fw_primal": lambda t, level: at.alias(t),
}


def back_source(schema):
    """The text of a back mode's kernel. For `mul.Tensor` it returns:

    def mul_back(self, other):
        layer = tls.functorch[-1]
        value_self = self._storage_impl.value if self._keys & GRAD_WRAPPER and self._storage_impl.layer is layer else self
        value_other = other._storage_impl.value if other._keys & GRAD_WRAPPER and other._storage_impl.layer is layer else other
        result = layer.send_below(call, (value_self, value_other,))
        return wrap(result, layer)
    """
    parameters = ", ".join(a.name for a in schema.arguments)
    lines = ["layer = tls.functorch[-1]"]
    given = []
    for a in schema.arguments:
        given.append(f"value_{a.name}" if a.type.is_tensor else a.name)
        if a.type.is_tensor and a.type.is_list:
            lines.append(f"value_{a.name} = unwrapped_list({a.name}, layer)")
        elif a.type.is_tensor:
            wrapped = f"{a.name}._keys & GRAD_WRAPPER and {a.name}._storage_impl.layer is layer"
            wrapped = f"{a.name} is not None and {wrapped}" if a.type.optional else wrapped
            lines.append(f"value_{a.name} = {a.name}._storage_impl.value if {wrapped} else {a.name}")
    lines.append(f"result = layer.send_below(call, ({''.join(f'{g}, ' for g in given)}))")
    return f"def {schema.name}_back({parameters}):\n    " + "\n    ".join(lines + _result_lines(schema)) + "\n"


def _result_lines(schema):
    if schema.is_inplace and not schema.arguments[0].type.is_list:
        return ["self._array = value_self._array", "return self" if schema.returns else "return None"]
    outs = [a.name for a in schema.arguments if a.type.writes and a.keyword_only]
    if outs and not any(a.type.is_list for a in schema.arguments if a.name in outs):
        refresh = [f"{name}._array = value_{name}._array" for name in outs]
        return refresh + [f"return {outs[0]}" if len(outs) == 1 else f"return type(result)(({', '.join(outs)},))"]
    if len(schema.returns) == 1 and schema.returns[0].type.is_tensor and not schema.returns[0].type.is_list:
        return ["return wrap(result, layer)"]
    return ["return wrap_results(operator, result, layer)"]


def unwrapped_list(tensors, layer):
    if tensors is None:
        return None
    return type(tensors)([t._storage_impl.value if t is not None and is_of(t, layer) else t for t in tensors])


def wrap_results(operator, results, layer):
    """Results of any kind with their tensors wrapped."""
    if isinstance(results, TensorImpl):
        return make_tensor_wrapper(results, layer)
    if not isinstance(results, (tuple, list)):
        return results
    wrapped = [make_tensor_wrapper(r, layer) if isinstance(r, TensorImpl) else r for r in results]
    return (
        wrapped if type(results) is list else tuple(wrapped) if type(results) is tuple else returned(operator, wrapped)
    )
