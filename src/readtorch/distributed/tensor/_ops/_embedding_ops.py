"""Lookups. In PyTorch: `torch/distributed/tensor/_ops/_embedding_ops.py`, and `_MaskPartial` in
`torch/distributed/tensor/placement_types.py`.
"""

from readtorch.distributed.tensor.placement_types import Partial, Replicate, Shard

from ._mask_buffer import MaskBuffer
from .single_dim_strategy import register_single_dim_strategy
from .utils import overloads

R = Replicate()


class _MaskPartial(Partial):
    """Each rank has looked up what it has; the rest of its result is not meant and becomes 0 before the sum.

    As the placement of indices: what a rank has not is replaced by its first row, and remembered. offset_shape, offset_dim: what was cut,
    and where.
    """

    needs_rows = True  # in PyTorch: such a rank looks up row 0 of nothing and raises

    def __init__(self, reduce_op=None, mask_buffer=None, offset_shape=None, offset_dim=0):
        super().__init__(reduce_op)
        self.mask_buffer = MaskBuffer() if mask_buffer is None else mask_buffer
        self.offset_shape, self.offset_dim = offset_shape, offset_dim

    def _partition_value(self, tensor, mesh, mesh_dim):
        if self.offset_shape is None:
            raise AssertionError("offset_shape needs to be set for _MaskPartial")
        size, first = Shard.local_shard_size_and_offset(
            self.offset_shape[self.offset_dim], mesh.size(mesh_dim), mesh.get_coordinate()[mesh_dim]
        )
        mask = (tensor < first) | (tensor >= first + size)
        self.mask_buffer.materialize_mask(mask)
        return (tensor - first).masked_fill(mask, 0)

    def of_result(self):
        """The placement of one result: with the mask of its lookup."""
        return _MaskPartial(self.reduce_op, self.mask_buffer.taken(), self.offset_shape, self.offset_dim)

    def _reduce_value(self, tensor, mesh, mesh_dim):
        return super()._reduce_value(self.mask_buffer.apply_mask(tensor), mesh, mesh_dim)

    def _reduce_shard_value(self, tensor, mesh, mesh_dim, shard):
        return super()._reduce_shard_value(self.mask_buffer.apply_mask(tensor), mesh, mesh_dim, shard)

    def __eq__(self, other):
        return isinstance(other, _MaskPartial) and self._key() == other._key() and self.mask_buffer is other.mask_buffer

    def _key(self):
        return self.reduce_op, self.offset_shape, self.offset_dim

    def __hash__(self):
        return 1 + hash((*self._key(), id(self.mask_buffer)))

    def __repr__(self):
        return (
            f"_MaskPartial(reduce_op={self.reduce_op}, offset_shape={self.offset_shape}, offset_dim={self.offset_dim})"
        )

    def __str__(self):
        return f"MaskP({self.reduce_op}, {self.offset_shape}, {self.offset_dim})"


@register_single_dim_strategy(overloads("embedding"))
def embedding(op, args, kwargs):
    """Columns of the table, rows of it, or the indices."""
    weight, indices = args[:2]
    ndim = len(indices.shape)
    masked = _MaskPartial(offset_shape=weight.shape, offset_dim=0)
    batch = [[Shard(i), R, Shard(i)] for i in range(ndim)]
    return [[Shard(ndim), Shard(1), R], [masked, Shard(0), masked], *batch]


@register_single_dim_strategy(overloads("embedding_dense_backward"))
def embedding_dense_backward(op, args, kwargs):
    grad, indices = args[:2]
    batch = [[Partial(), Shard(i), Shard(i)] for i in range(len(indices.shape))]
    return [[Shard(1), Shard(len(grad.shape) - 1), R], *batch, [Partial(), Partial(), R]]
