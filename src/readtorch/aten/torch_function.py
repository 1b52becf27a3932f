"""`__torch_function__`: how a call is handed to the modes and to the classes of its arguments before it begins.

In PyTorch: `torch/csrc/utils/python_arg_parser.cpp` (`handle_torch_function`, `append_overloaded_arg`),
`torch/csrc/utils/disable_torch_function.cpp`, `aten/src/ATen/PythonTorchFunctionTLS.h`.
Explained in the chapter "One operator call".
"""

import functools
import inspect
import threading

from readtorch.c10 import tensor_impl
from readtorch.c10.dispatch_key import THREAD, TORCH_FUNCTION
from readtorch.c10.exception import warn_once
from readtorch.c10.local_dispatch_key_set import (
    ALL_DISABLED,
    ALL_ENABLED,
    SUBCLASSES_DISABLED,
    let_through,
    tls,
    update_mask,
)
from readtorch.c10.tensor_impl import TensorImpl
from readtorch.c10.torch_dispatch_mode_tls import PYTHON_KEYS, has_torch_dispatch

# Note [ Who overrides ]
#
# A call of plain tensors, outside of modes, does not ask for overrides. What is generated sees by the key set whether to
# ask: a tensor of a class that overrides carries TORCH_FUNCTION, and while a mode is on the thread's mask lets THREAD
# through. The look-up that every call makes anyway then finds one that raises Overridden: see BindingTable; the binding catches
# it and hands on what the caller wrote. What is written by hand asks first, `if overriders:`. This set holds the classes
# that override and the threads with modes, and in most programs it stays empty.
#
# in PyTorch: each binding looks at the type of each argument.
overriders = set()


class Overridden(Exception):
    """A call that somebody overrides has got as far as the look-up of its kernel. See Note [ Who overrides ]."""


# --------------------------------------------------------------------------------------------- the thread's state


def mode_enabled():
    """Whether this thread has entered a TorchFunctionMode and asks it."""
    return bool(tls.function_modes) and tls.torch_function != ALL_DISABLED


def push_mode(mode):
    tls.function_modes += (mode,)
    overriders.add(threading.get_ident())
    tls.is_unusual = True
    let_through(THREAD, True)


def pop_mode():
    """The innermost mode, which is off from now on. Raises RuntimeError if there is none."""
    modes = tls.function_modes
    if not modes:
        raise RuntimeError("trying to pop from empty mode stack")
    tls.function_modes = modes[:-1]
    if len(modes) == 1:
        overriders.discard(threading.get_ident())
        update_mask()
    return modes[-1]


def set_torch_function_state(state):
    """ALL_ENABLED, SUBCLASSES_DISABLED or ALL_DISABLED."""
    tls.torch_function = state
    let_through(TORCH_FUNCTION, state == ALL_ENABLED)


class DisableTorchFunctionSubclass:
    """`with DisableTorchFunctionSubclass():` classes are not asked; modes are."""

    wanted = SUBCLASSES_DISABLED

    def __enter__(self):
        self.previous = tls.torch_function
        set_torch_function_state(max(self.previous, self.wanted))

    def __exit__(self, *exception):
        set_torch_function_state(self.previous)


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """`with DisableTorchFunction():` neither classes nor modes are asked."""

    wanted = ALL_DISABLED


class _Disabled:
    """As the `__torch_function__` of a class: its tensors are treated like plain ones (Parameter's is this).

    Not a function, for found in an instance it shall be itself, no method.
    """

    def __call__(self, func, types, args=(), kwargs=None):
        if not isinstance(args, (tuple, list)):
            raise TypeError(f"expected List or Tuple (got {type(args).__name__})")
        with DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    def __repr__(self):
        return "<built-in function _disabled_torch_function_impl>"

    def __reduce__(self):
        return "_disabled_torch_function_impl"


_disabled_torch_function_impl = _Disabled()


# ------------------------------------------------------------------------------------------- which arguments are asked

# Types that are not asked for the attribute: it would be looked for in vain in every call.
_BASIC = frozenset(
    {bool, int, float, complex, list, tuple, dict, set, frozenset, str, bytes, slice}
    | {type(None), type(Ellipsis), type(NotImplemented)}
)


