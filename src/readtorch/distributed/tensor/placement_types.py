"""Placements: what a rank has of a tensor along one dimension of a mesh.

In PyTorch: `torch/distributed/tensor/placement_types.py`. A placement knows how to get from what a rank has to what another placement
wants of it; `_redistribute.py` says which of these steps lead from one list of placements to another.
"""

import readtorch
from readtorch.distributed import _functional_collectives as funcol

from ._collective_utils import (
    fill_empty_tensor_to_shards,
    mesh_broadcast,
    mesh_scatter,
    pad_tensor,
    shard_dim_alltoall,
    unpad_tensor,
)

__all__ = ["Placement", "Shard", "Replicate", "Partial"]


class Placement:
    """What a rank has of a tensor along one dimension of a mesh: a `Shard`, a `Replicate` or a `Partial`.

    Placements are values: they compare equal, and have the same hash, if they say the same.
    """

    needs_rows = False  # whether a rank without any row of what is looked up could not do its part

    def of_result(self):
        """The placement of one result; what a placement remembers of one call is its own."""
        return self

    def is_shard(self, dim=None):
        """Whether it is a `Shard`, and along this dimension of the tensor if one is named."""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self):
        """Whether it is a `Replicate`."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op=None):
        """Whether it is a `Partial`, and of this operation if one is named."""
        return isinstance(self, Partial) and (reduce_op is None or self.reduce_op == reduce_op)


class _SplitsADimension(Placement):
    """What `Shard` and `_StridedShard` have in common. PyTorch has no such class: there both have a copy of these methods.

    `_ranges(size, num_chunks)` says for each rank which elements of a dimension of that size are its own.
    """

    def _sizes(self, size, num_chunks):
        return [sum(map(len, ranges)) for ranges in self._ranges(size, num_chunks)]

    def _chunk(self, tensor, num_chunks):
        """The part of each rank."""
        parts = [
            [tensor.narrow(self.dim, r.start, len(r)) for r in ranges]
            for ranges in self._ranges(tensor.size(self.dim), num_chunks)
        ]
        return [pieces[0] if len(pieces) == 1 else readtorch.cat(pieces, dim=self.dim) for pieces in parts]

    def _split_tensor(self, tensor, num_chunks, *, with_padding=True, contiguous=True):
        """(the part of each rank, how much each is padded): with padding all are as large as the largest."""
        if self.dim >= tensor.ndim:
            raise AssertionError(f"Sharding dim {self.dim} greater than tensor ndim {tensor.ndim}")
        parts, padding = self._chunk(tensor, num_chunks), []
        if with_padding:
            largest = max(part.size(self.dim) for part in parts)
            padding = [largest - part.size(self.dim) for part in parts]
            parts = [pad_tensor(part, self.dim, n) for part, n in zip(parts, padding, strict=True)]
        return [part.contiguous() if contiguous else part for part in parts], padding

    def _shard_tensor(self, tensor, mesh, mesh_dim, src_data_rank=0):
        """This rank's part of the tensor of rank `src_data_rank`; of its own, without a message, if that is None."""
        if not mesh._is_current_rank_part_of_mesh():
            return tensor.new_empty(0, requires_grad=tensor.requires_grad)
        if src_data_rank is None:
            return self._replicate_to_shard(tensor, mesh, mesh_dim)
        parts, padding = self._split_tensor(tensor, mesh.size(mesh_dim))
        mine = readtorch.empty_like(parts[0])
        mesh_scatter(mine, parts, mesh, mesh_dim, group_src=src_data_rank)
        return unpad_tensor(mine, self.dim, padding[mesh.get_coordinate()[mesh_dim]]).contiguous()

    def _replicate_to_shard(self, local_tensor, mesh, mesh_dim):
        """This rank's part of what it has: nothing is sent."""
        index = mesh.get_coordinate()[mesh_dim]
        return self._chunk(local_tensor, mesh.size(mesh_dim))[index].clone(memory_format=readtorch.contiguous_format)

    def _local_shard_size_and_offset(self, curr_local_size, num_chunks, rank):
        """(how many elements of a dimension are rank `rank`'s, the first of them)"""
        ranges = self._ranges(curr_local_size, num_chunks)[rank]
        size = sum(map(len, ranges))
        return size, next((r.start for r in ranges if len(r)), curr_local_size)


