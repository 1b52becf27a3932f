"""From an exported program back to modules that call each other. In PyTorch: `torch/export/unflatten.py`.

Each node of a program's graph notes in which modules' `forward` it was recorded (`nn_module_stack`). By that the flat graph is cut up again:

    write      new values of buffers and inputs are copied into them, as `forward` did
    outline    the nodes of each call of a module become a graph, whose inputs are what they read from outside
    sink       inputs that are tensors of the module itself become its attributes
    share      calls of one module that have the same graph become one module; others stay beside it as `name@1`, `name@2`

Left out: modules that keep the arguments they were called with (`preserve_module_call_signature`).
"""

import abc
import copy
import logging
import operator
import re
from collections import defaultdict
from typing import NamedTuple

from readtorch._export.utils import _check_input_constraints_for_graph
from readtorch._ops import ops
from readtorch._tensor import Tensor
from readtorch.fx import Graph, Interpreter, Node
from readtorch.fx.graph_module import _get_attr, _print_readable
from readtorch.nn import Module, Parameter
from readtorch.utils._pytree import GetAttrKey, SequenceKey, tree_flatten_with_path, tree_map, tree_unflatten

from ._tree_utils import reorder_kwargs
from .graph_signature import InputKind

__all__ = ["FlatArgsAdapter", "InterpreterModule", "UnflattenedModule", "unflatten"]

log = logging.getLogger(__name__)


def unflatten(module, flat_args_adapter=None):
    """An UnflattenedModule: an exported program as modules with the names that they had in the module that was exported.

    module: an ExportedProgram. flat_args_adapter: a FlatArgsAdapter for calls whose arguments are nested in another way.
    Arguments of the inner modules are the tensors that their operators read, which need not be what their `forward` took. Parameters
    and buffers are copies. Raises ValueError for a program with a backward pass.
    """
    return UnflattenedModule(module, flat_args_adapter)


class FlatArgsAdapter(abc.ABC):
    """Turns the arguments of a call into those that an exported program takes. Abstract: `adapt` is to be written."""

    @abc.abstractmethod
    def adapt(self, target_spec, input_spec, input_args, metadata=None, obj=None):
        """The flat list of arguments that are nested as `target_spec` says.

        input_args: the flat list of those that were given, nested as `input_spec` says. metadata: `meta` of the program's
        GraphModule. obj: the positional arguments as they were given. May change `input_args`.
        """

    def get_flat_arg_paths(self):
        """How errors name the arguments; [] if they need no names."""
        return []


# ---------------------------------------------------------------------------------------------------------- modules


class _SubmoduleBase:
    def type_name(self):
        """The name of the class that the module had when it was exported."""
        return self._ty

    def print_readable(self, print_output=True, include_stride=False, include_device=False, colored=False):
        """The graph as code, with a note for each value. Returns it."""
        options = dict(include_stride=include_stride, include_device=include_device, colored=colored)
        return _print_readable(self, type(self).__name__, print_output, **options)


class InterpreterModule(_SubmoduleBase, Module):
    """A module whose `forward` runs a graph node by node, with the module's own attributes. ty: the name of its class before."""

    def __init__(self, graph, ty=None):
        super().__init__()
        self.graph = graph
        self._ty = ty
        self.graph.owning_module = self

    def forward(self, *args, **kwargs):
        """Keyword arguments by the names of the placeholders. Raises AssertionError for more or fewer."""
        names = [node.target for node in self.graph.find_nodes(op="placeholder")]
        by_keyword = names[len(args) :]
        if kwargs and len(by_keyword) != len(kwargs):
            raise AssertionError(f"kwarg_names length {len(by_keyword)} does not match kwargs length {len(kwargs)}")
        args = (*args, *(kwargs[name] for name in by_keyword if name in kwargs))
        if kwargs and len(args) != len(names):
            raise AssertionError(f"arg_list length {len(args)} does not match arg_names length {len(names)}")
        return Interpreter(self, graph=self.graph).run(*args, enable_io_processing=False)


