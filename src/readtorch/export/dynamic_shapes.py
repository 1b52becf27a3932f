"""Which sizes of the inputs may change. In PyTorch: `torch/export/dynamic_shapes.py`.

A specification is checked here; `_export/non_strict_utils.py` makes symbols of it, and asks whether the trace works for all such sizes.
"""

import dataclasses
import inspect
import logging
from enum import Enum, auto

from readtorch._dynamo.exc import UserError, UserErrorType
from readtorch._tensor import Tensor
from readtorch.nn import Module
from readtorch.utils._pytree import (
    BUILTIN_TYPES,
    SUPPORTED_NODES,
    MappingKey,
    SequenceKey,
    _get_node_type,
    keystr,
    tree_map,
    tree_map_with_path,
    tree_structure,
)

from .exported_program import ExportedProgram

__all__ = ["Constraint", "Dim", "dims", "AdditionalInputs", "ShapesCollection"]

log = logging.getLogger(__name__)

INFINITY = float("inf")


class _DimHintType(Enum):
    AUTO = auto()
    STATIC = auto()
    DYNAMIC = auto()


@dataclasses.dataclass
class _DimHint:
    """What is known of a size. `Dim.DYNAMIC(min=2, max=8)` makes one with bounds."""

    type: _DimHintType
    min: int | None = None
    max: int | None = None
    _factory: bool | None = True

    @staticmethod
    def AUTO():
        return _DimHint(_DimHintType.AUTO)

    @staticmethod
    def DYNAMIC():
        return _DimHint(_DimHintType.DYNAMIC)

    @staticmethod
    def STATIC():
        return _DimHint(_DimHintType.STATIC)

    def __call__(self, min=None, max=None):
        if not self._factory:
            raise TypeError(f"'{type(self)}' object is not callable")
        for name, bound in (("min", min), ("max", max)):
            if bound is not None and bound < 0:
                raise AssertionError(f"{name} must be non-negative, got {bound}")
        if min is not None and max is not None and min > max:
            raise AssertionError(f"min must be <= max, got min={min}, max={max}")
        return _DimHint(self.type, min=min, max=max, _factory=False)

    def __repr__(self):
        bounds = [f"{name}={getattr(self, name)}" for name in ("min", "max") if getattr(self, name) is not None]
        return f"DimHint({', '.join([self.type.name, *bounds])})"


class Dim:
    """A size that may change, with a name and bounds: `Dim("batch", min=2)`. Two of one name are one size; `2 * batch + 1` is another
    that follows from it.

    Dim.AUTO, Dim.DYNAMIC, Dim.STATIC: a size without a name, of which the trace decides, that must be able to change, that is fixed.
    Raises AssertionError for a name that is none, and for bounds that leave nothing; NotImplementedError for other arithmetic.
    """

    AUTO = _DimHint.AUTO()
    DYNAMIC = _DimHint.DYNAMIC()
    STATIC = _DimHint.STATIC()

    def __init__(self, name, *, min=None, max=None):
        self.min = 0 if min is None else min
        self.max = INFINITY if max is None else max
        if not self.max > self.min:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__ = name

    def __add__(self, other):
        if type(other) is not int:
            raise self._refused(f"Attempted to add {other} to {self.__name__}, where an integer was expected. ")
        return _DerivedDim(self, 1, other)

    def __radd__(self, other):
        return self + other

    def __sub__(self, other):
        if type(other) is not int:
            raise self._refused(f"Attempted to subtract {other} from {self.__name__}, where an integer was expected. ")
        return _DerivedDim(self, 1, -other)

    def __rsub__(self, other):
        raise self._refused(f"Attempted to negate {self.__name__}. ")

    def __mul__(self, other):
        if type(other) is not int or other <= 0:
            raise self._refused(
                f"Attempted to multiply {other} with {self.__name__}, where a positive integer was expected. "
            )
        return _DerivedDim(self, other, 0)

    def __rmul__(self, other):
        return self * other

    @staticmethod
    def _refused(message):
        return NotImplementedError(
            f"{message}(Only increasing linear operations with integer coefficients are supported.)"
        )

    @staticmethod
    def _readable(name, min_, max_):
        bounds = {"min": None if min_ == 2 else min_, "max": None if max_ == INFINITY else max_}
        return f"Dim('{name}'{''.join(f', {k}={v}' for k, v in bounds.items() if v is not None)})"

    def __repr__(self):
        return Dim._readable(self.__name__, self.min, self.max)


