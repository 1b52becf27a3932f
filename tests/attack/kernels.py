"""Attack on the kernels that trust sizes and indices: each is told lies about where its elements are.

    python -m tests.attack.kernels --report tests/attack/results/kernels.json

A case is a call, written for both libraries, with a lie in it. It fails if the process dies or hangs where PyTorch's does not, if
it takes more than 1 GB, or writes or reads outside a tensor: in front of every tensor and behind it lie bytes that must stay as
they are and must not come out.
"""

import argparse
import sys

import torch

from tests.attack import calls, children, limits

SECONDS = 30

LIES = [-1, -4, 3, 4, 100, 900000, 2**31 - 1, 2**40, -(2**31), -(2**62), 2**63 - 1]
LIES32 = [-1, 0, 4, 100, 900000, 2**31 - 1, -(2**31)]
NUMBERS = [-1, 0, 7, 2**31, 2**40, -(2**40), 2**62, 2**63 - 1]
COORDINATES = [1e3, -1e9, 1e30, 3e38, float("inf"), float("-inf"), float("nan")]

# {name: (what is lied with, the call)}. x is a 3 x 3 matrix of floats, v a vector of 3, i a vector of the indices 0, LIE, 2;
# t(values, shape, dtype) makes others.
KERNELS = {
    "gather": (LIES, "T.gather(x, 0, i.view(1, 3))"),
    "gather of the last dimension": (LIES, "T.gather(x, 1, i.view(3, 1))"),
    "gather_backward": (LIES, "A.gather_backward(x, x, 0, t([0, LIE, 2], [3, 1], 'int64'), False)"),
    "scatter": (LIES, "x.scatter_(0, i.view(1, 3), 7.0)"),
    "scatter of a tensor": (LIES, "x.scatter_(1, i.view(3, 1), t([7.0], [3, 1]))"),
    "scatter_add": (LIES, "x.scatter_add_(0, i.view(1, 3), t([7.0], [1, 3]))"),
    "scatter_reduce": (LIES, "x.scatter_reduce_(0, i.view(1, 3), t([7.0], [1, 3]), 'amax')"),
    "scatter with reduce": (LIES, "x.scatter_(0, i.view(1, 3), t([7.0], [1, 3]), reduce='multiply')"),
    "index_select": (LIES, "T.index_select(x, 0, i)"),
    "index_select of a number": (LIES, "T.index_select(t([5.0], []), 0, t([LIE], [1], 'int64'))"),
    "index_add": (LIES, "x.index_add_(0, i, t([7.0], [3, 3]))"),
    "index_copy": (LIES, "x.index_copy_(0, i, t([7.0], [3, 3]))"),
    "index_fill": (LIES, "x.index_fill_(1, i, 7.0)"),
    "index_reduce": (LIES, "x.index_reduce_(0, i, t([7.0], [3, 3]), 'prod')"),
    "index": (LIES, "x[i]"),
    "two indices": (LIES, "x[i, t([0, 1, 2], [3], 'int64')]"),
    "index by int32": (LIES32, "x[t([LIE], [1], 'int32')]"),
    "index_put": (LIES, "x.index_put_((i,), t([7.0], [3, 3]))"),
    "index_put, accumulated": (LIES, "x.index_put_((i, i), t([7.0], [3]), accumulate=True)"),
    "assignment": (LIES, "x.__setitem__(i, 7.0)"),
    "take": (LIES, "T.take(x, i)"),
    "take_along_dim": (LIES, "T.take_along_dim(x, i.view(1, 3), 0)"),
    "put": (LIES, "x.put_(i, v)"),
    "put, accumulated": (LIES, "x.put_(i, v, accumulate=True)"),
    "embedding": (LIES, "F.embedding(i, x)"),
    "embedding_dense_backward": (LIES, "A.embedding_dense_backward(x, i, 3, -1, False)"),
    "embedding_renorm": (LIES, "A.embedding_renorm_(x, i, 0.5, 2.0)"),
    "embedding with max_norm": (LIES, "F.embedding(i, x, max_norm=0.5)"),
    "embedding_bag": (LIES, "F.embedding_bag(i, x, t([0, 1], [2], 'int64'))"),
    "embedding_bag's offsets": (LIES, "F.embedding_bag(t([0, 1, 2], [3], 'int64'), x, t([0, LIE], [2], 'int64'))"),
    "embedding_bag, the largest": (LIES, "F.embedding_bag(i, x, t([0, 1], [2], 'int64'), mode='max')"),
    "embedding_bag_backward": (
        LIES,
        "A._embedding_bag_dense_backward(x, i, t([0, LIE, 2], [3], 'int64'), t([1, 1, LIE], [3], 'int64'), "
        "t([0, LIE, 1], [3], 'int64'), 3, False, 1, None)",
    ),
    "embedding_bag's weights": (
        LIES,
        "A._embedding_bag_per_sample_weights_backward(x, x, i, t([0, 1, 2], [3], 'int64'), "
        "t([0, LIE, 2], [3], 'int64'), 0)",
    ),
    "nll_loss": (LIES, "F.nll_loss(x, i)"),
    "nll_loss2d": (LIES, "F.nll_loss(x.view(1, 3, 1, 3), i.view(1, 1, 3))"),
    "nll_loss_backward": (LIES, "A.nll_loss_backward(t([1.0], []), x, i, None, 1, -100, t([3.0], []))"),
    "cross_entropy": (LIES, "F.cross_entropy(x, i, label_smoothing=0.1)"),
    "multi_margin_loss": (LIES, "F.multi_margin_loss(x, i)"),
    "multilabel_margin_loss": (LIES, "F.multilabel_margin_loss(x, t([0, LIE, -1], [3, 3], 'int64'))"),
    "multilabel_margin_loss_backward": (
        LIES,
        "A.multilabel_margin_loss_backward(t([1.0], []), v, t([0, LIE, -1], [3], 'int64'), 1, v)",
    ),
    "ctc_loss's labels": (LIES, "F.ctc_loss(x.view(3, 1, 3), i.view(1, 3), [3], [2])"),
    "ctc_loss's input lengths": (NUMBERS, "F.ctc_loss(x.view(3, 1, 3), t([1, 2], [1, 2], 'int64'), [LIE], [2])"),
    "ctc_loss's target lengths": (NUMBERS, "F.ctc_loss(x.view(3, 1, 3), t([1, 2], [1, 2], 'int64'), [3], [LIE])"),
    "ctc_loss's blank": (NUMBERS, "F.ctc_loss(x.view(3, 1, 3), t([1, 2], [1, 2], 'int64'), [3], [2], blank=LIE)"),
    "ctc_loss_backward": (
        NUMBERS,
        "A._ctc_loss_backward(t([1.0], [1]), x.view(3, 1, 3), t([1, 2], [1, 2], 'int64'), [LIE], [2], "
        "t([1.0], [1]), t([0.5], [1, 3, 5]), 0)",
    ),
    "max_unpool1d": (LIES, "F.max_unpool1d(v.view(1, 1, 3), i.view(1, 1, 3), 2)"),
    "max_unpool2d": (LIES, "F.max_unpool2d(v.view(1, 1, 3, 1), i.view(1, 1, 3, 1), 2)"),
    "max_unpool3d": (LIES, "F.max_unpool3d(v.view(1, 1, 3, 1, 1), i.view(1, 1, 3, 1, 1), 2)"),
    "max_pool2d_backward": (
        LIES,
        "A.max_pool2d_with_indices_backward(t([1.0], [1, 1, 1]), x.view(1, 3, 3), [2, 2], [2, 2], [0, 0], "
        "[1, 1], False, t([LIE], [1, 1, 1], 'int64'))",
    ),
    "max_pool3d_backward": (
        LIES,
        "A.max_pool3d_with_indices_backward(t([1.0], [1, 1, 1, 1]), t([1.0], [1, 2, 2, 2]), [2, 2, 2], "
        "[2, 2, 2], [0, 0, 0], [1, 1, 1], False, t([LIE], [1, 1, 1, 1], 'int64'))",
    ),
    "adaptive_max_pool2d_backward": (
        LIES,
        "A.adaptive_max_pool2d_backward(t([1.0], [1, 1, 1]), x.view(1, 3, 3), t([LIE], [1, 1, 1], 'int64'))",
    ),
    "adaptive_max_pool3d_backward": (
        LIES,
        "A.adaptive_max_pool3d_backward(t([1.0], [1, 1, 1, 1]), t([1.0], [1, 2, 2, 2]), "
        "t([LIE], [1, 1, 1, 1], 'int64'))",
    ),
    "fractional_max_pool2d_backward": (
        LIES,
        "A.fractional_max_pool2d_backward(t([1.0], [1, 1, 1]), x.view(1, 3, 3), [2, 2], [1, 1], "
        "t([LIE], [1, 1, 1], 'int64'))",
    ),
    "fractional_max_pool2d": (
        COORDINATES,
        "A.fractional_max_pool2d(t([1.0], [1, 4, 4]), [2, 2], [2, 2], t([LIE], [1, 1, 2]))",
    ),
    "segment_reduce's lengths": (LIES, "T.segment_reduce(v, 'sum', lengths=t([1, LIE, 1], [3], 'int64'), unsafe=True)"),
    "segment_reduce's offsets": (LIES, "T.segment_reduce(v, 'max', offsets=t([0, LIE, 3], [3], 'int64'), unsafe=True)"),
    "segment_reduce, checked": (LIES, "T.segment_reduce(v, 'mean', lengths=t([1, LIE, 1], [3], 'int64'))"),
    "lu_solve": (LIES32, "T.linalg.lu_solve(x, t([1, LIE, 3], [3], 'int32'), t([1.0], [3, 1]))"),
    "lu_solve from the right": (
        LIES32,
        "T.linalg.lu_solve(x, t([1, LIE, 3], [3], 'int32'), t([1.0], [1, 3]), left=False)",
    ),
    "lu_unpack": (LIES32, "T.lu_unpack(x, t([1, LIE, 3], [3], 'int32'))"),
    "ldl_solve": (LIES32, "T.linalg.ldl_solve(x, t([1, 2, LIE], [3], 'int32'), t([1.0], [3, 1]))"),
    "ldl_solve, all of them": (LIES32, "T.linalg.ldl_solve(x, t([LIE], [3], 'int32'), t([1.0], [3, 1]))"),
    "sparse_coo_tensor": (LIES, "T.sparse_coo_tensor(i.view(1, 3), v, (3,)).to_dense()"),
    "sparse, unchecked": (
        LIES,
        "T.sparse_coo_tensor(i.view(1, 3), v, (3,), check_invariants=False).coalesce().to_dense()",
    ),
    "bincount": (LIES, "T.bincount(i)"),
    "bincount's least length": (NUMBERS, "T.bincount(t([0, 1], [2], 'int64'), minlength=LIE)"),
    "bincount's weights": (NUMBERS[:3], "T.bincount(t([0, 1], [2], 'int64'), t([1.0], [max(LIE, 0)]))"),
    "searchsorted's sorter": (LIES, "T.searchsorted(v, t([0.5], [1]), sorter=i)"),
    "as_strided": (NUMBERS, "T.as_strided(v, (2, 2), (1, 1), LIE)"),
    "as_strided by strides": (NUMBERS, "T.as_strided(v, (2, 2), (LIE, 1))"),
    "as_strided by sizes": (NUMBERS, "T.as_strided(v, (LIE, 2), (1, 1)).shape"),
    "as_strided_": (NUMBERS, "v.as_strided_((2,), (LIE,)).fill_(1.0)"),
    "as_strided_scatter": (NUMBERS, "T.as_strided_scatter(v, t([1.0], [2]), (2,), (1,), LIE)"),
    "set_": (NUMBERS, "v.set_(v.untyped_storage(), LIE, (2,), (1,))"),
    "narrow by a tensor": (LIES, "T.narrow(v, 0, t([LIE], [], 'int64'), 1)"),
    "select": (NUMBERS, "T.select(x, 0, LIE)"),
    "select_scatter": (NUMBERS, "T.select_scatter(x, v, 0, LIE)"),
    "slice_scatter": (NUMBERS, "T.slice_scatter(x, x, 0, LIE)"),
    "select_backward": (NUMBERS, "A.select_backward(v, [3, 3], 0, LIE)"),
    "unfold": (NUMBERS, "v.unfold(0, LIE, 1)"),
    "unfold_backward": (NUMBERS, "A.unfold_backward(t([1.0], [2, 2]), [3], 0, 2, LIE)"),
    "tensor_split at a tensor's": (LIES, "[p.shape for p in T.tensor_split(v, i)]"),
    "split_with_sizes": (NUMBERS, "T.split_with_sizes(v, [1, LIE, 1])"),
    "repeat_interleave": (LIES, "T.repeat_interleave(v, t([1, LIE, 1], [3], 'int64'))"),
    "one_hot": (LIES, "F.one_hot(i)"),
    "one_hot of few classes": (LIES, "F.one_hot(i, 3)"),
    "masked_scatter": (NUMBERS[:3], "x.masked_scatter_(x > -9, t([1.0], [max(LIE, 0)]))"),
    "boolean index": (NUMBERS[:3], "x[t([1], [max(LIE, 0)], 'bool')]"),
    "nonzero_static": (NUMBERS, "T.nonzero_static(v, size=LIE)"),
    "pack_padded_sequence": (LIES, "A._pack_padded_sequence(x, t([3, LIE, 1], [3], 'int64'), True)"),
    "pad_packed_sequence": (LIES, "A._pad_packed_sequence(x, t([1, LIE, 1], [3], 'int64'), True, 0.0, 3)"),
    "pack_padded_sequence_backward": (
        LIES,
        "A._pack_padded_sequence_backward(x, [3, 3, 3], t([1, LIE, 1], [3], 'int64'), True)",
    ),
    "gru of packed": (
        LIES,
        "T.gru(x, t([1, LIE, 1], [3], 'int64'), t([0.0], [1, 1, 2]), [t([0.1], [6, 3]), t([0.1], [6, 2]), "
        "t([0.1], [6]), t([0.1], [6])], True, 1, 0.0, False, False)",
    ),
    "grid_sampler": (COORDINATES, "F.grid_sample(x.view(1, 1, 3, 3), t([LIE, 0.5], [1, 2, 2, 2]), align_corners=True)"),
    "grid_sampler, nearest": (
        COORDINATES,
        "F.grid_sample(x.view(1, 1, 3, 3), t([LIE], [1, 1, 1, 2]), mode='nearest', "
        "padding_mode='reflection', align_corners=False)",
    ),
    "grid_sampler, bicubic": (
        COORDINATES,
        "F.grid_sample(x.view(1, 1, 3, 3), t([LIE], [1, 1, 1, 2]), mode='bicubic', "
        "padding_mode='border', align_corners=False)",
    ),
    "grid_sampler in 3d": (
        COORDINATES,
        "F.grid_sample(t([1.0], [1, 1, 2, 2, 2]), t([LIE], [1, 1, 1, 1, 3]), align_corners=True)",
    ),
    "grid_sampler_backward": (
        COORDINATES,
        "A.grid_sampler_2d_backward(t([1.0], [1, 1, 1, 1]), x.view(1, 1, 3, 3), t([LIE], [1, 1, 1, 2]), "
        "0, 0, True, [True, True])",
    ),
    "fold": (NUMBERS, "F.fold(t([1.0], [1, 4, 4]), (LIE, 3), (2, 2))"),
    "unfold of images": (NUMBERS, "F.unfold(x.view(1, 1, 3, 3), (2, 2), padding=LIE)"),
    "col2im's kernel": (NUMBERS, "F.fold(t([1.0], [1, 4, 4]), (3, 3), (LIE, 2))"),
    "interpolate": (NUMBERS, "F.interpolate(v.view(1, 1, 3), LIE)"),
    "upsample_nearest2d_backward": (
        NUMBERS,
        "A.upsample_nearest2d_backward(x.view(1, 1, 3, 3), [3, 3], [1, 1, LIE, 2])",
    ),
    "upsample_bicubic2d_backward": (
        NUMBERS,
        "A.upsample_bicubic2d_backward(x.view(1, 1, 3, 3), [LIE, 3], [1, 1, 2, 2], False)",
    ),
    "interpolate by a factor": (COORDINATES, "F.interpolate(v.view(1, 1, 3), scale_factor=LIE)"),
    "reflection_pad": (NUMBERS, "F.pad(v.view(1, 1, 3), (LIE, 1), mode='reflect')"),
    "replication_pad": (NUMBERS, "F.pad(v.view(1, 1, 3), (1, LIE), mode='replicate')"),
    "circular pad": (NUMBERS, "F.pad(v.view(1, 1, 3), (LIE, 0), mode='circular')"),
    "reflection_pad_backward": (NUMBERS, "A.reflection_pad1d_backward(t([1.0], [1, 5]), t([1.0], [1, 3]), [1, LIE])"),
    "max_pool's window": (NUMBERS, "F.max_pool2d(x.view(1, 3, 3), LIE, 1)"),
    "max_pool's padding": (NUMBERS, "F.max_pool2d(x.view(1, 3, 3), 2, 1, LIE)"),
    "avg_pool's stride": (NUMBERS, "F.avg_pool2d(x.view(1, 3, 3), 2, LIE)"),
    "avg_pool2d_backward": (
        NUMBERS,
        "A.avg_pool2d_backward(t([1.0], [1, 2, 2]), x.view(1, 3, 3), [2, 2], [1, 1], [0, 0], False, True, LIE)",
    ),
    "adaptive_avg_pool": (NUMBERS, "F.adaptive_avg_pool2d(x.view(1, 3, 3), (LIE, 1))"),
    "convolution's stride": (NUMBERS, "F.conv1d(v.view(1, 1, 3), t([1.0], [1, 1, 2]), stride=LIE)"),
    "convolution's padding": (NUMBERS, "F.conv1d(v.view(1, 1, 3), t([1.0], [1, 1, 2]), padding=LIE)"),
    "convolution's dilation": (NUMBERS, "F.conv1d(v.view(1, 1, 3), t([1.0], [1, 1, 2]), dilation=LIE)"),
    "convolution's groups": (NUMBERS, "F.conv1d(v.view(1, 3, 1), t([1.0], [3, 1, 1]), groups=LIE)"),
    "group_norm": (NUMBERS, "F.group_norm(x, LIE)"),
    "native_group_norm": (NUMBERS, "A.native_group_norm(x, v, v, LIE, 3, 1, 1, 1e-5)"),
    "native_layer_norm": (NUMBERS, "A.native_layer_norm(x, [LIE], v, v, 1e-5)"),
    "batch_norm's weight": (NUMBERS[:3], "T.native_batch_norm(x, t([1.0], [max(LIE, 0)]), v, v, v, True, 0.1, 1e-5)"),
    "batch_norm's mean": (NUMBERS[:3], "T.native_batch_norm(x, v, v, t([1.0], [max(LIE, 0)]), v, False, 0.1, 1e-5)"),
    "histc": (NUMBERS, "T.histc(v, LIE)"),
    "histogram's edges": (COORDINATES, "T.histogram(v, t([0.0, LIE, 2.0], [3]))"),
    "bucketize": (COORDINATES, "T.bucketize(t([LIE], [1]), v)"),
    "multinomial": (COORDINATES, "T.multinomial(t([0.5, LIE, 0.5], [3]), 2)"),
    "kthvalue": (NUMBERS, "T.kthvalue(v, LIE)"),
    "topk": (NUMBERS, "T.topk(v, LIE)"),
    "diagonal": (NUMBERS, "T.diagonal(x, LIE)"),
    "diagonal_backward": (NUMBERS, "A.diagonal_backward(v, [3, 3], LIE, 0, 1)"),
    "diag_embed": (NUMBERS[:3], "T.diag_embed(v, LIE)"),
    "tril_indices": (NUMBERS, "T.tril_indices(3, 3, LIE)"),
    "roll": (NUMBERS, "T.roll(x, LIE, 0)"),
    "combinations": (NUMBERS[:4], "T.combinations(v, LIE)"),
    "pixel_shuffle": (NUMBERS, "F.pixel_shuffle(t([1.0], [1, 4, 2, 2]), LIE)"),
    "channel_shuffle": (NUMBERS, "F.channel_shuffle(t([1.0], [1, 4, 2, 2]), LIE)"),
    "_cdist_backward": (NUMBERS[:3], "A._cdist_backward(t([1.0], [3, max(LIE, 0)]), x, x, 2.0, t([1.0], [3, 3]))"),
    "_pdist_backward": (NUMBERS[:3], "A._pdist_backward(t([1.0], [max(LIE, 0)]), x, 2.0, t([1.0], [3]))"),
    "householder_product": (NUMBERS[:3], "T.linalg.householder_product(x, t([1.0], [max(LIE, 0)]))"),
    "ormqr": (NUMBERS[:3], "T.ormqr(x, t([1.0], [max(LIE, 0)]), x)"),
    "frombuffer": (NUMBERS, "T.frombuffer(bytearray(8), dtype=T.uint8, count=LIE)"),
    "irfft": (NUMBERS, "T.fft.irfft(v, LIE)"),
    "_fft_c2r": (NUMBERS, "A._fft_c2r(x.to(T.complex64), [1], 0, LIE)"),
    "resize_": (NUMBERS, "v.resize_(LIE).shape"),
}


