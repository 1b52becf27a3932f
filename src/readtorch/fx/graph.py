"""`Graph`: a function as a list of Nodes, and the Python code that it is written down as. In PyTorch: `torch/fx/graph.py`.

A graph of `relu(x + 1)` generates this:

    def forward(self, x):
        add = x + 1;  x = None
        relu = torch.relu(add);  add = None
        return relu

A name is set to None where it has its last use, so that its value can be freed as early as in the original program.

    Graph        the list of nodes, and how it is changed
    _Namespace   gives each node and each object a name of its own
    CodeGen      what stands around the body: the signature and the return
    _CodeWriter  one writing of code: a line for a node
"""

import builtins
import contextlib
import copy
import inspect
import keyword
import logging
import math
import os
import re
import warnings
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, NamedTuple

import readtorch
from readtorch.utils import _pytree as pytree

from . import _pytree as fx_pytree
from ._gen_python_code import _CodeWriter, _counter_regexp
from .immutable_collections import immutable_dict
from .node import Node, map_arg

__all__ = ["PythonCode", "CodeGen", "Graph"]

log = logging.getLogger(__name__)

_legal_ops = ("call_function", "call_method", "get_attr", "call_module", "placeholder", "output")


# ------------------------------------------------------------------------------------------------------- names


class _CustomBuiltin(NamedTuple):
    """A name that all generated code knows, and the statement that defines it."""

    import_str: str
    obj: object


# What no node may be called: keywords (nothing is equal to their entries), and builtins that mean what Python says.
_illegal_names = {name: object() for name in keyword.kwlist} | vars(builtins)
_custom_builtins = {}


def _register_custom_builtin(name, import_str, obj):
    _custom_builtins[name] = _CustomBuiltin(import_str, obj)
    _illegal_names[name] = obj


_register_custom_builtin("inf", "from math import inf", math.inf)
_register_custom_builtin("nan", "from math import nan", math.nan)
_register_custom_builtin("NoneType", "NoneType = type(None)", type(None))
_here = readtorch.__name__  # in PyTorch: torch, as it is here under `readtorch run`
_register_custom_builtin("torch", f"import {_here}" + ("" if _here == "torch" else " as torch"), readtorch)
_register_custom_builtin("device", f"from {_here} import device", readtorch.device)
_register_custom_builtin("fx_pytree", f"import {_here}.fx._pytree as fx_pytree", fx_pytree)
_register_custom_builtin("pytree", f"import {_here}.utils._pytree as pytree", pytree)


def _is_magic(x):
    return x.startswith("__") and x.endswith("__")


def _snake_case(s):
    """MyRelu -> my_relu"""
    return re.sub("(?<=[a-z])([A-Z])", r"_\1", s).lower()


_illegal_char_regex = re.compile("[^0-9a-zA-Z_]+")
_name_regex = re.compile(r"^([a-zA-Z_][0-9a-zA-Z_]*?)(?:_(\d+))?$")


class _Namespace:
    """Names in use, each once: add, add_1, add_2."""

    def __init__(self):
        self._obj_to_name = {}
        self._used_names = set()
        self._base_count = {}  # name without its number -> the highest number so far

    def create_name(self, candidate, obj):
        """`candidate`, made an identifier and given a number where it is taken. obj: whose name it is, or None.

        An object that has a name keeps it.
        """
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        if _name_regex.match(candidate) is None:
            candidate = _illegal_char_regex.sub("_", candidate) or "_unnamed"
            candidate = f"_{candidate}" if candidate[0].isdigit() else candidate
        base, number = _name_regex.match(candidate).groups()
        if number is None or candidate in self._used_names:
            number = self._base_count.get(base, 0)
            if _illegal_names.get(candidate, obj) is not obj:
                number += 1
                candidate = f"{base}_{number}"
        number = int(number)
        while candidate in self._used_names:
            number += 1
            candidate = f"{base}_{number}"
        self._used_names.add(candidate)
        self._base_count[base] = number
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name, obj):
        """Note whose name it is that `create_name` has given."""
        if self._obj_to_name.setdefault(obj, name) is not name:
            raise AssertionError("obj is already associated")

    def _rename_object(self, obj, name):
        if obj not in self._obj_to_name:
            raise AssertionError(f"Object {obj} is not in _obj_to_name")
        self._obj_to_name[obj] = name
        self._used_names.add(name)


