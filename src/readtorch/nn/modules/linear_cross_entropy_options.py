"""How `linear_cross_entropy` shall cut its work into chunks.

In PyTorch: `torch/nn/modules/linear_cross_entropy_options.py`.
"""

import dataclasses

import readtorch

__all__ = ["LinearCrossEntropyOptions"]

_POLICIES = {"auto", "accurate", "balanced", "compact"}
_HALF = (readtorch.float16, readtorch.bfloat16)


@dataclasses.dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """See Note [ A loss that never holds all scores ] for what is cut.

    allow_retain_graph: keep the gradients that forward has computed, for more than one backward ("mean" and "sum").
    batch_chunk_size: rows a chunk; None: all in one, unless chunking_method says otherwise.
    chunking_method: "aspect_ratio" makes a chunk's scores about as large as the input, "aspect_ratio:2" half of that;
        "auto" chooses one of them, None neither.
    acc_policy: "accurate", "balanced", "compact" or "auto".
    acc_dtype: the type in which scores of a float16 or bfloat16 input are computed; None: chosen at the call.
    Raises ValueError for anything else.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: readtorch.dtype | None = None

    def __post_init__(self):
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method not in (None, "auto"):
            name, sep, factor = self.chunking_method.partition(":")
            if name != "aspect_ratio" or sep and not (factor.isdigit() and int(factor) > 0):
                raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if self.acc_dtype not in (None, *_HALF, readtorch.float32, readtorch.float64):
            raise ValueError(
                "acc_dtype must be one of {None, torch.float16, torch.bfloat16, torch.float32, torch.float64}, "
                f"got {self.acc_dtype!r}. Pass acc_dtype=None to let the op pick automatically."
            )

    def _adjust(self, num_batches, in_features, num_classes, dtype, device=None):
        """The same options with every choice made for a call."""
        is_half_on_cpu = device is not None and device.type == "cpu" and dtype in _HALF
        method, policy, acc_dtype = self.chunking_method, self.acc_policy, self.acc_dtype
        if method == "auto":
            method = "aspect_ratio" if is_half_on_cpu else "aspect_ratio:2"
            if self.batch_chunk_size is not None:
                method = None
        if acc_dtype is None:
            acc_dtype = readtorch.float32 if policy == "auto" and is_half_on_cpu else dtype
        if policy == "auto":
            policy = "accurate" if is_half_on_cpu else "compact"
        size = self._chunk_size(method, num_batches, in_features, num_classes)
        return dataclasses.replace(
            self, acc_policy=policy, chunking_method=method, batch_chunk_size=max(1, size), acc_dtype=acc_dtype
        )

    def _chunk_size(self, method, num_batches, in_features, num_classes):
        if method is None:
            return num_batches if self.batch_chunk_size is None else min(self.batch_chunk_size, num_batches)
        size = _by_aspect_ratio(method, num_batches, in_features, num_classes)
        if self.batch_chunk_size is not None and min(self.batch_chunk_size, num_batches) != size:
            raise ValueError(
                f"batch_chunk_size (={self.batch_chunk_size}) and chunking_method ('{method}') give different "
                f"chunk sizes ({self.batch_chunk_size} vs {size}); pass only one."
            )
        return size


def _by_aspect_ratio(method, num_batches, in_features, num_classes):
    """As many rows, rounded up to a power of 2, as make the scores as large as the input; or a part of that."""
    factor = int(method.partition(":")[2] or 1)
    target = -(-num_batches // -(-num_classes // in_features))
    return min((1 << (target - 1).bit_length()) // factor, num_batches)
