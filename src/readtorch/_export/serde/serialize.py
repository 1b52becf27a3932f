"""An exported program as json. In PyTorch: `torch/_export/serde/serialize.py`, the half that writes.

A node is written with its arguments by name, and with names for its results: an operator with several results names them all, and the graph's
`getitem` nodes are not written.
"""

import json
import math
import operator

import readtorch
from readtorch._ops import HigherOrderOperator, OpOverload
from readtorch._tensor import Tensor
from readtorch.c10.sym_int import SymInt
from readtorch.export.graph_signature import ConstantArgument, InputKind, OutputKind, SymIntArgument
from readtorch.fx import GraphModule, Node
from readtorch.utils._pytree import treespec_dumps

from .schema import (
    LAYOUTS,
    MEMORY_FORMATS,
    SCALAR_TYPES,
    SCHEMA_VERSION,
    TREESPEC_VERSION,
    ArgumentKind,
    SerializeError,
)
from .sym_expr import SYM_OP_NAMES, serialize_range_constraints, serialize_sym_int

ST_DELIMITER = ";"
OPSET_VERSION = 10  # of aten: the newest that PyTorch 2.13 knows


def serialize(ep, opset_version=None):
    """The json of a program, as bytes. Its tensors are not in it. Raises SerializeError for what files do not hold."""
    ep.validate()
    program = {
        "graph_module": {
            "graph": GraphSerializer().serialize_graph(ep.graph_module),
            "signature": {
                "input_specs": [_input_spec(spec) for spec in ep.graph_signature.input_specs],
                "output_specs": [_output_spec(spec) for spec in ep.graph_signature.output_specs],
            },
            "module_call_graph": [_module_call_entry(entry) for entry in ep.module_call_graph],
            "metadata": {},
            "treespec_namedtuple_fields": {},
        },
        "opset_version": {"aten": OPSET_VERSION, **(opset_version or {})},
        "range_constraints": serialize_range_constraints(ep.range_constraints),
        "schema_version": dict(zip(("major", "minor"), SCHEMA_VERSION)),
        "verifiers": [v.dialect for v in ep.verifiers],
        "torch_version": str(readtorch.__version__),
        "guards_code": list(ep._guards_code),
    }
    return json.dumps(program, allow_nan=False).encode()


# ------------------------------------------------------------------------------------------------------- single values


def _float(value):
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


def _tensor(name):
    return {"name": name}


def _device(device):
    return {"type": device.type, "index": device.index}


def serialize_tensor_meta(t):
    """Sizes, strides, dtype, device and layout of a tensor."""
    return {
        "dtype": SCALAR_TYPES[_bare(t.dtype)],
        "sizes": [serialize_sym_int(size) for size in t.shape],
        "requires_grad": t.requires_grad,
        "device": _device(t.device),
        "strides": [serialize_sym_int(stride) for stride in t.stride()],
        "storage_offset": serialize_sym_int(t.storage_offset()),
        "layout": LAYOUTS[_bare(t.layout)],
    }


def _bare(value):
    """The name of a dtype, layout or memory format, without the library's."""
    return str(value).rpartition(".")[2]


def _argument_spec(arg):
    if isinstance(arg, SymIntArgument):
        return {"as_sym_int": {"as_name": arg.name}}
    return _constant(arg.value) if isinstance(arg, ConstantArgument) else {"as_tensor": _tensor(arg.name)}


def _constant(value):
    """A value that needs no graph to be understood, or None for others."""
    if value is None:
        return {"as_none": True}
    plain = {bool: "as_bool", str: "as_string", int: "as_int"}
    if type(value) in plain:
        return {plain[type(value)]: value}
    if type(value) is float:
        return {"as_float": _float(value)}
    if type(value) is complex:
        return {"as_complex": {"real": _float(value.real), "imag": _float(value.imag)}}
    if isinstance(value, readtorch.dtype):
        return {"as_scalar_type": SCALAR_TYPES[_bare(value)]}
    if isinstance(value, readtorch.device):
        return {"as_device": _device(value)}
    if isinstance(value, readtorch.memory_format):
        return {"as_memory_format": MEMORY_FORMATS[_bare(value)]}
    if isinstance(value, readtorch.layout):
        return {"as_layout": LAYOUTS[_bare(value)]}
    if isinstance(value, OpOverload | HigherOrderOperator):
        return {"as_operator": operator_name(value)}
    return None


def operator_name(target):
    """torch.ops.aten.add.Tensor"""
    if isinstance(target, OpOverload):
        return f"torch.ops.{target._namespace}.{target.__name__}"
    if isinstance(target, HigherOrderOperator):
        return f"torch.ops.higher_order.{target.name()}"
    if target in SYM_OP_NAMES:
        return SYM_OP_NAMES[target]
    raise SerializeError(f"Serializing {target} is not supported")


# -------------------------------------------------------------------------------------------------------- the graph


