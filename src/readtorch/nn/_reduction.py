"""Names and numbers of reductions. In PyTorch: `torch/nn/_reduction.py`, `aten/src/ATen/core/Reduction.h`."""
import warnings

_ENUM = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction):
    """The number that operators take; ValueError for an unknown name."""
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=2
        )
    if reduction not in _ENUM:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _ENUM[reduction]


def legacy_get_string(size_average, reduce, emit_warning=True, stacklevel=3):
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


def legacy_get_enum(size_average, reduce, emit_warning=True, stacklevel=4):
    return get_enum(legacy_get_string(size_average, reduce, emit_warning, stacklevel))
