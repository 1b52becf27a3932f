"""An exported program, read from json. In PyTorch: `torch/_export/serde/serialize.py`, the half that reads.

Note [ What a hostile program cannot do ]

A file of an exported program comes from anywhere, and its graph becomes Python code. PyTorch's own reader unpickles what it finds. Here
nothing is imported or called that the file names:

- The json is checked against the schema first.
- A target is an operator that is registered, or one of a few that take graphs. No other name is looked up.
- Names of nodes, arguments and keywords must be identifiers: generated code holds them. All else stands in the code as a constant.
- The nesting of arguments is written by names of containers, of which a program may register more. What those of PyTorch would import, members
  of enumerations and factories of defaultdicts, is refused, but for a few builtin types.
- Sizes and strides of tensors lie within the bytes that are there.
- Expressions of sizes, and guards, are parsed and have few kinds of parts: see `sym_expr.py`.
- Example inputs are loaded with weights_only=True.
"""

import json
import keyword
import operator

import readtorch
from readtorch._export.verifier import SpecViolationError, load_verifier
from readtorch._ops import _higher_order_ops, ops
from readtorch._subclasses import FakeTensorMode
from readtorch._tensor import Tensor
from readtorch.aten.dispatcher import registry
from readtorch.c10.sym_int import SymInt, hint_of
from readtorch.export.exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from readtorch.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from readtorch.fx import Graph, GraphModule
from readtorch.nn import Module
from readtorch.utils._pytree import keystr, tree_leaves_with_path, tree_unflatten, treespec_loads

from .schema import LAYOUTS, MEMORY_FORMATS, SCALAR_TYPES, SCHEMA_VERSION, ArgumentKind, SerializeError, checked
from .serialize import OPSET_VERSION, ST_DELIMITER
from .sym_expr import SYM_OPS, SymbolReader, checked_guard, sym_ints

_MOST_DIMENSIONS = 64
_FACTORIES = {
    "list": list,
    "dict": dict,
    "tuple": tuple,
    "set": set,
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
}


def deserialize(data, state_dict, constants, example_inputs, expected_opset_version=None):
    """The ExportedProgram. data: its json, bytes. Raises SerializeError for what is none."""
    program = checked("ExportedProgram", parsed(data, "the program"))
    _check_opset(program["opset_version"], {"aten": OPSET_VERSION, **(expected_opset_version or {})})
    major = program["schema_version"]["major"]
    if major != SCHEMA_VERSION[0]:
        raise SerializeError(
            f"Serialized schema version {program['schema_version']} does not match our current schema version {SCHEMA_VERSION}."
        )
    signature = _signature(program["graph_module"]["signature"])
    symbols = SymbolReader(sym_ints(program["graph_module"]["graph"]), program["range_constraints"])
    guards_code = [checked_guard(text) for text in program["guards_code"] or []]
    reader = GraphReader(FakeTensorMode(allow_non_fake_inputs=True, export=True, shape_env=symbols.env), symbols)
    gm = reader.read(program["graph_module"]["graph"], signature)
    try:
        loaded = ExportedProgram(
            root=gm,
            graph=gm.graph,
            graph_signature=signature,
            state_dict=state_dict,
            range_constraints=symbols.range_constraints,
            module_call_graph=[_module_call_entry(entry) for entry in program["graph_module"]["module_call_graph"]],
            example_inputs=example_inputs,
            constants=constants,
            verifiers=[_verifier(dialect) for dialect in program["verifiers"] or [""]],
        )
        loaded._guards_code = guards_code
        _note_sources(loaded, symbols.env)
        return loaded
    except (
        SpecViolationError,
        AssertionError,
        LookupError,
        AttributeError,
        ValueError,
        RuntimeError,
        SyntaxError,
    ) as error:
        raise SerializeError(f"the parts of the program do not fit each other: {error}") from error


def _note_sources(ep, env):
    """How guards name the sizes of inputs, for what finds more guards: `run_decompositions`."""
    signature = ep.module_call_graph[0].signature
    specs = zip(ep.graph.find_nodes(op="placeholder"), ep.graph_signature.input_specs)
    nodes = [node for node, spec in specs if spec.kind == InputKind.USER_INPUT]
    args, kwargs = tree_unflatten(nodes, signature.in_spec)
    names = signature.forward_arg_names or [f"arg_{i}" for i in range(len(args))] + list(kwargs)
    for path, node in tree_leaves_with_path({**dict(zip(names, args)), **kwargs}):
        val, source = node.meta["val"], f"L{keystr(path)}"
        numbers = {f"{source}.size()[{i}]": n for i, n in enumerate(val.shape)} if isinstance(val, Tensor) else {}
        for name, number in (numbers or {source: val}).items():
            if isinstance(number, SymInt) and number.node.expr.symbol is not None:
                env.var_to_sources[number.node.expr.symbol].append(name)


