"""Arguments for every operator that has a CUDA kernel: `CASES[name]` is a list of calls, each with small tensors and
with settings that differ from the defaults and from one another, so that two that are swapped are seen.

`case("add.Tensor sub.Tensor", X, Y, alpha=3)` appends one call to each of these operators. An in-place operator
without cases of its own takes those of its functional form. Tensors are PyTorch's; test_registered_kernels.py
calls both sides. Where there is no PyTorch, a machine with a GPU perhaps, they are ours.
"""

import collections
import math

try:
    import torch
except ImportError:
    import readtorch as torch

CASES = collections.defaultdict(list)
aten = torch.ops.aten

# Operators whose results are no function of their arguments, with the reason why nothing is compared here.
NOT_COMPARED = {
    **dict.fromkeys(
        ["poisson", "binomial", "_standard_gamma", "_sample_dirichlet"],
        "a rejection sampler; its moments: test_structural_operators.py",
    ),
    **dict.fromkeys(
        ["empty.memory_format", "empty_strided", "empty_permuted", "empty_like", "new_empty", "new_empty_strided"],
        "memory as it comes: sizes and strides are compared",
    ),
}


# The number of a tensor that stays on the host.
ON_THE_HOST = {"_pack_padded_sequence": 1}


def case(names, *arguments, see=lambda result: result, **settings):
    """One call for each of the operators `names`. see: what of the result is compared."""
    for name in names.split():
        CASES[name].append((arguments, settings, see))


