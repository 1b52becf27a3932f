"""How a module becomes a graph. In PyTorch: `torch/export/_trace.py`.

    fake        arguments, parameters and buffers become fake tensors
    capture     with strict=True: Dynamo reads the bytecode, and what it has captured is traced in the module's place
    trace       `make_fx(pre_dispatch=True)`, above autograd: compositions are whole, writes stay writes
    lift        parameters and buffers are inputs already; tensors that the graph holds become inputs
    name        placeholders are called after what they stand for

Sizes that `dynamic_shapes` leaves open are symbols (`_export/non_strict_utils.py`).

What differs from PyTorch: `with torch.no_grad():` inside of `forward` leaves no mark in the graph, nor does
`torch.autocast`, whose casts are there; in PyTorch these regions are graphs of their own (`wrap_with_set_grad_enabled`,
`wrap_with_autocast`). A slice up to a size that is left open, `x[:n]`, says 0 where PyTorch's graph says None.

With strict=True also: placeholders are named after the path by which a tensor was found first, which in PyTorch is now and then another
one (a module with two names; `p___dict_____modules____a___weight` in a module that assigns attributes), and stand in the order of their use, not in
that in which Dynamo came by them. `.item()` is Unsupported. As in PyTorch, a buffer that is assigned (`self.count = self.count + 1`) keeps
its old value when the program runs, and only a warning says so; `self.count.add_(1)` is right.
"""

import contextlib
import functools
import inspect
from types import MappingProxyType
from typing import NamedTuple

import readtorch
from readtorch._dynamo.exc import UserError, UserErrorType
from readtorch._dynamo.functional_export import dynamo_graph_capture_for_export
from readtorch._export.non_strict_utils import make_constraints, make_fake_inputs, produce_guards_and_solve_constraints
from readtorch._export.passes.lift_constants_pass import constant_attrs_of, lift_constants_pass
from readtorch._export.utils import placeholder_naming_pass
from readtorch._export.verifier import TrainingIRVerifier
from readtorch._functorch._aot_autograd.frontend_utils import _detect_attribute_assignment
from readtorch._ops import ops
from readtorch._subclasses.fake_tensor import FakeTensorMode, maybe_get_fake_mode, unset_fake_temporarily
from readtorch._tensor import Tensor
from readtorch.c10.sym_int import SymBool, SymFloat, SymInt
from readtorch.fx.experimental.proxy_tensor import make_fx
from readtorch.fx.experimental.symbolic_shapes import ShapeEnv
from readtorch.fx.passes.runtime_assert import insert_deferred_runtime_asserts
from readtorch.nn import Parameter
from readtorch.nn.utils.stateless import _reparametrize_module
from readtorch.utils._pytree import is_namedtuple_instance, tree_flatten, tree_leaves, tree_map, tree_unflatten

from .dynamic_shapes import AdditionalInputs, ShapesCollection, _check_dynamic_shapes, _combine_args
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from .graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
    _make_argument_spec,
)

aten = ops.aten


def _export(mod, args, kwargs=None, dynamic_shapes=None, strict=False):
    """The work of `export`."""
    args, kwargs, verify = _process_export_inputs(mod, args, kwargs, dynamic_shapes)
    dynamic_shapes = _specification(mod, args, kwargs, dynamic_shapes)
    with _exporting():
        traced = (_strict_export if strict else _non_strict_export)(mod, args, kwargs, dynamic_shapes)
    gm, signature, constants, in_spec, out_spec, sizes = traced
    root = ModuleCallSignature([], [], in_spec, out_spec, _get_forward_arg_names(mod, args, kwargs))
    names = dict(mod.named_modules(remove_duplicate=False))
    program = ExportedProgram(
        root=gm,
        graph=gm.graph,
        graph_signature=signature,
        state_dict=_get_original_state_dict(mod),
        range_constraints=sizes.constraints,
        module_call_graph=[ModuleCallEntry(name, None if name else root) for name in names],
        example_inputs=(args, kwargs),
        constants=constants,
        verifiers=[TrainingIRVerifier],
    )
    program._guards_code = sizes.guards_code
    verify(program)
    return program


@contextlib.contextmanager
def _exporting():
    """`with _exporting():` `compiler.is_exporting()` says so."""
    state = readtorch.compiler._compiling
    before, state.exporting = state.exporting, True
    try:
        yield
    finally:
        state.exporting = before


def _process_export_inputs(mod, args, kwargs, dynamic_shapes):
    """(args, kwargs, a check of the program with other inputs, if the caller gave some)."""
    if not isinstance(args, tuple):
        raise UserError(
            UserErrorType.INVALID_INPUT,
            f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}",
        )
    kwargs = {} if kwargs is None else kwargs
    if is_namedtuple_instance(args):
        args = tuple(args)
    verify = dynamic_shapes.verify if isinstance(dynamic_shapes, AdditionalInputs) else lambda ep: None
    return args, kwargs, verify


