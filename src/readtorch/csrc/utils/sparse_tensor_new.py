"""`sparse_coo_tensor`: a sparse tensor from Python data.

In PyTorch: `torch/csrc/utils/tensor_new.cpp`. Explained in the chapter "torch.optim".
"""
from ...aten.native.sparse.sparse_tensor import (
    _sparse_coo_tensor_unsafe, _validate_sparse_coo_tensor_args, empty_sparse, size_from)
from ...aten.native.tensor_factories import numpy_type
from ...aten.native_function import python_binding
from ...aten.python_arg_parser import require_grad
from ...aten.sparse_tensor_impl import is_sparse
from ...c10 import scalar_type
from ...c10.tensor_impl import TensorImpl
from .tensor_new import as_dtype, as_tensor

_FORMS = """sparse_coo_tensor() received an invalid combination of arguments - got ({}), but expected one of:
 * (object indices, object values, *, torch.dtype dtype = None, torch.device device = None, \
bool pin_memory = False, bool requires_grad = False, bool check_invariants = None, bool is_coalesced = None)
 * (object indices, object values, tuple of ints size, *, torch.dtype dtype = None, \
torch.device device = None, bool pin_memory = False, bool requires_grad = False, bool check_invariants = None, \
bool is_coalesced = None)
 * (tuple of ints size, *, torch.dtype dtype = None, torch.device device = None, bool requires_grad = False, \
bool check_invariants = None)
"""


@python_binding("sparse_coo_tensor", "function")
def sparse_coo_tensor(
    indices=None, values=None, size=None, *, dtype=None, device=None, pin_memory=False, requires_grad=False,
    check_invariants=None, is_coalesced=None,
):
    """A sparse tensor with `values` at `indices`, a column for each. `sparse_coo_tensor(size)`: an empty one.

    size: by default the smallest that holds all indices. Tensors of the right dtype are not copied.
    check_invariants: False leaves out the look at the indices. Raises RuntimeError for what does not fit.
    """
    if values is None and _is_size(size if indices is None else indices):
        result = empty_sparse(tuple(size if indices is None else indices), numpy_type(as_dtype(dtype)))
    elif values is None and size is None and indices is not None:
        raise TypeError("sparse_coo_tensor(): argument 'size' (position 1) must be tuple of ints, not "
                        f"{type(indices).__name__}")
    elif indices is None or values is None or not (size is None or _is_size(size)):
        given = [type(a).__name__ for a in (indices, values, size) if a is not None]
        raise TypeError(_FORMS.format(", ".join(given)))
    else:
        result = _from_parts(indices, values, size, as_dtype(dtype), device, check_invariants, is_coalesced)
    return require_grad(result) if requires_grad else result


def _is_size(value):
    return isinstance(value, (tuple, list)) and all(isinstance(n, int) for n in value)


def _from_parts(indices, values, size, dtype, device, check_invariants, is_coalesced):
    indices = _part(indices, scalar_type.int64, device)
    values = _part(values, dtype, device)
    size = size_from(indices, values) if size is None else tuple(size)
    if check_invariants is not False:
        # in PyTorch: by default nobody looks at the indices; one out of range reads memory out of range
        _validate_sparse_coo_tensor_args.call(indices, values, size, is_coalesced, None)
    return _sparse_coo_tensor_unsafe.call(indices, values, size, None, None, None, None, is_coalesced)


def _part(data, dtype, device):
    if isinstance(data, TensorImpl) and is_sparse(data):
        return data
    return as_tensor(data, dtype, device)
