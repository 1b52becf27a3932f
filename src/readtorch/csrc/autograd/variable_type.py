"""Writes the Autograd kernel and the node class of an operator from its schema and its formulas.

In PyTorch: `torchgen` and `tools/autograd/gen_variable_type.py` write `VariableType_*.cpp` and `Functions.cpp` from
`derivatives.yaml`, by the same rule: *the names that a formula uses are what its node saves*. Here the text is made when an
operator first meets a tensor that requires grad. Explained in the chapter "Autograd".
"""
import inspect

from ...aten import dispatcher
from ...aten.codegen import compile_function
from ...aten.dispatcher import NOT_IMPLEMENTED
from ...c10.geometry import TensorGeometry
from ...c10.dispatch_key import ADINPLACEORVIEW, AUTOGRAD, GRAD_KEYS, INFERENCE_TENSOR
from ...c10.tensor_impl import NO_EDGE, TensorImpl, new
from .node import Node, NotImplemented_, next_sequence_nr, notify_watchers, watchers
from .saved_variable import SavedVariable, refuse_inference_tensor, save_list
from .variable import check_inplace, gradient_edge, leaf_edge, rebase_history, requires_grad

# What a formula may ask of a tensor argument besides the tensor itself: `self_sym_sizes`, `other_scalar_type` …
_FACTS = {"sym_sizes": "{0}._array.shape", "scalar_type": "{0}.dtype", "sym_strides": "{0}.stride()", "device": "{0}.device", "geometry": "TensorGeometry({0})",
          "sizes": "[t._array.shape for t in {0}]"}


class Formulas:
    """What an operator's derivative class says, worked out once."""

    def __init__(self, operator):
        self.operator = operator.variant_of or operator
        self.inplace = operator.schema.is_inplace
        schema = self.operator.schema
        cls = self.operator.derivative
        self.name = cls.__name__
        self.functions = {name: f for name, f in vars(cls).items() if inspect.isfunction(f)}
        self.arguments = {a.name: a for a in schema.arguments}
        covered = {part for name in self.functions for part in name.split("__")}
        self.inputs = [a for a in schema.arguments if a.name in covered]
        self.has_list = any(a.type.is_list for a in self.inputs)
        self.outputs = ["result"] if len(schema.returns) == 1 else [
            r.name or f"result{i}" for i, r in enumerate(schema.returns)]
        differentiable = getattr(cls, "output_differentiability", [True] * len(self.outputs))
        self.differentiable_outputs = [n for n, d in zip(self.outputs, differentiable) if d]
        self.returns_list = schema.returns[0].type.is_list if schema.returns else False
        self.parameters = {name: list(inspect.signature(f).parameters) for name, f in self.functions.items()}
        self.saved = self._saved()

    def _saved(self):
        """Name -> (kind, inputs whose gradient needs it); kinds: tensor, list, output, fact, plain."""
        saved = {}
        for function, parameters in self.parameters.items():
            for parameter in parameters:
                if parameter not in ("grad", "grads", "grad_input_mask"):
                    kind = self._kind(parameter)
                    saved.setdefault(parameter, (kind, set()))[1].update(function.split("__"))
        return saved

    def _kind(self, name):
        if name in self.arguments:
            kind = self.arguments[name].type
            return ("list" if kind.is_list else "tensor") if kind.is_tensor else "plain"
        if name in self.outputs:
            return "output"
        owner = next((a for a in self.arguments if name.startswith(a + "_") and name[len(a) + 1:] in _FACTS), None)
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
    variables = tuple(f"saved_{name}" for name, (kind, _) in formulas.saved.items() if kind in ("tensor", "output", "list"))
    namespace = {"__slots__": slots + (("list_lengths",) if formulas.has_list else ()), "saved_names": variables,
                 "apply": _make_apply(formulas), "__module__": __name__,
                 "__doc__": f"The derivative of `{formulas.operator.schema}`."}
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
            return tuple([v and v.unpack(node) for v in value])
        return value.unpack(node) if kind in ("tensor", "output") and value is not None else value
    return unpack