def _specification(mod, args, kwargs, dynamic_shapes):
    """Which sizes may change, checked. Raises UserError."""
    if isinstance(dynamic_shapes, AdditionalInputs | ShapesCollection):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    _check_dynamic_shapes(_combine_args(mod, args, kwargs), dynamic_shapes)
    return dynamic_shapes


def _get_original_state_dict(mod):
    """The parameters and persistent buffers themselves, by all of their names."""
    named = _named_state(mod)
    return {name: t for name, t in named.items() if name not in _get_non_persistent_buffers(mod)}


def _named_state(mod):
    return {**dict(mod.named_parameters(remove_duplicate=False)), **dict(mod.named_buffers(remove_duplicate=False))}


def _get_non_persistent_buffers(mod):
    return {
        f"{name}.{buffer}" if name else buffer
        for name, m in mod.named_modules(remove_duplicate=False)
        for buffer in m._non_persistent_buffers_set
    }


def _get_forward_arg_names(mod, args, kwargs):
    """The names of the arguments that `forward` was given; args_0, args_1 for those of *args."""
    signature = inspect.signature(mod.forward)
    names = []
    for name, value in signature.bind_partial(*args).arguments.items():
        is_several = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
        names += [f"{name}_{i}" for i in range(len(value))] if is_several else [name]
    return [*names, *kwargs]


# ------------------------------------------------------------------------------------------------------------ the trace


class Sizes(NamedTuple):
    """What is known of sizes that may change."""

    constraints: dict
    guards_code: list


class FakeInputs(NamedTuple):
    """args, kwargs: with FakeTensors, and SymInts where an int may change; opened: [OpenSize]."""

    fake_mode: FakeTensorMode
    args: tuple
    kwargs: dict
    opened: list


def _fake_inputs(mod, args, kwargs, dynamic_shapes):
    fake_mode = _fake_mode_of(args, kwargs) or FakeTensorMode(
        allow_non_fake_inputs=True, export=True, shape_env=ShapeEnv(), static_shapes=True
    )
    fakify = functools.partial(_fakify, fake_mode)
    return FakeInputs(fake_mode, *make_fake_inputs(mod, args, kwargs, dynamic_shapes, fake_mode, fakify))


def _non_strict_export(mod, args, kwargs, dynamic_shapes):
    """The trace of the module itself: (GraphModule, signature, constants, in_spec, out_spec, Sizes)"""
    inputs, assigned = _fake_inputs(mod, args, kwargs, dynamic_shapes), 0
    state = _fake_state(inputs, _named_state(mod))

    def call(values, args, kwargs):
        nonlocal assigned
        given = dict(zip(state, values))
        with _reparametrize_module(mod, dict(given), tie_weights=True, strict=True, stack_weights=True):
            result = mod(*args, **kwargs)
            assigned = _copy_assigned_buffers(mod, given)
        return result

    with _detect_attribute_assignment(mod):
        gm, out_spec = _traced(mod, call, state, inputs)
    _rename_copies(gm.graph, assigned)
    return _aten_export_artifact(mod, gm, out_spec, state, inputs)


def _strict_export(mod, args, kwargs, dynamic_shapes):
    """The trace of what Dynamo has captured of the module; the same. Inputs are the parameters and buffers that it reads."""
    inputs = _fake_inputs(mod, args, kwargs, dynamic_shapes)
    examples = tree_map(lambda t, fake: fake if isinstance(fake, SymInt) else t, (args, kwargs), inputs[1:3])
    captured = dynamo_graph_capture_for_export(mod, inputs.fake_mode)(*examples)
    names = sorted(captured.state, key=lambda name: _place_among_inputs(name, captured.state[name]))
    state = _fake_state(inputs, {name: captured.state[name] for name in names})

    def call(values, args, kwargs):
        given = dict(zip(state, values))
        return captured.forward([given[name] for name in captured.state], mod, args, kwargs)

    gm, out_spec = _traced(mod, call, state, inputs)
    return _aten_export_artifact(mod, gm, out_spec, state, inputs, captured.state)


def _place_among_inputs(name, t):
    """Parameters stand first, and what is not in the module before what is."""
    return not isinstance(t, Parameter), not name.startswith("G____import_")


def _fake_state(inputs, tensors):
    return {name: inputs.fake_mode.from_tensor(t, static_shapes=True) for name, t in tensors.items()}


