"""OutputGraph: all that is known of one capture: its graph, guards, variables and side effects.

In PyTorch: `torch/_dynamo/output_graph.py`.
"""

import collections
import contextlib
import math
import operator
import traceback

import readtorch
from readtorch._dynamo import trace_rules
from readtorch._dynamo.exc import SpecializeSizes, unimplemented
from readtorch._dynamo.guards import Guard, autocast_state, needs_no_guard
from readtorch._dynamo.side_effects import SideEffects
from readtorch._dynamo.source import AttrSource, ConstantSource, GetItemSource, LocalSource, fqn_of, is_held
from readtorch._dynamo.variables.base import VariableTracker
from readtorch._dynamo.variables.builder import VariableBuilder, variable_of_constant
from readtorch._dynamo.variables.constant import ConstantVariable
from readtorch._dynamo.variables.lazy import LazyVariableTracker
from readtorch._dynamo.variables.lists import ListVariable, NamedTupleVariable, TupleVariable
from readtorch._dynamo.variables.tensor import Number, SymbolVariable, SymNodeVariable, TensorVariable, numbers_of
from readtorch._dynamo.variables.user_defined import IS_HEAP_TYPE
from readtorch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from readtorch.amp.autocast_mode import autocast
from readtorch.c10.local_dispatch_key_set import AutoGradMode, any_autocast_enabled, tls
from readtorch.c10.module_names import room_of
from readtorch.c10.sym_int import SYM_TYPES
from readtorch.c10.torch_dispatch_mode_tls import _TorchDispatchModeKey
from readtorch.csrc.autograd.init import _set_grad_enabled
from readtorch.fx import Graph, Node
from readtorch.utils._python_dispatch import _disable_infra_mode

DYNAMIC, MISSING = object(), object()
# Operators whose results have the same shape and dtype whatever number stands beside a tensor.
TAKES_ANY_NUMBER = set(
    "add sub mul truediv floordiv mod pow iadd isub imul itruediv ifloordiv imod ipow lt le gt ge eq ne add_ sub_ mul_ div div_ "
    "true_divide multiply subtract addcmul_ addcdiv_ lerp_ clamp clamp_ clamp_min clamp_max fill_ masked_fill masked_fill_ "
    "_fused_adam_ _fused_adamw_ _foreach_add _foreach_add_ _foreach_addcdiv_ _foreach_addcmul_ _foreach_div _foreach_div_ "
    "_foreach_lerp_ _foreach_mul _foreach_mul_ "
    "_add_rectified_ _average_ tensor".split()
)


# Operators that take sizes one by one; a size that is left open leaves that of the result open.
TAKES_SIZES = set("view reshape expand zeros ones empty full arange rand randn new_zeros new_ones new_empty".split())


def is_open(variable):
    """Whether sizes of a tensor, or of one in a list, are left open."""
    if isinstance(variable, TensorVariable):
        return variable.is_open
    items = getattr(variable, "items", ())
    return any(is_open(each.realize()) for each in (items.values() if isinstance(items, dict) else items))


def is_class_of_a_function(source):
    """Whether a class was made within a function: no global has led to it."""
    return isinstance(source.key, type) and "<locals>" in source.key.__qualname__


class NumberInput:
    """An input of the graph that is a number. (Expressions are no keys: 1 and 1.0 are equal.)"""

    def __init__(self, expression):
        self.expression = expression


