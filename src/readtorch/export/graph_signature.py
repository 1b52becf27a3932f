"""What the inputs and outputs of an exported graph are. In PyTorch: `torch/export/graph_signature.py`.

An exported graph takes everything as an input and returns everything as an output:

    inputs     parameters · buffers · constants · the user's inputs, flat
    outputs    new values of what is written to · the user's outputs, flat

The signature names, in this order, what each of them is. A graph as `export` traces it writes in place, and has no outputs of the first kind;
`run_decompositions` makes it functional.
"""

from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Any

from readtorch._subclasses.fake_tensor import is_fake
from readtorch.c10.sym_int import SymBool, SymFloat, SymInt

__all__ = [
    "ConstantArgument",
    "CustomObjArgument",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "SymIntArgument",
    "SymFloatArgument",
    "SymBoolArgument",
    "TensorArgument",
]


# ---------------------------------------------------------------------------------------- nodes, by their names


@dataclass
class TensorArgument:
    name: str


@dataclass
class TokenArgument:
    name: str


@dataclass
class SymIntArgument:
    name: str


@dataclass
class SymFloatArgument:
    name: str


@dataclass
class SymBoolArgument:
    name: str


@dataclass
class CustomObjArgument:
    name: str
    class_fqn: str
    fake_val: Any = None


@dataclass
class ConstantArgument:
    """A value that is the same in each call. name: of its placeholder; "" for an output."""

    name: str
    value: int | float | bool | str | None


ArgumentSpec = (
    TensorArgument
    | SymIntArgument
    | SymFloatArgument
    | SymBoolArgument
    | ConstantArgument
    | CustomObjArgument
    | TokenArgument
)


# ------------------------------------------------------------------------------------------- one input, one output


class InputKind(Enum):
    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


@dataclass
class InputSpec:
    """target: the name in the module of a parameter, buffer or constant. persistent: of a buffer, whether it is in the state dict.

    Raises AssertionError for a buffer that does not say so.
    """

    kind: InputKind
    arg: ArgumentSpec
    target: str | None
    persistent: bool | None = None

    def __post_init__(self):
        if self.kind == InputKind.BUFFER and self.persistent is None:
            raise AssertionError("Failed to specify persistent flag on BUFFER.")
        if not isinstance(self.arg, ArgumentSpec):
            raise AssertionError(f"expected valid arg type, got {type(self.arg)}")

    def __str__(self):
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{_target_of(self)}{persistent}"


class OutputKind(Enum):
    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


@dataclass
class OutputSpec:
    """target: what a new value is for, the name in the module of a parameter or buffer, or that of the user's input."""

    kind: OutputKind
    arg: ArgumentSpec
    target: str | None

    def __post_init__(self):
        if not isinstance(self.arg, ArgumentSpec):
            raise AssertionError(f"expected valid arg type, got {self.arg}")

    def __str__(self):
        return f"{self.arg.name}: {self.kind.name}{_target_of(self)}"


def _target_of(spec):
    return "" if spec.target is None else f" target='{spec.target}'"


@dataclass
class ExportBackwardSignature:
    """The names of the outputs that are the loss and gradients: of parameters by name, of the user's inputs by name."""

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


# ------------------------------------------------------------------------------------------------ the signature


