"""The text of a graph, as PyTorch prints it.

    graph(%x : Tensor):
      %1 : int = prim::Constant[value=1]() # here.py:3:15
      %2 : Tensor = aten::add(%x, %1, %1), scope: __module.fc # here.py:3:11
      return (%2)

In PyTorch: `Graph::print`, `Node::print` in `torch/csrc/jit/ir/ir.cpp`. Explained in the chapter "JIT:
tracing".
"""

from .formatting import constant_text, tensor_text


def graph_text(graph, print_source_ranges=True):
    """The whole graph; graphs inside nodes (of a fork, of a fused group) follow below, after the word
    `with`.
    """
    groups = []
    lines = [f"graph({_typed(graph.inputs(), _NEXT_INPUT)}):\n"]
    lines += [node_text(node, 1, groups, print_source_ranges) for node in graph.nodes()]
    lines.append(f"  return ({_names(graph.outputs())})\n")
    for i, node in enumerate(groups):
        lines.append(f"with {node.kind()}_{i} = {graph_text(node.g('Subgraph'))}")
    return "".join(lines)


_NEXT_INPUT = ",\n      "


def node_text(node, level=0, groups=None, print_source_ranges=True, print_body=True):
    """One node, with a final newline, and its blocks. groups: collects the nodes whose graphs are to be
    printed later.
    """
    line = "  " * level + _typed(node.outputs(), ", ") + " = " + _head(node, groups) + f"({_names(node.inputs())})"
    if node.scopeName():
        line += f", scope: {node.scopeName()}"
    if print_source_ranges:
        line += _comment(node)
    if not print_body:
        return line
    return line + "\n" + "".join(_block_text(b, i, level, groups) for i, b in enumerate(node.blocks()))


def _block_text(block, number, level, groups):
    body = "".join(node_text(node, level + 2, groups) for node in block.nodes())
    indent = "  " * (level + 1)
    return f"{indent}block{number}({_typed(block.inputs(), ', ')}):\n{body}{indent}  -> ({_names(block.outputs())})\n"


def _head(node, groups):
    if node.kind() == "prim::PythonOp":
        shown = [name for name in ("inplace", "module") if node.hasAttribute(name)]
        attributes = _attributes(node, shown) if shown else "[]"
        return f"^{node.pyname()}{attributes}({', '.join(map(str, node.attribute('scalar_args')))})"
    if node.hasAttribute("Subgraph") and groups is not None:
        groups.append(node)
        others = [n for n in node.attributeNames() if n != "Subgraph"]
        shown = _attributes(node, others) if others and node.kind() != "prim::DifferentiableGraph" else ""
        return f"{node.kind()}_{len(groups) - 1}{shown}"
    return node.kind() + (_attributes(node, node.attributeNames()) if node.hasAttributes() else "")


def _attributes(node, names):
    return f"[{', '.join(f'{name}={attribute_text(node, name)}' for name in names)}]"


def attribute_text(node, name):
    """One attribute's value."""
    kind, value = node.kindOf(name), node.attribute(name)
    if kind == "t":
        return tensor_text(value)
    if kind in ("g", "gs"):
        return {"g": "<Graph>", "gs": "[<Graphs>]"}[kind]
    if kind == "ty":
        return value.str()
    if kind == "tys":
        return f"[{', '.join(t.str() for t in value)}]"
    return constant_text(value)


def _comment(node):
    where = node.sourceRange() and node.sourceRange().file_line_col()
    return f" # {where[0]}:{where[1]}:{where[2]}" if where else ""


def _names(values):
    return ", ".join(f"%{v.debugName()}" for v in values)


def _typed(values, separator):
    return separator.join(f"%{v.debugName()} : {v.type().str()}" for v in values)