def _check_opset(found, expected):
    for name, version in expected.items():
        if name in found and found[name] > version:
            raise SerializeError(f"the program uses version {found[name]} of {name}: readtorch knows {version}")


def parsed(data, what):
    """The object that json stands for."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SerializeError(f"{what} is no json: {error}") from error


def identifier(name, what):
    """`name`, which may stand in generated code. Raises SerializeError."""
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("__"):
        raise SerializeError(f"{what} {name!r} is no name that a graph can have")
    return name


def _verifier(dialect):
    try:
        return load_verifier(dialect)
    except KeyError:
        raise SerializeError(f"{dialect!r} is no dialect of programs") from None


def _only(union):
    """(key, value) of a union."""
    return next(iter(union.items()))


def _inverse(names):
    return {number: getattr(readtorch, name) for name, number in names.items() if hasattr(readtorch, name)}


_DTYPES, _LAYOUTS, _MEMORY_FORMATS = map(_inverse, (SCALAR_TYPES, LAYOUTS, MEMORY_FORMATS))


def _looked_up(table, number, what):
    if number not in table:
        raise SerializeError(f"{number} is no {what} that readtorch has")
    return table[number]


def _device(record):
    try:
        return readtorch.device(record["type"], *([] if record["index"] is None else [record["index"]]))
    except (RuntimeError, TypeError) as error:
        raise SerializeError(f"no device: {error}") from error


# --------------------------------------------------------------------------------------------------- sizes of tensors


class TensorMeta:
    """Sizes, strides, offset, dtype and device of a tensor, from their record. Raises SerializeError for impossible ones."""

    def __init__(self, record, what, symbols=None):
        self.what, self.symbols = what, symbols
        self.sizes, self.strides = self._ints(record["sizes"]), self._ints(record["strides"])
        (self.offset,) = self._ints([record["storage_offset"]])
        if len(self.sizes) != len(self.strides) or len(self.sizes) > _MOST_DIMENSIONS:
            raise SerializeError(f"{what} has {len(self.sizes)} sizes and {len(self.strides)} strides")
        self.requires_grad = record["requires_grad"]
        self.dtype = _looked_up(_DTYPES, record["dtype"], "dtype")
        self.device = _device(record["device"])
        if _looked_up(_LAYOUTS, record["layout"], "layout") is not readtorch.strided:
            raise SerializeError(f"{what} is sparse")

    def _ints(self, records):
        if self.symbols is None and any("as_int" not in record for record in records):
            raise SerializeError(f"{self.what} is a tensor of the file, and its sizes are not numbers")
        values = [record["as_int"] if "as_int" in record else self.symbols.number(record) for record in records]
        if any(not 0 <= hint_of(value) < 2**62 for value in values):
            raise SerializeError(f"{self.what} has impossible sizes: {values}")
        return values

    @property
    def reach(self):
        """How many elements its memory must have."""
        sizes, strides = map(hint_of, self.sizes), map(hint_of, self.strides)
        steps = [(size - 1, stride) for size, stride in zip(sizes, strides)]
        return 0 if any(n < 0 for n, _ in steps) else hint_of(self.offset) + 1 + sum(n * stride for n, stride in steps)

    def fake(self, fake_mode):
        """A fake tensor like it."""
        if self.reach >= 2**62:
            raise SerializeError(f"{self.what} has impossible sizes: {self.sizes}")
        with fake_mode:
            made = readtorch.empty_strided(self.sizes, self.strides, dtype=self.dtype, device=self.device)
        if self.requires_grad and not (self.dtype.is_floating_point or self.dtype.is_complex):
            raise SerializeError(f"{self.what} cannot require grad")
        return made.requires_grad_(self.requires_grad)


# -------------------------------------------------------------------------------------------------------- the graph


class GraphReader:
    """Makes one graph. Graphs that an operator takes are made by others, and become attributes of `root`."""

    def __init__(self, fake_mode, symbols):
        self.fake_mode, self.symbols = fake_mode, symbols
        self.graph, self.root = Graph(), Module()
        self.nodes = {}  # name -> Node
        self.metas = {}  # name -> the record of its sizes
        self.numbers = {}  # name -> the record of a number

    def read(self, record, signature=None):
        """The GraphModule. signature: of the graph, which names those of its placeholders that are constants."""
        self.metas, self.numbers = record["tensor_values"], record["sym_int_values"]
        for i, given in enumerate(record["inputs"]):
            self._placeholder(i, given, signature)
        for node in record["nodes"]:
            self._node(node)
        outputs = [self._value(out) for out in record["outputs"]]
        self.graph.output(outputs[0] if record["is_single_tensor_return"] else tuple(outputs))
        for node in reversed(self.graph.nodes):
            if node.target is operator.getitem and not node.users and "_unused_" in node.name:
                self.graph.erase_node(node)
        return GraphModule(self.root, self.graph)

    def _placeholder(self, i, given, signature):
        key, value = _only(given)
        name = value["name"] if key == "as_tensor" else value.get("as_name") if key == "as_sym_int" else None
        if name is not None:
            node = self._named(self.graph.placeholder(identifier(name, "the input")), name)
            node.meta["val"] = self._meta(name)
            return
        if key not in ("as_int", "as_float", "as_bool", "as_none", "as_string"):
            raise SerializeError(f"Invalid input type {key}")
        specs = signature.input_specs if signature is not None else []
        name = (specs[i].arg.name if i < len(specs) else "") or f"arg{i}"
        node = self._named(self.graph.placeholder(identifier(name, "the input")), name)
        node.meta["val"] = self._value(given)

    def _named(self, node, name):
        """The node, which is called `name` whatever Python's builtins are called."""
        if name in self.nodes:
            raise SerializeError(f"two nodes are called {name!r}")
        node.name = name
        self.nodes[name] = node
        return node

    def _meta(self, name):
        if name in self.numbers:
            return self.symbols.number(self.numbers[name])
        if name not in self.metas:
            raise SerializeError(f"the sizes of {name!r} are not noted")
        return TensorMeta(self.metas[name], repr(name), self.symbols).fake(self.fake_mode)

    def _node(self, record):
        target = find_operator(record["target"])
        args, kwargs = [], {}
        for place, given in enumerate(record["inputs"]):
            is_keyword = given["kind"] == ArgumentKind.KEYWORD
            self._check_argument(target, place, given["name"], is_keyword)
            if is_keyword:
                kwargs[identifier(given["name"], "the argument")] = self._value(given["arg"])
            else:
                args.append(self._value(given["arg"]))
        node = self.graph.create_node("call_function", target, tuple(args), kwargs)
        node.meta.update(_metadata(record["metadata"]))
        self._outputs(record, node)

    def _check_argument(self, target, place, name, is_keyword):
        """That an operator has the argument, where it is given."""
        schema = getattr(getattr(target, "_operator", None), "schema", None)
        if schema is None:
            return
        names = [a.name for a in schema.arguments]
        if name not in names or not is_keyword and names[place] != name:
            raise SerializeError(f"{schema.full_name} has no argument {name!r} at place {place}")

    def _outputs(self, record, node):
        """Name the results: the node, or the elements that are taken from it."""
        outputs = [_only(out) for out in record["outputs"]]
        is_higher = record["target"].startswith("torch.ops.higher_order.")
        is_element = is_higher and record["is_hop_single_tensor_return"] is False
        if not outputs:
            return
        if len(outputs) == 1 and not is_element and outputs[0][0] in ("as_tensor", "as_none", "as_sym_int"):
            key, value = outputs[0]
            name = value.get("name", value.get("as_name", "")) if key != "as_none" else None
            if key == "as_none":
                node.meta["val"] = None
            else:
                self._named(node, identifier(name, "the node"))
                node.meta["val"] = self._meta(name)
            return
        if len(outputs) == 1 and outputs[0][0] == "as_tensors":
            outputs = [("as_tensor", value) for value in outputs[0][1]]
            kind = list
        else:
            kind = tuple
        if record["name"] is not None and record["name"] not in self.metas:
            self._named(node, identifier(record["name"], "the node"))
        node.meta["val"] = kind([self._element(node, i, *out) for i, out in enumerate(outputs)])

    def _element(self, node, index, key, value):
        if key == "as_none":
            return None
        if key != "as_tensor":
            raise SerializeError(f"{node.target} returns {key}: only tensors are supported")
        name = identifier(value["name"], "the node")
        element = self._named(self.graph.call_function(operator.getitem, (node, index)), name)
        element.meta.update(node.meta)
        element.meta["val"] = self._meta(name)
        return element.meta["val"]

    def _value(self, argument):
        """What stands for an argument in the graph."""
        key, value = _only(argument)
        if key == "as_none":
            return None
        if key == "as_tensor":
            return self._known(value["name"])
        if key in ("as_tensors", "as_optional_tensors"):
            return [self._known(v["name"]) if "name" in v else self._optional(v) for v in value]
        if key == "as_graph":
            return self._subgraph(value)
        if key in ("as_sym_int", "as_sym_ints"):
            values = [self._sym_int(v) for v in ([value] if key == "as_sym_int" else value)]
            return values[0] if key == "as_sym_int" else values
        if key == "as_string_to_argument":
            return {k: self._value(v) for k, v in value.items()}
        if key == "as_nested_tensors":
            return [[self._known(v["name"]) for v in inner] for inner in value]
        return _constant(key, value)

    def _known(self, name):
        if name not in self.nodes:
            raise SerializeError(f"{name!r} is used before there is such a node")
        return self.nodes[name]

    def _optional(self, union):
        key, value = _only(union)
        return None if key == "as_none" else self._known(value["name"])

    def _sym_int(self, union):
        key, value = _only(union)
        return value if key == "as_int" else self._known(value)

    def _subgraph(self, record):
        name = identifier(record["name"], "the graph")
        if hasattr(self.root, name):
            raise SerializeError(f"two graphs are called {name!r}")
        setattr(self.root, name, GraphReader(self.fake_mode, self.symbols).read(record["graph"]))
        return self.graph.create_node("get_attr", name)