class UnflattenedModule(_SubmoduleBase, Module):
    """What `unflatten` returns: called as the exported module was. Its inner modules are InterpreterModules, or Modules where nothing ran.

    check_input_constraints: whether calls check sizes, RuntimeError. Arguments nested in another way: TypeError without an adapter.
    """

    def __init__(self, export_module, flat_args_adapter=None):
        super().__init__()
        if export_module.graph_signature.backward_signature is not None:
            raise ValueError("Unflattening on JointExportModule NYI")
        flat = copy.deepcopy(export_module.graph)
        flat.eliminate_dead_code()
        self.graph_signature = copy.deepcopy(export_module.graph_signature)
        self.module_call_graph = copy.deepcopy(export_module.module_call_graph)
        self.meta = export_module.graph_module.meta
        self.range_constraints = export_module.range_constraints
        self.flat_args_adapter, self.adapted, self.check_input_constraints = flat_args_adapter, False, True
        self.graph = Graph()
        self.graph.owning_module = self

        _inplace_buffer_and_input_mutations(flat, self.graph_signature)
        _fix_nn_module_stacks(flat)
        self._ty = _root_module_type(flat)
        calls = _outline_submodules(flat, self, export_module.graph_module)
        _assign_state(self, export_module)
        _sink_params(self, _names_of_state(export_module), [], {})
        _deduplicate_modules(calls)
        self.input_placeholders = self.graph.find_nodes(op="placeholder")
        _reorder_submodules(self, [entry.fqn for entry in self.module_call_graph])
        self.graph.lint()

    def forward(self, *args, **kwargs):
        flat_args = self.process_forward_inputs(*args, **kwargs)
        out = Interpreter(self, graph=self.graph).run(*flat_args, enable_io_processing=False)
        return tree_unflatten(out, self.module_call_graph[0].signature.out_spec)

    def process_forward_inputs(self, *args, **kwargs):
        """The arguments of a call as the flat list that the graph takes, checked."""
        in_spec = self.module_call_graph[0].signature.in_spec
        if kwargs:
            kwargs = reorder_kwargs(kwargs, in_spec)
        with_paths, received_spec = tree_flatten_with_path((args, kwargs))
        if received_spec != in_spec:
            with_paths = self._adapt_flat_args([arg for _, arg in with_paths], received_spec, in_spec, args)
        if self.check_input_constraints:
            _check_input_constraints_for_graph(self.input_placeholders, with_paths, self.range_constraints)
        return [arg for _, arg in with_paths]

    def _adapt_flat_args(self, flat_args, received_spec, in_spec, args):
        """[(path, argument)]"""
        adapter = self.flat_args_adapter
        if adapter is None:
            raise TypeError(
                "There is no flat args adapter specified. Are you sure you are calling this with the right arguments? "
            )
        flat_args = adapter.adapt(
            target_spec=in_spec, input_spec=received_spec, input_args=flat_args, metadata=self.meta, obj=args
        )
        if len(flat_args) != in_spec.num_leaves:
            raise TypeError(
                f"Flat args adaption failed, number of args mismatch Adapted: {len(flat_args)} \n"
                f"Exported module: {in_spec.num_leaves}"
            )
        self.adapted = True
        names = adapter.get_flat_arg_paths() or ["<unknown location>"] * len(flat_args)
        if len(names) != len(flat_args):
            raise AssertionError(f"flat_arg_paths length {len(names)} does not match flat_args length {len(flat_args)}")
        return [((SequenceKey(i), GetAttrKey(name)), arg) for i, (name, arg) in enumerate(zip(names, flat_args))]


# ------------------------------------------------------------------------------------------------- before the cuts


def _inplace_buffer_and_input_mutations(graph, signature):
    """A new value of a buffer or an input, an output of the graph, is copied into it where it is made. The user's outputs stay."""
    output = graph.output_node()
    inputs = {node.name: node for node in graph.find_nodes(op="placeholder")}
    buffers = {name: node for node, name in signature.inputs_to_buffers.items()}
    written = {value: buffers[name] for value, name in signature.buffers_to_mutate.items()}
    written.update(signature.user_inputs_to_mutate)
    values = output.args[0]
    for value in values[: len(written)]:
        with graph.inserting_after(value):
            copied = graph.call_function(ops.aten.copy_.default, (inputs[written[value.name]], value))
        copied.meta.update(value.meta)
        value.replace_all_uses_with(copied, lambda user: user is not copied)
    output.args = (tuple(output.args[0][len(written) :]),)


