"""What becomes of a parameter: new objects, shared memory, counters, and who notices (the chapter "Parameter and Buffer").

In PyTorch: `torch/nn/parameter.py`, `torch/csrc/autograd/python_variable.cpp`, `csrc/autograd/saved_variable.cpp`.
`tests/viz/test_parameter_kinds.py` runs random programs with PyTorch.
"""

import itertools
import re
from dataclasses import dataclass

from readtorch.viz.broadcasting import Error, lines_that_run
from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Expression, Refusal
from readtorch.viz.picture import drawing, text

LONGEST = 10  # lines
LARGEST, FINEST = 8192, 1024  # multiples of 1 / FINEST up to LARGEST are exact in float32, in both languages
BEGIN = "loss = (net.weight * net.weight).sum(); "
END = "; loss.backward(); opt.step()"
EXAMPLES = (
    BEGIN + "net.weight.data.mul_(0.5)" + END,
    BEGIN + "with torch.no_grad(): net.weight.mul_(0.5)" + END,
    BEGIN + "net.weight.data = net.weight * 0.5" + END,
    BEGIN + "net.weight = torch.nn.Parameter(net.weight * 0.5)" + END,
    BEGIN + "v = net.weight.detach(); v.mul_(0.5)" + END,
    "v = net.weight.float(); v = net.weight.double(); v = copy.deepcopy(net.weight); net.double()",
)
ALLOWED = (
    "Allowed: v = … and net.weight = … of names, net.weight, torch.nn.Parameter(…), copy.copy(…), copy.deepcopy(…), .detach(), "
    ".data, .clone(), .double(), .float() and * 0.5; v.data = …; v.mul_(2); v *= 2; with torch.no_grad(): before any of these; loss = (v * v).sum(); "
    "loss.backward(); opt.step(); opt.zero_grad(); net.double(); net.float(); opt = torch.optim.SGD(net.parameters(), lr=0.5)."
)
LEAF = "a leaf Variable that requires grad is being used in an in-place operation."
NO_GRAPH = "element 0 of tensors does not require grad and does not have a grad_fn"
TWICE = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)
CHANGED = "one of the variables needed for gradient computation has been modified by an inplace operation"
HINT = (
    "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
    "torch.autograd.set_detect_anomaly(True, check_nan=False)."
)
NO_COPY = (
    "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you were "
    "attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
    "https://github.com/pytorch/pytorch/pull/103001"
)


# ---- tensors


@dataclass(eq=False)
class Memory:
    values: list
    double: bool = False

    def copy(self):
        return Memory([*self.values], self.double)


@dataclass(eq=False)
class History:
    """How a result depends on a leaf: all operations here are linear. name: of its node. double: of the leaf, when its
    AccumulateGrad was made, to which gradients are cast. products: the nodes behind it that save something, each with the losses
    whose backward has freed it."""

    leaf: object
    factor: float
    name: str
    double: bool
    products: tuple = ()

    def times(self, factor, name):
        products = (*self.products, []) if name == "MulBackward0" else self.products
        return History(self.leaf, self.factor * factor, name, self.double, products)


@dataclass(eq=False)
class Tensor:
    memory: Memory
    counter: list  # of writes: one number, in a list of its own or shared
    parameter: bool = False
    history: History | None = None
    plain_leaf: bool = False  # no parameter, and requires a gradient all the same
    grad: object = None

    @property
    def requires_grad(self):
        return self.parameter or self.plain_leaf or self.history is not None

    @property
    def kind(self):
        return "Parameter" if self.parameter else "Tensor"

    def path(self):
        """Where a gradient of it goes."""
        return self.history or History(self, 1, "", self.memory.double)


@dataclass(eq=False)
class Loss:
    """(t * t).sum(): the product has saved t, at a version; wanted: the gradient that would be right."""

    t: Tensor
    version: int
    path: History | None
    wanted: list
    freed: bool = False


# ---- the program as text

NUMBER = r"-?(?:\d|\d\.5|\.5)(?![\d.])"
NAME = r"(?!(?:net|opt|loss|torch|copy|with)\b)[a-z][a-z0-9_]{0,9}"
SUFFIX = re.compile(r"\.(detach|clone|double|float)\(\)|\.(data)\b")
TIMES = re.compile(rf"\*({NUMBER})")
FIXED = {
    "loss.backward()": "backward",
    "opt.step()": "step",
    "opt.zero_grad()": "zero_grad",
    "net.double()": "double",
    "net.float()": "float",
    "opt=torch.optim.SGD(net.parameters(),lr=0.5)": "optimizer",
}


