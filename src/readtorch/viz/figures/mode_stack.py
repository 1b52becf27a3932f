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
    "dispatch zero": "dispatch mode: adds 0 to each result",
}
AROUND = {"": "grad mode", "no_grad": "no_grad()", "inference_mode": "inference_mode()"}
PLACES = ["function modes", "Autograd", "dispatch modes", "kernel"]
FUNCTION, AUTOGRAD, PYTHON, KERNEL = range(4)
LONGEST = 8  # calls behind net(x)
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
    "neg()": Call("torch.Tensor.neg", "neg.default", "", "NegBackward0", False, ("neg.default",)),
    "mul(2)": Call("torch.Tensor.mul", "mul.Tensor", "", "MulBackward0", False, ("mul.Tensor",)),
    "t()": Call("torch.Tensor.t", "t.default", "", "TBackward0", False, ("t.default",)),
    "clone()": Call("torch.Tensor.clone", "clone.default", "", "CloneBackward0"),
    "sum()": Call("torch.Tensor.sum", "sum.default", "", "SumBackward0", False, ("expand.default",)),
    "square()": Call(
        "torch.Tensor.square", "square.default", "pow.Tensor_Scalar", "PowBackward0", False,
        ("pow.Tensor_Scalar", "mul.Scalar", "mul.Tensor"),
    ),
    "softmax(-1)": Call(
        "torch.Tensor.softmax", "softmax.int", "_softmax.default", "SoftmaxBackward0", True,
        ("_softmax_backward_data.default",),
    ),
}  # fmt: skip
GELU = Call("torch.nn.functional.gelu", "gelu.default", "", "GeluBackward0", False, ("gelu_backward.default",))
# The nodes of net(x) in backward, and the operators that each calls. x requires no grad.
LINEAR_BACKWARD = [
    ("AddmmBackward0", ("t.default", "mm.default", "t.default", "sum.dim_IntList", "view.default")),
    ("AccumulateGrad", ("detach.default",)),
    ("TBackward0", ("t.default",)),
    ("AccumulateGrad", ("detach.default",)),
]


