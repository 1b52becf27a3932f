"""A short program, its graph in FX, and what passes make of it (the chapter "FX").

In PyTorch: `torch/fx/_symbolic_trace.py`, `graph.py`, `subgraph_rewriter.py`, `passes/dialect/common/cse_pass.py`.
`tests/viz/test_fx_passes.py` traces random programs with PyTorch and runs PyTorch's passes over them.
"""

import math
import re
from dataclasses import dataclass, field

from readtorch.viz.figure_kit import Figure
from readtorch.viz.graph_layout import layered_layout
from readtorch.viz.graph_programs import array_text
from readtorch.viz.inputs import Choice, Expression, Refusal
from readtorch.viz.picture import box, drawing, tag

FIRST = "s = self.scale * 2; m = x * s; a = m + y; b = m + y; c = a.exp(); return self.linear(a) + b.relu()"
EXAMPLES = (
    "x.add_(1); return x * 2",
    "a = x.exp(); x.mul_(2); return a + x.exp()",
    "return x * (self.scale * 2 + 1)",
    "z = y + x * y; return z",
    "a = x; x += 1; return a * 2",
)
PASSES = {
    "": "nothing",
    "dead": "dead code",
    "fold": "constant folding",
    "cse": "common subexpressions",
    "pattern": "a * b + c → addcmul",
}
SLOTS = ("first", "second", "third")
EXAMPLE = {"x": [1.0, -2.0, 3.0], "y": [0.5, 1.0, -1.0]}
SCALE = [2.0, 3.0, -1.0]
WEIGHT = [[1, 0, -1], [2, 1, 0], [0, -1, 1]]
LARGEST, MOST_NODES = 1e9, 24
ALLOWED = (
    "Allowed: a = …, a += … and -= *= /=, with x, y, your names, numbers, + - * /, parentheses, .exp(), .relu(), .tanh(), .add(…), "
    ".mul(…), .add_(…), .mul_(…), .relu_(), torch.relu(…), torch.relu_(…), self.linear(…), self.scale; the last statement is return …."
)
SIGNS = {"+": "add", "-": "sub", "*": "mul", "/": "truediv"}
AUGMENTED = {"+=": "add_", "-=": "sub_", "*=": "mul_", "/=": "div_"}
METHODS = {"exp": 0, "relu": 0, "tanh": 0, "relu_": 0, "add": 1, "mul": 1, "add_": 1, "mul_": 1}
LEAF = "The trace succeeds, but the program itself does not run: a leaf Variable that requires grad is being used in an in-place operation."


@dataclass(eq=False)
class Node:
    """args: nodes, and numbers as texts."""

    name: str
    op: str
    target: str
    args: list = field(default_factory=list)
    value: list | None = None  # of a folded attribute


class Graph:
    def __init__(self):
        self.nodes, self.counts, self.taken = [], {}, set()

    def free_name(self, base):
        """As PyTorch names nodes: add, add_1, add_2."""
        name = base
        while name in self.taken:
            self.counts[base] = self.counts.get(base, 0) + 1
            name = f"{base}_{self.counts[base]}"
        self.taken.add(name)
        return name

    def make(self, op, target, args, base):
        return Node(self.free_name(base), op, target, list(args))

    def append(self, *made):
        if len(self.nodes) > MOST_NODES:
            raise Refusal(f"At most {MOST_NODES} nodes, please.")
        self.nodes.append(self.make(*made))
        return self.nodes[-1]

    def users(self, node):
        return [n for n in self.nodes if any(a is node for a in n.args)]

    def replace(self, old, new):
        """What used `old` uses `new`."""
        for node in self.nodes:
            node.args = [new if a is old else a for a in node.args]


# ---- the program as text

