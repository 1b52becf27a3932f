"""Sizes that the program states, checked through a graph. In PyTorch: `torch/fx/experimental/graph_gradual_typechecker.py`.

    GraphTypeChecker({}, traced).type_check()     each node's `type` becomes a TensorType; what cannot fit raises TypeError

Sizes may be unknown (`Dyn`). A rule for each operator says what follows for its result; what the program states of a result is
combined with that, and the more precise of both stays. `Refine` then asks which unknown sizes must be equal, and
`unify_refinements.py` solves for them.
"""

import itertools
import math
import operator

import readtorch
from readtorch import nn
from readtorch.fx.node import map_arg
from readtorch.fx.tensor_type import Dyn, TensorType, is_consistent, is_more_precise

from .refinement_types import Equality
from .unification import Var

__all__ = [
    "GraphTypeChecker",
    "Refine",
    "broadcast_types",
    "calculate_out_dimension",
    "expand_to_tensor_dim",
    "get_greatest_upper_bound",
    "get_parameter",
    "register_algebraic_expressions_inference_rule",
    "register_inference_rule",
    "register_refinement_rule",
]

_INFERENCE_RULES = {}  # function or class of modules -> function(node) or function(node, module)
_REFINEMENT_RULES = {}  # -> function(node): a list of equalities
_RULES = {}  # -> the same as the first, for sizes that are expressions


def _registrar(rules, kind):
    def register(call_target):
        def decorate(fn):
            if call_target in rules:
                raise RuntimeError(f"{kind} already registered for {call_target}!")
            rules[call_target] = fn
            return fn

        return decorate

    return register


register_inference_rule = _registrar(_INFERENCE_RULES, "Inference rule")
register_refinement_rule = _registrar(_REFINEMENT_RULES, "Refinement rule")
register_algebraic_expressions_inference_rule = _registrar(_RULES, "Rule")


# ----------------------------------------------------------------------------------------------------- of types


def expand_to_tensor_dim(t, n):
    """A type as that of tensors with `n` dimensions. Raises TypeError if it is none of them."""
    if t == Dyn:
        return TensorType((Dyn,) * n)
    if not isinstance(t, TensorType):
        raise TypeError(f"Cannot match the type {t}")
    if len(t.dims) != n:
        raise TypeError(f"Cannot extend tensor. Tensor {t} has rank {len(t.dims)}. It should have rank {n}")
    return t


def broadcast_types(t1, t2):
    """Both types after broadcasting: of equally many sizes, none of them 1 beside another."""
    if t1 == Dyn or t2 == Dyn or isinstance(t1, Var) or isinstance(t2, Var):
        return t1, t2
    if not (isinstance(t1, TensorType) and isinstance(t2, TensorType)):
        raise TypeError(f"Cannot broadcast types {t1} and {t2}")
    rank = max(len(t1.dims), len(t2.dims))
    one, other = ([1] * (rank - len(t.dims)) + list(t.dims) for t in (t1, t2))
    for i, (x, y) in enumerate(zip(one, other)):
        if x == 1:
            one[i] = y
        elif y == 1:
            other[i] = x
    return TensorType(tuple(one)), TensorType(tuple(other))


def get_greatest_upper_bound(type1, type2):
    """The most precise type that is consistent with both. Raises TypeError if they are not consistent."""
    if type1 == Dyn or type2 == Dyn:
        return type2 if type1 == Dyn else type1
    if not is_consistent(type1, type2):
        raise TypeError(f"Inconsistent types {type1}, {type2}")
    return TensorType(tuple(a if is_more_precise(a, b) else b for a, b in zip(type1.dims, type2.dims)))


def calculate_out_dimension(d_in, module_instance, index):
    """The size of a convolution's or a pooling's result along its dimension `index`."""
    if d_in == Dyn:
        return Dyn
    if not isinstance(d_in, int) and not getattr(d_in, "is_Symbol", False):
        raise TypeError(f"{d_in} in {module_instance} must be a number or Dyn. Received {type(d_in)}")
    padding, kernel_size, stride, dilation = (
        (value, value) if isinstance(value, int) else value
        for value in (getattr(module_instance, name) for name in ("padding", "kernel_size", "stride", "dilation"))
    )
    reach = d_in + 2 * padding[index] - dilation[index] * (kernel_size[index] - 1) - 1
    return reach // stride[0] + 1  # in PyTorch, too, the first stride is that of both dimensions


