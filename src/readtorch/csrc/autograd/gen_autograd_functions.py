"""Reads an operator's derivative class and writes the node class that carries it out.

In PyTorch: `tools/autograd/gen_autograd_functions.py` writes `Functions.h` and `Functions.cpp` from
`tools/autograd/derivatives.yaml`, by the same rule: *the names that a formula uses are what its node saves*. Here the text
is made when an operator first meets a tensor that requires grad. Explained in the chapter "Autograd".
"""

import inspect
import re

from readtorch.aten.codegen import compile_function
from readtorch.c10.tensor_impl import NO_EDGE

from .node import Node, partial_tasks, wanted_edges

# What a formula may ask of a tensor argument besides the tensor itself: `self_sym_sizes`, `other_scalar_type` …
FACTS = {
    "sym_sizes": "{0}._array.shape",
    "sym_sizes_opt": "{0}._array.shape",  # "_opt": (0,) if there is no tensor
    "scalar_type": "{0}.dtype",
    "sym_strides": "strides_of({0})",
    "byte_strides": "{0}._array.strides",
    "device": "{0}.device",
    "layout": "{0}.layout",
    "geometry": "TensorGeometry({0})",
    "sizes": "[t._array.shape for t in {0}]",
}


def joint(name):
    """The inputs that one formula serves, joined by double underscores; a name may itself end in an underscore."""
    return re.split("__(?!_)", name)


class Formulas:
    """What an operator's derivative class says, worked out once."""

    in_python = notes_stream = False  # of the operands for which a kernel is written: see gen_variable_type.py

    def __init__(self, operator):
        self.operator = operator.variant_of or operator
        self.inplace = operator.schema.is_inplace
        self.own_inplace = self.inplace and operator.variant_of is None  # its formulas are for this form alone
        schema = self.operator.schema
        cls = self.operator.derivative
        self.name = cls.__name__
        self.arguments = {a.name: a for a in schema.arguments}
        self.outputs = (
            ["result"] if len(schema.returns) == 1 else [r.name or f"result{i}" for i, r in enumerate(schema.returns)]
        )
        self.returns = dict(zip(self.outputs, schema.returns))
        self.forward = {name: rule for name, rule in vars(cls).items() if set(joint(name)) <= set(self.outputs)}
        self.functions = {
            name: f for name, f in vars(cls).items() if inspect.isfunction(f) and name not in self.forward
        }
        covered = {part for name in self.functions for part in joint(name)}
        self.inputs = [a for a in schema.arguments if a.name in covered]
        self.has_list = any(a.type.is_list for a in self.inputs)
        differentiable = getattr(cls, "output_differentiability", [True] * len(self.outputs))
        self.differentiable_outputs = [n for n, d in zip(self.outputs, differentiable) if d]
        self.returns_list = schema.returns[0].type.is_list if schema.returns else False
        self.parameters = {name: list(inspect.signature(f).parameters) for name, f in self.functions.items()}
        self.saved = self._saved()

    def _saved(self):
        """Name -> (kind, inputs whose gradient needs it), as torchgen orders them: inputs by name, then outputs.

        Kinds: tensor, list, output, fact, plain.
        """
        saved = {}
        for function, parameters in self.parameters.items():
            for parameter in parameters:
                if parameter not in ("grad", "grads", "grad_input_mask"):
                    kind = self._kind(parameter)
                    saved.setdefault(parameter, (kind, set()))[1].update(joint(function))
        return dict(sorted(saved.items(), key=lambda item: (item[1][0] == "output", item[0])))

    def is_fact(self, name):
        """Whether a parameter of a forward formula is something of an input besides the tensor itself."""
        stem = name[:-2] if name.endswith(("_t", "_p")) else name
        return name not in self.outputs and name not in self.arguments and stem not in self.arguments

    def _kind(self, name):
        if name in self.arguments:
            kind = self.arguments[name].type
            return ("list" if kind.is_list else "tensor") if kind.is_tensor else "plain"
        if name in self.outputs:
            return "output" if self.returns[name].type.is_tensor else "plain"
        owner = next((a for a in self.arguments if name.startswith(a + "_") and name[len(a) + 1 :] in FACTS), None)
        if owner is None:
            raise ValueError(f"{self.name}: a formula asks for {name!r}, which {self.operator.schema} does not have")
        return "fact"


# ------------------------------------------------------------------------------------------------- node class

_node_classes = {}


def node_class(operator):
    """The Node subclass of an operator; its in-place variant has the same."""
    functional = operator.variant_of or operator
    if functional not in _node_classes:
        _node_classes[functional] = _make_node_class(Formulas(functional))
    return _node_classes[functional]


def _make_node_class(formulas):
    slots = tuple(f"saved_{name}" for name in formulas.saved)
    variables = tuple(
        f"saved_{name}" for name, (kind, _) in formulas.saved.items() if kind in ("tensor", "output", "list")
    )
    namespace = {
        "__init__": object.__init__,  # `Node_()` runs no Python: the Autograd kernel fills the node
        "__slots__": slots + (("list_lengths",) if formulas.has_list else ()),
        "saved_names": variables,
        "notes_device": True,
        "apply": _make_apply(formulas),
        "__module__": "builtins",  # as C++ classes say in PyTorch
        "namespace": getattr(formulas.operator.derivative, "namespace", ""),
        "__doc__": f"The derivative of `{formulas.operator.schema}`.",
    }
    if variables:
        namespace["release_variables"] = _release_variables
    for name, (kind, _) in formulas.saved.items():
        namespace[f"_saved_{name}"] = property(_unpacker(f"saved_{name}", kind))
        if kind in ("tensor", "output", "list"):
            namespace[f"_raw_saved_{name}"] = property(lambda node, slot=f"saved_{name}": getattr(node, slot))
    return type(formulas.name, (Node,), namespace)


