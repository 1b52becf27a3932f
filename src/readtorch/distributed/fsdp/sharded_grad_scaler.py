"""The scaler of the first FSDP's gradients. In PyTorch: `torch/distributed/fsdp/sharded_grad_scaler.py`."""

from readtorch.amp.grad_scaler import GradScaler

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """Raises NotImplementedError: with `fully_shard`, `readtorch.amp.GradScaler` does its work."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("readtorch has no ShardedGradScaler: use torch.amp.GradScaler")
