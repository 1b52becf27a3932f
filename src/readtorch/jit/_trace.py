"""`trace` and `trace_module`: TorchScript from one run of a function, and whether it does what the function does.

In PyTorch: `torch/jit/_trace.py`. Explained in the chapter "JIT: tracing".
"""

import difflib
import functools
import inspect
import re
import warnings

import readtorch
from readtorch.c10.local_dispatch_key_set import trace_under_way
from readtorch.csrc.jit.api.compilation_unit import python_cu
from readtorch.csrc.jit.frontend import trace_type, tracer  # noqa: F401  (the Tracer key's kernels)
from readtorch.csrc.jit.ir.constants import qualified_name
from readtorch.csrc.jit.ir.type import (
    BoolType,
    ClassType,
    DictType,
    ListType,
    NoneType,
    OptionalType,
    TensorType,
    TupleType,
)
from readtorch.csrc.jit.passes.canonicalize import Canonicalize
from readtorch.csrc.jit.passes.inliner import Inline
from readtorch.csrc.jit.passes.lower_graph import lower_graph, specialize
from readtorch.csrc.jit.passes.shape_analysis import EraseShapeInformation
from readtorch.csrc.jit.python.python_tracer import TracerWarning
from readtorch.csrc.jit.python.script_init import ScriptFunction

from ._script import ScriptModule

__all__ = ["TracerWarning", "TracingCheckError", "is_tracing", "trace", "trace_module"]


def is_tracing():
    """Whether a trace is under way."""
    return trace_under_way() is not None


def trace(
    func,
    example_inputs=None,
    optimize=None,
    check_trace=True,
    check_inputs=None,
    check_tolerance=1e-5,
    strict=True,
    _force_outplace=False,
    _module_class=None,
    _compilation_unit=python_cu,
    example_kwarg_inputs=None,
    _store_inputs=True,
):
    """Run `func` once on `example_inputs` and return what it did as a ScriptFunction (a ScriptModule for a
    module).

    check_trace: run both once more and compare, on `check_inputs` if given. strict: refuse dicts as outputs
    and warn of lists. Raises RuntimeError for inputs and outputs that a trace cannot follow,
    TracingCheckError if a second trace differs.
    """
    warnings.warn(
        "`torch.jit.trace` is deprecated. Please switch to `torch.compile` or `torch.export`.", DeprecationWarning
    )
    _warn_of_optimize(optimize)
    module = _module_of(func)
    if module is not None:
        if isinstance(module, TracedModule):
            warnings.warn(
                "The input to trace is already a ScriptModule, tracing it is a no-op. Returning the object as is.",
                stacklevel=2,
            )
            return func
        inputs = _example_inputs(example_inputs, example_kwarg_inputs)
        checks = None if check_inputs is None else [{"forward": c} for c in check_inputs]
        return _trace_module(
            module,
            {"forward": inputs},
            check_trace,
            checks,
            check_tolerance,
            strict,
            _force_outplace,
            example_kwarg_inputs is not None,
        )
    if isinstance(getattr(func, "__self__", None), readtorch.nn.Module):
        raise AttributeError("trace doesn't support compiling individual module's functions.\nPlease use trace_module")
    inputs, kwargs = _function_inputs(func, example_inputs, example_kwarg_inputs)
    traced = _trace_function(func, inputs, strict, _force_outplace, kwargs)
    if check_trace:
        retrace = functools.partial(_trace_function, func, strict=strict, force_outplace=_force_outplace, names=kwargs)
        for example in check_inputs if check_inputs is not None else [inputs]:
            check_function(traced, _called_with(func, kwargs), retrace, make_tuple(example), check_tolerance)
    return traced


def _warn_of_optimize(optimize):
    if optimize is not None:
        warnings.warn(
            "`optimize` is deprecated and has no effect. Use `with torch.jit.optimized_execution()` instead",
            FutureWarning,
            stacklevel=3,
        )


def _module_of(func):
    """The module that `func` is, or whose `forward` it is."""
    if isinstance(func, readtorch.nn.Module):
        return func
    owner = getattr(func, "__self__", None)
    return owner if isinstance(owner, readtorch.nn.Module) and func.__name__ == "forward" else None


def make_tuple(example_inputs):
    """A single tensor or dict means a tuple of one."""
    if isinstance(example_inputs, (readtorch.Tensor, dict)):
        return (example_inputs,)
    return tuple(example_inputs)


def _example_inputs(example_inputs, example_kwarg_inputs):
    if example_inputs is not None:
        return example_inputs
    if not isinstance(example_kwarg_inputs, dict):
        raise RuntimeError("example_kwarg_inputs should be a dict")
    return example_kwarg_inputs


def _function_inputs(func, example_inputs, example_kwarg_inputs):
    """The inputs in order, and the names by which they are passed (None: by position)."""
    if isinstance(example_kwarg_inputs, dict):
        return tuple(example_kwarg_inputs.values()), tuple(example_kwarg_inputs)
    return make_tuple(example_inputs), None


