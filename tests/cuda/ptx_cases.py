"""What is compiled without a GPU: name -> (launcher, arguments); the kernels that it launches are compiled.

The arrays are small: only their types and layouts count."""

import numpy as np

from readtorch.aten.native import math as functions
from readtorch.aten.native import math_special
from readtorch.aten.native.cuda import (
    adaptive_average_pooling,
    adaptive_max_pooling2d,
    adaptive_max_pooling3d,
    average_pool3d,
    batch_linear_algebra_lib,
    bucketization,
    conv_shared,
    cuda_blas,
    dilated_max_pool2d,
    dilated_max_pool3d,
    distance_kernel,
    distribution_templates,
    distributions,
    dropout,
    embedding,
    embedding_bag,
    foreach_functors,
    fractional_max_pool3d,
    fused_adagrad_kernel,
    fused_adam_kernel,
    fused_sgd_kernel,
    grid_sampler,
    group_norm_kernel,
    im2col,
    index_kernel,
    layer_norm_kernel,
    loops,
    loss,
    loss_ctc,
    multinomial_kernel,
    naive_convolution_transpose3d,
    normalization,
    randperm,
    reflection_pad,
    repeat,
    scan_kernels,
    scatter_gather_kernel,
    segment_reduce,
    softmax,
    sort,
    sorting,
    unique,
    up_sample,
)
from readtorch.aten.native.cuda import copy as copies
from readtorch.aten.native.cuda import reduce as reductions
from readtorch.aten.native.cuda.reduce import reduce
from readtorch.aten.native.cuda.reduce_arg_max_kernel import arg_reduce, largest, smallest
from readtorch.aten.native.transformers.cuda.flash_attn import flash_api
from tests.cuda.launches import aligned, floats

f32 = np.float32
ALPHA = (f32(1),)


def layout_cases():
    m = floats(2, 3, 4)
    for inputs, function in ((1, functions.exp), (2, functions.add), (3, functions.addcmul)):
        yield f"strided {inputs}", loops.pointwise, (function, [m.transpose(2, 0, 1)] * inputs, floats(4, 2, 3), ALPHA)
        yield f"double {inputs}", loops.pointwise, (function, [np.ones(8)] * inputs, np.ones(8), (1.0,))


OF_INTEGERS = (
    "gcd",
    "lcm",
    "shift_left",
    "shift_right",
    "is_negative",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "integer_remainder",
)
KINDS = {
    **dict.fromkeys(OF_INTEGERS, np.int64),
    **dict.fromkeys(("angle_of_complex", "conjugate", "direction"), np.complex64),
}
RESULTS = {"signbit": bool, "is_negative": bool, "is_infinite": bool, "exponent": np.int32, "angle_of_complex": f32}


def function_cases():
    found = {**vars(functions), **vars(math_special)}
    found = {name: function for name, function in found.items() if signature(function)[-1:] == ("scalars",)}
    found["polynomial"] = math_special.value("shifted_chebyshev_polynomial_u")
    for name, function in found.items():
        kind = bool if name.startswith("logical") else KINDS.get(name, f32)
        arrays = [aligned(np.ones(8, kind))] * (len(signature(function)) - 1)
        out = aligned(np.ones(8, RESULTS.get(name, kind)))
        scalars = tuple(map(f32 if kind is bool else kind, (3, 2, *range(1, math_special.TERMS + 1))))
        yield f"pointwise {name}", loops.pointwise, (function, arrays, out, scalars)


def signature(function):
    code = getattr(function, "__code__", None)
    return code.co_varnames[: code.co_argcount] if code else ()