class Parser:
    """Reads one line. A tree is a tuple: its kind, and its parts."""

    def __init__(self, line, at):
        self.at = at
        self.guarded = line.startswith("with torch.no_grad():")
        self.text = line.removeprefix("with torch.no_grad():").replace(" ", "")

    def refuse(self, what=None):
        what = what or self.text
        raise Refusal(f"Line {self.at + 1}, not known here: {what[:24]}. {ALLOWED}")

    def statement(self):
        line = self.text
        if line in FIXED:
            return (FIXED[line],)
        if match := re.fullmatch(r"loss=\((.+)\)\.sum\(\)", line):
            half, star, other = match[1].partition("*")
            if half != other:
                self.refuse(match[1])
            return ("loss", self.whole(half))
        if match := re.fullmatch(rf"(.+)\.mul_\(({NUMBER})\)", line):
            written = self.whole(match[1])
            if written[0] == "times":
                self.refuse()
            return ("mul", written, float(match[2]), match[1])
        if match := re.fullmatch(rf"({NAME}|net\.weight)\*=({NUMBER})", line):
            return ("imul", match[1], float(match[2]))
        if match := re.fullmatch(rf"({NAME}|net\.weight)\.data=(.+)", line):
            return ("data", match[1], self.whole(match[2]))
        if match := re.fullmatch(rf"({NAME}|net\.weight)=(.+)", line):
            return ("set", match[1], self.whole(match[2]))
        return self.refuse()

    def whole(self, words):
        tree, rest = self.tree(words)
        if rest:
            self.refuse(rest)
        return tree

    def tree(self, words):
        """The tree of an expression, and what is left of the text."""
        for function in ("torch.nn.Parameter", "copy.copy", "copy.deepcopy"):
            if words.startswith(f"{function}("):
                inner, rest = self.tree(words[len(function) + 1 :])
                if not rest.startswith(")"):
                    self.refuse(rest or words)
                return self.suffixes((function, inner), rest[1:])
        match = re.match(rf"net\.weight\b|{NAME}", words)
        if not match:
            self.refuse(words)
        return self.suffixes(("name", match[0]), words[match.end() :])

    @staticmethod
    def suffixes(tree, rest):
        while match := SUFFIX.match(rest):
            tree, rest = (match[1] or match[2], tree), rest[match.end() :]
        while match := TIMES.match(rest):
            tree, rest = ("times", tree, float(match[1])), rest[match.end() :]
        return tree, rest


# ---- running it


def scaled(values, factor):
    made = [value * factor for value in values]
    if any(abs(value) > LARGEST or value * FINEST % 1 for value in made):
        raise Refusal("This figure draws multiples of 1/1,024 up to 8,192: a number leaves them.")
    return made


