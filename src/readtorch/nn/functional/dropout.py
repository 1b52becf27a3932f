"""Dropout and its relatives. In PyTorch: part of `torch/nn/functional.py`."""

import warnings

import readtorch
from readtorch import Tensor
from readtorch.csrc.utils.disable_torch_function import handle_torch_function, has_torch_function_unary

__all__ = ["dropout", "alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability p, scale the others by 1/(1-p); the identity unless `training`."""
    if has_torch_function_unary(input):
        return handle_torch_function(dropout, (input,), input, p=p, training=training, inplace=inplace)
    _check_probability(p)
    return readtorch.dropout_(input, p, training) if inplace else readtorch.dropout(input, p, training)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean 0 and variance 1."""
    if has_torch_function_unary(input):
        return handle_torch_function(alpha_dropout, (input,), input, p=p, training=training, inplace=inplace)
    _check_probability(p)
    if inplace:
        return readtorch.alpha_dropout_(input, p, training)
    return readtorch.alpha_dropout(input, p, training)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels."""
    if has_torch_function_unary(input):
        return handle_torch_function(feature_alpha_dropout, (input,), input, p=p, training=training, inplace=inplace)
    _check_probability(p)
    if inplace:
        return readtorch.feature_alpha_dropout_(input, p, training)
    return readtorch.feature_alpha_dropout(input, p, training)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of an input (N, C, L) or (C, L)."""
    if has_torch_function_unary(input):
        return handle_torch_function(dropout1d, (input,), input, p=p, training=training, inplace=inplace)
    _check_probability(p)
    inp_dim = input.dim()
    if inp_dim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {inp_dim}D input. "
            "Note that dropout1d exists to provide channel-wise dropout on inputs with 1 "
            "spatial dimension, a channel dimension, and an optional batch dimension "
            "(i.e. 2D or 3D inputs)."
        )
    return _feature_dropout_of_batch(input, p, training, inplace, is_batched=inp_dim == 3)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of an input (N, C, H, W)."""
    if has_torch_function_unary(input):
        return handle_torch_function(dropout2d, (input,), input, p=p, training=training, inplace=inplace)
    _check_probability(p)
    inp_dim = input.dim()
    if inp_dim not in (3, 4):
        _warn_wrong_dims("dropout2d", 2, inp_dim, "3D or 4D")
    if inp_dim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise "
            "1D dropout behavior is desired - input is interpreted as shape (N, C, L), where C "
            "is the channel dim. This behavior will change in a future release to interpret the "
            "input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D "
            "channel-wise dropout behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    return _feature_dropout(input, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of an input (N, C, D, H, W) or (C, D, H, W)."""
    if has_torch_function_unary(input):
        return handle_torch_function(dropout3d, (input,), input, p=p, training=training, inplace=inplace)
    _check_probability(p)
    inp_dim = input.dim()
    if inp_dim not in (4, 5):
        _warn_wrong_dims("dropout3d", 3, inp_dim, "4D or 5D")
    return _feature_dropout_of_batch(input, p, training, inplace, is_batched=inp_dim == 5)


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _warn_wrong_dims(name: str, spatial: int, inp_dim: int, expected: str) -> None:
    warnings.warn(
        f"{name}: Received a {inp_dim}-D input to {name}, which is deprecated "
        "and will result in an error in a future release. To retain the behavior "
        f"and silence this warning, please use dropout instead. Note that {name} "
        f"exists to provide channel-wise dropout on inputs with {spatial} spatial dimensions, "
        f"a channel dimension, and an optional batch dimension (i.e. {expected} inputs).",
        stacklevel=3,
    )


def _feature_dropout(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    if inplace:
        return readtorch.feature_dropout_(input, p, training)
    return readtorch.feature_dropout(input, p, training)


def _feature_dropout_of_batch(input: Tensor, p: float, training: bool, inplace: bool, is_batched: bool) -> Tensor:
    if is_batched:
        return _feature_dropout(input, p, training, inplace)
    if inplace:
        return _feature_dropout(input.unsqueeze_(0), p, training, inplace).squeeze_(0)
    return _feature_dropout(input.unsqueeze(0), p, training, inplace).squeeze(0)
