"""`Distribution`: shapes, checks and the methods that every distribution has.

In PyTorch: `torch/distributions/distribution.py`.
"""

import warnings

import readtorch
from readtorch import Size, Tensor

from . import constraints
from .utils import lazy_property

__all__ = ["Distribution"]


class Distribution:
    """A batch of distributions. A sample has the shape sample_shape + batch_shape + event_shape.

    batch_shape: how many independent distributions, each with parameters of its own. event_shape: of a single
    draw: `()` for numbers, (n,) for vectors.
    validate_args: whether arguments and values are checked; None takes the class's setting, see
    `set_default_validate_args`. Raises ValueError for parameters that violate `arg_constraints`.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value):
        """Switch checks on or off for all distributions that are made without `validate_args`.

        Raises ValueError if `value` is no bool. Python's option -O switches them off, too.
        """
        if value not in [True, False]:
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape=Size(), event_shape=Size(), validate_args=None):
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self):
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            arg_constraints = {}
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
        for param, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue  # it cannot be checked alone
            if param not in self.__dict__ and isinstance(getattr(type(self), param), lazy_property):
                continue  # it follows from another one, which is checked
            value = getattr(self, param)
            if not readtorch._is_all_true(constraint.check(value)):
                raise ValueError(
                    f"Expected parameter {param} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    # ------------------------------------------------------------------------------------------------- shapes

    def expand(self, batch_shape, _instance=None):
        """The same distributions with their parameters expanded to `batch_shape`; nothing is copied or checked.

        _instance: the object to fill, which the method of a subclass passes on. Raises NotImplementedError in a
        class that does not override it.
        """
        raise NotImplementedError

    def _expanded(self, cls, batch_shape, instance, *names, kept=()):
        """What `expand` does in a class `cls` with the parameters `names`; attributes in `kept` stay as they are.

        A parameter has the batch's shape, followed by dimensions of its own; it may be a distribution. One that
        has not been computed yet is left to be computed.
        """
        new = self._get_checked_instance(cls, instance)
        batch_shape, old = Size(batch_shape), len(self._batch_shape)
        for name in names:
            if name in self.__dict__:
                value = getattr(self, name)
                shape = value.batch_shape if isinstance(value, Distribution) else value.shape
                setattr(new, name, value.expand(batch_shape + shape[old:]))
        for name in kept:
            setattr(new, name, getattr(self, name))
        super(cls, new).__init__(batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def batch_shape(self):
        """How many distributions: the shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self):
        """The shape of a single draw."""
        return self._event_shape

    # ---------------------------------------------------------------------------- what a distribution says of itself

    @property
    def arg_constraints(self):
        """{name of a parameter: its constraint}"""
        raise NotImplementedError

    @property
    def support(self):
        """The constraint of values: where the density is not zero."""
        raise NotImplementedError

    @property
    def mean(self):
        """The mean: batch_shape + event_shape, as all of these."""
        raise NotImplementedError

    @property
    def mode(self):
        """The most probable value."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self):
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self):
        """The standard deviation."""
        return self.variance.sqrt()

    def entropy(self):
        """The entropy, in nats: batch_shape."""
        raise NotImplementedError

    def perplexity(self):
        """exp of the entropy: batch_shape."""
        return self.entropy().exp()

    # ------------------------------------------------------------------------------------------------ samples

    def sample(self, sample_shape=()):
        """A draw of the shape sample_shape + batch_shape + event_shape, without a graph."""
        with readtorch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=()):
        """A draw that is a differentiable function of the parameters. Raises NotImplementedError unless `has_rsample`."""
        raise NotImplementedError

    def sample_n(self, n):
        """Deprecated: `sample((n,))`."""
        message = "`sample_n(n)` will be deprecated. Use `sample((n,))` instead."
        warnings.warn(message, category=FutureWarning, stacklevel=2)
        return self.sample(Size((n,)))

    def enumerate_support(self, expand=True):
        """All values of a discrete distribution: (number of values,) + batch_shape + event_shape.

        expand=False leaves the batch's dimensions at 1. Raises NotImplementedError unless `has_enumerate_support`.
        """
        raise NotImplementedError

    def _enumerated(self, values, expand):
        """`values`, one a row, along a new first dimension, before those of the batch."""
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values

    # ------------------------------------------------------------------------------------------ probabilities

    def log_prob(self, value):
        """The logarithm of the density, or of the probability, at `value`: its shape without the event's dimensions.

        Raises ValueError, if arguments are validated, for a value outside the support or of another event shape.
        """
        raise NotImplementedError

    def cdf(self, value):
        """The probability of a draw that is at most `value`. Raises ValueError as `log_prob`."""
        raise NotImplementedError

    def icdf(self, value):
        """The inverse of `cdf`: the quantile of the probability `value`."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------- for those that inherit

    def _extended_shape(self, sample_shape=()):
        """The shape of a sample: sample_shape + batch_shape + event_shape."""
        return Size(Size(sample_shape) + self._batch_shape + self._event_shape)

    def _check(self, value):
        """`_validate_sample`, if this distribution checks values at all."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value):
        """Raise ValueError unless `value` is a tensor of a fitting shape and within the support."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        self._check_shape_of(value.size())
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if support is None:
            raise AssertionError("support is unexpectedly None")
        if not readtorch._is_all_true(support.check(value)):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _check_shape_of(self, actual):
        if actual[len(actual) - len(self._event_shape) :] != self._event_shape:
            raise ValueError(f"The right-most size of value must match event_shape: {actual} vs {self._event_shape}.")
        expected = self._batch_shape + self._event_shape
        if any(i != 1 and j != 1 and i != j for i, j in zip(reversed(actual), reversed(expected))):
            raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {actual} vs {expected}.")

    def _get_checked_instance(self, cls, _instance=None):
        """The object that `expand` of `cls` fills: `_instance`, or a new one made without __init__.

        Raises NotImplementedError in a subclass with an __init__ of its own, which must have its own `expand`.
        """
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom __init__ method "
                "must also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def __repr__(self):
        given = {name: self.__dict__[name] for name in self.arg_constraints if name in self.__dict__}
        shown = [f"{name}: {value if value.numel() == 1 else value.size()}" for name, value in given.items()]
        return f"{self.__class__.__name__}({', '.join(shown)})"