class Machine:
    def __init__(self):
        weight = Tensor(Memory([2.0, 4.0]), [0], parameter=True)
        self.names = {"net.weight": weight}
        self.held = [weight]  # by the optimizer
        self.loss = None
        self.recording = True
        self.known = [weight]  # every tensor that was ever seen, in order: their numbers
        self.memories = [weight.memory]
        self.steps, self.say = [], []

    # ---- expressions

    def value(self, tree):
        kind = tree[0]
        if kind == "name":
            if tree[1] not in self.names:
                raise Error(f"name '{tree[1]}' is not defined", "NameError")
            return self.names[tree[1]]
        t = self.value(tree[1])
        memory = t.memory
        if kind == "torch.nn.Parameter":
            return Tensor(memory, t.counter, parameter=True)
        if kind == "copy.deepcopy":
            if t.history:
                raise Error(NO_COPY)
            copied = self.copied(t, memory.copy())
            if t.grad and not t.parameter:  # Parameter.__deepcopy__ leaves the gradient behind
                copied.grad = Tensor(t.grad.memory.copy(), [0])
            return copied
        if kind == "copy.copy":
            return self.copied(t, memory)
        if kind == "detach":
            return Tensor(memory, t.counter)
        if kind == "data":
            return Tensor(memory, [0])
        if kind in ("double", "float"):
            double = kind == "double"
            return t if double == memory.double else self.result(t, [*memory.values], 1, "ToCopyBackward0", double)
        if kind == "clone":
            return self.result(t, [*memory.values], 1, "CloneBackward0", memory.double)
        return self.result(t, scaled(memory.values, tree[2]), tree[2], "MulBackward0", memory.double)

    @staticmethod
    def copied(t, memory):
        counter = [0 if t.parameter else 1]  # a plain tensor's copy is filled by set_, which counts
        return Tensor(memory, counter, t.parameter, plain_leaf=t.requires_grad and not t.parameter)

    def result(self, t, values, factor, name, double):
        history = t.path().times(factor, name) if self.recording and t.requires_grad else None
        return Tensor(Memory(values, double), [0], history=history)

    # ---- lines

    def run(self, statement):
        """Do a line. Returns what happened, as a sentence. Raises Error."""
        kind, *parts = statement
        return getattr(self, f"do_{kind}")(*parts)

    def do_set(self, name, tree):
        t = self.value(tree)
        if name == "net.weight":
            return self.assign_weight(t)
        others = [other for other, one in self.names.items() if one is t and other != name]
        self.names[name] = t
        if others:
            return f"{name} is {others[0]} itself: one object, two names."
        source = self.value(tree[1]) if tree[0] in ("torch.nn.Parameter", "copy.copy", "detach", "data") else None
        if source and source.memory is t.memory:
            counter = "and counter" if t.counter is source.counter else "with a counter of its own"
            shared = f"over the same memory {counter}"
        else:
            shared = "with memory of its own"
        return f"{name} is a new object of the class {t.kind}, {shared}; {self.autograd(t)}."

    def assign_weight(self, t):
        if not t.parameter:
            name = "torch.DoubleTensor" if t.memory.double else "torch.FloatTensor"
            raise Error(
                f"cannot assign '{name}' as parameter 'weight' (torch.nn.Parameter or None expected)", "TypeError"
            )
        self.names["net.weight"] = t
        if any(one is t for one in self.held):
            return "The module files it. It is the object that the optimizer holds."
        return "The module files it. The optimizer does not notice: it still holds the old object."

    def do_data(self, name, tree):
        t, source = self.value(("name", name)), self.value(tree)
        t.memory = source.memory
        words = f"{name} is the same object, still at version {t.counter[0]}, over other memory."
        if self.waits_for(t):
            words += " The loss has saved this object: it will compute with the new numbers, and not notice."
        return words

    def do_mul(self, tree, factor, name):
        t = self.value(tree)
        if self.recording and t.requires_grad and not t.history:
            raise Error(LEAF)
        memory = t.memory
        memory.values[:] = scaled(memory.values, factor)
        t.counter[0] += 1
        if self.recording and t.history:
            t.history = t.history.times(factor, "MulBackward0")
        words = f"{name} is written: version {t.counter[0]}."
        saved = self.loss and not self.loss.freed and self.loss.path and self.loss.t
        if saved and saved.memory is memory:
            counted = saved.counter is t.counter
            words += (
                " The loss has saved this memory, and will notice."
                if counted
                else " The loss has saved this memory, and will not notice: it looks at another counter."
            )
        return words

    def do_imul(self, name, factor):
        words = self.do_mul(("name", name), factor, name)
        return f"{words} Then the module files the same object again." if name == "net.weight" else words

    def do_loss(self, tree):
        t = self.value(tree)
        path = t.path() if self.recording and t.requires_grad else None
        wanted = scaled(t.memory.values, 2 * path.factor) if path else []
        self.loss = Loss(t, t.counter[0], path, wanted)
        if not path:
            return "Nothing here requires a gradient: the loss has no graph."
        return f"The product saves {self.name_of(t)} at version {t.counter[0]}, for backward."

    def do_backward(self):
        loss = self.loss
        if loss is None:
            raise Error("name 'loss' is not defined", "NameError")
        if not loss.path:
            raise Error(NO_GRAPH)
        if loss.freed:
            raise Error(TWICE)
        t, leaf = loss.t, loss.path.leaf
        if t.counter[0] != loss.version:
            raise Error(
                f"{CHANGED}: {self.saved_as(loss)} is at version {t.counter[0]}; expected version {loss.version} instead. {HINT}"
            )
        gradient = scaled(t.memory.values, 2 * loss.path.factor)
        loss.freed = True
        for freed in reversed(loss.path.products):
            if freed:
                raise Error(TWICE)
            freed.append(loss)
        self.accumulate(leaf, gradient, loss.path.double)
        words = f"{numbers(gradient)} goes to the .grad of {self.name_of(leaf)}."
        if self.other_dtype(leaf):
            words += f" It is {dtype(leaf.grad)}, and the leaf is {dtype(leaf)} by now."
        if gradient != loss.wanted:
            words += f" When the loss was computed, {numbers(loss.wanted)} was right: a wrong gradient, and no error."
        return words

    def saved_as(self, loss):
        kind = "Double" if loss.t.memory.double else "Float"
        history = loss.t.history  # as it is now: not what it was when the loss was computed
        made = f", which is output 0 of {history.name.removesuffix('Backward0')}," if history else ""
        return f"[torch.{kind}Tensor [2]]{made}"

    @staticmethod
    def accumulate(leaf, gradient, double):
        if leaf.grad:  # written in place: it keeps its dtype
            gradient = [a + b for a, b in zip(leaf.grad.memory.values, gradient)]
            double = leaf.grad.memory.double
        leaf.grad = Tensor(Memory(gradient, double), [0])

    @staticmethod
    def other_dtype(leaf):
        return leaf.grad and leaf.grad.memory.double != leaf.memory.double

    def do_step(self):
        moved = [p for p in self.held if p.grad]
        if not moved:
            return "The optimizer finds no .grad: nothing moves."
        for p in moved:
            steps = scaled(p.grad.memory.values, 0.5)
            p.memory.values[:] = scaled([value - step for value, step in zip(p.memory.values, steps)], 1)
            p.counter[0] += 1
        words, weight = "The optimizer steps the object that it holds.", self.names["net.weight"]
        if any(p is weight for p in moved):
            return words
        if not any(p.memory is weight.memory for p in moved):
            return f"{words} The weight of the module is another one, and stays."
        without = "" if weight.grad else ", without a .grad"
        return f"{words} The weight of the module is another one over the same memory: it moves{without}."

    def do_double(self, double=True):
        p = self.names["net.weight"]
        kind = "double" if double else "float"
        others = [t for t in (p, p.grad) if t and t.memory.double != double]
        if not others:
            return f"Everything is {kind} already."
        for t in others:
            t.memory = Memory([*t.memory.values], double)
        if p not in others:
            return f"The weight is {kind} already; its .grad was not, and is now."
        words = f"net.weight.data = net.weight.{kind}(), within _apply: the same object, over other memory."
        if any(p is one for one in self.held):
            words += " The optimizer still holds it."
        return words

    def do_float(self):
        return self.do_double(False)

    def do_zero_grad(self):
        for p in self.held:
            p.grad = None
        return "The .grad of what the optimizer holds is None again."

    def do_optimizer(self):
        self.held = [self.names["net.weight"]]
        return "A new optimizer, which holds the weight that the module has now."

    # ---- what there is to see

    def waits_for(self, t):
        """Whether a loss waits for its backward that has saved `t`."""
        return bool(self.loss and self.loss.path and not self.loss.freed and self.loss.t is t)

    def name_of(self, t):
        unnamed = "the object that opt holds" if any(one is t for one in self.held) else "an object without a name"
        return next((name for name, one in self.names.items() if one is t), unnamed)

    @staticmethod
    def autograd(t):
        if t.history:
            return f"it has a history, {t.history.name}"
        return "a leaf that requires grad" if t.requires_grad else "it requires no grad"

    def see(self, sentence, line, error=False):
        self.say.append(sentence)
        rows = [row for t in self.alive() if (row := self.row(t))["holders"]]
        self.steps.append({"line": line, "error": error, "rows": rows})

    def alive(self):
        for t in [*self.names.values(), *([self.loss.t] if self.loss else [])]:
            if not any(t is one for one in self.known):
                self.known.append(t)
        return self.known

    def row(self, t):
        if not any(t.memory is one for one in self.memories):
            self.memories.append(t.memory)
        holders = [name for name, one in self.names.items() if one is t]
        if any(t is one for one in self.held):
            holders.append("opt")
        if self.waits_for(t):
            holders.append(f"loss, at version {self.loss.version}")
        return {
            "number": next(i for i, one in enumerate(self.known) if one is t) + 1,
            "kind": t.kind,
            "holders": holders,
            "memory": next(i for i, one in enumerate(self.memories) if one is t.memory) + 1,
            "version": t.counter[0],
            "graph": t.history.name if t.history else "leaf" if t.requires_grad else "",
            "values": numbers(t.memory.values),
            "dtype": dtype(t),
            "grad": numbers(t.grad.memory.values) if t.grad else "",
            "grad_dtype": dtype(t.grad) if self.other_dtype(t) else "",
        }


