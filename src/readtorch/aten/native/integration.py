"""Integrals and derivatives of sampled functions: trapezoid, cumulative_trapezoid, gradient.

In PyTorch: `aten/src/ATen/native/Integration.cpp`; gradient in `aten/src/ATen/native/ReduceOps.cpp`.
"""

from readtorch.aten.functions import at
from readtorch.aten.native_function import native_function
from readtorch.c10.scalar_type import uint8
from readtorch.c10.wrap_dim import wrap_dim, wrap_dims

from .binary_ops.arithmetic import div_scalar, mul_scalar
from .tensor_shape.slice import slice_

# -------------------------------------------------------------------------------------------------- trapezoid


def part(t, dim, start=None, end=None):
    return slice_.call(t, dim, start, end, 1)


def check_samples(name, y, x=None):
    if x is None and y._array.dtype.kind == "b":
        raise RuntimeError(f"{name}: received a bool input for `y`, but bool is not supported")
    if x is not None and "b" in (y._array.dtype.kind, x._array.dtype.kind):
        raise RuntimeError(f"{name}: received a bool input for `x` or `y`, but bool is not supported")


def check_step(name, dx):
    if isinstance(dx, (bool, complex)):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")


def size_along(y, dim):
    """(dim, wrapped; how many samples there are)"""
    if not y._array.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    dim = wrap_dim(dim, y._array.ndim)
    return dim, y._array.shape[dim]


def steps_between(name, y, x, dim):
    """The distances between the points x, viewed with as many dimensions as y has."""
    sizes = x._array.shape
    if len(sizes) == 1:
        if sizes[0] != y._array.shape[dim]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        x = x.view(tuple([sizes[0] if d == dim else 1 for d in range(y._array.ndim)]))
    elif len(sizes) < y._array.ndim:
        x = x.view((1,) * (y._array.ndim - len(sizes)) + sizes)
    return part(x, dim, 1) - part(x, dim, 0, -1)


def neighbours(y, dim):
    """The samples at the left and at the right of each step."""
    return part(y, dim, 0, -1), part(y, dim, 1)


def without(y, dim):
    """Zeros: the integral of no samples."""
    shape = y._array.shape
    return at.new_zeros(y, (*shape[:dim], *shape[dim + 1 :]))


def trapezoid_with_step(name, y, dx, dim):
    dim, size = size_along(y, dim)
    if size == 0:
        return without(y, dim)
    check_samples(name, y)
    check_step(name, dx)
    ends = y.select(dim, 0) + y.select(dim, -1)
    return mul_scalar.call(y.sum(dim) - mul_scalar.call(ends, 0.5), dx)


def trapezoid_at(name, y, x, dim):
    dim, size = size_along(y, dim)
    if size == 0:
        return without(y, dim)
    check_samples(name, y, x)
    steps = steps_between(name, y, x, dim)
    left, right = neighbours(y, dim)
    return div_scalar.call(((left + right) * steps).sum(dim), 2.0)


for _name, _dx in (("trapezoid", "Scalar"), ("trapz", "float")):
    _at_places = native_function(f"{_name}.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor")
    _with_step = native_function(f"{_name}.dx(Tensor y, *, {_dx} dx=1, int dim=-1) -> Tensor")
    _at_places.compose(lambda y, x, dim: trapezoid_at("trapezoid", y, x, dim))
    _with_step.compose(lambda y, dx, dim: trapezoid_with_step("trapezoid", y, dx, dim))

cumulative_at = native_function("cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor")
cumulative_with_step = native_function("cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor")


@cumulative_at.compose
def cumulative_trapezoid_at(y, x, dim):
    dim, _ = size_along(y, dim)
    check_samples("cumulative_trapezoid", y, x)
    steps = steps_between("cumulative_trapezoid", y, x, dim)
    left, right = neighbours(y, dim)
    return div_scalar.call((steps * (left + right)).cumsum(dim), 2.0)


@cumulative_with_step.compose
def cumulative_trapezoid_with_step(y, dx, dim):
    dim, _ = size_along(y, dim)
    check_samples("cumulative_trapezoid", y)
    check_step("cumulative_trapezoid", dx)
    left, right = neighbours(y, dim)
    return mul_scalar.call(left + right, dx / 2).cumsum(dim)


# --------------------------------------------------------------------------------------------------- gradient

_REST = "int edge_order=1) -> Tensor[]"
with_one_spacing = native_function(f"gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, {_REST}")
with_one_spacing_along = native_function(f"gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, {_REST}")
along = native_function(f"gradient.array(Tensor self, *, int[] dim, {_REST}")
with_spacings = native_function(f"gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, {_REST}")
with_spacings_along = native_function(f"gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, {_REST}")
at_places = native_function(f"gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, {_REST}")
at_places_along = native_function(f"gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, {_REST}")


