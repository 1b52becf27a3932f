"""Constraints: which tensors a parameter, or a sample, may be. In PyTorch: `torch/distributions/constraints.py`.

A constraint checks a batch: `check(value)` has a bool for each event, and `event_dim` says how many of the last
dimensions are one event. `constraints.positive` and its like are objects, `constraints.interval(0, 2)` makes one.
"""

import readtorch
from readtorch import finfo

__all__ = [
    "Constraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "independent",
    "integer_interval",
    "interval",
    "half_open_interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "MixtureSameFamilyConstraint",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_semidefinite",
    "positive_definite",
    "positive_integer",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A region of values. is_discrete: whether they are isolated. event_dim: how many last dimensions are one event."""

    is_discrete = False
    event_dim = 0

    def check(self, value):
        """Whether each event of `value` is within: bool, of the batch's shape. To be overridden."""
        raise NotImplementedError

    def __repr__(self):
        return self.__class__.__name__[1:] + "()"


# ------------------------------------------------------------------------------------ which depend on other values


class _Dependent(Constraint):
    """A support that depends on parameters; what is known of it beforehand can be said: `dependent(event_dim=1)`.

    Raises NotImplementedError if is_discrete or event_dim is asked for and was not said, ValueError in `check`.
    """

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    @property
    def is_discrete(self):
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self):
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, x):
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint):
    """Whether the constraint depends on values that only a distribution has."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """Decorator: a property that gives an object's own constraint, and on the class is a dependent one.

    `@dependent_property` or `@dependent_property(is_discrete=False, event_dim=0)`.
    """

    def __init__(self, fn=None, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        super().__init__(fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn):
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


# ----------------------------------------------------------------------------------------- made of other constraints


def _check_is_constraint(base):
    if not isinstance(base, Constraint):
        raise AssertionError(f"base_constraint must be a Constraint, got {type(base).__name__}")


def _all_of_event(checked, value, batch_ndims, event_dim):
    """`checked` with what follows its first `batch_ndims` dimensions taken together: are all of an event within?"""
    if batch_ndims < 0:
        raise ValueError(f"Expected value.dim() >= {event_dim} but got {value.dim()}")
    return checked.reshape(checked.shape[:batch_ndims] + (-1,)).all(-1)


class _IndependentConstraint(Constraint):
    """`base_constraint` with its last `reinterpreted_batch_ndims` batch dimensions as part of the event.

    Raises AssertionError for what is no constraint and no number of dimensions; ValueError in `check` for a value
    with too few dimensions.
    """

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        _check_is_constraint(base_constraint)
        if not isinstance(reinterpreted_batch_ndims, int):
            got = type(reinterpreted_batch_ndims).__name__
            raise AssertionError(f"reinterpreted_batch_ndims must be an int, got {got}")
        if reinterpreted_batch_ndims < 0:
            raise AssertionError(f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}")
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self):
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value):
        checked = self.base_constraint.check(value)
        return _all_of_event(checked, value, checked.dim() - self.reinterpreted_batch_ndims, self.event_dim)

    def __repr__(self):
        return f"{self.__class__.__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The support of a mixture: a value is within if it is in the support of every component, `base_constraint`."""

    def __init__(self, base_constraint):
        _check_is_constraint(base_constraint)
        self.base_constraint = base_constraint

    @property
    def is_discrete(self):
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        return self.base_constraint.event_dim

    def check(self, value):
        """`value` has no dimension of components: it is compared with each of them."""
        checked = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return _all_of_event(checked, value, value.dim() - self.event_dim, self.event_dim)

    def __repr__(self):
        return f"{self.__class__.__name__}({self.base_constraint!r})"


class _Sequence(Constraint):
    """Constraints `cseq`, each of which holds for one part of the value along the dimension `dim`."""

    def __init__(self, cseq, dim=0):
        if not all(isinstance(constraint, Constraint) for constraint in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq = list(cseq)
        self.dim = dim

    @property
    def is_discrete(self):
        return any(constraint.is_discrete for constraint in self.cseq)

    @property
    def event_dim(self):
        return max(constraint.event_dim for constraint in self.cseq)

    def _check_dim(self, value):
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} out of range for value with {value.dim()} dimensions")


class _Cat(_Sequence):
    """For values of `torch.cat`: constraint i holds for `lengths[i]` elements along `dim`, one if there are no lengths."""

    def __init__(self, cseq, dim=0, lengths=None):
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})")

    def check(self, value):
        self._check_dim(value)
        starts = (sum(self.lengths[:i]) for i in range(len(self.lengths)))
        parts = [value.narrow(self.dim, start, length) for start, length in zip(starts, self.lengths)]
        return readtorch.cat([c.check(part) for c, part in zip(self.cseq, parts)], self.dim)


