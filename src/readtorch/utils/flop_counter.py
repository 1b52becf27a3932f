"""How many operations on floating-point numbers a program's products and convolutions take, module by module.

Kernels of Triton, `cond` and nested tensors have no formulas here.

In PyTorch: `torch/utils/flop_counter.py`. Explained in the chapter "The profiler".
"""

import warnings
from collections import defaultdict
from functools import wraps
from math import prod

from readtorch._ops import OpOverloadPacket, ops
from readtorch.c10.tensor_impl import TensorImpl

from ._python_dispatch import TorchDispatchMode
from ._pytree import tree_map
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

aten = ops.aten

flop_registry = {}  # OpOverloadPacket -> formula(*arguments, out_val=results, **named arguments)


def get_shape(value):
    return value.shape if isinstance(value, TensorImpl) else value


def shape_wrapper(formula):
    """`formula`, which is given shapes in the place of tensors, and that of the results as `out_shape`."""

    @wraps(formula)
    def of_tensors(*args, out_val=None, **kwargs):
        args, kwargs, out_shape = tree_map(get_shape, (args, kwargs, out_val))
        return formula(*args, out_shape=out_shape, **kwargs)

    return of_tensors


def register_flop_formula(targets, get_raw=False):
    """Decorator: the function says how many operations these operators (`torch.ops.mylib.foo`, or several) take.

    It is given the operator's arguments with shapes for tensors, and `out_shape`; with `get_raw` the arguments themselves, and `out_val`.
    Raises ValueError for what is no operator, RuntimeError for one that has a formula.
    """

    def register(formula):
        formula = formula if get_raw else shape_wrapper(formula)
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            if not isinstance(target, OpOverloadPacket):
                raise ValueError(
                    "register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. torch.ops.mylib.foo), "
                    f"JitFunction, or HigherOrderOperator, got {target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = formula
        return formula

    return register


# ------------------------------------------------------------------------------------------------------------ formulas


@register_flop_formula(aten.mm)
def mm_flop(a_shape, b_shape, *args, out_shape=None, **kwargs):
    """A multiplication and an addition for each term: (m, k) times (k, n) has m n k terms."""
    m, k = a_shape
    k2, n = b_shape
    if k != k2:
        raise AssertionError(f"matmul: inner dimensions must match (k == k2), got {k} and {k2}")
    return m * n * 2 * k


@register_flop_formula(aten.addmm)
def addmm_flop(self_shape, a_shape, b_shape, out_shape=None, **kwargs):
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape, b_shape, out_shape=None, **kwargs):
    b, m, k = a_shape
    b2, k2, n = b_shape
    if b != b2:
        raise AssertionError(f"bmm: batch dimensions must match (b == b2), got {b} and {b2}")
    if k != k2:
        raise AssertionError(f"bmm: inner dimensions must match (k == k2), got {k} and {k2}")
    return b * m * n * 2 * k


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(self_shape, a_shape, b_shape, out_shape=None, **kwargs):
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape, w_shape, out_shape, transposed=False):
    """The filter is laid on each place of the output; of the input, if the convolution is transposed."""
    places = (x_shape if transposed else out_shape)[2:]
    c_out, c_in, *filter_size = w_shape
    return prod(places) * prod(filter_size) * x_shape[0] * c_out * c_in * 2


@register_flop_formula(aten.convolution)
def conv_flop(x_shape, w_shape, _bias, _stride, _padding, _dilation, transposed, *args, out_shape=None, **kwargs):
    return conv_flop_count(x_shape, w_shape, out_shape, transposed=transposed)


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(
    grad_out_shape, x_shape, w_shape, _bias, _stride, _padding, _dilation, transposed, _output_padding, _groups, output_mask, out_shape
):  # fmt: skip
    """The gradient of the input is the other kind of convolution, of the gradient with the weight. That of the weight is one of the
    input with the gradient, in which examples and channels change places."""

    def swapped(shape):
        return [shape[1], shape[0], *shape[2:]]

    count = 0
    if output_mask[0]:
        count += conv_flop_count(grad_out_shape, w_shape, out_shape[0], not transposed)
    if output_mask[1]:
        sides = swapped(x_shape), swapped(grad_out_shape)
        x, weight = reversed(sides) if transposed else sides
        count += conv_flop_count(x, weight, swapped(out_shape[1]))
    return count