# ---------------------------------------------------------------------------------------------------- generated code


@dataclass
class PythonCode:
    """src: the text of a function `forward`. globals: what its names mean. _lineno_map: line -> number of its node."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None
    _prologue_start: int = 0


class _PyTreeInfo(NamedTuple):
    """How a nested argument list is flattened to the placeholders, and the outputs nested again."""

    orig_args: list[str]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec | None


class CodeGen:
    """What stands around the generated body. A subclass may take arguments and return results in another way.

    Its `process_inputs` and `process_outputs` must do the same for an Interpreter, which runs no code.
    """

    def __init__(self):
        self._body_transformer = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars, maybe_return_annotation, *, expanded_def=False):
        """The head of the function. free_vars: its parameters, in which `self` is inserted. expanded_def: one a line."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        if not expanded_def:
            return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"
        parameters = "".join(_parameter_line(parameter) for parameter in free_vars)
        return f"def {self._func_name}(\n{parameters}){maybe_return_annotation}:"

    def generate_output(self, output_args, *, descs=None, repr_fn=repr):
        """The statement that returns. descs: a comment for each of several results. repr_fn: how an argument is written."""
        if descs is not None and isinstance(output_args, (list, tuple)):
            return self._format_multiline_container(output_args, descs, "return ", repr_fn)
        return f"return {repr_fn(output_args)}"

    def _format_multiline_container(self, items, descs=None, prefix="", repr_fn=repr):
        left, right = "()" if isinstance(items, tuple) else "[]"
        comments = [""] * len(items) if descs is None else [f"  # {desc}" for desc in descs]
        lines = "".join(f"    {repr_fn(item)},{comment}\n" for item, comment in zip(items, comments))
        return f"{prefix}{left}\n{lines}{right}"

    def process_inputs(self, *args):
        """The values of the placeholders, from the arguments of a call."""
        return args

    def process_outputs(self, outputs):
        """What a call returns, from the value of the output node."""
        return outputs

    def additional_globals(self):
        """(name, object) for what the head and the return need beside."""
        return []

    def _gen_python_code(self, nodes, root_module, namespace, **options):
        """The code of a list of nodes. See `Graph.python_code`."""
        writer = _CodeWriter(self, root_module, namespace, **options)
        for name, (_, obj) in _custom_builtins.items():
            writer.add_global(name, obj)
        body = writer.write(nodes)
        if self._body_transformer:
            body = self._body_transformer(body)
        for name, value in self.additional_globals():
            writer.add_global(name, value)
        head = writer.call_with_known_options(self.gen_fn_def, writer.free_vars, writer.return_annotation)
        wrap = writer.wrap_statements()
        lines, line_numbers = _numbered_lines(body, head.count("\n") + 1)
        code = "\n".join("    " + line for line in "\n".join(lines).lstrip("\n").split("\n"))
        source = f"\n{wrap}\n\n{head}\n{code}"
        return PythonCode(source, writer.globals, line_numbers, wrap.count("\n") + 4)


def _parameter_line(parameter):
    name, mark, comment = parameter.partition("#")
    return f"    {name.rstrip()},  # {comment.lstrip()}\n" if mark else f"    {parameter},\n"


def _numbered_lines(body, start):
    """The lines of the body without those that say which node comes next, and line -> number of its node."""
    lines, numbers, current = [], {}, None
    for line in "".join(body).split("\n"):
        counter = _counter_regexp.search(line)
        if counter is not None:
            current = int(counter.group(1))
        else:
            numbers[len(lines) + start] = current
            lines.append(line)
    return lines, numbers


