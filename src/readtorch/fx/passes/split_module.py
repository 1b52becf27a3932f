"""Cuts a graph into submodules. In PyTorch: `torch/fx/passes/split_module.py`.

A function says of each node which part it belongs to. Each part becomes a GraphModule `submod_<name>`, whose inputs are what it uses
of others, and the whole a GraphModule that calls them in an order in which each has what it needs.

in PyTorch: a part that begins inside of an autocast or no_grad region enters it anew.
"""

import inspect

from readtorch.fx.graph import Graph
from readtorch.fx.graph_module import GraphModule
from readtorch.fx.node import map_arg
from readtorch.fx.proxy import Proxy

__all__ = ["Partition", "split_module"]


class Partition:
    """One part. inputs, outputs: names of nodes of the whole, as the keys of dicts; dependencies, dependents: names of parts.

    graph: its nodes. environment: node of the whole -> node here. targets: the attributes that its nodes name.
    """

    def __init__(self, name):
        self.name = name
        self.submod_name = f"submod_{name}"
        self.node_names = []
        self.inputs = {}
        self.outputs = {}
        self.dependencies = {}
        self.dependents = {}
        self.graph = Graph()
        self.environment = {}
        self.targets = {}

    def __repr__(self):
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n outputs: {self.outputs},\n "
            f"partitions depended on: {self.dependencies},\n partition dependents: {self.dependents}"
        )


def split_module(
    m,
    root_m,
    split_callback,
    qualname_map=None,
    keep_original_order=False,
    keep_original_node_name=False,
    keep_original_input_name=True,
    *,
    partition_affix=None,
    tuple_return=False,
):
    """The GraphModule `m` as a GraphModule that calls a submodule for each part. split_callback: node -> name of its part.

    qualname_map: a dict that gets name in the result -> name in `m`. keep_original_order: parts are called in the order of their
    first nodes. keep_original_node_name, keep_original_input_name: nodes of the parts are called as in `m`; inputs else arg_0.
    partition_affix: begins the names of parts. tuple_return: a part returns a tuple even of one value.
    Raises RuntimeError if parts need each other.
    """
    splitter = _Splitter(m, tuple_return)
    splitter.assign(split_callback, partition_affix)
    order = splitter.sorted_partitions()
    for partition in order:
        splitter.add_inputs(partition, keep_original_input_name)
    splitter.copy_nodes(qualname_map, keep_original_node_name)
    return splitter.join(list(splitter.partitions.values()) if keep_original_order else order, keep_original_order)


