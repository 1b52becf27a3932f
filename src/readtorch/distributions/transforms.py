"""Transforms: invertible functions with the logarithm of their determinant. In PyTorch: `torch/distributions/transforms.py`."""

import functools
import math
import operator

import readtorch
from readtorch import Size, broadcast_shapes, finfo
from readtorch.nn.functional import logsigmoid, pad, softplus
from readtorch.types import _Number

from . import constraints
from .utils import _sum_rightmost, broadcast_all, lazy_property, tril_matrix_to_vec, vec_to_tril_matrix

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftplusTransform",
    "TanhTransform",
    "SoftmaxTransform",
    "StackTransform",
    "StickBreakingTransform",
    "Transform",
    "identity_transform",
]


class Transform:
    """A function y = f(x), called as `t(x)`, with its inverse `t.inv` and log |det ∂y/∂x|.

    domain, codomain: the constraints of x and y. bijective: whether each y comes from one x; otherwise `inv` gives
    some x with f(x) = y. sign: whether a number grows with the other, +1 or -1, for bijective ones of a single number.
    cache_size: 1 remembers the last x and y, so that `t.inv(t(x))` is x itself, without rounding and with its graph.
    Raises ValueError for another size.

    A subclass has `_call`, `_inverse` and `log_abs_det_jacobian`, and, if sizes change, `forward_shape` and `inverse_shape`.
    """

    bijective = False
    _arguments = ()  # the names of attributes that __init__ takes, in its order

    def __init__(self, cache_size=0):
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv = None
        if cache_size == 1:
            self._cached_x_y = None, None
        super().__init__()

    def __getstate__(self):
        return {**self.__dict__, "_inv": None}

    @property
    def event_dim(self):
        """How many last dimensions are transformed together. Raises ValueError if x and y differ in it."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self):
        """The inverse transform, whose inverse is this one."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self):
        """+1 where y grows with x, -1 where it falls."""
        raise NotImplementedError

    def with_cache(self, cache_size=1):
        """This transform with another size of the cache. Raises NotImplementedError if a class does not say how it is made."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        if self._arguments:
            cls = next(cls for cls in type(self).__mro__ if "_arguments" in vars(cls))  # a subclass may take others
            return cls(*(getattr(self, name) for name in self._arguments), cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other):
        return self is other

    def __ne__(self, other):
        return not self.__eq__(other)

    def __call__(self, x):
        """y, or the y of the last call if x is the same object and there is a cache."""
        if self._cache_size == 0:
            return self._call(x)
        if x is not self._cached_x_y[0]:
            self._cached_x_y = x, self._call(x)
        return self._cached_x_y[1]

    def _inv_call(self, y):
        if self._cache_size == 0:
            return self._inverse(y)
        if y is not self._cached_x_y[1]:
            self._cached_x_y = self._inverse(y), y
        return self._cached_x_y[0]

    def _call(self, x):
        raise NotImplementedError

    def _inverse(self, y):
        raise NotImplementedError

    def log_abs_det_jacobian(self, x, y):
        """log |det ∂y/∂x|: the shape of x without the event's dimensions."""
        raise NotImplementedError

    def __repr__(self):
        return self.__class__.__name__ + "()"

    def forward_shape(self, shape):
        """The shape of y for an x of `shape`; the same unless a class says otherwise."""
        return shape

    def inverse_shape(self, shape):
        """The shape of x for a y of `shape`."""
        return shape


class _InverseTransform(Transform):
    """The other direction of a transform; `inv` makes it."""

    def __init__(self, transform):
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    def __getstate__(self):
        return self.__dict__  # in PyTorch: without the transform, and what is loaded raises AssertionError when used

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return self._inv.domain

    @property
    def bijective(self):
        return self._inv.bijective

    @property
    def sign(self):
        return self._inv.sign

    @property
    def inv(self):
        return self._inv

    def with_cache(self, cache_size=1):
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other):
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __repr__(self):
        return f"{self.__class__.__name__}({self._inv!r})"

    def __call__(self, x):
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x, y):
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self._inv.forward_shape(shape)


# --------------------------------------------------------------------------------------------- made of other transforms


