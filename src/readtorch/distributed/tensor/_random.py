"""Which random numbers a rank draws for its part of a tensor. In PyTorch: `torch/distributed/tensor/_random.py`.

Note [ Random numbers of a shard ]
A generator of a CUDA device is a seed and an offset: which of the seed's numbers comes next. All ranks have the same seed and stand at the
same offset. For its shard a rank draws from further on, as far as there are elements in the shards before it, and afterwards all ranks
stand behind the whole tensor: shards differ, replicas do not, and the ranks stay together. A generator of the CPU cannot be moved like that.
There operators draw in place, as in PyTorch, so shards of the same sizes get the same numbers; `rand` and `randn`, which PyTorch
refuses on a mesh of CPUs, draw the whole tensor on each rank and keep their part of it.
"""

import contextlib
import math
import warnings

import readtorch
from readtorch.distributed.device_mesh import _get_device_handle

from ._utils import compute_local_shape_and_global_offset
from .placement_types import _is_shard_like


def is_rng_supported_mesh(device_mesh):
    """Whether shards get numbers of their own: on devices whose generators can be moved. Warns otherwise."""
    if device_mesh.device_type == "cuda":
        return True
    warnings.warn(
        f"DTensor random operators may not have complete support on {device_mesh.device_type} device mesh", stacklevel=2
    )
    return False


def distribute_region(spec, generator=None):
    """A `with` block that draws this rank's part of a tensor: see Note [ Random numbers of a shard ]."""
    if not is_rng_supported_mesh(spec.mesh):
        return contextlib.nullcontext()
    return _offset_region(spec, generator)


@contextlib.contextmanager
def _offset_region(spec, generator):
    handle = _get_device_handle(spec.mesh.device_type)
    state = handle.get_rng_state() if generator is None else generator.get_state()
    restore = handle.set_rng_state if generator is None else generator.set_state
    start, behind = _compute_rng_offsets(spec)
    offset = state[8:].view(readtorch.int64).item()
    restore(_at(state, offset + start))
    try:
        yield
    finally:
        restore(_at(state, offset + behind))


def _at(state, offset):
    """A generator's state with another offset: eight bytes of seed, eight of offset."""
    return readtorch.cat([state[:8], readtorch.tensor([offset], dtype=readtorch.int64).view(readtorch.uint8)])


def _compute_rng_offsets(spec):
    """(where this rank begins, where all ranks stand afterwards): multiples of four, as a generator counts."""
    index, sizes = _shard_index(spec), list(spec.shape)
    for i, placement in enumerate(spec.placements):
        if _is_shard_like(placement):
            n = spec.mesh.size(i)
            sizes[placement.dim], _ = placement._local_shard_size_and_offset(sizes[placement.dim], n, 0)
    return _rounded(index * math.prod(sizes)), _rounded(math.prod(spec.shape))


def _rounded(n):
    return (n + 3) // 4 * 4


def _shard_index(spec):
    """Which shard this rank has, counted along the last dimension of the tensor first."""
    coordinate, index, stride = spec.mesh.get_coordinate(), 0, 1
    for dim in reversed(range(len(spec.shape))):
        cuts = [i for i, p in enumerate(spec.placements) if _is_shard_like(p) and p.dim == dim]
        place = 0
        for i in cuts:
            place = place * spec.mesh.size(i) + coordinate[i]
        index += place * stride
        stride *= math.prod(spec.mesh.size(i) for i in cuts)
    return index


def draw(init_op, spec, **options):
    """This rank's part of a new tensor of random numbers: `init_op` is `rand` or `randn`."""
    if spec.mesh.device_type == "cuda":
        shape, _ = compute_local_shape_and_global_offset(spec.shape, spec.mesh, spec.placements, skip_offset=True)
        with _offset_region(spec, None):
            return init_op(shape, **options)
    whole = init_op(spec.shape, **options)
    for dim, placement in enumerate(spec.placements):
        if _is_shard_like(placement):
            whole = placement._replicate_to_shard(whole, spec.mesh, dim)
    return whole
