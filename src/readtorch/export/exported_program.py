"""`ExportedProgram`: a program as one graph, with all that it needs. In PyTorch: `torch/export/exported_program.py`.

graph_module      the graph: placeholders for parameters, buffers, constants and inputs; operators; a flat tuple
graph_signature   what the placeholders and outputs are
state_dict        the parameters and persistent buffers, the very tensors of the module
constants         other tensors: those that the graph holds, and buffers that are not persistent
call_spec         how a call's arguments and result are nested
"""

import copy
import functools
import operator
from dataclasses import dataclass
from typing import Any, NamedTuple

from readtorch._export.utils import _check_input_constraints_for_graph
from readtorch._export.verifier import Verifier
from readtorch._subclasses.fake_tensor import unset_fake_temporarily
from readtorch.fx import GraphModule
from readtorch.fx.graph import CodeGen
from readtorch.fx.immutable_collections import immutable_dict, immutable_list
from readtorch.utils._pytree import tree_flatten_with_path

from ._tree_utils import is_equivalent, reorder_kwargs
from .decomp_utils import CustomDecompTable
from .graph_signature import (  # noqa: F401  (others find them here)
    ArgumentSpec,
    ConstantArgument,
    CustomObjArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
    TokenArgument,
)

__all__ = ["ExportedProgram", "ModuleCallEntry", "ModuleCallSignature", "default_decompositions"]


@dataclass
class ModuleCallSignature:
    """How a module is called. in_spec: of (args, kwargs). forward_arg_names: of the arguments that `forward` was given."""

    inputs: list
    outputs: list
    in_spec: Any
    out_spec: Any
    forward_arg_names: list[str] | None = None

    def replace_all_uses_with(self, original_node, new_node):
        for arg in (*self.inputs, *self.outputs):
            if arg.name == original_node.name:
                arg.name = new_node.name


@dataclass
class ModuleCallEntry:
    """A module of the program, and how it is called if that is known: it is of the root, ""."""

    fqn: str
    signature: ModuleCallSignature | None = None


class CallSpec(NamedTuple):
    in_spec: Any
    out_spec: Any


def default_decompositions():
    """The table of `run_decompositions`: takes programs apart into core ATen. See `CustomDecompTable`."""
    return CustomDecompTable()


def without_fake_mode(fn):
    """Decorator: no FakeTensorMode that the caller has entered is active."""

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        with unset_fake_temporarily():
            return fn(*args, **kwargs)

    return wrapper


def _fx_collection_equivalence_fn(type1, context1, type2, context2):
    """Whether two nodes of specs are alike: a list as an immutable one, a dict as an immutable one."""
    for kinds in ((dict, immutable_dict), (list, immutable_list)):
        if type1 in kinds and type2 in kinds:
            return context1 == context2
    return type1 is type2 and context1 == context2


def _refuse(name):
    """A property whose value nobody may set."""

    def decorator(getter):
        def setter(self, value):
            raise RuntimeError(f"Unable to set ExportedProgram's {name} attribute.")

        return property(getter, setter, doc=getter.__doc__)

    return decorator


