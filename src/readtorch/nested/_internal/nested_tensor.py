"""`NestedTensor`: a batch of tensors with one dimension of several lengths, side by side in one tensor, without padding.

    values    [a a a b c c]     the entries' elements, along the ragged dimension: a tensor of one dimension less
    offsets   [0 3 4 6]         entry i is values[offsets[i]:offsets[i + 1]]; int64, one more than there are entries
    shape     (3, j1)           j1 stands for the lengths: `nested_int.py`

With `lengths`, entry i is values[offsets[i]:offsets[i] + lengths[i]], and what lies between belongs to none: a hole.

It is a wrapper subclass. Pointwise operators go through autograd as they are and meet `__torch_dispatch__` below it, which computes on
the values. What moves, reduces or multiplies is taken above autograd, in `__torch_function__`: it is a function of the values, which
`values()` and `_like` leave and enter, so its gradient needs no rule. Both look in the tables of `ops.py`.

In PyTorch: `torch/nested/_internal/nested_tensor.py`.
"""

import math
import weakref
from itertools import count

import readtorch
from readtorch.aten.tags import Tag
from readtorch.c10.sym_int import SymInt

from .nested_int import NestedIntNode

FUNCTIONS = {}  # name of a public function -> what stands for it. `ops.py` fills the tables.
OPERATORS = {}  # packet of an operator -> what computes it
POINTWISE = {}  # how many tensors a pointwise operator is given -> what computes it

_ids = count(1)  # in PyTorch: from 0, which a tensor that is never seen takes
_ragged_sizes = {}  # id of a tensor of offsets or lengths -> that tensor, not kept alive, and the size that it stands for


def get_tensor_symint(tensor):
    """The ragged size that these offsets, or lengths, stand for: the same for the same tensor, not for an equal one."""
    key = id(tensor)
    if key not in _ragged_sizes:
        share_ragged_size(tensor, SymInt(NestedIntNode(next(_ids))))
    return _ragged_sizes[key][1]


def share_ragged_size(tensor, size):
    """From now on these offsets stand for `size`: they are a copy, on another device, of those that do."""
    key = id(tensor)
    _ragged_sizes[key] = weakref.ref(tensor, lambda _: _ragged_sizes.pop(key, None)), size