def overrides(cls):
    """Whether instances of a class are asked: of Tensor's subclasses all but those whose attribute is disabled."""
    found = getattr(cls, "__torch_function__", None)
    return found is not None and found is not _disabled_torch_function_impl and cls is not tensor_impl.tensor_class


def has_override(argument):
    """Whether a call with this argument is handed to the argument's class here and now."""
    cls = type(argument)
    if cls is tensor_impl.tensor_class or cls in _BASIC or tls.torch_function != ALL_ENABLED:
        return False
    found = getattr(argument, "__torch_function__", None)
    return found is not None and found is not _disabled_torch_function_impl


def is_no_tensor_and_overrides(argument):
    """Whether it may stand in any place of a call: in PyTorch's parser such an object fits every type."""
    return not isinstance(argument, TensorImpl) and has_override(argument)


def has_handler(argument, type_of=type):
    """The same for a function that is written in Python, where a plain tensor is asked, too."""
    found = getattr(type_of(argument), "__torch_function__", None)
    return found is not None and found is not _disabled_torch_function_impl


def overloaded_args(arguments):
    """Of the arguments that are asked one of each class."""
    if tls.torch_function != ALL_ENABLED:
        return []
    plain = tensor_impl.tensor_class
    return one_of_each_class([a for a in arguments if type(a) is not plain and has_override(a)])


def one_of_each_class(arguments, type_of=type):
    """The first argument of each class: in order, but a subclass before the classes that it is of."""
    if len(arguments) < 2:
        return list(arguments)
    found = []
    for argument in arguments:
        cls = type_of(argument)
        if any(type_of(other) is cls for other in found):
            continue
        place = next((i for i, other in enumerate(found) if issubclass(cls, type_of(other))), len(found))
        found.insert(place, argument)
    return found


def and_elements(arguments):
    """The arguments; in place of a list or tuple what it holds."""
    found = []
    for argument in arguments:
        if type(argument) is not tensor_impl.tensor_class and isinstance(argument, (list, tuple)):
            found += argument
        else:
            found.append(argument)
    return found


def is_overridden(arguments):
    """Whether a mode is on or an argument's class overrides. What is written by hand asks this behind `overriders`."""
    return (mode_enabled() or any(map(has_override, arguments))) and not skips_hop()


def skip_one_hop(function, types, args, kwargs):
    """`function(*args, **kwargs)`, which is not handed on; what it calls is."""
    tls.skips_hop = True
    try:
        return function(*args, **(kwargs or {}))
    finally:
        tls.skips_hop = False


def skips_hop():
    """Whether this is the call that `skip_one_hop` makes; the next one is not."""
    skips = tls.skips_hop
    if skips:
        tls.skips_hop = False
    return skips


# ------------------------------------------------------------------------------------------------------ handing over


class popped_mode:
    """`with popped_mode() as mode:` the innermost mode is off, as it is while its handler runs."""

    def __enter__(self):
        self.mode = pop_mode()
        return self.mode

    def __exit__(self, *exception):
        push_mode(self.mode)


def handle_torch_function(function, overloaded, args, kwargs, name, always=False):
    """The answer of the innermost mode, else of the first class that gives one.

    function: the public function that was called with args and kwargs, which are handed on as the caller wrote them; kwargs
    that are empty are handed on only if `always`. overloaded: see `overloaded_args`. name: the function's in the error.
    Raises TypeError if all answer NotImplemented.
    """
    types = tuple(map(type, overloaded))
    given = (function, types, args, kwargs) if kwargs or always else (function, types, args)
    mode, result = None, NotImplemented
    if mode_enabled():
        with popped_mode() as mode:
            result = handler_of_mode(mode)(*given)
    for argument in overloaded if result is NotImplemented else ():
        result = handler_of(argument)(*given)
        if result is not NotImplemented:
            break
    if result is NotImplemented:
        raise TypeError(_nobody_answered(name, mode, types))
    return result


