"""Which calls of a short program pass the two places where modes stand (the chapter "Modes, subclasses, fake tensors").

In PyTorch: `torch/overrides.py`, `aten/src/ATen/core/PythonFallbackKernel.cpp`. `tests/viz/test_mode_stack.py` runs random
programs under such modes with PyTorch.
"""

import re
from dataclasses import dataclass

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Expression, Refusal
from readtorch.viz.picture import box, drawing, text

FIRST = "net(x).relu().sum().backward()"
SLOTS = ["outer", "middle", "inner"]
MODES = {
    "": "no mode",
    "function print": "function mode: prints",
    "function swap": "function mode: relu → gelu",
    "dispatch print": "dispatch mode: prints",
    "dispatch swap": "dispatch mode: relu → gelu",
    "dispatch zero": "dispatch mode: adds 0",
}
AROUND = {"": "grad mode", "no_grad": "no_grad()", "inference_mode": "inference_mode()"}
KINDS = {
    "": "a tensor",
    "grad": "one that requires grad",
    "subclass": "of class Named(Tensor)",
    "wrapper": "a wrapper subclass",
}
PLACES = ["functions", "Autograd", "dispatch", "kernel"]
FUNCTION, AUTOGRAD, PYTHON, KERNEL = range(4)
LONGEST = 8  # calls behind the first tensor
NO_GRAPH = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
NO_SCALAR = "RuntimeError: grad can be implicitly created only for scalar outputs"


@dataclass
class Call:
    """A function of the program: its name in Python, the operator that it calls, what this is made of, and its derivative."""

    function: str
    operator: str
    part: str = ""  # of a composite: the operator that does the work
    node: str = ""
    saves_result: bool = False
    backward: tuple = ()  # the operators that the node calls


CALLS = {
    "relu()": Call("torch.Tensor.relu", "relu.default", "", "ReluBackward0", True, ("threshold_backward.default",)),
    "exp()": Call("torch.Tensor.exp", "exp.default", "", "ExpBackward0", True, ("mul.Tensor",)),
    "tanh()": Call("torch.Tensor.tanh", "tanh.default", "", "TanhBackward0", True, ("tanh_backward.default",)),
    "sigmoid()": Call(
        "torch.Tensor.sigmoid", "sigmoid.default", "", "SigmoidBackward0", True, ("sigmoid_backward.default",)
    ),
    "abs()": Call("torch.Tensor.abs", "abs.default", "", "AbsBackward0", False, ("sgn.default", "mul.Tensor")),
    "neg()": Call("torch.Tensor.neg", "neg.default", "", "NegBackward0", False, ("neg.default",)),
    "square()": Call(
        "torch.Tensor.square", "square.default", "pow.Tensor_Scalar", "PowBackward0", False,
        ("pow.Tensor_Scalar", "mul.Scalar", "mul.Tensor"),
    ),
    "softmax(-1)": Call(
        "torch.Tensor.softmax", "softmax.int", "_softmax.default", "SoftmaxBackward0", True,
        ("_softmax_backward_data.default",),
    ),
    "log_softmax(-1)": Call(
        "torch.Tensor.log_softmax", "log_softmax.int", "_log_softmax.default", "LogSoftmaxBackward0", True,
        ("_log_softmax_backward_data.default",),
    ),
    "t()": Call("torch.Tensor.t", "t.default", "", "TBackward0", False, ("t.default",)),
    "clone()": Call("torch.Tensor.clone", "clone.default", "", "CloneBackward0"),
    "detach()": Call("torch.Tensor.detach", "detach.default"),
    "sum(0)": Call("torch.Tensor.sum", "sum.dim_IntList", "", "SumBackward1", False, ("unsqueeze.default", "expand.default")),
    "sum()": Call("torch.Tensor.sum", "sum.default", "", "SumBackward0", False, ("expand.default",)),
    "mean()": Call("torch.Tensor.mean", "mean.default", "", "MeanBackward0", False, ("expand.default", "div.Scalar")),
}  # fmt: skip
BINARY = {
    "add": Call("torch.Tensor.add", "add.Tensor", "", "AddBackward0"),
    "sub": Call("torch.Tensor.sub", "sub.Tensor", "", "SubBackward0"),
    "mul": Call("torch.Tensor.mul", "mul.Tensor", "", "MulBackward0", False, ("mul.Tensor",)),
    "div": Call("torch.Tensor.div", "div.Tensor", "", "DivBackward0", False, ("div.Tensor",)),
}
SIGNS = {"+": "add", "-": "sub", "*": "mul", "/": "div"}
ONES = {"torch.ones(2)": 1, "torch.ones(2,2)": 2}  # and their dimensions
GELU = Call("torch.nn.functional.gelu", "gelu.default", "", "GeluBackward0", False, ("gelu_backward.default",))