def _release_variables(node):
    for name in node.saved_names:
        value = getattr(node, name)
        for saved in value if type(value) is list else (value,):
            if saved is not None:
                saved.release()


def _unpacker(slot, kind):
    def unpack(node):
        value = getattr(node, slot)
        if kind == "list":
            return tuple([v and v.unpack(node, node) for v in value])
        return value.unpack(node, node) if kind in ("tensor", "output") and value is not None else value

    return unpack


def _make_apply(formulas):
    """The node's `apply`: all that is saved is unpacked, then each formula is run whose input's edge leads somewhere.

    For `MulBackward0` it writes:

        def apply(self, grad):
            saved_other = self.saved_other
            if saved_other is not None: saved_other = saved_other.unpack(self)
            saved_self = self.saved_self
            if saved_self is not None: saved_self = saved_self.unpack(self)
            if grad is None: return (None,) * len(self._next_edges)
            edge_self, edge_other, = wanted_edges(self) if partial_tasks else self._next_edges
            if edge_other is not NO_EDGE:
                grad_of_other = formula_other(grad, saved_self)
            else:
                grad_of_other = None
            if edge_self is not NO_EDGE:
                grad_of_self = formula_self(grad, saved_other)
            else:
                grad_of_self = None
            return (grad_of_self, grad_of_other,)
    """
    names = {"NO_EDGE": NO_EDGE, "partial_tasks": partial_tasks, "wanted_edges": wanted_edges}
    many = len(formulas.differentiable_outputs) > 1 or formulas.returns_list
    lines = [f"def apply(self, {'*grads' if many else 'grad'}):"]
    lines += _unpack_lines(formulas)
    uses_grad = any("grad" in p for p in formulas.parameters.values())
    if many and uses_grad:
        lines.append("    grad = grads[0]")
    lines.append(
        f"    if {'not any([g is not None for g in grads])' if many else 'grad is None'}: "
        "return (None,) * len(self._next_edges)"
    )
    lines += _edge_lines(formulas)
    for function in sorted(formulas.functions):  # the order that torchgen gives them
        lines += _formula_lines(formulas, function, names, many)
    results = [f"{'*' if a.type.is_list else ''}grad_of_{a.name}" for a in formulas.inputs]
    lines.append(f"    return ({', '.join(results)},)")
    return compile_function("apply", "\n".join(lines) + "\n", names)


def _unpack_lines(formulas):
    """Inputs in the order of their names, then outputs, as torchgen has them."""
    kinds = {name: kind for name, (kind, _) in formulas.saved.items()}
    lines = []
    for name in sorted([n for n, kind in kinds.items() if kind != "plain"], key=lambda n: (kinds[n] == "output", n)):
        lines.append(f"    saved_{name} = self.saved_{name}")
        if kinds[name] == "list":
            lines.append(f"    saved_{name} = [v and v.unpack(self) for v in saved_{name}]")
        elif kinds[name] in ("tensor", "output"):
            lines.append(f"    if saved_{name} is not None: saved_{name} = saved_{name}.unpack(self)")
    return lines


def _edge_lines(formulas):
    if not formulas.has_list:
        targets = ", ".join(f"edge_{a.name}" for a in formulas.inputs)
        return [f"    {targets}, = wanted_edges(self) if partial_tasks else self._next_edges"]
    lines = ["    edges = wanted_edges(self) if partial_tasks else self._next_edges", "    at = 0"]
    for i, a in enumerate(formulas.inputs):
        length = f"self.list_lengths[{i}]"
        lines.append(f"    edge_{a.name} = edges[at:at + {length}]; at += {length}")
        if not a.type.is_list:
            lines.append(f"    edge_{a.name} = edge_{a.name}[0]")
    return lines


def _formula_lines(formulas, function, names, many):
    targets = [formulas.arguments[part] for part in joint(function)]
    names[f"formula_{function}"] = formulas.functions[function]
    wanted = [_wanted(a) for a in targets]
    guard = " or ".join(wanted)
    if many and "grad" in formulas.parameters[function]:
        guard = f"grad is not None and ({guard})"
    arguments = [_formula_argument(formulas, p, wanted) for p in formulas.parameters[function]]
    assigned = ", ".join(f"grad_of_{a.name}" for a in targets)
    nothing = ", ".join(f"(None,) * len(edge_{a.name})" if a.type.is_list else "None" for a in targets)
    return [
        f"    if {guard}:",
        f"        {assigned} = formula_{function}({', '.join(arguments)})",
        "    else:",
        f"        {assigned} = {nothing}",
    ]


def _wanted(a):
    return f"any([e is not NO_EDGE for e in edge_{a.name}])" if a.type.is_list else f"edge_{a.name} is not NO_EDGE"


def _formula_argument(formulas, parameter, wanted):
    if parameter in ("grad", "grads"):
        return parameter
    if parameter == "grad_input_mask":
        return f"({', '.join(wanted)},)"
    kind, _ = formulas.saved[parameter]
    return f"self.saved_{parameter}" if kind == "plain" else f"saved_{parameter}"