# ---------------------------------------------------------------------------------------- what follows for a result


def _input(n):
    """The node that is the first argument. What is known of the number of its dimensions is noted there."""
    argument = n.args[0]
    if argument.type == Dyn and isinstance(n.type, TensorType):
        argument.type = expand_to_tensor_dim(argument.type, len(n.type.dims))
    return argument


def _of_input(rule):
    """An inference rule made of function(type of the input, module): type of the result."""

    def infer(n, *module):
        argument = _input(n)
        if isinstance(argument.type, TensorType):
            n.type = get_greatest_upper_bound(rule(argument.type, *module), n.type)
        return n.type

    return infer


@register_inference_rule(readtorch.add)
@register_inference_rule(operator.add)
def add_inference_rule(n):
    """The less precise of both types, after broadcasting, which `meta` keeps."""
    t1, t2 = n.args[0].type, n.args[1].type
    for scalar, tensor in ((t1, t2), (t2, t1)):
        if scalar is int and isinstance(tensor, TensorType):
            n.type = tensor
            return n.type
    new_t1, new_t2 = broadcast_types(t1, t2)
    n.meta["broadcast"] = new_t1 != t1 or new_t2 != t2
    if n.meta["broadcast"]:
        n.meta |= {str(n.args[0]): new_t1, str(n.args[1]): new_t2}
    if not is_consistent(new_t1, new_t2):
        raise TypeError(
            f"Cannot add arguments {n.args[0]} ({t1}) and {n.args[1]} ({t2}) in node {n}. Types should match "
        )
    n.type = new_t2 if is_more_precise(new_t1, new_t2) else new_t1
    return n.type


@register_inference_rule(getattr)
def get_attr_inference_rule(n, traced):
    if n.args[1] != "shape":
        raise TypeError("Not yet implemented")
    n.type = Dyn
    return n.type


@register_inference_rule(readtorch.transpose)
def transpose_inference_rule(n):
    t, dim1, dim2 = n.args[0].type, *n.args[1:]
    if t == Dyn:
        n.type = Dyn
        return n.type
    if not isinstance(t, TensorType) or not all(0 <= dim < len(t.dims) for dim in (dim1, dim2)):
        raise TypeError(f"Cannot transpose {dim1} and {dim2} in type {t} for node {n}")
    dims = list(t.dims)
    dims[dim1], dims[dim2] = dims[dim2], dims[dim1]
    n.type = get_greatest_upper_bound(n.type, TensorType(dims))
    return n.type


@register_inference_rule(readtorch.reshape)
def reshape_inference_rule(n):
    """The sizes that are asked for. Of those that are known on both sides, one product must divide the other."""
    t1, sizes = n.args[0].type, n.args[1]
    t2 = TensorType([Dyn if size == -1 else size for size in sizes])
    if t1 != Dyn:
        if not isinstance(t1, TensorType):
            raise TypeError(f"Cannot reshape in node {n} from {t1} to {t2}")
        known, wanted = math.prod(1 if size == Dyn else size for size in t1.dims), math.prod(sizes)
        if known % wanted and wanted % known:
            raise TypeError(f"Cannot reshape in node {n} from {t1} to {t2}")
    n.type = t2
    return n.type


@register_inference_rule(nn.BatchNorm2d)
def bn2d_inference_rule(n, module_instance):
    argument = n.args[0]
    argument.type, n.type = expand_to_tensor_dim(argument.type, 4), expand_to_tensor_dim(n.type, 4)
    channels = (argument.type.dims[1], n.type.dims[1])
    fits = all(is_consistent(size, module_instance.num_features) for size in channels)
    if not fits or not is_consistent(argument.type, n.type):
        raise _cannot_apply(module_instance, argument, n)
    n.type = get_greatest_upper_bound(argument.type, n.type)
    return n.type


@register_inference_rule(nn.Conv2d)
def conv2d_inference_rule(n, module_instance):
    argument = n.args[0]
    argument.type = expand_to_tensor_dim(argument.type, 4)
    batch, channels, height, width = argument.type.dims
    if not is_consistent(channels, module_instance.in_channels):
        raise _cannot_apply(module_instance, argument, n)
    height, width = (calculate_out_dimension(d, module_instance, i) for i, d in enumerate((height, width)))
    made = TensorType((batch, module_instance.out_channels, height, width))
    n.type = get_greatest_upper_bound(made, expand_to_tensor_dim(n.type, 4))
    return n.type


