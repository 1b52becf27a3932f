"""What the kinds of attention check alike. In PyTorch: `torch/nn/attention/_utils.py`."""

__all__ = []


def _validate_sdpa_input(query, key, value, allow_lowp_kv=False):
    """ValueError unless types (unless `allow_lowp_kv`), devices and numbers of dimensions fit."""
    if not allow_lowp_kv and not query.dtype == key.dtype == value.dtype:
        raise ValueError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {query.dtype}, "
            f"key.dtype: {key.dtype}, and value.dtype: {value.dtype} instead."
        )
    if not query.device == key.device == value.device:
        raise ValueError(
            f"Expected query, key, and value to have the same device type, but got query.device: {query.device}, "
            f"key.device: {key.device}, and value.device: {value.device} instead."
        )
    if query.dim() < 2 or key.dim() < 2 or value.dim() < 2:
        raise ValueError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{query.dim()}, key.dim: {key.dim()} and value.dim: {value.dim()} instead."
        )
