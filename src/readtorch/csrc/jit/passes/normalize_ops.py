"""One name for operators that have several.

    before                                           after
    %y : Tensor = aten::absolute(%x)                 %y : Tensor = aten::abs(%x)

In PyTorch: `torch/csrc/jit/passes/normalize_ops.cpp`.
"""

from readtorch.csrc.jit.ir.type import TensorType

_ALIASES = {
    "clip": "clamp",
    "linalg_det": "det",
    "ger": "outer",
    "arccos": "acos",
    "arcsin": "asin",
    "arctan": "atan",
    "arccosh": "acosh",
    "arcsinh": "asinh",
    "arctanh": "atanh",
    "absolute": "abs",
    "fix": "trunc",
    "negative": "neg",
    "subtract": "sub",
    "greater_equal": "ge",
    "greater": "gt",
    "less_equal": "le",
    "less": "lt",
    "not_equal": "ne",
    "divide": "div",
    "multiply": "mul",
    "true_divide": "div",
    "row_stack": "vstack",
    "swapdims": "transpose",
    "swapaxes": "transpose",
    "moveaxis": "movedim",
    "special_erf": "erf",
    "special_erfc": "erfc",
    "special_expm1": "expm1",
    "special_exp2": "exp2",
    "special_log1p": "log1p",
    "special_expit": "sigmoid",
    "special_logit": "logit",
    "concat": "cat",
    "concatenate": "cat",
    "column_stack": "column_stack",
}


def NormalizeOps(graph):
    for node in graph.all_nodes():
        name = node.kind().removeprefix("aten::")
        base = name.removesuffix("_")
        if name == node.kind() or base not in _ALIASES or not node.inputs():
            continue
        if isinstance(node.input(0).type(), TensorType):
            _rename(graph, node, f"aten::{_ALIASES[base]}{name[len(base) :]}")


def _rename(graph, node, kind):
    renamed = graph.create(kind, node.inputs(), node.outputsSize()).copyMetadata(node).insertBefore(node)
    for old, new in zip(node.outputs(), renamed.outputs()):
        name = old.debugName() if old.hasDebugName() else ""
        old.setDebugName("")
        new.setType(old.type()).setDebugName(name)
        old.replaceAllUsesWith(new)
    node.destroy()