TOKEN = re.compile(
    r" *(?:([0-9]+(?:\.[0-9]+)?)(?![0-9A-Za-z_.])|(torch\.relu_?|self\.(?:linear|scale)|[a-z][a-z0-9_]*)(?![A-Za-z0-9_])|(\.[a-z_]+(?=\()|[-+*/]=|[-+*/=()]))"
)
NUMBER = re.compile(r"(0|[1-9][0-9]{0,5})(\.[0-9]{1,4})?")
TAKEN = (
    "return",
    "self",
    "torch",
    "if",
    "else",
    "for",
    "in",
    "while",
    "def",
    "lambda",
    "import",
    "from",
    "with",
    "and",
    "or",
    "not",
    "is",
)
IN_PYTORCH = {
    r"\bwith\b": "FX records the operators inside, and nothing of the with.",
    r"\bif\b": "symbolic_trace raises TraceError: an if needs a bool, and a proxy has none. "
    "An if on anything else is decided while tracing, and leaves no node.",
    r"\bfor\b|\bwhile\b": "symbolic_trace raises TraceError: nobody knows how often a loop over a proxy runs. "
    "Any other loop runs while tracing, and each turn leaves its nodes.",
    r"\blen\b": "symbolic_trace raises RuntimeError: len must return an int, and a proxy has none.",
    r"\] *[-+*/]?=(?!=)": "symbolic_trace raises TypeError: a proxy has no item assignment.",
    r"\btorch\.(?:arange|eye|full|linspace|ones|rand|randint|randn|tensor|zeros)\b": "symbolic_trace runs it once, and the tensor becomes an attribute.",
    r"\btorch\.(?:tanh|exp)\b": "FX takes it as a call_function; write it as a method here.",
    r"\btorch\.(?!relu_?\()[a-z]": "FX takes a function of torch as a call_function; this figure knows torch.relu and torch.relu_.",
    r"\.shape\b": "FX takes it as call_functions: getattr, and for a size of it operator.getitem.",
    r"[\]@<>]|\*\*": "FX takes it as a call_function of the module operator; this figure has + - * / alone.",
}


def said_in_pytorch(text):
    """What FX does with a program that the figure does not trace; "" if nothing is known of it."""
    return next(
        (f"Not in this figure. {why}" for pattern, why in IN_PYTORCH.items() if re.search(pattern, text, re.ASCII)), ""
    )


def number(text):
    """A number as Python writes it. Raises Refusal."""
    if not NUMBER.fullmatch(text):
        raise Refusal(f"{text[:20]}: a number has at most six digits before the point and four behind it.")
    whole, _, rest = text.partition(".")
    return f"{whole}.{rest.rstrip('0') or '0'}" if rest else whole


def negative(text):
    """-2 is a constant of Python, and so is -(-2)."""
    return text[1:] if text[0] == "-" else text if text == "0" else f"-{text}"