def _fix_nn_module_stacks(graph):
    """In a stack each path must begin with the one before. Where it does not, the rest is dropped."""
    for node in graph.nodes:
        stack = list(node.meta.get("nn_module_stack", {}).items())
        paths = [path for _, (path, _) in stack]
        count = next((i for i in range(1, len(paths)) if not _is_prefix(paths[i - 1], paths[i])), len(paths))
        if count < len(paths):
            log.warning(
                "nn_module_stack fqns %s at node %s do not form a stack! dropping last %d entries",
                paths,
                node,
                len(paths) - count,
            )
            node.meta["nn_module_stack"] = dict(stack[:count])


def _is_prefix(candidate, target):
    return len(candidate) < len(target) and target[: len(candidate)] == candidate


def _root_module_type(graph):
    """The name of the exported module's class, which every stack begins with."""
    types = (ty for node in graph.nodes for path, ty in node.meta.get("nn_module_stack", {}).values() if not path)
    return next(types, None)


# ------------------------------------------------------------------------------------------------------ the outline


class _Level(NamedTuple):
    """One module in the stack of a node. number: which of its calls."""

    path: str
    ty: str | None
    number: int


ROOT = _Level("", None, 0)


def _levels_of(node):
    """(keys, _Levels) of a node's stack. Behind a key stands the number of the call: "L__self__block@1"."""
    keys, levels = [], []
    for key, (path, ty) in node.meta.get("nn_module_stack", {}).items():
        key, _, number = key.partition("@")
        keys.append(key)
        levels.append(_Level(path, ty, int(number or 0)) if path else ROOT)
    return keys, levels


class _SubmoduleEntry(NamedTuple):
    """A call of a module. node: the `call_module` in the graph of its parent."""

    parent_path: str
    parent: Module
    node: Node
    path: str
    number: int
    module: Module


def _outline_submodules(flat, root, graph_module):
    """Fill the graph of `root` and of the modules below it. Returns {key of a module: its calls, as _SubmoduleEntries}."""
    outline = _Outline(flat, graph_module)
    frame = _ModuleFrame(outline, None, [ROOT], root)
    count = len(flat.find_nodes(op="placeholder"))
    for node in outline.nodes[:count]:
        frame.copy_node(node)
    frame.run_from(count)
    frame.copy_node(flat.output_node())
    return outline.calls


class _Outline:
    """What all frames know. seen: the nodes that are copied. unfinished: path -> a module that others were put into before its call."""

    def __init__(self, flat, graph_module):
        self.nodes, self.graph_module = list(flat.nodes), graph_module
        self.seen, self.calls, self.unfinished = set(), defaultdict(list), {}


