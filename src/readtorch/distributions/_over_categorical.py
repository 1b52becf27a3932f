"""What the distributions that stand on a `Categorical` share: its parameters.

PyTorch has no such file: each of these classes has the same lines.
"""


class OverCategorical:
    """A base for distributions over vectors (…, K) whose probabilities `_categorical` keeps."""

    @property
    def probs(self):
        """The probabilities: (…, K), with the sum 1."""
        return self._categorical.probs

    @property
    def logits(self):
        """The logarithms of the probabilities: (…, K)."""
        return self._categorical.logits

    @property
    def param_shape(self):
        """The shape of `probs` and `logits`."""
        return self._categorical.param_shape

    def _new(self, *args, **kwargs):
        return self._categorical._new(*args, **kwargs)
