"""`Chi2`. In PyTorch: `torch/distributions/chi2.py`."""

from . import constraints
from .gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of squares of `df` standard normal numbers: Gamma(df / 2, 1 / 2).

    df: degrees of freedom, a positive number or tensor.
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args=None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(Chi2, _instance))

    @property
    def df(self):
        """The degrees of freedom."""
        return self.concentration * 2