class _DerivedDim(Dim):
    """factor * root + offset"""

    def __init__(self, root, factor, offset):
        self.root, self.factor, self.offset = root, factor, offset
        if isinstance(root, _DerivedDim):
            self.root, self.factor, self.offset = root.root, root.factor * factor, root.offset * factor + offset
        product = self.root.__name__ if self.factor == 1 else f"{self.factor}*{self.root.__name__}"
        sign = "+" if self.offset > 0 else "-"
        self.__name__ = f"{product} {sign} {abs(self.offset)}" if self.offset else product

    @property
    def min(self):
        value = self.factor * self.root.min + self.offset
        if value < 0:
            raise AssertionError(
                f"Expected derived min value of {self.__name__} to be >= 0. "
                f"Please specify an appropriate min value for {self.root.__name__} (currently {self.root.min})."
            )
        return value

    @property
    def max(self):
        return self.factor * self.root.max + self.offset


class Constraint:
    """What a trace demands of a size. In PyTorch: made by traces with symbolic sizes, of which readtorch has none."""


def dims(*names, min=None, max=None):
    """A Dim for each name, with the same bounds."""
    return tuple(Dim(name, min=min, max=max) for name in names)


# ------------------------------------------------------------------------------------------- arguments beside their sizes


def _combine_args(f, args, kwargs):
    """{name of a parameter: argument}. Raises TypeError for arguments that do not fit."""
    if isinstance(f, ExportedProgram):
        f = f.module()
    signature = inspect.signature(f.forward if isinstance(f, Module) else f)
    return signature.bind(*args, **(kwargs or {})).arguments


def _is_leaf(t):
    return _get_node_type(t) not in BUILTIN_TYPES


def _tree_map_with_path(func, tree, *dynamic_shapes, tree_name=None):
    """func(path, leaf, sizes of the leaf) for each leaf of `tree`. An object of a class of the user has the sizes of its flat form.

    Raises UserError where the two are not nested alike. tree_name: what the message calls the tree.
    """

    def mapped(path, t, *specs):
        kind = _get_node_type(t)
        if kind in SUPPORTED_NODES:
            return tree_map_with_path(mapped, SUPPORTED_NODES[kind].flatten_fn(t)[0], *specs, is_leaf=_is_leaf)
        return func(path, t, *specs)

    try:
        return tree_map_with_path(mapped, tree, *dynamic_shapes, is_leaf=_is_leaf)
    except ValueError as error:
        if "mismatch" in error.args[0]:
            for other in dynamic_shapes:
                structures = tree_structure(tree, is_leaf=_is_leaf), tree_structure(other, is_leaf=_is_leaf)
                _raise_at_mismatch(*structures, (), tree_name)
        raise


def _invalid(message, case_name="dynamic_shapes_validation"):
    return UserError(UserErrorType.INVALID_INPUT, message, case_name=case_name)