class ComposeTransform(Transform):
    """`parts`, a list of transforms, one after the other; none of them: the identity."""

    _arguments = ("parts",)

    def __init__(self, parts, cache_size=0):
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size=cache_size)
        self.parts = parts

    def __eq__(self, other):
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        if not self.parts:
            return constraints.real
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event_dim += part.domain.event_dim - part.codomain.event_dim
            event_dim = max(event_dim, part.domain.event_dim)
        return _widened("domain", self.parts[0].domain, event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        if not self.parts:
            return constraints.real
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            event_dim += part.codomain.event_dim - part.domain.event_dim
            event_dim = max(event_dim, part.codomain.event_dim)
        return _widened("codomain", self.parts[-1].codomain, event_dim)

    @lazy_property
    def bijective(self):
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self):
        return functools.reduce(operator.mul, (part.sign for part in self.parts), 1)

    @property
    def inv(self):
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x, y):
        """The sum of the parts' own, each over the dimensions that are one event for the whole."""
        if not self.parts:
            return readtorch.zeros_like(x)
        between = [x]
        for part in self.parts[:-1]:
            between.append(part(between[-1]))
        between.append(y)
        terms, event_dim = [], self.domain.event_dim
        for part, x, y in zip(self.parts, between[:-1], between[1:]):
            terms.append(_sum_rightmost(part.log_abs_det_jacobian(x, y), event_dim - part.domain.event_dim))
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape):
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape):
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self):
        return self.__class__.__name__ + "(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


def _widened(name, constraint, event_dim):
    """`constraint` over events of `event_dim` dimensions, which may be more than its own."""
    if event_dim < constraint.event_dim:
        raise AssertionError(f"event_dim {event_dim} must be >= {name}.event_dim {constraint.event_dim}")
    more = event_dim - constraint.event_dim
    return constraints.independent(constraint, more) if more else constraint


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """`base_transform` with `reinterpreted_batch_ndims` more dimensions as part of an event: log-determinants are summed
    over them.

    Raises ValueError, when called, for tensors with fewer dimensions.
    """

    _arguments = ("base_transform", "reinterpreted_batch_ndims")

    def __init__(self, base_transform, reinterpreted_batch_ndims, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self):
        return self.base_transform.bijective

    @property
    def sign(self):
        return self.base_transform.sign

    def _call(self, x):
        _check_dimensions(x.shape, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y):
        _check_dimensions(y.shape, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        return _sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self):
        return f"{self.__class__.__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape):
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        return self.base_transform.inverse_shape(shape)


def _check_dimensions(shape, least):
    if len(shape) < least:
        raise ValueError("Too few dimensions on input")


class _SequenceTransform(Transform):
    """Transforms `tseq`, each of one part of the tensor along the dimension `dim`.

    Raises AssertionError for what is no transform, and, when called, if the tensor lacks `dim` or has another size there.
    """

    def __init__(self, tseq, dim=0, cache_size=0):
        if not all(isinstance(transform, Transform) for transform in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        if cache_size:
            tseq = [transform.with_cache(cache_size) for transform in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.dim = dim

    @property
    def bijective(self):
        return all(transform.bijective for transform in self.transforms)

    def _check_size(self, tensor, name, size, of_what, kind="tensor"):
        if not -tensor.dim() <= self.dim < tensor.dim():
            raise AssertionError(f"dim {self.dim} out of range for {kind} with {tensor.dim()} dimensions")
        if tensor.size(self.dim) != size:
            got = f"{name}.size({self.dim}) = {tensor.size(self.dim)}"
            raise AssertionError(f"{got} must equal {of_what} {size}")


class CatTransform(_SequenceTransform):
    """As `torch.cat`: transform i of `tseq` takes `lengths[i]` elements along `dim`, one if there are no lengths.

    Raises AssertionError for what is no transform, a list of lengths that does not fit and, when called, a tensor that
    does not.
    """

    _arguments = ("transforms", "dim", "lengths")

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})")

    @lazy_property
    def event_dim(self):
        return max(transform.event_dim for transform in self.transforms)

    @lazy_property
    def length(self):
        """The size along `dim`."""
        return sum(self.lengths)

    def _parts(self, tensor, name, kind="tensor"):
        """The pieces of `tensor` that the transforms take."""
        self._check_size(tensor, name, self.length, "length", kind)
        starts = (sum(self.lengths[:i]) for i in range(len(self.lengths)))
        return [tensor.narrow(self.dim, start, length) for start, length in zip(starts, self.lengths)]

    def _call(self, x):
        return readtorch.cat([t(part) for t, part in zip(self.transforms, self._parts(x, "x"))], dim=self.dim)

    def _inverse(self, y):
        return readtorch.cat([t.inv(part) for t, part in zip(self.transforms, self._parts(y, "y"))], dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        """Joined along `dim`; the sum of all if that dimension is part of an event."""
        terms = []
        for transform, x_part, y_part in zip(self.transforms, self._parts(x, "x", "x"), self._parts(y, "y", "y")):
            term = transform.log_abs_det_jacobian(x_part, y_part)
            terms.append(_sum_rightmost(term, self.event_dim - transform.event_dim))
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return readtorch.cat(terms, dim=dim) if dim < 0 else sum(terms)

    @constraints.dependent_property
    def domain(self):
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self):
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_SequenceTransform):
    """As `torch.stack`: transform i of `tseq` takes the part of index i along `dim`.

    Raises AssertionError for what is no transform and, when called, for a tensor of another size along `dim`.
    """

    _arguments = ("transforms", "dim")

    def _parts(self, tensor, name, kind="tensor"):
        self._check_size(tensor, name, len(self.transforms), "len(transforms)", kind)
        return tensor.unbind(self.dim)

    def _call(self, x):
        return readtorch.stack([t(part) for t, part in zip(self.transforms, self._parts(x, "x"))], dim=self.dim)

    def _inverse(self, y):
        return readtorch.stack([t.inv(part) for t, part in zip(self.transforms, self._parts(y, "y"))], dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        parts = zip(self.transforms, self._parts(x, "x", "x"), self._parts(y, "y", "y"))
        return readtorch.stack([t.log_abs_det_jacobian(x_part, y_part) for t, x_part, y_part in parts], dim=self.dim)

    @constraints.dependent_property
    def domain(self):
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self):
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