def _constant(key, value):
    if key == "as_scalar_type":
        return _looked_up(_DTYPES, value, "dtype")
    if key == "as_layout":
        return _looked_up(_LAYOUTS, value, "layout")
    if key == "as_memory_format":
        return _looked_up(_MEMORY_FORMATS, value, "memory format")
    if key == "as_device":
        return _device(value)
    if key == "as_complex":
        return complex(value["real"], value["imag"])
    return find_operator(value) if key == "as_operator" else value


def find_operator(name):
    """The operator that `torch.ops.aten.add.Tensor` names, if it is registered. Raises SerializeError."""
    if name in SYM_OPS:
        return SYM_OPS[name]
    parts = name.split(".")
    if parts[:2] == ["torch", "ops"] and len(parts) == 5:
        _, _, namespace, opname, overload = parts
        full_name = f"{namespace}::{opname}" + ("" if overload == "default" else f".{overload}")
        if full_name in registry:
            return getattr(getattr(getattr(ops, namespace), opname), overload)
    if parts[:3] == ["torch", "ops", "higher_order"] and len(parts) == 4 and parts[3] in _higher_order_ops:
        return _higher_order_ops[parts[3]]
    raise SerializeError(f"{name[:200]!r} is no operator that readtorch has")


def _metadata(record):
    """Notes of a node. They are shown, never run."""
    notes = {}
    if "stack_trace" in record:
        notes["stack_trace"] = record["stack_trace"]
    if "torch_fn" in record:
        notes["torch_fn"] = tuple(record["torch_fn"].split(ST_DELIMITER))
    if "nn_module_stack" in record:
        entries = [entry.split(",", 2) for entry in record["nn_module_stack"].split(ST_DELIMITER)]
        notes["nn_module_stack"] = {entry[0]: tuple(entry[1:]) for entry in entries if len(entry) == 3}
    return notes