def handler_of(argument):
    """The argument's `__torch_function__`."""
    found = argument.__torch_function__
    if getattr(found, "__self__", None) is argument and found is not _disabled_torch_function_impl:
        warn_once(
            "Defining your `__torch_function__` as a plain method is deprecated and will be an error in future, please "
            "define it as a classmethod.",
            stacklevel=3,
        )
    return found


def handler_of_mode(mode):
    found = mode.__torch_function__
    if getattr(found, "__self__", None) is not mode:
        raise RuntimeError(
            "Defining your mode's `__torch_function__` as a classmethod is not supported, please make it a plain method"
        )
    return found


def _nobody_answered(name, mode, types):
    lines = [f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:\n"]
    if mode is not None:
        lines.append(f"  - mode object {mode!r}")
    lines += [f"  - tensor subclass {cls!r}" for cls in types]
    return "\n".join([*lines, "\nFor more information, try re-running with TORCH_LOGS=not_implemented"])


# These take any object as data, and ask only modes.
_TAKE_ANYTHING = {"tensor", "as_tensor", "asarray", "from_numpy", "frombuffer", "from_dlpack", "new_tensor", "type"}


class Public:
    """A function or method as users call it: what `__torch_function__` is told of a call of a binding.

    name, module: as errors give them, "add" and "torch.Tensor". alone: it is a method without arguments; in PyTorch these do not
    go through the parser, and a plain tensor counts among the types, too. in_python: in PyTorch it
    is written in Python, where plain tensors count among the types and empty kwargs are handed on. parameters: those of such a
    function, as a `def` has them, if it hands on what has a default by keyword, whether the caller gave it or not.
    """

    function = None  # of a method: what the class has by that name

    def __init__(self, name, module="torch", alone=False, in_python=False, parameters=None):
        self.name = name
        self.module = module
        self.is_method = module == "torch.Tensor"
        self.alone = alone
        self.in_python = in_python or parameters is not None
        self.parameters = parameters

    def asked_of(self, args, kwargs):
        """The arguments whose classes are asked, those in lists among them."""
        if self.name in _TAKE_ANYTHING:
            return args[:1] if self.is_method else ()
        return and_elements((*args, *kwargs.values()))

    def override(self, args, kwargs):
        """Hands a call on: what a binding does after Overridden. If nobody overrides it after all, the call is made."""
        function = self.function or getattr(tensor_impl.tensor_class, self.name)
        if self.parameters:
            args, kwargs = self.spelled(args, kwargs)
        overloaded = overloaded_args(self.asked_of(args, kwargs))
        if skips_hop() or not (overloaded or mode_enabled()):
            with DisableTorchFunction():
                return function(*args, **kwargs)
        if self.alone:
            overloaded = args[:1]
        elif self.in_python:
            overloaded = one_of_each_class(list(filter(has_handler, args))) if tls.torch_function == ALL_ENABLED else []
        return handle_torch_function(
            function, overloaded, args, kwargs, f"{self.module}.{self.name}", always=self.in_python
        )

    def spelled(self, args, kwargs):
        """The arguments as PyTorch's Python hands them on: without a default by position, with one by keyword."""
        bound = inspect.signature(eval(f"lambda {self.parameters}: None")).bind(*args, **kwargs)
        bound.apply_defaults()
        by_position, by_keyword = [], {}
        for name, value in bound.arguments.items():
            parameter = bound.signature.parameters[name]
            if parameter.kind is parameter.VAR_POSITIONAL:
                by_position += value
            elif parameter.default is parameter.empty:
                by_position.append(value)
            else:
                by_keyword[name] = value
        return tuple(by_position), by_keyword

    def override_infix(self, left, right):
        """The same for an infix operator: operands that nobody knows, and TypeErrors, are NotImplemented to Python."""
        if not is_overridden((left, right)):
            return NotImplemented
        try:
            return self.override((left, right), {})
        except TypeError:
            return NotImplemented


class PublicEq(Public):
    """`x == y`, which asks x alone; if it does not override, and no mode is on, `Tensor.eq` asks both.

    tensor_of: makes a NumPy array a tensor, with which x is then compared; None of anything else.
    """

    def __init__(self, tensor_of):
        super().__init__("__eq__", "torch.Tensor")
        self.eq = Public("eq", "torch.Tensor")
        self.tensor_of = tensor_of

    def asked_of(self, args, kwargs):
        return args[:1]

    def override_infix(self, left, right):
        told = super() if mode_enabled() or has_override(left) else self.eq
        other = self.tensor_of(right) if told is self.eq else None
        return told.override_infix(left, right) if other is None else left == other


# ------------------------------------------------------------------------------ bindings that are written by hand


def asking(function, public):
    """A hand-written binding with the question before it: Note [ Who overrides ]."""
    if public.is_method and takes_self_alone(function.__code__):
        return asking_alone(function, public)
    if public.is_method and public.name.startswith("__"):
        return asking_infix(function, public)
    asked = public.asked_of

    @functools.wraps(function)
    def binding(*args, **kwargs):
        if overriders and is_overridden(asked(args, kwargs)):
            return public.override(args, kwargs)
        try:
            return function(*args, **kwargs) if kwargs else function(*args)
        except (TypeError, AttributeError):  # perhaps it did not expect an object that is no tensor and overrides
            if not any(map(is_no_tensor_and_overrides, asked(args, kwargs))):
                raise
        return public.override(args, kwargs)

    return binding


def takes_self_alone(code):
    starred = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    return code.co_argcount == 1 and not code.co_kwonlyargcount and not code.co_flags & starred


def asking_alone(method, public):
    """The same for a method without arguments."""

    @functools.wraps(method)
    def binding(self):
        if overriders and is_overridden((self,)):
            return public.override((self,), {})
        return method(self)

    return binding


def asking_infix(method, public):
    """The same for an infix operator."""

    @functools.wraps(method)
    def binding(self, other):
        if overriders and is_overridden((self, other)):
            return public.override_infix(self, other)
        result = method(self, other)
        return public.override_infix(self, other) if result is NotImplemented else result

    return binding


def overridable(method):
    """Decorator for a method of tensors."""
    return asking(method, Public(method.__name__, "torch.Tensor"))


def overridable_alone(method):
    """The same for one without arguments."""
    return asking_alone(method, Public(method.__name__, "torch.Tensor", alone=True))


class overridable_property(property):
    """A property of tensors; `__torch_function__` is told of `Tensor.shape.__get__`, `__set__`, `__delete__`."""

    def __init__(self, get, set=None, delete=None, name=None, quick=False):
        self.__name__ = name = name or get.__name__
        self.parts = get, set, delete, name, quick

        def asking_get(self):
            if overriders and is_overridden((self,)):
                return override_property(name, "__get__", self)
            return get(self)

        def asking_set(self, value):
            if overriders and is_overridden((self,)):
                return override_property(name, "__set__", self, value)
            return set(self, value)

        def asking_delete(self):
            if overriders and is_overridden((self,)):
                return override_property(name, "__delete__", self)
            return delete(self)

        super().__init__(get if quick else asking_get, set and asking_set, delete and asking_delete, get.__doc__)

    @classmethod
    def quick(cls, get):
        """For one that is often read: `get` begins with the question."""
        return cls(get, quick=True)

    def setter(self, set):
        get, _, delete, name, quick = self.parts
        return type(self)(get, set, delete, name, quick)

    def deleter(self, delete):
        get, set, _, name, quick = self.parts
        return type(self)(get, set, delete, name, quick)


def override_property(name, access, t, *value):
    """What a property gives whose access is overridden."""
    function = getattr(getattr(tensor_impl.tensor_class, name), access)
    return handle_torch_function(function, [t], (t, *value), {}, f"torch.Tensor.{name}.{access}")


def class_key(cls):
    """TORCH_FUNCTION for the instances of a class that overrides functions, Python's keys for one that has a `__torch_dispatch__`."""
    python = PYTHON_KEYS if has_torch_dispatch(cls) else 0
    if not overrides(cls):
        return python
    overriders.add(cls)
    return TORCH_FUNCTION | python