def _called_with(func, names):
    """`func` as a function of positional arguments; names: those by which it wants them."""
    return func if names is None else lambda *args: func(**dict(zip(names, args)))


# -------------------------------------------------------------------------------------------------- functions


def _trace_function(func, inputs, strict=True, force_outplace=False, names=None):
    check_traceable(inputs)
    arguments = names or argument_names(func)
    graph, _ = tracer.trace(_called_with(func, names), inputs, strict, force_outplace, None, arguments)
    function = python_cu.create_function(qualified_name(func), graph)
    if len(arguments) == len(inputs):
        function.argument_names = list(arguments)
    return ScriptFunction(function)


def argument_names(func):
    """The names of a callable's positional parameters; none if it takes any number."""
    try:
        parameters = inspect.signature(func).parameters.values()
    except (TypeError, ValueError):
        return []
    if any(p.kind not in (p.POSITIONAL_OR_KEYWORD,) for p in parameters):
        return []
    return [p.name for p in parameters]


def check_traceable(inputs):
    """Raises RuntimeError unless the inputs are tensors or tuples, lists, dicts of them."""
    from readtorch.csrc.jit.ir.constants import type_of_value

    types = [type_of_value(each) for each in inputs]
    if not all(map(_is_traceable, types)):
        raise RuntimeError(
            f"Type '{TupleType(types).annotation_str}' cannot be traced. Only Tensors and (possibly nested) "
            "Lists, Dicts, and Tuples of Tensors can be traced"
        )


def _is_traceable(type):
    if isinstance(type, TensorType):
        return True
    if isinstance(type, (ListType, OptionalType)):
        return _is_traceable(type.elem)
    if isinstance(type, DictType):
        return _is_traceable(type.value)
    return isinstance(type, TupleType) and all(map(_is_traceable, type.types))


# ---------------------------------------------------------------------------------------------------- modules