# ---------------------------------------------------------------------------------------------------- the signature

_INPUTS = {
    "parameter": (InputKind.PARAMETER, "parameter_name"),
    "buffer": (InputKind.BUFFER, "buffer_name"),
    "tensor_constant": (InputKind.CONSTANT_TENSOR, "tensor_constant_name"),
}
_OUTPUTS = {
    "loss_output": (OutputKind.LOSS_OUTPUT, None),
    "buffer_mutation": (OutputKind.BUFFER_MUTATION, "buffer_name"),
    "parameter_mutation": (OutputKind.PARAMETER_MUTATION, "parameter_name"),
    "gradient_to_parameter": (OutputKind.GRADIENT_TO_PARAMETER, "parameter_name"),
    "gradient_to_user_input": (OutputKind.GRADIENT_TO_USER_INPUT, "user_input_name"),
    "user_input_mutation": (OutputKind.USER_INPUT_MUTATION, "user_input_name"),
}


def _signature(record):
    return ExportGraphSignature(
        [_input_spec(*_only(spec)) for spec in record["input_specs"]],
        [_output_spec(*_only(spec)) for spec in record["output_specs"]],
    )


def _argument(union):
    key, value = _only(union)
    if key == "as_tensor":
        return TensorArgument(value["name"])
    if key == "as_sym_int" and "as_name" in value:
        return SymIntArgument(value["as_name"])
    if key in ("as_none", "as_int", "as_float", "as_string", "as_bool"):
        return ConstantArgument("", None if key == "as_none" else value)
    raise SerializeError(f"{key} is no input or output of a program that readtorch has")


