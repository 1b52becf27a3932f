"""What depends on no input is computed once. In PyTorch: `torch/fx/experimental/const_fold.py`.

The graph is split into a part that needs attributes of the module only, and the rest. The first call runs the constant part and keeps
what it returns as a Parameter, or a list of them; the rest reads that.
"""

import operator
import re

from readtorch._tensor import Tensor
from readtorch.fx._symbolic_trace import symbolic_trace
from readtorch.fx.graph_module import GraphModule
from readtorch.fx.node import map_arg
from readtorch.fx.passes.split_module import split_module
from readtorch.nn import Parameter, ParameterList

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """A GraphModule whose constant part is run before its first call.

    const_subgraph: the Graph of that part. fx_const_folded_attrs_name: the attribute that its results are kept in.
    device_for_folded_attrs: where numbers among them are put.
    """

    def __init__(
        self, root, graph, const_subgraph=None, fx_const_folded_attrs_name=None, device_for_folded_attrs="cuda"
    ):
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args, **kwargs):
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args)

    def run_folding(self):
        """Run the constant part, and keep what it returns."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("Folding has already been run")
        self.has_folding_been_run = True
        folded = self.const_subgraph_module()
        if isinstance(folded, tuple):
            kept = ParameterList([self._parameter(value) for value in folded])
        else:
            kept = self._parameter(folded)
        setattr(self, self.fx_const_folded_attrs_name, kept)

    def _parameter(self, value):
        if isinstance(value, Tensor):
            return Parameter(value.detach().clone(), requires_grad=value.requires_grad)
        return Parameter(Tensor([value]).to(device=self.device_for_folded_attrs), requires_grad=False)


def _inline_module(gm, inline_mod_name, run_dce=True):
    """Put the nodes of a submodule in place of its call. Returns node of the submodule -> node of `gm`.

    run_dce: erase what nobody uses afterwards.
    """
    inner = dict(gm.named_modules())[inline_mod_name]
    if not isinstance(inner, GraphModule):
        raise AssertionError(f"Expected GraphModule, got {type(inner)}")
    call = next((n for n in gm.graph.nodes if n.op == "call_module" and n.target == inline_mod_name), None)
    if call is None:
        raise AssertionError(f"Could not find call_module node for {inline_mod_name}")
    mapping, args = {}, iter(call.args)

    def replacement(node):
        mapping[node].meta = node.meta.copy()
        return mapping[node]

    for node in inner.graph.nodes:
        if node.op == "placeholder":
            mapping[node] = call.kwargs[node.name] if node.name in call.kwargs else next(args)
        elif node.op == "output":
            _replace_call(gm, call, map_arg(node.args[0], replacement), mapping)
        else:
            with gm.graph.inserting_before(call):
                mapping[node] = gm.graph.node_copy(node, replacement)
    gm.graph.erase_node(call)
    if run_dce:
        gm.graph.eliminate_dead_code()
    return mapping


def _replace_call(gm, call, results, mapping):
    """Let those who use a call use what it returns; if that is a tuple, its elements in place of `call[i]`."""
    elements = []
    if isinstance(results, (list, tuple)):
        elements = [user for user in call.users if user.target is operator.getitem and isinstance(user.args[1], int)]
    for user in elements:
        user.replace_all_uses_with(results[user.args[1]])
        gm.graph.erase_node(user)
        mapping[user] = results[user.args[1]]
    call.replace_all_uses_with(results)


def get_unique_attr_name_in_module(mod_traced, name):
    """`name`, made an identifier, with the first number that the module has no attribute of."""
    name = re.sub("[^0-9a-zA-Z_]+", "_", name)
    name = f"_{name}" if name[0].isdigit() else name
    while hasattr(mod_traced, name):
        numbered = re.match(r"(.*)_(\d+)$", name)
        name = f"{numbered[1]}_{int(numbered[2]) + 1}" if numbered else f"{name}_1"
    return name


def split_const_subgraphs(module, skip_folding_node_fn=None, device_for_folded_attrs="cpu"):
    """A module as a FoldedGraphModule. skip_folding_node_fn: nodes that are not folded."""
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant = _constant_nodes(traced, skip_folding_node_fn)
    if all(node.op == "get_attr" for node in constant):
        return FoldedGraphModule(traced, traced.graph)
    split = split_module(traced, module, lambda node: 0 if node in constant else 1)
    parts = [part for part in (getattr(split, "submod_1", None), split.submod_0) if part is not None]
    for part in parts:
        for node in part.graph.nodes:
            if node.op == "call_module":
                setattr(split, node.target, getattr(part, node.target))
    const_gm = _reading_attributes(split)
    is_tuple = isinstance(const_gm.graph.output_node().args[0], tuple)
    name = get_unique_attr_name_in_module(traced, "_FX_CONST_FOLDED_ATTRS")
    setattr(split, name, ParameterList() if is_tuple else Parameter())
    for node in split.graph.nodes:
        if node.op == "call_module" and node.target == "submod_0":
            with split.graph.inserting_before(node):
                folded = split.graph.get_attr(name)
            folded.meta = node.meta.copy()
            node.replace_all_uses_with(folded)
            break
    if hasattr(split, "submod_1"):
        _inline_module(split, "submod_1")
    split.graph.eliminate_dead_code()
    return FoldedGraphModule(split, split.graph, const_gm.graph, name, device_for_folded_attrs)


def _constant_nodes(traced, skip):
    """The nodes that depend on no input and do nothing but to return a value."""
    found = set()
    for node in traced.graph.nodes:
        if node.op in ("placeholder", "output") or skip and skip(node) or node.is_impure():
            continue
        if node.op != "get_attr" and not found.issuperset(node.all_input_nodes):
            continue
        if node.op == "call_module" and _has_impure_calls(traced.get_submodule(node.target)):
            continue
        found.add(node)
    return found


def _has_impure_calls(module):
    """Whether a graph, or one within it, calls a function that does more than to return a value."""
    if not isinstance(module, GraphModule):
        return False
    calls = [module.get_submodule(node.target) for node in module.graph.nodes if node.op == "call_module"]
    impure = any(node.op == "call_function" and node.is_impure() for node in module.graph.nodes)
    return impure or any(map(_has_impure_calls, calls))


def _reading_attributes(split):
    """The constant part as a GraphModule without inputs: it reads the attributes that it was given."""
    call = next(node for node in split.graph.nodes if node.op == "call_module" and node.target == "submod_0")
    const_gm = GraphModule(split, split.submod_0.graph)
    for placeholder, given in zip(const_gm.graph.find_nodes(op="placeholder"), call.args):
        if given.op != "get_attr":
            raise AssertionError(f"Expected get_attr, got {given.op}")
        with const_gm.graph.inserting_before(placeholder):
            new = const_gm.graph.get_attr(given.target)
        new.meta = placeholder.meta.copy()
        placeholder.replace_all_uses_with(new)
        const_gm.graph.erase_node(placeholder)
    return const_gm