class NestedTensor(readtorch.Tensor):
    """A batch of tensors of which one dimension is ragged, over `values` and `offsets`.

    lengths: for tensors with holes. _ragged_idx: the ragged dimension, 1 if not given. _metadata_cache: a dict that has the shortest
    and longest length, `min_seqlen` and `max_seqlen`, once they are known.
    """

    @staticmethod
    def __new__(cls, values, offsets, *, lengths=None, _ragged_idx=1, _metadata_cache=None, requires_grad=False):
        _check_parts(values, offsets, lengths)
        ragged_size = get_tensor_symint(offsets if lengths is None else lengths)
        shape, strides, r = values.shape, values.stride(), _ragged_idx - 1
        size = (len(offsets) - 1, *shape[:r], ragged_size, *shape[r + 1 :])
        t = readtorch.Tensor._make_wrapper_subclass(
            cls,
            size,
            (ragged_size * strides[r], *strides),
            0,
            dtype=values.dtype,
            device=values.device,
            requires_grad=requires_grad,
            storage_size=values.untyped_storage().size(),
        )
        t._size, t._ragged_idx = readtorch.Size(size), _ragged_idx
        t._values, t._offsets, t._lengths = values, offsets, lengths
        t._metadata_cache = {} if _metadata_cache is None else _metadata_cache
        return t

    def __init__(self, *args, **kwargs):
        super().__init__()

    # ------------------------------------------------------------------------------------------------------ its parts

    def values(self):
        """The elements of all entries, side by side: a view, through which gradients flow."""
        return NestedGetValues.apply(self)

    def offsets(self):
        """Where each entry begins, and where the last one ends."""
        return self._offsets

    def lengths(self):
        """The entries' lengths where there are holes, else None."""
        return self._lengths

    def _like(self, values, ragged_idx=None):
        """A NestedTensor of other values with the lengths of this one; gradients flow to the values."""
        return NestedViewFromJagged.apply(values, self._structure(ragged_idx))

    def _structure(self, ragged_idx=None):
        """The arguments that make a tensor of the same lengths. In PyTorch: `extract_kwargs`."""
        return {
            "offsets": self._offsets,
            "lengths": self._lengths,
            "_metadata_cache": self._metadata_cache,
            "_ragged_idx": self._ragged_idx if ragged_idx is None else ragged_idx,
        }

    def _entry_lengths(self):
        """The lengths of all entries, int64."""
        return self._offsets.diff() if self._lengths is None else self._lengths

    def _get_max_seqlen(self):
        """The longest length."""
        return self._seqlen("max_seqlen", max)

    def _get_min_seqlen(self):
        """The shortest length."""
        return self._seqlen("min_seqlen", min)

    def _seqlen(self, name, of):
        if self._metadata_cache.get(name) is None:
            self._metadata_cache[name] = of(self._entry_lengths().tolist())
        return self._metadata_cache[name]

    _max_seqlen = property(_get_max_seqlen)
    _min_seqlen = property(_get_min_seqlen)

    @property
    def _maybe_max_seqlen(self):
        return self._metadata_cache.get("max_seqlen")

    @property
    def _maybe_min_seqlen(self):
        return self._metadata_cache.get("min_seqlen")

    # ------------------------------------------------------------------------------------------------- what tensors have

    is_nested = True
    layout = readtorch.jagged

    def numel(self):
        """How many elements the entries have together."""
        if self._lengths is None:
            return self._values.numel()
        r = self._ragged_idx
        return int(self._lengths.sum()) * math.prod((*self._size[1:r], *self._size[r + 1 :]))

    nelement = numel

    @property
    def nbytes(self):
        return self.numel() * self._values.element_size()

    def is_contiguous(self, memory_format=readtorch.contiguous_format):
        """Whether the values are, and there are no holes."""
        return self._lengths is None and self._values.is_contiguous(memory_format=memory_format)

    def tolist(self):
        raise RuntimeError(f".tolist() is not supported for tensor subclasses, got {type(self).__name__}")

    def numpy(self, *, force=False):
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def __repr__(self, *, tensor_contents=None):
        grad = f", requires_grad={self.requires_grad}" if self.requires_grad else ""
        if self.grad_fn is not None:
            grad = f", grad_fn={self.grad_fn}"
        contiguous = self.is_contiguous()
        return f"NestedTensor(size={tuple(self._size)}, offsets={self._offsets}{grad}, contiguous={contiguous})"

    def __reduce_ex__(self, proto):
        return _rebuild_njt, ({"values": self._values, **self._structure(), "requires_grad": self.requires_grad},)

    # --------------------------------------------------------------------------------------------------------- operators

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func.__name__ in FUNCTIONS:
            return FUNCTIONS[func.__name__](func, *args, **(kwargs or {}))
        with readtorch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        implementation = OPERATORS.get(func.overloadpacket)
        if implementation is None and Tag.pointwise in func.tags:
            implementation = POINTWISE.get(sum(isinstance(arg, readtorch.Tensor) for arg in args))
        if implementation is None:
            raise NotImplementedError(func)
        with readtorch.no_grad():
            return implementation(func, *args, **(kwargs or {}))


def _check_parts(values, offsets, lengths):
    if offsets is None:
        raise AssertionError("offsets must not be None")
    if offsets.ndim != 1:
        raise AssertionError(f"offsets must be 1D, but got {offsets.ndim}D")
    if isinstance(values, NestedTensor):
        raise AssertionError("values must not be a NestedTensor")
    if values.device != offsets.device:
        raise AssertionError(
            "values and offsets must be on the same device, but got "
            f"values.device={values.device} and offsets.device={offsets.device}"
        )
    if lengths is not None and len(offsets) - 1 != len(lengths):
        raise AssertionError(
            "offsets and lengths batch sizes must match: "
            f"offsets.shape[0] - 1 = {len(offsets) - 1}, lengths.shape[0] = {len(lengths)}"
        )


def _rebuild_njt(constructor_kwargs):
    return NestedTensor(**constructor_kwargs)


class NestedGetValues(readtorch.autograd.Function):
    """From a NestedTensor to its values. In PyTorch: the operator `_nested_get_values`."""

    @staticmethod
    def forward(ctx, nested):
        ctx.nested = nested.detach()
        return nested._values.detach()

    @staticmethod
    def backward(ctx, grad):
        return ctx.nested._like(grad)