def _cannot_apply(module, argument, n):
    return TypeError(f"Cannot apply {module} with input type {argument.type} and existing type {n.type} on {n}")


@register_inference_rule(nn.ReLU)
@_of_input
def relu_inference_rule(t, module):
    return t


@register_inference_rule(nn.MaxPool2d)
@_of_input
def maxpool2d_inference_rule(t, module):
    if len(t.dims) not in (3, 4):
        raise TypeError(f"Wrong size {t} for {module}")
    *first, height, width = t.dims
    last = (calculate_out_dimension(d, module, i) for i, d in enumerate((height, width)))
    return TensorType((*first, *last))


@register_inference_rule(nn.Linear)
@_of_input
def linear_inference_rule(t, module):
    if len(t.dims) < 2:
        raise TypeError(f"Type {t} must have rank 2 or more.")
    if not is_consistent(module.in_features, t.dims[-1]):
        raise TypeError(f"Inconsistent {module.in_features} and {t.dims[-1]} in {module}")
    return TensorType((*t.dims[:-1], module.out_features))


@register_inference_rule(nn.AdaptiveAvgPool2d)
@_of_input
def adaptiveavgpool2d_inference_rule(t, module):
    if len(t.dims) not in (3, 4):
        raise TypeError(f"Tensor ranks must be 3 or 4. Got {t}")
    size = module.output_size
    height, width = (size, size) if isinstance(size, int) else size
    return TensorType((*t.dims[:-2], width if height is None else height, height if width is None else width))


@register_inference_rule(readtorch.flatten)
def flatten_inference_rule(n):
    argument = _input(n)
    start, end = (*n.args[1:], *(1, -1)[len(n.args) - 1 :])
    if isinstance(argument.type, TensorType):
        n.type = get_greatest_upper_bound(_flattened(argument.type, start, end), n.type)
    return n.type


def _flattened(t, start_dim, end_dim):
    start, end = _flattened_range(len(t.dims), abs(start_dim) if start_dim != -1 else -1, end_dim)
    if not (0 <= start < len(t.dims) and 0 <= end <= len(t.dims) and start < end):
        raise TypeError(f"Incompatible dimensions {start}, {end - 1} in type {t}")
    dims = list(t.dims)
    between = dims[start:end]
    return TensorType((*dims[:start], Dyn if Dyn in between else math.prod(between), *dims[end:]))


def _flattened_range(rank, start_dim, end_dim):
    return rank if start_dim == -1 else start_dim, rank + end_dim + 1 if end_dim < 0 else end_dim + 1


class GraphTypeChecker:
    """A checker of a GraphModule. env: not used, here as in PyTorch."""

    def __init__(self, env, traced):
        self.env, self.traced = env, traced

    def type_check(self):
        """Give every node a type. Raises TypeError at the first that cannot have one; returns True."""
        for n in self.traced.graph.nodes:
            self.type_check_node(n)
        return True

    def type_check_node(self, n):
        """Give a node its type, and return it."""
        if n.type is None:
            n.type = Dyn
        check = getattr(self, f"_{n.op}", None)
        if check is None:
            raise NotImplementedError(f"Method {n.op} not yet implemented")
        return check(n)

    def _placeholder(self, n):
        return n.type

    def _get_attr(self, n):
        t = get_parameter(self.traced, n.target)
        if isinstance(t.data, readtorch.Tensor):
            n.type = TensorType(t.data.shape)
        return n.type

    def _call_function(self, n):
        if n.target not in _INFERENCE_RULES:
            raise RuntimeError(f"No inference rule registered for target {n.target}!")
        return _INFERENCE_RULES[n.target](n, *([self.traced] if n.target is getattr else []))

    def _call_module(self, n):
        module = self.traced.get_submodule(n.target)
        if type(module) not in _INFERENCE_RULES:
            raise RuntimeError(f"No inference rule registered for class {type(module)}!")
        return _INFERENCE_RULES[type(module)](n, module)

    def _output(self, n):
        return _typed_as_returned(n)


def _typed_as_returned(n):
    n.type = map_arg(n.args[0], lambda a: a.type)
    return n.type


# ------------------------------------------------------------------------------------- which sizes must be equal


