"""Hooks of the reader's on three modules: who is called in one call and its backward, with what, and what each changes (the chapter "Hooks and __call__").

In PyTorch: `torch/nn/modules/module.py`, `_call_impl`, and `torch/utils/hooks.py`, `BackwardHook`. `tests/viz/test_hook_order.py` registers
random hooks with PyTorch.
"""

from dataclasses import dataclass

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Expression, Integer, Refusal, Switch
from readtorch.viz.picture import box, drawing, text

MODULES = ["net", "a", "b"]
KINDS = ["forward_pre", "forward", "full_backward_pre", "full_backward"]
ACTIONS = ["look", "+1", "*2", "*0", "raise"]
OPTIONS = ["prepend", "once", "always"]
W = 3  # the parameter of `a`
MOST = 6
MUTATED = "OrderedDict mutated during iteration"  # what Python says of a loop over a dictionary that has lost an entry
FIRST = "net.forward_pre +1; a.forward *2; net.forward look; a.full_backward look; net.full_backward look"
HOW = (
    "A hook is written as a.forward *2: on which module (net, a, b or all), of which kind (forward_pre, forward, full_backward_pre, full_backward), "
    "what it does (look, +1, *2, *0 or raise), and then perhaps prepend, once or always."
)


@dataclass(eq=False)
class Hook:
    number: int  # as the reader counts them, from 1
    where: str
    kind: str
    action: str
    options: tuple

    def __str__(self):
        return f"Hook {self.number} ({self.where}.{self.kind})"


class Raised(Exception):
    """An error of the program that is shown: its message, or the hook that raises it."""


def read_hooks(program):
    """The hooks of a program, in the order in which they are registered. Raises Refusal."""
    entries = [entry.strip(" ") for entry in program.split(";") if entry.strip(" ")]
    if len(entries) > MOST:
        raise Refusal(f"At most {MOST} hooks, please.")
    return [read_hook(number, entry) for number, entry in enumerate(entries, 1)]


def read_hook(number, entry):
    place, *words = [word for word in entry.split(" ") if word]
    where, _, kind = place.partition(".")
    action, options = words[0] if words else "look", tuple(words[1:])
    known = where in ("all", *MODULES) and kind in KINDS and action in ACTIONS
    if not known or not set(options) <= set(OPTIONS) or len(set(options)) < len(options):
        raise Refusal(f"Not known here: {entry[:30]}. {HOW}")
    if "always" in options and kind != "forward":
        raise Refusal("Only a forward hook can be called always.")
    if "prepend" in options and where == "all":
        raise Refusal("A hook of all modules cannot be prepended.")
    return Hook(number, where, kind, action, options)


def changed(value, action):
    """What a hook returns for `value`: None if it only looks, or if there is no value."""
    if value is None or action == "look":
        return None
    return {"+1": value + 1, "*2": value * 2, "*0": value * 0}[action]


