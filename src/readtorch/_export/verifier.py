"""What must hold of an exported program. In PyTorch: `torch/_export/verifier.py`.

Each `ExportedProgram` is checked when it is made. A verifier stands for a dialect:

    TRAINING    what `export` traces: operators may write in place, compositions are whole
    ATEN        what `run_decompositions` makes: operators are functional
"""

import math
import operator

import readtorch
from readtorch._ops import HigherOrderOperator, OpOverload
from readtorch._tensor import Tensor
from readtorch.c10.sym_int import SYM_TYPES
from readtorch.export.graph_signature import ConstantArgument, InputKind, TensorArgument
from readtorch.fx import GraphModule, Node
from readtorch.nn import Parameter

BUILTIN_OPS = (
    *(
        operator.getitem,
        operator.add,
        operator.mul,
        operator.sub,
        operator.truediv,
        operator.ge,
        operator.le,
        operator.gt,
    ),
    *(
        operator.lt,
        operator.eq,
        operator.ne,
        operator.floordiv,
        operator.mod,
        operator.and_,
        operator.or_,
        operator.not_,
    ),
    *(
        operator.pow,
        operator.neg,
        operator.abs,
        operator.lshift,
        operator.rshift,
        math.ceil,
        math.floor,
        math.trunc,
        round,
    ),
)


SYM_FUNCTIONS = (readtorch.sym_int, readtorch.sym_float, readtorch.sym_max, readtorch.sym_min, readtorch.sym_not)


class SpecViolationError(Exception):
    """An exported program is not what it has to be."""


class Verifier:
    """Checks programs of a dialect. `check(ep)` raises SpecViolationError."""

    dialect = "ATEN"

    def check(self, ep):
        self._check_graph_module(ep.graph_module)
        _verify_exported_program_module_call_graph(ep)
        _verify_exported_program_signature(ep)

    def _check_graph_module(self, gm):
        for module in gm.modules():
            if isinstance(module, GraphModule):
                module.graph.lint()
                for node in module.graph.nodes:
                    self._check_node(module, node, is_toplevel=module is gm)

    def _check_node(self, module, node, is_toplevel):
        if node.op in ("call_module", "call_method"):
            raise SpecViolationError(f"call_module is not valid: got a class '{node.target}' ")
        if node.op in ("call_function", "placeholder"):
            _check_val(node)
        if node.op == "call_function":
            self._check_valid_op(node.target)
        if node.op == "get_attr":
            _check_attribute(module, node, (GraphModule,) if is_toplevel else (GraphModule, Parameter, Tensor))

    def _check_valid_op(self, op):
        if not isinstance(op, OpOverload | HigherOrderOperator) and op not in (*BUILTIN_OPS, *SYM_FUNCTIONS):
            raise SpecViolationError(
                f"Operator '{op}' is not an allowed operator type: {(OpOverload, HigherOrderOperator)}\n"
                f"Valid builtin ops: {list(BUILTIN_OPS)}"
            )
        if isinstance(op, OpOverload) and self.dialect != "TRAINING" and not is_functional(op):
            raise SpecViolationError(f"operator '{op}' is not functional")


class TrainingIRVerifier(Verifier):
    dialect = "TRAINING"


def load_verifier(dialect):
    """The class for a dialect. Raises KeyError for one that is not known."""
    return {"": Verifier, "ATEN": Verifier, "TRAINING": TrainingIRVerifier}[dialect]


def is_functional(op):
    return not any(a.type.writes for a in op._operator.schema.arguments)


def _check_val(node):
    if "val" not in node.meta:
        if node.op == "call_function" and isinstance(node.target, OpOverload) and not node.target._schema.returns:
            return
        raise SpecViolationError(f"Node.meta {node.name} is missing val field.")
    if not _is_correct_val(node.meta["val"]):
        raise SpecViolationError(f"Node.meta {node.name} has invalid val field {node.meta['val']}")


def _is_correct_val(val):
    if isinstance(val, list | tuple):
        return all(map(_is_correct_val, val))
    return val is None or isinstance(val, (int, bool, str, float, Tensor, *SYM_TYPES))


def _check_attribute(module, node, allowed):
    value = module
    for i, atom in enumerate(node.target.split(".")):
        if not hasattr(value, atom):
            raise RuntimeError(f"Node referenced nonexistent target {'.'.join(node.target.split('.')[:i])}")
        value = getattr(value, atom)
    if not isinstance(value, allowed):
        raise SpecViolationError(
            f"Invalid get_attr type {type(value)} on target {node.target}. \nValid get_attr types: {allowed}"
        )


