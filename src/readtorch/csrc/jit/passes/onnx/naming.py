"""Names for what the file shows: inputs and outputs as asked for, the rest after the modules that made it.

    %14 = onnx::Conv(%x, %w), scope: __module.layer1/__module.layer1.0/__module.layer1.0.conv1
    becomes the node "/layer1/layer1.0/conv1/Conv" with the output "/layer1/layer1.0/conv1/Conv_output_0".

In PyTorch: `torch/csrc/jit/passes/onnx/naming.cpp`, and `_set_input_and_output_names`,
`_apply_friendly_debug_names` in `torch/onnx/_internal/torchscript_exporter/utils.py`. Explained in the
chapter "export and ONNX".
"""

from readtorch.csrc.jit.ir.scope import Scope


def set_names(graph, values, names, what):
    """The names that were given to inputs or outputs. Raises RuntimeError if there are more than values."""
    if len(names or ()) > len(values):
        raise RuntimeError(f"number of {what} names provided ({len(names)}) exceeded number of {what}s ({len(values)})")
    seen = set(graph.inputs()) if what == "output" else set()
    for i, (value, name) in enumerate(zip(values, names or ())):
        if value in seen:  # one value is returned twice, or an input as it is: it cannot have two names
            value = _copy_for_output(graph, i)
        seen.add(value)
        if value.debugName() != name:
            value.setDebugName(name)


def _copy_for_output(graph, i):
    value = graph.outputs()[i]
    node = graph.create("onnx::Identity", [value]).setScope(Scope())
    copy = graph.appendNode(node).output().setType(value.type())
    graph.return_node().replaceInput(i, copy)
    return copy


def GiveLegibleNames(graph):
    """An input that has only a number is called after its first reader: `onnx::Gemm_0`."""
    for value in graph.inputs():
        if not value.hasDebugName() and value.hasUses():
            value.setDebugName(f"{value.uses()[0].user.kind()}_{value.unique()}")


def AssignScopedNames(graph):
    """Names for nodes, and for the values between them."""
    used, outputs = set(), set(graph.outputs())
    for node in graph.nodes():
        if node.kind().startswith("prim::"):
            continue
        name = _free(f"{_path(node)}/{node.kind().partition('::')[2]}", used)
        node.s_("onnx_name", name)
        for i, value in enumerate(node.outputs()):
            if value not in outputs and not value.hasDebugName():
                value.setDebugName(f"{name}_output_{i}")


def _path(node):
    """`__module.layer1/__module.layer1.0` is /layer1/layer1.0"""
    parts = filter(None, node.scopeName().split("/"))
    return "".join(f"/{_from_last_word(part.removeprefix('__module.'))}" for part in parts)


def _from_last_word(path):
    """`layer1.0.conv1` is conv1, `blocks.mlp.0` is mlp.0: numbers alone would say nothing."""
    atoms = path.split(".")
    words = [i for i, atom in enumerate(atoms) if not atom.isnumeric()]
    return ".".join(atoms[words[-1] :]) if words else path


def _free(name, used):
    """`name`, or `name_1`, `name_2` … if it is taken."""
    free, number = name, 0
    while free in used:
        number += 1
        free = f"{name}_{number}"
    used.add(free)
    return free