class Tracer:
    """Reads a statement after the other, and does what a trace with proxies does: a node for each operation.

    eager: a += 1 writes into a tensor, as the program does. A proxy has no __iadd__, so that a trace makes a new value.
    """

    def __init__(self, program, eager=False):
        self.graph, self.eager = Graph(), eager
        self.names = {name: self.graph.append("placeholder", name, [], name) for name in EXAMPLE}
        self.scale = None
        statements = [part.strip(" ") for part in program.split(";") if part.strip(" ")]
        if not statements or not re.match(r"return\b", statements[-1]):
            raise Refusal(said_in_pytorch(program) or f"The last statement is return …. {ALLOWED}")
        for statement in statements:
            self.text = statement  # what a refusal is about
            self.left = self.tokens(statement)
            self.statement(statement is statements[-1])
            if self.left:
                self.refuse()

    def tokens(self, text):
        found, end = [], 0
        while end < len(text):
            match = TOKEN.match(text, end)
            if not match:
                self.unknown(text[end:].strip(" ")[:20])
            found.append(match[1] or match[2] or match[3])
            end = match.end()
        return found

    def unknown(self, text):
        raise Refusal(said_in_pytorch(self.text) or f"Not known here: {text}. {ALLOWED}")

    def refuse(self):
        if self.left:
            self.unknown(self.left[0])
        raise Refusal(f"Something is missing at the end of a statement. {ALLOWED}")

    def next_is(self, *words):
        return bool(self.left) and self.left[0] in words

    def take(self, word):
        if not self.next_is(word):
            self.refuse()
        self.left.pop(0)

    def statement(self, last):
        if self.next_is("return"):
            self.left.pop(0)
            value = self.tensor(self.sum(), "The program returns a number, not a tensor.")
            if not last:
                raise Refusal("Nothing is run after return: write it last.")
            self.graph.append("output", "output", [value], "output")
        elif len(self.left) > 1 and (self.left[1] == "=" or self.left[1] in AUGMENTED):
            self.assignment(self.left.pop(0), self.left.pop(0))
        else:
            self.sum()

    def assignment(self, name, sign):
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name in TAKEN:
            raise Refusal(f"{name} is no name for a value here. {ALLOWED}")
        if sign != "=" and name not in self.names:
            self.unknown(name)
        value = self.sum()
        self.names[name] = value if sign == "=" else self.augmented(self.names[name], sign, value)

    def augmented(self, old, sign, value):
        if not self.eager or isinstance(old, str):
            return self.binary(old, sign[0], value)
        self.written(old)
        return self.graph.append("call_method", AUGMENTED[sign], [old, value], AUGMENTED[sign])

    def written(self, node):
        if node.op == "get_attr":
            raise Refusal(LEAF)

    def tensor(self, value, sentence="A method of a number: only tensors have methods here."):
        return value if isinstance(value, Node) else self.is_number(sentence)

    def is_number(self, sentence):
        raise Refusal(sentence)

    def sum(self):
        return self.operation("+-", lambda: self.operation("*/", self.factor))

    def operation(self, signs, part):
        value = part()
        while self.next_is(*signs):
            sign = self.left.pop(0)
            value = self.binary(value, sign, part())
        return value

    def binary(self, value, sign, other):
        if isinstance(value, str) and isinstance(other, str):
            raise Refusal(
                f"{value} {sign} {other}: Python computes this before any proxy hears of it. Write the result."
            )
        return self.graph.append("call_function", sign, [value, other], SIGNS[sign])

    def factor(self):
        if not self.next_is("-"):
            return self.methods()
        self.left.pop(0)
        value = self.factor()
        return negative(value) if isinstance(value, str) else self.graph.append("call_function", "neg", [value], "neg")

    def methods(self):
        value = self.primary()
        while self.left and self.left[0][0] == ".":
            name = self.left.pop(0)[1:]
            if name not in METHODS:
                taken = f"Not in this figure. FX takes .{name}() as a call_method, whatever it is. {ALLOWED}"
                raise Refusal(said_in_pytorch(self.text) or taken)
            self.tensor(value)
            args = [value, *self.arguments(METHODS[name])]
            if name.endswith("_"):
                self.written(value)
            value = self.graph.append("call_method", name, args, name)
        return value

    def arguments(self, count):
        self.take("(")
        args = [self.sum() for _ in range(count)]
        self.take(")")
        return args

    def primary(self):
        word = self.left.pop(0) if self.left else self.refuse()
        if word == "(":
            value = self.sum()
            self.take(")")
            return value
        if word[0].isdigit():
            return number(word)
        if word == "self.scale":
            self.scale = self.scale or self.graph.append("get_attr", "scale", [], "scale")
            return self.scale
        if word in ("self.linear", "torch.relu", "torch.relu_"):
            (a,) = self.arguments(1)
            self.tensor(a, f"{word} takes a tensor.")
            if word.endswith("_"):
                self.written(a)
            short = word.split(".")[1]
            op = "call_module" if word == "self.linear" else "call_function"
            return self.graph.append(op, short if op == "call_module" else word, [a], short)
        if word in self.names:
            return self.names[word]
        self.left.insert(0, word)
        return self.refuse()


# ---- what it computes


def checked(values):
    if not all(abs(v) < LARGEST for v in values):  # False of nan, too
        raise Refusal("A number grows beyond 1,000,000,000, or is none: this figure computes with smaller ones.")
    return values


def divided(a, b):
    return a / b if b else math.nan


BINARY = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": divided}
UNARY = {
    "neg": lambda a: 0 - a,
    "exp": lambda a: math.exp(min(a, 50)),
    "relu": lambda a: a if a > 0 else 0.0,
    "tanh": math.tanh,
}


class Failed(Exception):
    """What PyTorch raises when the graph runs."""