class Run:
    """One call of net and its backward. The tape holds what backward walks, in the order of forward: it is a chain."""

    def __init__(self, hooks, x, requires_grad):
        self.registered = {}  # (where, kind) -> hooks, in the order in which they run
        for hook in hooks:
            place = self.registered.setdefault((hook.where, hook.kind), [])
            place.insert(0 if "prepend" in hook.options else len(place), hook)
        self.x, self.requires_grad = x, requires_grad
        self.events, self.tape, self.journey = [], [], []

    def event(self, kind, module, hook, got, gave, say):
        number = hook.number if hook else 0
        self.events.append({"kind": kind, "module": module, "hook": number, "got": got, "gave": gave, "say": say})

    def hooks(self, module, kind):
        """A copy: those of all modules first."""
        return [*self.registered.get(("all", kind), []), *self.registered.get((module, kind), [])]

    def travel(self, by, value):
        self.journey.append([by, str(value)])

    def call_hook(self, module, hook, kind, got, value):
        """What the hook returns for `value`. got: the text of its arguments"""
        if "once" in hook.options and hook in self.registered[hook.where, hook.kind]:
            self.registered[hook.where, hook.kind].remove(hook)
        removed = " It removes itself." if "once" in hook.options else ""
        of = f" for {module}" if hook.where == "all" else ""
        if hook.action == "raise":
            self.event(kind, module, hook, got, "raises", f"{hook} gets {got}{of}, and raises an error.{removed}")
            raise Raised(f"hook {hook.number}")
        new = changed(value, hook.action)
        what = {
            "forward_pre": "the argument",
            "forward": "the output",
            "full_backward_pre": "grad_output",
            "full_backward": "grad_input",
        }
        gave = "None" if new is None else str(new)
        effect = "nothing changes" if new is None else f"that replaces {what[kind]}"
        self.event(kind, module, hook, got, gave, f"{hook} gets {got}{of}, and returns {gave}: {effect}.{removed}")
        return new

    # ---- forward

    def call(self, module, value, tracked):
        """`module(value)`: its result, which always has a graph; tracked: whether the value has one."""
        state = {"value": value, "result": None, "called": set()}
        try:
            return self.inner(module, state, tracked)
        except Raised:
            self.always(module, state)
            raise

    def inner(self, module, state, tracked):
        pre_hooks, hooks = self.hooks(module, "full_backward_pre"), self.hooks(module, "full_backward")
        for hook in self.hooks(module, "forward_pre"):
            new = self.call_hook(module, hook, "forward_pre", f"({state['value']},)", state["value"])
            state["value"] = self.replaced(state["value"], new, hook)
        fence = {"module": module, "pre_hooks": pre_hooks, "hooks": hooks, "first": tracked, "grad_output": None}
        has_fence = pre_hooks or hooks
        if has_fence and tracked:
            self.tape.append(("first fence", fence))
        state["result"] = self.forward(module, state["value"], tracked)
        for hook in self.hooks(module, "forward"):
            if "always" in hook.options:
                state["called"].add(hook)
            got = f"({state['value']},) and {state['result']}"
            new = self.call_hook(module, hook, "forward", got, state["result"])
            state["result"] = self.replaced(state["result"], new, hook)
        if has_fence:
            self.tape.append(("second fence", fence))
        return state["result"]

    def replaced(self, value, new, hook):
        if new is None:
            return value
        self.tape.append(("times", ({"+1": 1, "*2": 2, "*0": 0}[hook.action], f"hook {hook.number}")))
        self.travel(f"hook {hook.number}", new)
        return new

    def forward(self, module, value, tracked):
        if module == "net":
            self.event("begin", "net", None, str(value), "", f"net.forward({value}) calls a, and then b.")
            result = self.call("a", value, tracked)
            result = self.call("b", result, True)
            self.event("end", "net", None, "", str(result), f"net.forward returns {result}.")
            return result
        if module == "a":
            result = W * value
            self.tape.append(("times w", value))
            say = f"a.forward({value}) multiplies by its parameter w, {W}: {result}."
        else:
            result = value * value
            self.tape.append(("times", (2 * value, "b")))
            say = f"b.forward({value}) squares: {result}."
        self.event("inside", module, None, str(value), str(result), say)
        self.travel(module, result)
        return result

    def always(self, module, state):
        """After an exception. These two loops run over the dictionaries, not over a copy."""
        for where in ("all", module):
            hooks = list(self.registered.get((where, "forward"), []))
            for hook in hooks:
                if "always" not in hook.options or hook in state["called"]:
                    continue
                self.call_always(module, hook, state)
                if "once" in hook.options and hook is not hooks[-1]:
                    self.events[-1]["say"] += f" The loop finds it gone: {MUTATED}, in the place of the first error."
                    raise Raised(MUTATED)

    def call_always(self, module, hook, state):
        result = "None" if state["result"] is None else state["result"]
        try:
            new = self.call_hook(module, hook, "forward", f"({state['value']},) and {result}", state["result"])
        except Raised:
            self.events[-1]["say"] += " Another error is on its way: this one becomes a warning."
            return
        self.events[-1]["say"] += " It is always called; the error goes on."
        state["result"] = state["result"] if new is None else new

    # ---- backward

    def backward(self):
        """Walks the tape from its end. Returns the gradients of x and w."""
        grad, of_w = 1, None
        self.travel("backward", grad)
        for what, about in reversed(self.tape):
            if what == "times":
                grad = self.multiplied(grad, *about)
            elif what == "times w":
                of_w = grad * about
                if not self.requires_grad:
                    return None, of_w
                grad = self.multiplied(grad, W, "a")
            elif what == "second fence":
                grad = self.at_outputs(about, grad)
            else:
                grad = self.at_inputs(about, grad, about["hooks"])
        return grad, of_w

    def multiplied(self, grad, factor, who):
        """Through a node of the graph: its derivative is the factor."""
        if factor != 1:
            self.travel(f"{who}'s ×{factor}", grad * factor)
        return grad * factor

    def at_outputs(self, fence, grad):
        for hook in fence["pre_hooks"]:
            new = self.call_hook(fence["module"], hook, "full_backward_pre", f"({grad},)", grad)
            grad = self.took(grad, new, hook)
        fence["grad_output"] = grad
        if not fence["first"]:
            self.at_inputs(fence, None, fence["hooks"])
        return grad

    def at_inputs(self, fence, grad, hooks):
        for hook in hooks:
            got = f"({'None' if grad is None else grad},) and ({fence['grad_output']},)"
            new = self.call_hook(fence["module"], hook, "full_backward", got, grad)
            grad = self.took(grad, new, hook)
        return grad

    def took(self, grad, new, hook):
        if new is None:
            return grad
        self.travel(f"hook {hook.number}", new)
        return new

    # ---- all of it

    def whole(self):
        self.travel("x", self.x)
        try:
            result = self.call("net", self.x, self.requires_grad)
        except Raised as error:
            return self.failed(error, "the call: there is no result, and no backward")
        self.event("start", "", None, "", "", f"net(x) is {result}. Its backward begins with the gradient 1.")
        try:
            of_x, of_w = self.backward()
        except Raised as error:
            return self.failed(error, "backward")
        x = f"x.grad is {of_x}" if of_x is not None else "x requires no gradient, and gets none"
        self.event("done", "", None, "", "", f"{x}; w.grad is {of_w}.")
        return {"result": str(result), "x": "None" if of_x is None else str(of_x), "w": str(of_w), "error": ""}

    def failed(self, error, where):
        what = f'The RuntimeError "{error}"' if str(error) == MUTATED else f"The error of {error}"
        self.event("error", "", None, "", "", f"{what} leaves {where}.")
        return {"result": "", "x": "", "w": "", "error": str(error)}


