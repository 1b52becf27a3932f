"""A capture for `export.export(strict=True)`: a function of a module's state and arguments, without guards.

    def forward(state, L_self, L_args, L_kwargs):
        I0, I1 = state                                 parameters, buffers and other tensors that the graph reads
        t1 = L_args[0]                                 the other inputs of the graph
        g0, = graph(t1, I0, I1)                        the graph
        return {"logits": g0}                          the result

What the module changes besides tensors is not done; a warning says what it is.

In PyTorch: `torch/_dynamo/functional_export.py`.
"""

import re
import warnings

from readtorch._dynamo.codegen import FunctionWriter, PyCodegen
from readtorch._dynamo.convert_frame import Capture, leaves_autocast, read_input
from readtorch._dynamo.eval_frame import ExtraState, Settings, _compiling
from readtorch._dynamo.exc import CannotGenerate, Unsupported
from readtorch._dynamo.output_graph import identifier
from readtorch._dynamo.source import ConstantSource, Source, fqn_of, is_held, root_of
from readtorch._dynamo.variables.base import VariableTracker
from readtorch._dynamo.variables.tensor import TensorVariable
from readtorch.aten.codegen import compile_function
from readtorch.fx import GraphModule, Interpreter
from readtorch.fx.traceback import preserve_node_meta
from readtorch.nn import Module


class CaptureOutput:
    """forward(state, args, kwargs): the module's result. state: {name: tensor}, what is to be given as `state`, in the order of the
    first reads. A name is the path by which the tensor was found, "layer.weight"; another one for tensors that are not in the module.
    """

    def __init__(self, forward, state):
        self.forward, self.state = forward, state


def dynamo_graph_capture_for_export(mod, fake_mode):
    """A function of (args, kwargs) that captures a call of `mod` with them: CaptureOutput. Raises Unsupported.

    fake_mode: knows the arguments' FakeTensors; ints that may change are SymInts.
    """

    def call(self, args, kwargs):
        return self(*args, **kwargs)

    def inner(args, kwargs):
        settings = Settings(None, fullgraph=True, dynamic=False, fake_mode=fake_mode)
        state = ExtraState(settings, call.__code__, call.__globals__)
        try:
            with _compiling():
                return _ExportCapture(state, None, (mod, args, kwargs)).attempt(None, None)
        except CannotGenerate as error:
            raise Unsupported(str(error)) from error

    return inner


class _ExportCapture(Capture):
    """A capture whose function has no guards, and raises what the graph raises."""

    def generate(self, output, tx, outcome, reason):
        if outcome is None:
            raise Unsupported(reason)
        _warn_of_side_effects(output.side_effects)
        writer = FunctionWriter(indent=1)
        codegen = _ExportCodegen(output, writer)
        result = codegen(outcome[1])
        output.graph.output(tuple(codegen.graph_outputs))
        run = writer.hold(_runner(output))
        results = "".join(f"{name}, " for name in codegen.graph_outputs.values())
        lines = [
            f"def forward(state, {', '.join(self.state.parameters)}):",
            f"    {''.join(f'{name}, ' for name in codegen.state.values())}= state" if codegen.state else "    pass",
            *writer.lines,
            f"    {results}{'= ' * bool(results)}{run}({', '.join(map(codegen.input, output.inputs))})",
            *codegen.body,
            f"    return {result}",
            "",
        ]
        forward = compile_function("forward", "\n".join(lines), writer.held)
        return CaptureOutput(forward, {_name_of(source): output.inputs[source][3] for source in codegen.state})


class _ExportCodegen(PyCodegen):
    """state: source -> the name of a tensor of the module."""

    def __init__(self, output, writer):
        super().__init__(output, writer)
        self.state = {}
        for key in output.inputs:
            self.input(key)

    def input(self, key):
        """The text of an input of the graph."""
        if isinstance(key, Source) and root_of(key).key not in ("L_args", "L_kwargs") and not is_held(key):
            return self.state.setdefault(key, f"I{len(self.state)}")
        return read_input(self.writer, key)

    def __call__(self, variable):
        """Each tensor of the result is one of the graph."""
        variable = variable.realize()
        if isinstance(variable, TensorVariable) and variable.source is not None:
            variable.as_proxy(self.output)
            return self.input(variable.source)
        return super().__call__(variable)


def _runner(output):
    """A function of the graph's inputs that runs it, so that a trace notes where its nodes come from."""
    module = GraphModule(output.nn_modules, output.graph)
    for node in output.graph.nodes:
        if "nn_module_stack" in node.meta:
            node.meta["nn_module_stack"] = _normalized(node.meta["nn_module_stack"])

    def run(*inputs):
        with preserve_node_meta():
            return Interpreter(module).run(*inputs)

    return leaves_autocast(run) if output.has_autocast else run


def _normalized(nn_module_stack):
    """With paths in the root module, and names of classes. In PyTorch: `_normalize_nn_module_stack` in `torch/export/_trace.py`."""
    found = {}
    for key, (name, cls) in nn_module_stack.items():
        path = _path_of(name)
        if path is not None:
            found["L__self__" if not path else key] = path, f"{cls.__module__}.{cls.__qualname__}"
    return found


def _path_of(name):
    """L['self'].layers.0 -> layers.0; None for what is not in the root module."""
    return name.removeprefix("L['self']").removeprefix(".") if name.startswith("L['self']") else None


def _name_of(source):
    """How the inputs of the program call a tensor: by its path in the module, or in the module of Python that has it."""
    path = _path_of(fqn_of(source))
    if path is not None:
        return path if re.fullmatch(r"[\w.]+", path) else f"self__{identifier(f'.{path}')}".rstrip("_")
    if isinstance(source.base, ConstantSource) and isinstance(source.base.key, dict):
        module = str(source.base.key.get("__name__")).replace(".", "_dot_")
        return f"G____import_{module}___{source.key}"
    return identifier(source.name)


def _warn_of_side_effects(side_effects):
    changed = [entry for entry in side_effects.log.values() if isinstance(entry[1], VariableTracker)]
    changed = [
        (v, f"{v.source.name}._buffers" if _is_buffer(v, name) else v.source.name)
        for _, v, name, _ in changed
        if v.source
    ]
    found = list(dict.fromkeys(name for _, name in sorted(changed, key=lambda pair: pair[0].serial)))
    if found:
        warnings.warn(
            "While compiling, we found certain side effects happened in the model.forward. "
            f"Here are the list of potential sources you can double check: {found}"
        )


def _is_buffer(variable, name):
    return isinstance(variable.original, Module) and name in variable.original._buffers
