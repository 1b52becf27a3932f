"""Written in the chapter "From a schema to code": its cells are this file, put together by `tools/mini.py`."""

import re
from dataclasses import dataclass

from .tensor_impl import Tensor

BASES = """Tensor Scalar int float bool str SymInt SymBool Layout
ScalarType Device DeviceIndex Generator MemoryFormat QScheme
Storage Stream DimVector GraphModule""".split()
ALIAS = r"[a-z](\|[a-z])*!?( -> (\*|[a-z](\|[a-z])*))?"


def refuse_if(wrong, sentence):
    if wrong:
        raise ValueError(sentence)


@dataclass(frozen=True)
class Argument:
    """`Tensor(a!) self` or `Scalar alpha=1`; or a return."""

    type: str
    alias: str
    name: str
    default: str = ""
    keyword: bool = False

    def __str__(self):
        alias = "Tensor" + f"({self.alias})" * bool(self.alias)
        name = f" {self.name}" * bool(self.name)
        default = f"={self.default}" * bool(self.default)
        kind = self.type.replace("Tensor", alias)
        return kind + name + default


def parse_type(text):
    """`Tensor(a!)?` is the type `Tensor?` and the alias `a!`."""
    alias, match = "", re.match(r"Tensor\((.+)\)(.*)", text)
    if match:
        alias, rest = match.groups()
        refuse_if(rest not in ("", "?", "[]"),
                  "unrecognized alias analysis form "
                  f"with Tensor: {rest}")
        refuse_if(not re.fullmatch(ALIAS, alias),
                  f"unrecognized alias annotation {alias}")
        text = "Tensor" + rest
    base = re.sub(r"(?<=.)(\?|\[[0-9]*\])+$", "", text)
    refuse_if(base not in BASES, f"unrecognized type {base}")
    return text, alias


def parse_argument(text, keyword=False):
    refuse_if(" " not in text, f"illegal argument '{text}'")
    declared, _, default = text.partition("=")
    refuse_if("=" in default, "illegal argument with default "
              f"value: '{text}'")
    kind, _, name = declared.rpartition(" ")
    return Argument(*parse_type(kind), name, default, keyword)


def parse_return(text):
    kind, _, name = text.rpartition(" ")
    if not kind:
        kind, name = name, ""
    return Argument(*parse_type(kind), name)


def starred(arguments, parts):
    """The parts, with a * before the first keyword's."""
    words = [a.keyword for a in arguments]
    at = words.index(True) if True in words else len(words)
    star = ["*"] * any(words)
    return ", ".join([*parts[:at], *star, *parts[at:]])


@dataclass(frozen=True)
class Schema:
    """One overload of one operator."""

    name: str
    overload: str
    arguments: tuple
    returns: tuple

    @property
    def full_name(self):
        dot = "." * bool(self.overload)
        return self.name + dot + self.overload

    def __str__(self):
        parts = [str(a) for a in self.arguments]
        inside = starred(self.arguments, parts)
        returns = ", ".join(map(str, self.returns))
        if len(self.returns) != 1:
            returns = f"({returns})"
        return f"{self.full_name}({inside}) -> {returns}"


def parse_schema(text):
    """The schema that a line spells; else ValueError."""
    match = re.fullmatch(r"([^(]+)\((.*)\) -> (.+)", text)
    refuse_if(not match, f"Invalid function schema: {text}")
    name, inside, returns = match.groups()
    name, _, overload = name.partition(".")
    parts = inside.split(", ") if inside else []
    at = parts.index("*") if "*" in parts else len(parts)
    arguments = [parse_argument(part) for part in parts[:at]]
    arguments += [parse_argument(part, keyword=True)
                  for part in parts[at + 1:]]
    if returns[0] == "(" and returns[-1] == ")":
        returns = returns[1:-1]
    listed = returns.split(", ") if returns else []
    return Schema(name, overload, tuple(arguments),
                  tuple(map(parse_return, listed)))


def given(schema):
    return ", ".join(a.name for a in schema.arguments)


def parameters(schema):
    """The arguments as a Python `def` has them."""
    parts = [a.name + f"={a.default}" * bool(a.default)
             for a in schema.arguments]
    return starred(schema.arguments, parts)


def calling(schema, more="", name=None):
    name = name or schema.full_name
    return f'call("{name}", {given(schema)}{more})'


def function_source(schema, with_out=False):
    """What `torch.mul` is: a Python function that calls."""
    head, lines = parameters(schema), []
    if with_out:
        star = "" if "*" in head else "*, "
        head = f"{head}, {star}out=None"
        to_out = calling(schema, ", out", f"{schema.name}.out")
        lines = ["if out is not None:", f"    return {to_out}"]
    lines = [f"def {schema.name}({head}):", *lines,
             f"return {calling(schema)}"]
    return re.sub(r"\bself\b", "input", "\n    ".join(lines))


def method_source(schema):
    """What `Tensor.mul` is."""
    return (f"def {schema.name}({parameters(schema)}):\n"
            f"    return {calling(schema)}")


def mutable(name):
    return Argument("Tensor", "a!", name)


def inplace_form(schema):
    """mul_.Tensor(Tensor(a!) self, …), from mul.Tensor."""
    others = schema.arguments[1:]
    return Schema(f"{schema.name}_", schema.overload,
                  (mutable("self"), *others), (mutable(""),))


def out_form(schema):
    """mul.out(…, *, Tensor(a!) out) -> Tensor(a!)."""
    out = Argument("Tensor", "a!", "out", keyword=True)
    return Schema(schema.name, "out",
                  (*schema.arguments, out), (mutable(""),))


