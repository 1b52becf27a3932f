"""All code that comes from one entry of the operator list (the chapter "From a schema to code").

The generator is the reader's own, `readtorch.mini.schema`; here stand the rules by which PyTorch's generator refuses a
schema that can be read (`torchgen/model.py`, in its words), and the entries to begin with.
"""

import keyword
import re

from readtorch.mini import schema as program
from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Expression, Refusal, Switch
from readtorch.viz.picture import box, drawing, text

BINARY = "self: {}; other: {}"
# schema, variants, whether in-place and out= forms follow, formulas in the language of `mini`
ENTRIES = {
    "mul.Tensor": (
        "mul.Tensor(Tensor self, Tensor other) -> Tensor",
        "function, method",
        True,
        BINARY.format("grad * other", "grad * self"),
    ),
    "add.Tensor": (
        "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        "function, method",
        True,
        BINARY.format("grad", "grad * alpha"),
    ),
    "sub.Tensor": (
        "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        "function, method",
        True,
        BINARY.format("grad", "grad * -alpha"),
    ),
    "div.Tensor": (
        "div.Tensor(Tensor self, Tensor other) -> Tensor",
        "function, method",
        True,
        BINARY.format("grad / other", "-grad * self / (other * other)"),
    ),
    "maximum": (
        "maximum(Tensor self, Tensor other) -> Tensor",
        "function, method",
        False,
        BINARY.format("grad * (self >= other)", "grad * (other > self)"),
    ),
    "exp": ("exp(Tensor self) -> Tensor", "function, method", True, "self: grad * result"),
    "log": ("log(Tensor self) -> Tensor", "function, method", True, "self: grad / self"),
    "log1p": ("log1p(Tensor self) -> Tensor", "function, method", True, "self: grad / (self + 1)"),
    "sqrt": ("sqrt(Tensor self) -> Tensor", "function, method", True, "self: grad / (2 * result)"),
    "neg": ("neg(Tensor self) -> Tensor", "function, method", True, "self: -grad"),
    "tanh": ("tanh(Tensor self) -> Tensor", "function, method", True, "self: grad * (1 - result * result)"),
    "sigmoid": ("sigmoid(Tensor self) -> Tensor", "function, method", True, "self: grad * (1 - result) * result"),
    "relu": ("relu(Tensor self) -> Tensor", "function, method", False, "self: grad * (result > 0)"),
    "square": ("square(Tensor self) -> Tensor", "function, method", False, ""),
    "mm": (
        "mm(Tensor self, Tensor mat2) -> Tensor",
        "function, method",
        False,
        "self: grad.mm(mat2.t()); mat2: self.t().mm(grad)",
    ),
    "dot": (
        "dot(Tensor self, Tensor tensor) -> Tensor",
        "function, method",
        False,
        "self: grad * tensor; tensor: grad * self",
    ),
    "addmm": (
        "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        "function, method",
        True,
        "self: grad * beta; mat1: grad.mm(mat2.t()) * alpha; mat2: mat1.t().mm(grad) * alpha",
    ),
    "sum.dim_IntList": (
        "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        "function, method",
        False,
        "self: sum_backward(grad, self.shape, dim, keepdim)",
    ),
    "transpose.int": (
        "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
        "function, method",
        False,
        "self: grad.transpose(dim0, dim1)",
    ),
    "view": ("view(Tensor(a) self, SymInt[] size) -> Tensor(a)", "method", False, "self: grad.reshape(self.shape)"),
    "expand": (
        "expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
        "method",
        False,
        "self: sum_to(grad, self.shape)",
    ),
    "softmax.int": (
        "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
        "function, method",
        False,
        "",
    ),
    "where.self": (
        "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
        "function, method",
        False,
        "self: where(condition, grad, 0); other: where(condition, 0, grad)",
    ),
    "cat": ("cat(Tensor[] tensors, int dim=0) -> Tensor", "function", False, ""),
    "mul_.Tensor": ("mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "method", False, ""),
    "mul.out": ("mul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)", "function", False, ""),
    "nonzero": ("nonzero(Tensor self) -> Tensor", "function, method", False, ""),
    "rand": (
        "rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
        "function",
        False,
        "",
    ),
}
# What is missing, misspelt or misplaced: for the test of the models, and for the curious.
BAD = (
    "mul(Tensor self, Tensor other) Tensor",
    "mul(Tensr self) -> Tensor",
    "mul(Tensor self, other) -> Tensor",
    "mul_(Tensor self, Tensor other) -> Tensor",
    "mul_(Tensor(a!) self, Tensor other) -> Tensor",
    "mul_(Tensor(a!)[] self) -> Tensor",
    "mul.out(Tensor self, *, Tensor(a!) out) -> Tensor",
    "mul.out(Tensor self, Tensor(a!) out) -> Tensor(a!)",
    "mul.out(Tensor self, *, Tensor(a!) out, Tensor(b!) out2) -> Tensor(a!)",
    "mul.out(Tensor self, *, Tensor(a!) out, int dim) -> Tensor(a!)",
    "mul_out(Tensor self) -> Tensor",
    "mul(Tensor(A) self) -> Tensor(A)",
    "mul(Tensor(a!)[2] self) -> Tensor",
    "mul(Tensor(a!) self) -> (Tensor(a!), Tensor)",
    "mul(Tensor(a!) self) -> Tensor(b!)",
    "mul(Tensor self, *, int a, *, int b) -> Tensor",
    "mul(Tensor self, int a=1=2) -> Tensor",
    "mul(Tensor self,Tensor other) -> Tensor",
    "mul.out(Tensor self, *, Tensor(a!)[] out) -> Tensor(a!)[]",
    "mul.out(Tensor self, *, Tensor(a!)[] out) -> ()",
    "mul.(Tensor self) -> Tensor",
    "mul(Tensor self) -> (Tensor)",
    "mul(Tensor self, int n=) -> Tensor",
    "mul(Tensor self, *) -> Tensor",
    "mul__(Tensor self) -> Tensor",
    "__imany__(Tensor self) -> Tensor",
    "__iadd__(Tensor self) -> Tensor",
    "mul(Tensor(a|b!) self) -> Tensor",
    "mul(Tensor(a|b -> c|d) self) -> Tensor",
    ".x(Tensor self) -> Tensor",
    "mul(Tensr self, other) -> Tensor",
)


def refuse_if(wrong, sentence):
    if wrong:
        raise Refusal(sentence)


BASES = """Tensor Scalar int float bool str SymInt SymBool Layout ScalarType Device DeviceIndex Generator MemoryFormat
QScheme Storage Stream DimVector GraphModule""".split()
ALIAS = r"[a-z](\|[a-z])*!?( -> (\*|[a-z](\|[a-z])*))?"
# __iadd__ and its kind are in-place operators
AUGMENTED = "add sub mul div mod pow lshift rshift and xor or".split()


def checked_schema(line):
    """The schema of a line. Raises Refusal in the words of `torchgen.model.FunctionSchema.parse`."""
    refuse_if(not line.isascii() or not line.isprintable(), "A schema is one line of plain letters, without accents.")
    match = re.fullmatch(r"([^(]+)\((.*)\) -> (.+)", line)
    refuse_if(not match, f"Invalid function schema: {line}")
    whole, inside, returns = match.groups()
    check_name(whole)
    check_arguments(inside.split(", "))
    if returns != "()":
        check_returns(returns)
    kept = ", ".join(filter(None, inside.split(", ")))
    refuse_if(kept != inside, f"{whole}({kept}) -> {returns} != {line}")
    schema = program.parse_schema(line)
    check_letters(schema)
    check_inplace(schema)
    refuse_if(str(schema) != line, f"{schema} != {line}")
    return schema


def check_name(whole):
    name, dot, overload = whole.partition(".")
    refuse_if(not name, "operator name cannot be empty")
    refuse_if(
        name.endswith("_out"),
        "_out suffix is reserved and not permitted for operator names; did you mean to specify an out overload name instead?",
    )
    base = dunder(name)
    refuse_if(base[:1] == "i" and base[1:] not in AUGMENTED, f"unexpected dunder method starting with 'i': {name}")
    refuse_if(dot and not overload, f"{name} != {whole}")


def dunder(name):
    """`add` of `__add__`, and nothing of other names."""
    match = re.fullmatch("__([^_]+)__", name)
    return match[1] if match else ""


def check_arguments(parts):
    keywords = False
    for part in parts:
        if part == "*":
            refuse_if(keywords, "invalid syntax: kwarg-only specifier * can only occur once")
            keywords = True
        elif part:
            check_argument(part)


def check_argument(part):
    refuse_if(" " not in part, f"illegal argument '{part}'")
    refuse_if(part.count("=") > 1, f"illegal argument with default value: '{part}'")
    declared, equals, default = part.partition("=")
    refuse_if(" " not in declared, f"illegal argument '{part}'")
    check_type(declared.rpartition(" ")[0])
    refuse_if(equals and not default, f"{declared} != {part}")


def check_returns(returns):
    if returns[0] == "(" and returns[-1] == ")":
        returns = returns[1:-1]
    for part in returns.split(", "):
        check_type(part.rpartition(" ")[0] or part)


def check_type(declared):
    """`Tensor(a!)?`: letters, and a type that the language has."""
    match = re.match(r"Tensor\((.+)\)(.*)", declared)
    if match:
        alias, rest = match.groups()
        refuse_if(rest not in ("", "?", "[]"), f"unrecognized alias analysis form with Tensor: {rest}")
        refuse_if(not re.fullmatch(ALIAS, alias), f"unrecognized alias annotation {alias}")
        before, _, after = alias.partition(" -> ")
        refuse_if("|" in before and "!" in before, f"alias set larger than 1 is not mutable, got {alias} instead.")
        refuse_if(
            "|" in before and "|" in after,
            f"before alias set and after alias set cannot be larger than 1 at the same time, got {alias} instead.",
        )
        declared = "Tensor" + rest
    base = re.sub(r"(?<=.)(\?|\[[0-9]*\])+$", "", declared)
    refuse_if(base not in BASES, f"unrecognized type {base}")


def check_parameters(schema):
    """What a Python function cannot have."""
    name = schema.name
    refuse_if(
        not name.isidentifier() or keyword.iskeyword(name), f"'{name}' cannot be the name of a function in Python."
    )
    names = [a.name for a in schema.arguments]
    for name in names:
        refuse_if(
            not name.isidentifier() or keyword.iskeyword(name), f"'{name}' cannot be the name of an argument in Python."
        )
        refuse_if(names.count(name) > 1, f"There are two arguments called '{name}'.")


def alias(argument):
    """`a!` of `Tensor(a!)? self`."""
    match = re.match(r"Tensor\((.+)\)", argument.type)
    return match[1] if match else ""


def plain_type(argument):
    """The type without its letters."""
    return argument.type.replace(f"({alias(argument)})", "", 1)


def writes(argument):
    return "!" in alias(argument)


def check_letters(schema):
    """What is written to must be returned, and nothing else may be."""
    outs = [a for a in schema.arguments if a.keyword and writes(a)]
    first = next((i for i, a in enumerate(schema.arguments) if a in outs), len(schema.arguments))
    for a in schema.arguments[first:]:
        refuse_if(not writes(a), f"non-mutable argument '{a.name}' cannot follow mutable out arguments")
    for out, back in zip(outs, schema.returns):
        refuse_if(
            alias(out) != alias(back),
            "Out arguments must have matching return Tensor; furthermore, the ith-argument needs to correspond to the ith "
            f"return. arg.annotation={alias(out)}, ret.annotation={alias(back) or 'None'}",
        )
    positional = [a for a in schema.arguments if not a.keyword]
    me = next((i for i, a in enumerate(positional) if a.name == "self"), -1)
    returned = [alias(back) for back in schema.returns]
    early = [a for a in positional[: max(me, 0)] if writes(a)]
    refuse_if(
        bool(early),
        "mutable pre_self_positional arguments are not currently supported in the schema: "
        f"{', '.join(str(a) for a in early)}",
    )
    refuse_if(
        any(writes(a) and alias(a) in returned for a in positional[me + 1 :]),
        f"If you have a schema with mutable positional args, we expect them to not be returned. schema: {schema}",
    )
    written = [alias(back) for back in schema.returns if writes(back)]
    refuse_if(
        len(written) not in (0, len(returned)),
        f"NativeFunctions must have either only mutable returns, or only immutable returns. Found: {schema}",
    )
    known = [alias(a) for a in outs + [a for a in positional if a.name == "self"]]
    refuse_if(
        any(letters not in known for letters in written),
        'All mutable returns must be aliased either to a keyword argument, or to "self". Did you forget to mark an out '
        "argument as keyword-only?",
    )
    check_outs(outs, returned)


def check_outs(outs, returned):
    if any(plain_type(out) != "Tensor" for out in outs):
        refuse_if(
            bool(returned),
            "out= ops that accept tensor lists as out arguments are expected to have no return type (since you can't do "
            "method chaining on them)",
        )
        return
    given = [out for out in outs if not out.name.startswith("_scratch_")]
    refuse_if(
        bool(outs) and len(given) != len(returned),
        "Must return as many arguments as there are out arguments, or no return at all. Got "
        f"{len(given)} non-scratch out args and {len(returned)} returns",
    )


def check_inplace(schema):
    if not (dunder(schema.name)[:1] == "i" or schema.name.endswith("_") and not dunder(schema.name)):
        return
    me = next((a for a in schema.arguments if a.name == "self" and not a.keyword), None)
    start = f"Inplace op {schema.full_name}"
    refuse_if(me is None or not writes(me), f"{start} must have a self argument with a mutable annotation")
    returned = [alias(back) for back in schema.returns]
    if plain_type(me) == "Tensor":
        refuse_if(returned != [alias(me)], f"{start} with Tensor self must return self")
    else:
        refuse_if(bool(returned), f"{start} with non-Tensor self must have no returns")


def read_formulas(line, schema):
    """{argument: formula} of "self: grad * other; other: grad * self". Raises Refusal."""
    refuse_if(not line.isascii() or not line.isprintable(), "A formula is one line of plain letters, without accents.")
    known, formulas = [a.name for a in schema.arguments], {}
    for part in line.split(";"):
        if not part.strip():
            continue
        name, colon, formula = (piece.strip() for piece in part.partition(":"))
        refuse_if(
            not colon or not formula, f"A formula is an argument, a colon and an expression; this is '{part.strip()}'."
        )
        refuse_if(name not in known, f"{schema.full_name} has no argument '{name}' that a formula could be for.")
        refuse_if(name in formulas, f"There are two formulas for '{name}'.")
        refuse_if(not balanced(formula), f"The parentheses of '{formula}' do not match.")
        refuse_if(not is_whole(formula), f"The formula for '{name}' is not a whole expression: {formula}")
        formulas[name] = formula
    for name in OWN if formulas else ():
        refuse_if(name in known, f"'{name}' is a name that the generator uses itself; give the argument another.")
    return {name: formulas[name] for name in known if name in formulas}


def balanced(formula):
    depth = 0
    for letter in formula:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth < 0:
            return False
    return depth == 0


# What the generated node calls the gradient, itself and the operator's result
OWN = ("grad", "node", "result")
OPERAND = re.compile(r"""'[^']*'|"[^"]*"|(?<![\w.])(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?!\w)|[A-Za-z_]\w*""")
WORDS = {"and": "%", "or": "%", "if": "%", "else": "%", "in": "%", "is": "%", "not": "-"}
WORDS |= {word: "x" for word in ("True", "False", "None")}
# x is an operand; each rule makes one of several
RULES = [
    (r"x\.x", "x"),
    (r"x(\*\*|//|<<|>>|[<>=!]=|[-+*/%@&|^<>])x", "x"),
    (r"(^|[^x)\]])[-+~]x", r"\1x"),
    (r"([(,])(x=|\*\*?)x", r"\1x"),
    (r"x?:x?(?=[\],:])", "x"),
    (r"(x|(?<![x)\]]))[(\[](x(,x)*,?)?[)\]]", "x"),
]


def is_whole(formula):
    """Whether operands and operators make one expression. Rules of text, for the page has no parser of Python."""

    def operand(found):
        word = found[0]
        return WORDS.get(word, "?" if keyword.iskeyword(word) else "x")

    text, before = re.sub(r"\s", "", OPERAND.sub(operand, formula)), None
    while text != before:
        before = text
        for rule, shorter in RULES:
            text = re.sub(rule, shorter, text)
    return text == "x"


def unknown_names(schema, formulas):
    """Names in formulas that are no argument, and are not called."""
    known = [a.name for a in schema.arguments] + ["grad", "result"] + keyword.kwlist
    names = re.findall(r"(?<![\w.])[A-Za-z_]\w*\b(?!\s*\()", " ".join(formulas.values()))
    return sorted({name for name in names if name not in known})


def model(inputs):
    schema = checked_schema(inputs["schema"])
    check_parameters(schema)
    formulas = read_formulas(inputs["formulas"], schema)
    names = [a.name for a in schema.arguments]
    refuse_if("method" in inputs["variants"] and "self" not in names, "A method needs an argument called self.")
    if inputs["structured"]:
        plain = [back.type for back in schema.returns] == ["Tensor"]
        refuse_if(
            not plain or names[:1] != ["self"] or any(map(writes, schema.arguments)) or schema.name.endswith("_"),
            "In-place and out= forms follow from an entry that takes self first, writes to nothing and returns one new Tensor. "
            "Untick that field for other entries.",
        )
    entry = {
        **formulas,
        "func": inputs["schema"],
        "variants": inputs["variants"],
        "structured": str(inputs["structured"]),
    }
    pieces = program.generate(entry)
    saved = sorted(program.saved_by(formulas, schema)[1])
    return {
        "name": schema.full_name,
        "pieces": pieces,
        "saved": saved,
        "say": sentence(schema, pieces, formulas, saved),
    }


def sentence(schema, pieces, formulas, saved):
    written = [a.name for a in schema.arguments if writes(a)]
    shared = [back for back in schema.returns if alias(back) and not writes(back)]
    lines = sum(len(piece.split("\n")) for piece in pieces.values())
    effect = f"writes to {' and '.join(written)}" if written else "may return a view" if shared else "writes to nothing"
    graph = "No formula is given here, so your generator makes no node."
    if formulas:
        kept = " and ".join(saved) or "nothing"
        graph = f"{program.node_name(schema)} saves {kept}."
        if unknown := unknown_names(schema, formulas):
            graph += f" Saved for {' and '.join(unknown)}: nothing, for no argument is called that."
    return f"The operator {schema.full_name} {effect}. {graph} Your generator writes {lines} lines for it."


PIECES = ("function", "methods", "kernels", "registrations", "autograd", "node")


def picture(result, step):
    """The entry, and an arrow to each piece that comes from it."""
    present = [name for name in PIECES if name in result["pieces"]]
    parts = [box(10, 20 + 16 * len(present), 150, 30, "pick", result["name"])]
    for i, name in enumerate(present):
        lines = len(result["pieces"][name].split("\n"))
        parts += [box(240, 10 + 36 * i, 150, 28, "pale", name), text(f"{lines} lines", 400, 29 + 36 * i, "dim")]
    return drawing(480, 36 * len(present) + 12, *parts)


def sample(random):
    """An entry of the list, changed here and there, or one of the bad ones."""
    schema, variants, structured, formulas = random.choice(list(ENTRIES.values()))
    kind = random.random()
    if kind < 0.25:
        schema = random.choice(BAD)
    elif kind < 0.45:
        old, new = random.choice(CHANGES)
        schema = schema.replace(old, new)
    elif kind < 0.55:
        formulas = random.choice(
            [
                "",
                "self grad",
                "nobody: grad",
                "self: grad; self: grad",
                "self: grad * self.dtype",
                "self: grad * selfie + result.shape",
                "self: grad * (self",
                "self: grad *",
                "self: grad self",
                "self: grad * f(self, 2.5, n=-1)[0].sum() if result.shape else -self",
            ]
        )
    return {"schema": schema, "variants": variants, "structured": structured and kind > 0.2, "formulas": formulas}


CHANGES = (
    ("Tensor self", "Tensor(a!) self"),
    ("-> Tensor", "-> Tensor(a!)"),
    (", ", ","),
    ("self", "x"),
    ("(Tensor", "_(Tensor"),
    ("Tensor other", "Tensor? other=None, *, int[2] size=0"),
    ("-> Tensor", "-> (Tensor, Tensor)"),
    (" -> Tensor", " -> ()"),
    ("Tensor ", "Tensor(b|c) "),
    ("Tensor ", "Tensor(a -> *) "),
    ("Tensor other", "Tensor grad"),
)
START = ENTRIES["mul.Tensor"]

FIGURE = Figure(
    name="schema",
    title="One entry, and all code that comes from it",
    inputs=(
        Expression("schema", "func:", START[0], longest=200),
        Choice("variants", "variants:", START[1], ["function, method", "function", "method"]),
        Switch("structured", "in-place and out= forms", START[2]),
        Expression("formulas", "formulas:", START[3], longest=200),
        Choice("piece", "piece", "function", ["schema", "call", "function", "method", "cpp", "cpu", "meta", "default", "composite",
            "autograd", "node", "inplace", "view", "functionalize", "vmap", "trace", "pyi"], hidden=True),
    ),
    model=model,
    picture=picture,
    sample=sample,
)  # fmt: skip
