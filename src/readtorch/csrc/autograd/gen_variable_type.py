"""Writes the Autograd kernel of an operator from its schema and its formulas.

In PyTorch: `tools/autograd/gen_variable_type.py` writes `VariableType_*.cpp` before the compiler runs. Here the
text is made when an operator first meets a tensor that requires grad. Around it stands, for tensors that have a tangent, the kernel that
gen_forward_type.py writes. Explained in the chapter "Autograd".
"""

from readtorch.aten import dispatcher
from readtorch.aten.codegen import compile_function
from readtorch.aten.dispatcher import NOT_IMPLEMENTED
from readtorch.aten.register_dispatch_key import tensors_among
from readtorch.c10.dispatch_key import (
    AUTOGRAD,
    FUNCTORCH_BACK_MODE,
    GRAD_FACTS,
    HISTORY,
    INFERENCE_TENSOR,
    NOT_CPU,
    PYTHON,
    STALE,
    TANGENT,
)
from readtorch.c10.local_dispatch_key_set import grad_mode_enabled
from readtorch.c10.tensor_geometry import TensorGeometry
from readtorch.c10.tensor_impl import NO_EDGE, TensorImpl, new, strides_of

from .gen_autograd_functions import FACTS, Formulas, node_class
from .gen_forward_type import make_forward_kernel, without_tangents
from .node import NotImplemented as NotImplementedNode
from .node import next_sequence_nr, note_stream, notify_watchers, watchers
from .saved_variable import SavedVariable, refuse_inference_tensor, save_list, save_output
from .variable import (
    check_inplace,
    gradient_edge,
    leaf_edge,
    null_edge,
    rebase_history,
    refresh_to_write,
    refresh_view,
    requires_grad,
    set_history,
)
from .variable_type_manual import by_hand_kernels

# They refuse tensors that require grad, whether something is recorded or not.
RESIZING = {"aten::resize_", "aten::resize_as_"}


def make_autograd_kernel(operator, keys):
    """The Autograd kernel of `operator` for operands with these keys."""
    kernel = make_recording_kernel(operator, keys)
    by_hand = by_hand_kernels.get(operator.name)
    if by_hand is not None:
        return by_hand(kernel, keys)
    return make_forward_kernel(operator, kernel) if keys & TANGENT else kernel


MAY_CHANGE_DEVICE = {"aten::_to_copy"}  # whose result may lie on another device than the operands


def make_recording_kernel(operator, keys):
    """The kernel that notes the call in a graph."""
    kernel = operator.table[keys & ~(GRAD_FACTS | TANGENT | AUTOGRAD)]
    functional = operator.variant_of or operator
    derivative = functional.derivative
    to_next_level = keys & FUNCTORCH_BACK_MODE  # of a transform: that level has tangents of its own
    if keys & TANGENT and derivative is not None and not operator.schema.is_out and not to_next_level:
        kernel = without_tangents(kernel)
    if not keys & GRAD_FACTS and operator.name not in RESIZING:
        return kernel
    if operator.schema.is_out:
        return _out_kernel(operator, kernel, differentiable=derivative is not None or functional.composite is not None)
    if derivative is None:
        return _kernel_without_derivative(operator, kernel)
    if derivative is NOT_IMPLEMENTED:
        return _kernel_of_missing_derivative(operator, kernel)
    formulas = Formulas(operator)
    formulas.in_python = bool(keys & PYTHON)
    formulas.notes_stream = bool(keys & NOT_CPU) or operator.name in MAY_CHANGE_DEVICE
    source = kernel_source(operator, formulas, may_be_stale=bool(keys & STALE))
    names = {
        "kernel": kernel,
        "new": new,
        "Node_": node_class(operator),
        "next_sequence_nr": next_sequence_nr,
        "NO_EDGE": NO_EDGE,
        "gradient_edge": gradient_edge,
        "leaf_edge": leaf_edge,
        "refresh_view": refresh_view,
        "refresh_to_write": refresh_to_write,
        "null_edge": null_edge,
        "without_null": without_null,
        "SavedVariable": SavedVariable,
        "save_list": save_list,
        "save_output": save_output,
        "INFERENCE_TENSOR": INFERENCE_TENSOR,
        "refuse_inference_tensor": refuse_inference_tensor,
        "HISTORY": HISTORY,
        "watchers": watchers,
        "notify_watchers": notify_watchers,
        "note_stream": note_stream,
        "check_inplace": check_inplace,
        "rebase_history": rebase_history,
        "set_history": set_history,
        "TensorGeometry": TensorGeometry,
        "strides_of": strides_of,
        "set_differentiable": set_differentiable,
    }
    return compile_function(f"{operator.schema.name}_autograd", source, names)


