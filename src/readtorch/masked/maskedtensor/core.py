"""`class MaskedTensor`: data and a mask of the same shape; operators compute on the data and carry the mask along.

It is a Python subclass whose `__torch_function__` and `__torch_dispatch__` look each function up in a table:
`_ops_refs.py`. What the tables do not have is refused with a warning that names it.

In PyTorch: `torch/masked/maskedtensor/core.py`.
"""

import warnings

import readtorch
from readtorch._tensor import _convert
from readtorch.overrides import get_default_nowrap_functions

__all__ = ["MaskedTensor", "is_masked_tensor"]

_DTYPES = {
    readtorch.float16,
    readtorch.float32,
    readtorch.float64,
    readtorch.bool,
    readtorch.int8,
    readtorch.int16,
    readtorch.int32,
    readtorch.int64,
}
PROTOTYPE = (
    "The PyTorch API of MaskedTensors is in prototype stage and will change in the near future. Please open a Github issue "
    "for features requests and see our documentation on the torch.masked module for further information about the project."
)
ASK_FOR_IT = (
    "If you would like this operator to be supported, please file an issue for a feature request at "
    "https://github.com/pytorch/maskedtensor/issues with a minimal reproducible code snippet.\n"
    "In the case that the semantics for the operator are not trivial, it would be appreciated "
    "to also include a proposal for the semantics."
)

# What stands for a public function, and for the packet of an operator: `_ops_refs.py` fills them.
FUNCTIONS = {}
OPERATORS = {}


