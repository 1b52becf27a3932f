"""`Geometric`. In PyTorch: `torch/distributions/geometric.py`."""

import readtorch
from readtorch import contiguous_format, finfo
from readtorch.c10.local_dispatch_key_set import trace_under_way
from readtorch.nn.functional import binary_cross_entropy_with_logits

from . import constraints
from ._binary_parameter import BinaryParameter
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Geometric"]


class Geometric(BinaryParameter, Distribution):
    """How many trials fail before the first success: (1 - probs)^k probs for k = 0, 1, 2, …

    `Tensor.geometric_` counts the success, too. probs, logits: numbers or tensors, of which one is given, probs in (0, 1].
    Raises ValueError for both or none.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._take(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)
        if self._validate_args and probs is not None:
            self._check_positive(self.probs)

    def _check_positive(self, probs):
        is_positive = probs > 0
        if not is_positive.all():
            raise ValueError(
                f"Expected parameter probs ({type(probs).__name__} of shape {tuple(probs.shape)}) of distribution {self!r} "
                f"to be positive but found invalid values:\n{probs.data[~is_positive]}"
            )

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Geometric, batch_shape, _instance, "probs", "logits", "_param")

    @property
    def mean(self):
        return 1.0 / self.probs - 1.0

    @property
    def mode(self):
        return readtorch.zeros_like(self.probs)

    @property
    def variance(self):
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape=()):
        shape, tiny = self._extended_shape(sample_shape), finfo(self.probs.dtype).tiny
        with readtorch.no_grad():
            if trace_under_way():  # which would not see the write in place
                u = readtorch.rand(shape, dtype=self.probs.dtype, device=self.probs.device).clamp(min=tiny)
            else:
                u = self.probs.new(shape).uniform_(tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value):
        self._check(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.clone(memory_format=contiguous_format)
        probs[(probs == 1) & (value == 0)] = 0  # 0 log 0 is 0
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self):
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