@dataclass
class ExportGraphSignature:
    """A spec for each placeholder of the graph and for each of its outputs, in order; and questions about them."""

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    @property
    def parameters(self):
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self):
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self):
        return tuple(s.target for s in self.input_specs if s.kind == InputKind.BUFFER and s.persistent is False)

    @property
    def lifted_tensor_constants(self):
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def lifted_custom_objs(self):
        return self._targets(InputKind.CUSTOM_OBJ)

    def _targets(self, kind):
        return tuple(s.target for s in self.input_specs if s.kind == kind and isinstance(s.target, str))

    @property
    def user_inputs(self):
        """The names of their nodes; the values of those that are constant."""
        specs = [s for s in self.input_specs if s.kind == InputKind.USER_INPUT]
        return tuple(_name_or_value(s.arg, "input specs") for s in specs if not isinstance(s.arg, TokenArgument))

    @property
    def user_outputs(self):
        """The names of their nodes; the values of those that are constant."""
        kinds = (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)
        return tuple(_name_or_value(s.arg, "output specs") for s in self.output_specs if s.kind in kinds)

    @property
    def inputs_to_parameters(self):
        return self._inputs(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self):
        return self._inputs(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self):
        return self._inputs(InputKind.CONSTANT_TENSOR)

    @property
    def inputs_to_lifted_custom_objs(self):
        return self._inputs(InputKind.CUSTOM_OBJ)

    def _inputs(self, kind):
        """name of the node -> name in the module"""
        found = [s for s in self.input_specs if s.kind == kind and isinstance(s.target, str)]
        return MappingProxyType({s.arg.name: s.target for s in found})

    @property
    def buffers_to_mutate(self):
        return self._outputs(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self):
        return self._outputs(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self):
        return self._outputs(OutputKind.USER_INPUT_MUTATION)

    def _outputs(self, kind):
        """name of the node with the new value -> what it is for"""
        found = [s for s in self.output_specs if s.kind == kind and isinstance(s.target, str)]
        return MappingProxyType({s.arg.name: s.target for s in found})

    @property
    def backward_signature(self):
        """Which outputs are the loss and the gradients; None for a graph without a backward."""
        losses = [s.arg.name for s in self.output_specs if s.kind == OutputKind.LOSS_OUTPUT]
        if len(losses) > 1:
            raise AssertionError("multiple LOSS_OUTPUT specs found")
        if not losses:
            return None
        return ExportBackwardSignature(
            loss_output=losses[0],
            gradients_to_parameters=dict(self._outputs(OutputKind.GRADIENT_TO_PARAMETER)),
            gradients_to_user_inputs=dict(self._outputs(OutputKind.GRADIENT_TO_USER_INPUT)),
        )

    @property
    def assertion_dep_token(self):
        return None

    @property
    def input_tokens(self):
        return tuple(s.arg.name for s in self.input_specs if s.kind == InputKind.TOKEN)

    @property
    def output_tokens(self):
        return tuple(s.arg.name for s in self.output_specs if s.kind == OutputKind.TOKEN)

    def replace_all_uses(self, old, new):
        """Let the specs that name the node `old` name the node `new`. Raises AssertionError for anything but names."""
        for which, name in (("old", old), ("new", new)):
            if not isinstance(name, str):
                raise AssertionError(f"expected {which} to be str, got {type(name)}")
        for spec in (*self.output_specs, *self.input_specs):
            if not isinstance(spec.arg, ConstantArgument) and spec.arg.name == old:
                spec.arg.name = new

    def get_replace_hook(self, replace_inputs=False):
        """A function for `GraphModule._set_replace_hook` that keeps the names up to date while nodes are replaced."""

        def hook(old, new, user):
            if user.op == "output" or replace_inputs and old.op == "placeholder":
                self.replace_all_uses(old.name, new)

        return hook

    def __str__(self):
        input_specs = "\n".join(map(str, self.input_specs))
        output_specs = "\n".join(map(str, self.output_specs))
        return f"\n# inputs\n{input_specs}\n\n# outputs\n{output_specs}\n"


def _name_or_value(arg, where):
    if isinstance(arg, ConstantArgument):
        return arg.value
    if isinstance(arg, ArgumentSpec):
        return arg.name
    raise RuntimeError(f"{arg} is not a valid user {where}")


def _make_argument_spec(node, token_names=()):
    """The argument that a node stands for; a plain value, as an output may be, is a constant without a name."""
    if isinstance(node, int | bool | float | str | None):
        return ConstantArgument(name="", value=node)
    if "val" not in node.meta:
        raise AssertionError(f"{node} is not a constant or a node with a 'val' metadata field")
    val = node.meta["val"]
    if is_fake(val):
        return TensorArgument(name=node.name)
    for kind, argument in ((SymInt, SymIntArgument), (SymFloat, SymFloatArgument), (SymBool, SymBoolArgument)):
        if isinstance(val, kind):
            return argument(name=node.name)
    if isinstance(val, int | bool | float | str | None):
        return ConstantArgument(name=node.name, value=val)
    raise AssertionError(
        f"Encountered an unsupported object of type {type(val)} while writing the metadata for exported program"
    )
