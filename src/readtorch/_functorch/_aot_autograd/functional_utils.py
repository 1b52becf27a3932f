"""Questions about FunctionalTensors, and views made anew. In PyTorch: `torch/_functorch/_aot_autograd/functional_utils.py`."""

import readtorch
from readtorch._subclasses.functional_tensor import FunctionalTensor
from readtorch._tensor import Tensor
from readtorch.c10.sym_int import by_expr
from readtorch.c10.tensor_impl import storage_impl
from readtorch.csrc.autograd.gen_variable_type import set_differentiable
from readtorch.csrc.autograd.node import NotImplemented as NotImplementedNode


def to_fun(t, requires_grad=None):
    """The FunctionalTensor of a tensor, which requires grad as that does, or as is said. Anything else as it is.

    One that requires grad is no leaf: a function may write to its inputs here, and the copies that will be written to are no leaves.
    """
    if not isinstance(t, Tensor):
        return t
    functional = FunctionalTensor.to_functional(t)
    if t.requires_grad if requires_grad is None else requires_grad:
        node = NotImplementedNode(())
        node.message = "Cannot backprop through mirrored meta, file a bug in PyTorch"
        set_differentiable(node, functional)
    return functional


def from_fun(t):
    """The value of a FunctionalTensor, up to date. Anything else as it is."""
    return t.from_functional() if isinstance(t, FunctionalTensor) else t


def has_data_mutation(t):
    return isinstance(t, Tensor) and t.elem.storage.mutations > 0


def are_all_mutations_under_no_grad_or_inference_mode(t):
    storage = t.elem.storage
    return storage.mutations <= storage.mutations_during_no_grad


def has_metadata_mutation(f_arg, arg):
    """Whether a tensor sees its memory otherwise than when the function was called."""
    return isinstance(arg, Tensor) and metadata_key(from_fun(f_arg)) != metadata_key(arg)


def storage_of(t):
    """What tells the storages of tensors apart, as long as they live."""
    return id(storage_impl(t))


def metadata_key(t):
    """How a tensor sees its memory: tensors of one storage with the same key are the same numbers."""
    sizes, strides = (tuple(map(by_expr, numbers)) for numbers in (t.shape, t.stride()))
    return sizes, strides, by_expr(t.storage_offset()), t.dtype


def gen_alias_from_base(base, target, target_requires_grad, view_metas):
    """The view of `base` that an output is.

    target: a tensor that sees memory as the view shall. view_metas: the views that lead to it, if they are known: they are made
    again; else, or if they have sizes of the trace, `as_strided` makes it.
    """
    if view_metas is not None and not any(meta.has_symbolic_inputs for meta in view_metas):
        out = base
        for meta in view_metas:
            out = meta.forward(out)
        if out.shape != target.shape:
            raise AssertionError(
                f"incorrect out shape after application of ViewMeta sequence: {tuple(out.shape)} (actual) vs "
                f"{tuple(target.shape)} (expected)"
            )
        return with_grad_of_target(out, base, target_requires_grad)
    if base.is_complex() != target.is_complex():
        base = readtorch.view_as_complex(base) if target.is_complex() else readtorch.view_as_real(base)
    out = base.as_strided(target.size(), target.stride(), target.storage_offset())
    out = with_grad_of_target(out, base, target_requires_grad)
    return out if out.dtype == target.dtype else out.view(target.dtype)


def with_grad_of_target(out, base, requires_grad):
    if base.requires_grad and not requires_grad:
        return out.detach()
    if not base.requires_grad and requires_grad:
        out.requires_grad_(True)
    return out
