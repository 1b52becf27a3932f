"""`ExportedProgram.run_decompositions`. In PyTorch: `torch/export/exported_program.py`.

The program is run again, on fake tensors and under functionalization, and traced below autograd with a table of decompositions. Constants of
the program take part as buffers, so that they stay inputs. A composition that is not in the table, such as `linear`, stays one operator.
"""

import contextlib
import copy

import readtorch
from readtorch._C import DispatchKey, _AutoDispatchBelowAutograd
from readtorch._export.passes.lift_constants_pass import ConstantAttrMap, lift_constants_pass
from readtorch._export.utils import placeholder_naming_pass
from readtorch._functorch._aot_autograd.collect_metadata_analysis import run_functionalized_fw_and_collect_metadata
from readtorch._functorch._aot_autograd.graph_capture import aot_dispatch_base_graph
from readtorch._functorch._aot_autograd.schemas import AOTConfig
from readtorch._ops import ops
from readtorch._subclasses import FakeTensorMode
from readtorch._tensor import Tensor
from readtorch.c10.python_dispatcher_tls import enable_python_dispatcher
from readtorch.c10.sym_int import SymInt
from readtorch.fx import Interpreter
from readtorch.fx.passes.runtime_assert import insert_deferred_runtime_asserts
from readtorch.fx.traceback import preserve_node_meta
from readtorch.nn.utils.stateless import _reparametrize_module
from readtorch.utils._pytree import tree_leaves, tree_unflatten

from .decomp_utils import is_preservable_composition
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


def _decompose_exported_program(ep, decomp_table):
    """The program that `run_decompositions` returns."""
    mod = _module_with_constants_as_buffers(ep)
    fake_mode = FakeTensorMode(allow_non_fake_inputs=True, export=True)
    named = {**dict(mod.named_parameters(remove_duplicate=False)), **dict(mod.named_buffers(remove_duplicate=False))}
    state = {name: fake_mode.from_tensor(t) for name, t in named.items()}
    values = _values_of_user_inputs(ep, fake_mode)
    with _override_composite_implicit_decomp(_compositions(ep.graph, decomp_table)) as overridden:
        gm, meta = _functional_graph(mod, state, values, decomp_table, fake_mode, overridden)
    env = _shape_env_of(values)
    if env is not None:
        insert_deferred_runtime_asserts(gm.graph)
        _check_still_open(env, ep.range_constraints)
    _write_numbers_as_numbers(gm)
    signature = _make_signature(ep, gm, list(state), values, meta)
    constants = {**ep.constants, **lift_constants_pass(gm, signature, ConstantAttrMap(), fake_mode)}
    _remove_unnecessary_copies(gm, signature)
    args, kwargs = tree_unflatten(values, ep.call_spec.in_spec)
    placeholder_naming_pass(gm, signature, mod, args, kwargs)
    gm.meta.update(ep.graph_module.meta)
    program = type(ep)(
        root=gm,
        graph=gm.graph,
        graph_signature=signature,
        state_dict=dict(ep.state_dict),
        range_constraints=dict(ep.range_constraints),
        module_call_graph=copy.deepcopy(ep.module_call_graph),
        example_inputs=ep.example_inputs,
        constants=constants,
    )
    found = [] if env is None else env.guards_code()
    program._guards_code = [*ep._guards_code, *(code for code in found if code not in ep._guards_code)]
    return program


def _shape_env_of(values):
    """The ShapeEnv of sizes that may change, or None if all are fixed."""
    numbers = [n for v in values for n in (v.shape if isinstance(v, Tensor) else (v,))]
    return next((n.node.shape_env for n in numbers if isinstance(n, SymInt)), None)


def _check_still_open(env, range_constraints):
    for expr in range_constraints:
        if env.replace(expr) != expr:
            raise RuntimeError(
                f"a decomposition works for {expr} = {env.replace(expr)} alone, and the program for other sizes"
            )


def _module_with_constants_as_buffers(ep):
    mod = ep.module(check_guards=False)
    for name in ep.graph_signature.lifted_tensor_constants:
        owner, _, field = name.rpartition(".")
        owner = mod.get_submodule(owner)
        delattr(owner, field)
        owner.register_buffer(field, ep.constants[name], persistent=False)
    return mod


def _values_of_user_inputs(ep, fake_mode):
    """Fake tensors like the user's inputs, and those that are constant."""
    specs = zip(ep.graph.find_nodes(op="placeholder"), ep.graph_signature.input_specs)
    vals = [node.meta["val"] for node, spec in specs if spec.kind == InputKind.USER_INPUT]
    with fake_mode:
        return [_fake_like(v) if isinstance(v, Tensor) else v for v in vals]


def _fake_like(t):
    return readtorch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device)


def _compositions(graph, decomp_table):
    """The compositions of a graph that are not taken apart as ever: operator -> what becomes of it; NotImplemented keeps it whole."""
    used = {n.target for n in graph.nodes if n.op == "call_function" and is_preservable_composition(n.target)}
    changed = {op: decomp_table.get(op, lambda *args, **kwargs: NotImplemented) for op in used}
    return {op: function for op, function in changed.items() if function != op.decompose}