def _aten_export_artifact(mod, gm, out_spec, state, inputs, captured=MappingProxyType({})):
    """What is left to do with a trace. captured: {name: tensor}, the state that Dynamo has found, by the names that it gave."""
    fake_mode, opened, constant_attrs = inputs.fake_mode, inputs.opened, constant_attrs_of(mod)
    flat_args, in_spec = tree_flatten((inputs.args, inputs.kwargs))
    produce_guards_and_solve_constraints(fake_mode.shape_env, opened)
    sizes = Sizes(make_constraints(fake_mode.shape_env, opened), fake_mode.shape_env.guards_code())
    _set_missing_meta_vals(gm, flat_args, len(state))
    signature = _make_signature(gm, mod, state)
    constants = lift_constants_pass(gm, signature, constant_attrs, fake_mode)
    _rewrite_dynamo_tensor_constants(mod, captured, signature)
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "output"):
            node.meta.pop("nn_module_stack", None)
            node.meta.pop("stack_trace", None)
    placeholder_naming_pass(gm, signature, mod, inputs.args, inputs.kwargs)
    _preserve_requires_grad(gm, signature, {**constants, **state}, flat_args)
    _restore_names(mod, captured, signature, constant_attrs, constants)
    for name in signature.non_persistent_buffers:
        constants[name] = mod.get_buffer(name)
    return gm, signature, constants, in_spec, out_spec, sizes


def _rewrite_dynamo_tensor_constants(mod, captured, signature):
    """Captured tensors that the module has not registered are constants."""
    registered = {id(t) for t in _named_state(mod).values()}
    for spec in signature.input_specs:
        if spec.target in captured and id(captured[spec.target]) not in registered:
            spec.kind = InputKind.CONSTANT_TENSOR


def _restore_names(mod, captured, signature, constant_attrs, constants):
    """Targets are the names that the module has for captured tensors: of several the first."""
    names = {id(t): name for name, t in reversed(_named_state(mod).items())}
    for spec in signature.input_specs:
        t = captured.get(spec.target)
        if t is None:
            continue
        if spec.kind == InputKind.CONSTANT_TENSOR:
            found = constant_attrs.get(t) or [spec.target]
            constants.update(dict.fromkeys(found, t))
            spec.target = found[0]
        else:
            spec.target = names[id(t)]


def _fake_mode_of(args, kwargs):
    modes = (maybe_get_fake_mode(t) for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor))
    return next((mode for mode in modes if mode is not None), None)


def _fakify(fake_mode, t):
    if isinstance(t, int | float | bool | str | None):
        return t
    if not isinstance(t, Tensor):
        raise ValueError(
            f"Unsupported input type {type(t)}. "
            "Export only supports pytree containers of basic types (Tensor, int, float, ...) as input. "
            "To register a custom dataclass, use torch.export.register_dataclass. "
            "To register a custom container type, use torch.utils._pytree.register_pytree_node. "
            "To register a constant input, use torch.utils._pytree.register_constant"
        )
    return fake_mode.from_tensor(t)


def _traced(mod, call, state, inputs):
    """(the GraphModule of state and flat arguments, the spec of the result). call(values of the state, args, kwargs): what is traced."""
    flat_args, in_spec = tree_flatten((inputs.args, inputs.kwargs))
    out_spec = None

    def flat_fn(*values):
        nonlocal out_spec
        args, kwargs = tree_unflatten(list(values[len(state) :]), in_spec)
        outs, out_spec = tree_flatten(call(values[: len(state)], args, kwargs))
        return tuple(_checked(outs))

    flat_fn._orig_mod = mod
    with inputs.fake_mode, _restored_grad_mode():
        gm = make_fx(flat_fn, pre_dispatch=True, record_module_stack=True)(*state.values(), *flat_args)
    insert_deferred_runtime_asserts(gm.graph)
    gm.graph.eliminate_dead_code(lambda node: node.target is not aten.detach.default)
    _without_backends(gm.graph)
    _insert_aten_to_metadata_assert_pass(gm.graph)
    return gm, out_spec


def _without_backends(graph):
    """Operators that may use cuDNN are noted not to: PyTorch traces with backends switched off."""
    for node in graph.nodes:
        operator = getattr(node.target, "_operator", None)
        names = [a.name for a in operator.schema.arguments] if operator else []
        place = next((i for i, name in enumerate(names) if name in ("cudnn_enable", "cudnn_enabled")), len(names))
        if place < len(names):
            defaults = [a.default_value for a in node.target._schema.arguments[len(node.args) : place]]
            node.args = (*node.args[:place], *defaults, False, *node.args[place + 1 :])


CONVERSIONS = (aten.to.dtype, aten.to.device, aten.to.dtype_layout)