class _Stack(_Sequence):
    """For values of `torch.stack`: constraint i holds for the part with index i along `dim`."""

    @property
    def event_dim(self):
        dim = super().event_dim
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value):
        self._check_dim(value)
        return readtorch.stack([c.check(part) for c, part in zip(self.cseq, value.unbind(self.dim))], self.dim)


# --------------------------------------------------------------------------------------------------------- numbers


class _Boolean(Constraint):
    """0 and 1."""

    is_discrete = True

    def check(self, value):
        return (value == 0) | (value == 1)


class _Real(Constraint):
    """Every number but NaN."""

    def check(self, value):
        return value == value


class _Bounded(Constraint):
    """Numbers between bounds, which may be tensors; the classes below say which bounds, and whether they are within."""

    def __repr__(self):
        bounds = ", ".join(f"{name}={bound}" for name, bound in vars(self).items())
        return f"{self.__class__.__name__[1:]}({bounds})"


class _Above(_Bounded):
    def __init__(self, lower_bound):
        self.lower_bound = lower_bound


class _Below(_Bounded):
    def __init__(self, upper_bound):
        self.upper_bound = upper_bound


class _Between(_Bounded):
    def __init__(self, lower_bound, upper_bound):
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound


class _GreaterThan(_Above):
    """(lower_bound, ∞)"""

    def check(self, value):
        return self.lower_bound < value


class _GreaterThanEq(_Above):
    """[lower_bound, ∞)"""

    def check(self, value):
        return self.lower_bound <= value


class _LessThan(_Below):
    """(-∞, upper_bound)"""

    def check(self, value):
        return value < self.upper_bound


class _Interval(_Between):
    """[lower_bound, upper_bound]"""

    def check(self, value):
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """[lower_bound, upper_bound)"""

    def check(self, value):
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _IntegerInterval(_Between):
    """lower_bound, …, upper_bound"""

    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerLessThan(_Below):
    """…, upper_bound - 1, upper_bound"""

    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Above):
    """lower_bound, lower_bound + 1, …"""

    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (value >= self.lower_bound)


# --------------------------------------------------------------------------------------------------------- vectors


class _OneHot(Constraint):
    """Vectors of zeros and a single one."""

    is_discrete = True
    event_dim = 1

    def check(self, value):
        return boolean.check(value).all(-1) & value.sum(-1).eq(1)


class _Simplex(Constraint):
    """Vectors of nonnegative numbers whose sum is 1, within 1e-6."""

    event_dim = 1

    def check(self, value):
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Vectors of nonnegative numbers whose sum is at most `upper_bound`."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, x):
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


# -------------------------------------------------------------------------------------------------------- matrices


class _LowerTriangular(Constraint):
    """Square matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value):
        return (value.tril() == value).all(-1).all(-1)


class _LowerCholesky(Constraint):
    """Lower triangular matrices with a positive diagonal: Cholesky factors."""

    event_dim = 2

    def check(self, value):
        return lower_triangular.check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(Constraint):
    """Cholesky factors of correlation matrices: their rows have length 1."""

    event_dim = 2

    def check(self, value):
        tolerance = finfo(value.dtype).eps * value.size(-1) * 10  # 10 is an adjustable factor
        length = readtorch.linalg.norm(value.detach(), dim=-1)
        return lower_cholesky.check(value) & (length - 1.0).abs().le(tolerance).all(-1)


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value):
        is_square = value.shape[-2] == value.shape[-1]
        return readtorch.full(value.shape[:-2], is_square, dtype=readtorch.bool, device=value.device)


class _Symmetric(_Square):
    """Matrices that equal their transpose, within 1e-6."""

    def check(self, value):
        square_check = super().check(value)
        if not square_check.all():
            return square_check
        return readtorch.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without a negative eigenvalue."""

    def check(self, value):
        symmetric_check = super().check(value)
        if not symmetric_check.all():
            return symmetric_check
        return readtorch.linalg.eigvalsh(value).ge(0).all(-1)


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices that have a Cholesky factor."""

    def check(self, value):
        symmetric_check = super().check(value)
        if not symmetric_check.all():
            return symmetric_check
        return readtorch.linalg.cholesky_ex(value).info.eq(0)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
