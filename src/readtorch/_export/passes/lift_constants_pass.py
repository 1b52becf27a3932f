"""Tensors that a graph holds become inputs of it. In PyTorch: `torch/_export/passes/lift_constants_pass.py`.

A program may use tensors that are neither parameters nor buffers: an attribute `self.scale = torch.ones(3)`, or `torch.tensor([1.0, 2.0])` in
its `forward`. A trace holds them as attributes `_tensor_constant0`. Here each becomes a placeholder before the user's inputs, of the kind
CONSTANT_TENSOR: an attribute keeps its name, the others are called `lifted_tensor_0` and so on, in the module where they are used.
"""

import itertools

from readtorch._ops import ops
from readtorch._subclasses.fake_tensor import unset_fake_temporarily
from readtorch._tensor import Tensor
from readtorch.export.graph_signature import InputKind, InputSpec, TensorArgument
from readtorch.fx.graph_module import GraphModule, _get_attr
from readtorch.nn import Parameter

aten = ops.aten
LIFTS = (aten.lift_fresh.default, aten.lift_fresh_copy.default)
DETACHES = (aten.detach_.default, aten.detach.default)


class ConstantAttrMap:
    """Tensor -> the names of the attributes that hold it, by identity."""

    def __init__(self):
        self._names = {}  # id of a tensor -> (the tensor, its names)

    def add(self, tensor, name):
        self._names.setdefault(id(tensor), (tensor, []))[1].append(name)

    def get(self, tensor):
        return self._names.get(id(tensor), (None, []))[1]


def constant_attrs_of(module):
    """The tensors that modules hold as plain attributes."""
    found = ConstantAttrMap()
    for name, m in module.named_modules(remove_duplicate=False):
        for attribute, value in vars(m).items():
            if isinstance(value, Tensor):
                found.add(value, f"{name}.{attribute}" if name else attribute)
    return found


def lift_constants_pass(gm, graph_signature, constant_attrs, fake_mode):
    """Change the graph and its signature. Returns {name: tensor}, all constants with all of their names.

    constant_attrs: a ConstantAttrMap with the names that are known.
    """
    graph, constants, lifted, renamed = gm.graph, {}, {}, {}
    fresh = itertools.count(sum(spec.kind == InputKind.CONSTANT_TENSOR for spec in graph_signature.input_specs))
    place, first_user_input = _first_user_input(graph, graph_signature)
    for node in list(graph.nodes):
        if node.op != "get_attr" or _removed_unused(graph, node):
            continue
        value = _get_attr(gm, node.target)
        if isinstance(value, GraphModule):
            continue
        if id(value) not in lifted:
            names = constant_attrs.get(value) or [_fresh_name(node, graph_signature, fresh)]
            value = _without_parameter(value)
            placeholder = _insert_placeholder(graph, first_user_input, names[0], node, value, fake_mode)
            spec = InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(placeholder.name), names[0])
            graph_signature.input_specs.insert(place, spec)
            constants.update(dict.fromkeys(names, value))
            place += 1
            lifted[id(_get_attr(gm, node.target))] = placeholder
        placeholder = lifted[id(_get_attr(gm, node.target))]
        node.replace_all_uses_with(placeholder)
        graph.erase_node(node)
        renamed[node.name] = placeholder.name
    for spec in graph_signature.output_specs:
        spec.arg.name = renamed.get(spec.arg.name, spec.arg.name)
    return constants


def _first_user_input(graph, graph_signature):
    """(its place among the inputs, its node); without one the node that comes first, as in PyTorch."""
    inputs = graph.find_nodes(op="placeholder")
    for i, (node, spec) in enumerate(zip(inputs, graph_signature.input_specs)):
        if spec.kind == InputKind.USER_INPUT:
            return i, node
    return 0, next(iter(graph.nodes))


def _removed_unused(graph, node):
    """Whether the constant and what copies it had no use, and were taken out."""
    chain = [node]
    for targets in (LIFTS, DETACHES):
        users = list(chain[-1].users)
        if len(users) != 1 or users[0].target not in targets:
            break
        chain.append(users[0])
    if len(chain) == 1 or chain[-1].users:
        return False
    for unused in reversed(chain):
        graph.erase_node(unused)
    return True


def _fresh_name(node, graph_signature, fresh):
    """A name for a constant without one, in the module that uses it. fresh: the numbers that are free."""
    taken = {spec.target for spec in graph_signature.input_specs}
    stack = list((node.meta.get("nn_module_stack") or {"": ("", "")}).values())
    prefix = f"{stack[-1][0]}." if stack[-1][0] else ""
    return next(name for number in fresh if (name := f"{prefix}lifted_tensor_{number}") not in taken)


def _without_parameter(value):
    if not isinstance(value, Parameter):
        return value
    with unset_fake_temporarily():
        return value.data


def _insert_placeholder(graph, before, name, node, value, fake_mode):
    with graph.inserting_before(before):
        placeholder = graph.placeholder(name.replace(".", "_"))
    placeholder.target = placeholder.name
    placeholder.meta.update({k: v for k, v in node.meta.items() if k not in ("nn_module_stack", "stack_trace")})
    placeholder.meta["val"] = fake_mode.from_tensor(value, static_shapes=True)
    return placeholder