def _insert_aten_to_metadata_assert_pass(graph):
    """Before each conversion the graph says from which dtype it is: a conversion to the dtype that is there would be no copy."""
    for node in graph.nodes:
        if node.target in CONVERSIONS and "val" in node.args[0].meta:
            val = node.args[0].meta["val"]
            notes = {"dtype": val.dtype, "device": val.device, "layout": val.layout}
            with graph.inserting_before(node):
                check = graph.call_function(aten._assert_tensor_metadata.default, (node.args[0],), notes)
            _copy_origin(node, check)


def _copy_origin(node, other):
    """Note in `other` that it comes from where `node` does."""
    other.meta.update({key: node.meta[key] for key in ("stack_trace", "nn_module_stack") if key in node.meta})


def _checked(outs):
    for i, out in enumerate(outs):
        if not isinstance(out, Tensor | int | float | bool | str | None | SymInt | SymFloat | SymBool):
            raise RuntimeError(
                f"Found {type(out)} in output, which is not a known type. If this type holds tensors, you need to register "
                "a pytree for it. See https://github.com/pytorch/functorch/issues/475 for a brief explanation why. If you "
                "don't need to register a pytree, please leave a comment explaining your use case and we'll make this more "
                f"ergonomic to deal with. (output {i})"
            )
    return outs


def _copy_assigned_buffers(mod, given):
    """`self.count = self.count + 1` in a `forward` is a write to the buffer. Returns how many there are."""
    count = 0
    for name, buffer in mod.named_buffers(remove_duplicate=False):
        if name in given and buffer is not given[name]:
            given[name].copy_(buffer)
            count += 1
    return count


def _rename_copies(graph, count):
    """The last `count` nodes are writes to assigned buffers, which PyTorch adds behind the trace. They belong to the outermost module."""
    if count:
        for node in list(graph.nodes)[-count - 1 : -1]:
            node._rename("copy__default")
            _copy_origin(node.args[1], node)
            if "nn_module_stack" in node.meta:
                node.meta["nn_module_stack"] = dict(list(node.meta["nn_module_stack"].items())[:1])


@contextlib.contextmanager
def _restored_grad_mode():
    before = readtorch.is_grad_enabled()
    try:
        yield
    finally:
        readtorch.set_grad_enabled(before)


# ---------------------------------------------------------------------------------------------------- the signature


def _set_missing_meta_vals(gm, flat_args, num_params_buffers):
    """Numbers and strings that were given are constants of the graph. Nodes that nobody uses may have no note of their value."""
    inputs = gm.graph.find_nodes(op="placeholder")[num_params_buffers:]
    for node, value in zip(inputs, flat_args):
        if not isinstance(value, Tensor):
            node.meta["val"] = value
    for node in gm.graph.nodes:
        if node.op == "call_function" and not node.users and "val" not in node.meta:
            node.meta["val"] = None


def _make_signature(gm, mod, state):
    """The signature before constants are lifted. state: {name: tensor} of parameters and buffers, the first inputs."""
    nodes = gm.graph.find_nodes(op="placeholder")
    non_persistent = _get_non_persistent_buffers(mod)
    specs = [_state_spec(node, name, t, name not in non_persistent) for node, (name, t) in zip(nodes, state.items())]
    specs += [InputSpec(InputKind.USER_INPUT, _make_argument_spec(node), None) for node in nodes[len(state) :]]
    outputs = gm.graph.output_node().args[0]
    output_specs = [OutputSpec(OutputKind.USER_OUTPUT, _output_argument(out), None) for out in outputs]
    return ExportGraphSignature(specs, output_specs)


def _output_argument(out):
    is_constant = getattr(out, "op", None) == "get_attr" and "val" not in out.meta
    return TensorArgument(out.name) if is_constant else _make_argument_spec(out)


def _state_spec(node, name, t, persistent):
    if isinstance(t, Parameter):
        return InputSpec(InputKind.PARAMETER, TensorArgument(node.name), name)
    return InputSpec(InputKind.BUFFER, TensorArgument(node.name), name, persistent)


def _preserve_requires_grad(gm, signature, tensors, flat_args):
    """tensors: those of the state and the constants. Placeholders note whether what they stand for requires grad. The trace has noted tensors without a history."""
    user_inputs = iter(flat_args)
    for node, spec in zip(gm.graph.find_nodes(op="placeholder"), signature.input_specs):
        t = next(user_inputs) if spec.kind == InputKind.USER_INPUT else tensors[spec.target]
        if isinstance(t, Tensor):
            with unset_fake_temporarily():
                node.meta["val"].requires_grad_(t.requires_grad)