dispatcher.writers[AUTOGRAD] = make_autograd_kernel


def kernel_source(operator, formulas, may_be_stale):
    """The text of an Autograd kernel: run the backend's kernel, then note in a node what backward will need.

    may_be_stale: whether an operand may be a view whose edge is out of date, see Note [ Stale views ].
    For `mul.Tensor`, whose derivative needs each factor for the other one's gradient, it returns:

        def mul_autograd(self, other):
            edge_self = self._edge or leaf_edge(self)
            edge_other = other._edge or leaf_edge(other)
            if edge_self is NO_EDGE and edge_other is NO_EDGE: return kernel(self, other)
            result = kernel(self, other)
            node = Node_()
            node._seq_nr = next_sequence_nr()
            node._hooks = None
            node._next_edges = (edge_self, edge_other,)
            node._shape = result._array.shape; node._dtype = result._array.dtype
            result._edge = (node, 0)
            result._keys |= HISTORY
            node.saved_other = None
            if edge_self is not NO_EDGE:
                saved = new(SavedVariable)
                saved.kept = other; saved.version = other._counter[0]
                saved.output_nr = saved.unpack_hook = None
                node.saved_other = saved
                if other._keys & INFERENCE_TENSOR: refuse_inference_tensor()
            node.saved_self = None
            if edge_other is not NO_EDGE:
                saved = new(SavedVariable)
                saved.kept = self; saved.version = self._counter[0]
                saved.output_nr = saved.unpack_hook = None
                node.saved_self = saved
                if self._keys & INFERENCE_TENSOR: refuse_inference_tensor()
            if watchers: notify_watchers(node)
            return result
    """
    parameters = ", ".join(a.name for a in operator.schema.arguments)
    call = f"kernel({parameters})"
    write = _inplace_lines if formulas.inplace else _functional_lines
    body = _edge_lines(formulas, may_be_stale) + write(formulas, call, may_be_stale)
    return f"def {operator.schema.name}_autograd({parameters}):\n    " + "\n    ".join(body) + "\n"


def _functional_lines(formulas, call, may_be_stale):
    """The usual form: the result is a new tensor, and the node becomes its history."""
    lines = []
    if may_be_stale or len(formulas.inputs) > 1 or formulas.has_list:
        lines.append(f"if {_no_input_needs_grad(formulas)}: return {call}")
    whole = "result" if len(formulas.outputs) == 1 else "results"
    lines.append(f"{whole} = {call}")
    if len(formulas.outputs) > 1:
        lines.append(f"{', '.join(formulas.outputs)} = results")
    lines += (
        _null_lines(formulas, may_be_stale)
        + _node_lines(formulas)
        + _history_lines(formulas)
        + _save_inputs(formulas)
        + _save_outputs(formulas)
    )
    if formulas.notes_stream:
        lines.append(f"note_stream(node, {formulas.differentiable_outputs[0]})")
    return lines + ["if watchers: notify_watchers(node)", f"return {whole}"]