def _dims(n):
    """The sizes of a node's input and its own, as pairs; none if they are not known to be sizes."""
    types = (n.args[0].type, n.type)
    return [t.dims for t in types] if all(isinstance(t, TensorType) for t in types) else [(), ()]


def _equalities(pairs):
    return [Equality(a, b) for a, b in pairs]


@register_refinement_rule(nn.Conv2d)
@register_refinement_rule(nn.Linear)
def first_eq(n):
    return _equalities(list(zip(*_dims(n)))[:1])


@register_refinement_rule(nn.AdaptiveAvgPool2d)
@register_refinement_rule(nn.MaxPool2d)
def first_two_eq(n):
    return _equalities(list(zip(*_dims(n)))[:2])


@register_refinement_rule(nn.BatchNorm2d)
@register_refinement_rule(nn.ReLU)
def all_eq(n):
    return _equalities(zip(*_dims(n)))


@register_refinement_rule(readtorch.add)
@register_refinement_rule(operator.add)
def element_wise_eq(n):
    """A size of the result is that of the operands where these are known to be the same."""
    types = [getattr(each, "type", None) for each in (*n.args[:2], n)]
    if not all(isinstance(t, TensorType) for t in types):
        return []
    operands = broadcast_types(*types[:2])
    return [Equality(a, own) for a, b, own in zip(*(t.dims for t in operands), n.type.dims) if a == b]


@register_refinement_rule(readtorch.flatten)
def flatten_refinement_rule(n):
    """Of the sizes before and behind those that become one."""
    given, made = _dims(n)
    start, end = _flattened_range(len(made), *n.args[1:], *(1, -1)[len(n.args) - 1 :])
    return _equalities([*zip(made[:start], given[:start]), *zip(made[end:], given[end:])])


@register_algebraic_expressions_inference_rule(nn.Conv2d)
def conv_rule(n, module_instance):
    """Height and width as expressions of those of the input."""
    given, made = _dims(n)
    if made:
        n.type = TensorType((*made[:2], *(calculate_out_dimension(given[2 + i], module_instance, i) for i in (0, 1))))
    return n.type


class Refine:
    """The equalities between the sizes in a GraphModule: `constraints`."""

    def __init__(self, traced):
        self.constraints, self.traced, self.symbol_iter = [], traced, itertools.count()

    def refine(self):
        """A variable for each size that is not known, and the equalities."""
        for n in self.traced.graph.nodes:
            self.refine_node(n)
        return True

    def refine_node(self, n):
        n.type = self.replace_dyn_with_fresh_var(Dyn if n.type is None else n.type)
        rule = _REFINEMENT_RULES.get(self._called(n))
        if rule is not None:
            self.constraints += rule(n)
        return _typed_as_returned(n) if n.op == "output" else None

    def symbolic_relations(self):
        """Variables become symbols of sympy, and sizes that follow from others by arithmetic expressions of them."""
        for n in self.traced.graph.nodes:
            self.infer_symbolic_relations(n)
        return True

    def infer_symbolic_relations(self, n):
        n.type = self.convert_to_sympy_symbols(n.type)
        rule = _RULES.get(self._called(n))
        if rule is not None:
            module = [self.traced.get_submodule(n.target)] if n.op == "call_module" else []
            return rule(n, *module)
        return _typed_as_returned(n) if n.op == "output" else None

    def _called(self, n):
        """What the rules know a node by."""
        if n.op == "call_module":
            return type(self.traced.get_submodule(n.target))
        return n.target if n.op == "call_function" else None

    def replace_dyn_with_fresh_var(self, typ):
        return _sizes_replaced(typ, lambda t: Var(next(self.symbol_iter)) if t == Dyn else t)

    def convert_to_sympy_symbols(self, typ):
        import sympy  # no part of readtorch: only who asks for expressions needs it

        return _sizes_replaced(typ, lambda t: sympy.symbols(str(t)) if isinstance(t, Var) else t)


def _sizes_replaced(typ, replace):
    if isinstance(typ, TensorType):
        return TensorType(tuple(_sizes_replaced(size, replace) for size in typ.dims))
    if isinstance(typ, (list, tuple)):
        return type(typ)(_sizes_replaced(each, replace) for each in typ)
    return replace(typ)


def get_parameter(traced, target):
    """The parameter of a module by its full name. Raises AttributeError if it has none."""
    module_path, _, name = target.rpartition(".")
    module = traced.get_submodule(module_path)
    if not hasattr(module, name):
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    return getattr(module, name)