def reduce_cases():
    for name in ("SUM", "MEAN", "PROD", "AMAX", "NORM_2", "NORM_INF"):
        operation = getattr(reductions, name)
        yield f"reduce {name} rows", reduce, (operation, floats(3, 40), (1,), floats(3))
        yield f"reduce {name} columns", reduce, (operation, floats(40, 3), (0,), floats(3))
    yield "reduce two passes", reduce, (reductions.MEAN, floats(3, 40), (1,), floats(3), 2)
    yield "reduce ANY", reduce, (reductions.ANY, floats(40, 3), (1,), floats(40) > 0)
    counts = np.ones(40, np.int64)
    yield "reduce int64", reduce, (reductions.SUM, np.ones((40, 3), bool), (1,), counts)
    for wins in (largest, smallest):
        yield f"arg_reduce {wins.__name__}", arg_reduce, (wins, floats(3, 40), 1, floats(3), np.zeros(3, np.int64))


def softmax_cases():
    x, y, out = floats(3, 40), floats(3, 40), floats(3, 40)
    for log in (False, True):
        yield f"softmax log={log}", softmax.softmax, (x, 1, out, log)
        yield f"softmax backward log={log}", softmax.softmax_backward, (x, y, 1, out, log)
    yield "softmax of columns", softmax.softmax, (x, 0, out)


def norm_cases():
    x, c, m = floats(4, 6, 10), floats(6), floats(4)
    for affine in (True, False):
        w = c if affine else None
        rows = floats(4, 6)
        yield f"layer_norm affine={affine}", layer_norm_kernel.layer_norm, (rows, 6, w, w, 1e-5, rows, m, m)
        yield (
            f"layer_norm backward affine={affine}",
            layer_norm_kernel.layer_norm_backward,
            (floats(4, 6), floats(4, 6), 6, m, m, w, floats(4, 6), c, c),
        )
        yield f"group_norm affine={affine}", group_norm_kernel.group_norm, (x, 1, w, w, 1e-5, x, m, m)
        yield (
            f"group_norm backward affine={affine}",
            group_norm_kernel.group_norm_backward,
            (x, x, 1, m, m, w, x.copy(), c, c),
        )
        yield (
            f"batch_norm affine={affine}",
            normalization.batch_norm,
            (x, w, w, c, c, affine, 0.1, 1e-5, x.copy(), c.copy(), c.copy()),
        )
        yield (
            f"batch_norm backward affine={affine}",
            normalization.batch_norm_backward,
            (x, x, w, True, c, c, x.copy(), c.copy(), c.copy()),
        )


def matmul_cases():
    a, b, out = aligned(floats(8, 8)), aligned(floats(8, 8)), floats(8, 8)
    for quarters in (1, 2):
        for name, x, y in (("nn", a, b), ("nt", a, b.T), ("tn", a.T, b), ("tt", a.T, b.T)):
            yield f"matmul {name} {64 * quarters}", cuda_blas.matmul, (x, y, out, None, 1, None, quarters)
        with_bias = (a, b.T, out, out[0], 1, cuda_blas.gelu, quarters)
        yield f"matmul bias gelu {64 * quarters}", cuda_blas.matmul, with_bias
    half = aligned(floats(8, 8).astype(np.float16))
    for name, x, y in (("nn", half, half), ("nt", half, half.T), ("tn", half.T, half), ("tt", half.T, half.T)):
        yield f"tensor cores {name}", cuda_blas.matmul, (x, y, half)
    yield "matmul bias", cuda_blas.matmul, (a, b.T, out, out[0])
    yield "matmul double", cuda_blas.matmul, (np.ones((8, 8)), np.ones((8, 8)), np.ones((8, 8)))


def attention_cases():
    q, k, rows = (aligned(np.ones((1, 2, n, 32), np.float16)) for n in (5, 7, 5))
    numbers = floats(1, 2, 5), floats(1, 2, 5)
    yield "attention", flash_api.mha_fwd, (q, k, k, rows, numbers[0], 0.5, True)
    yield "attention backward", flash_api.mha_bwd, (q, q, k, k, *numbers, q, k, k, 0.5, False)