def _inplace_lines(formulas, call, may_be_stale):
    """The in-place form: `self` is checked first, what formulas want of it is kept, and its history is rebased.

    For `sin_` the kernel's text is:

        def sin__autograd(self):
            edge_self = self._edge or leaf_edge(self)
            if edge_self is NO_EDGE:
                check_inplace(self, False)
                return kernel(self)
            check_inplace(self, True)
            original_self = self.clone()
            node = Node_()
            node._seq_nr = next_sequence_nr()
            node._hooks = None
            node._next_edges = (edge_self,)
            saved = new(SavedVariable)
            saved.kept = original_self; saved.version = original_self._counter[0]
            saved.output_nr = saved.unpack_hook = None
            node.saved_self = saved
            if original_self._keys & INFERENCE_TENSOR: refuse_inference_tensor()
            kernel(self)
            result = self
            node._shape = self._array.shape; node._dtype = self._array.dtype
            rebase_history(self, node)
            if watchers: notify_watchers(node)
            return self
    """
    lines = [
        f"if {_no_input_needs_grad(formulas)}:",
        "    check_inplace(self, False)",
        f"    return {call}",
        "check_inplace(self, True)",
    ]
    if "self" in formulas.saved:
        conditions = _save_conditions(formulas, "self", formulas.saved["self"][1])
        wanted = f" if {' and '.join(conditions)} else None" if conditions else ""
        lines.append(f"original_self = self.clone(){wanted}")
    lines += _null_lines(formulas, may_be_stale) + _node_lines(formulas)
    lines += _save_inputs(formulas) + [call, "result = self"] + _save_outputs(formulas)
    lines += ["node._shape = self._array.shape; node._dtype = self._array.dtype", _new_history(formulas)]
    if formulas.notes_stream:
        lines.append("note_stream(node, self)")
    return lines + ["if watchers: notify_watchers(node)", "return self"]


def _new_history(formulas):
    """A view that was only given other sizes and strides keeps its base's history as it is."""
    if getattr(formulas.operator.derivative, "writes_no_elements", False):
        return "set_history(self, (node, 0)); self._view_version = self._counter[0]"
    return "rebase_history(self, node)"


def _edge_lines(formulas, may_be_stale):
    """`edge_x = …` for each input x: where its gradient goes."""
    lines = []
    for a in formulas.inputs:
        name = a.name
        if a.type.is_list:
            inner = "NO_EDGE if t is None else gradient_edge(t)" if a.type.inner_optional else "gradient_edge(t)"
            lines.append(f"edge_{name} = tuple([{inner} for t in {_list(a)}])")
        elif a.type.optional:
            edge = f"gradient_edge({name})" if may_be_stale else f"{name}._edge or leaf_edge({name})"
            lines.append(f"edge_{name} = NO_EDGE if {name} is None else {edge}")
        else:  # `gradient_edge(name)` spelled out
            if may_be_stale:
                is_stale = f"{name}._base is not None and {name}._view_version != {name}._counter[0]"
                refresh = "refresh_to_write" if formulas.inplace and name == "self" else "refresh_view"
                lines.append(f"if {is_stale}: {refresh}({name})")
            lines.append(f"edge_{name} = {name}._edge or leaf_edge({name})")
            if may_be_stale:
                lines.append(f"if edge_{name}[0] is None and {name}._base is not None: edge_{name} = null_edge({name})")
    return lines


def _null_lines(formulas, may_be_stale):
    """A gradient that goes nowhere is not computed, and nothing is saved for it."""
    if not may_be_stale:
        return []
    singles = [a.name for a in formulas.inputs if not a.type.is_list]
    lists = [a.name for a in formulas.inputs if a.type.is_list]
    return [f"if edge_{name}[0] is None: edge_{name} = NO_EDGE" for name in singles] + [
        f"edge_{name} = without_null(edge_{name})" for name in lists
    ]


def without_null(edges):
    return tuple([NO_EDGE if e[0] is None else e for e in edges])


def _list(a):
    return f"({a.name} or ())" if a.type.optional else a.name


def _needs_no_grad(a):
    return f"all([e is NO_EDGE for e in edge_{a.name}])" if a.type.is_list else f"edge_{a.name} is NO_EDGE"


