"""A mode that runs operators on fake tensors, too, and compares what comes out.

In PyTorch: `torch/_subclasses/fake_utils.py`. Explained in the chapter "Modes, subclasses, fake tensors".
"""

import warnings

from readtorch._library.utils import storage_of
from readtorch._tensor import Tensor
from readtorch.aten.tags import Tag
from readtorch.utils import _pytree as pytree
from readtorch.utils._python_dispatch import TorchDispatchMode

from .fake_tensor import FakeTensorMode, MetadataMismatchError, UnsupportedFakeTensorException

# What comes out depends on the data, or the input is changed.
_NOT_COMPARED = {Tag.dynamic_output_shape, Tag.inplace_view, Tag.data_dependent_output}
_NOT_CALLED = {"aten::lift_fresh", "aten::lift_fresh_copy", "aten::set_.source_Storage_storage_offset"}


class CrossRefFakeMode(TorchDispatchMode):
    """`with CrossRefFakeMode():` an operator whose fake kernel gives other sizes, strides, dtypes or devices than its real one
    raises MetadataMismatchError. ignore_op_fn(op): whether not to look at an operator.
    """

    def __init__(self, ignore_op_fn=None, *, check_strides=True, check_aliasing=True, only_check_ops_with_meta=True):
        super().__init__()
        self.ignore_op_fn = ignore_op_fn or (lambda fn: False)
        self.check_strides, self.check_aliasing = check_strides, check_aliasing

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        fake = self._on_fake_tensors(func, args, kwargs) if self._is_compared(func) else None
        real = func(*args, **kwargs)
        if fake is not None:
            context = f"When comparing the output of {func} on FakeTensor and concrete Tensors, found"
            self._compare(context, (real, (args, kwargs)), fake)
        return real

    def _is_compared(self, func):
        return not (self.ignore_op_fn(func) or func._name in _NOT_CALLED or _NOT_COMPARED & {*func.tags})

    def _on_fake_tensors(self, func, args, kwargs):
        """(results, inputs), all fake; None if there is no fake tensor like an input."""
        try:
            with FakeTensorMode() as mode, warnings.catch_warnings():
                inputs = pytree.tree_map_only(Tensor, mode.from_tensor, (args, kwargs))
                return func(*inputs[0], **inputs[1]), inputs
        except UnsupportedFakeTensorException:
            return None

    def _compare(self, context, real, fake):
        outputs = [pytree.tree_leaves(results) for results, _ in (real, fake)]
        counts = [len(leaves) for leaves in outputs]
        if counts[0] != counts[1]:
            raise AssertionError(f"{context} mismatch in number of returns {counts[1]} != {counts[0]}")
        if self.check_aliasing:
            _compare_aliasing(context, real, fake)
        for i, (mine, its) in enumerate(zip(*outputs)):
            if isinstance(mine, Tensor) != isinstance(its, Tensor):
                raise AssertionError(f"{context} mismatched number of tensor outputs")
            if isinstance(mine, Tensor):
                which = f" for output[{i}]" if counts[0] > 1 else ""
                self._compare_tensors(f"{context} mismatched tensor metadata{which}", mine, its)

    def _compare_tensors(self, mismatch, real, fake):
        if real.requires_grad != fake.requires_grad:
            raise MetadataMismatchError(
                f"{mismatch}:  mismatched requires_grad-ness of outputs. This usually means that you have added "
                "autograd support for your operator at a dispatch key other than Autograd, which will lead to problems"
            )
        if real.storage_offset() != fake.storage_offset():
            raise MetadataMismatchError(f"{mismatch}:  mismatched storage offset")
        for what in _differences(real, fake, self.check_strides):
            raise MetadataMismatchError(f"{mismatch}: {what}")


def _differences(real, fake, check_strides):
    """What differs between two tensors, as sentences. In PyTorch: `compare_tensor_meta` in `torch/_prims_common/__init__.py`."""
    if real.shape != fake.shape:
        yield f"Shapes {real.shape} and {fake.shape} are not equal!"
    if real.dtype != fake.dtype:
        yield f"Dtypes {real.dtype} and {fake.dtype} are not equal!"
    if real.device != fake.device and not (real.device.type == fake.device.type == "cuda"):
        yield f"Devices {real.device} and {fake.device} are not equal!"
    strides = real.stride(), fake.stride()
    differing = [i for i, size in enumerate(real.shape) if size > 1 and strides[0][i] != strides[1][i]]
    if check_strides and real.numel() and differing:
        yield f"Stride mismatch! Strides are {strides[0]} and {strides[1]} (mismatched at {differing[0]})!"
    if real.is_conj() != fake.is_conj():
        yield f"Conj mismatch! is_conj is set to {real.is_conj()} and {fake.is_conj()}"
    if real.is_neg() != fake.is_neg():
        yield f"Neg mismatch! is_neg is set to {real.is_neg()} and {fake.is_neg()}"


def _compare_aliasing(context, real, fake):
    for name, question in _QUESTIONS.items():
        mine, its = question(*real), question(*fake)
        if mine != its:
            raise MetadataMismatchError(f"{context} mismatch in {name} check {its} != {mine}")


def _tensors(tree):
    return [t for t in pytree.tree_leaves(tree) if isinstance(t, Tensor)]


def _storages(tree):
    return [storage_of(t) for t in _tensors(tree)]


def outputs_alias_inputs(outputs, inputs):
    return not {*_storages(outputs)}.isdisjoint(_storages(inputs))


def outputs_are_inputs(outputs, inputs):
    return not {*map(id, _tensors(outputs))}.isdisjoint(map(id, _tensors(inputs)))


def output_alias_each_other(outputs, inputs=None):
    storages = _storages(outputs)
    return len({*storages}) < len(storages)


_QUESTIONS = {
    "outputs_alias_inputs": outputs_alias_inputs,
    "outputs_are_inputs": outputs_are_inputs,
    "outputs_alias_each_other": output_alias_each_other,
}
