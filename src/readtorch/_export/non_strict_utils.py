"""Inputs of an export with sizes that may change, and what the trace has found out of them.

    make_fake_inputs                       a symbol for each size that `dynamic_shapes` leaves open
    produce_guards_and_solve_constraints   whether the trace works for all that was asked for, or what it works for
    make_constraints                       the ranges of the symbols

In PyTorch: `torch/_export/non_strict_utils.py`; the search for violations is `ShapeEnv.produce_guards` and `DimConstraints` in
`torch/fx/experimental/symbolic_shapes.py`.
"""

import inspect
from typing import Any, NamedTuple

from readtorch._dynamo.exc import UserError, UserErrorType
from readtorch._tensor import Tensor
from readtorch.c10.sym_int import SymInt
from readtorch.export.dynamic_shapes import (
    INFINITY,
    Dim,
    _combine_args,
    _DerivedDim,
    _DimHint,
    _DimHintType,
    _tree_map_with_path,
)
from readtorch.fx.experimental.symbolic_shapes import ConstraintViolationError, DimDynamic, StatelessSymbolicContext
from readtorch.utils._pytree import keystr, tree_map_with_path
from readtorch.utils._sympy.functions import Relation, expression, symbol
from readtorch.utils._sympy.printers import python_code
from readtorch.utils._sympy.value_ranges import ValueRanges


class OpenSize(NamedTuple):
    """A size, or an int, that may change. spec: its Dim or hint; expr: its symbol."""

    source: str
    spec: Any
    expr: Any
    hint: int

    @property
    def is_named(self):
        return isinstance(self.spec, Dim)

    @property
    def must_change(self):
        return self.is_named or self.spec.type is _DimHintType.DYNAMIC

    @property
    def name(self):
        return self.spec.__name__ if self.is_named else self.source

    @property
    def has_no_symbol(self):
        """Whether it is fixed because the example's size is 0 or 1, and the specification says Dim.DYNAMIC."""
        return not self.is_named and self.must_change and self.expr.number in (0, 1)


# ------------------------------------------------------------------------------------------------------- the inputs


def make_fake_inputs(mod, args, kwargs, dynamic_shapes, fake_mode, fakify):
    """(fake args, fake kwargs, [OpenSize]). fakify(t): what becomes of an input whose sizes are all fixed."""
    specs, opened = _specs_by_source(mod, args, kwargs, dynamic_shapes), []

    def fake(path, t):
        source = _source_of(mod, path)
        spec = specs.get(source)
        if isinstance(t, Tensor) and spec:
            return _fake_tensor(fake_mode, t, source, spec, opened)
        if type(t) is int and _is_open(spec):
            return _fake_int(fake_mode.shape_env, t, source, spec, opened)
        return fakify(t)

    fake_args, fake_kwargs = tree_map_with_path(fake, (args, kwargs))
    _relate_named_dims(fake_mode.shape_env, opened)
    return fake_args, fake_kwargs, opened


def _source_of(mod, path):
    """How guards name an input, a leaf of (args, kwargs): L['x']['a'][0]."""
    if path[0].idx == 1:
        return f"L{keystr(path[1:])}"
    position, names = path[1].idx, list(inspect.signature(mod.forward).parameters.values())
    for i, parameter in enumerate(names):
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            return f"L['{parameter.name}'][{position - i}]{keystr(path[2:])}"
        if i == position:
            return f"L['{parameter.name}']{keystr(path[2:])}"


def _specs_by_source(mod, args, kwargs, dynamic_shapes):
    """{source of an input: its specification, of a tensor {dimension: specification}}"""
    if not dynamic_shapes:
        return {}
    combined, found = _combine_args(mod, args, kwargs), {}
    if not isinstance(dynamic_shapes, dict):
        dynamic_shapes = dict(zip(combined, dynamic_shapes))

    def note(path, t, spec):
        if isinstance(t, Tensor) and isinstance(spec, (tuple, list)):
            spec = dict(enumerate(spec))
        found[f"L{keystr(path)}"] = spec

    _tree_map_with_path(note, combined, {name: dynamic_shapes[name] for name in combined})
    return found