def kernels_source(schema):
    """Three kernels of two halves, `…_meta` and `…_impl`."""
    name, args = schema.name, given(schema)
    forms = [
        ("functional", args, "out = empty(", "out"),
        ("inplace", args, "check_inplace(self, ", "self"),
        ("out", f"{args}, out", "resize_out(out, ", "out"),
    ]
    return "\n\n".join(
        f"def {name}_{form}({taken}):\n"
        f"    {prepare}*{name}_meta({args}))\n"
        f"    {name}_impl({args}, {target})\n"
        f"    return {target}"
        for form, taken, prepare, target in forms)


def saved_by(formula, schema):
    """The formula, and {name: what its node must save}."""
    facts = r"\b(\w+)\.(shape|dtype)\b"
    formula = re.sub(facts, r"\1_\2", formula)
    known = {"result": "result"}
    for a in schema.arguments:
        known[a.name] = a.name
        known[f"{a.name}_shape"] = f"{a.name}.shape"
        known[f"{a.name}_dtype"] = f"{a.name}.dtype"
    used = re.findall(r"\w+", formula)
    kept = {n: what for n, what in known.items() if n in used}
    return formula, kept


def node_name(schema):
    words = schema.name.split("_")
    return "".join(map(str.title, words)) + "Backward0"


def node_source(schema, formulas):
    """A class for the graph: what was saved, and formulas."""
    read, results = {}, []
    for formula in formulas.values():
        text, kept = saved_by(formula, schema)
        results.append(text)
        read |= kept
    return "\n        ".join([
        f"class {node_name(schema)}(Node):\n"
        "    def apply(node, grad):",
        *(f"{name} = node.saved_{name}" for name in read),
        f"return [{', '.join(results)}]"])


def autograd_source(schema, formulas):
    """The kernel for the key Autograd."""
    saved, inputs = {}, ", ".join(formulas)
    for formula in formulas.values():
        saved |= saved_by(formula, schema)[1]
    save = [f"        node.saved_{name} = {what}"
            for name, what in saved.items()]
    below = calling(schema, ', below="Autograd"')
    return "\n".join([
        f"def {schema.name}_autograd({given(schema)}):",
        "    node = None",
        f"    if requires_grad({inputs}):",
        f"        node = {node_name(schema)}({inputs})",
        *(line for line in save if "_result" not in line),
        f"    result = {below}",
        "    if node is not None:",
        *(line for line in save if "_result" in line),
        "        set_history(result, node)",
        "    return result"])


def read_entry(text):
    """Lines such as `variants: function, method`, in a dict."""
    lines = [line.strip("- ")
             for line in text.strip().splitlines()]
    return dict(line.split(": ", 1) for line in lines)


def generate(entry):
    """{what it is: its text}, for all code of an entry."""
    schema = parse_schema(entry["func"])
    name, forms = schema.name, {"functional": schema}
    formulas = {a.name: entry[a.name]
                for a in schema.arguments if a.name in entry}
    structured = entry.get("structured") == "True"
    if structured:
        forms["inplace"] = inplace_form(schema)
        forms["out"] = out_form(schema)
    variants = entry.get("variants", "function")
    pieces = {"schemas": "\n".join(
        f'define("{form}")' for form in forms.values())}
    if "function" in variants:
        pieces["function"] = function_source(schema, structured)
    if "method" in variants:
        both = [schema, *[forms.get("inplace")] * structured]
        pieces["methods"] = "\n\n".join(
            map(method_source, both))
    rows = [f'impl("{schema.full_name}", "CPU", '
            f"{name}_cpu)"]
    if structured:
        pieces["kernels"] = kernels_source(schema)
        rows = [f'impl("{form.full_name}", "CPU", {name}_{kind})'
                for kind, form in forms.items()]
    if formulas:
        pieces["node"] = node_source(schema, formulas)
        pieces["autograd"] = autograd_source(schema, formulas)
        rows += [f'impl("{schema.full_name}", "Autograd", '
                 f"{name}_autograd)"]
    return pieces | {"registrations": "\n".join(rows)}


kernels = {}  # "mul.Tensor" -> {key: function}
KEYS = ["Autograd", "CPU"]  # in the order of asking


def define(text):
    kernels[parse_schema(text).full_name] = {}


def impl(name, key, function):
    kernels[name][key] = function


def call(name, *arguments, below=None):
    """Run the kernel of the first key that has one."""
    first = KEYS.index(below) + 1 if below else 0
    for key in KEYS[first:]:
        if key in kernels[name]:
            return kernels[name][key](*arguments)
    raise NotImplementedError(f"no kernel for {name}")


class Tensor(Tensor):
    """It gets the methods that entries generate."""


class Node:
    """What `backward()` will visit, in chapter 6."""

    def __init__(self, *inputs):
        self.inputs = inputs


def requires_grad(*tensors):
    return any(t.requires_grad for t in tensors)


def set_history(result, node):
    result.requires_grad_().meta.grad_fn = node


def empty(shape, dtype):
    return Tensor.empty(shape, dtype)


def check_inplace(self, shape, dtype):
    refuse_if((self.shape, self.dtype) != (shape, dtype),
              f"{shape} does not fit {self.shape} in place")


def resize_out(out, shape, dtype):
    refuse_if(out.dtype != dtype, f"{out.dtype} is not {dtype}")
    if out.shape != shape:
        fresh = empty(shape, dtype)
        out.storage, out.offset = fresh.storage, 0
        out.shape, out.strides = fresh.shape, fresh.strides


def install(text, scope):
    """Run what an entry generates. Methods go to `Tensor`."""
    scope |= {**globals(), **scope}
    for what, source in generate(read_entry(text)).items():
        made = {} if what == "methods" else scope
        exec(source, scope, made)
        if what == "methods":
            for name, method in made.items():
                setattr(Tensor, name, method)