def _chunks(start, size, num_chunks):
    """The ranges that `torch.chunk` cuts: as long as the first as far as it goes, then a shorter one, then empty ones."""
    each, stop = -(-size // num_chunks), start + size
    return [range(min(start + i * each, stop), min(start + (i + 1) * each, stop)) for i in range(num_chunks)]


class Shard(_SplitsADimension):
    """Each rank has a piece of the tensor, cut along its dimension `dim` as `torch.chunk` cuts.

    The last pieces are smaller, or empty, where the number of ranks does not divide the size.
    """

    def __init__(self, dim):
        self.dim = dim

    def _ranges(self, size, num_chunks):
        return [[chunk] for chunk in _chunks(0, size, num_chunks)]

    @staticmethod
    def local_shard_size_and_offset(curr_local_size, num_chunks, rank):
        """(how many elements of a dimension are rank `rank`'s, the first of them)"""
        chunk = _chunks(0, curr_local_size, num_chunks)[rank]
        return len(chunk), chunk.start

    @staticmethod
    def _custom_chunk(tensor, num_chunks, dim):
        parts = list(tensor.chunk(num_chunks, dim=dim))
        return fill_empty_tensor_to_shards(parts, dim, num_chunks - len(parts))

    @classmethod
    def _make_shard_tensor(cls, dim, tensor, mesh, mesh_dim, src_data_rank=0):
        return cls(dim)._shard_tensor(tensor, mesh, mesh_dim, src_data_rank)

    def _to_replicate_tensor(self, local_tensor, mesh, mesh_dim, logical_shape):
        """All pieces together. logical_shape: what the ranks along this dimension of the mesh have together."""
        n, size = mesh.size(mesh_dim), logical_shape[self.dim]
        largest = -(-size // n)
        padded = pad_tensor(local_tensor, self.dim, largest - local_tensor.size(self.dim))
        result = funcol.all_gather_single(padded, self.dim, (mesh, mesh_dim))
        return unpad_tensor(result, self.dim, largest * n - size).contiguous()

    def _to_new_shard_dim(self, local_tensor, mesh, mesh_dim, logical_shape, new_dim):
        """The piece along another dimension: every rank has something for every other."""
        n, mine = mesh.size(mesh_dim), mesh.get_coordinate()[mesh_dim]
        old, new = (-(-logical_shape[dim] // n) for dim in (self.dim, new_dim))
        padded = pad_tensor(local_tensor, self.dim, old - local_tensor.size(self.dim))
        padded = pad_tensor(padded, new_dim, new * n - padded.size(new_dim))
        result = shard_dim_alltoall(padded, self.dim, new_dim, mesh, mesh_dim)
        result = unpad_tensor(result, self.dim, old * n - logical_shape[self.dim])
        size, _ = self.local_shard_size_and_offset(logical_shape[new_dim], n, mine)
        return unpad_tensor(result, new_dim, new - size).contiguous()

    def _reduce_shard_tensor(self, tensor, mesh, reduce_op, mesh_dim):
        """This rank's piece of what all ranks' tensors are together."""
        parts, padding = self._split_tensor(tensor, mesh.size(mesh_dim), contiguous=False)
        padded = readtorch.cat(parts, dim=self.dim) if any(padding) else tensor.contiguous()
        result = funcol.reduce_scatter_single(padded, reduce_op, self.dim, (mesh, mesh_dim))
        return unpad_tensor(result, self.dim, padding[mesh.get_coordinate()[mesh_dim]])

    def __eq__(self, other):
        return isinstance(other, Shard) and self.dim == other.dim

    def __hash__(self):
        return hash((Shard, self.dim))

    def __repr__(self):
        return f"Shard(dim={self.dim})"

    def __str__(self):
        return f"S({self.dim})"


class _StridedShard(_SplitsADimension):
    """Each rank has pieces of each of `split_factor` parts of the tensor.

    So what a later dimension of the mesh cuts into `split_factor` parts can be cut along an earlier one afterwards: FSDP cuts what
    tensor parallelism has cut, although its dimension of the mesh comes first. A flattened tensor whose second dimension is cut is
    of this kind, too.
    """

    def __init__(self, dim, *, split_factor=1, sf=None):
        if sf is not None and split_factor != 1:
            raise TypeError("_StridedShard received both split_factor and sf")
        self.dim, self.split_factor = dim, split_factor if sf is None else sf

    def _ranges(self, size, num_chunks):
        parts = [_chunks(part.start, len(part), num_chunks) for part in _chunks(0, size, self.split_factor)]
        return [list(ranges) for ranges in zip(*parts, strict=True)]

    @classmethod
    def _make_shard_tensor(cls, dim, tensor, mesh, mesh_dim, src_data_rank=0, split_factor=1):
        return cls(dim, split_factor=split_factor)._shard_tensor(tensor, mesh, mesh_dim, src_data_rank)

    def _to_replicate_tensor(self, local_tensor, mesh, mesh_dim, logical_shape):
        """All pieces, in their order."""
        ranges = self._ranges(logical_shape[self.dim], mesh.size(mesh_dim))
        sizes = [sum(map(len, pieces)) for pieces in ranges]
        padded = pad_tensor(local_tensor, self.dim, max(sizes) - local_tensor.size(self.dim))
        gathered = funcol.all_gather_single(padded, self.dim, (mesh, mesh_dim))
        places = {}  # element -> where it lies in `gathered`
        for rank, pieces in enumerate(ranges):
            elements = [i for piece in pieces for i in piece]
            places.update({i: rank * max(sizes) + j for j, i in enumerate(elements)})
        order = readtorch.tensor([places[i] for i in sorted(places)], dtype=readtorch.int64, device=gathered.device)
        return gathered.index_select(self.dim, order)

    def __eq__(self, other):
        return isinstance(other, _StridedShard) and self.dim == other.dim and self.split_factor == other.split_factor

    def __hash__(self):
        return hash((self.dim, self.split_factor))

    def __repr__(self):
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self):
        return f"_S({self.dim}, {self.split_factor})"


def _is_shard_like(p):
    """Whether a placement cuts a dimension, in one way or the other."""
    return isinstance(p, _SplitsADimension)


class Replicate(Placement):
    """Each rank has the whole tensor."""

    @staticmethod
    def _make_replicate_tensor(tensor, mesh, mesh_dim, src_data_rank=0):
        """The tensor of rank `src_data_rank`; its own, without a message, if that is None."""
        if not mesh._is_current_rank_part_of_mesh():
            return tensor.new_empty(0, requires_grad=tensor.requires_grad)
        tensor = tensor.contiguous()
        if src_data_rank is not None:
            mesh_broadcast(tensor, mesh, mesh_dim, group_src=src_data_rank)
        return tensor

    def __eq__(self, other):
        return isinstance(other, Replicate)

    def __hash__(self):
        return -1

    def __repr__(self):
        return "Replicate()"

    def __str__(self):
        return "R"


class Partial(Placement):
    """Each rank has a tensor of the whole size; the tensor that is meant is what all of them are together: their sum, or what `reduce_op` says.

    reduce_op: "sum", "avg", "min", "max", "product", "band", "bor" or "bxor".
    """

    LINEAR_REDUCE_OPS = ("sum", "avg")
    ALL_REDUCE_OPS = ("sum", "avg", "min", "max", "product")

    def __init__(self, reduce_op=None):
        self.reduce_op = "sum" if reduce_op is None else reduce_op

    def _reduce_value(self, tensor, mesh, mesh_dim):
        """What all ranks' tensors are together."""
        return funcol.all_reduce(tensor, self.reduce_op, (mesh, mesh_dim))

    def _reduce_shard_value(self, tensor, mesh, mesh_dim, shard):
        """This rank's piece of it."""
        return shard._reduce_shard_tensor(tensor, mesh, self.reduce_op, mesh_dim)

    def _partition_value(self, tensor, mesh, mesh_dim):
        """Tensors that are `tensor` together. Raises ValueError for operations that do not say which."""
        if self.reduce_op == "sum":
            return tensor / mesh.size(mesh_dim)
        if self.reduce_op in ("avg", "min", "max"):
            return tensor
        raise ValueError(f"Replicate to Partial({self.reduce_op}) conversion is not supported.")

    def __eq__(self, other):
        return isinstance(other, Partial) and type(other) is type(self) and self.reduce_op == other.reduce_op

    def __hash__(self):
        return 1 + hash(self.reduce_op)

    def __repr__(self):
        return f"Partial({self.reduce_op})"

    def __str__(self):
        return f"P({self.reduce_op})"
