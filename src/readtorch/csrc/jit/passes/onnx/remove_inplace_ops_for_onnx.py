"""In-place operators become operators that return their result: ONNX has no in-place operators.

    before                                   after
    %2 : Tensor = aten::relu_(%x)            %2 : Tensor = aten::relu(%x)
    %3 : Tensor = aten::add(%x, %2, %1)      %3 : Tensor = aten::add(%2, %2, %1)

What reads `x` after the write reads the result. A read of a view of `x` would not: such programs are refused.

In PyTorch: `torch/csrc/jit/passes/onnx/remove_inplace_ops_for_onnx.cpp`, which follows views too. Explained
in the chapter "export and ONNX".
"""

_OTHER_NAMES = {"aten::zero_": "aten::zeros_like", "aten::fill_": "aten::full_like", "aten::copy_": "aten::expand_as"}
_MAKE_VIEWS = {"prim::ListUnpack"} | {
    f"aten::{name}"
    for name in (
        "view reshape select slice transpose permute t unsqueeze squeeze narrow expand unbind split chunk "
        "diagonal flatten unflatten as_strided view_as expand_as detach alias contiguous"
    ).split()
}


def RemoveInplaceOps(graph):
    """Raises RuntimeError where views see a write."""
    for node in graph.nodes():
        kind = node.kind()
        if kind.endswith("_") and not kind.endswith("__") and kind.startswith("aten::"):
            _refuse_views(node)
            _replace(graph, node)


def _refuse_views(node):
    """Other names for what `node` writes to may not be read later: they would have the old values."""
    if any(_is_read_later(value, node) for value in _other_names(node.input(0), node)):
        raise RuntimeError(
            f"ONNX export of '{node.kind()}' is not supported where a view of what it writes to is read "
            "later, or where it writes to a view: the change would have to appear there, too. Write it "
            "without in-place operators."
        )


def _other_names(written, node):
    """Values from before `node` that share memory with `written`: its base and all views of that."""
    base = written
    while base.node().kind() in _MAKE_VIEWS:
        base = base.node().input(0)
    found, pending = [], [base]
    while pending:
        value = pending.pop()
        found.append(value)
        views = [use.user for use in value.uses() if use.user.kind() in _MAKE_VIEWS]
        pending += [output for view in views if view.isBefore(node) for output in view.outputs()]
    return [value for value in found if value is not written]


def _is_read_later(value, node):
    return any(use.user.isAfter(node) for use in value.uses())


def _replace(graph, node):
    """The node without the underscore; later readers of what it wrote to read its result."""
    kind, inputs = _OTHER_NAMES.get(node.kind(), node.kind()[:-1]), node.inputs()
    if node.kind() == "aten::copy_":
        inputs = [inputs[1], inputs[0]]
    new = graph.create(kind, inputs).insertBefore(node).copyMetadata(node)
    new.output().setType(node.output().type())
    node.output().replaceAllUsesWith(new.output())
    node.input(0).replaceAllUsesAfterNodeWith(node, new.output())
    node.destroy()
