"""The machine that runs a pickle, instruction by instruction (the chapter "state_dict, save and load").

The values are not made: a value is what is shown of it. So nothing that a program asks for is imported or
called, and a program of any origin can be looked at.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass, field

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Refusal, Text
from readtorch.viz.pickle_names import ALLOWED, NEVER
from readtorch.viz.picture import box, drawing, text

MOST_STEPS, LONGEST = 10_000, 200_000
STACK_SHOWN, MEMO_SHOWN, UNRUN_SHOWN = 9, 6, 9
MAGIC_NUMBER = str(0x1950A86A20F9469CFC6C)  # with it a file begins that torch.save wrote before 1.6
PROGRAMS = {
    "linear": r"\x80\x02ccollections\nOrderedDict\nq\x00)Rq\x01(X\x06\x00\x00\x00weightq\x02ctorch._utils\n_rebuild_tensor_v2\nq\x03((X\x07\x00\x00\x00storageq\x04ctorch\nFloatStorage\nq\x05X\x01\x00\x00\x000q\x06X\x03\x00\x00\x00cpuq\x07K\x02tq\x08QK\x00K\x01K\x02\x86q\tK\x02K\x01\x86q\n\x89h\x00)Rq\x0btq\x0cRq\rX\x04\x00\x00\x00biasq\x0eh\x03((h\x04h\x05X\x01\x00\x00\x001q\x0fh\x07K\x01tq\x10QK\x00K\x01\x85q\x11K\x01\x85q\x12\x89h\x00)Rq\x13tq\x14Rq\x15u}q\x16X\t\x00\x00\x00_metadataq\x17h\x00)Rq\x18X\x00\x00\x00\x00q\x19}q\x1aX\x07\x00\x00\x00versionq\x1bK\x01sssb.",  # noqa: E501
    "views": r"\x80\x02}q\x00(X\x03\x00\x00\x00allq\x01ctorch._utils\n_rebuild_tensor_v2\nq\x02((X\x07\x00\x00\x00storageq\x03ctorch\nFloatStorage\nq\x04X\x01\x00\x00\x000q\x05X\x03\x00\x00\x00cpuq\x06K\x06tq\x07QK\x00K\x06\x85q\x08K\x01\x85q\t\x89ccollections\nOrderedDict\nq\n)Rq\x0btq\x0cRq\rX\x03\x00\x00\x00rowq\x0eh\x02((h\x03h\x04h\x05h\x06K\x06tq\x0fQK\x03K\x03\x85q\x10K\x01\x85q\x11\x89h\n)Rq\x12tq\x13Rq\x14u.",  # noqa: E501
    "class": r"\x80\x02ctrain\nConfig\nq\x00)\x81q\x01}q\x02X\x05\x00\x00\x00widthq\x03K\x03sb.",
    "attack": r"\x80\x02cposix\nsystem\nX\x08\x00\x00\x00rm -rf ~\x85R.",
    "old": r"cposix\nsystem\n(S'rm -rf ~'\ntR.",
    "call": r"\x80\x02X\x01\x00\x00\x00w)R.",
    "item": r"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x06tQK\x00K\x06\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtRM@BK\x05s.",  # noqa: E501
    "loop": r"\x80\x02]q\x00h\x00a.",
}
NAMES = {
    "linear": "a Linear's state_dict",
    "views": "two views of one storage",
    "class": "an object of your own class",
    "attack": "an attack: os.system",
    "old": "the same as text, in protocol 0",
    "call": "calls a string",
    "item": "writes into a tensor",
    "loop": "a list that contains itself",
    "own": "your own",
}
CONSTANTS = {  # code: name of the instruction, class, what is shown
    "N": ("NONE", "NoneType", "None"),
    "\x88": ("NEWTRUE", "bool", "True"),
    "\x89": ("NEWFALSE", "bool", "False"),
}
EMPTY = {
    ")": ("EMPTY_TUPLE", "tuple"),
    "]": ("EMPTY_LIST", "list"),
    "}": ("EMPTY_DICT", "dict"),
    "\x8f": ("EMPTY_SET", "set"),
}
NUMBERS = {"J": ("BININT", "<i"), "K": ("BININT1", "<B"), "M": ("BININT2", "<H"), "G": ("BINFLOAT", ">d")}
TEXTS = {  # code: name, how many bytes have the length, whether it is text
    "X": ("BINUNICODE", 4, True, True),
    "U": ("SHORT_BINSTRING", 1, True, True),
    "\x8c": ("SHORT_BINUNICODE", 1, True, False),
    "C": ("SHORT_BINBYTES", 1, False, False),
    "B": ("BINBYTES", 4, False, False),
}
MEMO = {"q": ("BINPUT", 1), "r": ("LONG_BINPUT", 4), "h": ("BINGET", 1), "j": ("LONG_BINGET", 4)}
TUPLES = {"\x85": 1, "\x86": 2, "\x87": 3}
CLASSES = {"OrderedDict": "collections.OrderedDict", "Counter": "collections.Counter"}
NOT_CALLED = re.compile(r"torch\.(?!device)[a-z0-9_]+|torch\.(cuda\.)?[A-Za-z0-9]+Storage")  # dtypes and their like
ARGUMENTS = {  # of the functions on the list: at least, at most
    "_codecs.encode": (1, 3),
    "builtins.bytearray": (0, 3),
    "builtins.complex": (0, 2),
    "builtins.set": (0, 1),
    "torch.Size": (0, 1),
    "torch.device": (1, 2),
    "torch._tensor._rebuild_from_type_v2": (4, 4),
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": (4, 4),
    "torch._utils._rebuild_device_tensor_from_numpy": (4, 4),
    "torch._utils._rebuild_meta_tensor_no_storage": (4, 4),
    "torch._utils._rebuild_nested_tensor": (4, 4),
    "torch._utils._rebuild_parameter": (3, 3),
    "torch._utils._rebuild_parameter_with_state": (4, 4),
    "torch._utils._rebuild_qtensor": (7, 7),
    "torch._utils._rebuild_sparse_tensor": (2, 2),
    "torch._utils._rebuild_tensor": (4, 4),
    "torch._utils._rebuild_tensor_v2": (6, 7),
    "torch._utils._rebuild_tensor_v3": (7, 8),
    "torch._utils._rebuild_wrapper_subclass": (8, 8),
    "torch.serialization._get_layout": (1, 1),
}
ON_STORAGES = ("torch._utils._rebuild_tensor", "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor_v3")
WHOLE = re.compile(r"[ \t-\r]*([+-]?)(0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|[1-9][0-9]*|0+)[ \t-\r]*")
PLACE = re.compile(r"[ \t-\r]*[+-]?[0-9]{1,15}[ \t-\r]*")
REAL = re.compile(
    r"[ \t-\r]*([+-]?)((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)[ \t-\r]*", re.IGNORECASE
)
LONGEST_NUMBER = 4300  # digits; Python reads no more
BACKSLASH = re.compile(r"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|[\s\S])")
LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", "'": "'", '"': '"'}
DICTS = ("dict", "OrderedDict", "Counter")
ITERABLE = ("tuple", "list", "set", "str", "bytes", *DICTS)
NUMERIC = ("bool", "int", "float")
ESCAPES = {"\\n": "\n", "\\r": "\r", "\\t": "\t", "\\\\": "\\", "\\'": "'", '\\"': '"'}
ESCAPE = re.compile(r"\\x[0-9a-fA-F]{2}|\\[nrt\\'\"]|[ -\[\]-~]")


# ---- bytes as Python writes them


def read_bytes(written):
    """The bytes that a text as between the quotes of b"…" means, as characters 0 to 255. Raises Refusal."""
    written = re.sub(r"""^b(['"])(.*)\1$""", r"\2", written, flags=re.DOTALL)
    found, at = [], 0
    while at < len(written):
        one = ESCAPE.match(written, at)
        if not one:
            raise Refusal(
                f"Bytes are written as Python writes them, such as \\x80\\x02K\\x05. Not understood: {written[at : at + 8]}"
            )
        letters = one[0]
        found.append(chr(int(letters[2:], 16)) if letters[:2] == "\\x" else ESCAPES.get(letters, letters))
        at = one.end()
    return "".join(found)


# ---- values, of which only what is shown is there


@dataclass
class Value:
    """kind: the name of its class, or "mark", "global", "storage", "object". name: of a global, or of what made an object.
    text: the whole of a string, of which a part is shown. changed: what BUILD has done to it, in words.
    """

    kind: str
    shown: str = ""
    items: list = field(default_factory=list)
    name: str = ""
    text: str = ""
    changed: str = ""


def last_name(name):
    return name.split(".")[-1]


def several(items, depth, pairs=False):
    parts = [words(item, depth) for item in items[: 8 if pairs else 4]]
    if pairs:
        parts = [": ".join(parts[i : i + 2]) for i in range(0, len(parts), 2)]
    return ", ".join(parts) + (", …" if len(items) > (8 if pairs else 4) else "")


def words(value, depth=0):
    """What is shown of a value, the same in both languages."""
    if value.kind == "global":
        return last_name(value.name)
    if value.shown:
        return value.shown
    if depth > 2:
        return "…"
    inside = several(value.items, depth + 1, value.kind in DICTS)
    if value.kind == "object":
        return made(value, depth)
    if value.kind == "list":
        return f"[{inside}]"
    if value.kind == "tuple":
        return f"({inside}{',' if len(value.items) == 1 else ''})"
    if value.kind == "set":
        return f"{{{inside}}}" if value.items else "set()"
    return f"{'' if value.kind == 'dict' else value.kind + ' '}{{{inside}}}{value.changed}"


def made(value, depth):
    """What is shown of the result of a call."""
    args = value.items
    if last_name(value.name) == "_rebuild_tensor_v2" and len(args) > 3 and args[0].kind == "storage":
        return f"tensor {words(args[2], 2)} of {args[0].shown}{value.changed}"
    return f"{last_name(value.name)}({several(args, depth + 1)}){value.changed}"


def cut(words, room=64):
    return words if len(words) <= room else words[: room - 1] + "…"


def class_of(value):
    """How an error names the class of a value."""
    if value.kind == "object":
        return "<class 'torch.Tensor'>" if is_tensor(value) else f"what {last_name(value.name)} has made"
    if value.kind == "storage":
        return "<class 'torch.storage.TypedStorage'>"
    if value.kind == "global":
        return words(value)
    return f"<class '{CLASSES.get(value.kind, value.kind)}'>"


def arguments(value, strict):
    """The arguments of a call: for Python's machine a tuple, for torch.load's whatever one can go over."""
    if value.kind not in (ITERABLE if strict else ("tuple",)):
        fail(f"TypeError: the arguments are not a tuple but {class_of(value)}.")
    return elements(value)


def elements(value):
    """What one gets who goes over a value."""
    if value.kind in ("str", "bytes"):
        return [Value("str", "…")] if value.shown.strip("b'") else []
    return value.items[::2] if value.kind in DICTS else value.items


def is_tensor(value):
    """Whether an object is made by a function or a class of the list that makes tensors, which are not parameters."""
    makes = value.name.startswith("torch._utils._rebuild_") or value.name.endswith("Tensor")
    return value.kind == "object" and value.name in ALLOWED and makes and not is_parameter(value)


def is_parameter(value):
    return value.kind == "object" and value.name in ALLOWED and "arameter" in value.name


def is_true(value):
    """What Python's `if` thinks of a value."""
    if value.kind in NUMERIC:
        return number_of(value) != 0
    if value.kind in ("str", "bytes"):
        return value.text != ""
    return value.kind != "NoneType" and (value.kind not in ITERABLE or len(value.items) > 0)


def length(value):
    """Of a value that can be gone over; None otherwise."""
    if value.kind not in ITERABLE:
        return None
    return len(value.text) if value.kind in ("str", "bytes") else len(elements(value))


def is_empty(value):
    return value.kind in ("tuple", "list", "set") and not value.items


def hashable(value):
    if value.kind == "tuple":
        return all(map(hashable, value.items))
    return value.kind not in ("list", "set", *DICTS)


def number_of(value):
    """What a number is equal to: True is 1, and 1 is 1.0."""
    return value.shown == "True" if value.kind == "bool" else {"int": int, "float": float}[value.kind](value.shown)


def same(one, other):
    """Whether two keys are one to a dictionary."""
    if one is other:
        return True
    if one.kind in NUMERIC and other.kind in NUMERIC:
        return number_of(one) == number_of(other)
    if one.kind != other.kind:
        return False
    if one.kind == "tuple":
        return len(one.items) == len(other.items) and all(map(same, one.items, other.items))
    if one.kind in ("str", "bytes"):
        return one.text == other.text
    return one.kind == "NoneType" or one.kind == "global" and one.name == other.name


def quoted(characters):
    """A text as it is shown: short, and without characters that cannot be seen."""
    letters = [letter_of(c) for c in characters[:40]]
    return f"'{''.join(letters)}{'…' if len(characters) > 40 else ''}'"


def letter_of(c):
    if "\ud800" <= c <= "\udfff":  # half of a character
        return f"\\u{ord(c):04x}"
    return c if " " <= c != "\x7f" else f"\\x{ord(c):02x}"


def number_words(x):
    """A float as Python writes it."""
    return repr(x)


# ---- the machine


class Halt(Exception):
    """The machine stops: the machine's own refusal, or any other error."""

    def __init__(self, sentence, refused=True):
        super().__init__(sentence)
        self.sentence, self.refused = sentence, refused


def fail(sentence):
    raise Halt(sentence, refused=False)


class Machine:
    def __init__(self, data, strict):
        self.data, self.strict = data, strict
        self.at = 0
        self.stack, self.memo, self.touched = [], {}, []
        self.name = self.argument = ""
        self.runs = False  # whether this instruction calls something that is not on the list

    # -- reading

    def take(self, count):
        if self.at + count > len(self.data):
            self.at = len(self.data)
            fail("EOFError: the program breaks off.")
        self.at += count
        return self.data[self.at - count : self.at]

    def unsigned(self, count):
        return int.from_bytes(self.take(count).encode("latin-1"), "little")

    def line(self):
        end = self.data.find("\n", self.at) + 1 or len(self.data)
        return self.take(end - self.at)[:-1]

    # -- the stack

    def top(self):
        if not self.stack or self.stack[-1].kind == "mark":
            fail("IndexError: there is nothing on the stack to take.")
        return self.stack[-1]

    def pop(self):
        self.top()
        return self.stack.pop()

    def last(self, count):
        """The top values, taken from the stack, the deepest first."""
        return [self.pop() for _ in range(count)][::-1]

    def since_mark(self):
        marks = [i for i, value in enumerate(self.stack) if value.kind == "mark"]
        if not marks:
            fail("IndexError: there is no mark on the stack.")
        items = self.stack[marks[-1] + 1 :]
        del self.stack[marks[-1] :]
        return items

    def push(self, value):
        self.stack.append(value)
        return f"Push {cut(words(value))}."

    # -- instructions: each returns its sentence

    def step(self, code):
        if code in CONSTANTS:
            self.name, kind, shown = CONSTANTS[code]
            return self.push(Value(kind, shown))
        if code in EMPTY:
            self.name, kind = EMPTY[code]
            self.push(Value(kind))
            return f"Push an empty {kind}."
        if code in NUMBERS:
            return self.number(*NUMBERS[code])
        if code in TEXTS and (TEXTS[code][3] or not self.strict):
            return self.text(*TEXTS[code][:3])
        if code in MEMO:
            return self.remember(*MEMO[code])
        if code in TUPLES:
            self.name = f"TUPLE{TUPLES[code]}"
            count = TUPLES[code]
            self.push(Value("tuple", items=self.last(count)))
            return (
                f"Make a tuple of the top {count} of the stack."
                if count > 1
                else "Make a tuple of the top of the stack."
            )
        if code in COMMON or not self.strict and code in NEWER:
            self.name, method = (COMMON | NEWER)[code]
            return method(self)
        self.name = f"code {ord(code)}"
        if self.strict:
            raise Halt(f"Unsupported operand {ord(code)}")
        fail("The figure does not know this instruction.")

    def number(self, name, layout):
        self.name = name
        [number] = struct.unpack(layout, self.take(struct.calcsize(layout)).encode("latin-1"))
        real = layout == ">d"
        self.argument = number_words(number) if real else str(number)
        return self.push(Value("float" if real else "int", self.argument))

    def long(self):
        data = self.take(self.unsigned(1))
        self.argument = str(int.from_bytes(data.encode("latin-1"), "little", signed=True))
        said = self.push(Value("int", self.argument))
        old = " With this number begins a file of several pickles, as torch.save wrote them before 1.6."
        return said + old if self.argument == MAGIC_NUMBER else said

    def text(self, name, width, is_text):
        self.name = name
        data = self.take(self.unsigned(width))
        return self.push_text(decoded(data)) if is_text else self.push_text(data, "bytes", "b")

    def push_text(self, text, kind="str", before=""):
        self.argument = before + quoted(text)
        return self.push(Value(kind, self.argument, text=text))

    def remember(self, name, width):
        self.name = name
        place = self.unsigned(width)
        return self.keep(place) if "PUT" in name else self.recall(place)

    def keep(self, place):
        self.argument = str(place)
        self.memo[place] = self.top()
        self.touch(place)
        return f"Keep the top of the stack as memo {place}."

    def recall(self, place):
        self.argument = str(place)
        if place not in self.memo:
            fail(f"KeyError: memo {place} is empty.")
        self.touch(place)
        self.push(self.memo[place])
        return f"Push memo {place} again: {cut(words(self.memo[place]))}."

    def touch(self, place):
        self.touched = [*[p for p in self.touched if p != place][-MEMO_SHOWN:], place]

    def memoize(self):
        return self.keep(len(self.memo))

    def protocol(self):
        self.argument = str(self.unsigned(1))
        if not self.strict and int(self.argument) > 5:
            fail(f"ValueError: unsupported pickle protocol: {self.argument}.")
        return f"The program is of protocol {self.argument}."

    def frame(self):
        self.argument = str(self.unsigned(8))
        return f"The next {self.argument} bytes belong together."

    def mark(self):
        self.stack.append(Value("mark", "mark"))
        return "Put a mark on the stack."

    def tuple(self):
        items = self.since_mark()
        self.push(Value("tuple", items=items))
        return f"Make a tuple of the {counted(len(items))} above the mark."

    def append(self):
        [item] = self.last(1)
        return self.extend([item], "append to")

    def appends(self):
        return self.extend(self.since_mark(), "extend")

    def extend(self, items, what):
        target = self.top()
        if target.kind == "list":
            target.items += items
            return f"Put {counted(len(items))} into the list."
        if self.strict:
            raise Halt(f"Can only {what} lists, but got {class_of(target)}")
        if target.kind != "object":
            fail(f"AttributeError: {class_of(target)} has no append.")
        self.runs = True
        return f"Call the append of {class_of(target)}, whatever it does."

    def add_items(self):
        items, target = self.since_mark(), self.top()
        if target.kind not in ("set", "object"):
            fail(f"AttributeError: {class_of(target)} has no add.")
        target.items += items
        return f"Put {counted(len(items))} into the set."

    def set_item(self):
        return self.set("SETITEM", self.last(2))

    def set_items(self):
        return self.set("SETITEMS", self.since_mark())

    def set(self, name, items):
        target = self.top()
        if target.kind not in DICTS and self.strict:
            raise Halt(
                f"Can only {name} for dict, collections.OrderedDict, collections.Counter, but got {class_of(target)}"
            )
        if len(items) % 2:
            fail("IndexError: a key has no value.")
        if target.kind not in DICTS:
            if items and target.kind not in ("object", "storage"):
                fail(f"TypeError: {class_of(target)} takes no items here.")
            self.runs = len(items) > 0
            return f"Call the __setitem__ of {class_of(target)}, whatever it does."
        put_all(target.items, items)
        return f"Put {counted(len(items) // 2, 'item')} into the dictionary."

    def fetch(self):
        module, name = self.line(), self.line()
        return self.fetched(decoded(module), decoded(name))

    def stack_global(self):
        module, name = self.last(2)
        if module.kind != "str" or name.kind != "str":
            fail("STACK_GLOBAL needs two texts.")
        return self.fetched(module.text, name.text)

    def fetched(self, module, name):
        module = {"__builtin__": "builtins", "copy_reg": "copyreg"}.get(module, module)
        full = f"{module}.{name}"
        self.argument = full
        if self.strict:
            if module in NEVER:
                raise Halt(f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked.")
            if full not in ALLOWED:
                raise Halt(
                    f"Unsupported global: GLOBAL {full.removeprefix('builtins.')} was not an allowed global by default."
                )
        self.stack.append(Value("global", name=full))
        return f"{full} is on the list: push it." if self.strict else f"Import {module}, and push its {name}."

    def reduce(self):
        [args] = self.last(1)
        function = self.top()
        if function.kind != "global":
            if self.strict:
                raise Halt(f"Trying to call reduce for unrecognized function {cut(words(function))}")
            fail(f"TypeError: {class_of(function)} cannot be called.")
        items = arguments(args, self.strict)
        check_call(function.name, items)
        self.stack.pop()
        return self.called(function.name, items)

    def called(self, name, args):
        if name in CLASSES.values():
            known = args and args[0].kind in DICTS
            self.stack.append(Value(last_name(name), items=args[0].items[:] if known else []))
        elif name == "builtins.set":
            self.stack.append(Value("set", items=elements(args[0])[:] if args else []))
        else:
            self.stack.append(Value("object", items=args, name=name))
        self.runs = name not in ALLOWED
        with_args = cut(f"({several(args, 1)})")
        return f"Call {name} with {with_args}" + (": it runs, whatever it does." if self.runs else ".")

    def new_object(self):
        [args] = self.last(1)
        [made_of] = self.last(1)
        if made_of.kind != "global":
            if self.strict:
                raise Halt(
                    "Can only create new object for nn.Parameter or classes allowlisted via "
                    f"`add_safe_globals` but got {cut(words(made_of))}"
                )
            fail(f"TypeError: {class_of(made_of)} is not a class.")
        if made_of.name in ALLOWED and not is_class(made_of.name):
            fail(f"TypeError: {made_of.name} is not a class.")
        items = arguments(args, self.strict)
        self.called(made_of.name, [] if made_of.name in (*CLASSES.values(), "builtins.set") else items)
        return f"Make a {made_of.name} without calling its __init__."

    def build(self):
        [state] = self.last(1)
        instance = self.top()
        if self.strict and instance.kind not in ("OrderedDict", "Counter", "set", "object", "storage"):
            raise Halt(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via "
                f"`add_safe_globals`, but got {class_of(instance)}"
            )
        if is_tensor(instance) or is_parameter(instance):
            return build_tensor(instance, state, "set_" if self.strict and is_tensor(instance) else "__setstate__")
        self.runs = instance.kind == "object" and instance.name not in ALLOWED
        if instance.kind != "object":
            check_state(instance, state, self.strict)
        if not self.runs and not is_true(state):
            return "There are no attributes to set."
        instance.changed = " with attributes"
        how = "Call its __setstate__, or set attributes" if self.runs else "Set attributes"
        return f"{how}: {cut(words(state))}."

    def persistent(self):
        [pid] = self.last(1)
        if self.strict and pid.kind not in ("tuple", "int"):
            raise Halt(f"persistent_load id must be tuple or int, but got {class_of(pid)}")
        first = pid.items[0] if pid.kind == "tuple" and pid.items else None
        if self.strict and first and first.shown != "'storage'":
            raise Halt(f"Only persistent_load of storage is allowed, but got {class_of(first)}")
        if pid.kind != "tuple" or len(pid.items) != 5:
            fail("The reader expects ('storage', type, key, location, number of elements).")
        _, kind, key, _, count = map(words, pid.items)
        name = kind.removesuffix("Storage").lower()
        self.stack.append(Value("storage", f"storage {key} ({count} {name})"))
        return f"Ask the reader for the object that is meant: storage {key}."

    def drop(self):
        if self.stack and self.stack[-1].kind == "mark":
            self.stack.pop()
            return "Take the mark off the stack."
        self.last(1)
        return "Take the top off the stack."

    def drop_to_mark(self):
        self.since_mark()
        return "Take everything above the mark off the stack."

    def double(self):
        return self.push(self.top())

    # -- of protocol 0, where operands are lines of text

    def integer_line(self):
        line = self.line()
        if line not in ("00", "01"):
            return self.whole(line)
        self.argument = str(line == "01")
        return self.push(Value("bool", self.argument))

    def long_line(self):
        return self.whole(self.line().removesuffix("L"))

    def whole(self, line):
        found = WHOLE.fullmatch(line)
        if not found or len(line) > LONGEST_NUMBER:
            fail("ValueError: this is not a whole number.")
        self.argument = str(int(found[1] + found[2], 0))
        return self.push(Value("int", self.argument))

    def float_line(self):
        line = self.line()
        if not REAL.fullmatch(line):
            fail("ValueError: this is not a number.")
        number = float(line)
        if number in (math.inf, -math.inf) and "inf" not in line.lower():
            fail("OverflowError: the number is too large for a float.")
        self.argument = number_words(number)
        return self.push(Value("float", self.argument))

    def string_line(self):
        line = self.line()
        if len(line) < 2 or line[0] != line[-1] or line[0] not in "'\"":
            fail("The text of STRING must stand in quotes.")
        return self.push_text(decoded(unescaped(line[1:-1])))

    def unicode_line(self):
        try:
            return self.push_text(self.line().encode("latin-1").decode("raw-unicode-escape"))
        except UnicodeDecodeError:
            fail("UnicodeDecodeError: there is no such character.")

    def dict_line(self):
        items, found = self.since_mark(), []
        if len(items) % 2:
            fail("IndexError: a key has no value.")
        put_all(found, items)
        self.push(Value("dict", items=found))
        return f"Make a dictionary of the {counted(len(items))} above the mark."

    def list_line(self):
        items = self.since_mark()
        self.push(Value("list", items=items))
        return f"Make a list of the {counted(len(items))} above the mark."

    def place(self):
        line = self.line()
        if not PLACE.fullmatch(line):
            fail("ValueError: this is not a memo's number.")
        return int(line)

    def put_line(self):
        place = self.place()
        if place < 0:
            fail("ValueError: a memo's number is negative.")
        return self.keep(place)

    def get_line(self):
        return self.recall(self.place())

    def instance(self):
        module, name = self.line(), self.line()
        self.fetched(decoded(module), decoded(name))
        called = self.stack.pop()
        return self.instantiate(called, self.since_mark())

    def object(self):
        items = self.since_mark()
        if not items:
            fail("IndexError: there is nothing to call.")
        return self.instantiate(items[0], items[1:])

    def instantiate(self, called, items):
        if called.kind != "global":
            fail(f"TypeError: {class_of(called)} cannot be called.")
        check_call(called.name, items)
        return self.called(called.name, items)

    # -- running

    def behind(self):
        """What is said of the bytes behind STOP."""
        rest = len(self.data) - self.at
        return f" The program ends here; {counted(rest, 'byte')} behind it belong to something else." if rest else ""

    def run(self):
        """All steps up to the end, or to where the machine stops, and their sentences."""
        steps, say = [], []
        while len(steps) < MOST_STEPS:
            start, self.name, self.argument, self.runs = self.at, "", "", False
            state = "ok"
            try:
                code = self.take(1)
                if code == ".":
                    self.name, state = "STOP", "done"
                    sentence = f"Done. The result is {cut(words(self.pop()), 200)}.{self.behind()}"
                else:
                    sentence = self.step(code)
            except Halt as halt:
                state = "refused" if halt.refused else "error"
                sentence = f"Refused. {halt.sentence}" if halt.refused else halt.sentence
            if self.runs:
                state = "runs"
            if state == "done" and any(step["state"] == "runs" for step in steps):
                sentence += " Python has run what is marked; here nothing ran."
            steps.append(self.seen(start, state))
            title = " ".join(word for word in (self.name, self.argument) if word)
            say.append(f"Byte {start:,}, {title}: {sentence}" if title else f"Byte {start:,}: {sentence}")
            if state in ("done", "refused", "error"):
                return steps, say
        say[-1] += f" The figure shows no more than {MOST_STEPS:,} instructions."
        return steps, say

    def seen(self, start, state):
        """What is drawn of this step."""
        return {
            "at": start,
            "end": self.at,
            "name": self.name,
            "argument": cut(self.argument, 80),
            "state": state,
            "stack": [
                {"mark": value.kind == "mark", "words": cut(words(value))} for value in self.stack[-STACK_SHOWN:]
            ],
            "deeper": max(0, len(self.stack) - STACK_SHOWN),
            "memo": [[place, cut(words(self.memo[place]), 40)] for place in sorted(self.touched[-MEMO_SHOWN:])],
            "kept": len(self.memo),
        }


COMMON = {
    "\x8a": ("LONG1", Machine.long),
    "\x80": ("PROTO", Machine.protocol),
    "(": ("MARK", Machine.mark),
    "t": ("TUPLE", Machine.tuple),
    "a": ("APPEND", Machine.append),
    "e": ("APPENDS", Machine.appends),
    "s": ("SETITEM", Machine.set_item),
    "u": ("SETITEMS", Machine.set_items),
    "c": ("GLOBAL", Machine.fetch),
    "R": ("REDUCE", Machine.reduce),
    "\x81": ("NEWOBJ", Machine.new_object),
    "b": ("BUILD", Machine.build),
    "Q": ("BINPERSID", Machine.persistent),
}
NEWER = {  # of later protocols, and old ones that no checkpoint has: Python's machine alone knows them
    "\x95": ("FRAME", Machine.frame),
    "\x93": ("STACK_GLOBAL", Machine.stack_global),
    "\x94": ("MEMOIZE", Machine.memoize),
    "\x90": ("ADDITEMS", Machine.add_items),
    "0": ("POP", Machine.drop),
    "1": ("POP_MARK", Machine.drop_to_mark),
    "2": ("DUP", Machine.double),
    "I": ("INT", Machine.integer_line),
    "L": ("LONG", Machine.long_line),
    "F": ("FLOAT", Machine.float_line),
    "S": ("STRING", Machine.string_line),
    "V": ("UNICODE", Machine.unicode_line),
    "d": ("DICT", Machine.dict_line),
    "l": ("LIST", Machine.list_line),
    "p": ("PUT", Machine.put_line),
    "g": ("GET", Machine.get_line),
    "i": ("INST", Machine.instance),
    "o": ("OBJ", Machine.object),
}


def unrun(data, start):
    """The instructions behind the one at `start`, at which a machine has stopped: read, and not run.

    A machine that refuses nothing reads their operands; that its stack has not what they would take is left unsaid.
    """
    reader, found = Machine(data, strict=False), []
    reader.at = start
    while len(found) <= UNRUN_SHOWN:
        at, reader.name, reader.argument = reader.at, "", ""
        try:
            code = reader.take(1)
            if code == ".":
                return [*found, {"at": at, "name": "STOP", "argument": ""}][1:]
            reader.step(code)
        except Halt as halt:
            if halt.sentence.startswith("EOFError") or reader.name.startswith("code "):
                break
        found.append({"at": at, "name": reader.name, "argument": cut(reader.argument, 80)})
    return found[1:]


# ---- BUILD


def build_tensor(instance, state, method):
    """A tensor's own method gets the state: in torch.load's machine `set_`, if it is no parameter."""
    if method == "set_":
        items = elements(state) if state.kind in ITERABLE else None
        fits = items is not None and len(items) in (0, 1, 3, 4)
    else:  # three are requires_grad, something unused and hooks, four for `set_`, five for a parameter
        items = state.items
        fits = state.kind in ("tuple", "list") and len(items) in (3, 4, 5)
    begins = {3: ("bool",), 5: ("object",)} if method != "set_" else {}
    if not fits or items and items[0].kind not in begins.get(len(items), ("storage", "object")):
        fail(f"TypeError: {method} of a tensor does not take {cut(words(state))}.")
    instance.changed = f" after {method}"
    return f"Call {method} of the tensor with {cut(f'({several(items, 1)})')}."


def check_state(instance, state, strict):
    """Whether attributes can be set so: by Python's machine from dictionaries alone, by torch.load's also from pairs."""
    slots = None
    if state.kind == "tuple" and len(state.items) == 2 and not (strict and instance.kind == "OrderedDict"):
        state, slots = state.items
    if strict:
        wanted = instance.kind == "OrderedDict" or is_true(state)
        check = check_update
    else:
        wanted, check = state.kind != "NoneType", check_dictionary
    if wanted:
        check(state)
    if slots and (is_true(slots) or not strict):
        check_dictionary(slots)
        if any(key.kind != "str" for key in elements(slots)):
            fail("TypeError: attribute name must be string.")
    if instance.kind not in ("OrderedDict", "Counter", "storage") and (wanted or slots and is_true(slots)):
        fail(f"AttributeError: {class_of(instance)} takes no attributes.")


def check_dictionary(state):
    if state.kind not in (*DICTS, "object"):
        fail(f"UnpicklingError: state is not a dictionary, but {cut(words(state))}.")


def check_update(state):
    """Whether a dictionary can be updated with it."""
    if state.kind in (*DICTS, "object"):
        return
    if state.kind not in ITERABLE:
        fail(f"TypeError: {class_of(state)} is not iterable.")
    pairs = state.kind not in ("str", "bytes") or not state.text
    if not pairs or not all(item.kind in ("object", "storage") or length(item) == 2 for item in state.items):
        fail(f"TypeError: attributes are set from a dictionary, or from pairs, not from {cut(words(state))}.")
    if not all(hashable(elements(item)[0]) for item in state.items if length(item)):
        fail("TypeError: unhashable type.")


def decoded(characters):
    try:
        return characters.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        fail("UnicodeDecodeError: this is not UTF-8.")


def counted(n, word="value"):
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def put(items, key, value):
    """Into keys and values in turn; a key that is there gets the new value."""
    if not hashable(key):
        fail(f"TypeError: unhashable type: '{key.kind}'.")
    for i in range(0, len(items), 2):
        if same(items[i], key):
            items[i + 1] = value
            return
    items += [key, value]


def put_all(target, items):
    for i in range(0, len(items), 2):
        put(target, items[i], items[i + 1])


def unescaped(letters):
    """A text with its backslashes read, as between Python's quotes."""
    if BACKSLASH.sub("", letters).endswith("\\"):
        fail("ValueError: a backslash stands at the end.")
    return BACKSLASH.sub(lambda found: escaped_letter(found[1]), letters)


def escaped_letter(after):
    if after == "x":
        fail("ValueError: two hexadecimal digits must follow.")
    if after[0] == "x":
        return chr(int(after[1:], 16))
    return chr(int(after, 8) & 255) if after[0] in "01234567" else LETTERS.get(after, "\\" + after)


def is_class(name):
    """Whether a name of the list is that of a class."""
    return (
        not NOT_CALLED.fullmatch(name) and last_name(name) not in ("encode", "_get_layout") and "_rebuild" not in name
    )


def check_call(name, items):
    """Whether something of this name can be called with so many arguments."""
    if NOT_CALLED.fullmatch(name) and name in ALLOWED:
        fail(f"TypeError: {name} cannot be called.")
    if name in CLASSES.values() and (len(items) > 1 or items and not (items[0].kind in DICTS or is_empty(items[0]))):
        fail(f"TypeError: {name} takes one dictionary.")
    least, most = ARGUMENTS.get(name, (0, len(items)))
    if not least <= len(items) <= most:
        some = {0: f"{most}", 1: f"{least} or {most}"}.get(most - least, f"{least} to {most}")
        fail(f"TypeError: {last_name(name)} takes {some} argument{'' if some == '1' else 's'}, not {len(items)}.")
    if name in ON_STORAGES and items[0].kind != "storage":
        fail(f"TypeError: {last_name(name)} begins with a storage, not with {cut(words(items[0]))}.")
    if name == "builtins.set" and items and not (items[0].kind in ITERABLE and all(map(hashable, elements(items[0])))):
        fail("TypeError: a set cannot be made of this.")


def model(inputs):
    written = inputs["bytes"] if inputs["program"] == "own" else PROGRAMS[inputs["program"]]
    data = read_bytes(written)
    if not data:
        raise Refusal("There are no bytes. Write some, or drop a file here.")
    steps, say = Machine(data, inputs["reader"] == "weights").run()
    last = steps[-1]
    behind = unrun(data, last["at"]) if last["state"] in ("refused", "error") else []
    return {"written": written, "bytes": [ord(c) for c in data], "steps": steps, "unrun": behind, "say": say}


def picture(result, step):
    """The instructions around this step, and the stack behind it."""
    steps = result["steps"]
    first = max(0, step - 6)
    parts = [text("instruction", 10, 16, "dim"), text("stack after it, the top last", 330, 16, "dim")]
    for row, one in enumerate([*steps, *result["unrun"]][first : first + 9]):
        number = first + row
        kind = "pick" if number == step else "plain" if number < len(steps) else "free"
        parts.append(box(6, 24 + 24 * row, 310, 20, kind, f"{one['at']:4} {one['name']} {one['argument']}"[:40]))
    for row, value in enumerate(steps[step]["stack"]):
        parts.append(box(326, 24 + 24 * row, 440, 20, "free" if value["mark"] else "pale", value["words"]))
    return drawing(772, 36 + 24 * 9, *parts)


PIECES = [
    "N", r"\x88", "K\\x05", "M\\x01\\x02", r"G@\x00\x00\x00\x00\x00\x00\x00", r"X\x01\x00\x00\x00w", r"\x8a\x02\x00\xff", "]", "}", ")", r"\x8f",
    "(", "(", "t", "e", "u", "a", "s", r"\x85", r"\x86", r"\x87", r"q\x00", r"q\x01", r"h\x00", r"h\x01", "R", "b", r"\x81", "Q",
    r"ccollections\nOrderedDict\n", r"ctorch._utils\n_rebuild_tensor_v2\n", r"ctorch\nFloatStorage\n", r"cos\nsystem\n", r"ctrain\nConfig\n", r"X\x07\x00\x00\x00storage",
    r"cbuiltins\nset\n", r"ctorch\nfloat32\n", r"(NNNNNNt", "K\\x01", r"G?\xf0\x00\x00\x00\x00\x00\x00",
    r"U\x02ab", "0", "2", "1", r"\x94", r"\x8c\x01x", "Z", r"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x02tQ",
    r"ccollections\nOrderedDict\n)R", r"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x02tQK\x00K\x02\x85K\x01\x85\x89NtR",
]  # fmt: skip


OLD_PIECES = [
    r"S'id'\n", r'S"a\\x41\\101\\n\\q"\n', r"S'a\n", r"I01\n", "I-7\\n", r"I0x1f\n", "I09\\n", r"L12345678901234567890L\n", r"F1.50\n", r"F1e400\n", r"Fx\n",
    r"V\\u20acuro\xe9\n", r"V\\u20\n", "d", "l", r"p1\n", r"p-1\n", r"g1\n", r"g01\n", r"ios\nsystem\n", r"(icollections\nOrderedDict\n", "o", r"(cos\nsystem\no", r"\x93",
]  # fmt: skip


def sample(random):
    """Programs of random instructions, and the ready ones with a piece exchanged."""
    known = PIECES if random.random() < 0.7 else PIECES + OLD_PIECES
    pieces = [random.choice(known) for _ in range(random.randrange(1, 14))]
    own = r"\x80\x02" + "".join(pieces) + random.choice([".", ".", ".", ""])
    if random.random() < 0.3:
        ready = PROGRAMS[random.choice(list(PROGRAMS))]
        parts = ESCAPE.findall(ready)
        at = random.randrange(len(parts))
        own = "".join([*parts[:at], random.choice(PIECES), *parts[at + random.randrange(3) :]])
    return {"program": random.choice(["own"] * 8 + list(NAMES)), "bytes": own}


FIGURE = Figure(
    name="pickle_machine",
    title="A machine that runs a pickle",
    inputs=(
        Choice("program", "program", "linear", options=NAMES),
        Choice(
            "reader",
            "read by",
            "weights",
            options={"weights": "torch.load(f)", "all": "torch.load(f, weights_only=False)"},
        ),
        Text("bytes", "bytes", r"\x80\x02]K\x01a.", longest=LONGEST, hidden=True, undone=True, only=("program", "own")),
    ),
    model=model,
    picture=picture,
    sample=sample,
    helpers=("models/pickle_names", "_checkpoint_file"),
)