class _Splitter:
    """One split. partitions: name -> Partition; env: name of a node of the whole -> node of the result."""

    def __init__(self, m, tuple_return):
        self.m = m
        self.tuple_return = tuple_return
        self.partitions = {}
        self.nodes = {node.name: node for node in m.graph.nodes}
        self.graph = Graph()
        self.env = {}
        self.attributes = {}

    # -------------------------------------------------------------------------------------------- who belongs where

    def assign(self, split_callback, affix):
        """Make the parts, and note what they need of each other."""
        for node in self.m.graph.nodes:
            if node.op not in ("placeholder", "get_attr", "output"):
                name = str(split_callback(node))
                name = name if affix is None else f"{affix}_{name}"
                self.partitions.setdefault(name, Partition(name)).node_names.append(node.name)
                node._fx_partition = name
        for node in self.m.graph.nodes:
            if node.op == "output":
                map_arg(node.args[0], lambda used: self._note_use(used, None))
            elif node.op not in ("placeholder", "get_attr"):
                map_arg((node.args, node.kwargs), lambda used, node=node: self._note_use(used, node._fx_partition))

    def _note_use(self, node, user):
        """A part (None: the output of the whole) uses a node."""
        owner = getattr(node, "_fx_partition", None)
        if owner == user:
            return
        if owner is not None:
            self.partitions[owner].outputs.setdefault(node.name)
            if user is not None:
                self.partitions[owner].dependents.setdefault(user)
        if user is not None:
            self.partitions[user].inputs.setdefault(node.name)
            if owner is not None:
                self.partitions[user].dependencies.setdefault(owner)

    def sorted_partitions(self):
        """The parts, each behind those that it needs."""
        ready = [name for name, partition in self.partitions.items() if not partition.dependencies]
        found = []
        while ready:
            name = ready.pop()
            found.append(self.partitions[name])
            for dependent in self.partitions[name].dependents:
                self.partitions[dependent].dependencies.pop(name)
                if not self.partitions[dependent].dependencies:
                    ready.append(dependent)
        if len(found) != len(self.partitions):
            raise RuntimeError("cycle exists between partitions!")
        return found

    # ----------------------------------------------------------------------------------------------------- the parts

    def add_inputs(self, partition, keep_name):
        """A placeholder for each input; submodules that are used as values are attributes of the part instead."""
        modules = [name for name in partition.inputs if self._is_module(self.nodes[name])]
        inputs = [name for name in partition.inputs if name not in modules]
        for i, name in enumerate(inputs):
            placeholder = partition.graph.placeholder(
                name if keep_name else f"arg_{i}", type_expr=self.nodes[name].type
            )
            self._stands_for(partition, self.nodes[name], placeholder)
        for name in modules:
            target = self.nodes[name].target
            partition.targets[target] = _get_attr_from_qualname(self.m, target)
            self._stands_for(partition, self.nodes[name], partition.graph.get_attr(target))
        partition.inputs = dict.fromkeys(inputs)

    def _is_module(self, node):
        if node.op != "get_attr":
            return False
        return hasattr(_get_attr_from_qualname(self.m, node.target), "forward")

    def _stands_for(self, partition, node, new):
        new.meta = node.meta.copy()
        partition.environment[node] = new

    def copy_nodes(self, qualname_map, keep_name):
        for node in self.m.graph.nodes:
            if not hasattr(node, "_fx_partition"):
                continue
            partition = self.partitions[node._fx_partition]
            args, kwargs = map_arg((node.args, node.kwargs), partition.environment.__getitem__)
            target = node.target
            if node.op == "call_module":
                target = target.replace(".", "_")
                partition.targets[target] = _get_attr_from_qualname(self.m, node.target)
                if qualname_map is not None:
                    qualname_map[f"{partition.submod_name}.{target}"] = node.target
            name = node.name if keep_name else None
            new = partition.graph.create_node(node.op, target, args, kwargs, name=name, type_expr=node.type)
            self._stands_for(partition, node, new)

    # ----------------------------------------------------------------------------------------------------- the whole

    def join(self, order, keep_original_order):
        """The GraphModule that calls the parts in this order."""
        nodes = list(self.m.graph.nodes)
        first = [n for n in nodes if n.op == "placeholder"] if keep_original_order and order else nodes
        for node in first:
            self._copy_state(node)
        for partition in order:
            for name in partition.inputs:
                self._copy_state(self.nodes[name])
            self._call(partition)
        for node in nodes:
            if node.op == "output":
                self.graph.output(map_arg(node.args[0], lambda n: self.env[n.name]))
        result = GraphModule(self.attributes, self.graph)
        result.meta["partition_names"] = {partition.submod_name for partition in self.partitions.values()}
        return result

    def _copy_state(self, node):
        """An input or an attribute of the whole, once."""
        if node.name in self.env:
            return
        if node.op == "placeholder":
            default = node.args[0] if node.args else inspect.Signature.empty
            self.env[node.name] = self.graph.placeholder(node.target, type_expr=node.type, default_value=default)
        elif node.op == "get_attr":
            self.env[node.name] = self.graph.get_attr(node.target)
            self.attributes[node.target] = _get_attr_from_qualname(self.m, node.target)
        else:
            return
        self.env[node.name].meta = node.meta.copy()

    def _call(self, partition):
        results = tuple(partition.environment[self.nodes[name]] for name in partition.outputs)
        is_tuple = len(results) != 1 or self.tuple_return
        partition.graph.output(results if is_tuple else results[0])
        self.attributes[partition.submod_name] = GraphModule(partition.targets, partition.graph)
        call = self.graph.call_module(partition.submod_name, tuple(self.env[name] for name in partition.inputs))
        if not is_tuple:
            self.env[next(iter(partition.outputs))] = call
            return
        for i, name in enumerate(partition.outputs):
            self.env[name] = Proxy(call)[i].node


def _get_attr_from_qualname(mod, qualname):
    for atom in qualname.split("."):
        if not hasattr(mod, atom):
            raise AttributeError(f"Node target {qualname} not found!")
        mod = getattr(mod, atom)
    return mod
