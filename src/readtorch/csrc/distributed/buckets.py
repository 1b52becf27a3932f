"""Buckets: gradients that travel together in one message.

In PyTorch: `torch/csrc/distributed/c10d/reducer.{hpp,cpp}` (`Bucket`, `compute_bucket_assignment_by_size`)
and `comm.hpp` (`GradBucket`).

Note [ Why buckets ]
Each message costs a latency, so many small gradients should travel as one. But a message can only leave when
its last gradient is there, so all in one would leave at the end of backward, when nothing is left to compute
meanwhile. Buckets of some megabytes (25 by default) are between the two: Note [ What a message costs ]. The
first one is smaller (1 MiB), so that communication begins early.
"""
from ...aten.functions import at
from ...c10.tensor_impl import dtype_of, view

DEFAULT_FIRST_BUCKET_BYTES = 1024 * 1024


def compute_bucket_assignment_by_size(tensors, bucket_size_limits, expect_sparse_gradient=(),
                                      tensor_indices=()):
    """(lists of indices into `tensors`, one a bucket; the limit in bytes of each bucket).

    A bucket is full when it reaches its limit; the first bucket of each type and device has the first limit,
    the next the second, and all further ones the last. What tensor_indices names takes the place of 0, 1, 2
    …; then the order of buckets is that in which they filled up, else they are sorted by their first index.
    """
    result, open_buckets = [], {}
    for i, tensor in enumerate(tensors):
        index = tensor_indices[i] if tensor_indices else i
        if expect_sparse_gradient and expect_sparse_gradient[index]:
            result.append(([index], None))
            continue
        bucket = open_buckets.setdefault((dtype_of(tensor), tensor.device),
                                         _Filling(list(bucket_size_limits)))
        if bucket.add(index, tensor._array.nbytes):
            result.append(bucket.take())
    result += [bucket.take() for bucket in open_buckets.values() if bucket.indices]
    if not tensor_indices:
        result.sort(key=lambda pair: min(pair[0]))
    return [indices for indices, _ in result], [limit or 0 for _, limit in result]


class _Filling:
    """A bucket of one type that is being filled."""

    def __init__(self, limits):
        self.limits = limits
        self.indices = []
        self.bytes = 0

    def add(self, index, bytes_):
        """Whether it is full now."""
        self.indices.append(index)
        self.bytes += bytes_
        return self.bytes >= self.limits[0]

    def take(self):
        full = self.indices, self.limits[0]
        self.indices, self.bytes = [], 0
        if len(self.limits) > 1:
            self.limits.pop(0)
        return full


class Bucket:
    """One message: a flat tensor with a view for each gradient.

    indices: of the parameters, in the order in which they lie in `flat`. A sparse gradient has a bucket of
    its own, without a flat tensor.
    """

    def __init__(self, indices, parameters, sparse=False):
        self.indices = indices
        self.parameters = [parameters[i] for i in indices]
        self.sparse = sparse
        self.flat = None
        self.views = {}  # parameter index -> its part of flat
        if not sparse:
            self._lay_out()
        self.reset()

    def _lay_out(self):
        like = self.parameters[0]
        elements = sum(p._array.size for p in self.parameters)
        self.flat = at.zeros((elements,), dtype=dtype_of(like), device=like.device)
        begin = 0
        for i, p in zip(self.indices, self.parameters):
            part = self.flat._array[begin:begin + p._array.size].reshape(p._array.shape)
            self.views[i] = view(self.flat, part)
            begin += p._array.size

    def reset(self):
        """Before a backward: nothing has arrived."""
        self.pending = len(self.indices)  # gradients that are still missing
        self.future = None  # of the reduced flat tensor, once it is under way
        self.work = None


class GradBucket:
    """What a communication hook sees of a bucket."""

    def __init__(self, index, buffer, parameters, views, last):
        self._index = index
        self._buffer = buffer
        self._parameters = parameters
        self._views = views
        self._last = last

    def index(self):
        """Its number: 0 is ready first."""
        return self._index

    def buffer(self):
        """The flat tensor of all gradients in it."""
        return self._buffer

    def set_buffer(self, buffer):
        """Put another flat tensor in its place, for the hook's own use."""
        self._buffer = buffer

    def gradients(self):
        """The gradients, as views of the buffer."""
        return list(self._views)

    def parameters(self):
        """The parameters, in the order of the gradients."""
        return list(self._parameters)

    def is_last(self):
        """Whether it is the last one of this backward."""
        return self._last


GradBucket.__module__ = "readtorch.distributed"