def _is_open(spec):
    return isinstance(spec, Dim) or isinstance(spec, _DimHint) and spec.type is not _DimHintType.STATIC


def _fake_tensor(fake_mode, t, source, spec, opened):
    """A FakeTensor with a symbol for each size that is left open. Raises ConstraintViolationError for a size out of its range."""
    kinds, ranges = [DimDynamic.STATIC] * t.dim(), [None] * t.dim()
    for dim, wanted in spec.items():
        dim, where = dim % t.dim(), f"{source}.size()[{dim % t.dim()}]"
        if type(wanted) is int and wanted != t.shape[dim]:
            raise ConstraintViolationError(
                f"Static shape constraint of {wanted} does not match input size of {t.shape[dim]}, for {where}"
            )
        if _is_open(wanted):
            low, high = wanted.min or 0, INFINITY if wanted.max is None else wanted.max
            if t.shape[dim] > 1 and not low <= t.shape[dim] <= high:
                shown = ValueRanges(max(low, 2), high)
                raise ConstraintViolationError(f"{t.shape[dim]} not in range {str(shown).removeprefix('VR')}")
            kinds[dim], ranges[dim] = DimDynamic.DYNAMIC, (low, high)
    if DimDynamic.DYNAMIC not in kinds:
        return fake_mode.from_tensor(t)
    context = StatelessSymbolicContext(kinds, ranges)
    made = fake_mode.from_tensor(t, static_shapes=False, source=source, symbolic_context=context)
    for dim, wanted in sorted((dim % t.dim(), wanted) for dim, wanted in spec.items() if _is_open(wanted)):
        size = made.shape[dim]
        expr = size.node.expr if isinstance(size, SymInt) else expression(size)
        opened.append(OpenSize(f"{source}.size()[{dim}]", wanted, expr, t.shape[dim]))
    return made


def _fake_int(env, n, source, spec, opened):
    expr = env.create_symbol(n, source, DimDynamic.DYNAMIC, positive=None)
    opened.append(OpenSize(source, spec, expr, n))
    return env.create_symintnode(expr, hint=n)


def _relate_named_dims(env, opened):
    """Sizes with one name are equal, and `2 * batch + 1` is what it says."""
    roots = {}
    for size in opened:
        if size.is_named and not isinstance(size.spec, _DerivedDim):
            root = roots.setdefault(size.name, size)
            if root is not size:
                _require_equal(env, root, size, root.expr)
    for size in opened:
        if isinstance(size.spec, _DerivedDim):
            root = roots.get(size.spec.root.__name__)
            if root is None:
                raise NotImplementedError(
                    f"{size.name} follows from {size.spec.root.__name__}, which no input has as its size: give it to one"
                )
            _require_equal(env, root, size, root.expr * size.spec.factor + size.spec.offset)


def _require_equal(env, root, size, expr):
    value = env.bound(env.replace(expr))
    if value != size.hint:
        shown = python_code(expr, env.names_of_symbols())
        raise UserError(
            UserErrorType.CONSTRAINT_VIOLATION, f"{size.source} = {size.hint} is not equal to {shown} = {value}"
        )
    env.evaluate(Relation("==", expr, size.expr))


# ---------------------------------------------------------------------------------------- what the trace has found out


class Violations:
    """What was asked for and does not hold: messages, and specifications that would."""

    def __init__(self):
        self.names, self.messages, self.fixes = [], [], []

    def add(self, size, message, fix=None):
        if size.name not in self.names:
            self.names.append(size.name)
        self.messages.append(f"\n  - {message}")
        if fix is not None and size.is_named:
            self.fixes.append(f"\n  {fix}")

    def check(self):
        if not self.messages:
            return
        text = f'Constraints violated ({", ".join(self.names)})! For more information, run with TORCH_LOGS="+dynamic".'
        fixes = "\nSuggested fixes:" + "".join(self.fixes) if self.fixes else ""
        raise UserError(UserErrorType.CONSTRAINT_VIOLATION, text + "".join(self.messages) + fixes)