class CumulativeDistributionTransform(Transform):
    """The cumulative distribution function of `distribution`: its draws become uniform on [0, 1]."""

    bijective = True
    codomain = constraints.unit_interval
    sign = +1
    _arguments = ("distribution",)

    def __init__(self, distribution, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self):
        return self.distribution.support

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)


# --------------------------------------------------------------------------------------------------- of single numbers


class _Pointwise(Transform):
    """A transform of single numbers without a parameter: two of a kind are equal."""

    domain = constraints.real
    bijective = True
    sign = +1

    def __eq__(self, other):
        return isinstance(other, type(self))


class ExpTransform(_Pointwise):
    """y = exp(x)"""

    codomain = constraints.positive

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class PowerTransform(Transform):
    """y = x^exponent, for positive x. exponent: a number or a tensor."""

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True
    _arguments = ("exponent",)

    def __init__(self, exponent, cache_size=0):
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    @lazy_property
    def sign(self):
        return self.exponent.sign()

    def __eq__(self, other):
        return isinstance(other, PowerTransform) and self.exponent.eq(other.exponent).all().item()

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape):
        return broadcast_shapes(shape, _shape_of(self.exponent))

    def inverse_shape(self, shape):
        return self.forward_shape(shape)


def _shape_of(parameter):
    return getattr(parameter, "shape", ())


def _clipped_sigmoid(x):
    """The sigmoid, kept off 0 and 1."""
    limits = finfo(x.dtype)
    return x.sigmoid().clamp(min=limits.tiny, max=1.0 - limits.eps)


class SigmoidTransform(_Pointwise):
    """y = 1 / (1 + exp(-x)), kept off 0 and 1"""

    codomain = constraints.unit_interval

    def _call(self, x):
        return _clipped_sigmoid(x)

    def _inverse(self, y):
        limits = finfo(y.dtype)
        y = y.clamp(min=limits.tiny, max=1.0 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y):
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_Pointwise):
    """y = log(1 + exp(x)), which is x itself where x > 20"""

    codomain = constraints.positive

    def _call(self, x):
        return softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y):
        return -softplus(-x)