class ExportedProgram:
    """What `export` returns. It is not called: `module()` makes a module that is.

    root: a module, or {name: object}, with what the graph names. verifiers: the first says the dialect. Raises SpecViolationError
    for a graph that does not fit the other arguments.
    """

    def __init__(
        self,
        root,
        graph,
        graph_signature,
        state_dict,
        range_constraints,
        module_call_graph,
        example_inputs=None,
        constants=None,
        *,
        verifiers=None,
    ):
        graph._codegen = CodeGen()
        self._graph_module = GraphModule(root, graph)
        if isinstance(root, GraphModule):
            self._graph_module.meta.update(root.meta)
        if module_call_graph is None:
            raise AssertionError("module_call_graph must not be None")
        _common_getitem_elimination_pass(self._graph_module, graph_signature, module_call_graph)
        self._graph_signature = graph_signature
        self._state_dict = state_dict
        self._range_constraints = range_constraints
        self._module_call_graph = module_call_graph
        self._example_inputs = example_inputs
        self._constants = constants or {}
        self._verifiers = verifiers or [Verifier]
        if not all(issubclass(v, Verifier) for v in self._verifiers):
            raise AssertionError(f"all verifiers must be subclasses of Verifier, got {verifiers}")
        self._guards_code = []
        self.validate()

    # --------------------------------------------------------------------------------------------------- its parts

    @_refuse("graph_module")
    def graph_module(self):
        return self._graph_module

    @_refuse("graph")
    def graph(self):
        return self.graph_module.graph

    @_refuse("graph_signature")
    def graph_signature(self):
        return self._graph_signature

    @_refuse("state_dict")
    def state_dict(self):
        return self._state_dict

    @_refuse("range_constraints")
    def range_constraints(self):
        """{expression of a size that may change: its ValueRanges}"""
        return self._range_constraints

    @_refuse("module_call_graph")
    def module_call_graph(self):
        return self._module_call_graph

    @_refuse("verifier")
    def verifier(self):
        return self._verifiers[0]

    @_refuse("verifiers")
    def verifiers(self):
        return self._verifiers

    @_refuse("dialect")
    def dialect(self):
        """ "TRAINING" of what `export` has traced, "ATEN" of what `run_decompositions` has made."""
        return self._verifiers[0].dialect

    @_refuse("tensor_constants")
    def tensor_constants(self):
        return self._constants

    @_refuse("constants")
    def constants(self):
        return self._constants

    @_refuse("call_spec")
    def call_spec(self):
        """(in_spec, out_spec): how (args, kwargs) and the result are nested."""
        if not self.module_call_graph:
            return CallSpec(in_spec=None, out_spec=None)
        first = self.module_call_graph[0]
        if first.fqn != "":
            raise AssertionError(f"expected first module_call_graph fqn to be empty string, got {first.fqn!r}")
        return CallSpec(in_spec=first.signature.in_spec, out_spec=first.signature.out_spec)

    @property
    def example_inputs(self):
        """(args, kwargs) of the export. May be set to others that are nested in the same way, or to None."""
        return self._example_inputs

    @example_inputs.setter
    def example_inputs(self, value):
        if value is not None:
            is_pair = isinstance(value, tuple) and len(value) == 2
            if not (is_pair and isinstance(value[0], tuple) and isinstance(value[1], dict)):
                raise ValueError(
                    "Example inputs should be a tuple containing example arguments (as a tuple), and example kwargs (as a dictionary)."
                )
            from ._unlift import _check_inputs_match

            _check_inputs_match(*value, self.call_spec.in_spec)
        self._example_inputs = value

    def parameters(self):
        """The module's parameters, one after the other."""
        for _, parameter in self.named_parameters():
            yield parameter

    def named_parameters(self):
        """(name, parameter), in the order of the placeholders."""
        for name in self.graph_signature.parameters:
            yield name, self.state_dict[name]

    def buffers(self):
        """The module's buffers, one after the other."""
        for _, buffer in self.named_buffers():
            yield buffer

    def named_buffers(self):
        """(name, buffer), in the order of the placeholders; those that are not persistent, too."""
        non_persistent = self.graph_signature.non_persistent_buffers
        for name in self.graph_signature.buffers:
            is_constant = name in non_persistent or name not in self.state_dict
            yield name, (self.constants if is_constant else self.state_dict)[name]

    # -------------------------------------------------------------------------------------------------------- calls

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def module(self, check_guards=True):
        """A GraphModule that is called as the exported module was, and has its parameters and buffers.

        check_guards: in the graph, check the sizes of arguments, AssertionError; else before it, RuntimeError. Other arguments,
        or nested in another way: ValueError.
        """
        from ._unlift import _unlift_exported_program_lifted_states

        return _unlift_exported_program_lifted_states(self, check_guards=check_guards)

    def _graph_module_flat_inputs(self, args, kwargs):
        """The inputs of `graph_module` for a call with (args, kwargs), which are checked."""
        flat_args, received_spec = self._get_flat_args_with_check(args, kwargs)
        in_spec = self.call_spec.in_spec
        if in_spec is not None and not is_equivalent(received_spec, in_spec, _fx_collection_equivalence_fn):
            raise ValueError(
                f"Trying to flatten user inputs with exported input tree spec: \n{in_spec}\n"
                f"but actually got inputs with tree spec of: \n{received_spec}"
            )
        return tuple(self._lifted_inputs()) + flat_args

    def _lifted_inputs(self):
        for spec in self.graph_signature.input_specs:
            if spec.kind != InputKind.USER_INPUT:
                in_state = spec.persistent is not False and spec.target in self.state_dict
                yield (self.state_dict if in_state else self.constants)[spec.target]

    def _get_flat_args_with_check(self, args, kwargs):
        if self.call_spec.in_spec is not None:
            kwargs = reorder_kwargs(kwargs, self.call_spec.in_spec)
        flat_args_with_path, received_spec = tree_flatten_with_path((args, kwargs))
        self._check_input_constraints(flat_args_with_path)
        return tuple(arg for _, arg in flat_args_with_path), received_spec

    def _check_input_constraints(self, flat_args_with_path):
        placeholders = self.graph.find_nodes(op="placeholder")
        of_user = [p for p, s in zip(placeholders, self.graph_signature.input_specs) if s.kind == InputKind.USER_INPUT]
        _check_input_constraints_for_graph(of_user, flat_args_with_path, self.range_constraints)

    # ------------------------------------------------------------------------------------------------- other programs

    @without_fake_mode
    def run_decompositions(self, decomp_table=None, decompose_custom_triton_ops=False):
        """The program as operators of core ATen that write to nothing: new values of buffers and inputs are outputs.

        decomp_table: operator -> a function that is traced in its place; {} takes nothing apart but what must be.
        """
        from ._decompose import _decompose_exported_program

        table = default_decompositions() if decomp_table is None else dict(decomp_table)
        return _decompose_exported_program(self, table)

    def _update(self, graph_module, graph_signature, *, state_dict=None, constants=None, verifiers=None):
        """The same program with another graph."""
        program = ExportedProgram(
            root=graph_module,
            graph=graph_module.graph,
            graph_signature=graph_signature,
            state_dict=self.state_dict if state_dict is None else state_dict,
            range_constraints=copy.deepcopy(self.range_constraints),
            module_call_graph=copy.deepcopy(self._module_call_graph),
            example_inputs=self.example_inputs,
            constants=self.constants if constants is None else constants,
            verifiers=self.verifiers if verifiers is None else verifiers,
        )
        program._guards_code = self._guards_code
        return program

    def _num_lifted_params_buffers(self):
        specs = self._graph_signature.input_specs
        return next((i for i, s in enumerate(specs) if s.kind == InputKind.USER_INPUT), len(specs))

    def validate(self):
        """Raises SpecViolationError if the graph and its signature do not fit each other. In PyTorch: `_validate`, too."""
        if not self.verifiers:
            raise AssertionError("ExportedProgram must have at least one verifier.")
        for v in self.verifiers:
            v().check(self)

    _validate = validate

    def __str__(self):
        code = self.graph_module.print_readable(print_output=False, colored=False).replace("\n", "\n    ")
        signature = str(self.graph_signature).replace("\n", "\n    ")
        return (
            f"ExportedProgram:\n    {code}\nGraph signature: {signature}\nRange constraints: {self.range_constraints}\n"
        )


def _common_getitem_elimination_pass(gm, graph_signature, module_call_graph):
    """Let each element of a result be taken once."""
    with gm._set_replace_hook(graph_signature.get_replace_hook()):
        for module in gm.modules():
            if isinstance(module, GraphModule):
                _eliminate_common_getitems(module.graph, module_call_graph)


def _eliminate_common_getitems(graph, module_call_graph):
    first = {}
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target is not operator.getitem:
            continue
        kept = first.setdefault(node.args, node)
        if kept is node:
            continue
        node.replace_all_uses_with(kept)
        for entry in module_call_graph:
            if entry.signature is not None:
                entry.signature.replace_all_uses_with(node, kept)
        graph.erase_node(node)