def linear_backward(x_requires_grad):
    """The nodes of net(x) in backward, and the operators that each calls."""
    of_x = ("t.default", "mm.default") if x_requires_grad else ()
    accumulate = ("AccumulateGrad", ("detach.default",))
    return [
        ("AddmmBackward0", (*of_x, "t.default", "mm.default", "t.default", "sum.dim_IntList", "view.default")),
        *[accumulate] * (2 if x_requires_grad else 1),
        ("TBackward0", ("t.default",)),
        accumulate,
    ]


def an(name):
    return f"an {name}" if name[0] in "AEIOU" else f"a {name}"


class Run:
    """A run of the program: what has happened, the modes that are entered, and the tensor that the last call returned."""

    def __init__(self, inputs):
        modes = [(slot, inputs[slot]) for slot in SLOTS if inputs[slot]]
        self.functions = [(slot, mode) for slot, mode in modes if mode.startswith("function")]
        self.dispatches = [(slot, mode) for slot, mode in modes if mode.startswith("dispatch")]
        self.around = inputs["around"]
        self.x = inputs["x"]
        self.kind = ""  # of the tensor: "subclass" or "wrapper" if it is of that class
        self.requires_grad = False
        self.dimensions = 2
        self.leaves = []  # the nodes where its graph begins, in the order in which backward runs them
        self.nodes = []  # the others, in the order of forward
        self.events = []  # (place, who, what), and a sentence
        self.swapped_below = False
        self.has_gradient = False

    def event(self, place, who, what, say):
        self.events.append({"place": place, "who": who, "what": what, "say": say})

    def function(self, name, kind=None, modes=None):
        """A call of the function `name` with a tensor of this kind, which `modes` may still see. Returns the name of the function that was run."""
        kind = self.kind if kind is None else kind
        modes = self.functions if modes is None else modes
        if not modes:
            if kind == "subclass":
                say = f"Named inherits Tensor.__torch_function__: this calls {name} with the methods of subclasses disabled, and makes a Named of a tensor that comes back."
                self.event(FUNCTION, "class", name, say)
            return name
        slot, mode = modes[-1]
        if mode == "function swap" and name == "torch.Tensor.relu":
            self.event(FUNCTION, slot, name, f"The {slot} mode sees {name} and calls {GELU.function} instead.")
            name = GELU.function
        else:
            self.event(FUNCTION, slot, name, f"The {slot} mode sees {name} and calls it.")
        return self.function(name, kind, modes[:-1])

    def dispatch(self, operator, kind=None, modes=None):
        """A call of `operator` below Autograd with a tensor of this kind, which `modes` may still see."""
        kind = self.kind if kind is None else kind
        modes = self.dispatches if modes is None else modes
        if not modes:
            if kind == "wrapper":
                say = f"The wrapper's class sees aten.{operator} and calls it with the tensors inside the wrappers."
                self.event(PYTHON, "class", operator, say)
            self.event(KERNEL, "", operator, f"The kernel of aten.{operator} for the CPU runs.")
            return
        (slot, mode), rest = modes[-1], modes[:-1]
        if mode == "dispatch swap" and operator == "relu.default":
            self.swapped_below = True
            say = f"The {slot} mode sees aten.{operator} and calls aten.{GELU.operator} instead."
            self.event(PYTHON, slot, operator, say)
            self.dispatch(GELU.operator, kind, rest)
            return
        self.event(PYTHON, slot, operator, f"The {slot} mode sees aten.{operator} and calls it.")
        self.dispatch(operator, kind, rest)
        if mode == "dispatch zero":
            self.dispatch("add.Tensor", kind, rest)

    def composite(self, operator, parts):
        say = f"aten.{operator} is composite: its kernel here calls {parts}."
        self.event(AUTOGRAD, "", operator, say)

    def makes(self, operator, node):
        self.event(AUTOGRAD, "", node, f"Autograd's kernel of aten.{operator} makes {an(node)}.")

    def begin(self, tensor):
        """The first tensor of the program."""
        if tensor in ONES:
            self.ones(tensor)
            self.dimensions = ONES[tensor]
            return
        self.kind = self.x if self.x in ("subclass", "wrapper") else ""
        self.requires_grad = self.x == "grad"
        if self.requires_grad:
            self.leaves = [("AccumulateGrad", ("detach.default",))]
        if tensor == "net(x)":
            self.linear()

    def ones(self, tensor):
        self.function("torch.ones", "")
        self.dispatch("ones.default", "")

    def linear(self):
        self.function("torch.nn.functional.linear")
        if self.around == "inference_mode":
            self.requires_grad = False
            self.dispatch("linear.default")
            return
        self.composite("linear.default", "aten.t and aten.addmm")
        self.leaves = linear_backward(self.requires_grad)
        self.requires_grad = not self.around
        for operator, node, kind in (("t.default", "TBackward0", ""), ("addmm.default", "AddmmBackward0", self.kind)):
            if self.requires_grad:
                self.makes(operator, node)
            self.dispatch(operator, kind)
        self.as_named()

    def as_named(self):
        """Where Tensor.__torch_function__ makes a Named of what has come back."""
        if self.kind == "subclass" and self.requires_grad:
            say = "Tensor.__torch_function__ makes a Named of the result. It shares its elements, and this makes an AliasBackward0."
            self.event(AUTOGRAD, "", "AliasBackward0", say)
            self.nodes.append(("AliasBackward0", ()))

    def operate(self, call, dimensions):
        """The operator of `call`, from the top of the dispatcher; the result has so many dimensions."""
        before, self.dimensions = self.dimensions, dimensions
        if self.around == "inference_mode":
            self.requires_grad = False
            self.dispatch(call.operator)
            return
        operator = call.part or call.operator
        if call.part:
            self.composite(call.operator, f"aten.{call.part}")
        self.requires_grad = self.requires_grad and not self.around and call.node != ""
        if not self.requires_grad:
            self.dispatch(operator)
            return
        self.makes(operator, call.node)
        self.dispatch(operator)
        saved = ("detach.default",) if call.saves_result else ()
        self.nodes.append((call.node, saved + derivative(call, before, dimensions)))
        if saved:
            self.dispatch("detach.default")
        self.as_named()

    def backward(self):
        self.function("torch.Tensor.backward")
        if not self.requires_grad or self.dimensions:
            error = NO_SCALAR if self.requires_grad else NO_GRAPH
            self.event(AUTOGRAD, "", "RuntimeError", f"{error}.")
            return
        self.dispatch("ones_like.default")
        for name, operators in [*reversed(self.nodes), *self.leaves]:
            self.event(AUTOGRAD, "", name, f"{name} runs.")
            for operator in operators:
                self.dispatch(operator)
        self.has_gradient = True

    def step(self, name, other):
        """The call `name` of the program, with `other` at its right."""
        if name == "backward()":
            self.backward()
        elif name in BINARY:
            if other in ONES:
                self.ones(other)
            self.function(BINARY[name].function)
            self.operate(BINARY[name], max(self.dimensions, ONES.get(other, 0)))
        else:
            call = CALLS[name]
            ran = self.function(call.function)
            less = {"sum()": 2, "mean()": 2, "sum(0)": 1}.get(name, 0)
            self.operate(GELU if ran == GELU.function else call, max(0, self.dimensions - less))


