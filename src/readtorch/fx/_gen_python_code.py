"""One writing of a graph as Python code: a line for a node. In PyTorch: `torch/fx/graph.py`, `CodeGen._gen_python_code`.

What a node of each kind is written as:

    call_function   relu = torch.relu(x)            add = x + y            x[0] = y;  setitem = x
    call_method     view = x.view(2, 3)
    call_module     linear = self.linear(x)
    get_attr        weight = self.linear.weight
    output          return add

followed by the names that have their last use in it: `;  x = None`. In front of each line stands a line with the number of its
node, `# COUNTER: 3`, from which errors find the node; `CodeGen` takes these lines out again.
"""

import enum
import inspect
import re
import types
import typing

import readtorch
from readtorch._ops import HigherOrderOperator, OpOverload
from readtorch.c10.module_names import room_of
from readtorch.c10.sym_int import SYM_TYPES
from readtorch.utils._dtype_abbrs import dtype_abbrs

from .node import Node, _get_qualified_name, _type_repr

_counter_regexp = re.compile(r"# COUNTER: (\d+)")

reflectable_magic_methods = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "floordiv": "{} // {}",
    "truediv": "{} / {}",
    "div": "{} / {}",
    "mod": "{} % {}",
    "pow": "{} ** {}",
    "lshift": "{} << {}",
    "rshift": "{} >> {}",
    "and_": "{} & {}",
    "or_": "{} | {}",
    "xor": "{} ^ {}",
    "getitem": "{}[{}]",
    "matmul": "{} @ {}",
}

magic_methods = {
    "eq": "{} == {}",
    "ne": "{} != {}",
    "lt": "{} < {}",
    "gt": "{} > {}",
    "le": "{} <= {}",
    "ge": "{} >= {}",
    "pos": "+{}",
    "neg": "-{}",
    "invert": "~{}",
    **reflectable_magic_methods,
}

inplace_methods = {
    "iadd": "{} += {}",
    "iand": "{} &= {}",
    "ifloordiv": "{} //= {}",
    "ilshift": "{} <<= {}",
    "imod": "{} %= {}",
    "imul": "{} *= {}",
    "imatmul": "{} @= {}",
    "ior": "{} |= {}",
    "ipow": "{} **= {}",
    "irshift": "{} >>= {}",
    "isub": "{} -= {}",
    "itruediv": "{} /= {}",
    "ixor": "{} ^= {}",
    "setitem": "{}[{}] = {}",
}

# The generic types that annotations of the old kind mean: typing.List[int] is written List[int].
_origin_type_map = {
    list: typing.List,  # noqa: UP006
    dict: typing.Dict,  # noqa: UP006
    set: typing.Set,  # noqa: UP006
    frozenset: typing.FrozenSet,  # noqa: UP006
    tuple: typing.Tuple,  # noqa: UP006
}

_color_codes = {
    "blue": "\033[34m",
    "red": "\033[31m",
    "dim": "\033[2m",
    "dim_blue": "\033[2m\033[34m",
    "dim_green": "\033[2m\033[32m",
}


def _is_from_torch(obj):
    """Whether code reaches an object through `torch`. Modules have names of their own there."""
    if isinstance(obj, types.ModuleType):
        return False
    module = getattr(obj, "__module__", None)
    if module is not None:
        room = room_of(module) if isinstance(module, str) else None
        return room is not None and not room.startswith(("_dynamo.", "_inductor."))
    name = getattr(obj, "__name__", None)
    return name is not None and any(getattr(guess, name, None) is obj for guess in (readtorch, readtorch.nn.functional))


def _format_target(base, target):
    """base.a.b, and getattr(base.a, "0") where Python has no such syntax."""
    for atom in target.split("."):
        base = f"{base}.{atom}" if atom.isidentifier() else f'getattr({base}, "{atom}")'
    return base