class TanhTransform(_Pointwise):
    """y = tanh(x); the log-determinant is log(1 - y²), computed from x, which has not been rounded to 1."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return y.atanh()

    def log_abs_det_jacobian(self, x, y):
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(Transform):
    """y = |x|; the inverse gives the positive x."""

    domain = constraints.real
    codomain = constraints.positive

    def __eq__(self, other):
        return isinstance(other, AbsTransform)

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class AffineTransform(Transform):
    """y = loc + scale * x. loc, scale: numbers or tensors. event_dim: how many last dimensions are one event."""

    bijective = True
    _arguments = ("loc", "scale", "event_dim")

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self):
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return constraints.independent(constraints.real, self.event_dim) if self.event_dim else constraints.real

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return constraints.independent(constraints.real, self.event_dim) if self.event_dim else constraints.real

    def __eq__(self, other):
        return isinstance(other, AffineTransform) and _equal(self.loc, other.loc) and _equal(self.scale, other.scale)

    @property
    def sign(self):
        if isinstance(self.scale, _Number):
            return (self.scale > 0) - (self.scale < 0)
        return self.scale.sign()

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        shape, scale = x.shape, self.scale
        is_number = isinstance(scale, _Number)
        result = readtorch.full_like(x, math.log(abs(scale))) if is_number else scale.abs().log()
        if self.event_dim:
            result = result.view(result.size()[: -self.event_dim] + (-1,)).sum(-1)
            shape = shape[: -self.event_dim]
        return result.expand(shape)

    def forward_shape(self, shape):
        return broadcast_shapes(shape, _shape_of(self.loc), _shape_of(self.scale))

    def inverse_shape(self, shape):
        return self.forward_shape(shape)


def _equal(a, b):
    """Whether two numbers or tensors are the same everywhere."""
    if isinstance(a, _Number) and isinstance(b, _Number):
        return a == b
    return (a == b).all().item()


# --------------------------------------------------------------------------------------------- of vectors and matrices


class ReshapeTransform(Transform):
    """The last dimensions, of the shape `in_shape`, in the shape `out_shape`.

    Raises ValueError if they differ in the number of elements, or for another shape of the input.
    """

    bijective = True
    _arguments = ("in_shape", "out_shape")

    def __init__(self, in_shape, out_shape, cache_size=0):
        self.in_shape = Size(in_shape)
        self.out_shape = Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self):
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self):
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x):
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y):
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x, y):
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape):
        return _replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return _replaced(shape, self.out_shape, self.in_shape)


def _replaced(shape, old, new):
    """`shape` with `new` in place of `old` at its end."""
    _check_dimensions(shape, len(old))
    cut = len(shape) - len(old)
    if shape[cut:] != old:
        raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
    return shape[:cut] + new


class CorrCholeskyTransform(Transform):
    """D(D-1)/2 real numbers, (…, D(D-1)/2), to the Cholesky factor of a D×D correlation matrix, (…, D, D).

    The numbers, tanh of which are partial correlations, stand row by row below the diagonal. Row by row each takes its
    signed share of what is left of the row's length 1, and the diagonal takes the rest.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x):
        x = x.tanh()
        eps = finfo(x.dtype).eps
        partial = vec_to_tril_matrix(x.clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - partial**2).sqrt().cumprod(-1)
        unit = readtorch.eye(partial.shape[-1], dtype=partial.dtype, device=partial.device)
        return (partial + unit) * pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y):
        left = 1 - (y * y).cumsum(-1)  # of the squared length of each row
        left = tril_matrix_to_vec(pad(left[..., :-1], [1, 0], value=1), diag=-1)
        t = tril_matrix_to_vec(y, diag=-1) / left.sqrt()
        return (t.log1p() - t.neg().log1p()) / 2  # atanh

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        left = tril_matrix_to_vec(1 - (y * y).cumsum(dim=-1), diag=-2)
        tanh_term = -2 * (x + softplus(-2 * x) - math.log(2.0)).sum(dim=-1)
        return 0.5 * left.log().sum(-1) + tanh_term

    def forward_shape(self, shape):
        _check_dimensions(shape, 1)
        n = shape[-1]
        d = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if d * (d - 1) // 2 != n:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (d, d)

    def inverse_shape(self, shape):
        _check_dimensions(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return shape[:-2] + (shape[-1] * (shape[-1] - 1) // 2,)


class SoftmaxTransform(Transform):
    """Real vectors (…, n) to probabilities, exp(x) over their sum; the inverse is the logarithm.

    Not bijective: x and x + c have one image. It treats all coordinates alike, which suits optimization.
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other):
        return isinstance(other, SoftmaxTransform)

    def _call(self, x):
        weights = (x - x.max(-1, True)[0]).exp()
        return weights / weights.sum(-1, True)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape):
        _check_dimensions(shape, 1)
        return shape

    def inverse_shape(self, shape):
        return self.forward_shape(shape)


class StickBreakingTransform(Transform):
    """Real vectors (…, n) to probabilities (…, n + 1): number i breaks its share off what is left of a stick.

    Bijective. The shares are sigmoids of x, shifted so that zeros become equal probabilities.
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other):
        return isinstance(other, StickBreakingTransform)

    def _call(self, x):
        share = _clipped_sigmoid(x - _parts_left(x).log())
        left = (1 - share).cumprod(-1)
        return pad(share, [0, 1], value=1) * pad(left, [1, 0], value=1)

    def _inverse(self, y):
        y = y[..., :-1]
        left = (1 - y.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return y.log() - left.log() + _parts_left(y).log()

    def log_abs_det_jacobian(self, x, y):
        x = x - _parts_left(x).log()
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        _check_dimensions(shape, 1)
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape):
        _check_dimensions(shape, 1)
        return shape[:-1] + (shape[-1] - 1,)


def _parts_left(x):
    """n, …, 2, 1 for x of the size (…, n): of how many parts each next one is broken off, less one."""
    n = x.shape[-1]
    return n + 1 - x.new_ones(n).cumsum(-1)


class LowerCholeskyTransform(Transform):
    """Real matrices (…, n, n) to Cholesky factors: exp on the diagonal, what is above it left out."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other):
        return isinstance(other, LowerCholeskyTransform)

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Real matrices (…, n, n) to positive definite ones, L Lᵀ of the `LowerCholeskyTransform` L."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def __eq__(self, other):
        return isinstance(other, PositiveDefiniteTransform)

    def _call(self, x):
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(readtorch.linalg.cholesky(y))