class NestedViewFromJagged(readtorch.autograd.Function):
    """From values to a NestedTensor of them. In PyTorch: the operator `_nested_view_from_jagged`."""

    @staticmethod
    def forward(ctx, values, structure):
        return NestedTensor(values.detach(), **structure)

    @staticmethod
    def backward(ctx, grad):
        return grad.values(), None


# ----------------------------------------------------------------------------------------------------------- constructors


def nested_view_from_values_offsets_lengths(
    values, offsets, lengths=None, ragged_idx=1, min_seqlen=None, max_seqlen=None
):
    """A NestedTensor that is a view of `values`; gradients flow back to them."""
    known = {"min_seqlen": min_seqlen, "max_seqlen": max_seqlen}
    structure = {"offsets": offsets, "lengths": lengths, "_ragged_idx": ragged_idx, "_metadata_cache": known}
    return NestedViewFromJagged.apply(values, structure)


def jagged_from_list(tensors, *, dtype=None, device=None):
    """A NestedTensor of copies of the tensors, which may differ in one size. Raises RuntimeError for what does not fit."""
    if len(tensors) == 0:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    for what, kinds in (
        ("have the same dtype", {t.dtype for t in tensors}),
        ("be on the same device", {t.device for t in tensors}),
        ("have the same dim", {t.dim() for t in tensors}),
    ):
        if len(kinds) != 1:
            raise RuntimeError(f"When constructing a nested tensor, all tensors in list must {what}")
    if tensors[0].dim() == 0:
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    inner = _ragged_dim([t.shape for t in tensors])
    lengths = [t.shape[inner] for t in tensors]
    values = readtorch.cat(tensors, dim=inner).to(device=device, dtype=dtype)
    offsets = offsets_of(readtorch.tensor(lengths, device=values.device))
    return nested_view_from_values_offsets_lengths(
        values, offsets, ragged_idx=inner + 1, min_seqlen=min(lengths), max_seqlen=max(lengths)
    )


def _ragged_dim(shapes):
    """The dimension in which these differ; the first if they are the same."""
    ragged = [d for d, sizes in enumerate(zip(*shapes)) if len(set(sizes)) > 1]
    if len(ragged) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. "
            "Note that the jagged layout only allows for a single ragged dimension. "
            "For example: (B, *, D_0, D_1, ..., D_N), with ragged * dim."
        )
    return ragged[0] if ragged else 0


def offsets_of(lengths):
    """[3, 1, 2] -> [0, 3, 4, 6]: where entries of these lengths begin, and the end."""
    return readtorch.nn.functional.pad(lengths.cumsum(0), (1, 0))


def jagged_from_tensor_and_lengths(tensor, starts, lengths):
    """The entries tensor[i, starts[i]:starts[i] + lengths[i]] of a tensor (B, S, …), as a view of it with holes.

    starts, lengths: int64, of shape (B,) or (1,). RuntimeError for other shapes.
    """
    batch = tensor.shape[0]
    if starts.shape not in [(), (1,), (batch,)] or lengths.shape not in [(), (1,), (batch,)]:
        raise RuntimeError(
            "When constructing a jagged nested tensor using narrow(), "
            "your start and length must be Tensors that broadcast to input.shape[0]"
        )
    if tensor.dim() < 2:
        raise AssertionError("tensor must at least be 2D for the nested narrow op to work")
    starts, lengths, rows = starts.expand(batch), lengths.expand(batch), tensor.shape[1]
    begins = starts + rows * readtorch.arange(batch, device=tensor.device)
    ends = begins + lengths
    values = tensor.view(-1, *tensor.shape[2:])
    known = {"min_seqlen": int(lengths.min()), "max_seqlen": int(lengths.max())}
    if readtorch.equal(begins[1:], ends[:-1]):  # no holes
        offsets = offsets_of(lengths)
        return nested_view_from_values_offsets_lengths(values[begins[0] : ends[-1]], offsets, **known)
    offsets = readtorch.cat([begins, ends[-1:]])
    return nested_view_from_values_offsets_lengths(values, offsets, lengths, **known)