class _CodeWriter:
    """Writes a list of nodes. What it has found on the way: the function's parameters (`free_vars`), the globals that it needs,
    and its return annotation.
    """

    def __init__(self, codegen, root_module, namespace, **options):
        self.codegen = codegen
        self.root_module = root_module
        self.namespace = namespace
        self.verbose = options.pop("verbose", False)
        self.options = options
        self.free_vars = []
        self.body = []
        self.globals = {}
        self.return_annotation = ""
        self._wrapped = {}  # names of functions that a trace of this code must keep as calls
        self._last_summary = None

    def write(self, nodes):
        """The lines of the body, a list of pieces of text."""
        last_uses = _last_uses(nodes)
        for i, node in enumerate(nodes):
            if self.verbose:
                self._write_origin(node)
            self.body.append(f"# COUNTER: {i}\n")
            getattr(self, f"_write_{node.op}")(node, f"{node!r}{self._annotation(node)}")
            self._delete_unused_values(node, last_uses.get(node, []))
        return self.body or ["pass\n"]

    def wrap_statements(self):
        """What stands above the function: `wrap("my_function")`."""
        if not self._wrapped:
            return ""
        name = self.add_global("wrap", readtorch.fx.wrap)
        return "\n".join(f'{name}("{function}")' for function in self._wrapped)

    def call_with_known_options(self, method, *args, **options):
        """Call a method of the CodeGen with those of our options that it has parameters for: older subclasses have none."""
        options = {"expanded_def": self.options.get("expanded_def", False), **options}
        known = inspect.signature(method).parameters
        return method(*args, **{name: value for name, value in options.items() if name in known})

    # ------------------------------------------------------------------------------------------------------ names

    def add_global(self, name_hint, obj):
        """The name that the code has for an object."""
        if _is_from_torch(obj) and obj != readtorch.device:
            return _get_qualified_name(obj)
        name = self.namespace.create_name(name_hint, obj)
        known = self.globals.setdefault(name, obj)
        if known is not obj and known != obj:
            raise AssertionError(f"Global name {name} already assigned to different object")
        return name

    def _type(self, o):
        """A type as an annotation writes it."""
        if o == ():
            return "()"
        typename = _type_repr(o)
        if isinstance(o, types.UnionType) and "|" in typename:
            return "|".join(self._type(argument) for argument in typing.get_args(o))
        origin = getattr(o, "__origin__", None)
        if not origin:
            return self.add_global(typename, o)
        if isinstance(o, typing._GenericAlias):
            origin = _origin_type_map.get(origin, origin)
        name = self.add_global(_type_repr(origin), origin)
        arguments = ",".join(self._type(argument) for argument in typing.get_args(o))
        return f"{name}[{arguments}]" if arguments else name

    # -------------------------------------------------------------------------------------------------- arguments

    def _color(self, name, text):
        return f"{_color_codes[name]}{text}\033[0m" if self.options.get("colored") else text

    def _value(self, arg):
        """An argument as code."""
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple):
            return self._tuple(arg)
        if isinstance(arg, list):
            return f"[{', '.join(map(self._value, arg))}]"
        if isinstance(arg, slice):
            return f"slice({self._value(arg.start)}, {self._value(arg.stop)}, {self._value(arg.step)})"
        if isinstance(arg, (OpOverload, HigherOrderOperator)):
            return self.add_global(_get_qualified_name(arg), arg)
        if isinstance(arg, enum.Enum):
            return f"{self.add_global(type(arg).__name__, type(arg))}.{arg.name}"
        if isinstance(arg, readtorch.Tensor):
            return f"torch.Tensor(size={list(arg.size())}, dtype={str(arg.dtype).split('.')[-1]})"
        return self._color("blue", repr(arg))

    def _tuple(self, arg):
        if hasattr(arg, "_fields"):
            return f"{self.add_global(_get_qualified_name(type(arg)), type(arg))}{tuple(arg)!r}"
        return f"({self._value(arg[0])},)" if len(arg) == 1 else f"({', '.join(map(self._value, arg))})"

    def _call(self, function, args, kwargs):
        given = [*map(self._value, args), *(f"{name} = {self._value(value)}" for name, value in kwargs.items())]
        return f"{function}({', '.join(given)})"

    # ------------------------------------------------------------------------------------------------------ nodes

    def _write_placeholder(self, node, left):
        default = f" = {self._value(node.args[0])}" if node.args else ""
        desc = node.meta.get("desc") if self.options.get("expanded_def") else None
        comment = "" if desc is None else f"  # {desc}"
        self.free_vars.append(f"{node.target}{self._annotation(node)}{default}{comment}")
        raw_name = node.target.replace("*", "")
        if raw_name != repr(node):
            self.body.append(f"{node!r} = {raw_name}\n")

    def _write_call_method(self, node, left):
        method = _format_target(self._value(node.args[0]), node.target)
        self.body.append(f"{left} = {self._call(method, node.args[1:], node.kwargs)}")

    def _write_call_function(self, node, left):
        target = node.target
        operator = target.__name__ if getattr(target, "__module__", "") == "_operator" else None
        if operator in magic_methods:
            self.body.append(f"{left} = {magic_methods[operator].format(*map(self._value, node.args))}")
            return
        if operator in inplace_methods:
            statement = inplace_methods[operator].format(*map(self._value, node.args))
            self.body.append(f"{statement};  {left} = {self._value(node.args[0])}")
            return
        name = self.add_global(_get_qualified_name(target), target)
        if name == "getattr" and _is_plain_getattr(node.args):
            self.body.append(f"{left} = {_format_target(self._value(node.args[0]), node.args[1])}")
            return
        self.body.append(f"{left} = {self._call(name, node.args, node.kwargs)}")
        if node.meta.get("is_wrapped", False):
            self._wrapped.setdefault(name)

    def _write_call_module(self, node, left):
        module = _format_target(self.root_module, node.target)
        self.body.append(f"{left} = {self._call(module, node.args, node.kwargs)}")

    def _write_get_attr(self, node, left):
        self.body.append(f"{left} = {_format_target(self.root_module, node.target)}")

    def _write_output(self, node, left):
        if node.type is not None:
            self.return_annotation = f" -> {self._type(node.type)}"
        descs = node.meta.get("desc") if self.options.get("expanded_def") else None
        options = {"descs": descs, "repr_fn": self._value}
        self.body.append(self.call_with_known_options(self.codegen.generate_output, node.args[0], **options))

    def _delete_unused_values(self, node, last_used):
        """Let go of what has its last use in this line."""
        if node.op == "placeholder":
            return
        if node.op == "output":
            self.body.append("\n")
            return
        unused = [*last_used, *([] if node.users else [node])]
        deletion = " = ".join([*map(repr, unused), "None"])
        self.body.append(f";  {self._color('dim', deletion)}\n" if unused else "\n")

    # -------------------------------------------------------------------------------------------------- what is known

    def _annotation(self, node):
        """The type that a node is annotated with; `verbose` shows what a pass has noted of its value: `: "f32[2, 3]"`."""
        plain = "" if node.type is None else f" : {self._type(node.type)}"
        return (self._noted(node.meta) if self.verbose else "") or plain

    def _noted(self, meta):
        value = meta.get("val", meta.get("tensor_meta", meta.get("example_value")))
        if "memory_format" in getattr(value, "_fields", ()):  # the TensorMetadata of ShapeProp
            return f': "{dtype_abbrs[value.dtype]}{list(value.shape)}"'
        if isinstance(value, SYM_TYPES):
            return f': "Sym({value})"'
        if not isinstance(value, readtorch.Tensor):
            return ""
        stride = str(list(value.stride())) if self.options.get("include_stride") else ""
        device = str(value.device) if self.options.get("include_device") else ""
        core = self._color("red", dtype_abbrs[value.dtype]) + self._color("blue", str(list(value.shape)))
        core += self._color("dim_blue", stride) + self._color("dim_green", device)
        is_plain = type(value) is readtorch.Tensor or type(value).__name__ == "FakeTensor"
        return f': "{core}"' if is_plain else f': "{type(value).__name__}({core})"'

    def _write_origin(self, node):
        """A comment with the line of the program that a node was recorded from, unless it is that of the node before."""
        if node.op in ("placeholder", "output"):
            return
        found = _parse_stack_trace(node.stack_trace) if node.stack_trace else None
        trace = found.get_summary_str() if found else "No stacktrace found for following nodes"
        notes = [f"{key}: {node.meta[key]}" for key in self.options.get("additional_meta") or () if key in node.meta]
        noted = f"# {', '.join(notes)} " if notes else ""
        comment = f"{noted}#{_annotations_of_program(node)} {trace}"
        summary = f"\n{self._color('dim', comment)}\n"
        if summary != self._last_summary:
            self._last_summary = summary
            self.body.append(summary)


