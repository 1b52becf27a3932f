"""A trace as one graph without modules: parameters are inputs like all others.

In PyTorch: `_get_trace_graph`, `ONNXTracedModule`, `_unique_state_dict` in `torch/jit/_trace.py`. Explained
in the chapter "Multiprocessing, TensorBoard, ONNX".
"""
import readtorch
from readtorch.csrc.jit.frontend import trace_type, tracer  # noqa: F401  (the Tracer key's kernels)
from readtorch.csrc.jit.python.script_init import ScriptFunction
from readtorch.jit._lower_graph import lower_graph, specialize
from readtorch.jit._script_module import ScriptModule


def unique_state_dict(module):
    """Parameters and buffers by name, each tensor once, under the first of its names."""
    found = {}
    for name, tensor in module.state_dict(keep_vars=True).items():
        found.setdefault(id(tensor), (name, tensor))
    return dict(found.values())


def get_trace_graph(module, args):
    """Call `module(*args)` and return (graph, result, state).

    The inputs of the graph are the tensors in `args`, however deep they lie, and then those of `state`: a
    dict of name -> parameter or buffer. The outputs are the tensors of the result.
    """
    tensors, outcome = list(flatten(args)), []
    if isinstance(module, (ScriptModule, ScriptFunction)):
        return _graph_of_script(module, tensors)
    state = unique_state_dict(module)

    def run(*given):
        outcome.append(module(*rebuild(args, iter(given))))
        return tuple(flatten(outcome[0]))

    paths = {child: f"__module.{name}" for name, child in module.named_modules() if child is not module}
    graph, _ = tracer.trace(run, [*tensors, *state.values()], strict=False, module_names=paths)
    for value, name in zip(graph.inputs()[len(tensors) :], state):
        value.setDebugName(name)
    return graph, outcome[0], state


def _graph_of_script(script, tensors):
    """Of TorchScript there is a graph already: it wants types alone."""
    graph, state = lower_graph(script)
    specialize(graph, [*tensors, *state.values()])
    for value, name in zip(graph.inputs()[len(tensors) :], state):
        value.setDebugName(name)
    return graph, None, state


def flatten(thing):
    """The tensors in nested tuples, lists and dicts, in order."""
    if isinstance(thing, readtorch.Tensor):
        yield thing
    elif isinstance(thing, (tuple, list, dict)):
        for part in thing.values() if isinstance(thing, dict) else thing:
            yield from flatten(part)


def rebuild(thing, tensors):
    """The same nest with the next of `tensors` in the place of each."""
    if isinstance(thing, readtorch.Tensor):
        return next(tensors)
    if isinstance(thing, dict):
        return {key: rebuild(part, tensors) for key, part in thing.items()}
    if isinstance(thing, (tuple, list)):
        parts = [rebuild(part, tensors) for part in thing]
        return type(thing)(*parts) if hasattr(thing, "_make") else type(thing)(parts)
    return thing
