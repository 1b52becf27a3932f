"""Tracing: run a function once, and record the operators that it calls.

The Tracer key is on every tensor. While a trace is under way the key is let through, so every call comes here first, is
written into the graph, and goes on to where it would have gone. Nothing but operators is seen: an `if` leaves no trace.

`x.shape[0]` is a tensor meanwhile, so that what is computed from it is recorded. Where an operator wants a number, the
tensor becomes one that remembers which Value it is.

In PyTorch: `torch/csrc/jit/frontend/tracer.cpp`; the kernels are written by `tools/autograd/gen_trace_type.py`.
Explained in the chapter "JIT: tracing".
"""

import contextlib

import numpy as np

from readtorch.aten.native.return_types import is_return_type
from readtorch.c10.device import device
from readtorch.c10.dispatch_key import TRACER, WRAPPED_NUMBER
from readtorch.c10.local_dispatch_key_set import KeyGuard, tls
from readtorch.c10.memory_format import preserve_format
from readtorch.c10.size import new_size
from readtorch.c10.tensor_impl import TensorImpl, only_element, wrap
from readtorch.csrc.distributed.future import Future
from readtorch.csrc.jit.ir.constants import type_of_value
from readtorch.csrc.jit.ir.graph import Graph
from readtorch.csrc.jit.ir.type import (
    DictType,
    FloatType,
    FutureType,
    IntType,
    ListType,
    NumberType,
    OptionalType,
    StringType,
    TensorType,
    TupleType,
)
from readtorch.csrc.jit.passes.fixup_trace_scope_blocks import FixupTraceScopeBlocks
from readtorch.csrc.jit.python import python_tracer

STRICT = (
    " might cause the trace to be incorrect, this is only valid if the container structure does not change based on "
    "the module's inputs. Consider using a constant container instead (e.g. for `list`, use a `tuple` instead. for "
    "`dict`, use a `NamedTuple` instead). If you absolutely need this and know the side effects, pass strict=False "
    "to trace() to allow this behavior."
)
DATAFLOW = (
    " might cause the trace to be incorrect. We can't record the data flow of Python values, so this value will be "
    "treated as a constant in the future. This means that the trace might not generalize to other inputs!"
)
CONSTRUCTOR = (
    " results are registered as constants in the trace. You can safely ignore this warning if you use this "
    "function to create tensors out of constant variables that would be the same every time you call this "
    "function. In any other case, this might cause the trace to be incorrect."
)
RESIZE = (
    " can't be represented in the JIT at the moment, so we won't connect any uses of this value with its current "
    "trace. If you happen to use it again, it will show up as a constant in the graph."
)


class TracedInt(int):
    """An int that stands for `value` in the trace `state`."""

    def __new__(cls, number, value, state):
        self = super().__new__(cls, number)
        self.value, self.state = value, state
        return self


class TracedFloat(float):
    """A float that stands for `value` in the trace `state`."""

    def __new__(cls, number, value, state):
        self = super().__new__(cls, number)
        self.value, self.state = value, state
        return self


def traced_value(number):
    """The Value that a number stands for in the trace that is under way, or None."""
    return number.value if isinstance(number, (TracedInt, TracedFloat)) and number.state is tls.tracer else None


def with_arguments(function, example):
    """A function of the tensors among the arguments: what was no tensor in the example is passed as it was."""
    are_tensors = [isinstance(a, TensorImpl) for a in example]
    others = [None if is_tensor else a for is_tensor, a in zip(are_tensors, example)]

    def call(*tensors):
        rest = iter(tensors)
        return function(*[next(rest) if is_tensor else a for is_tensor, a in zip(are_tensors, others)])

    return call


