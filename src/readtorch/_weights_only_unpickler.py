"""An unpickler that builds tensors, containers and numbers, and nothing else.

In PyTorch: `torch/_weights_only_unpickler.py`. Explained in the chapter "state_dict, save and load".

Note [ What a hostile pickle cannot do ]

A pickle is a program, and `pickle.load` runs it: it may import any function and call it. This unpickler knows
the few instructions that `save` needs, and finds classes and functions in a table
(`serialization/_safe_globals.py`): a name that is not there is refused, nothing is imported. There PyTorch's
stops. Ours also refuses what would exhaust the machine without leaving the table:

- `bytearray(10**12)` fills the memory. So each function that may be called has a check of its arguments.
- A list that stands in the file once may be copied by `set(…)` a million times. So all copies together may be
  no longer than the pickle itself, as they are in every pickle that somebody saved.
- A pickle of equal bytes may be compressed to a thousandth of its size. So it is not expanded if it is much
  longer than saved pickles are: Note [ How far a compressed archive may expand ]. From there on one byte makes
  at most one object, of some 200 bytes.
- A place in the memo may be numbered 2**32 - 1. So the memo is a dictionary, not a list up to that place.
- A tuple of itself and itself, sixty times over, is a short program, but to hash it as a dictionary's key
  takes 2**60 steps; one nested a million deep overflows the C stack; and numbers can be chosen so that their
  hashes are all the same. So keys are looked at first: tuples not too large and not too many, integers of 64
  bits, no complex numbers.
"""

import functools
import struct
import warnings
from collections import Counter, OrderedDict
from pickle import UnpicklingError, decode_long

from .serialization import _safe_globals
from .serialization._opcodes import globals_in, python3_name
from .serialization._safe_globals import _get_allowed_globals, _get_user_allowed_globals, is_user_allowed
from .serialization._safe_globals import add_safe_globals as _add_safe_globals  # noqa: F401
from .serialization._safe_globals import clear_safe_globals as _clear_safe_globals  # noqa: F401
from .serialization._safe_globals import get_safe_globals as _get_safe_globals  # noqa: F401
from .serialization._safe_globals import remove_safe_globals as _remove_safe_globals  # noqa: F401
from .serialization._safe_globals import safe_globals as _safe_globals_context  # noqa: F401

# Modules whose functions stay refused even if somebody allows them.
_blocklisted_modules = ["sys", "os", "posix", "nt"]

_MOST_TUPLE_KEYS = 10_000
_MOST_IN_A_KEY = 1_000
_LONGEST_LINE = 10_000
_INSTRUCTIONS = {}  # code -> name of a method, or function of the unpickler
_STOP = ord(".")
_int32, _uint16, _uint32, _float64 = map(struct.Struct, ("<i", "<H", "<I", ">d"))


def instruction(*codes):
    """Register a method for the instructions with these codes."""

    def register(method):
        _INSTRUCTIONS.update({code[0]: method.__name__ for code in codes})
        return method

    return register


def constant(code, make):
    """An instruction that pushes what `make()` returns."""
    _INSTRUCTIONS[code[0]] = lambda unpickler: unpickler.stack.append(make())


def number(code, layout):
    """An instruction that pushes the number that follows it."""

    def push(unpickler):
        unpickler.stack.append(layout.unpack(unpickler.read(layout.size))[0])

    _INSTRUCTIONS[code[0]] = push


