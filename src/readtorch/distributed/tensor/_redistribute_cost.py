"""What it would cost to redistribute a tensor, in microseconds on a machine that is assumed.

PyTorch has no such file: this is the second half of `torch/distributed/tensor/_collective_utils.py`, which there imports its
user. Nothing is measured. The numbers are those of a host whose GPUs are joined by NVLink, and of Ethernet between hosts: it is by
them that PyTorch chooses between the ways in which an operator can run, so they are the same here.
"""

import math

from readtorch.distributed.device_mesh import _get_device_handle

from ._redistribute import _gen_transform_infos
from .placement_types import _is_shard_like

BANDWIDTH, LATENCY = 87.7, 0.6  # GB/s and µs within a host
SLOWER_BETWEEN_HOSTS, LATENCY_BETWEEN_HOSTS = 0.22, 2.7
STARTING = 6.6  # µs, of any collective
SHARD_TO_SHARD = 1.0  # more than the all-gather that it is compared with
GIGABYTE = 2**30


def _links(mesh):
    """For each dimension of the mesh, (bandwidth, latency): those of a network once a host's devices do not suffice."""
    per_host = _get_device_handle(mesh.device_type).device_count()  # of "cpu" 1: each rank counts as a host
    links, devices = [], 1
    for dim in reversed(range(mesh.ndim)):
        devices *= mesh.size(dim)
        far = devices > per_host
        links.append((BANDWIDTH * (SLOWER_BETWEEN_HOSTS if far else 1), LATENCY_BETWEEN_HOSTS if far else LATENCY))
    return links[::-1]


def _cost(gigabytes, devices, hops, link):
    """hops: how many messages each device sends, of a part of the bytes each."""
    bandwidth, latency = link
    return STARTING + hops * latency + gigabytes * hops / devices / bandwidth * 1e6


def _step_cost(current, target, devices, link, gigabytes):
    """(cost of one step along a dimension of the mesh, gigabytes a rank afterwards)"""
    hops = devices - 1
    if _is_shard_like(current) and target.is_replicate():
        return _cost(gigabytes * devices, devices, hops, link), gigabytes * devices
    if _is_shard_like(current) and _is_shard_like(target):
        return _cost(gigabytes, devices, hops, link) + SHARD_TO_SHARD, gigabytes
    if current.is_partial() and target.is_replicate():
        return _cost(gigabytes, devices, 2 * hops, link), gigabytes
    if current.is_partial() and _is_shard_like(target):
        return _cost(gigabytes, devices, hops, link), gigabytes / devices
    if target.is_partial() and not current.is_replicate():
        return math.inf, gigabytes
    if current.is_replicate() and _is_shard_like(target):
        return 0.0, gigabytes / devices
    return 0.0, gigabytes


def redistribute_cost(current_spec, target_spec):
    """What it costs to get from one spec to another; infinity where there is no way."""
    if current_spec.mesh != target_spec.mesh:
        return math.inf
    if current_spec.is_replicated() or current_spec.placements == target_spec.placements:
        return 0.0
    mesh = current_spec.mesh
    if not mesh._is_current_rank_part_of_mesh():
        return 0.0
    meta = current_spec.tensor_meta
    gigabytes = meta.dtype.itemsize * math.prod(meta.shape) / current_spec.num_shards / GIGABYTE
    cost, links = 0.0, _links(mesh)
    for dim, (current, target), _ in _gen_transform_infos(current_spec, target_spec):
        step, gigabytes = _step_cost(current, target, mesh.size(dim), links[dim], gigabytes)
        cost += step
    return cost