def cases():
    """(name, call, lie) of every kernel with every lie."""
    return [(name, call, lie) for name, (lies, call) in KERNELS.items() for lie in lies]


def run_case(call, lie, side):
    """The call with one library."""
    T = side.library

    def t(values, shape, dtype="float32"):
        return side.tensor(dtype, shape, values)

    names = {
        "T": T,
        "F": T.nn.functional,
        "A": T.ops.aten,
        "t": t,
        "LIE": lie,
        "v": t([0.5, 1.0, 2.0], [3]),
        "x": t([0.5, -1.0, 2.0, 1.5, 0.25, -0.5, 3.0, 1.0, -2.0], [3, 3]),
        "i": t([0, lie, 2], [3], "int64"),
    }
    return eval(call, names)


def attack(number, report):
    name, call, lie = cases()[number]
    calls.judge(report, lambda side: run_case(call, lie, side), f"{name}, {lie}", compared=True)


def run(numbers):
    """Yields (number, end) of every case."""
    everything = cases()

    def told(number):
        name, _, lie = everything[number]
        return f"{name}, {lie}"

    yield from children.judged("tests.attack.kernels", [], numbers, SECONDS, told)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--report")
    parser.add_argument("--log")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--child", action="store_true")
    given = parser.parse_args()
    if given.child:
        torch.set_num_threads(1)
        limits.allow_more_memory(2 * limits.GIGABYTE)
        return children.serve(attack)
    ends = children.in_parallel(run, range(len(cases())), given.jobs, given.log)
    return children.report(ends, {"kernels": len(KERNELS)}, given.report)


if __name__ == "__main__":
    sys.exit(main())