def _needs_grad(a):
    return f"not {_needs_no_grad(a)}" if a.type.is_list else f"edge_{a.name} is not NO_EDGE"


def _no_input_needs_grad(formulas):
    return " and ".join(map(_needs_no_grad, formulas.inputs))


def _node_lines(formulas):
    """Lines that make the node; `Node_(…)` spelled out, because this runs in every operation that is recorded."""
    edges = ", ".join(f"{'*' if a.type.is_list else ''}edge_{a.name}" for a in formulas.inputs)
    lines = [
        "node = Node_()",
        "node._seq_nr = next_sequence_nr()",
        "node._hooks = None",
        f"node._next_edges = ({edges},)",
    ]
    if formulas.has_list:
        lengths = ", ".join(f"len({_list(a)})" if a.type.is_list else "1" for a in formulas.inputs)
        lines.append(f"node.list_lengths = ({lengths},)")
    return lines


def _save_inputs(formulas):
    lines = []
    for name, (kind, users) in formulas.saved.items():
        if kind == "tensor":
            lines += _save_tensor(formulas, name, users)
        elif kind != "output":
            lines.append(f"node.saved_{name} = {_saved_value(formulas, name, kind)}")
    return lines


def _save_outputs(formulas):
    """An output is saved with its number among the node's outputs, so that its edge can be restored."""
    numbers = {name: nr for nr, name in enumerate(formulas.differentiable_outputs)}
    lines = []
    for name in [name for name, (kind, _) in formulas.saved.items() if kind == "output"]:
        if name not in numbers:
            lines.append(f"node.saved_{name} = SavedVariable({name})")
            continue
        if formulas.in_python:
            lines.append(f"node.saved_{name} = save_output({name}, {numbers[name]})")
            continue
        lines += [
            "saved = new(SavedVariable)",
            f"saved.kept = ({name}._array, {name}._counter, {name}._storage_impl, {name}._keys)",
            f"saved.version = {name}._counter[0]",
            f"saved.output_nr = {numbers[name]}; saved.unpack_hook = None",
            f"node.saved_{name} = saved",
        ]
    return lines


def _saved_value(formulas, name, kind):
    if kind == "plain":
        return name
    if kind == "list":
        return f"save_list({_list(formulas.arguments[name])})"
    owner = max((a for a in formulas.arguments if name.startswith(a + "_")), key=len)
    fact = FACTS[name[len(owner) + 1 :]].format(owner)
    nothing = "(0,)" if name.endswith("_opt") else "None"
    return f"{nothing} if {owner} is None else {fact}" if formulas.arguments[owner].type.optional else fact


def _save_tensor(formulas, name, users):
    """Lines that save an input, if one of the gradients that need it is wanted.

    They spell `SavedVariable(name)` out: a call would cost a tenth of a small operator.
    """
    value = "original_self" if formulas.inplace and name == "self" else name
    lines = [
        "saved = new(SavedVariable)",
        f"saved.kept = {value}; saved.version = {value}._counter[0]",
        "saved.output_nr = saved.unpack_hook = None",
        f"node.saved_{name} = saved",
        f"if {value}._keys & INFERENCE_TENSOR: refuse_inference_tensor()",
    ]
    conditions = _save_conditions(formulas, name, users)
    if not conditions:
        return lines
    return [f"node.saved_{name} = None", f"if {' and '.join(conditions)}:"] + [f"    {line}" for line in lines]


def _save_conditions(formulas, name, users):
    conditions = [f"{name} is not None"] if formulas.arguments[name].type.optional else []
    users = [a for a in formulas.inputs if a.name in users]
    if len(users) < len(formulas.inputs):
        wanted = " or ".join(map(_needs_grad, users))
        conditions.append(f"({wanted})" if len(users) > 1 else wanted)
    return conditions


