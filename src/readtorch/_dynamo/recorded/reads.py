"""Everything that a function may read, found in its bytecode before it runs.

Note [ What a graph may stand for ]
A graph does the tensor operators of one call. It may stand for another call only if the function would do the same
operators again, and nothing else. So:

    what the function may read   is guarded, value by value, or the function runs as it is written;
    what it may do               is one of `trace_rules.py`'s instructions and calls, or the function runs as it is written;
    what it changes              is seen after the call: a guard on what was there before it no longer holds.

The third follows from the first: there is nothing to be changed but what has a guard, and tensors, whose changes are operators
of the graph. A call that changed nothing will change nothing the next time, since all that it can depend on is the same.

What a function may read is found without running it. Its bytecode names globals and closure variables: their values are
looked up. It names attributes, but not whose: so each name is looked up on every object that has been found and that may
hold anything, modules of either kind. With the functions found so it goes on the same way. What is found in vain costs a
guard; an object of a kind that is not known here, such as an optimizer or a configuration object, ends the search, and the
function runs as it is written.

In PyTorch: Dynamo executes the bytecode symbolically, so it knows which object each attribute is read from, and puts a guard
on exactly that (`torch/_dynamo/variables/builder.py`); what changes is replayed after the graph (`side_effects.py`).
"""

import inspect
import sys
import types
import weakref
from collections import OrderedDict, namedtuple

import readtorch
from readtorch._dynamo.recorded import trace_rules
from readtorch._dynamo.recorded.guards import EQUAL, NESTS, SIMPLE, Guards
from readtorch._dynamo.recorded.source import MISSING, Source
from readtorch.c10.layout import layout
from readtorch.c10.local_dispatch_key_set import tls
from readtorch.c10.memory_format import memory_format
from readtorch.c10.module_names import room_of
from readtorch.c10.scalar_type import dtype
from readtorch.c10.tensor_impl import TensorImpl
from readtorch.nn.modules import module as nn_module
from readtorch.nn.modules.module import Module

ONE_OF_A_KIND = (dtype, layout, memory_format, type(...), type(NotImplemented))
MAX_PARTS = 1000  # of a list or dictionary: a guard would look at each

GLOBAL_HOOKS = [  # not the marks of hooks: one may stay when its hook is removed
    hooks for name, hooks in vars(nn_module).items() if name.startswith("_global_") and name.endswith("_hooks")
]
NO_GLOBAL_HOOKS = "there are no hooks of all modules"
OWN_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
# What every Module has, and `compile` may add: guarded apart, or of no account for `forward`.
STATE = {*vars(Module()), "_compiled_call_impl"} - {"training"}
MACHINERY = set(Module.__mro__)
READING_METHODS = set(
    "forward parameters named_parameters buffers named_buffers children named_children modules named_modules".split()
)


class CannotTell(Exception):
    """Something may be read that no guard covers, or done that no graph does. Its text says what."""


