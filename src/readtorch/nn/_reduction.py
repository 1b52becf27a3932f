"""Names and numbers of reductions. In PyTorch: `torch/nn/_reduction.py`, `aten/src/ATen/core/Reduction.h`."""

import warnings


def get_enum(reduction: str) -> int:
    """The number that operators take; ValueError for an unknown name."""
    if reduction == "none":
        return 0
    if reduction == "mean":
        return 1
    if reduction == "sum":
        return 2
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=2)
        return 1
    raise ValueError(f"{reduction} is not a valid value for reduction")


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True, stacklevel: int = 3
) -> str:
    """The name for the deprecated arguments; None means True."""
    reduces = reduce is None or reduce
    averages = size_average is None or size_average
    name = ("mean" if averages else "sum") if reduces else "none"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{name}' instead.",
            stacklevel=stacklevel - 1,
        )
    return name


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True, stacklevel: int = 4
) -> int:
    return get_enum(legacy_get_string(size_average, reduce, emit_warning, stacklevel))