def _raise_at_mismatch(spec, other, path, name):
    """Find where two specs differ first."""
    where = keystr(path)
    begin = f"Detected mismatch between the structure of `{name}` and `dynamic_shapes`: `{name}{where}`"
    if spec.is_leaf():
        return
    if other.is_leaf():
        raise _invalid(f"{begin} is a {spec.type}, but `dynamic_shapes{where}` is not")
    if spec.type != other.type:
        raise _invalid(f"{begin} is a {spec.type}, but `dynamic_shapes{where}` is a {other.type}")
    if spec.num_children != other.num_children:
        raise _invalid(
            f"{begin} has {spec.num_children} elements, but `dynamic_shapes{where}` has {other.num_children} elements"
        )
    others = other.children()
    if spec.type is dict:
        if set(spec.context) != set(other.context):
            raise _invalid(f"{begin} has keys {spec.context}, but `dynamic_shapes{where}` has keys {other.context}")
        by_key = dict(zip(other.context, others))
        others = [by_key[key] for key in spec.context]
    for i, (child, other_child) in enumerate(zip(spec.children(), others)):
        key = MappingKey(spec.context[i]) if spec.type is dict else SequenceKey(i)
        _raise_at_mismatch(child, other_child, (*path, key), name)


# --------------------------------------------------------------------------------------------------------- the checks


def _check_dynamic_shapes(combined_args, dynamic_shapes):
    """That a specification fits the arguments. Raises UserError."""
    if dynamic_shapes is None or len(dynamic_shapes) == 0:
        return
    if not isinstance(dynamic_shapes, dict | tuple | list):
        raise AssertionError(f"expected dynamic_shapes to be dict, tuple, or list, got {type(dynamic_shapes)}")
    if isinstance(dynamic_shapes, dict):
        _check_names(combined_args, dynamic_shapes)
    else:
        combined_args = type(dynamic_shapes)(combined_args.values())
    bounds = {}

    def check_shape(path, t, shape):
        if isinstance(t, Tensor):
            _check_sizes(path, t, shape, bounds)
        elif type(t) is int and isinstance(shape, Dim):
            raise ValueError(
                "Unable to specify input integers as dynamic through named Dims. Please use Dim.AUTO/DYNAMIC instead."
            )
        elif shape is not None and not (type(t) is int and isinstance(shape, int | _DimHint)):
            where = keystr(path)
            raise _invalid(
                f"Cannot associate shape {shape} specified at `dynamic_shapes{where}` "
                f"to non-tensor type {type(t)} at `inputs{where}` (expected None)"
            )

    _tree_map_with_path(check_shape, combined_args, dynamic_shapes, tree_name="inputs")


def _check_names(combined_args, dynamic_shapes):
    got, expected = list(dynamic_shapes), list(combined_args)
    if sorted(got) == sorted(expected):
        return
    message = (
        f"When `dynamic_shapes` is specified as a dict, its top-level keys "
        f"must be the arg names {expected} of `inputs`, but here they are {got}. "
    )
    if len(expected) == 1 and expected[0] not in got and isinstance(combined_args[expected[0]], dict):
        message += (
            "Since here `inputs` is a list/tuple enclosing a single dict, "
            "maybe you just forgot to enclose `dynamic_shapes` in a list/tuple?"
        )
    else:
        message += (
            "Alternatively, you could also ignore arg names entirely "
            "and specify `dynamic_shapes` as a list/tuple matching `inputs`."
        )
    raise _invalid(message)


def _check_sizes(path, tensor, shape, bounds):
    """The specification of one tensor. bounds: {name: (min, max)} of the Dims before."""
    where = f"specified at `dynamic_shapes{keystr(path)}` "
    kinds = "(expected None, an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC, "
    if isinstance(shape, dict):
        for i, dim in shape.items():
            message = f"Unexpected dimension mapped to index {i} in input tensor shape {shape} {where}{kinds} "
            _check_size(dim, message, bounds)
    elif isinstance(shape, tuple | list):
        if len(shape) != len(tensor.shape):
            raise _invalid(
                f"Expected dynamic shape spec {shape} {where}to have the same length as the actual tensor shape {tensor.shape} "
                f"(expected {len(tensor.shape)}, but got {len(shape)} instead)"
            )
        for i, dim in enumerate(shape):
            _check_size(dim, f"Unexpected dimension #{i} in input tensor shape {shape} {where}{kinds}", bounds)
    elif shape is not None:
        raise _invalid(
            f"Unexpected input tensor shape {shape} {where}"
            "(expected either a list/tuple of dimensions, or a dict mapping indices to dimensions, "
            "where each dimension is an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC)"
        )


