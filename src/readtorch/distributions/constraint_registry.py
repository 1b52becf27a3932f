"""`biject_to` and `transform_to`: from all real numbers into a constraint. In PyTorch: `torch/distributions/constraint_registry.py`.

    free = torch.zeros(3, requires_grad=True)
    scale = transform_to(Normal.arg_constraints["scale"])(free)     # positive, and a function of `free`

An optimizer may move `free` anywhere. `transform_to` may take more numbers than needed and treats coordinates alike;
`biject_to` gives bijective transforms with a log-determinant, as Hamiltonian Monte Carlo wants.
"""

from readtorch.types import _Number

from . import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """From constraints to transforms: `registry(constraint)`. Raises NotImplementedError for kinds without an entry."""

    def __init__(self):
        self._registry = {}

    def register(self, constraint, factory=None):
        """Let `factory(constraint)` make the transform for a class of constraints (or an object's class); a decorator
        without `factory`.

        Raises TypeError if `constraint` is neither.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint):
        try:
            factory = self._registry[type(constraint)]
        except KeyError:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints") from None
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _register_both(*kinds):
    """Decorator: an entry for each of `kinds` in both registries."""

    def decorator(factory):
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return decorator


@_register_both(constraints.real)
def _to_real(constraint):
    return transforms.identity_transform


# In PyTorch `positive` is registered and then, its class being that of all lower bounds, overwritten by `greater_than`:
# the transform into positive numbers is exp and then an affine one by 0 and 1.
@_register_both(constraints.greater_than, constraints.greater_than_eq)
def _to_greater_than(constraint):
    return _then_affine(transforms.ExpTransform(), constraint.lower_bound, 1)


@_register_both(constraints.less_than)
def _to_less_than(constraint):
    return _then_affine(transforms.ExpTransform(), constraint.upper_bound, -1)


@_register_both(constraints.interval, constraints.half_open_interval)
def _to_interval(constraint):
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, _Number) and low == 0 and isinstance(high, _Number) and high == 1:
        return transforms.SigmoidTransform()
    return _then_affine(transforms.SigmoidTransform(), low, high - low)


def _then_affine(transform, loc, scale):
    return transforms.ComposeTransform([transform, transforms.AffineTransform(loc, scale)])


@biject_to.register(constraints.simplex)
def _biject_to_simplex(constraint):
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _transform_to_simplex(constraint):
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _transform_to_lower_cholesky(constraint):
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _transform_to_positive_definite(constraint):
    return transforms.PositiveDefiniteTransform()


@_register_both(constraints.corr_cholesky)
def _to_corr_cholesky(constraint):
    return transforms.CorrCholeskyTransform()


def _register_composed(registry):
    """Entries of `registry` for constraints that are made of others, whose transforms come from it."""

    @registry.register(constraints.independent)
    def to_independent(constraint):
        base = registry(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    @registry.register(constraints.cat)
    def to_cat(constraint):
        return transforms.CatTransform([registry(c) for c in constraint.cseq], constraint.dim, constraint.lengths)

    @registry.register(constraints.stack)
    def to_stack(constraint):
        return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)


_register_composed(biject_to)
_register_composed(transform_to)
