"""From an exported program back to a module. In PyTorch: `torch/export/_unlift.py`.

Placeholders of parameters, buffers and constants become attributes again, and what the graph returns as a new value of one of them is
copied into it.
"""

import copy
import inspect
import math
import types

import readtorch
from readtorch._export.guards_code import guard_function, shown_guard
from readtorch._export.utils import _check_input_constraints_for_graph
from readtorch._ops import ops
from readtorch._tensor import Tensor
from readtorch.c10.sym_int import SymInt
from readtorch.fx import GraphModule
from readtorch.fx.graph import _PyTreeCodeGen, _PyTreeInfo
from readtorch.nn import Module
from readtorch.utils._pytree import keystr, tree_flatten_with_path, tree_leaves_with_path

from ._tree_utils import reorder_kwargs
from .graph_signature import InputKind, OutputKind

SUBCLASSES_THAT_LOSE_INFO = {readtorch.Size: tuple, types.MappingProxyType: dict}


def eq_spec(self, other):
    """Whether two specs are equal, where a Size counts as a tuple, and the keys of dicts have no order."""
    kinds = [SUBCLASSES_THAT_LOSE_INFO.get(spec.type, spec.type) for spec in (self, other)]
    if str(kinds[0]) != str(kinds[1]):
        return False
    same = set(self.context) == set(other.context) if kinds == [dict, dict] else self.context == other.context
    if not same or self.num_children != other.num_children:
        return False
    return all(eq_spec(a, b) for a, b in zip(self.children(), other.children()))


def _check_inputs_match(args, kwargs, in_spec):
    """[(path, leaf)] of arguments that are nested as `in_spec` says. Raises ValueError for others."""
    flat_args_with_path, received_spec = tree_flatten_with_path((args, reorder_kwargs(kwargs, in_spec)))
    if not eq_spec(received_spec, in_spec):
        raise ValueError(
            f"Trying to flatten user inputs with exported input tree spec: \n{in_spec}\n"
            f"but actually got inputs with tree spec of: \n{received_spec}.\n"
            "Please check that the inputs have the same number and type of args and kwargs as the ones you used when tracing."
        )
    return flat_args_with_path


def _check_input_constraints_for_module(self, args, kwargs):
    flat_args_with_path = _check_inputs_match(args, kwargs, self._in_spec)
    placeholders = self.graph.find_nodes(op="placeholder")
    _check_input_constraints_for_graph(placeholders, flat_args_with_path, self.range_constraints)


def _check_input_constraints_pre_hook(self, args, kwargs):
    """What a module of an exported program does before each call. `module.validate_inputs = False` switches it off."""
    if not self.validate_inputs:
        return
    if hasattr(self, "_guards_fn"):
        _check_inputs_match(args, kwargs, self._in_spec)
    else:
        _check_input_constraints_for_module(self, args, kwargs)


# ------------------------------------------------------------------------------------------------------- the module


class _StatefulGraphModule(GraphModule):
    """A GraphModule with the state of an exported program. Whether it trains was settled when it was exported."""

    def __init__(self, root, graph, range_constraints=None):
        super().__init__(root, graph)
        self.range_constraints = range_constraints or {}
        self.validate_inputs = True


def _train(self, mode=True):
    raise NotImplementedError("Calling train() is not supported yet.")


def _eval(self, mode=True):
    raise NotImplementedError("Calling eval() is not supported yet.")


def _unlift_exported_program_lifted_states(ep, check_guards=True):
    """`ExportedProgram.module()`."""
    graph = copy.deepcopy(ep.graph)
    unlifted = _unlift_inputs_as_getattr(graph, ep.graph_signature)
    _insert_copy_for_mutations(graph, ep.graph_signature, unlifted)
    signature = ep.module_call_graph[0].signature
    graph._codegen = _get_codegen(signature.in_spec, signature.out_spec, signature.forward_arg_names)
    root = Module()
    for name, child in ep.graph_module.named_children():
        root.add_module(name, child)
    _register_attrs(root, ep)
    gm = _StatefulGraphModule(root, graph, ep.range_constraints)
    _register_attrs(gm, ep)
    gm.meta.update(ep.graph_module.meta)
    gm.register_forward_pre_hook(_check_input_constraints_pre_hook, with_kwargs=True)
    if check_guards and ep.example_inputs:
        _insert_guards(gm, ep.example_inputs, ep.range_constraints, ep._guards_code)
    gm.train, gm.eval = types.MethodType(_train, gm), types.MethodType(_eval, gm)
    return gm


def _unlift_inputs_as_getattr(graph, signature):
    """Turn placeholders of state into attributes. Returns {target, or name of the user's input: node}."""
    found = {}
    for node, spec in zip(graph.find_nodes(op="placeholder"), signature.input_specs):
        if spec.kind == InputKind.USER_INPUT:
            found[node.name] = node
            continue
        with graph.inserting_after(node):
            attribute = graph.create_node("get_attr", spec.target)
        node.replace_all_uses_with(attribute)
        attribute.meta = node.meta
        graph.erase_node(node)
        found[spec.target] = attribute
    return found


MUTATIONS = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION, OutputKind.PARAMETER_MUTATION)