class TracingState:
    """A trace under way: the graph, and which Value stands for which tensor (or object) of the program."""

    def __init__(self, strict=True, force_outplace=False):
        self.graph = Graph()
        self.strict = strict  # lists and dicts as outputs: warned about, refused
        self.force_outplace = force_outplace  # x.add_(1) is recorded as x.add(1)
        self.values = {}  # id -> (the thing, which must live as long as its id is in use, Value)
        self.inlines_functions = False  # autograd Functions are recorded by their operators
        self.is_unheard = False  # inside of an operator that returns no tensor
        self.module_names = None  # nn.Module -> path, while a module is traced

    # ----------------------------------------------------------------------------------------------- warnings

    def warn(self, message):
        python_tracer.warn(message)

    def warn_of_conversion(self, kind):
        """A tensor becomes a Python `kind`, and what is done with that is not seen."""
        if self.is_unheard:
            return
        python_tracer.warn(f"Converting a tensor to a {'' if kind == 'NumPy array' else 'Python '}{kind}" + DATAFLOW)

    def warn_of_constructor(self, name):
        """A tensor is made from Python's or NumPy's values."""
        python_tracer.warn(name + CONSTRUCTOR)

    def resized(self, name, tensor):
        """`tensor.resize_(…)` leaves no node: where the tensor is used from now on, its elements are a constant."""
        python_tracer.warn(name + RESIZE)
        self.values.pop(id(tensor), None)

    def not_recorded(self, name):
        """An operator that returns no tensor, such as `equal`, was called. (In PyTorch: no warning.)"""

    @contextlib.contextmanager
    def unheard(self):
        """The part of an operator that returns no tensor: `allclose` asks a tensor for its truth, in PyTorch below Python, where
        nothing warns.
        """
        before, self.is_unheard = self.is_unheard, True
        try:
            yield
        finally:
            self.is_unheard = before

    def paused(self, function):
        """What `function()` returns; its operators are not recorded."""
        with Paused():
            return function()

    # ----------------------------------------------------------------------------------- what stands for what

    def set_value(self, thing, value):
        """`value` stands for `thing`: a tensor, an object, a future, or a list, tuple, dict of tensors."""
        if isinstance(thing, (tuple, list)):
            self._unpack(thing, value)
        else:
            self.values[id(thing)] = (thing, value)

    def _unpack(self, things, value):
        create = self.graph.createListUnpack if isinstance(things, list) else self.graph.createTupleUnpack
        node = self.graph.insertNode(create(value, len(things)) if isinstance(things, list) else create(value))
        for thing, output in zip(things, node.outputs()):
            self.set_value(thing, output)

    def has_value(self, thing):
        return id(thing) in self.values

    def get_value(self, thing):
        """The Value that stands for `thing`; a new constant if the trace has not seen it."""
        if isinstance(thing, list) and thing and all(isinstance(t, TensorImpl) for t in thing):
            return self.list_of(TensorType.get(), [self.get_value(t) for t in thing])
        if isinstance(thing, tuple):
            return self.graph.insertNode(self.graph.createTuple([self.get_value(t) for t in thing])).output()
        if id(thing) in self.values:
            value = self.values[id(thing)][1]
            if isinstance(thing, TensorImpl) and not value.hasDebugName():
                value.setDebugName(python_tracer.name_of_variable(thing))
            return value
        if isinstance(thing, TensorImpl):
            return self._tensor_constant(thing)
        if isinstance(thing, Future):
            raise RuntimeError("Tried to trace Future or Object that the tracer was not aware of.")
        if hasattr(thing, "slots"):
            raise RuntimeError(
                f"Tried to trace {thing} but it is not part of the active trace. Modules that are called "
                "during a trace must be registered as submodules of the thing being traced."
            )
        return self.constant(thing)

    def _tensor_constant(self, tensor):
        with Paused():
            value = self.constant(tensor)
        self.values[id(tensor)] = (tensor, value)
        return value

    # ------------------------------------------------------------------------------------------------ writing

    def constant(self, value, type=None):
        """A new constant; a None has no line, as in PyTorch."""
        return self.graph.insertConstant(value, type, None if value is None else python_tracer.source_range())

    def list_of(self, type, values):
        return self.graph.insertNode(self.graph.createList(type, values)).output()

    def number(self, thing, type=None):
        """The Value of a Python number: if it was made from a tensor of the trace, what stands for that."""
        return traced_value(thing) or self.constant(thing, type)

    def record(self, operator, arguments):
        """Write the call of `operator`; returns the node, which has no outputs yet."""
        schema = operator.schema
        name = schema.name
        if self.force_outplace and schema.is_inplace:
            name = {"zero_": "zeros_like", "fill_": "full_like"}.get(name, name.removesuffix("_"))
        name = _RECORDED_AS.get(name, name)
        node = self.graph.create(f"{schema.namespace}::{name}", (), 0).setSourceRange(python_tracer.source_range())
        has_tensors = any(a.type.is_tensor for a in schema.arguments)
        takes_numbers = name.removesuffix("_") in _HAVE_NUMBER_OVERLOADS
        for argument, thing in zip(schema.arguments, arguments):
            if (
                takes_numbers
                and isinstance(thing, TensorImpl)
                and thing._keys & WRAPPED_NUMBER
                and not self.has_value(thing)
            ):
                node.addInput(self.constant(thing._array.item()))
                continue
            node.addInput(self._argument(argument, thing, has_tensors))
        for flag in _MORE_FLAGS.get(schema.name, ()):
            node.addInput(self.constant(flag))
        return self.graph.insertNode(node)

    def _argument(self, argument, thing, has_tensors):
        """The Value of one argument of an operator's call."""
        kind = argument.type
        if kind.base == "Tensor" and not kind.is_list:
            return self.constant(None) if thing is None else self.get_value(thing)
        if kind.base == "Generator":
            return self.constant(None)
        if thing is None:
            return self.constant(_implied(argument.name, has_tensors))
        if not kind.is_list:
            return self.number(float(thing) if kind.base == "float" and isinstance(thing, int) else thing)
        if kind.base == "Tensor":
            element = OptionalType(TensorType.get()) if kind.inner_optional else TensorType.get()
            return self.list_of(element, [self.constant(None) if t is None else self.get_value(t) for t in thing])
        values = [self.number(t) for t in thing]
        return self.list_of(_LIST_TYPES[kind.base].get(), values)

    def call(self, kind, arguments, function):
        """Record a call that is not an operator of the dispatcher as one node, `kind` of `arguments`; returns
        `function()`.
        """
        node = self.graph.create(kind, (), 0).setSourceRange(python_tracer.source_range())
        for thing in arguments:
            node.addInput(self.any_value(thing))
        self.graph.insertNode(node)
        with Paused():
            result = function()
        self.set_outputs(node, result)
        return result

    def record_function(self, function, arguments):
        """Write `function.apply(…)`, of an autograd Function, as one node, which calls Python when the trace runs. Returns the
        node, which has no outputs yet.

        `forward` is recorded behind it, too; when the trace ends nobody uses that. In PyTorch: `_trace_pre_record`.
        """
        tensors = [self.get_value(a) for a in arguments if isinstance(a, TensorImpl)]
        node = self.graph.create("prim::PythonOp", tensors, 0).setSourceRange(python_tracer.source_range())
        node.s_("name", function.__name__).ival_("function", with_arguments(function.apply, arguments))
        node.ival_("scalar_args", [a for a in arguments if not isinstance(a, TensorImpl)]).s_(
            "module", function.__module__
        )
        return self.graph.insertNode(node)

    def set_outputs_of_function(self, node, outputs, is_tuple, is_inplace):
        """The node's result: a tensor, or a tuple, which is taken apart at once. In PyTorch: `_trace_post_record`."""
        node.i_("inplace", int(is_inplace))
        value = node.addOutput()
        if is_tuple:
            value.setType(TupleType([TensorType.get()] * len(outputs)))
            parts = self.graph.createTupleUnpack(value).insertAfter(node).outputs()
            for part, thing in zip(parts, outputs):
                self._output(part, thing if isinstance(thing, TensorImpl) else None)
            value.setType(TupleType([part.type() for part in parts]))
        else:
            self._output(value, outputs[0])

    def any_value(self, thing):
        if isinstance(thing, (list, tuple)):
            is_tensors = thing and isinstance(thing[0], TensorImpl)
            return self.list_of(TensorType.get() if is_tensors else IntType.get(), [self.any_value(t) for t in thing])
        return self.get_value(thing) if isinstance(thing, TensorImpl) else self.number(thing)

    def converted(self, tensor, dtype, device, copy, memory_format, function):
        """`tensor.to(…)`"""
        target = [] if device is None else [device]
        with Paused():
            kind = tensor.dtype if dtype is None else dtype
        form = None if memory_format is preserve_format else memory_format
        return self.call("aten::to", [tensor, *target, kind, False, copy, form], function)

    def constructed(self, tensor, detach=True):
        """A tensor that was made from Python's values: a constant, converted to its dtype and device. Returns
        it.
        """
        with Paused():
            device, dtype = tensor.device, tensor.dtype
        self.call("aten::to", [tensor, device, dtype, False, False, None], lambda: tensor)
        if detach:
            self.call("aten::detach", [tensor], lambda: tensor)
        return tensor

    def set_outputs(self, node, result):
        """Give a recorded node its outputs: `result` is what the operator returned."""
        if isinstance(result, TensorImpl):
            self._output(node.addOutput(), result)
        elif isinstance(result, list) or (isinstance(result, tuple) and node.kind() in _RETURN_LISTS):
            value = node.addOutput().setType(ListType.ofTensors())
            unpack = self.graph.insertNode(self.graph.createListUnpack(value, len(result)))
            for output, tensor in zip(unpack.outputs(), result):
                self._output(output, tensor)
        elif isinstance(result, tuple):
            for part in result:
                if isinstance(part, list):
                    self.set_value(part, node.addOutput().setType(ListType.ofTensors()))
                else:
                    self._output(node.addOutput(), part)

    def set_outputs_of_call(self, value, tensor):
        """`value`, the result of a call of a TorchScript function, stands for `tensor`."""
        self._output(value, tensor)

    def _output(self, value, tensor):
        if tensor is not None:
            with Paused():
                value.inferTypeFrom(tensor)
            self.values[id(tensor)] = (tensor, value)

    # --------------------------------------------------------------------------------- module calls, forks

    def path_of(self, module):
        """Where in the traced module this one is (`__module.fc`), or None."""
        return self.module_names.get(module) if self.module_names else None

    def push_scope(self, name):
        """A submodule's call begins: what follows goes into a block of its own."""
        self.graph.current_scope = self.graph.current_scope.push(name)
        node = self.graph.insertNode(self.graph.create("prim::TracedModuleForward", (), 0)).s_("scope", name)
        self.graph.setInsertPoint(node.addBlock())

    def fork(self, function):
        """`fork` during a trace: what it does goes into a block, which becomes the task's graph. Returns its
        Future.
        """
        node = self.graph.insertNode(self.graph.create("prim::TracedFork"))
        insert_point = self.graph.insertPoint()
        block = node.addBlock()
        self.graph.setInsertPoint(block)
        result = function()
        block.registerOutput(self.get_value(result))
        self.graph.setInsertPoint(insert_point)
        future = Future()
        future.element_type = block.outputs()[0].type()
        future.set_result(result)
        self.values[id(future)] = (future, node.output().setType(FutureType(future.element_type)))
        return future

    def wait(self, future):
        """`wait` during a trace: an aten::wait, whose output stands for the result from now on."""
        node = self.graph.insertNode(self.graph.create("aten::wait", [self.get_value(future)]))
        result = future.wait()
        node.setSourceRange(python_tracer.source_range())
        self.set_value(result, node.output().setType(future.element_type))
        return result

    def pop_scope(self):
        self.graph.current_scope = self.graph.current_scope.parent
        owner = self.graph.insertPoint().owningBlock().owningNode()
        if owner is not None and owner.kind() == "prim::TracedModuleForward":
            self.graph.setInsertPoint(owner.next())

    # ------------------------------------------------------------------------------------------------ arguments, results

    def add_input(self, thing, type, value):
        """`value` stands for the argument `thing`; returns what the function is called with instead of it."""
        value.setType(type)
        if isinstance(type, TensorType):
            if self.has_value(thing):
                thing = thing.view(thing._array.shape)  # given twice: each has a tensor of its own
            self._output(value, thing)
            return thing
        if isinstance(type, TupleType):
            outputs = self.graph.insertNode(self.graph.createTupleUnpack(value)).outputs()
            parts = [self.add_input(*each) for each in zip(thing, type.elements(), outputs)]
            value.setType(type.withContained([o.type() for o in outputs]))
            return type_of_tuple(thing)(parts)
        if isinstance(type, ListType):
            outputs = self.graph.insertNode(self.graph.createListUnpack(value, len(thing))).outputs()
            return [self.add_input(each, type.elem, output) for each, output in zip(thing, outputs)]
        if isinstance(type, DictType):
            return {key: self._dict_entry(key, each, type, value) for key, each in thing.items()}
        raise RuntimeError(
            "Only tensors or (possibly nested) dict or tuples of tensors can be inputs to traced functions. "
            f"Got {type.annotation_str}"
        )

    def _dict_entry(self, key, thing, type, value):
        node = self.graph.create("aten::__getitem__", [value, self.graph.insertConstant(key)])
        self.graph.insertNode(node).setSourceRange(python_tracer.source_range())
        return self.add_input(thing, type.value, node.output())

    def get_output(self, thing, number):
        """The Value that the traced function returns for `thing`."""
        if isinstance(thing, TensorImpl):
            if not self.has_value(thing):
                raise RuntimeError(
                    f"output {number} ({self.paused(thing.__repr__)}) of traced region did not have observable "
                    "data dependence with trace inputs; this probably indicates your program cannot be "
                    "understood by the tracer."
                )
            return self.values[id(thing)][1]
        if isinstance(thing, list) and all(isinstance(t, TensorImpl) for t in thing):
            if self.strict:
                python_tracer.warn("Encountering a list at the output of the tracer" + STRICT)
            return self.list_of(TensorType.get(), [self.get_output(t, number) for t in thing])
        if isinstance(thing, tuple):
            return self.graph.insertNode(self.graph.createTuple([self.get_output(t, number) for t in thing])).output()
        if isinstance(thing, dict):
            return self._dict_output(thing, number)
        raise RuntimeError(
            "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions"
        )

    def _dict_output(self, thing, number):
        if self.strict:
            raise RuntimeError("Encountering a dict at the output of the tracer" + STRICT)
        keys_fit = all(isinstance(k, (str, TensorImpl)) for k in thing)
        if not keys_fit or not all(isinstance(v, TensorImpl) for v in thing.values()):
            raise RuntimeError(
                f"output {number} ({self.paused(thing.__repr__)}) of traced region cannot be understood by the tracer, only "
                "dict[str, Tensor] or dict[Tensor, Tensor] can be a dictionary output of a traced function"
            )
        key_type = StringType.get() if all(isinstance(k, str) for k in thing) else TensorType.get()
        keys, values = [], []
        for key, each in thing.items():
            keys.append(self.get_value(key))
            values.append(self.get_output(each, number))
        return self.graph.insertNode(self.graph.createDict(key_type, TensorType.get(), keys, values)).output()

    # ------------------------------------------------------------------------------------------------ sizes, numbers

    def size(self, tensor, dim):
        """`tensor.size(dim)` as a tensor: aten::size, and prim::NumToTensor of it."""
        value = self.get_value(tensor)
        return self._number("aten::size", [value, self.constant(dim)], tensor._array.shape[dim])

    def shape(self, tensor):
        return new_size([self.size(tensor, dim) for dim in range(tensor._array.ndim)])

    def numel(self, tensor):
        return self._number("aten::numel", [self.get_value(tensor)], tensor._array.size)

    def _number(self, kind, inputs, number):
        node = self.graph.insertNode(self.graph.create(kind, inputs)).setSourceRange(python_tracer.source_range())
        node.output().setType(IntType.get())
        as_tensor = self.graph.insertNode(self.graph.createNumToTensor(node.output()))
        result = wrap(np.array(number))
        self.values[id(result)] = (result, as_tensor.output())
        return result

    def as_int(self, tensor):
        """The int in a tensor, where an operator wants one."""
        return TracedInt(only_element(tensor).item(), self._convert("aten::Int", tensor, IntType.get()), self)

    def as_float(self, tensor):
        return TracedFloat(only_element(tensor).item(), self._convert("aten::Float", tensor, FloatType.get()), self)

    def as_scalar(self, tensor):
        """The number in a tensor, where an operator takes any."""
        number = only_element(tensor).item()
        if isinstance(number, (bool, complex)):
            return number
        value = self._convert("aten::ScalarImplicit", tensor, NumberType.get())
        return (TracedFloat if isinstance(number, float) else TracedInt)(number, value, self)

    def _convert(self, kind, tensor, type):
        """A conversion, inserted right after the node that makes the tensor."""
        value = self.get_value(tensor)
        with self.graph.insert_point_guard(value.node().next()):
            return self.graph.insertNode(self.graph.create(kind, [value])).output().setType(type)


