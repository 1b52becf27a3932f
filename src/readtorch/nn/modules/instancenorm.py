"""Normalization of each channel of each example. In PyTorch: `torch/nn/modules/instancenorm.py`. The
chapter "Normalization".

D. Ulyanov, A. Vedaldi, V. Lempitsky: Instance normalization: the missing ingredient for fast stylization
(2016).
"""

import warnings

from readtorch import Tensor
from readtorch.nn import functional as F

from .batchnorm import _check_dims, _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    """y = (x - mean) / √(var + eps) · weight + bias, each channel of each example by itself.

    Input: (N, C, *) or (C, *). Without weight and bias unless affine. With track_running_stats as `BatchNorm`;
    the statistics that are kept are the mean over the batch. Raises ValueError for an input of another number
    of dimensions, or if a channel has one value.
    """

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=False,
        track_running_stats=False,
        device=None,
        dtype=None,
        *,
        bias=True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _get_no_batch_dim(self) -> int:
        raise NotImplementedError

    def _handle_no_batch_input(self, input: Tensor) -> Tensor:
        return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)

    def _apply_instance_norm(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        # The first checkpoints had running statistics even where none were tracked.
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            self._refuse_running_stats(state_dict, prefix, error_msgs)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def _refuse_running_stats(self, state_dict, prefix, error_msgs):
        keys = [prefix + name for name in ("running_mean", "running_var") if prefix + name in state_dict]
        if not keys:
            return
        names, klass = " and ".join(f'"{key}"' for key in keys), self.__class__.__name__
        error_msgs.append(
            f"Unexpected running stats buffer(s) {names} for {klass} with track_running_stats=False. If "
            f"state_dict is a checkpoint saved before 0.4.0, this may be expected because {klass} does not "
            "track running stats by default since 0.4.0. Please remove these keys from state_dict. If the running "
            f"stats are actually needed, instead set track_running_stats=True in {klass} to enable them. See "
            f"the documentation of {klass} for details."
        )
        for key in keys:
            state_dict.pop(key)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        without_batch = self._get_no_batch_dim()
        feature_dim = input.dim() - without_batch
        if input.size(feature_dim) != self.num_features:
            self._complain_of_features(feature_dim, input.size(feature_dim))
        if input.dim() == without_batch:
            return self._handle_no_batch_input(input)
        return self._apply_instance_norm(input)

    def _complain_of_features(self, feature_dim: int, size: int) -> None:
        if self.affine:
            raise ValueError(
                f"expected input's size at dim={feature_dim} to match num_features ({self.num_features}), "
                f"but got: {size}."
            )
        warnings.warn(
            f"input's size at dim={feature_dim} does not match num_features. "
            "You can silence this warning by not passing in num_features, "
            "which is not used because affine=False",
            stacklevel=3,
        )


class InstanceNorm1d(_InstanceNorm):
    """Instance normalization of (N, C, L) or (C, L)."""

    def _get_no_batch_dim(self) -> int:
        return 2

    def _check_input_dim(self, input) -> None:
        _check_dims(input, 2, 3)


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """Becomes an `InstanceNorm1d` with the first input."""

    cls_to_become = InstanceNorm1d
    _get_no_batch_dim = InstanceNorm1d._get_no_batch_dim
    _check_input_dim = InstanceNorm1d._check_input_dim


class InstanceNorm2d(_InstanceNorm):
    """Instance normalization of (N, C, H, W) or (C, H, W)."""

    def _get_no_batch_dim(self) -> int:
        return 3

    def _check_input_dim(self, input) -> None:
        _check_dims(input, 3, 4)


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """Becomes an `InstanceNorm2d` with the first input."""

    cls_to_become = InstanceNorm2d
    _get_no_batch_dim = InstanceNorm2d._get_no_batch_dim
    _check_input_dim = InstanceNorm2d._check_input_dim


class InstanceNorm3d(_InstanceNorm):
    """Instance normalization of (N, C, D, H, W) or (C, D, H, W)."""

    def _get_no_batch_dim(self) -> int:
        return 4

    def _check_input_dim(self, input) -> None:
        _check_dims(input, 4, 5)


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """Becomes an `InstanceNorm3d` with the first input."""

    cls_to_become = InstanceNorm3d
    _get_no_batch_dim = InstanceNorm3d._get_no_batch_dim
    _check_input_dim = InstanceNorm3d._check_input_dim