class SubgraphTracer:
    """The graph of a function that an operator takes. See Note [ A graph within a graph ].

    parent: the tracer of the function around it, None where that is the root graph's. lifted: node further out -> placeholder.
    """

    def __init__(self, parent):
        self.graph, self.parent, self.lifted, self.versions = Graph(), parent, {}, {}

    def lift(self, node, example):
        """What stands here for a node of a graph further out."""
        if node.graph is self.graph:
            return node
        outer = node if self.parent is None else self.parent.lift(node, example)
        if outer not in self.lifted:
            self.lifted[outer] = self.placeholder(outer.name, example)
        return self.lifted[outer]

    def placeholder(self, name, example):
        first = next((node for node in self.graph.nodes if node.op != "placeholder"), None)
        with self.graph.inserting_before(first) if first is not None else contextlib.nullcontext():
            made = self.graph.placeholder(name)
        made.target = made.name  # of several operands none has the name of another
        made.meta["example_value"] = example
        self.versions[made] = version_of(example) if isinstance(example, readtorch.Tensor) else None
        return made

    def inputs(self):
        """(placeholder, fake tensor) of those that are tensors."""
        return [(node, node.meta["example_value"]) for node, version in self.versions.items() if version is not None]

    def mutated_nodes(self):
        """The placeholders whose tensors have been written to."""
        return [node for node, example in self.inputs() if version_of(example) != self.versions[node]]

    def replace_placeholders(self, wanted):
        """Put placeholders (outer node, name) in the place of those that were lifted, in this order."""
        first = next(node for node in self.graph.nodes if node.op != "placeholder")
        taken = {node.target for node in self.versions} - {node.target for node in self.lifted.values()}
        for outer, name in wanted:
            with self.graph.inserting_before(first):
                made = self.graph.placeholder(name)
            made.meta = dict(outer.meta)
            if name in taken:
                made.target = made.name
            if outer in self.lifted:
                old = self.lifted[outer]
                old.replace_all_uses_with(made)
                self.graph.erase_node(old)