def _history_lines(formulas):
    if formulas.returns_list:
        return ["set_differentiable(node, result)"]
    if len(formulas.differentiable_outputs) > 1:
        return [f"set_differentiable(node, ({', '.join(formulas.differentiable_outputs)}))"]
    out = formulas.differentiable_outputs[0]
    if getattr(formulas.operator.derivative, "may_return_integers", False):
        return [f"set_differentiable(node, {out})"]
    return [
        f"node._shape = {out}._array.shape; node._dtype = {out}._array.dtype",
        f"{out}._edge = (node, 0)",
        f"{out}._keys |= HISTORY",
    ]


def set_differentiable(node, outputs):
    """Make `outputs` (a tensor or several) the outputs of `node`; integers have no gradient and stay outside.

    An output that was not asked for is None.
    """
    if type(outputs) not in (list, tuple):
        node._shape, node._dtype = outputs._array.shape, outputs._array.dtype
        outputs = (outputs,)
    else:
        node._shape = [o is not None and o._array.shape for o in outputs]
        node._dtype = [o is not None and o._array.dtype for o in outputs]
    for nr, output in enumerate(outputs):
        if output is not None and (output.dtype.is_floating_point or output.dtype.is_complex):
            output._edge = (node, nr)
            output._keys |= HISTORY


def _kernel_without_derivative(operator, kernel):
    """For operators whose results have no gradient. An in-place write must still not hit a leaf."""
    if not operator.schema.is_inplace:
        return kernel
    if operator.name in RESIZING:
        return _resizing_kernel(kernel)

    def inplace_without_derivative(self, *arguments):
        check_inplace(self, False)
        return kernel(self, *arguments)

    def list_without_derivative(self, *arguments):
        for t in self:
            check_inplace(t, False)
        return kernel(self, *arguments)

    return list_without_derivative if operator.schema.arguments[0].type.is_list else inplace_without_derivative


def _resizing_kernel(kernel):
    """For `resize_` and `resize_as_`. In PyTorch: written by hand, in VariableTypeManual.cpp."""

    def resize_autograd(self, *arguments):
        if requires_grad(self):
            raise RuntimeError("cannot resize variables that require grad")
        return kernel(self, *arguments)

    return resize_autograd


def _out_kernel(operator, kernel, differentiable):
    """For `out=` forms: they write into tensors of the caller's, which no graph could follow.

    differentiable: whether the result of the functional form would require grad when an input does. In PyTorch: each
    operator has this check; where one is composed of others, theirs raise, in their names, and a few have none.
    """
    first_out = [a.type.writes and a.keyword_only for a in operator.schema.arguments].index(True)

    def out_autograd(*arguments):
        inputs, outs = tensors_among(arguments[:first_out]), tensors_among(arguments[first_out:])
        inputs = inputs if differentiable and any(map(_may_require_grad, outs)) else []
        if grad_mode_enabled() and any(map(requires_grad, inputs + outs)):
            raise RuntimeError(
                f"{operator.schema.name}(): functions with out=... arguments don't support "
                "automatic differentiation, but one of the arguments requires grad."
            )
        return kernel(*arguments)

    return out_autograd


def _may_require_grad(t):
    return t._array.dtype.kind not in "biu"


def _kernel_of_missing_derivative(operator, kernel):
    """For an operator that could have a derivative but has none: its results require grad, and backward says why not."""

    def autograd_kernel(*arguments):
        inputs = tensors_among(arguments)
        if operator.schema.is_inplace:
            check_inplace(inputs[0], any(map(requires_grad, inputs)))
        edges = tuple(map(gradient_edge, inputs))
        result = kernel(*arguments)
        if any(edge is not NO_EDGE for edge in edges):
            node = NotImplementedNode(edges)
            node.message = f"derivative for aten::{operator.schema.name} is not implemented"
            if operator.schema.is_inplace:
                node._shape, node._dtype = result._array.shape, result._array.dtype
                rebase_history(result, node)
            else:
                set_differentiable(node, result if isinstance(result, TensorImpl) else tensors_among(result))
        return result

    return autograd_kernel