def check_gradient(self, spacings, dim, edge_order):
    """`spacings`: how many there are; `dim`: the dimensions, or None for all."""
    sizes = self._array.shape
    if self.dtype is uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if spacings is not None and dim is None and spacings != len(sizes):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = "
            f"{len(sizes)}', since dim argument was not given, but got a list of length {spacings}"
        )
    if spacings is not None and dim is not None and spacings != len(dim):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the "
            f"same length, but got a spacing argument of length {spacings} and a dim argument of length {len(dim)}."
        )
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    for d in range(len(sizes)) if dim is None else wrap_dims(dim, len(sizes)):
        if sizes[d] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")


def slope(self, dim, step, edge_order):
    """The derivative along one dimension of samples that lie `step` apart: half the difference of the neighbours,
    and of two or three points at the edges.
    """

    def at_(start, end=None):
        return part(self, dim, start, end)

    center = div_scalar.call(at_(2) - at_(0, -2), step)
    if edge_order == 1:
        first = div_scalar.call(at_(1, 2) - at_(0, 1), step)
        last = div_scalar.call(at_(-1) - at_(-2, -1), step)
    else:
        first = div_scalar.call(-1.5 * at_(0, 1) + 2 * at_(1, 2) - 0.5 * at_(2, 3), step)
        last = div_scalar.call(0.5 * at_(-3, -2) - 2 * at_(-2, -1) + 1.5 * at_(-1), step)
    return at.cat([first, div_scalar.call(center, 2), last], dim)


def slope_at(self, dim, places, edge_order):
    """The derivative along one dimension of samples at any points: that of a parabola through three neighbours."""
    if places._array.ndim != 1:
        raise RuntimeError(
            "torch.gradient expected each element of spacing to have one dimension, but got an element "
            f"with {places._array.ndim} dimensions!"
        )

    def at_(start, end=None):
        return part(self, dim, start, end)

    shape = [-1 if d == dim else 1 for d in range(self._array.ndim)]
    steps = places.diff(1, 0)
    h, k = part(steps, 0, 0, -1), part(steps, 0, 1)
    a, b, c = (t.reshape(shape) for t in (-k / (h * (h + k)), (k - h) / (h * k), h / (k * (h + k))))
    center = a * at_(0, -2) + b * at_(1, -1) + c * at_(2)
    if edge_order == 1:
        first, last = (at_(1, 2) - at_(0, 1)) / steps[0], (at_(-1) - at_(-2, -1)) / steps[-1]
        return at.cat([first, center, last], dim)
    h, k = steps[0], steps[1]
    first = -(2.0 * h + k) / (h * (h + k)) * at_(0, 1) + (h + k) / (h * k) * at_(1, 2) - h / (k * (h + k)) * at_(2, 3)
    h, k = steps[-2], steps[-1]
    last = k / (h * (k + h)) * at_(-3, -2) - (k + h) / (k * h) * at_(-2, -1) + (2 * k + h) / (k * (k + h)) * at_(-1)
    return at.cat([first, center, last], dim)


def slopes(self, of_one, spacing, dim, edge_order):
    dims = range(self._array.ndim) if dim is None else dim
    return tuple([of_one(self, wrap_dim(d, self._array.ndim), s, edge_order) for d, s in zip(dims, spacing)])


@with_one_spacing.compose
def gradient_with_one_spacing(self, spacing, dim, edge_order):
    dims = None if dim is None else (dim,)
    steps = [1.0 if spacing is None else spacing] * (self._array.ndim if dim is None else 1)
    check_gradient(self, None if spacing is None else len(steps), dims, edge_order)
    return slopes(self, slope, steps, dims, edge_order)


@with_one_spacing_along.compose
def gradient_with_one_spacing_along(self, spacing, dim, edge_order):
    return gradient_with_spacings_along(self, [spacing] * len(dim), dim, edge_order)


@along.compose
def gradient_along(self, dim, edge_order):
    return gradient_with_spacings_along(self, [1.0] * len(dim), dim, edge_order)


@with_spacings.compose
def gradient_with_spacings(self, spacing, dim, edge_order):
    return gradient_with_spacings_along(self, spacing, None if dim is None else (dim,), edge_order)


@with_spacings_along.compose
def gradient_with_spacings_along(self, spacing, dim, edge_order):
    check_gradient(self, len(spacing), dim, edge_order)
    return slopes(self, slope, spacing, dim, edge_order)


@at_places.compose
def gradient_at_places(self, spacing, dim, edge_order):
    return gradient_at_places_along(self, spacing, None if dim is None else (dim,), edge_order)


@at_places_along.compose
def gradient_at_places_along(self, spacing, dim, edge_order):
    check_gradient(self, len(spacing), dim, edge_order)
    return slopes(self, slope_at, spacing, dim, edge_order)