def model(inputs):
    hooks = read_hooks(inputs["hooks"])
    run = Run(hooks, inputs["x"], inputs["grad"])
    end = run.whole()
    say = [event.pop("say") for event in run.events]
    texts = [" ".join([f"{hook.where}.{hook.kind}", hook.action, *hook.options]) for hook in hooks]
    return {"hooks": texts, "events": run.events, "journey": run.journey, **end, "say": say}


def words(event):
    """An event as a row of the table says it."""
    if event["hook"]:
        return f"{event['hook']} {event['kind']}: {event['got']} → {event['gave']}"
    return {"begin": f"forward({event['got']})", "end": f"returns {event['gave']}"}.get(
        event["kind"], f"forward: {event['got']} → {event['gave']}"
    )


def picture(result, step):
    """The rows up to this step; a column for each module."""
    shown = [event for event in result["events"][: step + 1] if event["module"]][-12:]
    parts = [text(name, 10 + 250 * i, 16, "dim") for i, name in enumerate(MODULES)]
    for row, event in enumerate(shown):
        kind = "pick" if row == len(shown) - 1 else "pale" if event["hook"] else "plain"
        parts.append(box(6 + 250 * MODULES.index(event["module"]), 24 + 26 * row, 244, 22, kind, words(event)))
    return drawing(762, 36 + 26 * len(shown), *parts)


def sample(random):
    """Inputs of which most are no refusals."""
    entries = []
    for _ in range(random.randrange(1, 7)):
        where, kind = random.choice([*MODULES, *MODULES, "all"]), random.choice(KINDS)
        options = [option for option in OPTIONS if random.random() < 0.25]
        if kind != "forward":
            options = [option for option in options if option != "always"]
        if where == "all":
            options = [option for option in options if option != "prepend"]
        action = random.choice(["look", "+1", "*2", "*0", "raise" if random.random() < 0.4 else "+1"])
        entries.append(" ".join([f"{where}.{kind}", action, *options]))
    entries += [random.choice(["", "c.forward look", "a.forward", "b.forward_pre always", "net.forward *3"])]
    return {"hooks": "; ".join(entries[: random.choice([9, 9, 9, -1])])}


EXAMPLES = (
    FIRST,
    "a.forward +1; a.forward *2",
    "a.forward +1; a.forward *2 prepend",
    "all.forward look; all.full_backward look",
    "a.forward look always; b.forward raise; net.forward look always",
    "b.forward_pre raise; b.forward look once always; b.forward look always; net.forward look always",
    "b.full_backward_pre *2; b.full_backward look; a.full_backward *0 once",
)
FIGURE = Figure(
    name="hook_order",
    title="Hooks of your own",
    inputs=(
        Expression("hooks", "hooks", FIRST, longest=300, examples=EXAMPLES, hint=HOW),
        Integer("x", "x", 2, low=-9, high=9),
        Switch("grad", "x requires grad", True),
        Choice("where", "a new one on", "a", options=["net", "a", "b", "all"]),
        Choice("kind", "kind", "forward", options=KINDS),
        Choice("action", "does", "+1", options=ACTIONS),
        Choice("option", "option", "", options={"": "none", **{option: option for option in OPTIONS}}),
    ),
    model=model,
    picture=picture,
    sample=sample,
)