class OutputGraph:
    """stop_at: the number of the root's step at which the graph breaks; None for none. assumed: the results of functions that
    are assumed to be constant, from an earlier attempt. checkpoint: the last step at which the graph could have ended, with the
    rest left to Python; None for none.
    """

    tensor_class = readtorch.Tensor
    set_grad_enabled = staticmethod(_set_grad_enabled)

    def __init__(self, stop_at, assumed, state):
        self.stop_at, self.steps, self.checkpoint = stop_at, 0, None
        self.frames = []  # the translators of the functions that are under way, the innermost last
        self.module_stack, self.num_calls = {}, collections.Counter()  # see `in_module`
        self.graph, self.inputs = Graph(), {}  # the second: source -> (placeholder, fake tensor, its version)
        self.root = self.graph  # the graph of the function
        self.tracer = None  # whose graph is made now, if another is
        self.input_names = collections.Counter()
        self.nn_modules = {}  # name -> the graph of a function that an operator takes
        self.guards, self.guard_keys = [], set()
        self.tracked, self.keep = {}, []  # id of an object -> its variable
        self.generators = []
        self.side_effects = SideEffects()
        self.is_export = state.settings.fake_mode is not None
        self.fake_mode = state.settings.fake_mode or FakeTensorMode()
        self.grad_mode = self.initial_grad_mode = tls.grad_mode
        self.builder = VariableBuilder(self)
        self.guarded_classes, self.module_sources = set(), set()
        self.dynamic, self.frame_state = state.settings.dynamic, state.frame_state
        self.capture_scalar_outputs = state.settings.fullgraph and not self.is_export
        self.sizes_are_known = state.sizes_are_known
        self.numbers, self.number_count = {}, 0  # the first: source -> number, or DYNAMIC
        self.equal_sizes = {}  # size -> where it is left open
        self.assumed, self.assumed_count = assumed, 0
        self.first_operator, self.read_sources = None, []
        self.op_count, self.switched_grad_mode = 0, False
        self.autocast_regions, self.has_autocast = [], False  # the arguments of those that have been entered
        self.guard_thread()

    def cleanup(self):
        """Let go of the program's objects. Variables refer to this and this to them: they would live on until a collection finds
        them, and a weak reference of the program would not die when it must.
        """
        vars(self).clear()

    def guard_thread(self):
        self.guard("GLOBAL_STATE", None, (tls.mask, readtorch.get_default_dtype()))
        if any_autocast_enabled():
            self.guard("AUTOCAST", None, autocast_state())

    @contextlib.contextmanager
    def in_autocast_regions(self):
        """Within the regions that the program has entered and not left."""
        with contextlib.ExitStack() as regions:
            for arguments in self.autocast_regions:
                regions.enter_context(autocast(*arguments))
            yield

    # ------------------------------------------------------------------------------------------ guards, variables

    def guard(self, kind, source, seen=None):
        if source is not None and needs_no_guard(kind, source):
            return
        guard = Guard(kind, source, seen)
        if guard.key() not in self.guard_keys:
            self.guard_keys.add(guard.key())
            self.guards.append(guard)
            self.keep.append(seen)

    def guard_class(self, cls):
        """What is looked up in a class, in vain or not, stays so."""
        if cls in self.guarded_classes:
            return
        self.guarded_classes.add(cls)
        classes = [each for each in cls.__mro__ if each.__flags__ & IS_HEAP_TYPE]
        if classes:
            seen = [(each, list(each.__dict__), trace_rules.is_ours(each)) for each in classes]
            self.guard("CLASS_MATCH", ConstantSource(cls), seen)

    def wrap(self, value, source):
        return LazyVariableTracker(value, source, self.builder)

    def read(self, value, source):
        """The same for a value that the program reads: that it is there is guarded, though nobody looks at it."""
        self.read_sources.append(source)
        return self.wrap(value, source)

    def touch(self, variable):
        """The program reads a part that `wrap` was called for when the whole was looked at."""
        if isinstance(variable, LazyVariableTracker) and variable.seen is None:
            self.read_sources.append(variable.source)
        return variable

    # ------------------------------------------------------------------------------------------ where nodes come from

    @contextlib.contextmanager
    def in_module(self, variable):
        """Within it nodes note that they come from the `forward` of this module: {its id: (its name, its class)}, the outermost first.
        Behind the id stands which call of the module it is, from the second on.
        """
        around, key = self.module_stack, str(id(variable.original))
        number = self.num_calls[key]
        self.num_calls[key] += 1
        key += f"@{number}" if number else ""
        self.module_stack = {**around, key: (fqn_of(variable.source), variable.cls)}
        try:
            yield
        finally:
            self.module_stack = around

    def note_origin(self, node):
        if self.module_stack:
            node.meta["nn_module_stack"] = self.module_stack
        if self.is_export:
            node.meta["stack_trace"] = self.stack_trace()

    def stack_trace(self):
        """The lines of the program that are under way."""
        frames = [frame for frame in self.frames if room_of(frame.globals.get("__name__") or "") is None]
        return "".join(traceback.StackSummary.from_list([frame.summary() for frame in frames]).format())

    # ------------------------------------------------------------------------------------------- symbolic numbers

    def is_dynamic(self, source, value):
        """Whether a number has been another one in an earlier capture of this frame. That is the reason for a second graph, and
        there shall be no third: "automatic dynamic". What was seen is kept of ints that stay constants, too: a float that follows
        one is a second value.
        """
        if is_held(source):
            return False
        before = self.frame_state.get(source, MISSING)
        has_changed = before is not MISSING and before != value
        self.numbers[source] = DYNAMIC if has_changed else value
        if self.dynamic is False or not (has_changed or self.dynamic):
            return False
        return math.isfinite(value) if type(value) is float else not self.is_setting(source)

    def is_setting(self, source):
        """Whether an int stays a constant: one that is found through a global, in a module, or as a default."""
        if self.is_in_a_module(source):
            return True
        while source.base is not None:
            source = source.base
            if isinstance(source, AttrSource) and source.key in ("__defaults__", "__kwdefaults__"):
                return True
        return not (isinstance(source, LocalSource) or is_class_of_a_function(source))

    def open_sizes(self, source, tensor):
        """Which dimensions of a tensor have had another size in an earlier capture of this frame, or are marked as dynamic."""
        shape = tuple(tensor.shape)
        if (
            self.dynamic is False
            or is_held(source)
            or self.is_in_a_module(source)
            or not tensor._array.flags.c_contiguous
        ):
            return ()
        before = self.frame_state.get(source, shape)
        if not isinstance(before, tuple) or len(before) != len(shape):
            before = (DYNAMIC,) * len(shape)
        self.numbers[source] = merged = tuple(a if a == b else DYNAMIC for a, b in zip(before, shape))
        marked, static = (getattr(tensor, f"_dynamo_{kind}_indices", ()) for kind in ("dynamic", "static"))
        wanted = [i for i, size in enumerate(merged) if size is DYNAMIC or i in marked or self.dynamic]
        wanted = tuple(i for i in wanted if shape[i] > 1 and i not in static)
        if self.sizes_are_known and getattr(tensor, "_dynamo_must_be_dynamic", False):
            for i in marked:
                Number(
                    GetItemSource(source, i), shape[i], TensorVariable(self, type(tensor), None, None, source, tensor)
                ).specialized()
        if self.sizes_are_known:
            return ()
        for i in wanted:
            if i not in marked and merged[i] is not DYNAMIC:  # by `dynamic=True` alone
                size = Number(GetItemSource(AttrSource(source, "shape"), i), shape[i])
                self.equal_sizes.setdefault(shape[i], []).append(size)
        return wanted

    def guard_equal_sizes(self):
        """Sizes that are left open and are equal now are one symbol: "duck shaping"."""
        for first, *others in self.equal_sizes.values():
            for other in others:
                self.guard("SHAPE_ENV", None, (("==", first, other), True))

    def is_in_a_module(self, source):
        while source is not None and source not in self.module_sources:
            source = source.base
        return source is not None

    def decide(self, expression, outcome):
        """A truth that depends on symbolic numbers: guarded."""
        if expression[0] == "==" and outcome:
            for number in numbers_of(expression):
                number.specialized()
        self.guard("SHAPE_ENV", None, (expression, outcome))
        return outcome

    def number_input(self, expression, hint):
        self.number_count += 1
        node = self.new_placeholder(f"s{self.number_count}_")
        node.meta["example_value"] = hint
        node.meta["source"] = expression.source.name if isinstance(expression, Number) else node.name
        self.inputs[NumberInput(expression)] = node, None, None, hint
        return node

    # --------------------------------------------------------------------------------------- graphs within the graph

    @contextlib.contextmanager
    def subtracer(self):
        """Within it a graph of its own is made. See Note [ A graph within a graph ]."""
        around = self.tracer, self.graph, self.side_effects.scope
        self.tracer = SubgraphTracer(self.tracer)
        self.graph, self.side_effects.scope = self.tracer.graph, VariableTracker.next_serial()
        try:
            yield self.tracer
        finally:
            self.tracer, self.graph, self.side_effects.scope = around

    def lift(self, node, example):
        """What stands for a node in the graph that is being made."""
        return node if self.tracer is None else self.tracer.lift(node, example)

    def install_subgraph(self, name, module):
        """The node of a graph that is an attribute of this one."""
        count = 0
        while f"{name}_{count}" in self.nn_modules:
            count += 1
        self.nn_modules[f"{name}_{count}"] = module
        node = self.graph.create_node("get_attr", f"{name}_{count}")
        node.meta["example_value"] = module
        return node

    def example_of(self, operand):
        """What stands for an operand of a node now."""
        if isinstance(operand, tuple):
            return tuple(map(self.example_of, operand))
        return operand.meta["example_value"] if isinstance(operand, Node) else operand

    # ------------------------------------------------------------------------------------------------- the graph

    def fake(self, tensor):
        """A tensor without elements that looks like it."""
        with unrecorded():
            return self.fake_mode.from_tensor(tensor)

    def graph_input(self, source, example, tensor, open_sizes=()):
        if source not in self.inputs:
            parts = [part for part in identifier(source.name).split("_") if part and part != "L"]
            node = self.new_placeholder(self.unique_name(f"L_{'_'.join(parts)}_"))
            node.meta["example_value"] = example
            if open_sizes:
                node.meta["dynamic_dims"] = open_sizes
                node.meta["source"] = source.name  # by which their symbols get their names
            self.inputs[source] = node, example, version_of(example), tensor
            self.keep.append(example)
        return self.inputs[source][0]

    def unique_name(self, name):
        """State of several parameters has the same name."""
        count = self.input_names[name]
        self.input_names[name] += 1
        return name if not count else self.unique_name(f"{name}{count}_")

    def new_placeholder(self, name):
        """Placeholders stand before all other nodes."""
        if self.first_operator is None:
            self.first_operator = next((node for node in self.root.nodes if node.op != "placeholder"), None)
        if self.first_operator is None:
            return self.root.placeholder(name)
        with self.root.inserting_before(self.first_operator):
            return self.root.placeholder(name)

    def is_worth_a_graph(self):
        """Whether there is more than one operator."""
        return self.checkpoint is not None or sum(node.op.startswith("call_") for node in self.root.nodes) > 1

    def wrote_to_tensors(self):
        """Whether the graph writes to inputs, of which it notes that they are written to."""
        for node, example, version, _ in self.inputs.values():
            node.meta["is_written"] = example is not None and version_of(example) != version
        return any(node.meta["is_written"] for node, *_ in self.inputs.values())

    def set_grad_mode(self, mode):
        self.grad_mode, self.switched_grad_mode = mode, True
        self.note_origin(self.graph.call_function(_set_grad_enabled, (mode,)))

    def call_function(self, function, args, kwargs):
        name = getattr(function, "__name__", str(function))
        return self.create("call_function", function, name, function, args, kwargs)

    def call_method(self, name, args, kwargs):
        return self.create(
            "call_method", name, name, lambda owner, *a, **k: getattr(owner, name)(*a, **k), args, kwargs
        )

    def call_attribute(self, owner, name):
        return self.create("call_function", getattr, name, getattr, [owner, ConstantVariable(name)], {})

    def call_getitem(self, owner, key):
        return self.create("call_function", operator.getitem, "getitem", operator.getitem, [owner, key], {})

    def call_setitem(self, owner, key, value):
        return self.create("call_function", operator.setitem, "setitem", operator.setitem, [owner, key, value], {})

    def create(self, kind, target, name, function, args, kwargs):
        """A node of the graph, and the variable of its result: the operator runs on fake tensors."""
        variables = [arg.realize() for arg in args]
        pairs = [self.operand(variable, name) for variable in variables]
        by_name = {key: self.operand(arg.realize(), name) for key, arg in kwargs.items()}
        fakes, more = [pair[1] for pair in pairs], {key: pair[1] for key, pair in by_name.items()}
        why = trace_rules.refused_call(name, fakes, more, readtorch.Tensor)
        if why:
            unimplemented(why, context=name)
        if more.get("out") is not None:
            self.check_out(name, function, fakes, more)
        result = self.run_fake(name, function, fakes, more)
        operands = [each.realize() for each in [*args, *kwargs.values()]]
        if any(isinstance(each, SymNodeVariable) for each in operands):
            self.forget_elements(result)
        has_open_sizes = self.has_open_sizes(name, operands, result)
        node = self.graph.create_node(
            kind, target, tuple(pair[0] for pair in pairs), {key: pair[0] for key, pair in by_name.items()}
        )
        node.meta["example_value"] = result
        self.note_origin(node)
        self.op_count += 1
        by_name = [(arg.realize(), more[key]) for key, arg in kwargs.items()]
        made = self.result(node, result, [*zip(variables, fakes), *by_name])
        if has_open_sizes and made in variables and not (name.endswith("_") or name.startswith("i")):
            raise SpecializeSizes(
                name
            )  # an operator that gives its operand back, such as `contiguous`, may decide by sizes
        if has_open_sizes:
            self.leave_open(made)
        return made

    def check_out(self, name, function, fakes, more):
        """`out=` is another operator in place where the tensor is as the result would be; else it gets another size."""
        out, rest = more["out"], {key: value for key, value in more.items() if key != "out"}
        result = self.run_fake(name, function, fakes, rest)
        looks = [(t.shape, t.stride(), t.dtype, t.device) for t in (out, result) if isinstance(t, readtorch.Tensor)]
        if len(looks) != 2 or looks[0] != looks[1]:
            unimplemented("Unsupported operator with out=", context=name)

    def has_open_sizes(self, name, operands, result):
        """Whether the sizes of the result may be others in another call. How many results there are, and of how many dimensions,
        must not depend on that.
        """
        if self.is_export:  # a size that is open is a symbol, and the operators know it
            return False
        takes_sizes = name in TAKES_SIZES and not self.sizes_are_known
        by_number = takes_sizes and any(isinstance(each, SymNodeVariable) for each in operands)
        if not by_number and not any(map(is_open, operands)):
            return False
        counts_parts = isinstance(result, (tuple, list)) and not hasattr(type(result), "__match_args__")
        if counts_parts or "squeeze" in name.replace("unsqueeze", ""):
            raise SpecializeSizes(name)
        return True

    def leave_open(self, made):
        for each in [made, *getattr(made, "items", ())]:
            if isinstance(each, TensorVariable) and each.source is None:
                each.is_open = True

    def operand(self, variable, name):
        """(what stands for it in the graph, what stands for it now). Of a symbolic number only arithmetic leaves the value open."""
        takes_number = name in TAKES_ANY_NUMBER or name in TAKES_SIZES and not self.sizes_are_known
        if isinstance(variable, SymNodeVariable) and takes_number:
            return variable.as_graph_input(self)
        if (
            type(variable) in (ListVariable, TupleVariable)
            and name.startswith("_foreach_")
            and name in TAKES_ANY_NUMBER
        ):
            pairs = [self.operand(item.realize(), name) for item in variable.items]
            return tuple(variable.cls(pair[i] for pair in pairs) for i in range(2))
        return variable.as_proxy(self)

    def forget_elements(self, result):
        """The elements of a small tensor are known only for this number."""
        if isinstance(result, FakeTensor):
            result.constant = None

    def run_fake(self, name, function, args, kwargs):
        try:
            with unrecorded(), self.in_autocast_regions(), self.fake_mode, AutoGradMode(self.grad_mode):
                return function(*args, **kwargs)
        except DynamicOutputShapeException as error:
            why, explanation = "Dynamic shape operator", str(error)
        except DataDependentOutputException as error:
            why, explanation = "Data dependent operator", str(error)
        except Exception as error:
            why, explanation = "TorchRuntimeError", f"Dynamo failed to run FX node with fake tensors: {name}: {error}"
        return unimplemented(why, explanation, context=name)

    def result(self, node, value, operands):
        if isinstance(value, readtorch.Tensor):
            for variable, fake in operands:  # an operator in place returns its operand
                if fake is value:
                    return variable
            return TensorVariable(self, self.tensor_class, node, value)
        if isinstance(value, SYM_TYPES):
            return SymbolVariable(self, value, node)
        if value is None or self.is_export and isinstance(value, (bool, int, float)):
            return ConstantVariable(value)
        if isinstance(value, (tuple, list)) and not isinstance(value, readtorch.Size):
            items = [self.part(node, i, each, operands) for i, each in enumerate(value)]
            if type(value) in (tuple, list):
                return (TupleVariable if type(value) is tuple else ListVariable)(items)
            return NamedTupleVariable(items, type(value))
        return unimplemented("torch.* op returned non-Tensor", f"example_value type: {type(value).__name__}", str(node))

    def part(self, node, index, value, operands):
        made = self.graph.call_function(operator.getitem, (node, index))
        made.meta["example_value"] = value
        self.note_origin(made)
        return self.result(made, value, operands)

    def constant(self, value):
        return variable_of_constant(value)


@contextlib.contextmanager
def unrecorded():
    """Inside, a trace of `make_fx` sees nothing: it records what the captured function does, and not the capture."""
    yield from _disable_infra_mode(_TorchDispatchModeKey.PROXY)


def version_of(tensor):
    """How often it was written to; of an inference tensor, too."""
    return tensor._counter[0]


def identifier(text):
    return "".join(c if c.isalnum() and c.isascii() else "_" for c in text)