class Run:
    """A run of the program: what has happened, and the modes that are entered."""

    def __init__(self, inputs):
        modes = [(slot, inputs[slot]) for slot in SLOTS if inputs[slot]]
        self.functions = [(slot, mode) for slot, mode in modes if mode.startswith("function")]
        self.dispatches = [(slot, mode) for slot, mode in modes if mode.startswith("dispatch")]
        self.around = inputs["around"]
        self.events = []  # (place, who, what), and a sentence
        self.nodes = []  # of the graph: a Call, or "linear"
        self.is_scalar = False
        self.swapped_below = False
        self.has_gradient = False

    def event(self, place, who, what, say):
        self.events.append({"place": place, "who": who, "what": what, "say": say})

    def function(self, name, modes=None):
        """A call of the function `name`, which `modes` may still see. Returns the name of the function that was run."""
        modes = self.functions if modes is None else modes
        if not modes:
            return name
        slot, mode = modes[-1]
        if mode == "function swap" and name == "torch.Tensor.relu":
            self.event(FUNCTION, slot, name, f"The {slot} mode sees {name} and calls {GELU.function} instead.")
            name = GELU.function
        else:
            self.event(FUNCTION, slot, name, f"The {slot} mode sees {name} and calls it.")
        return self.function(name, modes[:-1])

    def dispatch(self, operator, modes=None):
        """A call of `operator` below Autograd, which `modes` may still see."""
        modes = self.dispatches if modes is None else modes
        if not modes:
            self.event(KERNEL, "", operator, f"The kernel of aten.{operator} for the CPU runs.")
            return
        (slot, mode), rest = modes[-1], modes[:-1]
        if mode == "dispatch swap" and operator == "relu.default":
            self.swapped_below = True
            self.event(
                PYTHON, slot, operator, f"The {slot} mode sees aten.{operator} and calls aten.{GELU.operator} instead."
            )
            self.dispatch(GELU.operator, rest)
            return
        self.event(PYTHON, slot, operator, f"The {slot} mode sees aten.{operator} and calls it.")
        self.dispatch(operator, rest)
        if mode == "dispatch zero":
            self.dispatch("add.Tensor", rest)

    def operate(self, call):
        """The operator of `call`, from the top of the dispatcher."""
        if self.around == "inference_mode":
            self.dispatch(call.operator)
            return
        operator = call.part or call.operator
        if call.part:
            self.event(
                AUTOGRAD,
                "",
                call.operator,
                f"aten.{call.operator} is composite: its kernel here calls aten.{call.part}.",
            )
        if not self.around:
            self.event(AUTOGRAD, "", call.node, f"Autograd's kernel of aten.{operator} makes a {call.node}.")
        self.dispatch(operator)
        if not self.around:
            self.nodes.append(call)
            if call.saves_result:
                self.dispatch("detach.default")

    def linear(self):
        self.function("torch.nn.functional.linear")
        if self.around == "inference_mode":
            self.dispatch("linear.default")
            return
        self.event(
            AUTOGRAD,
            "",
            "linear.default",
            "aten.linear.default is composite: its kernel here calls aten.t and aten.addmm.",
        )
        for operator, node in (("t.default", "TBackward0"), ("addmm.default", "AddmmBackward0")):
            if not self.around:
                self.event(AUTOGRAD, "", node, f"Autograd's kernel of aten.{operator} makes a {node}.")
            self.dispatch(operator)

    def backward(self):
        self.function("torch.Tensor.backward")
        if self.around:
            self.event(AUTOGRAD, "", "RuntimeError", f"{NO_GRAPH}.")
            return
        if not self.is_scalar:
            self.event(AUTOGRAD, "", "RuntimeError", f"{NO_SCALAR}.")
            return
        self.dispatch("ones_like.default")
        for call in reversed(self.nodes):
            self.node(call.node, (("detach.default",) if call.saves_result else ()) + call.backward)
        for node, operators in LINEAR_BACKWARD:
            self.node(node, operators)
        self.has_gradient = True

    def node(self, name, operators):
        self.event(AUTOGRAD, "", name, f"{name} runs.")
        for operator in operators:
            self.dispatch(operator)


def parse(program):
    """The calls behind net(x), by name. Raises Refusal."""
    words = re.sub(r"\s", "", program)
    match = re.fullmatch(r"net\(x\)((?:\.\w+\(-?\d*\))*)", words)
    calls = match[1].split(".")[1:] if match else []
    known = [*CALLS, "backward()"]
    if not match or not set(calls) <= set(known):
        raise Refusal(f"Write net(x) and calls behind it: {', '.join('.' + name for name in known)}.")
    if "backward()" in calls[:-1]:
        raise Refusal("Nothing can be called on what backward() returns: it is None.")
    if len(calls) > LONGEST:
        raise Refusal(f"At most {LONGEST} calls behind net(x), please.")
    return calls


def model(inputs):
    calls = parse(inputs["program"])
    run = Run(inputs)
    run.linear()
    for name in calls:
        if name == "backward()":
            run.backward()
            break
        call = CALLS[name]
        ran = run.function(call.function)
        run.operate(GELU if ran == GELU.function else call)
        run.is_scalar = run.is_scalar or name == "sum()"
    wrong = run.has_gradient and run.swapped_below and any(call.node == "ReluBackward0" for call in run.nodes)
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
    calls = random.choices(list(CALLS), k=random.randrange(5)) + random.choice(
        [[], ["sum()"], ["sum()", "backward()"], ["backward()"]]
    )
    return {"program": ".".join(["net(x)", *calls])}


FIGURE = Figure(
    name="mode_stack",
    title="What each mode sees",
    inputs=(
        Expression("program", "program", FIRST, examples=(FIRST, "net(x).softmax(-1).square().sum().backward()", "net(x).exp().backward()")),
        Choice("around", "around it all", "", options=AROUND),
        Choice("outer", "outer mode", "function print", options=MODES),
        Choice("middle", "middle mode", "dispatch print", options=MODES),
        Choice("inner", "inner mode", "", options=MODES),
    ),
    model=model,
    picture=picture,
    sample=sample,
)  # fmt: skip