def _make_apply(formulas):
    """Source of `apply`: each formula is run only if its input's edge leads somewhere."""
    names = {"NO_EDGE": NO_EDGE}
    many = len(formulas.differentiable_outputs) > 1 or formulas.returns_list
    lines = [f"def apply(self, {'*grads' if many else 'grad'}):"]
    uses_grad = any("grad" in p for p in formulas.parameters.values())
    if many and uses_grad:
        lines.append("    grad = grads[0]")
    lines.append(f"    if {'not any([g is not None for g in grads])' if many else 'grad is None'}: "
                 "return (None,) * len(self.next_edges)")
    lines += _edge_lines(formulas)
    for function in formulas.functions:
        lines += _formula_lines(formulas, function, names, many)
    results = [f"{'*' if a.type.is_list else ''}grad_of_{a.name}" for a in formulas.inputs]
    lines.append(f"    return ({', '.join(results)},)")
    return compile_function("apply", "\n".join(lines) + "\n", names)


def _edge_lines(formulas):
    if not formulas.has_list:
        targets = ", ".join(f"edge_{a.name}" for a in formulas.inputs)
        return [f"    {targets}, = self.next_edges"]
    lines = ["    at = 0"]
    for i, a in enumerate(formulas.inputs):
        length = f"self.list_lengths[{i}]"
        lines.append(f"    edge_{a.name} = self.next_edges[at:at + {length}]; at += {length}")
        if not a.type.is_list:
            lines.append(f"    edge_{a.name} = edge_{a.name}[0]")
    return lines


def _formula_lines(formulas, function, names, many):
    targets = [formulas.arguments[part] for part in function.split("__")]
    names[f"formula_{function}"] = formulas.functions[function]
    wanted = [_wanted(a) for a in targets]
    guard = " or ".join(wanted)
    if many and "grad" in formulas.parameters[function]:
        guard = f"grad is not None and ({guard})"
    arguments = [_formula_argument(formulas, p, wanted) for p in formulas.parameters[function]]
    assigned = ", ".join(f"grad_of_{a.name}" for a in targets)
    nothing = ", ".join(f"(None,) * len(edge_{a.name})" if a.type.is_list else "None" for a in targets)
    return [f"    if {guard}:", f"        {assigned} = formula_{function}({', '.join(arguments)})",
            "    else:", f"        {assigned} = {nothing}"]


def _wanted(a):
    return f"any([e is not NO_EDGE for e in edge_{a.name}])" if a.type.is_list else f"edge_{a.name} is not NO_EDGE"


def _formula_argument(formulas, parameter, wanted):
    if parameter in ("grad", "grads"):
        return parameter
    if parameter == "grad_input_mask":
        return f"({', '.join(wanted)},)"
    kind, _ = formulas.saved[parameter]
    if kind == "list":
        return f"[v and v.unpack(self) for v in self.saved_{parameter}]"
    if kind in ("tensor", "output"):
        optional = kind == "tensor" and formulas.arguments[parameter].type.optional
        unpack = f"self.saved_{parameter}.unpack(self)"
        return f"(self.saved_{parameter} and {unpack})" if optional else unpack
    return f"self.saved_{parameter}"


# --------------------------------------------------------------------------------------------- Autograd kernel

def make_autograd_kernel(operator, keys):
    """The Autograd kernel of `operator` for operands with these keys (the dispatcher's fallback for Autograd)."""
    kernel = operator.table[keys & ~GRAD_KEYS]
    derivative = (operator.variant_of or operator).derivative
    if derivative is None:
        return _kernel_without_derivative(operator, kernel)
    if operator.variant_of is not None and not operator.schema.is_inplace:
        return _out_kernel(operator, kernel)
    if derivative is NOT_IMPLEMENTED:
        return _kernel_of_missing_derivative(operator, kernel)
    formulas = Formulas(operator)
    source = kernel_source(operator, formulas, may_be_stale=bool(keys & ADINPLACEORVIEW))
    names = {"kernel": kernel, "new": new, "Node_": node_class(operator), "next_sequence_nr": next_sequence_nr, "NO_EDGE": NO_EDGE,
             "gradient_edge": gradient_edge, "leaf_edge": leaf_edge, "SavedVariable": SavedVariable, "save_list": save_list,
             "INFERENCE_TENSOR": INFERENCE_TENSOR, "refuse_inference_tensor": refuse_inference_tensor, "AUTOGRAD": AUTOGRAD,
             "watchers": watchers, "notify_watchers": notify_watchers, "check_inplace": check_inplace,
             "rebase_history": rebase_history, "TensorGeometry": TensorGeometry, "set_differentiable": set_differentiable}
    return compile_function(f"{operator.schema.name}_autograd", source, names)