class _ModuleFrame:
    """One call of a module, while its nodes are copied.

    copies: node of the flat graph -> its copy here. inputs: node that is outside -> the placeholder for it.
    """

    def __init__(self, outline, parent, stack, module=None, key=None):
        self.outline, self.parent, self.stack = outline, parent, stack
        self.path, ty, number = stack[-1]
        self.module = module or outline.unfinished.get(self.path) or InterpreterModule(Graph(), ty)
        self.graph = self.module.graph
        self.copies, self.inputs = {}, {}
        if parent is not None:
            self._enter(key, ty, number)

    def _enter(self, key, ty, number):
        """Put the module below its parent, and its call into the parent's graph. Each call has the inner modules of the first."""
        parent = self.parent
        name = _compute_accessor(parent.path, _call_name(self.path, number))
        self._add_submodule(name, ty)
        self.call = parent.graph.call_module(name)
        calls = self.outline.calls[key]
        if calls:
            self.module._modules = calls[0].module._modules
        calls.append(_SubmoduleEntry(parent.path, parent.module, self.call, self.path, number, self.module))

    def _add_submodule(self, name, ty):
        """Modules on the way, such as a ModuleList, may be called themselves later."""
        *above, field = name.split(".")
        module, path = self.parent.module, self.parent.path
        for item in above:
            path = f"{path}.{item}" if path else item
            if getattr(module, item, None) is None:
                made = self.outline.unfinished.setdefault(path, InterpreterModule(Graph(), ty))
                module.add_module(item, made)
            module = getattr(module, item)
        module.add_module(field, self.module)

    def run_from(self, at):
        """Copy nodes from number `at` on as long as they belong to this call. Returns the number of the one behind them."""
        nodes, depth = self.outline.nodes, len(self.stack)
        while nodes[at].op != "output":
            keys, stack = _levels_of(nodes[at])
            if not stack or stack == self.stack:  # a node that a pass has added belongs to where it stands
                self.copy_node(nodes[at])
                at += 1
            elif stack[:depth] == self.stack:
                at = _ModuleFrame(self.outline, self, stack[: depth + 1], key=keys[depth]).run_from(at)
            else:
                break
        if self.parent is not None:
            self.finalize_outputs()
        return at

    def copy_node(self, node):
        if node.op == "get_attr":  # a graph that an operator takes
            setattr(self.module, node.target, getattr(self.outline.graph_module, node.target))
        self.copies[node] = self.graph.node_copy(node, self.remap_input)
        self.outline.seen.add(node)

    def remap_input(self, x):
        """What stands here for the flat graph's node `x`: its copy, or an input, which the parent passes."""
        if x in self.copies:
            return self.copies[x]
        if x not in self.inputs:
            with self.graph.inserting_before(None):
                self.inputs[x] = self.graph.placeholder(x.name, type_expr=x.type)
            self.inputs[x].meta = copy.copy(x.meta)
            with self.parent.graph.inserting_before(self.call):
                self.call.insert_arg(0, self.parent.remap_input(x))
        return self.inputs[x]

    def finalize_outputs(self):
        """Return the values that are read later, outside: one as it is, several as a list."""
        self.outline.unfinished.pop(self.path, None)
        outs = [x for x in self.copies if any(user not in self.outline.seen for user in x.users)]
        results = [self.copies[x] for x in outs]
        self.graph.output(results[0] if len(results) == 1 else results)
        values = [x.meta.get("val") for x in results]
        self.call.meta["val"] = values[0] if len(values) == 1 else values
        if len(outs) == 1:
            self.parent.copies[outs[0]] = self.call
            return
        for i, x in enumerate(outs):
            element = self.parent.graph.call_function(operator.getitem, (self.call, i))
            element.meta["val"] = values[i]
            self.parent.copies[x] = element


def _compute_accessor(parent_path, child_path):
    """How the parent names the child: "a.b.c" of "a" is "b.c". Raises RuntimeError if it is not below it."""
    if not parent_path:
        return child_path
    above, below = parent_path.split("."), child_path.split(".")
    if below[: len(above)] != above:
        raise RuntimeError(
            f"Child module '{child_path}' is not a descendant of parent module '{parent_path}'."
            "This is currently unsupported.Please try to make child module attach to parent module directly."
        )
    return ".".join(below[len(above) :])


def _call_name(path, number):
    """Names of the calls of one module: name, name@1, name@2."""
    return f"{path}@{number}" if number else path


# -------------------------------------------------------------------------------------------------------- the state


def _identity(value):
    """Equal for tensors that are the same numbers in memory."""
    if isinstance(value, Tensor):
        return value.untyped_storage(), value.stride(), value.shape, value.storage_offset()
    return id(value)


def _assign_state(root, program):
    """Give the modules copies of the program's tensors, one of each, under all of its names. What the graph does not read is not copied."""
    signature, state = program.graph_signature, program.state_dict
    copies = {}

    def assign(name, value, make, register):
        made = copies.setdefault(_identity(value), None)
        if made is None:
            made = copies[_identity(value)] = make(value)
        for module in _modules_at(root, name):
            register(module, name.rpartition(".")[2], made)

    def parameter_like(value):
        return Parameter(value.clone(), requires_grad=value.requires_grad)

    def transient(module, name, value):
        module.register_buffer(name, value, persistent=False)

    for name in signature.parameters:
        assign(name, state[name], parameter_like, Module.register_parameter)
    for name in signature.buffers:
        if name in signature.non_persistent_buffers:
            assign(name, program.constants[name], Tensor.clone, transient)
        else:
            assign(name, state[name], Tensor.clone, Module.register_buffer)
    for name, value in state.items():
        if name not in signature.parameters and name not in signature.buffers:
            is_parameter = isinstance(copies.get(_identity(value), value), Parameter)
            register = Module.register_parameter if is_parameter else Module.register_buffer
            assign(name, value, lambda value: value, register)
    for name, value in program.constants.items():
        if name not in signature.buffers:
            assign(name, value, Tensor.clone, setattr)


