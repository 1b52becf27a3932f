"""Tools beside the core: hooks, checkpointing, modes. In PyTorch: `torch/utils/__init__.py`."""

import copyreg
import weakref

__all__ = ["swap_tensors"]


def swap_tensors(t1, t2) -> None:
    """Exchange everything that two tensors are, class included; who holds `t1` then holds what was `t2`.

    Raises RuntimeError if there are weak references to one of them, or if their classes have different slots.
    See `readtorch.__future__`.
    """
    for name, t in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(t):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    slots = set(copyreg._slotnames(type(t1)))
    if slots != set(copyreg._slotnames(type(t2))):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    _poison_accumulator(t1)
    _poison_accumulator(t2)
    # in PyTorch: the slots are those of Python alone; the rest is one exchange of two TensorImpl
    for name in ("__class__", "__dict__", *slots):
        _swap_attribute(t1, t2, name)


def _swap_attribute(t1, t2, name):
    values = [getattr(t, name, _ABSENT) for t in (t1, t2)]
    for t, value in zip((t2, t1), values):
        if value is not _ABSENT:
            setattr(t, name, value)
        elif hasattr(t, name):
            delattr(t, name)


_ABSENT = object()


def _poison_accumulator(t):
    """A graph from before the swap may still want to add a gradient to `t`, by then another tensor."""
    # in PyTorch: a reference count tells of graphs that have saved `t`, too; these are refused at once
    node = t._autograd_meta.grad_accumulator() if t._autograd_meta is not None else None
    if node is not None:
        node.register_prehook(_refuse_to_accumulate)


def _refuse_to_accumulate(grad_outputs):
    raise RuntimeError(
        "Trying to execute AccumulateGrad node that was poisoned by swap_tensors "
        "this can happen when you try to run backward on a tensor that was swapped. "
        "For a module m with `torch.__future__.set_swap_module_params_on_conversion(True)` "
        "you should not change the device or dtype of the module (e.g. `m.cpu()` or `m.half()`) "
        "between running forward and backward. To resolve this, please only change the "
        "device/dtype before running forward (or after both forward and backward)."
    )