def values(*shape, shift=0.0):
    """Distinct values of both signs in no order."""
    count = math.prod(shape)
    return ((torch.arange(count) * 7 % (count + 1 - count % 7 // 6)) * 0.3 - 0.9 + shift).reshape(shape)


def first(result):
    return result[0]


def tensor(*numbers, dtype=None):
    return torch.tensor(numbers, dtype=dtype)


W = tensor(-3.7, -1.2, -1.0, -0.6, -0.3, 0.0, 0.2, 0.45, 0.8, 1.0, 2.5, 4.2, 9.0)
G = torch.linspace(-1.0, 2.0, 13)
EDGES = tensor(-math.inf, -2.5, -0.0, 0.0, 0.5, 1.5, math.inf, math.nan)
X, Y = tensor([0.5, -1.25, 2.0], [-0.75, 0.125, 3.5]), tensor([1.5, 2.5, -0.5], [4.0, -2.0, 0.25])
Z = tensor([0.3, 0.7, -0.2], [1.4, -0.6, 0.9])
N, M = tensor([12, -7, 2], [5, 4, -1]), tensor([3, 2, 5], [1, 3, 4])
B, C = X > 0, Y > 0
COMPLEX = torch.complex(X, Y)
IMAGE, VOLUME = values(2, 2, 5, 4), values(1, 2, 4, 5, 3)

# ------------------------------------------------------------------------------------------------- one tensor

case("log_sigmoid_forward", W, see=first)  # the CPU has a buffer for backward
case(
    "relu hardsigmoid hardswish silu mish neg abs sign sgn sqrt rsqrt reciprocal exp exp2 expm1 "
    "log log2 log10 log1p frac deg2rad rad2deg erf erfc erfinv lgamma digamma sinc i0 special_i1 special_entr sin cos "
    "tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid logit angle special_bessel_j0 special_bessel_j1 "
    "special_bessel_y0 special_bessel_y1 special_modified_bessel_i0 special_modified_bessel_i1 "
    "special_modified_bessel_k0 special_modified_bessel_k1 special_scaled_modified_bessel_k0 "
    "special_scaled_modified_bessel_k1 special_spherical_bessel_j0 special_i0e special_i1e special_erfcx special_ndtri "
    "special_log_ndtr frexp.Tensor alias_copy detach_copy lift_fresh_copy clone zero_ logical_not",
    W,
)
case("floor ceil trunc round isnan isinf isfinite isposinf isneginf isreal signbit isreal abs sign", EDGES)
case("abs_", W)
case("conj_physical_ _conj_physical _conj angle abs sgn neg reciprocal isreal", COMPLEX)
case("bitwise_not neg abs sign sgn floor round", N)
case("threshold", W, 0.4, 7.0)
case("leaky_relu", W, 0.3)
case("hardtanh", W, -0.7, 1.9)
case("elu", W, 1.3, 0.8, 0.6)
case("celu", W, 0.6)
case("gelu", W)
case("gelu", W, approximate="tanh")
case("softplus", W, 1.7, 2.2)
case("hardshrink softshrink", W, 0.7)
case("logit", W, 0.1)
case("nan_to_num", EDGES, 0.25, 7.0, -3.0)
case("round.decimals", W / 7, decimals=2)
case("round.decimals", W * 70, decimals=-1)
case("polygamma", 2, W.abs() + 0.3)
case("polygamma_.method", W.abs() + 0.3, 2)
case("mvlgamma", W.abs() + 1.5, 3)
case("clamp", W, -0.5, 1.1)
case("clamp_min clamp_max", W, 0.6)
case("clamp.Tensor", X, Z - 0.5, Z)
case("clamp.Tensor", X, None, Z)
case("pow.Tensor_Scalar", W.abs(), 1.7)
case("pow.Scalar", 1.7, W)
case("fill.Scalar", X, 1.75)
case("fill.Tensor", X, torch.tensor(1.75))
case("native_dropout_backward", X, B, 1.6)
case("native_dropout", X, 0.6, False)
case("_softmax _log_softmax", Y, 0, False)
case("_softmax _log_softmax", Y, 1, False)
case("_safe_softmax", tensor([0.5, -math.inf], [1.5, -math.inf]), 0)
case("_masked_softmax", X, B, 1, 2)
case("glu", values(3, 4), 1)
case("_to_copy", X * 3, dtype=torch.int32)
case("view_copy.dtype", X, torch.int32)

# ------------------------------------------------------------------------------------------------- gradients

case("threshold_backward hardshrink_backward softshrink_backward", G, W, 0.4)
case("leaky_relu_backward", G, W, 0.3, True)
case("leaky_relu_backward", G, W, 0.3, False)
case("hardtanh_backward", G, W, -0.7, 1.9)
case("elu_backward", G, 1.3, 0.8, 0.6, False, W)
case("elu_backward", G, 1.3, 0.8, 0.6, True, aten.elu(W, 1.3, 0.8, 0.6))
case("softplus_backward", G, W, 1.7, 2.2)
case("sigmoid_backward", G, W.sigmoid())
case("tanh_backward", G, W.tanh())
case("silu_backward mish_backward hardsigmoid_backward hardswish_backward", G, W)
case("gelu_backward", G, W)
case("gelu_backward", G, W, approximate="tanh")
case("log_sigmoid_backward", G, W, aten.log_sigmoid_forward(W)[1])
case("glu_backward", values(3, 2), values(3, 4), 1)
case("_prelu_kernel", X, Z)
case("_prelu_kernel_backward", Y, X, Z)
case("rrelu_with_noise_backward", Y, X, Z, 0.2, 0.7, True, False)
case("rrelu_with_noise_backward", Y, X, Z, 0.2, 0.7, False, False)
case("rrelu_with_noise", X, Z, 0.2, 0.7)
case("rrelu_with_noise", X, Z, 0.3, 0.3, True)  # drawn between two equal numbers
case("_softmax_backward_data", X, Y.softmax(0), 0, torch.float32)
case("_log_softmax_backward_data", X, Y.log_softmax(1), 1, torch.float32)
case("_masked_softmax_backward", Y, aten._masked_softmax(X, B, 1, 2), B, 1)

# ------------------------------------------------------------------------------------------------- two tensors

case("add.Tensor sub.Tensor rsub.Tensor", X, Y, alpha=3)
case("add.Scalar sub.Scalar rsub.Scalar", X, 2.5, 3)
case("add.Tensor sub.Tensor", N, M[0], alpha=-2)
case("mul.Tensor div.Tensor floor_divide remainder.Tensor fmod.Tensor atan2", X, Y)
case("mul.Tensor", COMPLEX, COMPLEX.flip(0))
case("floor_divide remainder.Tensor fmod.Tensor", N, M)
case("mul.Scalar div.Scalar remainder.Scalar fmod.Scalar", X, -1.5)
case("remainder.Scalar_Tensor", -5, M)
case("div.Tensor_mode", X * 5, Y, rounding_mode="floor")
case("div.Tensor_mode", X * 5, Y, rounding_mode="trunc")
case("bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor gcd lcm", N, M)
case("bitwise_left_shift.Tensor bitwise_right_shift.Tensor", N, M)
case("bitwise_and.Scalar bitwise_or.Scalar bitwise_xor.Scalar", N, 6)
case("bitwise_and.Scalar_Tensor bitwise_or.Scalar_Tensor bitwise_xor.Scalar_Tensor", 6, N)
case("bitwise_left_shift.Tensor_Scalar bitwise_right_shift.Tensor_Scalar", N, 2)
case("bitwise_left_shift.Scalar_Tensor bitwise_right_shift.Scalar_Tensor", 77, M)
case("maximum minimum fmax fmin clamp_min.Tensor clamp_max.Tensor hypot logaddexp logaddexp2 copysign.Tensor", X, Y)
case("fmax fmin maximum minimum", EDGES, EDGES.roll(3))
case("heaviside", EDGES, W[:8])
case("nextafter", X, Y)
case("copysign.Scalar", X, -2.0)
case("ldexp.Tensor", X, M)
case("pow.Tensor_Tensor", X.abs(), Y)
case("pow.Tensor_Tensor", N, M)
case("xlogy.Tensor special_xlog1py", X, Y.abs())
case("xlogy.Scalar_Self special_xlog1py.self_scalar", 1.7, Y.abs())
case("xlogy.Scalar_Other special_xlog1py.other_scalar", X, 1.7)
case("igamma igammac", W.abs()[:6] + 0.2, W.abs()[6:12])
case("special_zeta", Y.abs() + 1.5, X.abs())
case("special_zeta.self_scalar", 2.5, X.abs())
case("special_zeta.other_scalar", Y.abs() + 1.5, 0.7)
case("complex polar", X, Y)
for comparison in ("eq", "ne", "lt", "le", "gt", "ge"):
    case(f"{comparison}.Tensor", tensor(1.0, 2.0, math.nan, 0.5), tensor(1.0, 0.5, 2.0, 3.0))
    case(f"{comparison}.Scalar", tensor(1.0, 2.0, math.nan, 0.5), 1.0)
case("logical_and logical_or logical_xor", tensor(0.0, 2.0, 0.0, -1.0), tensor(0.0, 0.5, 2.0, 0.0))
case("equal", X, X.clone())
case("equal", X, Y)
case("isclose", X, X + tensor(0.0, 0.2, 0.5), 0.1, 0.05)
case("isclose", EDGES, EDGES, equal_nan=True)
case("isin.Tensor_Tensor", N, M, invert=True)
case("isin.Tensor_Scalar", N, 4, invert=True)
case("isin.Scalar_Tensor", 4, N)
POLYNOMIALS = [f"special_{name}" for name in (
    "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w "
    "shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v "
    "shifted_chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l "
    "legendre_polynomial_p").split()]  # fmt: skip
for polynomial in POLYNOMIALS:
    case(polynomial, tensor(0.3, -0.7, 1.0, -1.0, 0.45), tensor(2.0, 3.0, 4.0, 5.0, 7.0))
    case(f"{polynomial}.x_scalar", 0.3, tensor(0.0, 1.0, 2.0, 7.0, -1.0))
    case(f"{polynomial}.n_scalar", tensor(0.3, -0.7, 1.0, -1.0, 0.45), 3)

# ------------------------------------------------------------------------------------------------- three tensors

case("where.self", B, X, Y)
case("lerp.Tensor", X, Y, Z)
case("lerp.Scalar", X, Y, 0.3)
case("lerp.Scalar", X, Y, 0.8)
case("addcmul addcdiv", X, Y, Z, value=1.7)
case("masked_fill.Tensor", X, C, torch.tensor(7.5))
case("masked_fill.Scalar", X, C, 7.5)
case("masked_select", X, C)
case("masked_select", torch.tensor(3.0), torch.tensor(True))
case("masked_scatter", X, C, values(7))

# ------------------------------------------------------------------------------------------------- reductions

ROWS = tensor([3.0, 1.0, 2.5, 1.0, 3.0], [0.5, -2.0, 4.0, -1.0, 0.5])
NANS = tensor([3.0, math.nan, 2.0, 1.0, 1.0], [0.5, math.nan, 4.0, math.nan, -1.0])
case("sum mean prod max min median trace", ROWS)
case("nanmedian median max min", NANS)
case("sum.dim_IntList mean.dim logsumexp amax amin", ROWS, [1], True)
case("sum.dim_IntList mean.dim amax amin", VOLUME, [0, 2, 4])
case("sum.dim_IntList amax", values(9, 8), [0])
case("nansum", NANS, [1], True)
case("prod.dim_int max.dim min.dim median.dim nanmedian.dim mode argmax argmin", ROWS, 1, True)
case("median.dim nanmedian.dim max.dim min.dim argmax", NANS, 1)
case("all any count_nonzero", B)
case("all.dim any.dim", B, 1, True)
case("all.dims any.dims", B.expand(2, 2, 3), [0, 2], True)
case("count_nonzero", B, 1)
case("count_nonzero.dim_IntList", B, [0])
case("linalg_vector_norm", ROWS, 3, [1], True)
case("linalg_vector_norm", ROWS, math.inf)
case("norm.ScalarOpt_dim", ROWS, 3, [1], True)
case("norm.Scalar", ROWS, 3)
case("dist", X, Y, 3)
case("var.correction std.correction var_mean.correction std_mean.correction", ROWS, [1], correction=2, keepdim=True)
case("aminmax", ROWS, dim=1, keepdim=True)
case("renorm", ROWS, 3, 0, 1.5)
case("histc", ROWS, 4, -1.5, 3.5)
case("bincount", M.flatten(), X.flatten(), 8)
LENGTHS = tensor(2, 0, 3)
for how in ("sum", "mean", "prod", "max", "min"):
    case("segment_reduce", values(5, 2), how, lengths=LENGTHS, initial=0.3)
    segments = aten.segment_reduce(values(5, 2), how, lengths=LENGTHS, initial=0.3)
    case("_segment_reduce_backward", values(3, 2, shift=0.4), segments, values(5, 2), how, lengths=LENGTHS, initial=0.3)

# ------------------------------------------------------------------------------------------------- order and scans

case("cumsum cumprod cummax cummin logcumsumexp", ROWS, 1)
case("cummax cummin", NANS, 0)
case("sort", NANS, 1, True)
case("sort.stable", ROWS, stable=True, dim=0, descending=True)
case("sort", values(1, 20), 1)
case("topk", values(2, 5), 3, 1, False)
case("kthvalue", values(2, 5), 2, 1, True)
WORDS = tensor([2, 1], [1, 3], [2, 1], [1, 2])
case("_unique2", WORDS, True, True, True)
case("unique_dim", WORDS, 0, True, True, True)
case("unique_consecutive", WORDS.sort(0).values, True, True, 0)
case("unique_consecutive", WORDS, True, True)
SORTED, ORDER = tensor([1.0, 2.0, 2.0, 5.0], [-1.0, 0.0, 3.0, 4.0]), tensor([3, 2, 1, 0], [3, 2, 1, 0])
case("searchsorted.Tensor", SORTED.flip(1), tensor([2.0, 4.5], [0.0, 3.5]), right=True, sorter=ORDER)
case("searchsorted.Tensor", SORTED, tensor([2.0, 4.5], [0.0, 3.5]), out_int32=True)
case("searchsorted.Scalar", SORTED[0], 2, right=True)
case("bucketize.Tensor", X, SORTED[0], out_int32=True, right=True)
case("bucketize.Scalar", 2, SORTED[0], right=True)
case("nonzero", tensor([0.0, 2.0], [-1.0, 0.0]))
case("nonzero_static", tensor([0.0, 2.0], [-1.0, 0.0]), size=3, fill_value=-5)

# ------------------------------------------------------------------------------------------------- matrices

A34, B42, BATCH, BATCHES = values(3, 4), values(4, 2), values(2, 3, 4), values(2, 4, 2)
case("mm", A34, B42)
case(
    "mm", torch.arange(12.0).view(3, 4).half(), torch.arange(8.0).view(4, 2).half()
)  # exact in 16 bits, and by tensor cores
case("bmm", BATCH, BATCHES)
case("mv", A34, B42[:, 0])
case("dot vdot", W, G)
case("addmm _addmm_activation", values(2), A34, B42, beta=0.6, alpha=1.3)
case("_addmm_activation", values(2), A34, B42, beta=0.6, alpha=1.3, use_gelu=True)
case("addmv", values(3), A34, B42[:, 0], beta=0.6, alpha=1.3)
case("addr", values(3, 4), values(3), values(4), beta=0.6, alpha=1.3)
case("baddbmm", values(2, 3, 2), BATCH, BATCHES, beta=0.6, alpha=1.3)
case("addbmm", values(3, 2), BATCH, BATCHES, beta=0.6, alpha=1.3)
case("_trilinear", values(2, 3), values(2, 3, 2), values(2, 2, shift=0.1), [1, 3], [0], [1, 2], [2, 3])
case("linalg_cross", X, Y, dim=1)
POSITIVE = tensor(
    [[4.0, 2.0, -1.0], [2.0, 5.0, 0.5], [-1.0, 0.5, 3.0]], [[2.0, 0.0, 1.0], [0.0, 1.0, 0.5], [1.0, 0.5, 6.0]]
)
GENERAL, SIDES = POSITIVE - 2.2, values(2, 3, 2)
LOWER = torch.linalg.cholesky(POSITIVE)
LU, PIVOTS = torch.linalg.lu_factor(GENERAL)
case("linalg_cholesky_ex", POSITIVE, upper=True)
case("cholesky", POSITIVE, True)
case("cholesky_solve", SIDES, LOWER)
case("cholesky_inverse", LOWER.mT.contiguous(), True)
case("linalg_qr", SIDES, "complete")
case("linalg_qr", SIDES)
case("geqrf", SIDES)
REFLECTORS, TAU = torch.geqrf(SIDES)
case("linalg_householder_product", REFLECTORS, TAU)
case("ormqr", REFLECTORS, TAU, POSITIVE, True, True)
case("ormqr", REFLECTORS, TAU, POSITIVE, False)
case("_linalg_svd", SIDES, see=lambda usv: (usv[1], usv[0] * usv[1].unsqueeze(-2) @ usv[2]))
case("_linalg_svd", SIDES, True, see=lambda usv: (usv[1], usv[0][..., :2] * usv[1].unsqueeze(-2) @ usv[2]))
case("_linalg_eigh", POSITIVE, "U", see=lambda lq: (lq[0], lq[1] * lq[0].unsqueeze(-2) @ lq[1].mT))
case("linalg_solve_triangular", POSITIVE, SIDES.mT.contiguous(), upper=True, left=False)
case("linalg_solve_triangular", POSITIVE, SIDES, upper=False, unitriangular=True)
case("triangular_solve", SIDES, POSITIVE, False, True, True)
case("linalg_lu_factor_ex linalg_lu linalg_inv_ex _linalg_det _linalg_slogdet", GENERAL)
case("linalg_lu_solve", LU, PIVOTS, SIDES, adjoint=True)
case("linalg_lu_solve", LU, PIVOTS, SIDES.mT.contiguous(), left=False)
case("lu_unpack", LU, PIVOTS)
case("_linalg_solve_ex", GENERAL, SIDES.mT.contiguous(), left=False)
case("_linalg_solve_ex", GENERAL, SIDES)
case("linalg_pinv.atol_rtol_tensor", SIDES, atol=torch.tensor(0.1), rtol=torch.tensor(0.2))
case("linalg_matrix_rank.atol_rtol_tensor", POSITIVE, atol=torch.tensor(1.5), rtol=torch.tensor(0.01))
case("linalg_matrix_rank.atol_rtol_float", POSITIVE, atol=1.5, hermitian=True)
case("linalg_matrix_rank", POSITIVE, 1.5)
case("linalg_lstsq", POSITIVE[0], SIDES[0], driver="gels")
case("linalg_matrix_exp", GENERAL[0, :2, :2] / 3)
case("_pdist_forward", values(4, 3), 1.5)
case("_pdist_backward", values(6), values(4, 3), 1.5, aten._pdist_forward(values(4, 3), 1.5))
case("_cdist_forward", values(3, 2), values(4, 2, shift=0.1), 1.5, 2)
case("_cdist_forward", values(3, 2), values(4, 2, shift=0.1), 1.0, 2)
case("_cdist_backward", values(3, 4), values(3, 2), values(4, 2, shift=0.1), 1.5,
     aten._cdist_forward(values(3, 2), values(4, 2, shift=0.1), 1.5, 2))  # fmt: skip
case("_euclidean_dist", values(3, 2), values(4, 2, shift=0.1))

# ------------------------------------------------------------------------------------------------- indices

I, J = tensor([1, 0, 1], [0, 1, 1]), tensor(1, 0, 1)
case("gather", X, 0, I)
case("scatter.src", X, 0, tensor([1, 0, 1]), Y)
case("scatter.value", X, 0, tensor([1, 0, 1]), 1.75)
case("scatter.reduce", X, 0, I, Y, reduce="multiply")
case("scatter.reduce", X, 0, I, Y, reduce="add")
case("scatter.value_reduce", X, 0, I, 1.75, reduce="multiply")
case("scatter_add", X, 0, I, Y)
for how in ("sum", "prod", "mean", "amax", "amin"):
    case("scatter_reduce.two", X, 0, I, Y, how, include_self=False)
    case("scatter_reduce.two", X, 1, I, Y, how)
for how in ("prod", "mean", "amax", "amin"):
    case("index_reduce", X, 1, tensor(2, 0, 2), Y, how, include_self=False)
    case("index_reduce", X, 1, tensor(2, 0, 2), Y, how)
case("index_select", X, 1, tensor(2, 0))
case("index_add", X, 1, tensor(2, 0, 2), Y, alpha=1.5)
case("index_copy", X, 1, tensor(2, 0, 1), Y)
case("index_fill.int_Tensor", X, 1, tensor(2, 0), torch.tensor(7.5))
case("index_fill.int_Scalar", X, 1, tensor(2, 0), 7.5)
case("index.Tensor", VOLUME, [None, J, None, tensor(4, -1, 2)])
case("index_put _index_put_impl_", X, [J, tensor(2, 0, 2)], Y[0], True)
case("index_put _index_put_impl_", X, [tensor(1, 0), tensor(2, 0)], Y[0, :2])
case("take", X, tensor([5, -1], [0, 2]))
case("put", X, tensor(5, 0, 5), Y[0], True)
case("put", X, tensor(5, 0, -2), Y[0])
case("embedding", values(3, 2), tensor([2, 0, 2]), 1)
case("embedding_dense_backward", values(1, 3, 2), tensor([2, 0, 2]), 3, 0, True)
case("embedding_renorm_", values(3, 2), tensor(2, 0), 0.7, 3.0)
BAG, STARTS, FACTORS = tensor(2, 0, 2, 1, 0), tensor(0, 2, 2), tensor(0.5, -1.0, 2.0, 0.3, 0.7)
case("_embedding_bag _embedding_bag_forward_only", values(3, 2), BAG, STARTS, mode=1, padding_idx=2, see=first)
case("_embedding_bag _embedding_bag_forward_only", values(3, 2), BAG, STARTS, mode=2, see=first)
case("_embedding_bag", values(3, 2), BAG, STARTS, per_sample_weights=FACTORS, see=first)
BAG_OF, SIZES = tensor(0, 0, 2, 2, 2), tensor(2, 0, 3)
LARGEST = aten._embedding_bag(values(3, 2), BAG, STARTS, mode=2)[3]
NONE = torch.zeros(0, dtype=torch.int64)
case("_embedding_bag_backward", values(3, 2), BAG, STARTS, BAG_OF, SIZES, LARGEST, 3, False, 2, False, None)
case("_embedding_bag_backward", values(3, 2), BAG, STARTS, BAG_OF, SIZES, NONE, 3, False, 1, False, None)
case("_embedding_bag_dense_backward", values(3, 2), BAG, BAG_OF, SIZES, NONE, 3, False, 0, FACTORS, 1)
case("_embedding_bag_per_sample_weights_backward", values(3, 2), values(3, 2, shift=0.1), BAG, STARTS, BAG_OF, 0, 1)

# ------------------------------------------------------------------------------------------------- shapes and copies

case("copy_", X, Y[:, :1])
case("copy_", values(33, 32), values(32, 33).t())
case("cat", [X, Y[:, :2]], 1)
case("cat", [X, N], 0)
case("stack", [X, Y], 1)
case("block_diag", [X, Y[:1], torch.tensor(2.0)])
case("_chunk_cat", [values(5, 2), values(4)], 0, 2)
case("flip", VOLUME, [1, 3])
case("roll", VOLUME, [1, -2], [2, 3])
case("rot90", X, 3, [1, 0])
case("repeat", X, [2, 1, 2])
case("repeat_interleave.Tensor", LENGTHS, output_size=5)
case("tril triu", values(3, 4), 1)
case("diag_embed", X, 1, 0, 2)
case("diagonal_copy", values(3, 4), 1, 1, 0)
case("constant_pad_nd", X, [1, -1, 0, 2], 7.5)
case("pixel_shuffle", values(1, 8, 2, 3), 2)
case("pixel_unshuffle", values(1, 2, 4, 6), 2)
case("channel_shuffle native_channel_shuffle", values(1, 6, 2, 1), 3)
case("as_strided_copy", values(3, 4), [2, 2], [3, 1], 1)
case("expand_copy", X[:, :1], [2, 2, 3])
case("permute_copy", VOLUME, [2, 0, 4, 1, 3])
case("select_copy.int", X, 1, 2)
case("slice_copy.Tensor", values(3, 5), 1, 1, 5, 2)
case("split_copy.Tensor", values(2, 5), 2, 1, see=tuple)
case("split_with_sizes_copy", values(2, 5), [1, 3, 1], 1, see=tuple)
case("squeeze_copy", X[:1, None])
case("squeeze_copy.dim", X[:1, None], 1)
case("squeeze_copy.dims", X[:1, None], [0, 2])
case("t_copy", X)
case("transpose_copy.int", VOLUME, 1, 3)
case("unsqueeze_copy", X, 1)
case("unbind_copy.int", X, 1, see=tuple)
case("view_copy", X, [3, 2])
case("unfold_copy", values(2, 6), 1, 3, 2)
case("narrow_copy", values(2, 6), 1, 2, 3)
case("slice_scatter", values(3, 5), values(3, 2, shift=0.1), 1, 1, 5, 2)
case("select_scatter", X, Y[:, 0], 1, 2)
case("diagonal_scatter", values(3, 4), values(3, shift=0.1), 1)
case("as_strided_scatter", values(3, 4), values(2, 2, shift=0.1), [2, 2], [3, 1], 1)
case("select_backward", Y[:, 0], [2, 3], 1, 2)
case("slice_backward", values(3, 2), [3, 5], 1, 1, 5, 2)
case("diagonal_backward", values(3), [3, 4], 1, 0, 1)
case("unfold_backward", values(2, 2, 3), [2, 6], 1, 3, 2)
case("_pack_padded_sequence", values(3, 2, 2), tensor(3, 2), False)
case("_weight_norm_interface", values(3, 2), tensor([0.7], [1.3], [-2.0]))
case("_weight_norm_interface", values(3, 2), tensor([0.7, 1.3]), 1)
case("_weight_norm_interface_backward", Y.t().contiguous(), values(3, 2), tensor([0.7], [1.3], [-2.0]),
     values(3, 2).norm(dim=1, keepdim=True), 0)  # fmt: skip

# ------------------------------------------------------------------------------------------------- new tensors

case("zeros ones empty.memory_format", [2, 3], dtype=torch.int32)
case("full", [2, 3], 1.75)
case("empty_strided", [2, 3], [1, 2])
case("empty_permuted", [2, 3], [1, 0])
case("eye.m", 3, 5)
case("scalar_tensor", 1.75)
case("empty_like zeros_like ones_like", X.t())
case("full_like", X, 1.75)
case("new_empty new_zeros new_ones", X, [3, 2])
case("new_full", X, [3, 2], 1.75)
case("new_empty_strided", X, [2, 3], [1, 2])
case("tril_indices triu_indices", 4, 3, 1)
case("arange.start_step range.step", 1.5, 7.25, 0.75)
case("arange.start_step", 9, 2, -2)
case("linspace", 1.5, -7.0, 6)
case("linspace.Tensor_Tensor", torch.tensor(1.5), torch.tensor(-7.0), 6)
case("linspace.Tensor_Scalar", torch.tensor(1.5), -7.0, 6)
case("linspace.Scalar_Tensor", 1.5, torch.tensor(-7.0), 6)
case("logspace", 0.5, -1.0, 4, 3.0)
for dtype in (torch.int64, torch.uint8, torch.float16, torch.float64):
    case("linspace", 1.5, 9.0, 4, dtype=dtype)
    case("logspace", 0.5, 2.7, 5, 2.0, dtype=dtype)
    case("arange.start_step range.step", 1.0, 7.0, 2.0, dtype=dtype)
case("logspace.Tensor_Tensor", torch.tensor(0.5), torch.tensor(-1.0), 4, 3.0)
case("logspace.Tensor_Scalar", torch.tensor(0.5), -1.0, 4, 3.0)
case("logspace.Scalar_Tensor", 0.5, torch.tensor(-1.0), 4, 3.0)

# ------------------------------------------------------------------------------------------------- layers

SETTINGS = [2, 1], [1, 0], [1, 2], False, [0, 0], 2
case("convolution", IMAGE, values(4, 1, 2, 2), values(4), *SETTINGS)
OUT = aten.convolution(IMAGE, values(4, 1, 2, 2), None, *SETTINGS)
case("convolution_backward", values(*OUT.shape), IMAGE, values(4, 1, 2, 2), [4], *SETTINGS, [True, True, True])
case("convolution", IMAGE, values(2, 3, 2, 2), values(3), [2, 1], [1, 0], [1, 2], True, [1, 0], 1)
case("convolution", VOLUME, values(4, 1, 2, 1, 2), values(4), [1, 2, 1], [0, 1, 1], [2, 1, 1], False, [0, 0, 0], 2)
case("convolution", IMAGE[0], values(3, 5, 2), values(3), [1], [1], [2], False, [0], 1)
case("conv_tbc", values(4, 1, 2), values(2, 2, 3), values(3), 1)
case("conv_tbc_backward", values(5, 1, 3), values(4, 1, 2), values(2, 2, 3), values(3), 1)
CHANNELS, OTHER = tensor(0.7, -1.3), tensor(0.2, 1.6)
case("native_batch_norm _native_batch_norm_legit", IMAGE, CHANNELS, OTHER, OTHER, OTHER + 1, True, 0.3, 0.02)
case("native_batch_norm _native_batch_norm_legit", IMAGE, CHANNELS, OTHER, OTHER, OTHER + 1, False, 0.3,
     0.02, see=first)  # fmt: skip
case("_native_batch_norm_legit.no_stats", IMAGE, CHANNELS, OTHER, True, 0.3, 0.02)
case("_native_batch_norm_legit_no_training", IMAGE, CHANNELS, OTHER, OTHER, OTHER + 1, 0.3, 0.02, see=first)
case("_batch_norm_with_update", IMAGE, CHANNELS, OTHER, OTHER, OTHER + 1, 0.3, 0.02, see=lambda r: r[:3])
case("_batch_norm_no_update", IMAGE, CHANNELS, OTHER, OTHER, OTHER + 1, 0.3, 0.02, see=first)
SAVED = aten.native_batch_norm(IMAGE, None, None, None, None, True, 0.3, 0.02)[1:]
GRAD = values(*IMAGE.shape, shift=0.2).flip(0)
case("native_batch_norm_backward", GRAD, IMAGE, CHANNELS, OTHER, OTHER + 1, *SAVED, True, 0.02, [True, True, True])
case("native_batch_norm_backward", GRAD, IMAGE, CHANNELS, OTHER, OTHER + 1, *SAVED, False, 0.02, [True, True, True])
case("batch_norm_backward", GRAD, IMAGE, CHANNELS, OTHER, OTHER + 1, *SAVED, True, 0.02, [True, True, True],
     torch.zeros(0, dtype=torch.uint8))  # fmt: skip
ODD, ODD_GRAD = IMAGE[:, :, :3, 1:].contiguous(), GRAD[:, :, :3, 1:].contiguous()  # not four of a channel at a time
case("native_batch_norm", ODD, CHANNELS, OTHER, OTHER, OTHER + 1, True, 0.3, 0.02)
case("native_batch_norm_backward", ODD_GRAD, ODD, CHANNELS, OTHER, OTHER + 1, *SAVED, False, 0.02, [True, True, True])
case("native_layer_norm", ROWS, [5], values(5), values(5, shift=0.2), 0.02)
case("native_layer_norm_backward", values(2, 5), ROWS, [5], *aten.native_layer_norm(ROWS, [5], None, None, 0.02)[1:],
     values(5), values(5, shift=0.2), [True, True, True])  # fmt: skip
LONG = torch.arange(16500.0).reshape(1, 2, 8250) % 7  # rows that are too long for registers
case("native_group_norm", LONG, torch.tensor([2.0, -1.0]), None, 1, 2, 8250, 1, 0.02)
case(
    "native_group_norm_backward",
    LONG % 3,
    LONG,
    *aten.native_group_norm(LONG, None, None, 1, 2, 8250, 1, 0.02)[1:],
    torch.tensor([2.0, -1.0]),
    1,
    2,
    8250,
    1,
    [True, False, False],
    see=first,
)
case("native_group_norm", IMAGE, CHANNELS, OTHER, 2, 2, 20, 1, 0.02)
case("native_group_norm_backward", GRAD, IMAGE, *aten.native_group_norm(IMAGE, None, None, 2, 2, 20, 2, 0.02)[1:],
     CHANNELS, 2, 2, 20, 2, [True, True, True])  # fmt: skip
QUERIES = values(1, 2, 5, 8).to(torch.float16) / 20
KEYS, GRADS = values(1, 2, 6, 8, shift=0.5).to(torch.float16) / 30, values(1, 2, 5, 8, shift=1.0).to(torch.float16) / 20
case("_scaled_dot_product_flash_attention", QUERIES, KEYS, KEYS.flip(2), scale=0.4, see=lambda result: result[:2])
case(
    "_scaled_dot_product_flash_attention",
    QUERIES,
    KEYS[:, :, 1:],
    KEYS[:, :, :5],
    0.0,
    True,
    see=lambda result: result[:2],
)
for keys, causal in ((KEYS, False), (KEYS[:, :, 1:], True)):
    forward = aten._scaled_dot_product_flash_attention_for_cpu(QUERIES, keys, keys, 0.0, causal, scale=0.3)
    case("_scaled_dot_product_flash_attention_backward", GRADS, QUERIES, keys, keys, *forward, torch.zeros(0), torch.zeros(0), 5,
         keys.shape[2], 0.0, causal, torch.zeros(2), torch.zeros(()), scale=0.3)  # fmt: skip
case("_transform_bias_rescale_qkv", values(1, 2, 12), values(12), 2)
HEADS = values(12, 4) / 7, values(12) / 7, values(4, 4) / 7, values(4)
case("_native_multi_head_attention", *[values(1, 2, 4)] * 3, 4, 2, *HEADS)
case("_native_multi_head_attention", *[values(1, 2, 4)] * 3, 4, 2, *HEADS, tensor([False, True]),
     average_attn_weights=False, mask_type=1)  # fmt: skip
case("_transformer_encoder_layer_fwd", values(1, 2, 4), 4, 2, *HEADS, True, False, 0.02, values(4),
     values(4, shift=0.1), values(4, shift=0.3), values(4), values(5, 4) / 7, values(5), values(4, 5) / 7,
     values(4))  # fmt: skip

# ------------------------------------------------------------------------------------------------- pooling

W2, W3 = ([2, 3], [1, 2], [1, 0]), ([2, 3, 2], [1, 2, 1], [1, 0, 1])
for volume, x, window, dilation in ((2, IMAGE, W2, [2, 1]), (3, VOLUME, W3, [1, 2, 1])):
    pooled, places = getattr(aten, f"max_pool{volume}d_with_indices")(x, *window, dilation, True)
    case(f"max_pool{volume}d_with_indices", x, *window, dilation, True)
    case(f"max_pool{volume}d_with_indices_backward", values(*pooled.shape), x, *window, dilation, True, places)
    for more in ((True, False, None), (True, True, 3)):
        pooled = getattr(aten, f"avg_pool{volume}d")(x, *window, *more)
        case(f"avg_pool{volume}d", x, *window, *more)
        case(f"avg_pool{volume}d_backward", values(*pooled.shape), x, *window, *more)
    size = [3, 2, 2][-volume:]
    pooled, places = getattr(aten, f"adaptive_max_pool{volume}d")(x, size)
    case(f"_adaptive_avg_pool{volume}d adaptive_max_pool{volume}d", x, size)
    case(f"_adaptive_avg_pool{volume}d_backward", values(*pooled.shape), x)
    case(f"adaptive_max_pool{volume}d_backward", values(*pooled.shape), x, places)
    samples = (values(*x.shape[:2], volume) + 1).abs() % 1
    fractions = [2, 2, 1][-volume:] if volume == 3 else [2, 2], [2, 3, 2][-volume:]
    pooled, places = getattr(aten, f"fractional_max_pool{volume}d")(x, *fractions, samples)
    case(f"fractional_max_pool{volume}d", x, *fractions, samples)
    case(f"fractional_max_pool{volume}d_backward", values(*pooled.shape), x, *fractions, places)
case("max_unpool2d", values(1, 1, 2, 2), tensor([[0, 7], [9, 14]]).reshape(1, 1, 2, 2), [3, 5])
case("max_unpool3d", values(1, 1, 2, 2, 1), tensor(0, 7, 19, 14).reshape(1, 1, 2, 2, 1), [2, 2, 5], [1, 1, 1],
     [0, 0, 0])  # fmt: skip

# ------------------------------------------------------------------------------------------------- images

for kind in ("reflection", "replication"):
    for dims, x, pads in ((1, IMAGE[0], [1, 3]), (2, IMAGE, [1, 2, 3, 0]), (3, VOLUME, [1, 2, 0, 1, 3, 2])):
        grown = getattr(aten, f"{kind}_pad{dims}d")(x, pads)
        case(f"{kind}_pad{dims}d", x, pads)
        case(f"{kind}_pad{dims}d_backward", values(*grown.shape), x, pads)
case("im2col", IMAGE, [2, 3], [1, 2], [1, 1], [2, 1])
case("col2im", values(1, 8, 10), [3, 4], [2, 2], [1, 1], [1, 1], [2, 1])
for dims, x, size in ((1, values(1, 2, 5), [7]), (2, IMAGE[:1], [3, 6]), (3, VOLUME, [3, 2, 4])):
    kinds = [(f"upsample_nearest{dims}d", ()), (f"_upsample_nearest_exact{dims}d", ())]
    kinds += [(f"upsample_{('linear', 'bilinear', 'trilinear')[dims - 1]}{dims}d", (align,)) for align in (False, True)]
    if dims == 2:
        kinds += [("upsample_bicubic2d", (False,)), ("upsample_bicubic2d", (True,))]
        kinds += [(f"_upsample_{kind}2d_aa", (False,)) for kind in ("bilinear", "bicubic", "lanczos")]
    for kind, align in kinds:
        case(kind, x, size, *align)
        case(f"{kind}_backward", values(*x.shape[:2], *size), size, list(x.shape), *align)
THETA = tensor([[0.7, 0.2, -0.1], [0.3, 1.1, 0.4]])
case("affine_grid_generator", THETA, [1, 2, 3, 2], False)
GRID2, GRID3 = values(2, 2, 3, 2) / 6, values(1, 2, 1, 3, 3) / 4
for setting in ((0, 0, False), (0, 2, True), (1, 1, True), (2, 0, True), (2, 2, False)):
    case("grid_sampler_2d", IMAGE, GRID2, *setting)
    case("grid_sampler_2d_backward", values(2, 2, 2, 3), IMAGE, GRID2, *setting, [True, True])
for setting in ((0, 0, False), (0, 2, True), (1, 1, True)):
    case("grid_sampler_3d", VOLUME, GRID3, *setting)
    case("grid_sampler_3d_backward", values(1, 2, 2, 1, 3), VOLUME, GRID3, *setting, [True, True])

# ------------------------------------------------------------------------------------------------- losses

CHANCES, CLASSES = X.sigmoid(), tensor(2, 0)
for reduction in (0, 1, 2):
    grad = Z if reduction == 0 else torch.tensor(1.7)
    case("mse_loss soft_margin_loss", X, Y, reduction)
    case("mse_loss_backward soft_margin_loss_backward", grad, X, Y, reduction)
    case("smooth_l1_loss huber_loss", X, Y, reduction, 1.6)
    case("smooth_l1_loss_backward huber_loss_backward", grad, X, Y, reduction, 1.6)
    case("binary_cross_entropy", CHANCES, C.float(), Y.abs(), reduction)
    case("binary_cross_entropy_backward", grad, CHANCES, C.float(), Y.abs(), reduction)
    case("binary_cross_entropy_with_logits", X, C.float(), Y.abs(), tensor(0.5, 2.0, 3.0), reduction)
    weighted = 2.0, 0.75, tensor(1.0, 0.5, 2.0), reduction
    row_grad = Z[:, 0] if reduction == 0 else grad
    case("multi_margin_loss", X, CLASSES, *weighted)
    case("multi_margin_loss_backward", row_grad, X, CLASSES, *weighted)
    of_classes = tensor([2, -1, 0], [1, 0, -1])
    is_target = aten.multilabel_margin_loss_forward(X, of_classes, reduction)[1]
    case("multilabel_margin_loss_forward", X, of_classes, reduction)
    case("multilabel_margin_loss_backward", row_grad, X, of_classes, reduction, is_target)
    for name, x, target, of_each in (
        ("nll_loss", X, tensor(2, 1), Z[:, 0]), ("nll_loss2d", IMAGE, values(2, 5, 4).gt(0.5).long(), GRAD[:, 0]),
    ):  # fmt: skip
        settings = tensor(0.7, 1.3, 2.1)[: x.shape[1]], reduction, 1
        total = getattr(aten, f"{name}_forward")(x, target, *settings)[1]
        case(f"{name}_forward", x, target, *settings)
        case(f"{name}_backward", of_each if reduction == 0 else grad, x, target, *settings, total)
LOG_CHANCES, TARGETS = values(5, 2, 4).log_softmax(2), tensor([2, 1], [1, 3])
CTC = [5, 4], [2, 1], 0
case("_ctc_loss", LOG_CHANCES, TARGETS, *CTC, see=first)
case("_ctc_loss", LOG_CHANCES, tensor(3, 2, 2), [5, 4], [2, 1], 1, see=first)
case("_ctc_loss_backward", tensor(0.7, 1.6), LOG_CHANCES, TARGETS, *CTC[:2],
     *aten._ctc_loss(LOG_CHANCES, TARGETS, *CTC), 0)  # fmt: skip

# ------------------------------------------------------------------------------------------------- optimizers

STEP = [torch.tensor(3.0), torch.tensor(3.0)]
ADAM = dict(lr=0.3, beta1=0.7, beta2=0.6, weight_decay=0.2, eps=0.02, maximize=False)
for amsgrad in (False, True):
    largest = [Y.abs() + 0.3, W.abs()] if amsgrad else []
    moments = [Z, G], [Y.abs(), W.abs() / 2], largest, STEP
    case("_fused_adam_ _fused_adamw_", [X, W], [Y, G], *moments, **ADAM, amsgrad=amsgrad)
SGD = dict(weight_decay=0.2, momentum=0.7, lr=0.3, dampening=0.1, maximize=True)
case("_fused_sgd_", [X, W], [Y, G], [Z, G.flip(0)], **SGD, nesterov=False, is_first_step=False)
case("_fused_sgd_", [X, W], [Y, G], [Z, G.flip(0)], **{**SGD, "dampening": 0.0}, nesterov=True, is_first_step=False)
case("_fused_sgd_", [X.t(), W], [Y.t(), G], [Z.t(), G.flip(0)], **SGD, nesterov=False, is_first_step=False)
ADAGRAD = dict(lr=0.3, lr_decay=0.1, weight_decay=0.2, eps=0.02)
case("_fused_adagrad_", [X, W], [Y, G], [Z.abs(), G.abs()], STEP, **ADAGRAD, maximize=False)
case(
    "_fused_adagrad_", [X.t(), W], [Y.t(), G], [Z.t().abs(), G.abs()], [STEP[0], STEP[0] + 1], **ADAGRAD, maximize=True
)
SCALED = dict(grad_scale=tensor(4.0), found_inf=tensor(0.0))
for scaled in (SCALED, {**SCALED, "found_inf": tensor(1.0)}):
    case("_fused_adam_", [X, W], [Y, G], *moments, **ADAM, amsgrad=True, **scaled)
    case("_fused_sgd_", [X, W], [Y, G], [Z, G.flip(0)], **SGD, nesterov=False, is_first_step=False, **scaled)
    case("_fused_adagrad_", [X, W], [Y, G], [Z.abs(), G.abs()], STEP, **ADAGRAD, maximize=False, **scaled)


def foreach(names, *arguments):
    for name in names.split():
        case(f"_foreach_{name}", *arguments)


MANY = [torch.full((1 + i % 3,), 1.0 + i) for i in range(90)]  # more than one launch takes
for lists in (([X, W], [Y, G], [Z, W.flip(0)]), ([X.t(), W], [Y.t(), G], [Z.t(), G]), ([X.double()],) * 3, (MANY,) * 3):
    foreach("sqrt", [t.abs() for t in lists[0]])
    foreach("neg abs reciprocal", lists[0])
    foreach("add.Scalar mul.Scalar", lists[0], 1.75)
    foreach("mul.ScalarList div.ScalarList", lists[0], [2.0 + i for i in range(len(lists[0]))])
    foreach("add.List sub.List mul.List div.List maximum.List", *lists[:2])
    foreach("lerp.Scalar", *lists[:2], 0.3)
    foreach("addcmul.Scalar addcdiv.Scalar", *lists, 0.7)
    foreach("addcdiv.ScalarList", *lists, [2.0 + i for i in range(len(lists[0]))])
for scaled in (X, X / 0):
    case("_amp_foreach_non_finite_check_and_unscale_", [scaled, W], torch.zeros(()), torch.tensor(0.25))
for steps, found in ((0, 0.0), (1, 0.0), (1, 1.0)):
    count = torch.tensor(steps, dtype=torch.int32)
    case("_amp_update_scale_", torch.tensor(8.0), count, torch.tensor(found), 2.0, 0.5, 2)
for reduce in ("sum", "max"):
    case("segment_reduce", values(2, 4, 2), reduce, lengths=tensor([1, 3], [2, 2]), axis=1)
case("native_group_norm", torch.zeros(2, 4, 0), None, None, 2, 4, 0, 2, 1e-5)

# ------------------------------------------------------------------------------------------------- random numbers
# PyTorch's CPU draws others: these are compared with what NumPy draws from the same Philox states.

SAMPLE = torch.zeros(9)
DRAWN = collections.defaultdict(list)


def drawn(names, *arguments, **settings):
    for name in names.split():
        DRAWN[name].append((arguments, settings, None))


drawn("uniform_", SAMPLE, -1.5, 4.0)
drawn("normal_ log_normal_ cauchy_", SAMPLE, 0.7, 1.6)
drawn("exponential_", SAMPLE, 1.7)
drawn("geometric_", SAMPLE, 0.3)
drawn("random_.from", SAMPLE.long(), 3, 40)
drawn("random_.to", SAMPLE.int(), 40)
drawn("random_", SAMPLE.int())
drawn("bernoulli_.float", SAMPLE, 0.3)
drawn("bernoulli_.Tensor", SAMPLE, torch.linspace(0, 1, 9))
drawn("bernoulli", torch.linspace(0, 1, 9))
drawn("bernoulli.out", torch.linspace(0, 1, 9), out=SAMPLE)
drawn("multinomial", tensor([1.0, 0.0, 3.0, 2.0]), 3)
drawn("multinomial", tensor(1.0, 0.0, 3.0), 1, True)
drawn("multinomial", tensor(0.0, 0.0, 3.0), 5, True)
drawn("normal.Tensor_Tensor", W, W.abs())
drawn("normal.Tensor_float", W, 1.6)
drawn("normal.float_Tensor", 0.7, W.abs())
drawn("normal.float_float", 0.7, 1.6, [5])
drawn("normal_", SAMPLE.double(), 0.7, 1.6)
drawn("randperm.generator", 13, generator=None)
drawn("randperm.generator_out", 13, generator=None, out=torch.zeros(13, dtype=torch.int64))
case("native_dropout", torch.full((40,), 1.4), 0.3, True, see=lambda r: (r[0][r[1]].unique(), (r[0] == 0) == r[1]))
case("native_dropout", torch.full((41,), 1.4), 0.3, True, see=lambda r: (r[0][r[1]].unique(), (r[0] == 0) == r[1]))
case("poisson", W.abs() * 3)
case("binomial", tensor(5.0, 12.0), tensor(0.3, 0.8))
case("_standard_gamma", W.abs() + 0.3)
case("_sample_dirichlet", X.abs() + 0.3)


def cases_of(name):
    """An in-place operator takes those of its functional form."""
    base, dot, which = name.partition(".")
    return DRAWN.get(name) or CASES.get(name) or CASES.get(base.removesuffix("_") + dot + which, [])


# Operators that the CPU has by another name, what of their arguments it takes (no lengths, and no seed), and those that compute in halves.
ON_THE_CPU = {
    "_scaled_dot_product_flash_attention": "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_flash_attention_backward": "_scaled_dot_product_flash_attention_for_cpu_backward",
}
TAKEN_ON_THE_CPU = {
    "_scaled_dot_product_flash_attention_backward": lambda arguments: (*arguments[:6], *arguments[10:12])
}
IN_HALVES = tuple(ON_THE_CPU)