def indexing_cases():
    x, index, out = floats(3, 4), np.zeros((3, 4), np.int64), floats(3, 4)
    for name in ("gather", "scatter", "scatter_add"):
        yield name, getattr(scatter_gather_kernel, name), (x, 1, index, out)
    yield "index", index_kernel.index_elements, (x, [index[0], index[1]], floats(4))
    yield "index_put", index_kernel.index_put, (out, [index[0]], floats(4, 4))
    yield "index_put accumulate", index_kernel.index_put, (out, [index[0]], floats(4, 4), True)
    yield "embedding", embedding.embedding, (x, index[0], floats(4, 4))
    yield "embedding backward", embedding.embedding_backward, (floats(4, 4), index[0], -1, x)
    yield "transpose", copies.transpose, (x, x.T.copy())
    yield "cumsum", scan_kernels.cumsum, (x, 1, out)
    yield "cumprod int64", scan_kernels.cumprod, (x > 0, 0, index)


def loss_cases():
    x, target, one = floats(3, 4), np.zeros(3, np.int64), np.zeros((), np.float32)
    for weight in (None, floats(4)):
        yield f"nll_loss weight={weight is not None}", loss.nll_loss, (x, target, weight, 1, -100, one, one)
        yield (
            f"nll_loss backward weight={weight is not None}",
            loss.nll_loss_backward,
            (one, target, weight, 1, -100, one, x),
        )


def random_cases():
    for dtype in (np.float32, np.float64):
        for name in ("uniform", "normal", "exponential"):
            yield f"{name} {dtype.__name__}", getattr(distribution_templates, name), ((1, 4), np.ones(8, dtype))
    yield "bernoulli", distribution_templates.bernoulli, ((1, 4), floats(8), 0.5)
    for top in (10, 1 << 40):
        yield f"integers below {top}", distribution_templates.integers, ((1, 4), np.ones(8, np.int64), 0, top)
    for n, vector in ((8, 8), (8, 4), (6, 2), (5, 1)):
        out = floats(n), floats(n) > 0
        yield f"dropout of {n}, {vector} a thread", dropout.dropout, ((1, 4), floats(n), 0.5, *out, 1056, vector)


def image_cases():
    x, weight, bias, out = floats(1, 2, 4, 4), floats(2, 2, 3, 3), floats(2), floats(1, 2, 4, 4)
    how, ones = ((1, 1), (1, 1), (1, 1), 1), ((2, 2), (2, 2), (0, 0))
    yield "conv2d", conv_shared.conv2d, (x, weight, bias, *how, out)
    yield "conv2d without bias", conv_shared.conv2d, (x, weight, None, *how, out)
    yield "conv2d backward input", conv_shared.conv2d_backward_input, (out, weight, *how, x)
    yield "conv2d backward weight", conv_shared.conv2d_backward_weight, (out, x, *how, weight, 2)
    small, where = floats(1, 2, 2, 2), np.zeros((1, 2, 2, 2), np.int64)
    yield "max_pool2d backward", dilated_max_pool2d.max_pool2d_backward, (small, where, *ones, (1, 1), x)
    yield "adaptive_avg_pool2d", adaptive_average_pooling.adaptive_avg_pool2d, (x, small)
    yield "adaptive_avg_pool2d backward", adaptive_average_pooling.adaptive_avg_pool2d_backward, (small, x)


def sort_cases():
    x = np.ones((2, 3000), np.float32)
    for descending in (False, True):
        yield f"sort descending={descending}", sort.sort, (x, 1, descending, x.copy(), x.astype(np.int64))
    yield "sort int64", sort.sort, (x.astype(np.int64), 0, False, x.astype(np.int64), x.astype(np.int64))


