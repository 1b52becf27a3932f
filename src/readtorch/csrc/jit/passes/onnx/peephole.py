"""Small rewritings of ONNX nodes, and the removal of unused ones.

    before                                                after
    %2 = onnx::Transpose[perm=[1, 0]](%w)                 %3 = onnx::Gemm[transB=1](%x, %w, %b)
    %3 = onnx::Gemm(%x, %2, %b)

In PyTorch: `torch/csrc/jit/passes/onnx/peephole.cpp`, `eliminate_unused_items.cpp`. Explained in the chapter
"export and ONNX".
"""


def PeepholeOptimizeONNX(graph):
    for node in graph.nodes():
        if node.kind() == "onnx::Gemm":
            _fuse_transpose_into_gemm(node)
        elif node.kind() == "onnx::Transpose":
            _fuse_consecutive_transposes(node)
        elif node.kind() == "onnx::Cast":
            _remove_cast_to_the_same(node)


def _fuse_transpose_into_gemm(node):
    """Gemm can transpose its factors itself."""
    for i, name in enumerate(("transA", "transB")):
        made = node.input(i).node()
        if made.kind() == "onnx::Transpose" and made.attribute("perm") == [1, 0]:
            turned = node.i(name) if node.hasAttribute(name) else 0
            node.i_(name, 1 - turned)
            node.replaceInput(i, made.input(0))


def _fuse_consecutive_transposes(node):
    """Two permutations are one; one that moves nothing is none."""
    made = node.input(0).node()
    if made.kind() == "onnx::Transpose":
        first = made.attribute("perm")
        node.is_("perm", [first[i] for i in node.attribute("perm")])
        node.replaceInput(0, made.input(0))
    if node.attribute("perm") == sorted(node.attribute("perm")):
        node.output().replaceAllUsesWith(node.input(0))


def _remove_cast_to_the_same(node):
    if node.input(0).type().dtype() is not None and node.input(0).type().dtype() == node.output().type().dtype():
        node.output().replaceAllUsesWith(node.input(0))


def eliminate_dead_nodes(graph):
    """Every node of ONNX only computes, so a node without readers can go, from the end to the beginning."""
    for node in reversed(graph.nodes()):
        if not node.hasUses():
            node.destroy()


def eliminate_unused_inputs(graph, initializers):
    """Removes parameters that no node reads from the inputs; the user's inputs stay."""
    for i in reversed(range(len(graph.inputs()))):
        value = graph.inputs()[i]
        if value.debugName() in initializers and not value.hasUses():
            del initializers[value.debugName()]
            graph.eraseInput(i)
