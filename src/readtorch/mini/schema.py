"""Written in the chapter "From a schema to code": its cells are this file, put together by `tools/mini.py`."""

import re
from dataclasses import dataclass

from .tensor_impl import Tensor


def refuse_if(wrong, sentence):
    if wrong:
        raise ValueError(sentence)


@dataclass(frozen=True)
class Argument:
    """`Tensor(a!) self` or `Scalar alpha=1`; or a return."""

    type: str
    name: str
    default: str = ""
    keyword: bool = False

    def __str__(self):
        default = f"={self.default}" * bool(self.default)
        return f"{self.type} {self.name}".strip() + default


def parse_argument(text, keyword=False):
    """One argument; or a return, whose name may be missing."""
    declared, _, default = text.partition("=")
    parts = re.fullmatch(r"(.+?)( \w+)?", declared).groups("")
    return Argument(parts[0], parts[1].strip(), default, keyword)


def starred(arguments, parts):
    """The parts, with a * before the first keyword's."""
    words = [a.keyword for a in arguments] + [True]
    at, star = words.index(True), ["*"] * any(words[:-1])
    return ", ".join([*parts[:at], *star, *parts[at:]])


@dataclass(frozen=True)
class Schema:
    name: str
    overload: str
    arguments: tuple
    returns: tuple

    @property
    def full_name(self):
        return f"{self.name}.{self.overload}".rstrip(".")

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
    arguments, keyword = [], False
    for part in inside.split(", ") if inside else []:
        if part == "*":
            keyword = True
        else:
            arguments.append(parse_argument(part, keyword))
    if returns[0] == "(" and returns[-1] == ")":
        returns = returns[1:-1]
    listed = returns.split(", ") if returns else []
    return Schema(name, overload, tuple(arguments),
                  tuple(map(parse_argument, listed)))


def given(schema):
    return ", ".join(a.name for a in schema.arguments)


def parameters(schema, *more):
    """The arguments as a Python `def` has them."""
    arguments = [*schema.arguments, *more]
    parts = [a.name + f"={a.default}" * bool(a.default)
             for a in arguments]
    return starred(arguments, parts)


def calling(schema, more="", name=""):
    name = name or schema.full_name
    return f'call("{name}", {given(schema)}{more})'


def function_source(schema, with_out=False):
    """What `torch.mul` is: a Python function that calls."""
    out = Argument("Tensor", "out", "None", keyword=True)
    head = parameters(schema, *[out] * with_out)
    lines = [f"def {schema.name}({head}):"]
    if with_out:
        to_out = calling(schema, ", out", f"{schema.name}.out")
        lines += ["if out is not None:", f"    return {to_out}"]
    lines += [f"return {calling(schema)}"]
    return re.sub(r"\bself\b", "input", "\n    ".join(lines))


def method_source(schema):
    """What `Tensor.mul` is."""
    head = f"Tensor.{schema.name} = lambda {parameters(schema)}"
    return f"{head}: {calling(schema)}"


def forms_of(schema):
    """mul.Tensor, mul_.Tensor and mul.out, from the first."""
    back = (Argument("Tensor(a!)", ""),)
    me = Argument("Tensor(a!)", "self")
    out = Argument("Tensor(a!)", "out", keyword=True)
    return {
        "functional": schema,
        "inplace": Schema(f"{schema.name}_", schema.overload,
                          (me, *schema.arguments[1:]), back),
        "out": Schema(schema.name, "out",
                      (*schema.arguments, out), back)}


def kernels_source(schema, forms):
    """Kernels of two halves, `…_meta` and `…_impl`."""
    name, args = schema.name, given(schema)
    kinds = {  # arguments, how memory is had, its name
        "functional": (args, "out = Tensor.empty(", "out"),
        "inplace": (args, "check_inplace(self, ", "self"),
        "out": (f"{args}, out", "resize_out(out, ", "out"),
    }
    return "\n\n".join(
        f"def {name}_{form}({taken}):\n"
        f"    {prepare}*{name}_meta({args}))\n"
        f"    {name}_impl({args}, {target})\n"
        f"    return {target}"
        for form in forms
        for taken, prepare, target in [kinds[form]])