def _input_spec(key, record):
    if key == "user_input":
        return InputSpec(InputKind.USER_INPUT, _argument(record["arg"]), None)
    if key == "constant_input":
        value = _argument(record["value"]).value
        return InputSpec(InputKind.USER_INPUT, ConstantArgument(record["name"], value), None)
    kind, target = _INPUTS[key]
    return InputSpec(kind, TensorArgument(record["arg"]["name"]), _path(record[target]), record.get("persistent"))


def _output_spec(key, record):
    if key == "user_output":
        return OutputSpec(OutputKind.USER_OUTPUT, _argument(record["arg"]), None)
    kind, target = _OUTPUTS[key]
    return OutputSpec(kind, TensorArgument(record["arg"]["name"]), record[target] if target else None)


def _path(name):
    """The name of a parameter, such as layers.0.weight: generated code holds it."""
    for atom in name.split("."):
        if not atom.replace("_", "a").isalnum() or keyword.iskeyword(atom) or atom.startswith("__"):
            raise SerializeError(f"{name!r} is no name of a parameter or buffer")
    return name


def _module_call_entry(record):
    signature = record["signature"]
    if signature is not None:
        names = signature["forward_arg_names"]
        in_spec, out_spec = treespec(signature["in_spec"]), treespec(signature["out_spec"])
        if record["fqn"] == "":
            _check_in_spec(in_spec)
        signature = ModuleCallSignature(
            inputs=[_argument(arg) for arg in signature["inputs"]],
            outputs=[_argument(arg) for arg in signature["outputs"]],
            in_spec=in_spec,
            out_spec=out_spec,
            forward_arg_names=names and [identifier(name, "the argument") for name in names],
        )
    return ModuleCallEntry(record["fqn"], signature)


def _check_in_spec(spec):
    """That a program is called with (args, kwargs)."""
    kinds = [child.type for child in spec.children()]
    if spec.type is not tuple or kinds != [tuple, dict]:
        raise SerializeError("the program is not called with arguments and keyword arguments")
    for name in spec.child(1).context:
        identifier(name, "the keyword")


def treespec(text):
    """How a value is nested. See Note [ What a hostile program cannot do ]."""
    data = parsed(text, "the nesting of a value")
    if not (isinstance(data, list) and len(data) == 2):
        raise SerializeError("the nesting of a value is not written as it must be")
    _check_nesting(data[1])
    try:
        return treespec_loads(text)
    except (ValueError, KeyError, TypeError, NotImplementedError, RecursionError, AttributeError) as error:
        raise SerializeError(f"the nesting of a value is not known: {error}") from error


def _check_nesting(node):
    if not isinstance(node, dict) or not isinstance(node.get("children_spec"), list):
        raise SerializeError("the nesting of a value is not written as it must be")
    context = node.get("context")
    if "__enum__" in json.dumps(context):
        raise SerializeError("the nesting of a value names a member of an enumeration, which would have to be imported")
    if node.get("type") == "collections.defaultdict":
        is_builtin = isinstance(context, dict) and context.get("default_factory_module") == "builtins"
        if not is_builtin or context.get("default_factory_name") not in _FACTORIES:
            raise SerializeError(
                "the nesting of a value names a factory of a defaultdict, which would have to be imported"
            )
    for child in node["children_spec"]:
        _check_nesting(child)