def refuse_numbers(args):
    """addcmul takes tensors."""
    for name, a, place in zip(("input", "tensor1", "tensor2"), args, "123"):
        if isinstance(a, str):
            kind = "float" if "." in a else "int"
            raise Failed(f"TypeError: addcmul(): argument '{name}' (position {place}) must be Tensor, not {kind}")


def run_node(node, args):
    """The value of a node. A method with _ writes into its first operand. Raises Failed."""
    if node.target == "torch.addcmul":
        refuse_numbers(node.args)
    if node.op == "call_module":
        return checked([sum(w * v for w, v in zip(row, args[0])) for row in WEIGHT])
    spread = [a if isinstance(a, list) else [a] * 3 for a in args]
    kind = node.target.removeprefix("torch.").rstrip("_")
    if kind == "addcmul":
        result = [c + a * b for c, a, b in zip(*spread)]
    elif kind in UNARY:
        result = [UNARY[kind](a) for a in spread[0]]
    else:
        sign = {"add": "+", "sub": "-", "mul": "*", "div": "/"}.get(kind, kind)
        result = [BINARY[sign](a, b) for a, b in zip(*spread)]
    if node.target.endswith("_"):
        args[0][:] = checked(result)
        return args[0]
    return checked(result)


def run(graph):
    """What the graph returns for the example, and what is in its inputs afterwards."""
    values = {}
    for node in graph.nodes:
        args = [float(a) if isinstance(a, str) else values[a] for a in node.args]
        if node.op == "placeholder":
            values[node] = [*EXAMPLE[node.target]]
        elif node.op == "get_attr":
            values[node] = [*(node.value or SCALE)]
        elif node.op == "output":
            inputs = [values[n] for n in graph.nodes if n.op == "placeholder"]
            return {"value": args[0], "inputs": inputs}
        else:
            values[node] = run_node(node, args)


# ---- passes


def remove_dead_code(graph):
    for node in reversed([*graph.nodes]):
        if node.op not in ("placeholder", "output") and not graph.users(node):
            graph.nodes.remove(node)


def key_of(node):
    args = [float(a) + 0.0 if isinstance(a, str) else a.name for a in node.args]  # -0.0 equals 0
    return repr([node.op, node.target, args])


def merge_equal_nodes(graph):
    known = {}
    for node in [*graph.nodes]:
        if node.op.startswith("call_"):
            first = known.setdefault(key_of(node), node)
            if first is not node:
                graph.replace(node, first)
                graph.nodes.remove(node)


def is_inplace(node):
    return node.op.startswith("call_") and node.target.endswith("_")


def foldable(graph):
    """The nodes whose value follows from parameters and numbers alone, and that nothing writes into."""
    known = []
    for node in graph.nodes:
        users = graph.users(node)
        takes_numbers = node.target != "torch.addcmul" or not any(isinstance(a, str) for a in node.args)
        if node.op in ("placeholder", "output") or is_inplace(node) or not users or not takes_numbers:
            continue
        fixed = all(isinstance(a, str) or a in known for a in node.args)
        if fixed and not any(is_inplace(user) and user.args[0] is node for user in users):
            known.append(node)
    return known


def fold_constants(graph):
    known, values = foldable(graph), {}
    for node in known:
        args = [float(a) if isinstance(a, str) else values[a] for a in node.args]
        values[node] = [*(node.value or SCALE)] if node.op == "get_attr" else run_node(node, args)
    for node in known:
        if node.op != "get_attr" and any(user not in known for user in graph.users(node)):
            folded = graph.make("get_attr", "", [], "folded")
            folded.target, folded.value = folded.name, values[node]
            graph.nodes.insert(graph.nodes.index(node), folded)
            graph.replace(node, folded)
    for node in reversed(known):
        if not graph.users(node):
            graph.nodes.remove(node)


def find_pattern(graph):
    """The pairs (product, sum) of all places like a * b + c. A number fits a, b and c, too; two of them are never one node."""
    found = []
    for node in graph.nodes:
        if node.op == "call_function" and node.target == "+" and isinstance(node.args[0], Node):
            product, rest = node.args
            fits = product.op == "call_function" and product.target == "*" and graph.users(product) == [node]
            parts = [a for a in (product, *product.args, rest) if isinstance(a, Node)]
            if fits and len(set(parts)) == len(parts):
                found.append((product, node))
    return found