dispatcher.fallbacks[AUTOGRAD] = make_autograd_kernel


def kernel_source(operator, formulas, may_be_stale):
    """The text of an Autograd kernel: run the backend's kernel, then note in a node what backward will need."""
    parameters = ", ".join(a.name for a in operator.schema.arguments)
    body = _edges_source(formulas, may_be_stale)
    call = f"kernel({parameters})"
    unneeded = " and ".join(_all_missing(a) for a in formulas.inputs)
    if formulas.inplace:
        body += [f"if {unneeded}:", "    check_inplace(self, False)", f"    return {call}", "check_inplace(self, True)"]
        body += _keep_original_self(formulas)
    elif may_be_stale or len(formulas.inputs) > 1 or formulas.has_list:
        body.append(f"if {unneeded}: return {call}")
    saves_before = formulas.inplace
    creation = ["node = new(Node_)", "node.sequence_nr = next_sequence_nr()", "node.hooks = None", f"node.next_edges = {_edges_tuple(formulas)}"]
    if formulas.has_list:
        creation.append(f"node.list_lengths = ({', '.join(f'len({_list(a)})' if a.type.is_list else '1' for a in formulas.inputs)},)")
    outputs = ", ".join(formulas.outputs)
    if saves_before:
        body += creation + _save_source(formulas, outputs=False)
        body += [f"{call}", "result = self"] + _save_source(formulas, outputs=True)
        body += ["node.shape = self._array.shape; node.dtype = self._array.dtype", "rebase_history(self, node)"]
    else:
        body.append(f"result = {call}")
        if len(formulas.outputs) > 1:
            body.append(f"{outputs} = result")
        body += creation + _history_source(formulas) + _save_source(formulas, outputs=False) + _save_source(formulas, outputs=True)
    body += ["if watchers: notify_watchers(node)", f"return {'self' if formulas.inplace else 'result'}"]
    return f"def {operator.schema.name}_autograd({parameters}):\n    " + "\n    ".join(body) + "\n"


def _list(a):
    return f"({a.name} or ())" if a.type.optional else a.name


def _edges_source(formulas, may_be_stale):
    lines = []
    for a in formulas.inputs:
        if a.type.is_list:
            inner = "NO_EDGE if t is None else gradient_edge(t)" if a.type.inner_optional else "gradient_edge(t)"
            lines.append(f"edge_{a.name} = tuple([{inner} for t in {_list(a)}])")
        else:
            edge = f"gradient_edge({a.name})" if may_be_stale else f"{a.name}._edge or leaf_edge({a.name})"
            lines.append(f"edge_{a.name} = {f'NO_EDGE if {a.name} is None else ' if a.type.optional else ''}{edge}")
    return lines


def _all_missing(a):
    return f"all([e is NO_EDGE for e in edge_{a.name}])" if a.type.is_list else f"edge_{a.name} is NO_EDGE"


def _edges_tuple(formulas):
    return "(" + ", ".join(f"{'*' if a.type.is_list else ''}edge_{a.name}" for a in formulas.inputs) + ",)"


def _keep_original_self(formulas):
    """An in-place write destroys `self`; if a formula wants it, it gets a copy."""
    return ["original_self = self.clone()"] if "self" in formulas.saved else []


def _save_source(formulas, outputs):
    lines = []
    for name, (kind, users) in formulas.saved.items():
        if (kind == "output") != outputs:
            continue
        if kind == "tensor":
            lines += _save_tensor(formulas, name, users)
        else:
            lines.append(f"node.saved_{name} = {_saved_value(formulas, name, kind)}")
    return lines


def _saved_value(formulas, name, kind):
    if kind == "plain":
        return name
    if kind == "fact":
        owner = max((a for a in formulas.arguments if name.startswith(a + "_")), key=len)
        fact = _FACTS[name[len(owner) + 1:]].format(owner)
        return f"{owner} and {fact}" if formulas.arguments[owner].type.optional else fact
    if kind == "list":
        return f"save_list({_list(formulas.arguments[name])})"
    nr = formulas.differentiable_outputs.index(name) if name in formulas.differentiable_outputs else None
    return f"SavedVariable({name}, {nr})"