def derivative(call, before, after):
    """The operators that the node of `call` runs, where the operand had `before` dimensions and the result has `after`."""
    if call.node == "SumBackward1" and before == 0:
        return ("expand.default",)
    if after <= before:
        return call.backward
    return call.backward + (("sum.dim_IntList", "view.default") if before else ("sum.default",))  # undoes a broadcast


# ---- the program

NUMBER = r"(?:0|[1-9][0-9]{0,3})(?:\.[0-9]{1,4})?"
TENSOR = r"net\(x\)|x|torch\.ones\(2(?:,2)?\)"
TOKEN = re.compile(rf"(?:{TENSOR})(?![A-Za-z0-9_(])|\.[a-z_]+\([^()]*\)|{NUMBER}(?![0-9A-Za-z_])|[-+*/()]")
ALLOWED = (
    "Allowed: x, net(x), torch.ones(2) and torch.ones(2, 2); behind them "
    + ", ".join("." + name for name in [*CALLS, "backward()"])
    + "; + - * / with a number or torch.ones on the right; and parentheses."
)


def tokens(program):
    """The words of a program. Raises Refusal."""
    words = re.sub(r" *([^A-Za-z0-9_ ]) *", r"\1", program.strip(" "))
    found = []
    while words:
        match = TOKEN.match(words)
        if not match:
            raise Refusal(f"Not known here: {words[:20]}. {ALLOWED}")
        found.append(match[0])
        words = words[match.end() :]
    return found