def replace_pattern(graph):
    for product, total in find_pattern(graph):
        made = graph.make("call_function", "torch.addcmul", [total.args[1], *product.args], "addcmul")
        users = graph.users(total)
        at = graph.nodes.index(users[0]) if users else graph.nodes.index(total) + 1
        graph.nodes.insert(at, made)
        graph.replace(total, made)
        graph.nodes.remove(total)
        graph.nodes.remove(product)


RUN = {"dead": remove_dead_code, "cse": merge_equal_nodes, "fold": fold_constants, "pattern": replace_pattern}


# ---- the generated code


def name_of(arg):
    return arg if isinstance(arg, str) else arg.name


def body_of(node):
    args = [name_of(a) for a in node.args]
    if node.op == "output":
        return f"return {args[0]}"
    if node.op == "call_method":
        right = f"{args[0]}.{node.target}({', '.join(args[1:])})"
    elif node.target == "neg":
        right = f"-{args[0]}"
    elif node.op == "call_function":
        infix = node.target in SIGNS
        right = f"{args[0]} {node.target} {args[1]}" if infix else f"{node.target}({', '.join(args)})"
    else:
        right = f"self.{node.target}" + (f"({args[0]})" if node.op == "call_module" else "")
    return f"{node.name} = {right}"


def code_of(graph):
    """{name of a node: its line}, with the values that go behind their last use."""
    freed, seen = {}, set()
    for node in reversed(graph.nodes):
        last = [a for a in dict.fromkeys(node.args) if not isinstance(a, str) and a not in seen]
        seen.update(last)
        freed[node] = [*last, *([] if node in seen else [node])]
    lines = {}
    for node in graph.nodes:
        if node.op != "placeholder":
            names = "".join(f"{n.name} = " for n in freed[node])
            lines[node.name] = body_of(node) + (f";  {names}None" if freed[node] and node.op != "output" else "")
    return lines


# ---- what there is to see


def drawn(node, state):
    args = [{"node": a.name} if isinstance(a, Node) else {"number": a} for a in node.args]
    return {"name": node.name, "op": node.op, "target": node.target, "args": args, "state": state}


def merged(before, after, old):
    """The nodes before and after a pass in one list: what has gone stays in its place, marked. old: names to bodies."""
    rest, rows = [*after], []
    kept = {node.name for node in after}
    for was in before:
        if was["name"] not in kept:
            rows.append({**was, "state": "gone"})
            continue
        while rest and rest[0].name != was["name"] and rest[0].name not in old:
            rows.append(drawn(rest.pop(0), "new"))
        if rest and rest[0].name == was["name"]:
            node = rest.pop(0)
            rows.append(drawn(node, "" if body_of(node) == old[node.name] else "changed"))
    return rows + [drawn(node, "new") for node in rest]


def count_text(n):
    return f"{n} node{'' if n == 1 else 's'}"


def verdict(now, wanted):
    if "error" in now:
        return "fails"
    if close(now["value"], wanted["value"]):
        same = all(map(close, now["inputs"], wanted["inputs"]))
        return "right" if same else "inputs"
    return "wrong"


def close(a, b):
    return all(abs(p - q) < 1e-6 * max(1, abs(p), abs(q)) for p, q in zip(a, b))


def outcome(graph):
    """What it returns, or how it fails."""
    try:
        return run(graph)
    except Failed as error:
        return {"error": str(error)}


VERDICTS = {
    "fails": "{error}. The pattern fits numbers, too, and its replacement does not take them: this graph cannot run.",
    "right": "It still returns {value}.",
    "inputs": "It returns {value}, as the program does, but leaves other values in its inputs: a caller would see that.",
    "wrong": "It returns {value}, and the program {wanted}: this graph is wrong.",
}