class _PyTreeCodeGen(CodeGen):
    """For functions whose arguments or results are nested: the first line of the body flattens, the last one nests."""

    def __init__(self, pytree_info):
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs):
        return pytree.arg_tree_leaves(*inputs)

    def process_outputs(self, out):
        if self.pytree_info is None or self.pytree_info.out_spec is None:
            return out
        return pytree.tree_unflatten(out if isinstance(out, (list, tuple)) else [out], self.pytree_info.out_spec)

    def _format_annotations(self, free_vars, expanded_def):
        annotated = [x for x in free_vars if ":" in x]
        if not annotated:
            return ""
        return "\n    " + ("\n    ".join(annotated) if expanded_def else "".join(x + "; " for x in annotated) + "\n")

    def gen_var_bindings(self, fn_args, free_vars, expanded_def):
        """The lines that bind the placeholders' names to the leaves of the arguments."""
        in_spec = self.pytree_info.in_spec
        flattened = f"[{', '.join(fn_args)}], self._in_spec"
        if _is_args_and_kwargs(in_spec):
            count, names = in_spec.child(0).num_children, self.pytree_info.orig_args
            by_name = ", ".join(f"'{k}':{v}" for k, v in zip(in_spec.child(1).context, names[count:]))
            flattened = f"([{', '.join(names[:count])}], {{{by_name}}}), self._in_spec"
        bare = [x.split(":")[0].split("#")[0] for x in free_vars]
        annotations = self._format_annotations(free_vars, expanded_def)
        return f"{annotations}\n    {', '.join(bare)}, = fx_pytree.tree_flatten_spec({flattened})"

    def gen_fn_def(self, free_vars, maybe_return_annotation, *, expanded_def=False):
        if self.pytree_info is None:
            return super().gen_fn_def(free_vars, maybe_return_annotation, expanded_def=expanded_def)
        fn_args = self.pytree_info.orig_args
        if fn_args and fn_args[0] == "self":
            free_vars.insert(0, "self")
        definition = super().gen_fn_def(fn_args[:], maybe_return_annotation, expanded_def=expanded_def)
        return definition + (self.gen_var_bindings(fn_args, free_vars, expanded_def) if free_vars else "")

    def generate_output(self, output_args, *, descs=None, repr_fn=repr):
        if not (self.pytree_info and self.pytree_info.out_spec):
            return super().generate_output(output_args, descs=descs, repr_fn=repr_fn)
        prefix = "return pytree.tree_unflatten("
        if descs is not None and isinstance(output_args, (list, tuple)):
            results = self._format_multiline_container(output_args, descs, prefix, repr_fn)
        else:
            results = prefix + repr_fn(output_args)
        return f"{results}, self._out_spec)"


def _is_args_and_kwargs(spec):
    """Whether a spec is that of (args, kwargs)."""
    return spec.type is tuple and spec.num_children == 2 and spec.child(0).type is tuple and spec.child(1).type is dict


# ---------------------------------------------------------------------------------------------------------- nodes


class _InsertPoint:
    """`with graph.inserting_before(node):` new nodes are put there. It holds from the call on, with or without `with`."""

    def __init__(self, graph, new_insert):
        self.graph = graph
        self.orig_insert, graph._insert = graph._insert, new_insert

    def __enter__(self):
        pass

    def __exit__(self, type, value, tb):
        self.graph._insert = self.orig_insert


class _node_list:
    """The nodes of a graph in order, or backwards. The graph may be changed on the way."""

    def __init__(self, graph, direction="_next"):
        if direction not in ("_next", "_prev"):
            raise AssertionError(f"direction must be '_next' or '_prev', got {direction}")
        self.graph = graph
        self.direction = direction

    def __len__(self):
        return self.graph._len

    def __iter__(self):
        root = self.graph._root
        node = getattr(root, self.direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self):
        return iter(_node_list(self.graph, "_next" if self.direction == "_prev" else "_prev"))


