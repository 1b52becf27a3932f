"""How a module becomes a graph. In PyTorch: `torch/export/_trace.py`.

    fake        arguments, parameters and buffers become fake tensors
    trace       `make_fx(pre_dispatch=True)`, above autograd: compositions are whole, writes stay writes
    lift        parameters and buffers are inputs already; tensors that the graph holds become inputs
    name        placeholders are called after what they stand for

Sizes that `dynamic_shapes` leaves open are symbols (`_export/non_strict_utils.py`).

What differs from PyTorch: `with torch.no_grad():` inside of `forward` leaves no mark in the graph, nor does
`torch.autocast`, whose casts are there; in PyTorch these regions are graphs of their own (`wrap_with_set_grad_enabled`,
`wrap_with_autocast`).
"""

import contextlib
import functools
import inspect
from typing import NamedTuple

import readtorch
from readtorch._dynamo.exc import UserError, UserErrorType
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
from readtorch.utils._pytree import is_namedtuple_instance, tree_flatten, tree_leaves, tree_unflatten

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


def _export(mod, args, kwargs=None, dynamic_shapes=None):
    """The work of `export`."""
    args, kwargs, verify = _process_export_inputs(mod, args, kwargs, dynamic_shapes)
    dynamic_shapes = _specification(mod, args, kwargs, dynamic_shapes)
    gm, signature, constants, in_spec, out_spec, sizes = _non_strict_export(mod, args, kwargs, dynamic_shapes)
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


def _non_strict_export(mod, args, kwargs, dynamic_shapes):
    """(GraphModule, signature, constants, in_spec, out_spec, Sizes)"""
    fake_mode = _fake_mode_of(args, kwargs) or FakeTensorMode(
        allow_non_fake_inputs=True, export=True, shape_env=ShapeEnv(), static_shapes=True
    )
    fakify = functools.partial(_fakify, fake_mode)
    fake_args, fake_kwargs, opened = make_fake_inputs(mod, args, kwargs, dynamic_shapes, fake_mode, fakify)
    state = {name: fake_mode.from_tensor(t, static_shapes=True) for name, t in _named_state(mod).items()}
    constant_attrs = constant_attrs_of(mod)
    flat_args, in_spec = tree_flatten((fake_args, fake_kwargs))
    gm, out_spec = _traced(mod, state, flat_args, in_spec, fake_mode)
    produce_guards_and_solve_constraints(fake_mode.shape_env, opened)
    sizes = Sizes(make_constraints(fake_mode.shape_env, opened), fake_mode.shape_env.guards_code())
    _set_missing_meta_vals(gm, flat_args, len(state))
    signature = _make_signature(gm, mod, state)
    constants = lift_constants_pass(gm, signature, constant_attrs, fake_mode)
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "output"):
            node.meta.pop("nn_module_stack", None)
            node.meta.pop("stack_trace", None)
    placeholder_naming_pass(gm, signature, mod, fake_args, fake_kwargs)
    _preserve_requires_grad(gm, signature, state, constants, flat_args)
    for name in signature.non_persistent_buffers:
        constants[name] = mod.get_buffer(name)
    return gm, signature, constants, in_spec, out_spec, sizes


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


def _traced(mod, state, flat_args, in_spec, fake_mode):
    """(the GraphModule of parameters, buffers and flat arguments, the spec of the result)."""
    out_spec, assigned = None, 0

    def flat_fn(*values):
        nonlocal out_spec, assigned
        given = dict(zip(state, values))
        args, kwargs = tree_unflatten(list(values[len(state) :]), in_spec)
        with _reparametrize_module(mod, dict(given), tie_weights=True, strict=True, stack_weights=True):
            outs, out_spec = tree_flatten(mod(*args, **kwargs))
            assigned = _copy_assigned_buffers(mod, given)
        return tuple(_checked(outs))

    flat_fn._orig_mod = mod
    with fake_mode, _detect_attribute_assignment(mod), _restored_grad_mode():
        gm = make_fx(flat_fn, pre_dispatch=True, record_module_stack=True)(*state.values(), *flat_args)
    insert_deferred_runtime_asserts(gm.graph)
    _rename_copies(gm.graph, assigned)
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
            check.meta.update({key: node.meta[key] for key in ("stack_trace", "nn_module_stack") if key in node.meta})


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
    """The last `count` nodes are writes to assigned buffers, which PyTorch adds behind the trace."""
    if count:
        for node in list(graph.nodes)[-count - 1 : -1]:
            node._rename("copy__default")


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


def _preserve_requires_grad(gm, signature, state, constants, flat_args):
    """Placeholders note whether what they stand for requires grad. The trace has noted tensors without a history."""
    user_inputs = iter(flat_args)
    for node, spec in zip(gm.graph.find_nodes(op="placeholder"), signature.input_specs):
        if spec.kind == InputKind.USER_INPUT:
            t = next(user_inputs)
        else:
            t = (constants if spec.kind == InputKind.CONSTANT_TENSOR else state)[spec.target]
        if isinstance(t, Tensor):
            with unset_fake_temporarily():
                node.meta["val"].requires_grad_(t.requires_grad)