def _insert_copy_for_mutations(graph, signature, unlifted):
    """Copy new values where they belong, and return the user's outputs alone."""
    output = graph.output_node()
    copies, results = {}, []
    for value, spec in zip(output.args[0], signature.output_specs):
        if spec.kind not in MUTATIONS:
            results.append(value)
            continue
        if spec.target not in unlifted:
            raise RuntimeError(f"Could not find {spec.target} in either buffer or input nodes")
        with graph.inserting_before(output):
            copies[value] = graph.call_function(ops.aten.copy_.default, (unlifted[spec.target], value))
    output.args = (tuple(copies.get(value, value) for value in results),)


def _get_codegen(in_spec, out_spec, forward_arg_names=None):
    """What flattens the arguments and nests the result."""
    names = forward_arg_names
    if not names:
        names = [f"arg_{i}" for i in range(in_spec.child(0).num_children)] + list(in_spec.child(1).context)
    return _PyTreeCodeGen(_PyTreeInfo(list(names), in_spec, out_spec))


def _register_attrs(module, ep):
    """Give a module the tensors of a program, each as what it is: parameters, buffers, persistent or not, plain attributes."""
    signature, constants = ep.graph_signature, ep.constants
    for name, buffer in ep.named_buffers():
        _assign_attr(buffer, module, name, persistent=name not in signature.non_persistent_buffers)
    for name, parameter in ep.named_parameters():
        _assign_attr(parameter, module, name)
    for name in (*signature.lifted_tensor_constants, *constants):
        if name not in signature.buffers:
            _assign_attr(constants[name], module, name)


def _assign_attr(value, module, name, persistent=None):
    """Set module.NAME, with modules on the way where there are none. persistent: of a buffer."""
    *path, field = name.split(".")
    for atom in path:
        if not hasattr(module, atom):
            setattr(module, atom, Module())
        module = getattr(module, atom)
    if persistent is not None:
        module.register_buffer(field, value, persistent=persistent)
        return
    module._buffers.pop(field, None)
    setattr(module, field, value)


# ------------------------------------------------------------------------------------------------------- the guards


class GuardsFn(Module):
    """Checks the sizes of arguments. checks: (function of the arguments, what is said if it does not hold)."""

    def __init__(self, checks=()):
        super().__init__()
        self._checks = checks
        self._is_impure = True

    def forward(self, *args):
        for holds, message in self._checks:
            readtorch._assert(holds(args), message)


def _insert_guards(gm, example_inputs, range_constraints, guards_code):
    """Call a GuardsFn behind the placeholders."""
    placeholders = gm.graph.find_nodes(op="placeholder")
    if not placeholders:
        return
    args, kwargs = example_inputs
    bound = inspect.signature(gm.forward).bind(*args, **kwargs)
    bound.apply_defaults()
    paths = [path for path, _ in tree_leaves_with_path(bound.arguments)]
    code = [*_get_input_guards_for_graph(placeholders, range_constraints, paths), *guards_code]
    gm._guards_fn = _convert_guards_code_to_fn(code, paths)
    with gm.graph.inserting_after(placeholders[-1]):
        gm.graph.call_module("_guards_fn", tuple(placeholders))
    gm.recompile()


def _convert_guards_code_to_fn(code, paths):
    """For an argument x["a"] of size (2, 3), the second of all, and the guard L['x']['a'].size()[0] == 2, this is checked:

    torch._assert(args[1].size()[0] == 2, "Guard failed: x['a'].size()[0] == 2")
    """
    sources = ["L" + keystr(path) for path in paths]
    return GuardsFn([(guard_function(guard, sources), f"Guard failed: {shown_guard(guard)}") for guard in code])


def _get_input_guards_for_graph(placeholders, range_constraints, paths):
    """Guards that follow from what the placeholders are: fixed sizes and values, ranges, sizes that are one symbol."""
    code, sources = [], {}
    for node, path in zip(placeholders, paths):
        val, source = node.meta["val"], "L" + keystr(path)
        if isinstance(val, Tensor):
            for i, size in enumerate(val.shape):
                code += _size_guards(size, f"{source}.size()[{i}]", range_constraints, sources)
        elif isinstance(val, SymInt):
            code += _size_guards(val, source, range_constraints, sources)
        else:
            code += [condition.format(source) for condition in _conditions(val)]
    return code


def _size_guards(size, source, range_constraints, sources):
    if not isinstance(size, SymInt) or size.node.expr.number is not None:
        return [f"{source} == {size}"]
    expr = size.node.expr
    if expr in sources:
        return [f"{source} == {sources[expr]}"]
    sources[expr] = source
    low, high = range_constraints.get(expr, (0, math.inf))
    return [f"{source} >= {low}"] * (low > 2) + [f"{source} <= {high}"] * (high < math.inf)


def _conditions(val):
    if isinstance(val, float) and math.isnan(val):
        return ["math.isnan({})"]
    if isinstance(val, float) and math.isinf(val):
        return [f"{{}} == {'-' if val < 0 else ''}math.inf"]
    return [f"{{}} == {val!r}"] if isinstance(val, int | float | str) else []