def foreach_cases():
    lists = [[floats(3)] for _ in range(5)]
    for flag in (False, True):
        yield f"sgd {flag}", fused_sgd_kernel.sgd, (*lists[:2], lists[2] if flag else None, 0.1)
        yield (
            f"adam {flag}",
            fused_adam_kernel.adam,
            (*lists[:4], lists[4] if flag else None, [np.ones(1, np.float32)], 0.1, 0.9, 0.999, 1e-8, 0.1, flag),
        )

    yield "adagrad", fused_adagrad_kernel.adagrad, (*lists[:3], [np.ones(1, np.float32)], 0.1, 0.1, 1e-8)
    for operands, function in ((1, functions.mul_number), (2, functions.lerp_by_number), (3, functions.addcdiv)):
        yield f"foreach {function.__name__}", foreach_functors.foreach, (function, lists[:operands], lists[4], [0.5])


def order_cases():
    x, values, places = floats(3, 4), floats(3, 2), np.zeros((3, 2), np.int64)
    for right in (False, True):
        yield f"search right={right}", bucketization.search, (x, None, values, right, places)
    yield "search by a sorter", bucketization.search, (x, np.zeros((3, 4), np.int64), values, False, places)
    for rank in (sorting.kth, sorting.median, sorting.nanmedian, sorting.mode):
        yield f"pick {rank.__name__}", sorting.pick, (rank, x, 1, values[:, :1].copy(), places[:, :1].copy())
    yield "word_order", unique.word_order, (x, np.arange(4))
    yield "repeat_indices", repeat.repeat_indices, (places[0], np.arange(3))


def resizing_cases():
    x, image = floats(1, 2, 3, 4), floats(1, 2, 5, 6)
    for source in (reflection_pad.mirrored, reflection_pad.nearest):
        yield f"pad {source.__name__}", reflection_pad.pad_elements, (source, x, (0, 1, 1), image)
        yield f"pad backward {source.__name__}", reflection_pad.pad_backward, (source, image, (0, 1, 1), x)
    window = (2, 2, 2, 3, 1, 1, 0, 0, 1, 1)
    yield "im2col", im2col.im2col, (x, window, floats(1, 8, 6))
    yield "col2im", im2col.col2im, (floats(1, 8, 6), window, x)
    grid, points = floats(1, 5, 2), floats(1, 2, 5)
    for mode, align in ((0, False), (1, True), (2, False)):
        settings = (mode, 2, align)
        yield f"grid_sampler {mode}", grid_sampler.sample_points, (x, grid, *settings, points)
        yield (
            f"grid_sampler backward {mode}",
            grid_sampler.sample_backward,
            (points, x, grid, *settings, x.copy(), grid.copy()),
        )
    places = np.zeros(5, np.int64)
    yield "times_band", up_sample.times_band, (places, places, floats(5, 2), floats(2, 4, 3), floats(2, 5, 3))
    where = np.zeros((1, 2, 2, 2), np.int64)
    yield (
        "adaptive_max_pool2d backward",
        adaptive_max_pooling2d.adaptive_max_pool2d_backward,
        (floats(1, 2, 2, 2), where, x),
    )
    how, volume, weight = ((1, 1, 1), (0, 0, 0), (1, 1, 1), 1), floats(1, 2, 2, 3, 3), floats(2, 2, 1, 2, 2)
    result = floats(1, 2, 2, 2, 2)
    yield "conv3d", naive_convolution_transpose3d.conv3d, (volume, weight, floats(2), *how, result)
    yield "conv3d backward input", naive_convolution_transpose3d.conv3d_backward_input, (result, weight, *how, volume)
    yield "conv3d backward weight", naive_convolution_transpose3d.conv3d_backward_weight, (result, volume, *how, weight)


