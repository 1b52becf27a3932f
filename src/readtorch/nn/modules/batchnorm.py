"""Normalization over the batch. In PyTorch: `torch/nn/modules/batchnorm.py`. See the chapter
"Normalization".

S. Ioffe, C. Szegedy: Batch normalization: accelerating deep network training by reducing internal covariate
shift (2015).
"""

import readtorch
from readtorch import Tensor
from readtorch import distributed as dist
from readtorch.nn import functional as F
from readtorch.nn import init
from readtorch.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter

from ._functions import SyncBatchNorm as sync_batch_norm
from .lazy import LazyModuleMixin
from .module import Module

__all__ = [
    "BatchNorm1d",
    "LazyBatchNorm1d",
    "BatchNorm2d",
    "LazyBatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]


class _NormBase(Module):
    """What batch and instance normalization share: the affine parameters and the running statistics.

    weight, bias, running_mean, running_var: (num_features) or None; num_batches_tracked: an int64, or None.
    """

    _version = 2  # since 2 the state_dict has num_batches_tracked
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
        *,
        bias=True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats

        def new_parameter():
            return Parameter(readtorch.empty(num_features, device=device, dtype=dtype))

        self.register_parameter("weight", new_parameter() if affine else None)
        self.register_parameter("bias", new_parameter() if affine and bias else None)
        mean = var = count = None
        if track_running_stats:
            mean = readtorch.zeros(num_features, device=device, dtype=dtype)
            var = readtorch.ones(num_features, device=device, dtype=dtype)
            count = readtorch.tensor(0, dtype=readtorch.long, device=device)
        self.register_buffer("running_mean", mean)
        self.register_buffer("running_var", var)
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input):
        raise NotImplementedError

    def extra_repr(self):
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        version = local_metadata.get("version", None)
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            count = self.num_batches_tracked
            has_count = count is not None and count.device.type != "meta"
            state_dict[key] = count if has_count else readtorch.tensor(0, dtype=readtorch.long)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    """y = (x - mean) / √(var + eps) · weight + bias, each channel of (N, C, *) by itself.

    In training with the mean and (biased) variance of the batch, towards which the running statistics move:
    running = (1 - momentum) · running + momentum · new, or with momentum=None the average over all batches so
    far. In evaluation with the running statistics, or with the batch's if there are none. Raises ValueError
    for an input of another number of dimensions, or if a channel has one value in training.
    """

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return F.batch_norm(input, *self._arguments())

    def _arguments(self) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None, bool, float, float]:
        """Those of `F.batch_norm` behind the input. Counts the batch."""
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        mean, var = self.running_mean, self.running_var
        use_batch = self.training or mean is None and var is None
        if self.training and not self.track_running_stats:  # the buffers may be there, but must not move
            return None, None, self.weight, self.bias, use_batch, factor, self.eps
        return mean, var, self.weight, self.bias, use_batch, factor, self.eps


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """Learns num_features from the first input's dimension 1."""

    def __init__(
        self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *, bias=True
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)  # makes no tensors yet
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = readtorch.tensor(0, dtype=readtorch.long, device=device)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input) -> None:
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
            if tensor is not None:
                tensor.materialize((self.num_features,))
        self.reset_parameters()


def _check_dims(input: Tensor, least: int, most: int) -> None:
    """Raises ValueError unless the number of dimensions is `least` or `most`."""
    if input.dim() != least and input.dim() != most:
        expected = f"{least}D" if least == most else f"{least}D or {most}D"
        raise ValueError(f"expected {expected} input (got {input.dim()}D input)")


class BatchNorm1d(_BatchNorm):
    """Batch normalization of (N, C) or (N, C, L)."""

    def _check_input_dim(self, input) -> None:
        _check_dims(input, 2, 3)


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """Becomes a `BatchNorm1d` with the first input."""

    cls_to_become = BatchNorm1d
    _check_input_dim = BatchNorm1d._check_input_dim


class BatchNorm2d(_BatchNorm):
    """Batch normalization of (N, C, H, W)."""

    def _check_input_dim(self, input) -> None:
        _check_dims(input, 4, 4)


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """Becomes a `BatchNorm2d` with the first input."""

    cls_to_become = BatchNorm2d
    _check_input_dim = BatchNorm2d._check_input_dim


class BatchNorm3d(_BatchNorm):
    """Batch normalization of (N, C, D, H, W)."""

    def _check_input_dim(self, input) -> None:
        _check_dims(input, 5, 5)


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """Becomes a `BatchNorm3d` with the first input."""

    cls_to_become = BatchNorm3d
    _check_input_dim = BatchNorm3d._check_input_dim


class SyncBatchNorm(_BatchNorm):
    """Batch normalization of (N, C, *) over the batches of all ranks of `process_group` (by default: of all
    there are).

    In training, where a process group is initialized and has more than one rank; otherwise as `BatchNorm1d`
    and so on. The ranks' batches may differ in size, and some may be empty. See the chapter "Process
    groups, DDP and SyncBatchNorm". in PyTorch: for tensors on a GPU only.
    """

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        process_group=None,
        device=None,
        dtype=None,
        *,
        bias=True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def forward(self, input):
        self._check_input_dim(input)
        mean, var, weight, bias, use_batch, factor, eps = self._arguments()
        group = self._group_to_sync_with() if use_batch and self.training else None
        if group is None:
            return F.batch_norm(input, mean, var, weight, bias, use_batch, factor, eps)
        return sync_batch_norm.apply(input, weight, bias, mean, var, eps, factor, group, group.size())

    def _group_to_sync_with(self):
        """The process group, or None where there is nobody else."""
        if not dist.is_initialized():
            return None
        group = self.process_group or dist.group.WORLD
        return group if dist.get_world_size(group) > 1 else None

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """`module` with every batch normalization in it replaced by a SyncBatchNorm that has its parameters
        and buffers.

        Returns the module itself, changed; or the new layer, if it is a batch normalization.
        """
        converted = module
        if isinstance(module, _BatchNorm):
            converted = SyncBatchNorm(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            if module.affine:
                converted.weight, converted.bias = module.weight, module.bias
            converted.running_mean, converted.running_var = module.running_mean, module.running_var
            converted.num_batches_tracked = module.num_batches_tracked
            converted.training = module.training
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted
