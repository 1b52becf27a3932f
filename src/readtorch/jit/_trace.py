"""`trace` and `trace_module`: TorchScript from one run of a function.

In PyTorch: `torch/jit/_trace.py`. Explained in the chapter "JIT: tracing".
"""
import functools
import inspect
import warnings

import readtorch
from readtorch.c10.dispatch_key import trace_under_way
from readtorch.csrc.jit.api.compilation_unit import python_cu
from readtorch.csrc.jit.frontend import trace_type, tracer  # noqa: F401  (the Tracer key's kernels)
from readtorch.csrc.jit.ir.constants import qualified_name
from readtorch.csrc.jit.ir.type import DictType, ListType, OptionalType, TensorType, TupleType
from readtorch.csrc.jit.python.python_tracer import TracerWarning
from readtorch.csrc.jit.python.script_init import ScriptFunction
from readtorch.jit._check_trace import TracingCheckError, check_function, check_module
from readtorch.jit._traced_module import TopLevelTracedModule, TracedModule, make_object

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
        "`torch.jit.trace` is deprecated. Please switch to `torch.compile` or `torch.export`.",
        DeprecationWarning,
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
        raise AttributeError(
            "trace doesn't support compiling individual module's functions.\nPlease use trace_module"
        )
    inputs, kwargs = _function_inputs(func, example_inputs, example_kwarg_inputs)
    traced = _trace_function(func, inputs, strict, _force_outplace, kwargs)
    if check_trace:
        retrace = functools.partial(
            _trace_function, func, strict=strict, force_outplace=_force_outplace, names=kwargs
        )
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
    """A single tensor or dict stands for a tuple of one."""
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
    return _trace_module(mod, inputs, check_trace, check_inputs, check_tolerance, strict, _force_outplace,
                         example_inputs_is_kwarg)


def _trace_module(
    mod, inputs, check_trace, check_inputs, check_tolerance, strict, force_outplace, by_keyword
):
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
    paths = {
        mod: None,
        **{child: f"__module.{name}" for name, child in mod.named_modules() if child is not mod},
    }
    for name, examples in inputs.items():
        func = mod if name == "forward" else getattr(mod, name)
        given, names = _method_inputs(mod, name, examples, by_keyword)
        check_traceable(given)
        arguments = names or argument_names(getattr(mod, name))
        graph, _ = tracer.trace(
            _called_with(func, names), given, strict, force_outplace, object, arguments, paths
        )
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


