"""How a tensor is laid out over a mesh. In PyTorch: `torch/distributed/tensor/_dtensor_spec.py`."""

from typing import NamedTuple

from readtorch import Size
from readtorch import dtype as DType
from readtorch.utils._dtype_abbrs import dtype_abbrs

from .placement_types import _is_shard_like


class TensorMeta(NamedTuple):
    """Sizes, strides and dtype of a whole tensor."""

    shape: Size
    stride: tuple
    dtype: DType


class ShardOrderEntry(NamedTuple):
    """By which dimensions of a mesh one dimension of a tensor is cut, in this order: what files that PyTorch wrote name."""

    tensor_dim: int
    mesh_dims: tuple


class DTensorSpec:
    """A mesh, a placement for each of its dimensions and the whole tensor's sizes, strides and dtype.

    Where two dimensions of the mesh cut one dimension of the tensor, the earlier one cuts first. In PyTorch an order of the cuts
    (`shard_order`) can be given; here, as in most programs there, a `_StridedShard` says it.
    """

    __slots__ = ("mesh", "placements", "tensor_meta")

    def __init__(self, mesh, placements, tensor_meta=None):
        self.mesh, self.placements, self.tensor_meta = mesh, tuple(placements), tensor_meta

    def __setstate__(self, state):
        """state: also one that PyTorch wrote, which says more."""
        state = state[1] if isinstance(state, tuple) else state
        self.mesh, self.placements, self.tensor_meta = [state[name] for name in self.__slots__]

    @property
    def device_mesh(self):
        return self.mesh

    @property
    def shape(self):
        return self._known().shape

    @property
    def stride(self):
        return self._known().stride

    @property
    def ndim(self):
        return len(self._known().shape)

    def _known(self):
        if self.tensor_meta is None:
            raise ValueError("tensor_meta is not set")
        return self.tensor_meta

    @property
    def num_shards(self):
        """Into how many pieces the tensor is cut."""
        n = 1
        for dim, placement in enumerate(self.placements):
            n *= self.mesh.size(dim) if _is_shard_like(placement) else 1
        return n

    @property
    def dim_map(self):
        """For each dimension of the tensor, the dimension of the mesh that cuts it, or -1; the last, if several do."""
        found = [-1] * self.ndim
        for i, placement in enumerate(self.placements):
            if placement.is_shard():
                found[placement.dim] = i
        return found

    @property
    def num_shards_map(self):
        """For each dimension of the tensor, into how many pieces it is cut."""
        counts = [1] * self.ndim
        for i, placement in enumerate(self.placements):
            if _is_shard_like(placement):
                counts[placement.dim] *= self.mesh.size(i)
        return counts

    @property
    def sums(self):
        """The dimensions of the mesh along which values are yet to be reduced."""
        return [i for i, placement in enumerate(self.placements) if placement.is_partial()]

    def is_replicated(self):
        return all(placement.is_replicate() for placement in self.placements)

    def is_sharded(self):
        return any(_is_shard_like(placement) for placement in self.placements)

    def shallow_copy_with_tensor_meta(self, tensor_meta):
        return DTensorSpec(self.mesh, self.placements, tensor_meta)

    def _key(self):
        meta = self.tensor_meta
        return self.mesh, self.placements, meta and (tuple(meta.shape), tuple(meta.stride), meta.dtype)

    def __eq__(self, other):
        return isinstance(other, DTensorSpec) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __str__(self):
        what = "unknown dtypeunknown shape"
        if self.tensor_meta is not None:
            what = f"{dtype_abbrs[self.tensor_meta.dtype]}{list(self.tensor_meta.shape)}"
        return f"Spec({what}({''.join(map(str, self.placements))}))"

    __repr__ = __str__