def combining_cases():
    index = np.zeros((3, 4), np.int64)
    for how in scatter_gather_kernel.HOW:
        for dtype in (np.float32, np.float64, np.int32, np.int64):
            x = np.ones((3, 4), dtype)
            yield f"combine {how} {dtype.__name__}", scatter_gather_kernel.combine, (how, x, 1, index, x.copy())
    weight, out, lengths = floats(3, 4), floats(2, 4), np.zeros(2, np.int64)
    for name, factors, takes_max, takes_mean in (
        ("sum", None, 0, 0),
        ("weighted sum", floats(2), 0, 0),
        ("mean", None, 0, 1),
        ("max", None, 1, 0),
    ):
        yield (
            f"bags {name}",
            embedding_bag.reduce_bags,
            (weight, lengths, lengths.copy(), factors, takes_max, takes_mean, -1, out, lengths.copy(), index[:2]),
        )
    yield "bernoulli_each", distribution_templates.bernoulli_each, ((1, 4), floats(8), floats(8))
    yield "multinomial", multinomial_kernel.sample, ((1, 4), weight, weight.copy(), index)
    log_probs, alpha, numbers = floats(4, 2, 3), floats(2, 4, 5), (lengths,) * 4
    yield "ctc_loss", loss_ctc.ctc_loss, (log_probs, *numbers, 0, alpha, floats(2))
    yield (
        "ctc_loss backward",
        loss_ctc.ctc_loss_backward,
        (floats(2), log_probs, *numbers, floats(2), alpha, 0, True, log_probs.copy()),
    )


def factor_cases():
    for dtype in (np.float32, np.float64):
        a, b, info = np.ones((2, 3, 3), dtype), np.ones((2, 3, 2), dtype), np.zeros(2, np.int32)
        name, pivots, taus = dtype.__name__, np.zeros((2, 3), np.int32), np.ones((2, 3), dtype)
        yield f"cholesky {name}", batch_linear_algebra_lib.cholesky, (a, info)
        yield f"lu {name}", batch_linear_algebra_lib.lu, (a, pivots, info)
        yield f"exchange {name}", batch_linear_algebra_lib.exchange, (pivots, b)
        yield f"solve_triangular {name}", batch_linear_algebra_lib.solve_triangular, (a, b, True)
        yield f"qr {name}", batch_linear_algebra_lib.qr, (a, taus)
        yield f"orthogonal {name}", batch_linear_algebra_lib.orthogonal, (a, taus, b)
        yield f"eigh {name}", batch_linear_algebra_lib.eigh, (a, np.ones((2, 4, 3), dtype))
        yield f"svd {name}", batch_linear_algebra_lib.svd, (b, np.ones((2, 2, 2), dtype))


def volume_cases():
    for dtype in (np.float32, np.float64):
        x, small = np.ones((1, 2, 4, 4, 4), dtype), np.ones((1, 2, 2, 2, 2), dtype)
        where = np.zeros((1, 2, 2, 2, 2), np.int64)
        name, two = dtype.__name__, ((2, 2, 2), (2, 2, 2), (0, 0, 0))
        yield f"avg_pool3d {name}", average_pool3d.avg_pool, (x, *two, True, 0, small)
        yield f"avg_pool3d backward {name}", average_pool3d.avg_pool_backward, (small, *two, True, 0, x)
        yield f"max_pool3d {name}", dilated_max_pool3d.max_pool3d, (x, *two, (1, 1, 1), small, where)
        yield f"adaptive_max_pool3d {name}", adaptive_max_pooling3d.adaptive_max_pool3d, (x, small, where)
        yield (
            f"fractional_max_pool {name}",
            fractional_max_pool3d.fractional_max_pool,
            (x, (1, 2, 2), np.ones((1, 2, 3), dtype), (0, 1, 2), small, where),
        )
        grid, points = np.ones((1, 5, 3), dtype), np.ones((1, 2, 5), dtype)
        for mode in (0, 1):
            yield (
                f"grid_sampler of volumes {mode} {name}",
                grid_sampler.sample_points,
                (x, grid, mode, 2, False, points),
            )
            yield (
                f"grid_sampler of volumes backward {mode} {name}",
                grid_sampler.sample_backward,
                (points, x, grid, mode, 2, False, x.copy(), grid.copy()),
            )