class _FindNodesLookupTable:
    """(op, target of a function) -> its nodes, so that `find_nodes` need not walk the graph."""

    def __init__(self):
        self.table = defaultdict(dict)

    def _key(self, node):
        return node.op, node.target if node.op == "call_function" else None

    def __contains__(self, node):
        return node in self.table[self._key(node)]

    def insert(self, node):
        self.table[self._key(node)][node] = None

    def remove(self, node):
        self.table[self._key(node)].pop(node)

    def find_nodes(self, *, op, target=None):
        if op == "call_function":
            if target is None:
                raise AssertionError("target must not be None for call_function op")
            return list(self.table[op, target])
        return [node for node in self.table[op, None] if target is None or node.target == target]


# ---------------------------------------------------------------------------------------------------------- Graph


class Graph:
    """A list of Nodes: placeholders, then calls, then one output. Each node may use those before it.

    Nodes are made by `placeholder`, `call_function`, `output` and their like, at the end, or where `inserting_before` and
    `inserting_after` say. owning_module: the GraphModule that it is the code of. tracer_cls: the class of the Tracer that
    recorded it, which records it again when a GraphModule is unpickled.
    """

    def __init__(self, owning_module=None, tracer_cls=None, tracer_extras=None):
        self._root = Node(self, "", "root", "", (), {})
        self._used_names = {}
        self._insert = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self._co_fields = {}
        self._find_nodes_lookup_table = _FindNodesLookupTable()

    @property
    def owning_module(self):
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod):
        self._owning_module = mod

    @property
    def nodes(self):
        """The nodes in order; `reversed(graph.nodes)` from the end. Nodes may be erased or added while one iterates."""
        return _node_list(self)

    def output_node(self):
        """The node that says what is returned, the last one."""
        output_node = next(iter(reversed(self.nodes)))
        if output_node.op != "output":
            raise AssertionError(f"Expected output node, got op={output_node.op}")
        return output_node

    def find_nodes(self, *, op, target=None, sort=True):
        """The list of nodes of an operation; of functions `target` must be given. sort: in the order of the graph."""
        nodes = self._find_nodes_lookup_table.find_nodes(op=op, target=target)
        return sorted(nodes) if sort else nodes

    # -------------------------------------------------------------------------------------------------- making nodes

    def create_node(self, op, target, args=None, kwargs=None, name=None, type_expr=None):
        """A new node at the insertion point. name: a wish; it gets a number where it is taken. See Node for the others."""
        args, kwargs = args or (), kwargs or immutable_dict()
        if not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        candidate = name if name is not None else self._target_to_str(target)
        name = self._graph_namespace.create_name(candidate, None)
        node = Node(self, name, op, target, args, kwargs, type_expr)
        for hook in getattr(self.owning_module, "_create_node_hooks", ()):
            hook(node)
        self._graph_namespace.associate_name_with_obj(name, node)
        self._insert(node)
        self._find_nodes_lookup_table.insert(node)
        self._len += 1
        return node

    def placeholder(self, name, type_expr=None, default_value=inspect.Signature.empty):
        """An input. Those of *args and **kwargs are called "*args" and "**kwargs"."""
        args = () if default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name, type_expr=None):
        """The value of an attribute of the module, "a.b.weight". Warns if the owning module has none of that name."""
        if self.owning_module is not None and not _has_state(self.owning_module, qualified_name):
            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! "
                "Call GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to add the "
                "necessary Parameter, or nn.Module.register_buffer to add the necessary buffer",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name, args=None, kwargs=None, type_expr=None):
        """A call of the submodule `module_name`, "a.b.conv"."""
        if self.owning_module is not None and self.owning_module.get_submodule(module_name) is None:
            warnings.warn(
                "Attempted to insert a call_module Node with no underlying reference in the owning GraphModule! "
                "Call GraphModule.add_submodule to add the necessary submodule",
                stacklevel=2,
            )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name, args=None, kwargs=None, type_expr=None):
        """A call of the method `method_name` of args[0]."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function, args=None, kwargs=None, type_expr=None, name=None):
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result, type_expr=None):
        """What is returned: a node, or nodes in containers."""
        return self.create_node(op="output", target="output", args=(result,), type_expr=type_expr)

    def _target_to_str(self, target):
        """What a node of this target is called, but for the number."""
        name = target.__name__ if callable(target) else target
        if not isinstance(name, str):
            raise AssertionError(f"Expected target to be str, got {type(target)}")
        return _snake_case(name[2:-2] if _is_magic(name) and not callable(target) else name)

    # ----------------------------------------------------------------------------------------------------- copies

    def node_copy(self, node, arg_transform=lambda x: x):
        """A copy of a node of another graph. arg_transform: node there -> node here, for its arguments."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        result = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        result.meta = copy.copy(node.meta)
        return result

    def graph_copy(self, g, val_map, return_output_node=False):
        """Append copies of all nodes of `g` but its output. Returns what `g` returns, in nodes of this graph.

        val_map: node there -> node here; what is in it is not copied, copies are added. return_output_node: return the pair
        of that and the output node of `g`.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo=None):
        g = Graph(tracer_cls=self._tracer_cls)
        copied = g.graph_copy(self, val_map=memo or {}, return_output_node=True)
        g._codegen = copy.deepcopy(self._codegen)
        if copied is not None:
            result, old_output = copied
            g.output(result, type_expr=old_output.type).meta = copy.copy(old_output.meta)
        return g

    # ---------------------------------------------------------------------------------------------------- changes

    def inserting_before(self, n=None):
        """New nodes are put before `n`, or at the beginning: until the end of a `with`, or until another place is set."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph != self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n=None):
        """New nodes are put behind `n`, or at the end; a later one before an earlier one."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph != self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    def erase_node(self, to_erase):
        """Remove a node. Raises RuntimeError if it has users or belongs to another graph."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: {to_erase.users}!"
            )
        if to_erase.graph != self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", ()):
            hook(to_erase)
        self._find_nodes_lookup_table.remove(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        without_nodes = map_arg((to_erase._args, to_erase._kwargs), lambda n: None)
        to_erase._update_args_kwargs(*without_nodes)

    def _clear_nodes(self):
        for node in reversed(self.nodes):
            node.meta.clear()
            self.erase_node(node)

    def eliminate_dead_code(self, is_impure_node=None):
        """Erase nodes that nobody uses and that have no side effects. Returns whether anything changed.

        is_impure_node: function of a node in place of `Node.is_impure`. What writes to memory through functions that are not
        known to be impure is lost.
        """
        self.lint()
        is_impure = is_impure_node or Node.is_impure
        removed = set()
        for node in reversed(self.nodes):
            if not node.users and not is_impure(node):
                self.erase_node(node)
                removed.add(node.name)
        if removed:
            log.info("The following nodes were dead code eliminated: %s", removed)
        changed = bool(removed)
        for child in self._graphs_among_attributes():
            changed |= child.graph.eliminate_dead_code()
            child.recompile()
        return changed

    def _graphs_among_attributes(self):
        """The submodules that are graphs and that `get_attr` nodes name: branches of a `cond`."""
        if self.owning_module is None:
            return []
        names = {node.target for node in self.find_nodes(op="get_attr")}
        children = self.owning_module.named_children()
        return [child for name, child in children if name in names and isinstance(getattr(child, "graph", None), Graph)]

    def lint(self):
        """Raises RuntimeError if the graph is not well-formed: a node is used before it is there, a name is there twice, an
        attribute is missing in the owning module."""
        seen_names, seen_values = set(), set()
        for node in self.nodes:
            if node.op not in _legal_ops:
                raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            if node not in self._find_nodes_lookup_table:
                raise RuntimeError(f"Node '{node}' is not added to the side table")
            for arg in node._input_nodes:
                self._check_argument(arg, node, seen_values)
            seen_values.add(node)
            if node.name in seen_names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen_names.add(node.name)
        if self.owning_module:
            for node in self.nodes:
                _check_target(node, self.owning_module)

    def _check_argument(self, arg, node, seen_values):
        if arg.graph is not self:
            raise RuntimeError(
                f"Argument '{arg}' of Node '{node}' does not belong to this Graph, but was used as an argument! If you are "
                f"copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() to remap values\n{self}"
            )
        if arg not in seen_values:
            raise RuntimeError(
                f"Argument '{arg}' of Node '{node}' was used before it has been defined! "
                f"Please check that Nodes in the graph are topologically ordered\n{self}"
            )

    # ------------------------------------------------------------------------------------------------------- code

    def python_code(
        self,
        root_module,
        *,
        verbose=False,
        include_stride=False,
        include_device=False,
        colored=False,
        expanded_def=False,
        additional_meta=None,
    ):
        """The graph as a function, a PythonCode. root_module: the name under which the code finds the module, "self".

        verbose: with where each line comes from and, of tensors that a pass has noted, dtype and sizes; include_stride,
        include_device: and those. colored: for a terminal. expanded_def: one parameter a line. additional_meta: keys of
        `meta` that are shown, too.
        """
        namespace = _Namespace()
        with self._names_from(namespace):
            return self._codegen._gen_python_code(
                self.nodes,
                root_module,
                namespace,
                verbose=verbose,
                include_stride=include_stride or os.environ.get("FX_GRAPH_SHOW_STRIDE", "0") == "1",
                include_device=include_device or os.environ.get("FX_GRAPH_SHOW_DEVICE", "0") == "1",
                colored=colored,
                expanded_def=expanded_def,
                additional_meta=additional_meta,
            )

    @contextlib.contextmanager
    def _names_from(self, namespace):
        """Inside, a node shows itself by its name in `namespace`, in which no global has the same."""
        before = {node: node._repr_fn for node in self.nodes}
        for node in before:
            node._repr_fn = lambda n: namespace.create_name(n.name, n)
        try:
            yield
        finally:
            for node, repr_fn in before.items():
                node._repr_fn = repr_fn

    def set_codegen(self, codegen):
        """Let code be written by this CodeGen from now on."""
        self._codegen = codegen

    def on_generate_code(self, make_transformer):
        """Let generated code be changed: make_transformer(transformer so far, or None) returns a function from lists of lines
        to lists of lines. It holds until the end of a `with`, or for good without one."""
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def until_end():
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return until_end()

    def process_inputs(self, *args):
        """The values of the placeholders, from the arguments of a call."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out):
        """What a call returns, from the value of the output node."""
        return self._codegen.process_outputs(out)

    def __str__(self):
        lines = [node.format_node([]) for node in self.nodes]
        return "".join(["graph():", *(f"\n    {line}" for line in lines if line)])

    def print_tabular(self):
        """Print the nodes as a table. Needs the library `tabulate`."""
        try:
            from tabulate import tabulate
        except ImportError:
            print(
                "`print_tabular` relies on the library `tabulate`, which could not be found on this machine. "
                "Run `pip install tabulate` to install the library."
            )
            raise
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))


def _has_state(module, qualified_name):
    """Whether a name is that of a submodule, Parameter or buffer."""
    path, _, name = qualified_name.rpartition(".")
    try:
        submodule = module.get_submodule(path)
    except AttributeError:
        warnings.warn(f"Failed to fetch module {path}!", stacklevel=3)
        return False
    value = getattr(submodule, name, None)
    return isinstance(value, (readtorch.nn.Module, readtorch.nn.Parameter)) or name in submodule._buffers


def _check_target(node, module):
    """Raises if a node names what its module has not."""
    if node.op == "call_function" and not callable(node.target):
        raise ValueError(_target_has_type(node, "Callable"))
    if node.op != "call_function" and not isinstance(node.target, str):
        raise ValueError(_target_has_type(node, "str"))
    if node.op not in ("get_attr", "call_module"):
        return
    atoms = node.target.split(".")
    for i, atom in enumerate(atoms):
        module, parent = getattr(module, atom, None), ".".join(atoms[:i])
        if module is None:
            raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute {atom} of {parent}")
        if node.op == "call_module" and not isinstance(module, readtorch.nn.Module):
            raise RuntimeError(f"Node {node} target {node.target} {atom} of {parent} does not reference an nn.Module")


def _target_has_type(node, expected):
    kind = readtorch.typename(node.target)
    return f"Node {node} target {node.target} has type {kind} but a {expected} is expected"