class Parser:
    """Reads a program as Python would: a first tensor, and calls in the order in which they are made."""

    def __init__(self, program):
        self.left = tokens(program)

    def next_is(self, signs):
        return bool(self.left) and self.left[0] in signs

    def whole(self):
        steps = self.operation("+-")
        if self.left:
            raise Refusal(f"Not known here: {''.join(self.left)[:20]}. {ALLOWED}")
        return steps

    def operation(self, signs):
        """Sums of products, or products of chains: "+-" or "*/"."""
        steps = self.operation("*/") if signs == "+-" else self.chain()
        while self.next_is(signs):
            sign = self.left.pop(0)
            right = self.operation("*/") if signs == "+-" else self.chain()
            if len(right) > 1 or right[0][0] in ("x", "net(x)"):
                raise Refusal(f"On the right of {sign} stands a number, torch.ones(2) or torch.ones(2, 2).")
            steps = self.grown(steps, (SIGNS[sign], right[0][0]))
        return steps

    def chain(self):
        """A tensor, a number or something in parentheses, and the methods behind it."""
        first = self.left.pop(0) if self.left else ""
        if first == "(":
            steps = self.operation("+-")
            if not self.next_is(")"):
                raise Refusal(f"A parenthesis is not closed. {ALLOWED}")
            self.left.pop(0)
        elif first and first[0] not in ".+-*/)":
            steps = [(first, "")]
        else:
            raise Refusal(f"A tensor is missing{' before ' + first if first else ' at the end'}. {ALLOWED}")
        while self.left and self.left[0][0] == ".":
            name = self.left.pop(0)
            binary = re.fullmatch(rf"\.(add|sub|mul|div)\(({NUMBER})\)", name)
            if not binary and name[1:] not in CALLS and name != ".backward()":
                raise Refusal(f"Not known here: {name}. {ALLOWED}")
            steps = self.grown(steps, (binary[1], binary[2]) if binary else (name[1:], ""))
        return steps

    def grown(self, steps, step):
        if steps[-1][0] == "backward()":
            raise Refusal("Nothing can be called on what backward() returns: it is None.")
        if re.match("[0-9]", steps[0][0]):
            raise Refusal(f"A number stands on the right of a sign: write net(x) * 2. {ALLOWED}")
        if len(steps) > LONGEST:
            raise Refusal(f"At most {LONGEST} calls, please.")
        return [*steps, step]


def model(inputs):
    (first, _), *steps = Parser(inputs["program"]).whole()
    if not steps and (first == "x" or re.match("[0-9]", first)):
        raise Refusal(f"{first} alone calls nothing. {ALLOWED}")
    run = Run(inputs)
    run.begin(first)
    for name, other in steps:
        run.step(name, other)
    wrong = run.has_gradient and run.swapped_below and any(node == "ReluBackward0" for node, _ in run.nodes)
    say = [event.pop("say") for event in run.events]
    if wrong:
        say[-1] += " The values are gelu's, and the graph has a ReluBackward0: the gradient is wrong."
    return {"events": run.events, "wrong": wrong, "say": say}


def picture(result, step):
    """The last rows up to this step; a column for each place."""
    shown = result["events"][max(0, step - 9) : step + 1]
    parts = [text(name, 10 + 190 * i, 16, "dim") for i, name in enumerate(PLACES)]
    for row, event in enumerate(shown):
        words = f"{event['who']}: {event['what']}" if event["who"] else event["what"]
        kind = "pick" if row == len(shown) - 1 else "pale" if event["place"] == PYTHON else "plain"
        parts.append(
            box(6 + 190 * event["place"], 24 + 26 * row, 184, 22, kind, words.replace("torch.nn.functional", "F"))
        )
    return drawing(772, 36 + 26 * len(shown), *parts)


def sample(random):
    """Inputs of which most are no refusals."""
    program = random.choice(["net(x)"] * 4 + ["x", "x", "torch.ones(2, 2)", "torch.ones(2)"])
    for _ in range(random.randrange(5)):
        if random.random() < 0.3:
            other = random.choice(["1", "2", "0.5", "torch.ones(2)", "torch.ones(2, 2)"])
            program = f"({program} {random.choice('+-*/')} {other})"
        else:
            program += "." + random.choice([*CALLS, "add(1)", "mul(3)"])
    if program == "x":
        program = "net(x)"  # x alone is refused
    return {
        "program": program + random.choice(["", "", ".sum()", ".sum().backward()", ".mean().backward()", ".backward()"])
    }


EXAMPLES = (
    FIRST,
    "net(x).softmax(-1).square().sum().backward()",
    "(net(x) + torch.ones(2)).mean().backward()",
    "(x * 2 + 1).tanh().sum().backward()",
    "net(x).detach().sum().backward()",
    "net(x).exp().backward()",
)
FIGURE = Figure(
    name="mode_stack",
    title="What each mode and class sees",
    inputs=(
        Expression("program", "program", FIRST, examples=EXAMPLES),
        Choice("x", "x is", "", options=KINDS),
        Choice("around", "around", "", options=AROUND),
        Choice("outer", "outer", "function print", options=MODES),
        Choice("middle", "middle", "dispatch print", options=MODES),
        Choice("inner", "inner", "", options=MODES),
    ),
    model=model,
    picture=picture,
    sample=sample,
)  # fmt: skip
