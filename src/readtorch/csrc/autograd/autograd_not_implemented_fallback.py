"""What Autograd does with operators of torch.library that have no Autograd kernel, and what ADInplaceOrView does with views.

In PyTorch: `torch/csrc/autograd/autograd_not_implemented_fallback.cpp`. Explained in the chapter "One operator call".
"""

import warnings

from readtorch.aten.dispatcher import set_fallback
from readtorch.aten.native_function import below_autograd
from readtorch.aten.register_dispatch_key import tensors_among
from readtorch.c10.dispatch_key import ADINPLACEORVIEW, AUTOGRAD, KEYS, keys_below
from readtorch.c10.local_dispatch_key_set import grad_mode_enabled
from readtorch.c10.tensor_impl import Creation

from .node import Node
from .variable import gradient_edge, mark_view, requires_grad, set_history

_mode = "warn"


def set_autograd_fallback_mode(mode):
    """ "warn": backward through such an operator warns; "nothing": its results do not require grad."""
    global _mode
    if mode == "error":
        raise RuntimeError("NYI: mode='error'")
    if mode not in ("nothing", "warn"):
        raise RuntimeError(f"Unsupported AutogradFallbackMode: {mode}")
    _mode = mode


def get_autograd_fallback_mode():
    return _mode


def warn_not_implemented(name):
    warnings.warn(
        f"{name}: an autograd kernel was not registered to the Autograd key(s) but we are trying to backprop through it. This "
        "may lead to silently incorrect behavior. This behavior is deprecated and will be removed in a future version of "
        "PyTorch. If your operator is differentiable, please ensure you have registered an autograd kernel to the correct "
        "Autograd key (e.g. DispatchKey::Autograd, DispatchKey::CompositeImplicitAutograd). If your operator is not "
        "differentiable, or to squash this warning and use the previous behavior, please register "
        "torch::CppFunction::makeFallthrough() to DispatchKey::Autograd.",
        UserWarning,
        stacklevel=2,
    )


class WarnNotImplemented(Node):
    """The node of an operator without an Autograd kernel: it warns, and has no gradients."""

    __slots__ = ("operator",)

    def apply(self, *grads):
        warn_not_implemented(self.operator)
        return (None,) * len(self._next_edges)


def autograd_fallback(operator, keys, args, kwargs):
    """At Autograd: calls the kernel below, inside which operators are recorded. Results that require grad warn in backward;
    so do those that do not, for they get a node that warns.
    """
    tensors = tensors_among(args)
    below = keys & (keys_below(AUTOGRAD) | ~KEYS)
    if _mode == "nothing" or not grad_mode_enabled() or not any(map(requires_grad, tensors)):
        return operator.redispatch(below, *args)
    node = WarnNotImplemented(tuple(map(gradient_edge, tensors)))
    node.operator = operator.schema.qualified_name
    result = operator.redispatch(below, *args)
    returned = result if isinstance(result, tuple) else (result,)
    outputs = []
    for declared, value in zip(operator.schema.returns, returned):
        for t in tensors_among((value,)):
            if t.is_floating_point() or t.is_complex():
                _follow(t, node, declared.type.writes, outputs)
    node._shape, node._dtype = [t._array.shape for t in outputs], [t._array.dtype for t in outputs]
    return result


def _follow(t, node, is_written, outputs):
    """Makes backward through `t` warn. outputs: the tensors that the node stands behind."""

    def hook(grad):
        warn_not_implemented(node.operator)

    if t.requires_grad:
        t.register_hook(hook)
        if t._is_view() and is_written and t._base.requires_grad:
            t._base.register_hook(hook)
    elif not is_written:
        set_history(t, (node, len(outputs)))
        outputs.append(t)


def inplace_or_view_fallback(operator, keys, args, kwargs):
    """At ADInplaceOrView: calls the kernel below; then what the schema says is written to gets a new version, and the first
    result, if the schema says so, is a view of the first argument.
    """
    returns = operator.schema.returns
    views = [i for i, r in enumerate(returns) if r.type.alias and not r.type.writes]
    viewed = [i for i, a in enumerate(operator.schema.arguments) if a.type.alias and not a.type.writes]
    _check_view_places(views, viewed)
    with below_autograd():
        result = operator.redispatch(keys & (keys_below(ADINPLACEORVIEW) | ~KEYS), *args)
    returned = result if isinstance(result, tuple) else (result,)
    for declared, value in zip(returns, returned):
        for t in tensors_among((value,)) if declared.type.writes else ():
            t._counter[0] += 1
    if viewed:
        creation = Creation.MULTI_OUTPUT_NODE if grad_mode_enabled() else Creation.NO_GRAD_MODE
        for t in tensors_among(returned[:1]):
            mark_view(t, args[0], creation)
    return result


def _check_view_places(views, viewed):
    for places, what in ((views, "output"), (viewed, "input")):
        if len(places) > 1:
            raise RuntimeError(
                f"Fallback ADInplaceOrView kernel expects only a single {what} in the operator schema to have a non-write alias "
                f"annotation (i.e., 'Tensor(a)'). Non-composite functions where multiple {what}s are aliased with "
                f"{'inputs' if what == 'output' else 'outputs'} aren't supported. Please rewrite your function as a composite "
                "function."
            )
    if views + viewed not in ([], [0, 0]):
        raise RuntimeError(
            "Fallback ADInplaceOrView kernel can only create view relationships between the first input and the first output "
            "(the output can be a vector of tensors). Please change the order of your operator's parameters so that this is the "
            "case."
        )


set_fallback(AUTOGRAD, autograd_fallback)