def row_cases():
    for dtype in (np.float32, np.float64):
        x, y, name = np.ones((1, 3, 4), dtype), np.ones((1, 2, 4), dtype), dtype.__name__
        pairs, edges = np.ones((1, 3, 2), dtype), np.zeros((1, 3), np.int64)
        for p in (0.0, 1.0, 2.0, np.inf, 3.0):
            yield f"cdist {p} {name}", distance_kernel.cdist, (x, y, p, pairs)
            yield f"cdist backward {p} {name}", distance_kernel.cdist_backward, (pairs, x, y, p, pairs, x)
        yield f"pdist {name}", distance_kernel.pdist, (x[0], 2.0, pairs[0, :, 0].copy())
        yield (
            f"pdist backward {name}",
            distance_kernel.pdist_backward,
            (pairs[0, :, 0].copy(), x[0], 2.0, pairs[0, :, 0].copy(), x[0].copy()),
        )
        for how in segment_reduce.HOW:
            yield f"segments {how} {name}", segment_reduce.reduce_each_segment, (how, x, edges, dtype(0), y, dtype(0))
            yield (
                f"segments backward {how} {name}",
                segment_reduce.reduce_backward,
                (how, y, y, x, edges, dtype(0), x.copy()),
            )
        yield f"logcumsumexp {name}", scan_kernels.logcumsumexp, (x, 1, x.copy())
    for dtype in (np.float32, np.float64, np.int32, np.int64):
        x = np.ones((3, 4), dtype)
        yield (
            f"cummax {dtype.__name__}",
            scan_kernels.running_extreme,
            (scan_kernels.at_least, x, 1, x.copy(), x.astype(np.int64)),
        )
    x = floats(3, 4)
    yield "cummin", scan_kernels.running_extreme, (scan_kernels.at_most, x, 1, x.copy(), np.zeros((3, 4), np.int64))


def sample_cases():
    doubles, state = np.ones(8), (1, 4)
    for dtype in (np.float32, np.float64):
        yield f"geometric {dtype.__name__}", distribution_templates.geometric, (state, np.ones(8, dtype), 0.5)
        yield f"cauchy {dtype.__name__}", distribution_templates.cauchy, (state, np.ones(8, dtype), 0.5)
    yield "geometric int64", distribution_templates.geometric, (state, np.ones(8, np.int64), 0.5)
    yield "integers int32", distribution_templates.narrow_integers, (state, np.ones(8, np.int32), 0, 1 << 31, 8)
    for draw in (distributions.one_poisson, distributions.one_binomial, distributions.one_gamma):
        yield draw.__name__, distributions.sample, (draw, state, (doubles, doubles), doubles.copy())
    yield "shuffle_equal", randperm.shuffle_equal, (state, np.zeros(8, np.int64), np.arange(8))


FAMILIES = [
    layout_cases,
    function_cases,
    reduce_cases,
    softmax_cases,
    norm_cases,
    matmul_cases,
    attention_cases,
    indexing_cases,
    loss_cases,
    random_cases,
    image_cases,
    sort_cases,
    foreach_cases,
    order_cases,
    resizing_cases,
    combining_cases,
    factor_cases,
    volume_cases,
    row_cases,
    sample_cases,
]
IN_FLOAT64 = (
    "pointwise sin",
    "pointwise cos",
    "cauchy float32",  # CUDA's own functions bring large arguments down so
    "pointwise sinc",
    "pointwise digamma",
    "pointwise trigamma",
    "pointwise spherical_j0",
    "pointwise tan",
    "pointwise j0",
    "pointwise j1",
    "pointwise y0",
    "pointwise y1",
    "pointwise polynomial",
)  # a whole number times a float32 is a float64
NO_SPILLS = ("softmax", "_norm", "matmul", "attention", "conv2d")
FEW_SPILLS = {("matmul tn 128", (8, 0)): 64}  # bytes, once a tile: outside of the loop over K


def cases():
    return {name: (launcher, arguments) for family in FAMILIES for name, launcher, arguments in family()}