# A convolution is recorded one level deeper, as in PyTorch: with cuDNN's flags.
# The others are names of one operator.
_RECORDED_AS = {
    "convolution": "_convolution",
    "det": "linalg_det",
    "swapaxes": "transpose",
    "swapdims": "transpose",
    "true_divide": "div",
}
_MORE_FLAGS = {"convolution": (False, False, True, True)}
# PyTorch's Python binding passes a number beside a tensor as a number to these, as a tensor to `add`, `mul`
# and the like.
_HAVE_NUMBER_OVERLOADS = {
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "remainder",
    "fmod",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
}
_LIST_TYPES = {"int": IntType, "float": FloatType, "Scalar": NumberType}


def _implied(name, has_tensors):
    """What PyTorch's Python binding has filled in where our operators are given None."""
    if name == "pin_memory":
        return False
    return device("cpu") if name == "device" and not has_tensors else None


# --------------------------------------------------------------------------------------------- the Tracer key

# These give a tuple here, in PyTorch a list.
_RETURN_LISTS = {
    f"aten::{name}"
    for name in (
        "split split_with_sizes unsafe_split unsafe_split_with_sizes chunk unsafe_chunk unbind tensor_split hsplit vsplit dsplit "
        "meshgrid broadcast_tensors atleast_1d atleast_2d atleast_3d"
    ).split()
}


