"""The Autograd kernel of a custom operator: an `autograd.Function` whose backward is what `register_autograd` was given.

In PyTorch: `torch/_library/autograd.py`. Explained in the chapter "One operator call".
"""

from dataclasses import dataclass

from readtorch import _C, autograd
from readtorch._tensor import Tensor
from readtorch.utils import _pytree

from . import utils


@dataclass
class Info:
    """What `register_autograd` was given. A CustomOpDef has the same two fields, and may get others later."""

    _backward_fn: object
    _setup_context_fn: object


@dataclass
class Metadata:
    """What rides along as the last argument of a Function: the call's key set, and its keyword-only arguments."""

    keyset: object
    keyword_only_args: dict


def make_autograd_impl(op, info):
    """The function (keyset, *args, **keyword_only_args) for the Autograd key of an OpOverload."""
    Generated = _function_class(op, info)

    def autograd_impl(keyset, *args, **keyword_only_args):
        metadata = Metadata(keyset, keyword_only_args)
        if not autograd.is_grad_enabled() or not _any_requires_grad(
            args, keyword_only_args if utils.is_out(op) else {}
        ):
            return _run_below(op, args, metadata)
        if utils.is_out(op):
            raise RuntimeError(
                f"{op._opname}(): functions with out=... arguments don't support automatic differentiation, but one of the "
                "arguments requires grad."
            )
        return Generated.apply(*args, metadata)

    return autograd_impl


def _any_requires_grad(args, kwargs):
    return any(t.requires_grad for t in utils.iter_tensors(args, kwargs))


def _run_below(op, args, metadata):
    """The operator's kernel below Autograd."""
    with _C._AutoDispatchBelowAutograd():
        return op.redispatch(metadata.keyset & _C._after_autograd_keyset, *args, **metadata.keyword_only_args)


def _function_class(op, info):
    """The subclass of `autograd.Function` for one operator."""

    def forward(ctx, *args):
        *args, metadata = args
        result = _run_below(op, args, metadata)
        if info._setup_context_fn:
            with _C._AutoDispatchBelowAutograd():
                _setup_context(op, info, ctx, args, metadata, result)
        return result

    def backward(ctx, *grads):
        if not info._backward_fn:
            raise RuntimeError(
                f"Trying to backward through {op} but no autograd formula was registered. Please use register_autograd to add "
                "one."
            )
        needed = ctx.needs_input_grad
        ctx.needs_input_grad = needed[:-1]  # the last argument is the Metadata
        try:
            result = info._backward_fn(ctx, *grads)
        finally:
            ctx.needs_input_grad = needed
        return (*result, None) if isinstance(result, tuple) else (result, None)

    name = f"GeneratedBackwardFor_{op._namespace}_{op._opname}_{op._overloadname}"
    made = type(name, (autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})
    has_lists = any(utils.is_tensorlist_like_type(a.type) for a in (*op._schema.arguments, *op._schema.returns))
    return supports_tensorlist(made) if has_lists else made


def _setup_context(op, info, ctx, args, metadata, result):
    args, kwargs = utils.fill_defaults(op._schema, args, metadata.keyword_only_args)
    given = {"keyword_only_inputs": kwargs} if utils.has_kwarg_only_args(op._schema) else {}
    info._setup_context_fn(ctx=ctx, inputs=args, **given, output=result)


# ------------------------------------------------------------------------------------------------- lists of tensors


@dataclass
class TensorListMetadata:
    """How the flat arguments and results of a Function are put together."""

    input_spec: object
    output_spec: object = None
    result_is_tuple: bool = None


def supports_tensorlist(cls):
    """Makes a Function, whose inputs and outputs are tensors, one whose inputs and outputs may be lists of tensors."""
    flat_forward, flat_backward, flat_apply = cls.forward, cls.backward, cls.apply

    def forward(ctx, *args):
        *args, metadata = args
        if not isinstance(metadata, TensorListMetadata):
            raise NotImplementedError(
                "NYI: calling supports_tensorlist autograd.Function.forward directly. You should probably be calling .apply "
                "instead. Please file an issue if not."
            )
        result = flat_forward(ctx, *_pytree.tree_unflatten(args, metadata.input_spec))
        metadata.result_is_tuple = isinstance(result, tuple)
        outputs, metadata.output_spec = _pytree.tree_flatten(
            result if metadata.result_is_tuple else (result,), not_list_of_tensor
        )
        if hasattr(ctx, "_pt_metadata"):
            raise RuntimeError("Please don't set ctx._pt_metadata; PyTorch uses it to store info")
        ctx._pt_metadata = metadata
        return tuple(outputs)

    def backward(ctx, *grads):
        if not hasattr(ctx, "_pt_metadata"):
            raise NotImplementedError(
                "NYI: calling supports_tensorlist autograd.Function.backward directly. This will automatically get called by "
                "PyTorch autograd. Please file an issue if you need this."
            )
        metadata = ctx._pt_metadata
        needed = ctx.needs_input_grad
        ctx.needs_input_grad = _pytree.tree_unflatten(list(needed[:-1]), metadata.input_spec)
        try:
            grad_inputs = flat_backward(ctx, *_pytree.tree_unflatten(list(grads), metadata.output_spec))
        finally:
            ctx.needs_input_grad = needed
        return _flat_gradients(grad_inputs, metadata.input_spec)

    def apply(*args):
        flat_args, input_spec = _pytree.tree_flatten(args, is_leaf=not_list_of_tensor)
        metadata = TensorListMetadata(input_spec)
        result = _pytree.tree_unflatten(list(flat_apply(*flat_args, metadata)), metadata.output_spec)
        return result if metadata.result_is_tuple else result[0]

    cls.forward, cls.backward, cls.apply = staticmethod(forward), staticmethod(backward), staticmethod(apply)
    return cls


def _flat_gradients(grad_inputs, input_spec):
    """The gradients in a row. Where the input is a list of tensors the gradient is one, too, of tensors or None."""
    grad_inputs = grad_inputs if isinstance(grad_inputs, tuple) else (grad_inputs,)
    flat, spec = _pytree.tree_flatten(grad_inputs, not_list_of_optional_tensor)
    if spec != input_spec:
        raise RuntimeError(
            "Expected the return from backward to be of the same structure as the inputs. Got: "
            f"{spec} (return from backward), {input_spec} (inputs)"
        )
    return (*flat, None)


def not_list_of_tensor(tree):
    """For trees of arguments: is this one leaf?"""
    return not isinstance(tree, tuple) and (not isinstance(tree, list) or any(not isinstance(v, Tensor) for v in tree))


def not_list_of_optional_tensor(tree):
    """For trees of gradients: is this one leaf?"""
    return not isinstance(tree, tuple) and (
        not isinstance(tree, list) or any(v is not None and not isinstance(v, Tensor) for v in tree)
    )
