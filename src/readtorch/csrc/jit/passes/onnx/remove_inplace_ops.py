"""In-place operators become such that return their result: ONNX writes to nothing.

    before                                   after
    %2 : Tensor = aten::relu_(%x)            %2 : Tensor = aten::relu(%x)
    %3 : Tensor = aten::add(%x, %2, %1)      %3 : Tensor = aten::add(%2, %2, %1)

Who reads `x` behind the write reads the result. A write through a view of `x` is not seen by this rule: such
a program is refused.

In PyTorch: `torch/csrc/jit/passes/onnx/remove_inplace_ops_for_onnx.cpp`, which follows views too. Explained
in the chapter "Multiprocessing, TensorBoard, ONNX".
"""

_OTHER_NAMES = {
    "aten::zero_": "aten::zeros_like",
    "aten::fill_": "aten::full_like",
    "aten::copy_": "aten::expand_as",
}
_MAKE_VIEWS = {
    f"aten::{name}"
    for name in (
        "view reshape select slice transpose permute t unsqueeze squeeze narrow expand unbind split chunk "
        "diagonal flatten unflatten as_strided view_as expand_as"
    ).split()
}


def RemoveInplaceOps(graph):
    """Raises RuntimeError where a view is written to."""
    for node in graph.nodes():
        kind = node.kind()
        if kind.endswith("_") and not kind.endswith("__") and kind.startswith("aten::"):
            _refuse_views(node)
            _replace(graph, node)


def _refuse_views(node):
    written = node.input(0)
    if written.node().kind() in _MAKE_VIEWS and _is_read_later(written.node().input(0), node):
        raise RuntimeError(
            f"ONNX export of '{node.kind()}' on a view is not supported: what is written to the result of "
            f"'{written.node().kind()}' would have to appear in the tensor behind it. "
            "Write it without in-place operators."
        )


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