class Paused(KeyGuard):
    """`with Paused():` calls inside are not recorded."""

    __slots__ = ("state",)

    def __init__(self):
        super().__init__(exclude=TRACER)

    def __enter__(self):
        self.state, tls.tracer = tls.tracer, None
        return super().__enter__()

    def __exit__(self, *exception):
        tls.tracer = self.state
        super().__exit__(*exception)


class _Tracing(KeyGuard):
    """`with _Tracing(state):` calls inside are written into `state`."""

    __slots__ = ("state",)

    def __init__(self, state):
        super().__init__(include=TRACER)
        self.state = state

    def __enter__(self):
        tls.tracer = self.state
        return super().__enter__()

    def __exit__(self, *exception):
        tls.tracer = None
        super().__exit__(*exception)


def trace(
    function,
    inputs,
    strict=True,
    force_outplace=False,
    self_object=None,
    argument_names=(),
    module_names=None,
    inline_functions=False,
):
    """Call `function(*inputs)` and return (graph, what it returned).

    self_object: the ScriptObject of the module that is traced: its parameters and those of its submodules
    become attributes of the graph's first input. argument_names: names for the inputs. module_names:
    nn.Module -> its path. inline_functions: autograd Functions leave the operators of their forward, as an export wants.
    """
    if tls.tracer is not None:
        raise RuntimeError("Tracing can't be nested")
    state = TracingState(strict, force_outplace)
    state.module_names, state.inlines_functions = module_names, inline_functions
    with _Tracing(state):
        if self_object is not None:
            _gather_attributes(state, state.graph.addInput("self").setType(self_object.type), self_object, "__module")
        names = argument_names if len(argument_names) == len(inputs) else [""] * len(inputs)
        given = []
        for name, each in zip(names, inputs):
            given.append(state.add_input(each, type_of_value(each), state.graph.addInput(name)))
        result = function(*given)
        if result is None:
            raise RuntimeError(
                "The traced function didn't return any values! Side-effects are not captured in traces, so "
                "it would be a no-op."
            )
        state.graph.registerOutput(state.get_output(result, 1))
    FixupTraceScopeBlocks(state.graph, self_object and self_object.type)
    return state.graph, result


def _gather_attributes(state, self_value, object, prefix):
    """A prim::TracedAttr for every attribute of a module and of its submodules, which stands for its
    value.
    """
    state.set_value(object, self_value)
    for attribute, value in zip(object.type.attributes, object.slots):
        path = f"{prefix}.{attribute.name}"
        node = state.graph.insertNode(state.graph.create("prim::TracedAttr")).s_("scope", path)
        output = node.output().setType(attribute.type)
        if attribute.type.isSubtypeOf(TensorType.get()):
            state.values[id(value)] = (value, output)
        if attribute.type.is_module():
            _gather_attributes(state, output, value, path)


def type_of_tuple(value):
    """What makes such a tuple from a list: the class of a named one."""
    cls = type(value)
    return cls if is_return_type(cls) else getattr(cls, "_make", tuple)