class Reads:
    """What `function` may read when it is called with `leaves`, which lie in containers of the kinds that `spec` names.

    guards: on all of it but the arguments that are plain values or tensors. tensors: id -> Source, the graph's inputs if the
    function uses them. identity: whether it asks `a is b`. Raises CannotTell.
    """

    def __init__(self, function, leaves, spec):
        self.guards = Guards()
        self.tensors = {}
        self.identity = False
        self.attributes = set()  # names that may be read of anything
        self.objects = []  # (name, Python module or nn.Module, where that name is looked up)
        self.seen = {}  # id -> what has been read
        if tls.function_modes:
            raise CannotTell("a mode of functions is entered, such as a default device")
        self.guards.modes()
        self.root(function)
        self.containers(spec)
        for leaf in leaves:  # their values are guarded by the caller; here it is seen what hangs on them
            self.kind("an argument", leaf)

    # --------------------------------------------------------------------------------------------- where it begins

    def root(self, function):
        owner = getattr(function, "__self__", None)
        if isinstance(owner, Module):
            self.module("self", owner)
            if trace_rules.is_ours(function.__func__):  # Module's own call
                self.name_attribute("forward")
            else:
                self.function(function.__name__, function.__func__)
        elif isinstance(function, types.FunctionType):
            self.function(getattr(function, "__name__", "function"), function)
        else:
            raise CannotTell(f"it is a {type(function).__name__}, whose code is not known")

    def containers(self, spec):
        """Lists and the like among the arguments: a class of the user's may have more than its parts."""
        kind = spec.context if spec.type is namedtuple else spec.type
        if spec.type is namedtuple:
            if kind.__bases__ != (tuple,):
                raise CannotTell(f"an argument is a {kind.__name__}, of which no guard knows")
            if not self.remember(kind):
                self.object(kind.__name__, kind)
        elif kind not in (None, list, tuple, dict, OrderedDict):
            raise CannotTell(f"an argument is a {kind.__name__}, of which no guard knows")
        elif kind in (dict, OrderedDict) and any(type(key) is not str for key in spec.context):
            # specs are equal for 1, 1.0 and True
            raise CannotTell("an argument is a dictionary with keys that are no strings")
        for child in spec.children():
            self.containers(child)

    # ------------------------------------------------------------------------------------------------ any value

    def found(self, source):
        """A value that may be read: it gets a guard, and what hangs on it is looked at."""
        value = source.value()
        if value is MISSING:
            return
        if isinstance(value, TensorImpl):
            self.tensors.setdefault(id(value), source)
            self.guards.same_tensor(source, value)
            path = self.guards.read(source)
            self.guards.tensor(path, source.name, value, True)
        else:
            self.guards.value(source, value)
        self.kind(source.name, value, source)

    def kind(self, name, value, source=None):
        """Follow what hangs on a value. Raises CannotTell for kinds of which nothing is known."""
        if isinstance(value, TensorImpl):
            self.tensor(name, value)
        elif type(value) in (*SIMPLE, *EQUAL, *ONE_OF_A_KIND):
            return
        elif type(value) in NESTS:
            self.nest(name, value)
        elif isinstance(value, weakref.ref) and isinstance(value(), TensorImpl):
            self.tensor(name, value())
        elif isinstance(value, Module):
            self.module(name, value)
        elif isinstance(value, types.ModuleType):
            self.python_module(name, value)
        elif isinstance(value, types.FunctionType):
            self.function(name, value)
        elif not trace_rules.is_pure(value):
            raise CannotTell(_unknown(name, value))

    def tensor(self, name, value):
        if type(value) not in trace_rules.TENSOR_TYPES:
            raise CannotTell(f"it reads {name}, a {type(value).__name__}")
        self.object(name, value)

    def nest(self, name, value):
        if len(value) > MAX_PARTS:
            raise CannotTell(f"it reads {name}, which has {len(value)} parts")
        if self.remember(value):
            return
        if isinstance(value, dict):
            self.keys(name, value)
        keys = value if isinstance(value, (list, tuple, dict)) else ()
        for key in keys if isinstance(value, dict) else range(len(keys)):
            part = value[key]
            if isinstance(part, TensorImpl):
                self.tensors.setdefault(id(part), Source(f"{name}[{key!r}]", value, key))
            self.kind(f"{name}[{key!r}]", part)
        if not keys:
            for part in value:
                self.kind(f"a part of {name}", part)

    def keys(self, name, keys):
        """The keys of a dictionary: a loop may read what hangs on them. A tensor is found by its identity."""
        for key in keys:
            if isinstance(key, TensorImpl):
                raise CannotTell(f"{name} has a tensor as key")
            self.kind(f"a key of {name}", key)

    def remember(self, value):
        """Whether it has been seen before. It is kept, so that its id stays its own."""
        if id(value) in self.seen:
            return True
        self.seen[id(value)] = value
        return False

    # -------------------------------------------------------------------------------------------------- functions

    def function(self, name, function):
        original = getattr(function, "_torchdynamo_orig_callable", None)
        if original is not None:  # compiled by itself: inside another it is part of that one's graph
            return self.root(original)
        if getattr(function, "_torchdynamo_disable", False):
            raise CannotTell(f"it calls {function.__name__}, which torch.compiler.disable excludes{function._reason}")
        if trace_rules.is_pure(function) or self.remember(function):
            return None
        if trace_rules.is_ours(function) or _is_ours_inside(function):
            raise CannotTell(f"it calls {name}, which is no operator")
        self.object(name, function)
        own = self.guards.name(function, "F")
        self.guards.add(
            f"{own}.__code__ is {self.guards.name(function.__code__, 'C')} and "
            f"{own}.__defaults__ is {self.guards.name(function.__defaults__, 'V')} and "
            f"{own}.__kwdefaults__ is {self.guards.name(function.__kwdefaults__, 'V')}",
            f"{name} has the same code and defaults",
        )
        why = trace_rules.refused(function.__code__)
        if why:
            raise CannotTell(why)
        self.identity = self.identity or trace_rules.compares_identity(function.__code__)
        names, attributes = trace_rules.names_in(function.__code__)
        for each in sorted(names):
            self.global_name(each, function)
        for each, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if each != "__class__":
                self.found(Source(each, cell, kind="cell"))
        self.default_values(name, function)
        for each in sorted(attributes):
            self.name_attribute(each)

    def global_name(self, name, function):
        if name in function.__globals__:
            return self.found(Source(name, function.__globals__, name))
        in_builtins = vars(sys.modules["builtins"])
        if name in in_builtins:
            if not trace_rules.is_pure(in_builtins[name]) and type(in_builtins[name]) not in SIMPLE:
                raise CannotTell(f"it calls {name}")
            self.guards.absent(name, function.__globals__, name)
            self.found(Source(name, in_builtins, name))

    def default_values(self, name, function):
        for i, value in enumerate(function.__defaults__ or ()):
            if type(value) not in SIMPLE:  # the tuple is the same, so these are
                self.found(Source(f"default {i} of {name}", function.__defaults__, i))
        for key in function.__kwdefaults__ or ():
            self.found(Source(f"default of {key}", function.__kwdefaults__, key))

    # ------------------------------------------------------------------------------------- attributes of anything

    def name_attribute(self, name):
        """The code reads an attribute of this name, of whatever it is."""
        if name in self.attributes:
            return
        self.attributes.add(name)
        if hasattr(readtorch.Tensor, name) and name not in trace_rules.tensor_attributes():
            raise CannotTell(f"it reads the attribute {name}, which on a tensor no guard covers")
        for owner, value in list(self.objects):
            self.attribute(owner, value, name)

    def object(self, name, value):
        """Names are looked up on `value`, those that have been found and those that will be."""
        self.objects.append((name, value))
        for attribute in sorted(self.attributes):
            self.attribute(name, value, attribute)

    def attribute(self, owner, value, name):
        shown = f"{owner}.{name}"
        if isinstance(value, type):  # a named tuple's
            if name in value._fields:
                self.guards.value(Source(shown, value, name, "attribute"), getattr(value, name))
            elif name in vars(value):
                raise CannotTell(f"it may read {shown}, of which no guard knows")
        elif isinstance(value, TensorImpl | types.FunctionType):
            if name in getattr(value, "__dict__", ()):
                raise CannotTell(f"it reads {shown}, which somebody has put there")
        elif isinstance(value, Module):
            self.module_attribute(shown, value, name)
        elif trace_rules.is_library(value):
            self.library_attribute(shown, value, name)
        elif name in vars(value):
            self.found(Source(shown, vars(value), name))
        elif "__getattr__" in vars(value):
            raise CannotTell(f"it may read {shown}, which a function of that module makes")

    def library_attribute(self, shown, library, name):
        if name in vars(library):
            self.found(Source(shown, vars(library), name))
        elif (value := getattr(library, name, MISSING)) is not MISSING:
            self.kind(shown, value)

    def python_module(self, name, value):
        if not self.remember(value):
            self.object(name, value)

    # ------------------------------------------------------------------------------------------------- modules

    def module(self, name, module):
        """A module's flags, hooks and parts get guards; of its own fields, those that its code may read."""
        if self.remember(module):
            return
        self.guard_state(name, module)
        for group in (module._parameters, module._buffers):
            for key, tensor in group.items():
                self.member(f"{name}.{key}", group, key, tensor)
        for key, child in module._modules.items():
            self.guards.value(Source(f"{name}.{key}", module._modules, key), child)
            if child is not None:
                self.module(f"{name}.{key}", child)
        kinds = [kind for kind in type(module).__mro__ if kind not in MACHINERY and kind is not object]
        if any(map(trace_rules.is_ours, kinds)):  # a layer of the library, whose code is not looked at: it may read all
            for key in vars(module).keys() - STATE:
                self.found(Source(f"{name}.{key}", vars(module), key))
        self.special_methods(name, module, kinds)
        self.name_attribute("forward")
        self.object(name, module)

    def guard_state(self, name, module):
        own, state = self.guards.name(module, "M"), self.guards.name(vars(module), "H")
        if any(GLOBAL_HOOKS):
            raise CannotTell("there are hooks of all modules")
        if any(vars(module)[hooks] for hooks in OWN_HOOKS):
            raise CannotTell(f"{name} has hooks")
        if NO_GLOBAL_HOOKS not in self.guards.explain:
            self.guards.add(f"not ({' or '.join(self.guards.name(h, 'A') for h in GLOBAL_HOOKS)})", NO_GLOBAL_HOOKS)
        self.guards.add(" and ".join(f"not {state}[{h!r}]" for h in OWN_HOOKS), f"{name} has no hooks")
        kind = self.guards.name(type(module), "T")
        groups = [module._modules, module._parameters, module._buffers]  # a loop over them may be anywhere
        members = ", ".join("*" + self.guards.name(group, "H") for group in groups)
        self.guards.add(
            f"type({own}) is {kind} and len({state}) == {len(vars(module))} and "
            f"[{members}] == {[key for group in groups for key in group]}",
            f"{name} has no other members",
        )

    def member(self, shown, group, key, tensor):
        """A parameter or buffer: that there is none has a guard, too. Those that are used get theirs with the graph."""
        if tensor is None:
            self.guards.value(Source(shown, group, key), None)
        else:
            self.tensors.setdefault(id(tensor), Source(shown, group, key))
            self.tensor(shown, tensor)

    def special_methods(self, name, module, kinds):
        """What Python calls by itself."""
        for kind in kinds:
            if trace_rules.is_ours(kind):
                continue
            if not self.remember(kind):
                known, is_type = self.guards.name(vars(kind), "H"), self.guards.name(kind, "T")
                self.guards.add(
                    f"[*{known}] == {[*vars(kind)]} and {is_type}.__mro__ is {self.guards.name(kind.__mro__, 'V')}",
                    f"{kind.__name__} has no other attributes",
                )
            for key, value in vars(kind).items():
                if key in ("__getattr__", "__getattribute__", "__setattr__", "__delattr__"):
                    raise CannotTell(f"the class of {name} defines {key}")
                if (
                    key.startswith("__")
                    and isinstance(value, types.FunctionType)
                    and key not in ("__init__", "__repr__")
                ):
                    self.class_attribute(f"{name}.{key}", kind, key, value)

    def module_attribute(self, shown, module, name):
        if name in vars(module):
            if name in STATE:
                raise CannotTell(f"it reads {shown}")
            return self.found(Source(shown, vars(module), name))
        for group in (module._parameters, module._buffers):
            if group.get(name) is not None:
                return self.found(Source(shown, group, name))
        if name in module._modules or name in module._parameters or name in module._buffers:
            return None
        for kind in type(module).__mro__:
            if name in vars(kind):
                self.guards.absent(shown, vars(module), name)
                if kind in MACHINERY:
                    if name not in READING_METHODS and kind is not object:
                        raise CannotTell(f"it calls {shown}, which is no operator")
                elif not trace_rules.is_ours(kind):
                    self.class_attribute(shown, kind, name, vars(kind)[name])
        if hasattr(type(module), name):
            at_hand = Source(shown, type(module), name, "attribute")
            value = at_hand.value()
            self.guards.add(f"{self.guards.read(at_hand)} is {self.guards.name(value, 'V')}", f"{shown} is the same")
        return None

    def class_attribute(self, shown, kind, name, value):
        """A method, a property or a value that the class has for all its objects."""
        found = f"vars({self.guards.name(kind, 'T')})[{name!r}]"
        self.guards.add(f"{found} is {self.guards.name(value, 'V')}", f"{shown} is the same")
        if isinstance(value, staticmethod):
            value = value.__func__
        if isinstance(value, property):
            value = value.fget
        if inspect.isdatadescriptor(value) or isinstance(value, classmethod):
            raise CannotTell(_unknown(shown, value))
        if type(value) in NESTS:
            self.found(Source(shown, kind, name, "attribute"))
        else:
            self.kind(shown, value)


def _is_ours_inside(function):
    """Whether the code is this package's, though the name is not: what a decorator of ours has made."""
    return room_of(function.__globals__.get("__name__")) is not None


def _unknown(name, value):
    if callable(value):
        return f"it may call {name}, whose code is not known ({type(value).__name__})"
    return f"it reads {name}, a {type(value).__name__}, of which no guard knows"