def _is_plain_getattr(args):
    """Whether getattr(*args) can be written as x.name."""
    return isinstance(args, tuple) and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier()


def _last_uses(nodes):
    """node -> the nodes that have their last use in it"""
    found, seen = {}, set()
    for node in reversed(nodes):
        for used in node._input_nodes:
            if used not in seen:
                seen.add(used)
                found.setdefault(node, []).append(used)
    return found


def _annotations_of_program(node):
    """What the program said of a node by `torch.fx.traceback.annotate`."""
    custom = node.meta.get("custom")
    if not custom:
        return ""
    shown = {k: v if len(str(v)) <= 40 else f"{str(v)[:40]}..." for k, v in custom.items()}
    return f" Annotation: {shown}"


class _ParsedStackTrace(typing.NamedTuple):
    file: str
    lineno: str
    name: str
    code: str

    def get_summary_str(self):
        return f"File: {self.file}:{self.lineno} in {self.name}, code: {self.code}"


def _parse_stack_trace(stack_trace, filter_fn=None):
    """The innermost frame of the text of a stack, if filter_fn(file, name, code) accepts it; None if there is none."""
    if stack_trace is None:
        return None
    lines = [line.strip() for line in stack_trace.strip().split("\n")]
    for i in reversed(range(len(lines) - 1)):
        frame = re.match(r'^File "(.+)", line (\d+), in (.+)$', lines[i])
        if frame and (filter_fn is None or filter_fn(frame[1], frame[3], lines[i + 1])):
            return _ParsedStackTrace(*frame.groups(), lines[i + 1])
    return None