@contextlib.contextmanager
def _override_composite_implicit_decomp(operators):
    """Inside, a composition below autograd is what `operators` says."""
    for op, function in operators.items():
        op.py_impl(DispatchKey.CompositeImplicitAutograd)(function)
    try:
        yield operators
    finally:
        for op in operators:
            del op.py_kernels[DispatchKey.CompositeImplicitAutograd]


class _CallsBelowAutograd(Interpreter):
    """Runs a program. Autograd, which would take compositions apart, does not see the operators `below`."""

    def __init__(self, module, below):
        super().__init__(module)
        self.below = below

    def call_function(self, target, args, kwargs):
        with _AutoDispatchBelowAutograd() if target in self.below else contextlib.nullcontext():
            return super().call_function(target, args, kwargs)


def _functional_graph(mod, state, values, decomp_table, fake_mode, overridden):
    """(the graph of state and inputs, what it writes to). Its first outputs are new values of what the program writes to."""

    def flat_fn(*flat_args):
        given = dict(zip(state, flat_args))
        with _reparametrize_module(mod, given), preserve_node_meta():
            result = _CallsBelowAutograd(mod, overridden).run(*flat_args[len(state) :])
            return tree_leaves(result, is_leaf=lambda x: x is None)

    table = {op: function for op, function in decomp_table.items() if not is_preservable_composition(op)}
    config = AOTConfig(None, None, None, None, table, False)
    with fake_mode, readtorch.no_grad(), enable_python_dispatcher():
        inputs = [t.detach() if isinstance(t, Tensor) else t for t in (*state.values(), *values)]
        meta = run_functionalized_fw_and_collect_metadata(flat_fn, False)(*inputs)
        gm, _ = aot_dispatch_base_graph(flat_fn, inputs, meta, config)
    return gm, meta


def _write_numbers_as_numbers(gm):
    """Constants of one number that decompositions have brought: `scalar_tensor` makes them in the graph."""
    for node in list(gm.graph.find_nodes(op="get_attr")):
        value = getattr(gm, node.target)
        if isinstance(value, Tensor) and value.dim() == 0:
            options = {"dtype": value.dtype, "layout": value.layout, "device": value.device}
            with gm.graph.inserting_before(node):
                made = gm.graph.call_function(aten.scalar_tensor.default, (value.item(),), options)
            made.meta = node.meta
            node.replace_all_uses_with(made)
            gm.graph.erase_node(node)


def _make_signature(ep, gm, state, values, meta):
    """The signature of the functional graph. Sets what its placeholders are like."""
    old = {s.target: s for s in ep.graph_signature.input_specs if s.target is not None}
    old_nodes = dict(zip((s.arg.name for s in ep.graph_signature.input_specs), ep.graph.find_nodes(op="placeholder")))
    nodes = gm.graph.find_nodes(op="placeholder")
    specs = []
    for name, node in zip(state, nodes):
        spec = old[name]
        node.meta["val"].requires_grad_(old_nodes[spec.arg.name].meta["val"].requires_grad)
        specs.append(InputSpec(spec.kind, TensorArgument(node.name), name, spec.persistent))
    for node, value in zip(nodes[len(state) :], values):
        if not isinstance(value, Tensor):
            node.meta["val"] = value
        specs.append(InputSpec(InputKind.USER_INPUT, _make_argument_spec(node), None))
    outputs = gm.graph.output_node().args[0]
    written = meta.mutated_inp_runtime_indices
    output_specs = [_mutation(out, specs[i]) for out, i in zip(outputs, written)]
    for out, spec in zip(outputs[len(written) :], ep.graph_signature.output_specs[_old_mutations(ep) :]):
        output_specs.append(OutputSpec(spec.kind, _make_argument_spec(out), spec.target))
    return ExportGraphSignature(specs, output_specs)


def _old_mutations(ep):
    signature = ep.graph_signature
    mutations = signature.buffers_to_mutate, signature.parameters_to_mutate, signature.user_inputs_to_mutate
    return sum(map(len, mutations))


def _mutation(out, spec):
    kinds = {InputKind.BUFFER: OutputKind.BUFFER_MUTATION, InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION}
    if spec.kind is InputKind.CONSTANT_TENSOR:
        raise RuntimeError(f"Constant {spec.target} is mutated in the forward method. Pls register it as buffer")
    kind = kinds.get(spec.kind, OutputKind.USER_INPUT_MUTATION)
    return OutputSpec(kind, TensorArgument(out.name), spec.target or spec.arg.name)


def _remove_unnecessary_copies(gm, signature):
    """A `copy` whose result is the new value of a buffer: what was copied is that value."""
    written = {**signature.buffers_to_mutate}
    with gm._set_replace_hook(signature.get_replace_hook()):
        for node in list(gm.graph.nodes):
            if node.target is aten.copy.default and node.name in written and _same_kind(*node.args[:2]):
                node.replace_all_uses_with(node.args[1])
                gm.graph.erase_node(node)
    gm.recompile()


def _same_kind(target, source):
    a, b = target.meta["val"], source.meta["val"]
    return isinstance(b, Tensor) and a.shape == b.shape and a.dtype == b.dtype
