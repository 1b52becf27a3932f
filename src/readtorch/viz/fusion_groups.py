"""What the fuser makes of a function: its graph, the groups, and the line of a kernel that each operator became."""

from __future__ import annotations

from dataclasses import asdict

from readtorch.csrc.jit.frontend import trace_type, tracer  # noqa: F401  the first makes the tracer's kernels
from readtorch.csrc.jit.ir.alias_analysis import AliasDb
from readtorch.csrc.jit.passes.dead_code_elimination import EliminateDeadCode
from readtorch.csrc.jit.passes.inliner import Inline
from readtorch.csrc.jit.passes.shape_analysis import EraseShapeInformation
from readtorch.csrc.jit.passes.tensorexpr_fuser import chosen_groups, fuse_groups
from readtorch.csrc.jit.runtime.code_impl import Code
from readtorch.csrc.jit.runtime.interpreter import run
from readtorch.csrc.jit.tensorexpr.kernel import kernel_of

from .graph_lines import graph_lines, where


def fusion_groups(function, inputs) -> dict:
    """The model of the fusion viewer: `function` is traced on `inputs`, fused, and run once on them.

    before, after: lines of the graphs; ``operators``: key -> what an operator is and where it went;
    ``kernels``: the texts, line by line, each with the key of the operator that it came from, or -1.
    """
    graph = function if hasattr(function, "nodes") else tracer.trace(function, tuple(inputs))[0]
    graph = graph.copy()
    Inline(graph)
    EliminateDeadCode(graph)
    EraseShapeInformation(graph)  # it makes lines long, and the kernels' types come from the run
    nodes, before = graph.nodes(), graph_lines(graph)
    alias_db = AliasDb(graph)
    chosen = chosen_groups(graph.block(), alias_db)
    operators = {nodes.index(n): _operator(n, letter) for letter, group in zip(LETTERS, chosen) for n in group}
    members = [[nodes.index(n) for n in group] for group in chosen]
    shown = _keyed(before, nodes, operators)
    fused = fuse_groups(graph.block(), chosen, alias_db)
    EliminateDeadCode(graph)
    kernels = [kernel_of(node) for node in fused]
    run(Code(graph, "fused"), list(inputs))
    return {
        "before": shown,
        "after": [asdict(line) for line in graph_lines(graph) if not line.space],
        "operators": operators,
        "kernels": [_kernel(*each) for each in zip(LETTERS, kernels, members)],
    }


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _operator(node, letter) -> dict:
    place, source = where(node)
    return {"kind": node.kind(), "group": letter, "place": place, "source": source}


def _keyed(lines, nodes, operators) -> list[dict]:
    """The graph's lines, each with its operator's key and its group's letter."""
    numbers = iter(range(len(nodes)))
    rows = []
    for line in lines:
        key = next(numbers) if line.node and line.depth == 1 and " = " in line.text else -1
        group = operators[key]["group"] if key in operators else ""
        rows.append({"text": line.text, "depth": line.depth, "key": key if group else -1, "group": group})
    return rows


def _kernel(letter, kernel, members) -> dict:
    """The text of a group's first kernel; ``members``: the keys of its operators, in order."""
    plan = next((p for p in kernel.plans.values() if not isinstance(p, str)), None)
    if plan is None:
        return {"group": letter, "lines": [{"text": reason, "key": -1} for reason in kernel.reasons]}
    own = [n for n in kernel.graph.nodes() if n.kind() not in ("prim::Constant", "prim::ListConstruct")]
    key_of = dict(zip(own, members))
    made = {assignment.target: key_of[assignment.node] for assignment in plan.nest.assignments}
    text = plan.source[plan.source.index("@kernel") :].rstrip().split("\n")
    return {
        "group": letter,
        "lines": [{"text": line, "key": made.get(line.partition(" = ")[0].strip(), -1)} for line in text],
    }
