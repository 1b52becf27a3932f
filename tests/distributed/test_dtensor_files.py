"""Files with a DTensor: ours, and one that PyTorch wrote. `load` takes them as it takes weights, without `weights_only=False`."""

import contextlib

import pytest
import torch
import torch.distributed.tensor as theirs

import readtorch
import readtorch.distributed.tensor as ours

ALLOWED = readtorch.serialization.get_safe_globals()  # by the package; other tests clear the list


@contextlib.contextmanager
def alone(T):
    """A world of one rank."""
    T.distributed.init_process_group("gloo", store=T.distributed.HashStore(), rank=0, world_size=1)
    try:
        yield T.distributed.device_mesh.init_device_mesh("cpu", (1,))
    finally:
        T.distributed.destroy_process_group()


@pytest.mark.parametrize(("writer", "tensors"), [(torch, theirs), (readtorch, ours)], ids=("torch", "readtorch"))
@pytest.mark.parametrize("weights_only", [True, False])
def test_a_dtensor_is_read_again(writer, tensors, weights_only, tmp_path):
    with alone(writer) as mesh:
        placements = [tensors.Shard(0)]
        t = tensors.distribute_tensor(writer.arange(4.0), mesh, placements)
        writer.save({"t": t}, tmp_path / "file")
    with alone(readtorch), readtorch.serialization.safe_globals(ALLOWED):
        t = readtorch.load(tmp_path / "file", weights_only=weights_only)["t"]
        assert type(t) is ours.DTensor
        assert t.placements == (ours.Shard(0),)
        assert (t * 2).full_tensor().tolist() == [0, 2, 4, 6]