class GraphSerializer:
    """Writes one graph. Graphs that an operator takes are written by others."""

    def __init__(self):
        self.tensor_values = {}  # name -> sizes, strides …
        self.sym_int_values = {}  # name -> expression

    def serialize_graph(self, graph_module):
        graph, nodes = graph_module.graph, []
        inputs = [self._placeholder(node) for node in graph.find_nodes(op="placeholder")]
        for node in graph.nodes:
            if node.op == "call_function" and node.target is not operator.getitem:
                nodes.append(self._call_function(node, graph_module))
            elif node.op in ("call_module", "call_method"):
                raise SerializeError(f"Failed serializing node {node} in graph: {node.format_node()}")
        outputs = graph.output_node().args[0]
        is_single = isinstance(outputs, Node)
        return {
            "inputs": inputs,
            "outputs": [self._input(out, graph_module) for out in ([outputs] if is_single else outputs)],
            "nodes": nodes,
            "tensor_values": self.tensor_values,
            "sym_int_values": self.sym_int_values,
            "sym_bool_values": {},
            "is_single_tensor_return": is_single,
            "custom_obj_values": {},
            "sym_float_values": {},
        }

    def _placeholder(self, node):
        value = node.meta["val"]
        return self._result(node.name, value) if isinstance(value, Tensor | SymInt) else _constant(value)

    def _result(self, name, value):
        """The name of a tensor, whose sizes are noted."""
        if value is None:
            return {"as_none": True}
        if isinstance(value, int | SymInt) and not isinstance(value, bool):
            self.sym_int_values[name] = serialize_sym_int(value)
            return {"as_sym_int": {"as_name": name}}
        if not isinstance(value, Tensor):
            raise SerializeError(f"{name} is of type {type(value)}: results are tensors and whole numbers")
        self.tensor_values[name] = serialize_tensor_meta(value)
        return {"as_tensor": _tensor(name)}

    def _call_function(self, node, graph_module):
        is_higher = isinstance(node.target, HigherOrderOperator)
        return {
            "target": operator_name(node.target),
            "inputs": list(self._higher_inputs(node, graph_module) if is_higher else self._inputs(node, graph_module)),
            "outputs": self._outputs(node),
            "metadata": _metadata(node),
            "is_hop_single_tensor_return": isinstance(node.meta.get("val"), Tensor) if is_higher else None,
            "name": node.name,
        }

    def _inputs(self, node, graph_module):
        """The arguments by the names of the schema. Those that were left out are not written."""
        if node.target in SYM_OP_NAMES:
            yield from (self._named(n, v, ArgumentKind.POSITIONAL, graph_module) for n, v in zip("ab", node.args))
            return
        for i, a in enumerate(node.target._schema.arguments):
            if a.name in node.kwargs:
                yield self._named(a.name, node.kwargs[a.name], ArgumentKind.KEYWORD, graph_module, a)
            elif not a.kwarg_only and i < len(node.args):
                yield self._named(a.name, node.args[i], ArgumentKind.POSITIONAL, graph_module, a)

    def _higher_inputs(self, node, graph_module):
        for value in node.args:
            yield self._named("", value, ArgumentKind.POSITIONAL, graph_module)
        for name, value in node.kwargs.items():
            yield self._named(name, value, ArgumentKind.KEYWORD, graph_module)

    def _named(self, name, value, kind, graph_module, schema_argument=None):
        return {"name": name, "arg": self._input(value, graph_module, schema_argument), "kind": int(kind)}

    def _input(self, value, graph_module, schema_argument=None):
        """One argument."""
        if isinstance(value, Node):
            return self._node(value, graph_module)
        if isinstance(value, dict):
            return {"as_string_to_argument": {key: self._input(v, graph_module) for key, v in value.items()}}
        if isinstance(value, list | tuple):
            return _list(value, schema_argument)
        written = _constant(value)
        if written is None:
            raise SerializeError(f"Unsupported argument type: {type(value)}")
        return written

    def _node(self, node, graph_module):
        if isinstance(node.meta.get("val"), int | SymInt):
            return {"as_sym_int": {"as_name": node.name}}
        if node.op != "get_attr":
            return {"as_tensor": _tensor(node.name)}
        attribute = getattr(graph_module, node.target)
        if not isinstance(attribute, GraphModule):
            raise SerializeError(f"Unsupported getattr attribute {node.target} with type: {type(attribute)}")
        return {"as_graph": {"name": node.target, "graph": GraphSerializer().serialize_graph(attribute)}}

    def _outputs(self, node):
        """The names of the results: of a list, and of several results, those of the `getitem` nodes."""
        value = node.meta.get("val")
        if isinstance(node.target, OpOverload):
            returns = node.target._operator.schema.returns
            if not returns:
                return []
            if len(returns) == 1 and returns[0].type.is_list:
                return [{"as_tensors": [self._element(node, i, v)["as_tensor"] for i, v in enumerate(value)]}]
            if len(returns) == 1:
                return [self._result(node.name, value)]
        elif isinstance(value, Tensor) or node.target in SYM_OP_NAMES:
            return [self._result(node.name, value)]
        return [self._element(node, i, v) for i, v in enumerate(value)]

    def _element(self, node, index, value):
        users = [user.name for user in node.users if user.target is operator.getitem and user.args[1] == index]
        return self._result(users[0] if users else f"{node.name}_unused_{index}", value)