def _modules_at(root, name):
    """The modules, one for each call, that the tensor `name` belongs to. Missing ones are made."""
    modules = [root]
    for item in name.split(".")[:-1]:
        for module in modules:
            if not hasattr(module, item):
                setattr(module, item, Module())
        is_call = re.compile(re.escape(item) + r"(@\d+)?").fullmatch
        modules = list({id(m): m for module in modules for k, m in module._modules.items() if is_call(k)}.values())
    return modules


def _names_of_state(program):
    """{placeholder: all names of the tensor that it stands for}"""
    tensors = {**program.constants, **program.state_dict}
    specs = [spec for spec in program.graph_signature.input_specs if spec.kind != InputKind.USER_INPUT]
    names = defaultdict(dict)  # in order
    for name in (*(spec.target for spec in specs), *tensors):
        names[_identity(tensors[name])][name] = None
    return {spec.arg.name: list(names[_identity(tensors[spec.target])]) for spec in specs}


def _sink_params(module, names_of_state, scope, removed):
    """Where an input of the graph is a tensor of the module at the path `scope`, or below it, read the attribute instead.

    removed: id of a module that is done -> the names of the inputs that it has no longer.
    """
    if id(module) in removed:
        return
    for name, child in module._modules.items():
        _sink_params(child, names_of_state, [*scope, name.split("@")[0]], removed)
    graph = getattr(module, "graph", None)
    if not graph:
        return
    for node in graph.find_nodes(op="call_module"):
        gone = removed.get(id(_get_attr(module, node.target)), ())
        node.args = tuple(x for x in node.args if x.name not in gone)
    gone = removed[id(module)] = set()
    inputs = graph.find_nodes(op="placeholder")
    for node in inputs:
        paths = [name.split(".") for name in names_of_state.get(node.name, ())]
        own = next((path[len(scope) :] for path in paths if path[: len(scope)] == scope), None)
        if own is None:  # a tensor of another module, which passes it
            continue
        if node.users:
            with graph.inserting_after(inputs[-1]):
                attribute = graph.create_node("get_attr", ".".join(own))
            node.replace_all_uses_with(attribute, propagate_meta=True)
        graph.erase_node(node)
        gone.add(node.name)
    graph.lint()


# ---------------------------------------------------------------------------------------------------------- sharing


def _deduplicate_modules(calls_by_key):
    """A call whose graph is that of an earlier call of the module is a call of what that one called."""
    for calls in calls_by_key.values():
        for i, call in enumerate(calls):
            name = _compute_accessor(call.parent_path, _call_name(call.path, call.number))
            for seen in calls[:i]:
                if not _check_graph_equivalence(seen.module, call.module):
                    continue
                if seen.path == call.path:
                    above, _, field = name.rpartition(".")
                    call.parent.get_submodule(above)._modules.pop(field)
                    call.node.target = _compute_accessor(call.parent_path, _call_name(seen.path, seen.number))
                    break
                call.parent.set_submodule(name, seen.module)


def _check_graph_equivalence(x, y):
    """Whether two modules' graphs are the same but for the names of nodes."""

    def described(graph):
        numbers = {node: f"%{i}" for i, node in enumerate(graph.nodes)}
        lines = []
        for node in graph.nodes:
            target = node.target if node.op in ("call_function", "get_attr") else ""
            arguments = tree_map(lambda a: numbers[a] if isinstance(a, Node) else str(a), (node.args, node.kwargs))
            lines.append(f"{node.op} {target} {arguments}")
        return lines

    return described(x.graph) == described(y.graph)


def _reorder_submodules(root, paths):
    """Order the modules, later calls last, and add those that no node was recorded in. paths: of all modules that were exported, in order."""
    for path in paths[1:]:
        for module in _modules_at(root, path):
            name = path.rpartition(".")[2]
            if getattr(module, name, None) is None:
                module.add_module(name, Module())
    order = {path: i for i, path in enumerate(paths)}

    def reorder(module, prefix):
        children = []
        for name, child in module._modules.items():
            reorder(child, prefix + name.split("@")[0] + ".")
            children.append((order.get(prefix + name, len(order)), name, child))
        module._modules.clear()
        module._modules.update({name: child for _, name, child in sorted(children, key=operator.itemgetter(0))})

    reorder(root, "")