def dtype(t):
    return "float64" if t.memory.double else "float32"


def number_text(x):
    """In the same letters as JavaScript's."""
    x += 0.0
    return str(int(x)) if x == int(x) else repr(x)


def numbers(values):
    return f"[{', '.join(number_text(x) for x in values)}]"


def model(inputs):
    lines = [line.strip(" ") for line in inputs["program"].split(";") if line.strip(" ")]
    if len(lines) > LONGEST:
        raise Refusal(f"A program has at most {LONGEST} lines.")
    parsers = [Parser(line, at) for at, line in enumerate(lines)]
    statements = [parser.statement() for parser in parsers]
    machine = Machine()
    machine.see("A module net with a weight, and an optimizer opt that holds it. Both hold one object.", -1)
    failed = False
    for at, (parser, statement) in enumerate(zip(parsers, statements)):
        machine.recording = not parser.guarded
        try:
            sentence = machine.run(statement)
        except Error as error:
            rest = " What follows is not run." if at + 1 < len(lines) else ""
            machine.see(f"{error}{'' if str(error).endswith('.') else '.'}{rest}", at, True)
            failed = True
            break
        machine.see(sentence, at)
    return {"lines": lines, "steps": machine.steps, "say": machine.say, "failed": failed}


HEAD = ("object", "held by", "memory", "version", "autograd", "values", ".grad")