def trace_module(
    mod,
    inputs,
    optimize=None,
    check_trace=True,
    check_inputs=None,
    check_tolerance=1e-5,
    strict=True,
    _force_outplace=False,
    _module_class=None,
    _compilation_unit=python_cu,
    example_inputs_is_kwarg=False,
    _store_inputs=True,
):
    """Trace several methods of a module. inputs: method name -> example inputs. Returns a ScriptModule with
    these methods.
    """
    warnings.warn(
        "`torch.jit.trace_method` is deprecated. Please switch to `torch.compile` or `torch.export`.",
        DeprecationWarning,
    )
    _warn_of_optimize(optimize)
    if not isinstance(mod, readtorch.nn.Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    return _trace_module(
        mod, inputs, check_trace, check_inputs, check_tolerance, strict, _force_outplace, example_inputs_is_kwarg
    )


def _trace_module(mod, inputs, check_trace, check_inputs, check_tolerance, strict, force_outplace, by_keyword):
    module = _trace_methods(mod, inputs, strict, force_outplace, by_keyword)
    if check_trace:
        for examples in check_inputs if check_inputs is not None else [inputs]:
            again = _trace_methods(mod, check_module.cloned(examples), strict, force_outplace, by_keyword)
            for name in inputs:
                check_module(module, again, mod, name, examples[name], check_tolerance, by_keyword)
    return module


def _trace_methods(mod, inputs, strict, force_outplace, by_keyword):
    """A new ScriptModule whose methods are traces of `mod`'s."""
    object = make_object(mod)
    paths = {mod: None, **{child: f"__module.{name}" for name, child in mod.named_modules() if child is not mod}}
    for name, examples in inputs.items():
        func = mod if name == "forward" else getattr(mod, name)
        given, names = _method_inputs(mod, name, examples, by_keyword)
        check_traceable(given)
        arguments = names or argument_names(getattr(mod, name))
        graph, _ = tracer.trace(_called_with(func, names), given, strict, force_outplace, object, arguments, paths)
        _define_method(object.type, name, graph, arguments, len(given))
    return TopLevelTracedModule(object)


def _method_inputs(mod, name, examples, by_keyword):
    if not (by_keyword and isinstance(examples, dict)):
        return make_tuple(examples), None
    known = argument_names(getattr(mod, name))
    for key in examples:
        if key not in known:
            raise NameError(
                f"'{key}' is not in forward() method's arguments,\n                         valid arguments name "
                f"are [{','.join(known)}]"
            )
    return tuple(examples.values()), tuple(examples)


def _define_method(type, name, graph, arguments, count):
    method = type.compilation_unit.create_function(f"{type.qualified}.{name}", graph, mangle=False)
    method.argument_names = ["self", *arguments] if len(arguments) == count else None
    type.methods.pop(name, None)
    type.addMethod(method)


# -------------------------------------------------------------------------------------------------------------- modules


def make_object(module, seen=None):
    """What is `_c` of a traced module: its parameters, buffers and submodules, in a new class without methods.

    Raises ValueError for a parameter that two modules share, and for backward hooks.
    """
    if isinstance(module, TracedModule):
        return module._c
    seen = set() if seen is None else seen
    if module._backward_hooks:
        raise ValueError(f"Modules that have backward hooks assigned can't be compiled: {module}")
    type = ClassType(python_cu.free_name(qualified_name(module.__class__)), python_cu, is_module=True)
    python_cu.register_type(type)
    slots = []
    for kind, tensors in (("parameter", module._parameters), ("buffer", module._buffers)):
        for name, tensor in tensors.items():
            if tensor is None:
                type.addAttribute(name, NoneType.get())
            else:
                _check_unique(tensor, seen)
                type.addAttribute(name, TensorType.get(), kind == "parameter", kind == "buffer")
            slots.append(tensor)
    type.addAttribute("training", BoolType.get())
    type.addAttribute("_is_full_backward_hook", OptionalType(BoolType.get()))
    slots += [module.training, None]
    for name, child in module._modules.items():
        if child is not None:
            object = make_object(child)
            type.addAttribute(name, object.type)
            slots.append(object)
    return readtorch._C.ScriptModule(type, slots)


def _check_unique(tensor, seen):
    if id(tensor) in seen:
        raise ValueError("TracedModules don't support parameter sharing between modules")
    seen.add(id(tensor))


class TracedModule(ScriptModule):
    """A submodule of a traced module. `_c` is the object that its graphs are methods of."""

    def __init__(self, object):
        super().__init__()
        self.__dict__["_c"] = object
        self.__dict__["_name"] = object.type.name()
        for attribute, value in zip(object.type.attributes, object.slots):
            if attribute.kind == "parameter":
                self._parameters[attribute.name] = value
            elif attribute.kind == "buffer":
                self._buffers[attribute.name] = value
            elif attribute.type.is_module():
                self._modules[attribute.name] = TracedModule(value)
            elif attribute.name == "training":
                self.training = value

    def forward(self, *args, **kwargs):
        raise RuntimeError("Trace submodules cannot be called.")

    def _get_name(self):
        return self._name

    @property
    def original_name(self):
        return self._name

    def extra_repr(self):
        return f"original_name={self._name}"

    def train(self, mode=True):
        """Set the flag. What was traced stays as it was traced: graphs do not look at it."""
        super().train(mode)
        if self._c.hasattr("training"):
            self._c.setattr("training", mode)
        return self


class TopLevelTracedModule(TracedModule):
    """A traced module: calling it runs the graph of `forward`; other traced methods are attributes."""

    def forward(self, *args, **kwargs):
        return self._c.method("forward")(*args, **kwargs)

    def __getattr__(self, name):
        object = self.__dict__.get("_c")
        if object is not None and object.type.findMethod(name) is not None:
            return object.method(name)
        return super().__getattr__(name)

    def graph_for(self, *args, **kwargs):
        """The graph that really runs, after optimisation."""
        self(*args, **kwargs)
        return self._c.type.getMethod("forward").executor().plan()[0]


# ------------------------------------------------------------------------- checks: both are run again, and traced again


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
    _Check(_Method(module._c, method), func, lambda: _Method(again._c, second), inputs, kwargs, tolerance).run()


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
            message = (
                f"encountered an exception while running the {what} with test inputs.\nException:\n{indent(str(e))}"
            )
            raise TracingCheckError(self.graph_differences(), self.constant_differences(), message) from e
        return [o for o in (result if isinstance(result, tuple) else (result,)) if isinstance(o, readtorch.Tensor)]

    def compare(self, outputs, references, what):
        """Whether they are close; warns of each that is not."""
        all_close = True
        for i, (output, reference) in enumerate(zip(outputs, references), 1):
            try:
                wide = (lambda t: t.to(readtorch.complex128)) if output.is_complex() else (lambda t: t.double())
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
                return (
                    report
                    + f"First diverging operator:\nNode diff:\n{_diff(str(a), str(b))}\n"
                    + "".join(
                        f"{what} source location:\n{indent(node.sourceRange().text())}\n"
                        for what, node in (("Trace", a), ("Check", b))
                        if node.sourceRange()
                    )
                )
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


# -------------------------------------------------------- traces without modules: parameters are inputs like all others


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
    graph, _ = tracer.trace(run, [*tensors, *state.values()], strict=False, module_names=paths, inline_functions=True)
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
    """The same nest with each tensor replaced by the next of `tensors`."""
    if isinstance(thing, readtorch.Tensor):
        return next(tensors)
    if isinstance(thing, dict):
        return {key: rebuild(part, tensors) for key, part in thing.items()}
    if isinstance(thing, (tuple, list)):
        parts = [rebuild(part, tensors) for part in thing]
        return type(thing)(*parts) if hasattr(thing, "_make") else type(thing)(parts)
    return thing