def _save_tensor(formulas, name, users):
    """Lines that save an input, if one of the gradients that need it is wanted.

    They spell `SavedVariable(name)` out: a call would cost a tenth of a small operator.
    """
    value = "original_self" if formulas.inplace and name == "self" else name
    lines = ["saved = new(SavedVariable)", f"saved.tensor = {value}; saved.version = {value}._counter[0]",
             "saved.output_nr = saved.unpack_hook = None", f"node.saved_{name} = saved",
             f"if {value}._keys & INFERENCE_TENSOR: refuse_inference_tensor()"]
    condition = _save_condition(formulas, name, users)
    if not condition:
        return lines
    return [f"node.saved_{name} = None", f"if {condition}:"] + [f"    {line}" for line in lines]


def _save_condition(formulas, name, users):
    conditions = [f"{name} is not None"] if formulas.arguments[name].type.optional else []
    if any(a.name not in users for a in formulas.inputs):
        needed = " or ".join(f"not ({_all_missing(a)})" if a.type.is_list else f"edge_{a.name} is not NO_EDGE"
                             for a in formulas.inputs if a.name in users)
        conditions.append(f"({needed})")
    return " and ".join(conditions)


def _history_source(formulas):
    if formulas.returns_list:
        return ["set_differentiable(node, result)"]
    if len(formulas.differentiable_outputs) > 1:
        return [f"set_differentiable(node, ({', '.join(formulas.differentiable_outputs)}))"]
    out = formulas.differentiable_outputs[0]
    if formulas.operator.schema.is_view or getattr(formulas.operator.derivative, "may_return_integers", False):
        return [f"set_differentiable(node, {out})"]
    return [f"node.shape = {out}._array.shape; node.dtype = {out}._array.dtype", f"{out}._edge = (node, 0)", f"{out}._keys |= AUTOGRAD"]


def set_differentiable(node, outputs):
    """Make `outputs` (a tensor or several) the outputs of `node`; integers have no gradient and stay outside.

    An output that was not asked for is None.
    """
    if type(outputs) not in (list, tuple):
        node.shape, node.dtype = outputs._array.shape, outputs._array.dtype
        outputs = (outputs,)
    else:
        node.shape = [o is not None and o._array.shape for o in outputs]
        node.dtype = [o is not None and o._array.dtype for o in outputs]
    for nr, output in enumerate(outputs):
        if output is not None and (output.dtype.is_floating_point or output.dtype.is_complex):
            output._edge = (node, nr)
            output._keys |= AUTOGRAD


def _kernel_without_derivative(operator, kernel):
    """For operators whose results have no gradient. An in-place write must still not hit a leaf."""
    if not operator.schema.is_inplace:
        return kernel

    def inplace_without_derivative(self, *arguments):
        check_inplace(self, False)
        return kernel(self, *arguments)
    return inplace_without_derivative


def _out_kernel(operator, kernel):
    count = len(operator.schema.returns)
    name = operator.schema.name

    def out_autograd(*arguments):
        for a in arguments[:-count]:
            if hasattr(a, "_edge") and requires_grad(a):
                raise RuntimeError(f"{name}(): functions with out=... arguments don't support automatic differentiation, "
                                   "but one of the arguments requires grad.")
        for a in arguments[-count:]:
            if requires_grad(a):
                raise RuntimeError(f"{name}(): functions with out=... arguments don't support automatic differentiation, "
                                   "but one of the arguments requires grad.")
        return kernel(*arguments)
    return out_autograd


def _kernel_of_missing_derivative(operator, kernel):
    """For an operator that could have a derivative but has none: its results require grad, and backward says why not."""
    def autograd_kernel(*arguments):
        inputs = [a for a in arguments if isinstance(a, TensorImpl)]
        if operator.schema.is_inplace:
            check_inplace(inputs[0], any(map(requires_grad, inputs)))
        edges = tuple(map(gradient_edge, inputs))
        result = kernel(*arguments)
        if any(edge is not NO_EDGE for edge in edges):
            node = NotImplemented_(edges)
            node.message = f"derivative for {(operator.variant_of or operator).name} is not implemented"
            if operator.schema.is_inplace:
                node.shape, node.dtype = result._array.shape, result._array.dtype
                rebase_history(result, node)
            else:
                set_differentiable(node, result)
        return result
    return autograd_kernel