def sdpa_flop_count(query_shape, key_shape, value_shape):
    """Of attention: queries times keys, and scores times values. Fewer heads of keys serve several heads of queries each."""
    b, h_q, s_q, d_q = query_shape
    b2, h_kv, s_k, d2 = key_shape
    b3, h3, _, d_v = value_shape
    if not (b == b2 == b3 and h_kv == h3 and d_q == d2 and s_k == value_shape[2]):
        raise AssertionError(
            f"sdpa_flop_count: query/key/value shapes are incompatible: q={query_shape}, k={key_shape}, v={value_shape}"
        )
    if h_q < h_kv or h_q % h_kv != 0:
        raise AssertionError(f"sdpa_flop_count: query heads ({h_q}) must be a multiple of key/value heads ({h_kv})")
    scores = bmm_flop((b * h_q, s_q, d_q), (b * h_q, d_q, s_k))
    return scores + bmm_flop((b * h_q, s_q, s_k), (b * h_q, s_k, d_v))


# ------------------------------------------------------------------------------------------------------------- the table

_SUFFIXES = ["", "K", "M", "B", "T"]


def get_suffix_str(number):
    """The unit in which a number has two to four digits before the point."""
    return _SUFFIXES[max(0, min(len(_SUFFIXES) - 1, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number, suffix):
    return f"{number / 1000 ** _SUFFIXES.index(suffix):.3f}{suffix}" if suffix else f"{number:g}"


def convert_to_percent_str(num, denom):
    return "0%" if denom == 0 else f"{num / denom:.2%}"


def table_text(header, rows):
    """Columns of the widest text each, the first at the left, the others at the right."""
    columns = list(zip(header, *rows))
    widths = [max(len(title) + 2, *map(len, cells)) for title, *cells in columns]
    lines = [header, ["-" * width for width in widths], *rows]
    padded = [
        [cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(line, widths))] for line in lines
    ]
    return "\n".join(["  ".join(line).rstrip() for line in padded])


# ---------------------------------------------------------------------------------------------------------------- modes


class FlopCounterMode:
    """`with FlopCounterMode() as counter:` counts the operations of products, convolutions and attention inside.

    depth: of modules in the table; None: all. display: print the table at the end. custom_mapping: formulas for more operators, which
    are given shapes, `{torch.ops.mylib.foo: formula}`.
    """

    def __init__(self, mods=None, depth=2, display=True, custom_mapping=None):
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.flop_counts = defaultdict(lambda: defaultdict(int))  # module -> operator -> count
        self.depth = depth
        self.display = display
        self.mode = None
        more = {k: f if getattr(f, "_get_raw", False) else shape_wrapper(f) for k, f in (custom_mapping or {}).items()}
        self.flop_registry = flop_registry | more
        self.mod_tracker = ModuleTracker()

    def get_total_flops(self):
        """All operations."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self):
        """{name of a module: {operator: count}}; under "Global" everything."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth=None):
        """A line for each module and each of its operators: the count, and its share of all."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        names = [name for name in sorted(self.flop_counts) if name != "Global"]
        names = [name for name in names if depth is None or name.count(".") < depth]
        rows = [row for name in names for row in self._rows(name, name.count("."))]
        one_holds_all = any(sum(self.flop_counts[name].values()) >= total for name in names)
        if "Global" in self.flop_counts and not one_holds_all:
            rows = self._rows("Global", 0) + [[" " + name, *rest] for name, *rest in rows]
        return table_text(["Module", "FLOP", "% Total"], rows or [["Global", "0", "0%"]])

    def _rows(self, name, indent):
        total = self.get_total_flops()
        suffix = get_suffix_str(total)
        counts = self.flop_counts[name]
        lines = [(name, sum(counts.values())), *[(f" - {operator}", count) for operator, count in counts.items()]]
        return [
            [" " * indent + label, convert_num_with_suffix(n, suffix), convert_to_percent_str(n, total)]
            for label, n in lines
        ]

    def __enter__(self):
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self.mode = _FlopCounterMode(self)
        self.mode.__enter__()
        return self

    def __exit__(self, *exception):
        if self.mode is None:
            raise AssertionError("Internal error: FlopCounter.__exit__ called but mode is None")
        result = self.mode.__exit__(*exception)
        self.mode = None
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))
        return result

    def _count_flops(self, packet, out, args, kwargs):
        formula = self.flop_registry.get(packet)
        if formula is not None:
            count = formula(*args, **kwargs, out_val=out)
            for module in set(self.mod_tracker.parents):
                self.flop_counts[module][packet] += count
        return out


class _FlopCounterMode(TorchDispatchMode):
    """Sees every operator below autograd; takes compositions without a formula apart."""

    def __init__(self, counter):
        super().__init__()
        self.counter = counter

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func._overloadpacket not in self.counter.flop_registry:
            with self:
                result = func.decompose(*args, **kwargs)
                if result is not NotImplemented:
                    return result
        return self.counter._count_flops(func._overloadpacket, func(*args, **kwargs), args, kwargs)