def _check_size(dim, message, bounds):
    if isinstance(dim, Dim):
        before = bounds.setdefault(dim.__name__, (dim.min, dim.max))
        if before != (dim.min, dim.max):
            raise _invalid(
                f"Found different definitions {Dim._readable(dim.__name__, *before)} and {dim!r} "
                f"for the same symbolic dimension {dim}!",
                case_name=None,
            )
    elif dim is None:
        log.warning("Using None as a dynamic shape dimension is deprecated. Please use Dim.STATIC instead")
    elif not isinstance(dim, int | _DimHint):
        raise _invalid(f"{message}but got {dim!r} instead)")


# ------------------------------------------------------------------------------------------ specifications, made


class ShapesCollection:
    """Sizes by tensor, not by place: `shapes[x] = {0: Dim.DYNAMIC}` for a tensor of the example inputs, however deep it is nested."""

    def __init__(self):
        self._shapes = {}

    def __setitem__(self, t, shape):
        if not isinstance(t, Tensor):
            raise AssertionError(f"Cannot assign shape to non-tensor or non-_IntWrapper type {type(t)}")
        known = self._shapes.setdefault(id(t), shape)
        if shape != known:
            raise AssertionError(f"Shapes assigned to input do not match: expected {known}, got {shape}")

    def __getitem__(self, t):
        return self._shapes.setdefault(id(t), {})

    def __len__(self):
        return len(self._shapes)

    def dynamic_shapes(self, m, args, kwargs=None):
        """The specification for these inputs of a module. Raises ValueError if a tensor is not among them."""
        found = set()

        def find_shape(path, t):
            if id(t) not in self._shapes:
                return None
            found.add(id(t))
            return self._shapes[id(t)]

        specification = _tree_map_with_path(find_shape, _combine_args(m, args, kwargs))
        if found != set(self._shapes):
            raise ValueError(
                "Some tensors that were assigned shapes were not found in args. "
                "Maybe such tensors were copied when passing them as args? "
                "Maybe such tensors are contained in classes that were not registered with pytree?"
            )
        return specification


class AdditionalInputs:
    """Sizes by example: those that differ between the inputs that were added may change, the others are fixed."""

    def __init__(self):
        self._examples = []

    def add(self, args, kwargs=None):
        """Inputs with which the program is to run, too."""
        if type(args) is not tuple:
            raise AssertionError(f"Representative args {args} must be a tuple")
        if kwargs is not None and type(kwargs) is not dict:
            raise AssertionError(f"Representative kwargs {kwargs} must be None or a dict")
        self._examples.append((args, kwargs))

    def dynamic_shapes(self, m, args, kwargs=None):
        """The specification for these inputs and those that were added."""
        first, *others = [
            _tree_map_with_path(
                lambda path, t: tuple(t.shape) if isinstance(t, Tensor) else t, _combine_args(m, *example)
            )
            for example in [(args, kwargs), *self._examples]
        ]
        return tree_map(_mark_dynamism, first, *others, is_leaf=lambda i: type(i) is int)

    def verify(self, ep):
        """That a program takes the inputs that were added. Raises what its module raises for wrong inputs."""
        from ._unlift import _check_input_constraints_for_module

        module = ep.module()
        for args, kwargs in self._examples:
            _check_input_constraints_for_module(module, args, kwargs or {})


def _mark_dynamism(v, *others):
    if not all(type(v) is type(other) for other in others):
        raise ValueError(
            f"The following inputs were found to have differing types, so they cannot be marked as dynamic: {(v, *others)}."
        )
    if all(other == v for other in others):
        return None
    if type(v) is int:
        return Dim.DYNAMIC
    raise ValueError(
        f"The following inputs were found to have differing values, but they cannot be marked as dynamic: {(v, *others)}."
    )