def produce_guards_and_solve_constraints(env, opened):
    """Raises UserError, with specifications that would do, unless the trace works for all sizes that were asked for."""
    violations, roots = Violations(), {}
    for size in opened:
        if size.must_change and not size.has_no_symbol and not isinstance(size.spec, _DerivedDim):
            _check_relation(env, size, roots, violations)
    for size in filter(lambda size: size.is_named, roots.values()):
        _check_guards(env, size, violations)
    violations.check()


def _check_relation(env, size, roots, violations):
    """That a size is no number, and does not follow from another one with another name."""
    expr = env.replace(size.expr)
    if expr.number is not None:
        violations.add(
            size,
            f"You marked {size.name} as dynamic but your code specialized it to be a constant ({expr.number}). If you're using "
            "mark_dynamic, either remove it or use maybe_mark_dynamic. If you're using Dim.DYNAMIC, replace it with either "
            "Dim.STATIC or Dim.AUTO.",
            f"{size.name} = {expr.number}",
        )
        return
    root = roots.setdefault(next(iter(sorted(expr.symbols()))), size)
    if root.name == size.name or not (root.is_named and size.is_named):
        return
    difference = expr - env.replace(root.expr)
    if difference.number == 0:
        values = f"{size.name} = {size.source} and {root.name} = {root.source}"
        violations.add(size, f"The values of {values} must always be equal.", f"{size.name} = {root.name}")
    else:
        relation = f"{size.name} = {expr.replace({root.expr.symbol: symbol(root.name)})}"
        message = f"The values of {size.name} = {size.source} must always be related to the values of {root.name} = {root.source} by"
        violations.add(size, f"{message} {relation}.", relation)


def _check_guards(env, size, violations):
    """That no guard on this size alone leaves out a value of its range."""
    own, low, high = size.expr.symbol, size.spec.min or 0, INFINITY if size.spec.max is None else size.spec.max
    least, most = env.var_to_range[own]
    asked = f"{low} <= " * (low > 2) + size.name + f" <= {high}" * (high < INFINITY)
    asked = f" {asked}" if asked != size.name else ""
    known = f"Not all values of {size.name} = {size.source} in the specified range{asked} satisfy the generated guard"
    for guard in env.guards:
        relation = env.replace(guard.expr)
        if relation.symbols() == {own} and relation.known({own: (least, most)}) is None:
            violations.add(size, f"{known} {python_code(guard.expr, env.names_of_symbols())}.")
    if least > max(low, 2) or most < high:
        shown = "IntInfinity()" if most == INFINITY else most
        bounds = ", ".join([f"min={least}"] * (least > 2) + [f"max={most}"] * (most != INFINITY))
        message = f"{known} {least} <= {size.source} and {size.source} <= {shown}"
        violations.add(size, message, f"{size.name} = Dim('{size.name}', {bounds})")


def make_constraints(env, opened):
    """{expression of a size that may change: its ValueRanges}. Raises ValueError for a size of 0 or 1 that is to change."""
    conflicts = [_conflict(size) for size in opened if size.has_no_symbol]
    if conflicts:
        text = "Found the following conflicts between user-specified ranges and inferred ranges from model tracing:\n"
        raise ValueError(text + "\n".join(conflicts))
    found = {}
    for size in opened:
        expr = env.replace(size.expr)
        if expr.number is not None:
            continue
        if size.is_named:
            found.setdefault(expr, ValueRanges(size.spec.min, size.spec.max))
        elif expr.symbol is not None:
            found.setdefault(expr, ValueRanges(*env.var_to_range[expr.symbol]))
    return found


def _conflict(size):
    place = f"inputs{size.source.removeprefix('L')}".replace(".size()[", ".shape[")
    return (
        f"- Received user-specified dim hint Dim.DYNAMIC(min={size.spec.min}, max={size.spec.max}), "
        f"but export 0/1 specialized due to hint of {size.hint} for dimension {place}."
    )