def model(inputs):
    graph = Tracer(inputs["program"]).graph
    wanted, traced = run(Tracer(inputs["program"], eager=True).graph), run(graph)
    text = lambda values: array_text({"shape": [3], "values": values})
    rows = [drawn(node, "") for node in graph.nodes]
    steps = [{"title": "traced", "nodes": rows, "code": code_of(graph), "verdict": verdict(traced, wanted)}]
    values = {"value": text(traced["value"]), "wanted": text(wanted["value"])}
    ending = (VERDICTS | {"right": "It returns {value}."})[steps[0]["verdict"]].format(**values)
    say = [f"The program as traced: {count_text(len(graph.nodes))}. {ending}"]
    for kind in (inputs[slot] for slot in SLOTS):
        if not kind:
            continue
        before = [row for row in steps[-1]["nodes"] if row["state"] != "gone"]
        old = {node.name: body_of(node) for node in graph.nodes}
        RUN[kind](graph)
        now = outcome(graph)
        judged = verdict(now, wanted)
        rows = merged(before, graph.nodes, old)
        steps.append({"title": PASSES[kind], "nodes": rows, "code": code_of(graph), "verdict": judged})
        value = text(now["value"]) if "value" in now else ""
        ending = VERDICTS[judged].format(value=value, wanted=text(wanted["value"]), error=now.get("error"))
        if steps[-1]["code"] == steps[-2]["code"]:
            ending = f"It found nothing. {ending}"
        say.append(f"After {PASSES[kind]}: {count_text(len(graph.nodes))}, before it {len(before)}. {ending}")
    return {"steps": steps, "say": say}


def picture(result, step):
    nodes = result["steps"][step]["nodes"]
    places = {node["name"]: i for i, node in enumerate(nodes)}
    edges = [(places[a["node"]], i) for i, node in enumerate(nodes) for a in node["args"] if a.get("node") in places]
    layout = layered_layout([(node["name"],) for node in nodes], sorted(set(edges)))
    parts = [tag("path", d="M" + " L".join(f"{x},{y}" for x, y in path), class_="bare") for path in layout.paths]
    shades = {"": "plain", "new": "pick", "changed": "pale", "gone": "free"}
    for node, (x, y, width, height, _) in zip(nodes, layout.boxes):
        parts.append(box(x - width / 2, y - height / 2, width, height, shades[node["state"]], node["name"]))
    return drawing(layout.width, layout.height, *parts)


# ---- random programs


def random_tree(random, names, depth=0):
    kind = random.random()
    if kind > 0.95:
        return f"-{random_tree(random, names, depth + 1)}"
    if depth > 2 or kind < 0.25:
        return random.choice([*names, "self.scale"])
    inner = random_tree(random, names, depth + 1)
    if kind < 0.65:
        other = random.choice(["2", "0.5", "-2", *[random_tree(random, names, depth + 1)] * 5])
        return f"({inner} {random.choice('++**-')} {other})"
    return random.choice([f"{inner}.relu()", f"{inner}.tanh()", f"torch.relu({inner})", f"torch.relu_({inner})", f"self.linear({inner})", f"{inner}.mul(2)", f"{inner}.exp()"])  # fmt: skip


def sample(random):
    """A program of a few statements, most of which can be run."""
    names, lines = ["x", "y"], []
    for _ in range(random.randint(0, 4)):
        if random.random() < 0.15:
            lines.append(f"{random.choice(names)}.{random.choice(['add_(1)', 'mul_(y)', 'relu_()'])}")
        elif random.random() < 0.2:
            lines.append(f"{random.choice(names)} {random.choice('+-*')}= {random_tree(random, names)}")
        else:
            name = random.choice("abcd")
            lines.append(f"{name} = {random_tree(random, names)}")
            names.append(name)
    passes = {slot: random.choice([*PASSES]) for slot in SLOTS}
    return {"program": "; ".join([*lines, f"return {random_tree(random, names)} + {random.choice(names)}"]), **passes}


FIGURE = Figure(
    name="fx_passes",
    title="A program, its graph, and passes over it",
    inputs=(
        Expression("program", "program", FIRST, longest=300, examples=EXAMPLES, statements=True),
        Choice("first", "first pass", "dead", options=PASSES),
        Choice("second", "second", "cse", options=PASSES),
        Choice("third", "third", "pattern", options=PASSES),
    ),
    model=model,
    picture=picture,
    helpers=("_layered", "_pass_bar", "models/broadcasting", "models/graph_programs"),
    sample=sample,
)
