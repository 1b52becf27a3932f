"""Named results: `torch.return_types.max(values=…, indices=…)` and its like.

In PyTorch: structseqs made by `torch/csrc/autograd/python_return_types.cpp`; here named tuples
that print in the same way.
"""
from collections import namedtuple


def _repr(self):
    fields = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self))
    return f"torch.return_types.{type(self).__name__}(\n{fields})"


def return_type(name, fields):
    """A class of named results. Like a structseq it is made from one sequence; operators give it the fields."""
    base = namedtuple(name, fields)
    count = len(base._fields)

    def __new__(cls, *values, **kwargs):
        if len(values) != count or kwargs or type(values[1]) is dict:
            values = _in_sequence(name, count, *values, **kwargs)
        return base.__new__(cls, *values)

    return type(name, (base,), {"__slots__": (), "__new__": __new__, "__repr__": _repr, "__reduce__": _reduce,
                                "__module__": "readtorch.return_types",
                                "n_fields": count, "n_sequence_fields": count, "n_unnamed_fields": 0})


def _in_sequence(_name, _count, *args, **kwargs):
    """The fields from a structseq's arguments: (sequence, dict={}), where the dictionary has nothing to add."""
    if not args and "sequence" not in kwargs:
        raise TypeError("structseq() missing required argument 'sequence' (pos 1)")
    sequence = args[0] if args else kwargs["sequence"]
    try:
        values = tuple(sequence)
    except TypeError:
        raise TypeError("constructor requires a sequence") from None
    if len(values) != _count:
        raise TypeError(f"torch.return_types.{_name}() takes a {_count}-sequence ({len(values)}-sequence given)")
    return values


def _reduce(self):
    return type(self), (tuple(self), {})


_VALUES_AND_INDICES = ("max", "min", "sort", "topk", "kthvalue", "median", "nanmedian", "mode", "cummax",
                       "cummin")
max, min, sort, topk, kthvalue, median, nanmedian, mode, cummax, cummin = [
    return_type(name, "values indices") for name in _VALUES_AND_INDICES]
aminmax = return_type("aminmax", "min max")
frexp = return_type("frexp", "mantissa exponent")
linalg_inv_ex = return_type("linalg_inv_ex", "inverse info")
linalg_slogdet = return_type("linalg_slogdet", "sign logabsdet")
linalg_solve_ex = return_type("linalg_solve_ex", "result info")
linalg_cholesky_ex = return_type("linalg_cholesky_ex", "L info")
linalg_qr, qr = (return_type(name, "Q R") for name in ("linalg_qr", "qr"))
linalg_svd = return_type("linalg_svd", "U S Vh")
svd = return_type("svd", "U S V")
linalg_eigh, linalg_eig = (return_type(name, "eigenvalues eigenvectors")
                           for name in ("linalg_eigh", "linalg_eig"))
linalg_lu = return_type("linalg_lu", "P L U")
linalg_lu_factor = return_type("linalg_lu_factor", "LU pivots")
linalg_lu_factor_ex = return_type("linalg_lu_factor_ex", "LU pivots info")
_lu_with_info = return_type("_lu_with_info", "LU pivots info")
lu_unpack = return_type("lu_unpack", "P L U")
triangular_solve = return_type("triangular_solve", "solution cloned_coefficient")
linalg_ldl_factor_ex = return_type("linalg_ldl_factor_ex", "LD pivots info")
linalg_ldl_factor = return_type("linalg_ldl_factor", "LD pivots")
histogram, histogramdd = (return_type(name, "hist bin_edges") for name in ("histogram", "histogramdd"))
geqrf = return_type("geqrf", "a tau")
linalg_lstsq = return_type("linalg_lstsq", "solution residuals rank singular_values")
_scaled_dot_product_flash_attention_for_cpu = return_type(
    "_scaled_dot_product_flash_attention_for_cpu", "output logsumexp")
_scaled_dot_product_flash_attention_for_cpu_backward = return_type(
    "_scaled_dot_product_flash_attention_for_cpu_backward", "grad_query grad_key grad_value")
