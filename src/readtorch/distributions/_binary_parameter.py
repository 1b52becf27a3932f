"""What the distributions of yes and no share: probabilities or log-odds, of which one is given and the other follows.

PyTorch has no such file: each of these classes has the same lines.
"""

from .utils import broadcast_all, lazy_property, logits_to_probs, one_of, probs_to_logits


class BinaryParameter:
    """A base for distributions with `probs` or `logits` = log(probs / (1 - probs)); `_param` is the one given."""

    def _take(self, probs, logits, *others):
        """Keep the one that is given. Returns `others`, broadcast with it and in its dtype. Raises ValueError for both
        or none.
        """
        name, given = one_of(probs=probs, logits=logits)
        *others, self._param = broadcast_all(*others, given)
        setattr(self, name, self._param)
        return [other.type_as(self._param) for other in others]

    @lazy_property
    def logits(self):
        """The log-odds, log(probs / (1 - probs))."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self):
        """The probability of 1."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self):
        """The shape of `probs` and `logits`."""
        return self._param.size()

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)
