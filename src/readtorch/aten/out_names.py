"""Overload names of `out=` operators that no rule gives: functional operator -> overload of its `out=` form.

In PyTorch: written by hand in `aten/src/ATen/native/native_functions.yaml`; no file of its own.
"""

OUT_NAMES = {
    "all": "all_out", "all.dim": "out", "any": "all_out", "any.dim": "out", "arange.start_step": "start_out",
    "argsort.stable": "stable_out", "bitwise_and.Tensor": "Tensor_out",
    "bitwise_left_shift.Tensor": "Tensor_out", "bitwise_or.Tensor": "Tensor_out",
    "bitwise_right_shift.Tensor": "Tensor_out", "bitwise_xor.Tensor": "Tensor_out",
    "bucketize.Tensor": "Tensor_out", "clamp.Tensor": "Tensor_out", "clamp_max.Tensor": "Tensor_out",
    "clamp_min.Tensor": "Tensor_out", "div.Tensor_mode": "out_mode", "eq.Tensor": "Tensor_out",
    "float_power.Tensor_Tensor": "Tensor_Tensor_out", "fmod.Tensor": "Tensor_out", "ge.Tensor": "Tensor_out",
    "gt.Tensor": "Tensor_out", "index.Tensor": "Tensor_out", "isin.Tensor_Tensor": "Tensor_Tensor_out",
    "frexp.Tensor": "Tensor_out", "histogram.bin_ct": "bin_ct_out", "histogram.bins_tensor": "bins_tensor_out",
    "select_copy.int": "int_out", "slice_copy.Tensor": "Tensor_out", "transpose_copy.int": "int_out",
    "triangular_solve": "X", "kthvalue": "values", "le.Tensor": "Tensor_out", "lerp.Tensor": "Tensor_out", "linalg_cholesky_ex": "L",
    "linalg_eigh": "eigvals", "linalg_inv_ex": "inverse",
    "linalg_matrix_rank.atol_rtol_tensor": "atol_rtol_tensor_out",
    "linalg_pinv.atol_rtol_tensor": "atol_rtol_tensor_out", "linalg_svd": "U",
    "linspace.Tensor_Tensor": "Tensor_Tensor_out", "log_softmax.int": "int_out",
    "logspace.Tensor_Tensor": "Tensor_Tensor_out", "lt.Tensor": "Tensor_out", "max": "unary_out",
    "max.dim": "dim_max", "max.other": "out", "mean": "dtype_out", "mean.dim": "out",
    "median.dim": "dim_values", "min": "unary_out", "min.dim": "dim_min", "min.other": "out",
    "mode": "values", "nanmedian.dim": "dim_values", "ne.Tensor": "Tensor_out",
    "normal.Tensor_Tensor": "Tensor_Tensor_out", "pow.Tensor_Tensor": "Tensor_Tensor_out",
    "prod.dim_int": "int_out", "qr": "Q", "remainder.Tensor": "Tensor_out", "scatter.src": "src_out",
    "scatter_reduce.two": "two_out", "searchsorted.Tensor": "Tensor_out", "softmax.int": "int_out",
    "sort": "values", "sort.stable": "values_stable", "sum.dim_IntList": "IntList_out", "svd": "U",
    "topk": "values", "where.self": "self_out", "xlogy.Scalar_Other": "OutScalar_Other",
    "xlogy.Scalar_Self": "OutScalar_Self", "xlogy.Tensor": "OutTensor",
}