def picture(result, step):
    rows = [(f"{r['number']} {r['kind']}", ", ".join(r["holders"]), f"M{r['memory']}", f"v{r['version']}", r["graph"], r["values"], r["grad"]) for r in result["steps"][step]["rows"]]  # fmt: skip
    places = (10, 110, 330, 390, 450, 560, 650)
    parts = [text(word, x, 20, "dim") for word, x in zip(HEAD, places)]
    for i, row in enumerate(rows):
        parts += [text(word, x, 44 + 22 * i, "mono") for word, x in zip(row, places) if word]
    return drawing(740, 40 + 22 * len(rows), *parts)


# ---- random programs


def random_tree(random, names, depth=0):
    if depth > 2 or random.random() < 0.3:
        return random.choice(names)
    inner = random_tree(random, names, depth + 1)
    if "*" in inner[-5:]:
        inner = f"copy.copy({inner})" if random.random() < 0.1 else f"torch.nn.Parameter({inner})"
    kind = random.choice(["torch.nn.Parameter({})", "copy.copy({})", "copy.deepcopy({})", "{}.detach()", "{}.data", "{}.clone()", "{}.double()", "{}.float()", "{} * 0.5", "{} * 2", "{} * -3"])  # fmt: skip
    return kind.format(inner)


def random_line(random, names):
    name, tree = random.choice(names), random_tree(random, names)
    guard = random.choice(["", "", "with torch.no_grad(): "])
    kinds = [
        f"{guard}{random.choice('uvw')} = {tree}", f"{guard}{random.choice('uvw')} = {tree}", f"net.weight = {tree}",
        f"net.weight = torch.nn.Parameter({tree})", f"{name}.data = {tree}", f"{guard}{name}.mul_({random.choice(['2', '0.5', '-1'])})",
        f"{guard}{tree}.mul_(2)", f"{guard}{name} *= 2", f"{guard}loss = ({name} * {name}).sum()", f"loss = ({name} * {name}).sum()", "loss.backward()",
        "loss.backward()", "opt.step()", "opt.step()", "opt.zero_grad()", "net.double()", "net.float()",
        "opt = torch.optim.SGD(net.parameters(), lr=0.5)",
    ]  # fmt: skip
    return random.choice(kinds)


def sample(random):
    """A program of lines of which all, or all but the last, can be run."""
    machine = Machine()

    def run(line):
        parser = Parser(line, 0)
        statement = parser.statement()
        machine.recording = not parser.guarded
        machine.run(statement)

    draws = random.randint(3, 40)
    lines = lines_that_run(random, (random_line(random, list(machine.names)) for _ in range(draws)), run)
    return {"program": "; ".join(itertools.islice(lines, LONGEST))}


FIGURE = Figure(
    name="parameter_kinds",
    title="A weight, and who notices",
    inputs=(Expression("program", "program", EXAMPLES[0], longest=700, examples=EXAMPLES),),
    model=model,
    picture=picture,
    helpers=("models/broadcasting",),
    sample=sample,
)