def is_masked_tensor(obj, /):
    """Whether `obj` is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)


class MaskedTensor(readtorch.Tensor):
    """`data` with a `mask` of bools: True for the elements that count. Both are copied.

    requires_grad: gradients arrive in `grad`, as a MaskedTensor. A UserWarning says that PyTorch may still change it.
    TypeError and ValueError: see `masked_tensor`.
    """

    @staticmethod
    def __new__(cls, data, mask, requires_grad=False):
        for name, value in (("data", data), ("mask", mask)):
            if is_masked_tensor(value) or not readtorch.is_tensor(value):
                raise TypeError(f"{name} must be a Tensor")
        warnings.warn(PROTOTYPE, UserWarning, stacklevel=2)
        if data.requires_grad:
            warnings.warn(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad. "
                "To avoid this, you can use data.detach().clone()",
                UserWarning,
                stacklevel=2,
            )
        return readtorch.Tensor._make_wrapper_subclass(
            cls, data.size(), device=data.device, dtype=data.dtype, requires_grad=requires_grad
        )

    def __init__(self, data, mask, requires_grad=False):
        if data.layout != mask.layout:
            raise TypeError("data and mask must have the same layout.")
        self._set_data_mask(data.clone(), mask.clone())

    def _set_data_mask(self, data, mask):
        self._masked_data = data  # `data` is an attribute of every tensor
        self._masked_mask = mask
        self._validate_members()

    def _validate_members(self):
        data, mask = self._masked_data, self._masked_mask
        if type(data) is not type(mask):
            raise TypeError(f"data and mask must have the same type. Got {type(data)} and {type(mask)}")
        if data.layout != readtorch.strided:  # in PyTorch: sparse_coo and sparse_csr are supported, too
            raise TypeError(f"data layout of {data.layout} is not supported.")
        if mask.dtype != readtorch.bool:
            raise TypeError("mask must have dtype bool.")
        if data.dtype not in _DTYPES:
            raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
        if data.dim() != mask.dim():
            raise ValueError("data.dim() must equal mask.dim()")
        if data.size() != mask.size():
            raise ValueError("data.size() must equal mask.size()")

    @staticmethod
    def _from_values(data, mask):
        """One whose gradient flows back to the data."""
        return _Constructor.apply(data, mask)

    def __repr__(self):
        data, mask = self.get_data(), self.get_mask()
        if self.dim() == 0:
            return f"MaskedTensor({_element(data.item(), 0) if mask.item() else '--'}, {mask.item()})"
        return f"MaskedTensor(\n{_indented(_rows(data, mask))}\n)"

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in FUNCTIONS:
            return FUNCTIONS[func](*args, **kwargs)
        if not all(issubclass(cls, t) for t in types):
            return NotImplemented
        with readtorch._C.DisableTorchFunctionSubclass():
            result = func(*args, **kwargs)
        return result if func in get_default_nowrap_functions() else _convert(result, cls)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        packet = func.overloadpacket
        if packet in OPERATORS:
            return OPERATORS[packet](*args, **(kwargs or {}))
        warnings.warn(
            f"{packet.__name__} is not implemented in __torch_dispatch__ for MaskedTensor.\n{ASK_FOR_IT}", stacklevel=2
        )
        return NotImplemented

    @classmethod
    def unary(cls, fn, data, mask):
        """A MaskedTensor of `fn(data)` with this mask."""
        return MaskedTensor(fn(data), mask)

    def __lt__(self, other):
        return MaskedTensor(self.get_data() < get_data(other), self.get_mask())

    def to_tensor(self, value):
        """An ordinary tensor, with `value` in place of the elements that do not count."""
        return self.get_data().masked_fill(~self.get_mask(), value)

    def get_data(self):
        """The data, those of the left-out elements as well; what flows back is a MaskedTensor."""
        return _GetData.apply(self)

    def get_mask(self):
        """The mask itself."""
        return self._masked_mask

    def is_sparse_coo(self):
        """False: sparse data are refused. in PyTorch: they are not."""
        return self.layout == readtorch.sparse_coo

    def is_sparse_csr(self):
        """False, as well."""
        return self.layout == readtorch.sparse_csr

    @property
    def is_sparse(self):
        return self.is_sparse_coo() or self.is_sparse_csr()


class _Constructor(readtorch.autograd.Function):
    @staticmethod
    def forward(ctx, data, mask):
        return MaskedTensor(data, mask)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None


class _GetData(readtorch.autograd.Function):
    @staticmethod
    def forward(ctx, masked):
        ctx.mask = masked._masked_mask
        return masked._masked_data.detach()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output if is_masked_tensor(grad_output) else MaskedTensor(grad_output, ctx.mask)


# ------------------------------------------------------------------------------------------------------------- printing


def _element(value, width):
    return (f"{value:8.4f}" if isinstance(value, float) else str(value)).rjust(width)


def _rows(data, mask):
    if data.dim() > 1:
        rows = [_indented(_rows(d, m)) for d, m in zip(data, mask)]
        return "[\n" + ",\n".join(rows) + "\n]"
    elements = [_element(value, 0) for value in data.tolist()]
    keeps = mask.tolist()
    width = max(len(element) if keep else 8 for element, keep in zip(elements, keeps))
    shown = [element if keep else "--".rjust(width) for element, keep in zip(elements, keeps)]
    return "[" + ", ".join(shown) + "]"


def _indented(text):
    return "\n".join("  " + line for line in text.split("\n"))


# --------------------------------------------------------------------------------------- what the tables of operators use


def get_data(a):
    """The data of a MaskedTensor, without history; anything else as it is."""
    return a._masked_data if is_masked_tensor(a) else a


def get_mask(a):
    """The mask of a MaskedTensor, else None."""
    return a._masked_mask if is_masked_tensor(a) else None


def masks_match(a, b):
    """Whether the masks of two MaskedTensors are the same; True if one of the two is none."""
    if not (is_masked_tensor(a) and is_masked_tensor(b)):
        return True
    x, y = get_mask(a), get_mask(b)
    return x.dim() == y.dim() and bool(readtorch.eq(x, y).all())


def map_masked(values, of):
    """The values with `of(m)` in place of each MaskedTensor m, in lists and tuples among them as well."""
    found = []
    for value in values:
        if isinstance(value, (list, tuple)):
            value = type(value)(map_masked(value, of)) if type(value) in (list, tuple) else value
        found.append(of(value) if is_masked_tensor(value) else value)
    return found


def wrapped(data, mask):
    """A MaskedTensor of them; of lists and tuples, one of each. NotImplemented if the data are no tensor."""
    if isinstance(data, (list, tuple)):
        return type(data)(wrapped(d, m) for d, m in zip(data, mask))
    return MaskedTensor(data, mask) if readtorch.is_tensor(data) else NotImplemented