class Unpickler:
    """Runs the pickle in `file`. Raises UnpicklingError for what it does not allow or understand, EOFError if
    it breaks off.

    TorchScript archives and snapshots of memory are read by subclasses, whose `instructions` are others.

    encoding: of the byte strings of Python 2; "bytes" leaves them bytes.
    `persistent_load(id)` is the caller's: it makes a storage from ("storage", type, key, location, numel).
    """

    instructions = _INSTRUCTIONS

    def __init__(self, file, *, encoding="bytes"):
        self.data = file.read()
        self.at = 0  # the position of the next instruction
        self.stack = []
        self.metastack = []  # the stacks below the marks
        self.memo = {}
        self.encoding = encoding
        self.room_for_copies = len(self.data)
        self.tuple_keys = 0

    def load(self):
        """The object that the pickle describes."""
        instructions = {
            code: getattr(self, what) if isinstance(what, str) else functools.partial(what, self)
            for code, what in self.instructions.items()
        }
        try:
            while (code := self.data[self.at]) != _STOP:
                self.at += 1
                run = instructions.get(code)
                if run is None:
                    raise UnpicklingError(f"Unsupported operand {code}")
                run()
            return self.stack.pop()
        except IndexError:
            if self.at >= len(self.data):
                raise EOFError("the pickle breaks off") from None
            raise self.damaged("an empty stack") from None
        except (KeyError, struct.error, UnicodeDecodeError) as error:
            raise self.damaged(repr(error)) from None

    def damaged(self, why):
        return UnpicklingError(f"the pickle is damaged near byte {self.at}: {why}")

    def read(self, count):
        """The next `count` bytes."""
        start, self.at = self.at, self.at + count
        if self.at > len(self.data):
            raise EOFError("the pickle breaks off")
        return self.data[start : self.at]

    def readline(self):
        end = self.data.find(b"\n", self.at, self.at + _LONGEST_LINE)
        if end < 0:
            raise self.damaged("a name without an end")
        line, self.at = self.data[self.at : end], end + 1
        return line.decode()

    def pop_mark(self):
        """What was pushed since the last mark."""
        items = self.stack
        self.stack = self.metastack.pop()
        return items

    def persistent_load(self, pid):
        raise UnpicklingError("unsupported persistent id encountered")

    # ---------------------------------------------------------------------------------- classes and functions

    def find_global(self, module, name):
        """The class or function that the pickle calls `module.name`."""
        full_path = f"{module}.{name}"
        if module in _blocklisted_modules:
            raise UnpicklingError(f"Trying to load unsupported GLOBAL {full_path} whose module {module} is blocked.")
        for allowed_globals in (_get_allowed_globals, _get_user_allowed_globals):
            if full_path in (allowed := allowed_globals()):
                return allowed[full_path]
        if _safe_globals.is_pytorchs(full_path):
            raise UnpicklingError(f"readtorch does not build {full_path} from a checkpoint: only PyTorch does")
        shown = full_path.removeprefix("builtins.")
        raise UnpicklingError(
            f"Unsupported global: GLOBAL {shown} was not an allowed global by default. "
            f"Please use `torch.serialization.add_safe_globals([{shown}])` or the "
            f"`torch.serialization.safe_globals([{shown}])` context manager to allowlist this global "
            "if you trust this class/function."
        )

    def call(self, function, args):
        """`function(*args)`, if that is allowed: see Note [ What a hostile pickle cannot do ]."""
        if callable(function) and type(args) is tuple:
            if function in _safe_globals.checks():
                try:
                    _safe_globals.checks()[function](self, *args)
                    return function(*args)
                except (TypeError, ValueError, AttributeError, OverflowError, LookupError) as error:
                    raise self.damaged(f"{function.__name__}: {error}") from None
            if is_user_allowed(function):
                return function(*args)
        shown = function if callable(function) else type(function)
        raise UnpicklingError(f"Trying to call reduce for unrecognized function {shown}")

    def copies(self, items):
        """Take account of a copy of `items`."""
        self.room_for_copies -= len(items)
        if self.room_for_copies < 0:
            raise UnpicklingError("the pickle copies more than it holds")

    def check_keys(self, keys):
        """Raise UnpicklingError for what takes too long to hash."""
        for key in keys:
            if isinstance(key, tuple):
                self.tuple_keys += 1
                self._check_tuple_key(key)
            elif type(key) is int and not -1 << 63 <= key < 1 << 64 or type(key) is complex:
                raise UnpicklingError("a key must not be an integer of more than 64 bits or a complex number")
            elif isinstance(key, (list, dict, set, bytearray)):
                raise UnpicklingError(f"unhashable type: '{type(key).__name__}'")

    def _check_tuple_key(self, key):
        waiting, seen = [key], 0
        while waiting:
            items = waiting.pop()
            seen += len(items)
            if seen > _MOST_IN_A_KEY or self.tuple_keys > _MOST_TUPLE_KEYS:
                raise UnpicklingError("too many or too large tuples as keys")
            tuples = [item for item in items if isinstance(item, tuple)]
            waiting += tuples
            self.check_keys(item for item in items if not isinstance(item, tuple))

    @instruction(b"c")  # GLOBAL
    def _global(self):
        module, name = self.readline(), self.readline()
        self.stack.append(self.find_global(*python3_name(module, name)))

    @instruction(b"R")  # REDUCE
    def _reduce(self):
        args = self.stack.pop()
        self.stack[-1] = self.call(self.stack[-1], args)

    @instruction(b"\x81")  # NEWOBJ
    def _new_object(self):
        args, cls = self.stack.pop(), self.stack.pop()
        if isinstance(cls, type) and is_user_allowed(cls):
            self.stack.append(cls.__new__(cls, *args))
        elif isinstance(cls, type) and cls in _safe_globals.classes_to_make():
            self.stack.append(self.call(cls, args))
        else:
            shown = cls if callable(cls) else type(cls)
            raise UnpicklingError(
                "Can only create new object for nn.Parameter or classes allowlisted "
                f"via `add_safe_globals` but got {shown}"
            )

    @instruction(b"b")  # BUILD
    def _build(self):
        state, instance = self.stack.pop(), self.stack[-1]
        if type(instance) is OrderedDict and type(state) is dict:
            self.copies(state)
            instance.__dict__.update(state)
        elif _safe_globals.is_plain_tensor(instance):
            instance.__setstate__(_safe_globals.checked_state(self, instance, state))
        elif is_user_allowed(type(instance)):
            set_state(instance, state)
        else:
            raise UnpicklingError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted "
                f"via `add_safe_globals`, but got {type(instance)}"
            )

    @instruction(b"Q")  # BINPERSID
    def _persistent(self):
        pid = self.stack.pop()
        if type(pid) is not tuple and type(pid) is not int:
            raise UnpicklingError(f"persistent_load id must be tuple or int, but got {type(pid)}")
        if type(pid) is tuple and pid and (type(pid[0]) not in (str, bytes) or pid[0] not in ("storage", b"storage")):
            raise UnpicklingError(f"Only persistent_load of storage is allowed, but got {type(pid[0])}")
        self.stack.append(self.persistent_load(pid))

    # --------------------------------------------------------------------------------------------- containers

    @instruction(b"a")  # APPEND
    def _append(self):
        item = self.stack.pop()
        self._target("append to lists", list).append(item)

    @instruction(b"e")  # APPENDS
    def _appends(self):
        items = self.pop_mark()
        self._target("extend lists", list).extend(items)

    @instruction(b"s")  # SETITEM
    def _set_item(self):
        value, key = self.stack.pop(), self.stack.pop()
        self._set("SETITEM", [key], [value])

    @instruction(b"u")  # SETITEMS
    def _set_items(self):
        items = self.pop_mark()
        self._set("SETITEMS", items[::2], items[1::2])

    def _set(self, code, keys, values):
        target = self._target(
            f"{code} for dict, collections.OrderedDict, collections.Counter", dict, OrderedDict, Counter
        )
        self.check_keys(keys)
        if len(keys) != len(values):
            raise self.damaged("a key without a value")
        for key, value in zip(keys, values):  # `update` of a Counter would add
            target[key] = value

    def _target(self, what, *classes):
        target = self.stack[-1]
        if type(target) not in classes:
            raise UnpicklingError(f"Can only {what}, but got {type(target)}")
        return target

    @instruction(b"(")  # MARK
    def _mark(self):
        self.metastack.append(self.stack)
        self.stack = []

    @instruction(b"t")  # TUPLE
    def _tuple(self):
        items = self.pop_mark()
        self.stack.append(tuple(items))

    @instruction(b"\x85", b"\x86", b"\x87")  # TUPLE1, TUPLE2, TUPLE3
    def _short_tuple(self):
        count = self.data[self.at - 1] - 0x84
        if len(self.stack) < count:
            raise self.damaged("an empty stack")
        self.stack[-count:] = [tuple(self.stack[-count:])]

    # ------------------------------------------------------------------------------- numbers, texts, the memo

    constant(b"N", lambda: None)  # NONE
    constant(b"\x88", lambda: True)  # NEWTRUE
    constant(b"\x89", lambda: False)  # NEWFALSE
    constant(b")", tuple)  # EMPTY_TUPLE
    constant(b"]", list)  # EMPTY_LIST
    constant(b"}", dict)  # EMPTY_DICT
    constant(b"\x8f", set)  # EMPTY_SET
    number(b"J", _int32)  # BININT
    number(b"K", struct.Struct("B"))  # BININT1
    number(b"M", _uint16)  # BININT2
    number(b"G", _float64)  # BINFLOAT

    @instruction(b"\x8a")  # LONG1
    def _long(self):
        self.stack.append(decode_long(self.read(self.read(1)[0])))

    @instruction(b"X")  # BINUNICODE
    def _text(self):
        length = _uint32.unpack(self.read(4))[0]
        self.stack.append(str(self.read(length), "utf-8", "surrogatepass"))

    @instruction(b"U")  # SHORT_BINSTRING
    def _byte_string(self):
        data = self.read(self.read(1)[0])
        self.stack.append(data if self.encoding == "bytes" else data.decode(self.encoding, "strict"))

    @instruction(b"h")  # BINGET
    def _get(self):
        self.stack.append(self.memo[self.read(1)[0]])

    @instruction(b"j")  # LONG_BINGET
    def _long_get(self):
        self.stack.append(self.memo[_uint32.unpack(self.read(4))[0]])

    @instruction(b"q")  # BINPUT
    def _put(self):
        self.memo[self.read(1)[0]] = self.stack[-1]

    @instruction(b"r")  # LONG_BINPUT
    def _long_put(self):
        self.memo[_uint32.unpack(self.read(4))[0]] = self.stack[-1]

    @instruction(b"\x80")  # PROTO
    def _protocol(self):
        protocol = self.read(1)[0]
        if protocol != 2:
            warnings.warn(
                f"Detected pickle protocol {protocol} in the checkpoint, which was "
                "not the default pickle protocol used by `torch.load` (2). The weights_only "
                "Unpickler might not support all instructions implemented by this protocol, "
                "please file an issue for adding support if you encounter this.",
                stacklevel=3,
            )


def set_state(instance, state):
    """What `pickle` does with a state: `__setstate__` if there is one, else attributes, and slots beside
    them.
    """
    if hasattr(instance, "__setstate__"):
        instance.__setstate__(state)
        return
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if attributes:
        instance.__dict__.update(attributes)
    for name, value in (slots or {}).items():
        setattr(instance, name, value)


def get_globals_in_pkl(file):
    """The names of all classes and functions that a pickle mentions, found without running it."""
    named = [python3_name(module, name) for _, _, module, name in globals_in(file.read())]
    return {f"{module}.{name}" for module, name in named}


def load(file, *, encoding="ASCII"):
    """The object that the pickle in `file` describes."""
    return Unpickler(file, encoding=encoding).load()
