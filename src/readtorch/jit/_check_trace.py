"""Does a trace do what the function does? Runs both again, and traces again.

In PyTorch: `_check_trace` in `torch/jit/_trace.py`. Explained in the chapter "JIT: tracing".
"""
import difflib
import re
import warnings

import readtorch
from readtorch.csrc.jit.passes.canonicalize import Canonicalize
from readtorch.csrc.jit.passes.erase_shape_information import EraseShapeInformation
from readtorch.csrc.jit.passes.inliner import Inline
from readtorch.csrc.jit.python.python_tracer import TracerWarning


class TracingCheckError(Exception):
    """A second trace of the same function differs from the first."""

    def __init__(self, graph_diff_error, tensor_compare_error, extra_msg=None):
        self.message = "Tracing failed sanity checks!\n"
        if extra_msg is not None:
            self.message += extra_msg + "\n"
        if graph_diff_error is not None:
            self.message += f"ERROR: Graphs differed across invocations!\n{indent(graph_diff_error)}\n"
        if tensor_compare_error is not None:
            self.message += (
                "ERROR: Tensor-valued Constant nodes differed in value across invocations. This often indicates "
                f"that the tracer has encountered untraceable code.\n{indent(tensor_compare_error)}\n"
            )
        super().__init__(self.message)


def indent(text):
    return "\n".join("\t" + line for line in text.splitlines())


def clone_inputs(value):
    """The inputs with tensors of their own, so that in-place operations do not reach the caller's."""
    if isinstance(value, readtorch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return {key: clone_inputs(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        cloned = [clone_inputs(each) for each in value]
        return type(value)._make(cloned) if hasattr(value, "_make") else type(value)(cloned)
    return value


def check_function(traced, func, retrace, inputs, tolerance):
    """Compare the trace of a function with the function and with a second trace, on `inputs`."""
    _Check(traced, func, lambda: retrace(clone_inputs(inputs)), clone_inputs(inputs), {}, tolerance).run()


def check_module(module, again, mod, name, examples, tolerance, by_keyword):
    """Compare one method of a traced module with the module's and with the second trace `again`."""
    func = mod if name == "forward" else getattr(mod, name)
    kwargs = clone_inputs(examples) if by_keyword and isinstance(examples, dict) else {}
    single = isinstance(examples, (readtorch.Tensor, dict))
    inputs = () if kwargs else clone_inputs((examples,) if single else tuple(examples))
    method, second = (m._c.type.getMethod(name) for m in (module, again))
    _Check(
        _Method(module._c, method), func, lambda: _Method(again._c, second), inputs, kwargs, tolerance
    ).run()


check_module.cloned = clone_inputs


class _Method:
    """A method of an object as a function of its other arguments."""

    def __init__(self, object, method):
        self.object, self.graph, self.method = object, method.graph, method

    def __call__(self, *args, **kwargs):
        return self.method(self.object, *args, **kwargs)


class _Check:
    """One comparison. retrace() makes the second trace."""

    def __init__(self, traced, func, retrace, inputs, kwargs, tolerance):
        self.traced = traced
        self.func = func
        self.inputs = inputs
        self.kwargs = kwargs
        self.tolerance = tolerance
        self.has_warned = False
        self.second = retrace()

    def run(self):
        with readtorch.no_grad():
            traced = self.outputs(self.traced, "trace")
            original = self.outputs(self.func, "Python function")
            if self.compare(traced, original, "Python function"):
                self.compare(traced, self.outputs(self.second, "repeated trace"), "repeated trace")
        differences = self.graph_differences(), self.constant_differences()
        if any(text is not None for text in differences):
            raise TracingCheckError(*differences)

    def outputs(self, function, what):
        """The tensors that it returns."""
        try:
            result = function(*clone_inputs(self.inputs), **clone_inputs(self.kwargs))
        except Exception as e:
            message = f"encountered an exception while running the {what} with test inputs.\nException:\n{indent(str(e))}"
            raise TracingCheckError(self.graph_differences(), self.constant_differences(), message) from e
        return [
            o for o in (result if isinstance(result, tuple) else (result,)) if isinstance(o, readtorch.Tensor)
        ]

    def compare(self, outputs, references, what):
        """Whether they are close; warns of each that is not."""
        all_close = True
        for i, (output, reference) in enumerate(zip(outputs, references), 1):
            try:
                wide = (
                    (lambda t: t.to(readtorch.complex128)) if output.is_complex() else (lambda t: t.double())
                )
                readtorch.testing.assert_close(
                    wide(output), wide(reference), rtol=self.tolerance, atol=1e-5, equal_nan=True
                )
            except AssertionError as error:
                self.warn_of_random_nodes()
                warnings.warn(
                    f"Output nr {i}. of the traced function does not match the corresponding output of the {what}. "
                    f"Detailed error:\n{error}",
                    TracerWarning,
                    stacklevel=5,
                )
                all_close = False
        return all_close

    def warn_of_random_nodes(self):
        nodes = [node for node in self.traced.graph.nodes() if node.isNondeterministic()]
        if nodes and not self.has_warned:
            listed = "\n".join([indent(str(node)) for node in nodes][:20])
            warnings.warn(
                "Trace had nondeterministic nodes. Did you forget call .eval() on your model? Nodes:\n"
                f"{listed}\nThis may cause errors in trace checking. To disable trace checking, pass "
                "check_trace=False to torch.jit.trace()",
                TracerWarning,
                stacklevel=6,
            )
        self.has_warned = True

    # ----------------------------------------------------------------------------------------- the two graphs

    def canonical(self, function):
        graph = Canonicalize(function.graph, keep_unique_names=True)
        Inline(graph)
        EraseShapeInformation(graph)
        return graph

    def graph_differences(self):
        """A diff of the graphs' texts, or None."""
        first, second = (self.canonical(f) for f in (self.traced, self.second))
        texts = [re.sub(r"___torch_mangle_[0-9]+\.", "", str(graph)) for graph in (first, second)]
        if texts[0] == texts[1]:
            return None
        report = f"Graph diff:\n{_diff(*texts)}\n"
        for a, b in zip(first.nodes(), second.nodes()):
            if str(a) != str(b):
                return report + f"First diverging operator:\nNode diff:\n{_diff(str(a), str(b))}\n" + "".join(
                    f"{what} source location:\n{indent(node.sourceRange().text())}\n"
                    for what, node in (("Trace", a), ("Check", b)) if node.sourceRange())
        return report

    def constant_differences(self):
        """The first constant tensor that differs, or None."""
        first, second = (self.canonical(f) for f in (self.traced, self.second))
        for a, b in zip(first.nodes(), second.nodes()):
            if a.kind() != b.kind():
                return None
            if a.kind() == "prim::Constant" and all(
                n.hasAttribute("value") and n.kindOf("value") == "t" for n in (a, b)
            ):
                try:
                    readtorch.testing.assert_close(a.t("value"), b.t("value"), equal_nan=True)
                except AssertionError as error:
                    where = f"Source Location:\n{indent(a.sourceRange().text())}\n" if a.sourceRange() else ""
                    return f"Node:\n{indent(str(a))}\n{where}Comparison exception: {indent(str(error))}"
        return None


def _diff(a, b):
    return indent("".join(difflib.ndiff(a.splitlines(True), b.splitlines(True))))