def _verify_exported_program_module_call_graph(ep):
    names = {node.name for node in ep.graph.nodes}
    for entry in ep.module_call_graph:
        if entry.signature is None:
            continue
        for which, args in (("Input", entry.signature.inputs), ("Output", entry.signature.outputs)):
            for arg in args:
                if arg.name and arg.name not in names:
                    raise SpecViolationError(f"{which} {arg.name} does not exist in the graph.")


# ---------------------------------------------------------------------------------------------------- the signature


def _verify_exported_program_signature(ep):
    signature = ep.graph_signature
    _check_count(
        [node.name for node in ep.graph.nodes if node.op == "placeholder"],
        [spec.arg.name for spec in signature.input_specs],
        "Number of graph inputs ({}) does not match number of inputs in the graph signature ({})\n"
        "Placeholders missing input_specs: {}\nInput_specs missing placeholders: {}",
    )
    placeholders = (node for node in ep.graph.nodes if node.op == "placeholder")
    for spec, node in zip(signature.input_specs, placeholders):
        if not isinstance(spec.arg, ConstantArgument) and spec.arg.name != node.name:
            raise SpecViolationError(f"Input spec name {spec.arg.name} does not match node name {node.name}")
        if spec.kind != InputKind.USER_INPUT:
            _check_state(spec, ep)
    output = list(ep.graph.nodes)[-1]
    outputs = [arg.name if isinstance(arg, Node) else arg for arg in output.args[0]]
    _check_count(
        outputs,
        [spec.arg.name for spec in signature.output_specs],
        "Number of output nodes {} is different Than the number of outputs specified by the graph signature: {}\n"
        "Nodes missing output_specs: {}\nOutput_specs missing nodes: {}",
    )
    _check_outputs(outputs, signature)


def _check_count(nodes, specs, message):
    if len(nodes) != len(specs):
        missing = set(nodes) - set(specs), set(specs) - set(nodes)
        raise SpecViolationError(message.format(len(nodes), len(specs), *missing))


_KINDS = {InputKind.PARAMETER: "Parameter", InputKind.BUFFER: "Buffer", InputKind.CONSTANT_TENSOR: "Constant tensor"}


def _check_state(spec, ep):
    """That the program has the tensor that an input stands for, where tensors of its kind are."""
    if spec.kind not in _KINDS:
        raise SpecViolationError(f"Unknown InputKind {spec.kind}.")
    kind, target = _KINDS[spec.kind], spec.target
    if not isinstance(spec.arg, TensorArgument):
        raise SpecViolationError(f"{kind} {spec.arg.name} is not a tensor argument. Found {spec.arg} instead.")
    if target is None:
        raise SpecViolationError(f"InputSpec for {spec.arg.name} has no target.")
    if spec.kind == InputKind.CONSTANT_TENSOR:
        if target not in ep.constants:
            raise SpecViolationError(f"Constant tensor {target} is not in the constants dictionary.")
    elif spec.kind == InputKind.PARAMETER:
        if target not in ep.state_dict:
            raise SpecViolationError(f"Parameter {target} is not in the state dict.")
        if not isinstance(ep.state_dict[target], Parameter):
            raise SpecViolationError(
                f"State dict entry for parameter {target} is not an instance of torch.nn.Parameter."
            )
    elif spec.persistent and target not in ep.state_dict and target not in ep.constants:
        raise SpecViolationError(f"Buffer {target} is not in the state dict.")
    elif spec.persistent is False and target in ep.state_dict:
        raise SpecViolationError(f"Non-persistent buffer {target} is in the state dict, it should not be.")


def _check_outputs(outputs, signature):
    """New values come first, and are for something that there is; then the user's outputs, in order."""
    written = {
        "Buffer": (signature.buffers_to_mutate, signature.buffers),
        "Parameter": (signature.parameters_to_mutate, signature.parameters),
        "User input": (signature.user_inputs_to_mutate, signature.user_inputs),
    }
    end = sum(len(mutations) for mutations, _ in written.values())
    for name in outputs[:end]:
        kind, mutations, available = next(((k, m, a) for k, (m, a) in written.items() if name in m), (None,) * 3)
        if kind is None:
            raise SpecViolationError(
                f"Mutation node {name} is neither a buffer nor a user input. "
                f"Buffers to mutate: {signature.buffers_to_mutate}, User inputs to mutate: {signature.user_inputs_to_mutate}"
            )
        if mutations[name] not in available:
            plural = kind.lower() + "s"
            raise SpecViolationError(
                f"{kind} output {name} does not point to a {kind.lower()} that exists. \n"
                f"Dict of {plural} that are mutated, in order: {mutations} \n{kind} nodes available: {available} \n"
            )
    for node, name in zip(outputs[end:], signature.user_outputs):
        if node != name:
            raise SpecViolationError(
                f"User output {node} is not in the correct order or is not found in the "
                f"exported program's user_output list: {signature.user_outputs}. "
            )