def check_inplace(self, shape, dtype):
    refuse_if((self.shape, self.dtype) != (shape, dtype),
              f"{shape} does not fit {self.shape} in place")


def resize_out(out, shape, dtype):
    refuse_if(out.dtype != dtype, f"{out.dtype} is not {dtype}")
    if out.shape != shape:
        fresh = Tensor.empty(shape, dtype)
        out.storage, out.offset = fresh.storage, 0
        out.shape, out.strides = fresh.shape, fresh.strides


def saved_by(formulas, schema):
    """The formulas, and {name: what their node must save}."""
    names = [*(a.name for a in schema.arguments), "result"]
    facts = rf"\b({'|'.join(names)})\.(shape|dtype)\b"
    texts = [re.sub(facts, r"\1_\2", formula)
             for formula in formulas.values()]
    used = re.findall(r"\w+", " ".join(texts))
    known = {(n + fact).replace(".", "_"): n + fact
             for n in names for fact in ("", ".shape", ".dtype")}
    return texts, {n: known[n] for n in known if n in used}


def node_name(schema):
    return schema.name.title().replace("_", "") + "Backward0"


def node_source(schema, formulas):
    """A class for the graph: what was saved, and formulas."""
    texts, saved = saved_by(formulas, schema)
    return "\n        ".join([
        f"class {node_name(schema)}(Node):\n"
        "    def apply(node, grad):",
        *(f"{name} = node.saved_{name}" for name in saved),
        f"return [{', '.join(texts)}]"])


def autograd_source(schema, formulas):
    """The kernel for the key Autograd."""
    inputs, before, after = ", ".join(formulas), [], []
    for name, what in saved_by(formulas, schema)[1].items():
        late = what.partition(".")[0] == "result"
        (after if late else before).append(
            f"        node.saved_{name} = {what}")
    below = calling(schema, ', below="Autograd"')
    return "\n".join([
        f"def {schema.name}_autograd({given(schema)}):",
        "    node = None",
        f"    if requires_grad({inputs}):",
        f"        node = {node_name(schema)}({inputs})",
        *before,
        f"    result = {below}",
        "    if node is not None:",
        *after,
        "        set_history(result, node)",
        "    return result"])


def read_entry(text):
    """Lines such as `variants: function, method`, in a dict."""
    lines = text.strip().splitlines()
    return dict(line.strip("- ").split(": ", 1) for line in lines)


def forms_for(entry, schema):
    """{kind: schema} of all forms that an entry gets."""
    structured = entry.get("structured") == "True"
    return forms_of(schema) if structured else {"cpu": schema}


def generate(entry):
    """{what it is: its text}, for all code of an entry."""
    schema, pieces = parse_schema(entry["func"]), {}
    forms = forms_for(entry, schema)
    formulas = {a.name: entry[a.name]
                for a in schema.arguments if a.name in entry}
    variants = entry.get("variants", "function")
    if "functional" in forms:
        pieces["kernels"] = kernels_source(schema, forms)
    if "function" in variants:
        with_out = "out" in forms
        pieces["function"] = function_source(schema, with_out)
    if "method" in variants:
        pieces["methods"] = "\n".join(
            method_source(forms[form])
            for form in forms if form != "out")
    rows = [f'define("{form}")' for form in forms.values()]
    rows += [f'impl("{form.full_name}", "CPU", '
             f"{schema.name}_{kind})"
             for kind, form in forms.items()]
    if formulas:
        pieces["node"] = node_source(schema, formulas)
        pieces["autograd"] = autograd_source(schema, formulas)
        rows += [f'impl("{schema.full_name}", "Autograd", '
                 f"{schema.name}_autograd)"]
    return pieces | {"registrations": "\n".join(rows)}


def install(text, scope):
    """Run what an entry generates."""
    scope |= {**globals(), **scope}
    for source in generate(read_entry(text)).values():
        exec(source, scope)