def _list(values, schema_argument):
    """A list: of numbers, of strings, of tensors, of tensors and None."""
    if not values:
        return {_empty_list_key(schema_argument): []}
    for cls, key in ((bool, "as_bools"), (int, "as_ints"), (str, "as_strings")):
        if all(type(v) is cls for v in values):
            return {key: list(values)}
    if all(type(v) is float for v in values):
        return {"as_floats": [_float(v) for v in values]}
    if any(isinstance(v, Node) and v.op == "get_attr" for v in values):
        raise SerializeError("getattr nodes containing tensors should not appear in the graph")
    if any(isinstance(v, Node) and isinstance(v.meta["val"], int | SymInt) for v in values):
        return {"as_sym_ints": [{"as_name": v.name} if isinstance(v, Node) else {"as_int": v} for v in values]}
    if all(isinstance(v, Node) for v in values):
        return {"as_tensors": [_tensor(v.name) for v in values]}
    if all(isinstance(v, Node) or v is None for v in values):
        optional = [{"as_none": True} if v is None else {"as_tensor": _tensor(v.name)} for v in values]
        return {"as_optional_tensors": optional}
    raise SerializeError(f"Unsupported list/tuple argument type: {[type(v) for v in values]}")


def _empty_list_key(schema_argument):
    base = str(schema_argument.type) if schema_argument is not None else ""
    for part, key in (("bool", "as_bools"), ("int", "as_ints"), ("float", "as_floats"), ("str", "as_strings")):
        if part in base.lower():
            return key
    return "as_tensors"


def _metadata(node):
    metadata = {}
    if node.meta.get("stack_trace"):
        metadata["stack_trace"] = node.meta["stack_trace"]
    if node.meta.get("nn_module_stack"):
        stack = [f"{key},{path},{kind}" for key, (path, kind) in node.meta["nn_module_stack"].items()]
        metadata["nn_module_stack"] = ST_DELIMITER.join(stack)
    if node.meta.get("torch_fn"):
        metadata["torch_fn"] = ST_DELIMITER.join(node.meta["torch_fn"])
    return metadata


# ---------------------------------------------------------------------------------------------------- the signature

_INPUTS = {
    InputKind.PARAMETER: ("parameter", "parameter_name"),
    InputKind.BUFFER: ("buffer", "buffer_name"),
    InputKind.CONSTANT_TENSOR: ("tensor_constant", "tensor_constant_name"),
}
_OUTPUTS = {
    OutputKind.LOSS_OUTPUT: ("loss_output", None),
    OutputKind.BUFFER_MUTATION: ("buffer_mutation", "buffer_name"),
    OutputKind.PARAMETER_MUTATION: ("parameter_mutation", "parameter_name"),
    OutputKind.GRADIENT_TO_PARAMETER: ("gradient_to_parameter", "parameter_name"),
    OutputKind.GRADIENT_TO_USER_INPUT: ("gradient_to_user_input", "user_input_name"),
    OutputKind.USER_INPUT_MUTATION: ("user_input_mutation", "user_input_name"),
}


def _input_spec(spec):
    if spec.kind == InputKind.USER_INPUT:
        if isinstance(spec.arg, ConstantArgument):
            return {"constant_input": {"name": spec.arg.name, "value": _constant(spec.arg.value)}}
        return {"user_input": {"arg": _argument_spec(spec.arg)}}
    key, target = _INPUTS[spec.kind]
    persistent = {"persistent": spec.persistent} if spec.kind == InputKind.BUFFER else {}
    return {key: {"arg": _tensor(spec.arg.name), target: spec.target, **persistent}}


def _output_spec(spec):
    if spec.kind == OutputKind.USER_OUTPUT:
        return {"user_output": {"arg": _argument_spec(spec.arg)}}
    key, target = _OUTPUTS[spec.kind]
    return {key: {"arg": _tensor(spec.arg.name), **({target: spec.target} if target else {})}}


def _module_call_entry(entry):
    signature = entry.signature
    if signature is not None:
        signature = {
            "inputs": [_argument_spec(arg) for arg in signature.inputs],
            "outputs": [_argument_spec(arg) for arg in signature.outputs],
            "in_spec": treespec_dumps(signature.in_spec, TREESPEC_VERSION),
            "out_spec": treespec_dumps(signature.out_spec, TREESPEC_VERSION),
            "forward_arg_names": signature.forward_arg_names or None,
        }
    return {"fqn": entry.fqn, "signature": signature}
