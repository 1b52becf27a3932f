"""Random programs for the engine: views, in-place writes, hooks of every kind, backward inside backward, graphs that were freed.

A program is a list of statements in plain Python, written while PyTorch runs them, so that most of them make sense. Its outcome
is what each statement raised or logged, and after each the state of all tensors: versions, leaves, shapes. `differs(seed)` runs it
with readtorch, too; `shortest` leaves out statements until none can be left out.

.venv/bin/python -m tests.autograd.random_programs 1000 3000     seeds 1000 to 2999; prints the shortest program of each difference
.venv/bin/python -m tests.autograd.random_programs 1234 --show   one program, and what PyTorch says
"""

import collections
import itertools
import math
import random
import re
import sys
import textwrap
import warnings

import torch

import readtorch

# Pieces that statements use by name; a printed program holds those that it needs.
PIECES = {
    "seen": """
        def seen(name):  # a hook that looks
            return lambda g: log(name, g)
    """,
    "scaled": """
        def scaled(name, by):  # a hook that replaces
            def hook(g):
                log(name, g)
                return g * by
            return hook
    """,
    "refuses": """
        def refuses(name):
            def hook(*args):
                log(name)
                raise ValueError(name)
            return hook
    """,
    "removes": """
        def removes(name, handles, number):  # a hook that takes another away, or itself
            def hook(*args):
                log(name)
                handles[number % len(handles)].remove()
            return hook
    """,
    "adds": """
        def adds(name, tensor):  # a hook that registers another
            def hook(*args):
                log(name)
                tensor.register_hook(lambda g: log(name + " added", g))
            return hook
    """,
    "writes": """
        def writes(name, tensor):  # a hook that writes in place
            def hook(*args):
                log(name)
                with T.no_grad():
                    tensor.add_(1)
            return hook
    """,
    "nests": """
        def nests(name, tensor):  # a hook that runs backward itself, which may come to this hook again
            def hook(*args):
                log(name)
                if len(nested) < 6:
                    nested.append(name)
                    (tensor * tensor).sum().backward()
                    log(name + " done")
            return hook
    """,
    "differentiates": """
        def differentiates(name, tensor):
            def hook(*args):
                log(name)
                if len(nested) < 6:
                    nested.append(name)
                    with T.enable_grad():
                        log(name, T.autograd.grad((tensor * tensor).sum(), tensor, allow_unused=True)[0])
            return hook
    """,
    "wrong": """
        def wrong(name, kind):  # a hook that returns what it may not
            def hook(g):
                log(name)
                return {"text": "text", "shape": T.ones(5, dtype=T.float64), "dtype": g.float()}[kind]
            return hook
    """,
    "before": """
        def before(name, by=None):  # a node's pre-hook
            def hook(grads):
                log(name, *grads)
                return None if by is None else tuple(None if g is None else g * by for g in grads)
            return hook
    """,
    "after": """
        def after(name, by=None):  # a node's hook
            def hook(ins, outs):
                log(name, *ins, "<-", *outs)
                return None if by is None else tuple(None if g is None else g * by for g in ins)
            return hook
    """,
    "stored": """
        def stored(name, forget=False):  # what runs when a gradient was added to a leaf
            def hook(leaf):
                log(name, leaf.grad)
                if forget:
                    leaf.grad = None
            return hook
    """,
    "several": """
        def several(name):
            return lambda grads: log(name, *(grads if isinstance(grads, list) else [grads]))
    """,
    "packs": """
        def packs(name, change=None):  # a pair of hooks on what is saved
            def pack(t):
                log(name + " packs", t)
                return t.detach().clone() * 2 if change == "value" else t.detach() if change != "same" else t
            def unpack(t):
                log(name + " unpacks", t)
                if change == "refuse":
                    raise ValueError(name)
                return "text" if change == "text" else t / 2 if change == "value" else t
            return T.autograd.graph.saved_tensors_hooks(pack, unpack)
    """,
    "fresh": """
        def fresh(g):
            return None if g is None else g * 1
    """,
    "edge": """
        edge = T.autograd.graph.get_gradient_edge
    """,
    "Double": """
        class Double(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2
            @staticmethod
            def backward(ctx, g):
                x, = ctx.saved_tensors
                log("Double", g, x)
                return g * 2
    """,
    "Again": """
        class Again(T.autograd.Function):  # runs backward in its backward
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x
            @staticmethod
            def backward(ctx, g):
                x = ctx.saved_tensors[0].detach().requires_grad_()
                with T.enable_grad():
                    y = (x * x).sum()
                x.register_hook(lambda g: log("Again, inside", g))
                y.backward()
                log("Again", g)
                return g * x.grad
    """,
    "Dirty": """
        class Dirty(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x.mul_(3)
            @staticmethod
            def backward(ctx, g):
                log("Dirty", g)
                return g * 3
    """,
    "Pair": """
        class Pair(T.autograd.Function):  # two outputs, gradients not made where none arrives
            @staticmethod
            def forward(ctx, x, y):
                ctx.set_materialize_grads(False)
                ctx.save_for_backward(x, y)
                return x * 2, y.exp() if y.abs().max() < 3 else y * 3
            @staticmethod
            def backward(ctx, g, h):
                log("Pair", g, h, ctx.needs_input_grad)
                return None if g is None else g * 2, None if h is None else h * 5
    """,
    "Still": """
        class Still(T.autograd.Function):  # an output without a gradient
            @staticmethod
            def forward(ctx, x):
                signs = x.sign()
                ctx.mark_non_differentiable(signs)
                return x.tanh(), signs
            @staticmethod
            def backward(ctx, g, h):
                log("Still", g, h)
                return g
    """,
    "AsIs": """
        class AsIs(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x
            @staticmethod
            def backward(ctx, g):
                log("AsIs", g)
                return g * 7
    """,
    "Viewed": """
        class Viewed(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.view(-1)
            @staticmethod
            def backward(ctx, g):
                log("Viewed", g)
                return g.sum()
    """,
    "Keeps": """
        class Keeps(T.autograd.Function):  # saves its output
            @staticmethod
            def forward(ctx, x):
                y = x.tanh()
                ctx.save_for_backward(y, None)
                return y
            @staticmethod
            def backward(ctx, g):
                y, nothing = ctx.saved_tensors
                log("Keeps", y, nothing)
                return g * (1 - y * y)
    """,
    "Apart": """
        class Apart(T.autograd.Function):  # with setup_context
            @staticmethod
            def forward(x, by):
                return x * by
            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.by = inputs[1]
                ctx.save_for_backward(inputs[0], output)
            @staticmethod
            def backward(ctx, g):
                log("Apart", g, *ctx.saved_tensors)
                return g * ctx.by, None
    """,
    "Once": """
        class Once(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod
            @T.autograd.function.once_differentiable
            def backward(ctx, g):
                log("Once", g)
                return g * 2
    """,
    "Bad": """
        class Bad(T.autograd.Function):
            @staticmethod
            def forward(ctx, x, how):
                ctx.how = how
                return x * 2
            @staticmethod
            def backward(ctx, g):
                log("Bad", ctx.how)
                if ctx.how == "raise":
                    raise ValueError("Bad")
                return {"few": g, "many": (g, None, g), "shape": (g.new_ones(5), None), "type": ("text", None),
                        "none": (None, None), "number": (g, g)}[ctx.how]
    """,
}
FUNCTIONS = """a.sin() | a * b | a + b | a - b | a.tanh() | a * 2 | a.cos() * b | a.sigmoid() | a.sum() | a.sum(0) | a.mean() | a.clone() | a * a
    | T.cat([a.reshape(-1), b.reshape(-1)]) | a.relu() | T.where(a > 0, a, a * 3) | a.abs() | a ** 2 | 1 - a | a.cumsum(0)
    | a.contiguous() | a.max() | (a * b).sum() | T.outer(a.reshape(-1), b.reshape(-1)).sum(0) | a.clamp(-1, 1)
    | Double.apply(a) | Again.apply(a) | Pair.apply(a, b)[0] | Pair.apply(a, b)[1] | Still.apply(a)[0] | Still.apply(a)[1] | AsIs.apply(a)
    | Viewed.apply(a) | Keeps.apply(a) | Apart.apply(a, 3) | Once.apply(a) | Double.apply(Again.apply(a)) | Keeps.apply(a * b)"""
RARE = """Bad.apply(a, "raise") | Bad.apply(a, "few") | Bad.apply(a, "many") | Bad.apply(a, "shape") | Bad.apply(a, "type")
    | Bad.apply(a, "none") | Bad.apply(a, "number")"""
VIEWS = """a[:1] | a[0] | a.view(-1) | a.unsqueeze(0) | a.t() | a.view_as(a) | a[..., ::2] | a.expand(2, *a.shape) | a.narrow(0, 0, 1)
    | a.diagonal() | a.transpose(0, -1) | a.select(0, 0) | a.squeeze() | a.reshape(-1) | a.unbind(0)[0] | a.split(1)[0] | a.chunk(2)[-1]
    | a.detach() | a.data | a.unflatten(0, (1, -1)) | a[None] | a.as_strided((1,), (1,)) | a.movedim(0, -1)"""
WRITES = """a.mul_(2) | a.add_(1) | a.mul_(b * 1) | a.add_(b.sum()) | a.sin_() | a.tanh_() | a.copy_(b * 2) | a.zero_() | a.fill_(0.5)
    | a.fill_(b.sum()) | a[0].mul_(3) | a[:1].add_(b.mean()) | a.relu_() | a.clamp_(-1, 1) | a.sub_(b.sum()) | Dirty.apply(a)
    | a.detach_() | a.squeeze_() | a.unsqueeze_(0) | a.masked_fill_(a > 0.5, 0.25) | a.sigmoid_() | a.neg_() | a.detach().mul_(2) | a.data.add_(1)
    | T.autograd.graph.increment_version(a) | T.add(b, 1, out=a)"""
STATEMENTS = """a[0] = b.sum() | a[:1] = 0.5 | a[...] = b * 2 | a.data = a.detach() * 2 | a.grad = None | a.grad.zero_() | a.grad.mul_(2)
    | a.requires_grad_() | a.requires_grad_(False) | a.requires_grad = True | a.retain_grad() | del a | a.grad = T.ones_like(a)
    | log(tree(a)) | log(a.grad) | log(tree(a), tree(b)) | log(a._base is b, a._is_view()) | log(a.grad_fn is None)"""
HOOKS = """a.register_hook(seen(n)) | a.register_hook(seen(n)) | a.register_hook(scaled(n, 2)) | a.register_hook(refuses(n))
    | a.register_hook(removes(n, handles, k)) | a.register_hook(writes(n, b)) | a.register_hook(nests(n, l)) | a.register_hook(differentiates(n, l))
    | a.register_hook(adds(n, b)) | a.grad_fn.register_prehook(before(n)) | a.grad_fn.register_prehook(before(n, 2))
    | a.grad_fn.register_hook(after(n)) | a.grad_fn.register_hook(after(n, 3)) | a.grad_fn.register_prehook(writes(n, b))
    | a.grad_fn.register_hook(removes(n, handles, k)) | a.grad_fn.register_prehook(removes(n, handles, k)) | a.grad_fn.register_hook(nests(n, l))
    | a.grad_fn.register_prehook(refuses(n)) | l.register_post_accumulate_grad_hook(stored(n)) | l.register_post_accumulate_grad_hook(stored(n, True))
    | l.register_post_accumulate_grad_hook(nests(n, m)) | l.register_post_accumulate_grad_hook(removes(n, handles, k))
    | T.autograd.graph.register_multi_grad_hook((a, b), several(n)) | T.autograd.graph.register_multi_grad_hook((a, b, l), several(n))
    | T.autograd.graph.register_multi_grad_hook((a, b), several(n), mode="any") | edge(a).node.register_hook(after(n))
    | edge(a).node.register_prehook(before(n, 2)) | edge(l).node.register_prehook(before(n)) | edge(l).node.register_hook(after(n))
    | a.register_hook(wrong(n, "shape")) | a.register_hook(wrong(n, "dtype")) | a.register_hook(wrong(n, "text"))
    | a.register_post_accumulate_grad_hook(stored(n)) | a.grad_fn.next_functions[0][0].register_hook(after(n))"""
BACKWARDS = """(a * 2).sum().backward() | (a * 2).sum().backward(retain_graph=True) | a.sum().backward(retain_graph=True)
    | a.backward(T.ones_like(a), retain_graph=True) | T.autograd.backward([a.sum(), b.sum()], retain_graph=True) | (a * b).sum().backward()
    | (a * b).sum().backward(inputs=[l], retain_graph=True) | (a * b).sum().backward(inputs=[a]) | a.sum().backward(inputs=[l, b], retain_graph=True)
    | (a * a).sum().backward(create_graph=True) | a.backward() | a.sum().backward() | T.autograd.backward(edge(a), T.ones_like(a), retain_graph=True)"""
GRADIENTS = """T.autograd.grad(a.sum(), b, retain_graph=True, allow_unused=True)[0] | T.autograd.grad((a * b).sum(), a, create_graph=True)[0]
    | T.autograd.grad((a * a).sum(), l, create_graph=True, allow_unused=True)[0] | T.autograd.grad(a.sum(), l)[0]
    | T.autograd.grad(a.sum(), (l, m), allow_unused=True)[0] | T.autograd.grad(a.sum(), edge(b), retain_graph=True, allow_unused=True)[0]
    | T.autograd.grad(edge(a), l, T.ones_like(a), retain_graph=True, allow_unused=True)[0] | T.autograd.grad(a, b, T.ones_like(a), allow_unused=True)[0]
    | T.autograd.grad(a.sum(), (l, a), retain_graph=True, materialize_grads=True)[0] | T.autograd.grad((a * b).sum(), (a, b), create_graph=True)[1]"""
CONTEXTS = """with T.no_grad(): | with T.enable_grad(): | with packs(n): | with packs(n, "same"): | with packs(n, "value"): | with packs(n, "refuse"):
    | with packs(n, "text"): | with T.autograd.graph.save_on_cpu(): | with packs(n), packs(n + " inner", "value"): | with T.inference_mode():
    | with T.autograd.graph.disable_saved_tensors_hooks("disabled"): | with T.set_grad_enabled(False): | with T.autograd.forward_ad._set_fwd_grad_enabled(False):"""


def choices(text):
    return [piece.strip() for piece in text.replace("\n", " ").split(" | ")]


# LEFT_OUT: where readtorch differs and is known to.
# - The gradient of a tensor that was broadcast to more dimensions is a view in PyTorch (`fresh` makes it a new tensor).
# - Hooks on saved tensors pack inputs before the operation runs in PyTorch, afterwards here: seen if it fails, so both operands
#   are one tensor inside such hooks.
# - Inference mode is entered for views alone, which of normal tensors are normal: versions that out-of-place operations leave on
#   what they make of inference tensors, `edge`, `detach_` and `.data = ` inside are not PyTorch's.
# - Graphs of derivatives of `stack` and `addcmul` have nodes of other names, `tree` is called but for others.
# - `.data = ` gives a tensor another memory, which hooks on what is saved of it do not see: leaves alone are given one.
# - A saved tensor that was detached in place is not refused.

# (weight, choices, form): `=` makes a new tensor, `handle` a handle, `` is a statement
FAMILIES = [
    (10, choices(FUNCTIONS), "="),
    (1, choices(RARE), "="),
    (6, choices(VIEWS), "="),
    (6, choices(WRITES), ""),
    (5, choices(STATEMENTS), ""),
    (8, choices(HOOKS), "handle"),
    (4, choices(BACKWARDS), ""),
    (3, choices(GRADIENTS), "="),
]
INSIDE_INFERENCE_MODE = set(choices(VIEWS)) - {"a.detach()", "a.data", "a.reshape(-1)"}
WRAPPERS = [c for c in choices(CONTEXTS) if "forward_ad" not in c]
BEGIN = [
    "v0 = T.tensor([[1.0, 2.0], [0.5, -1.0]], dtype=T.float64, requires_grad=True)",
    "v1 = T.tensor([0.75, 1.5], dtype=T.float64, requires_grad=True)",
    "v2 = T.tensor([[0.25, 2.0], [3.0, -0.5]], dtype=T.float64)",
    "handles, nested = [], []",
]
TREE = """
    def tree(t, depth=4):  # names of the nodes behind a tensor
        def below(node, depth):
            if node is None or not depth:
                return node and node.name()
            return node.name(), [(number, below(following, depth - 1)) for following, number in node.next_functions]
        return str(below(t.grad_fn, depth))
"""
PIECES["tree"] = TREE


class Run:
    """One run of a program with one library: `do(statement)` executes it and notes its outcome."""

    def __init__(self, T):
        self.lines = []  # for each statement a list of what was logged, the error, and the states
        self.T = T
        self.names = {"T": T, "log": self.log}
        for source in PIECES.values():
            exec(compiled(textwrap.dedent(source)), self.names)

    def log(self, *values):
        self.line.append(("log", *[self.noted(v) for v in values]))

    def noted(self, value):
        if isinstance(value, self.T.Tensor):
            numbers = value.detach().double().reshape(-1).tolist()
            return (*value.shape, value.requires_grad, str(value.dtype)), *numbers
        return value if isinstance(value, (int, float, type(None))) else str(value)

    def do(self, statement):
        self.line = []
        try:
            exec(compiled(statement), self.names)
        except Exception as error:
            message = str(error).replace("readtorch", "torch").partition("\nException raised from")[0]
            message = re.sub(r"0x[0-9a-f]+", "ADDRESS", message)
            self.line.append(("error", type(error).__name__, message))
        for name, t in self.tensors():
            try:
                self.line.append((name, *self.state(t)))
            except RuntimeError as error:  # a view that may not be made again, though its base was written to
                self.line.append((name, type(error).__name__, str(error)))
        self.lines.append(self.line)

    def tensors(self):
        return [(n, v) for n, v in self.names.items() if re.fullmatch(r"v\d+", n) and isinstance(v, self.T.Tensor)]

    def state(self, t):
        inference = t.is_inference()
        marks = t.requires_grad, t.is_leaf, t.output_nr, t.retains_grad, t._is_view(), inference
        return (*marks, None if inference else t._version, self.noted(t.detach()))


def compiled(text, cache={}):
    if text not in cache:
        cache[text] = compile(text, "<program>", "exec")
    return cache[text]


def end(names):
    """What every program does at its end: look at the graphs, then walk them, the second time when most are gone."""
    lines = [f"log({n!r}, {n}.grad, tree({n}))" for n in names]
    lines += [f"({n} * 2).sum().backward(retain_graph=True)" for n in names] + [f"log({n!r}, {n}.grad)" for n in names]
    return lines + [f"({n} * 2).sum().backward()" for n in names] * 2 + [f"log({n!r}, {n}.grad)" for n in names]


def written(seed):
    """The statements of a program, and PyTorch's run of them."""
    chance, run = random.Random(seed), Run(torch)
    statements = []

    def add(statement):
        statements.append(statement)
        run.do(statement)

    for statement in BEGIN:
        add(statement)
    count = len(BEGIN) - 1
    for number in range(chance.randint(5, 22)):
        statement = drawn(chance, run, number, count)
        count += statement.startswith("v") or "\n    v" in statement
        add(statement)
    for statement in end([n for n, _ in run.tensors()]):
        add(statement)
    return statements, run


def drawn(chance, run, number, count):
    """A statement about tensors that there are."""
    weights = [weight for weight, *_ in FAMILIES]
    _, pieces, form = chance.choices(FAMILIES, weights)[0]
    text = chance.choice(pieces)
    tensors = [(n, t) for n, t in run.tensors() if not refused(t)]
    if "del a" in text and len(tensors) < 6:
        text = "log(tree(a))"
    if "detach" in text or ".data" in text:
        tensors = [(n, t) for n, t in tensors if not t.is_inference()]
    if ".data =" in text:
        tensors = [(n, t) for n, t in tensors if t.grad_fn is None] or tensors[:1]
    wants_graph = form == "handle" or "backward" in text or "grad" in text
    wanted = (
        [n for n, t in tensors if t.requires_grad and (t.grad_fn is not None or "grad_fn" not in text)]
        if wants_graph and chance.random() < 0.95
        else []
    )
    first = chance.choice(wanted or [n for n, _ in tensors])
    if first in ("v0", "v1", "v2") and "del" in text:
        text = "log(a.grad)"
    leaves = [n for n, t in tensors if t.requires_grad and t.is_leaf] or ["v0"]
    odds = 0.25 if form == "=" else 0.05
    wrapper = chance.choice(WRAPPERS) if chance.random() < odds else None
    if wrapper and "inference" in wrapper and text not in INSIDE_INFERENCE_MODE:
        wrapper = None
    fill = {
        "a": first,
        "b": first if wrapper and "packs" in wrapper else chance.choice([n for n, _ in tensors]),
        "l": chance.choice(leaves),
        "m": chance.choice(leaves),
        "k": str(chance.randrange(20)),
        "n": repr(f"hook {number}"),
    }
    text = re.sub(r"(?<![\w.\"'=])([ablmkn])(?![\w\"'(=])", lambda found: fill[found[1]], text)
    if form == "=":
        text = f"v{count} = fresh({text})" if "autograd.grad(" in text else f"v{count} = {text}"
    elif form == "handle":
        text = f"handles.append({text})"
    if wrapper:
        text = re.sub(r"\bn\b", fill["n"], wrapper) + "\n    " + text
    return text


def refused(t):
    """Whether it is a view that may not be made again, though its base was written to."""
    try:
        t.grad_fn
    except RuntimeError:
        return True
    return False


def same(a, b):
    """Whether two outcomes are the same, numbers up to rounding."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or math.isclose(a, b, rel_tol=1e-7, abs_tol=1e-9) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return a == b


def runs(statements):
    theirs, ours = Run(torch), Run(readtorch)
    for statement in statements:
        theirs.do(statement)
        ours.do(statement)
        if not same(theirs.lines[-1], ours.lines[-1]):
            return theirs, ours
    return None


def differs(seed):
    """None, or the statements up to the first whose outcome differs."""
    statements, theirs = written(seed)
    if any("INTERNAL ASSERT" in str(line) for line in theirs.lines):
        return None  # PyTorch's own fault
    ours = Run(readtorch)
    for i, statement in enumerate(statements):
        ours.do(statement)
        if not same(theirs.lines[i], ours.lines[i]):
            return statements[: i + 1], theirs.lines[i], ours.lines[i]
    return None


def shortest(statements):
    """Leave out statements, in shrinking groups, as long as the outcome of the last still differs."""
    step = max(1, len(statements) // 2)
    while step:
        i = 0
        while i < len(statements):
            fewer = statements[:i] + statements[i + step :]
            if (found := runs(fewer)) is not None:
                statements = fewer[: len(found[0].lines)]
            else:
                i += step
        step //= 2
    return statements, *[r.lines[-1] for r in runs(statements)]


def first_difference(theirs, ours):
    """The first two entries that are not the same."""
    pairs = itertools.zip_longest(theirs, ours, fillvalue=("nothing",))
    return next((a, b) for a, b in pairs if not same(a, b))


def kind_of(theirs, ours):
    """A difference without names and numbers, so that those of one cause are counted together."""
    return tuple(
        re.sub(r"'hook[^']*'|-?\d+(\.\d+)?(e-?\d+)?", "#", str(x))[:300] for x in first_difference(theirs, ours)
    )


def printed(statements, theirs, ours):
    """The program as a file that runs by itself, and where it differs."""
    text = "\n".join(statements)
    pieces = [textwrap.dedent(s).strip() for name, s in PIECES.items() if re.search(rf"\b{name}\b", text)]
    lines = ["import torch as T  # or readtorch", "log = print", *pieces, text, ""]
    a, b = first_difference(theirs, ours)
    return "\n".join([*lines, f"# PyTorch:   {a}", f"# readtorch: {b}"])


def main(arguments):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    first = int(arguments[0])
    if "--show" in arguments:
        show(first)
        return 0
    last = int(arguments[1]) if len(arguments) > 1 else first + 1
    kinds = collections.defaultdict(list)
    for seed in range(first, last):
        difference = differs(seed)
        if difference is not None:
            kind = kind_of(*difference[1:])
            kinds[kind].append(seed)
            if len(kinds[kind]) == 1:
                print(f"# seed {seed}\n{printed(*shortest(difference[0]))}\n{'-' * 80}", flush=True)
    found = sorted(kinds.values(), key=len, reverse=True)
    print(
        f"# {last - first} programs, {sum(map(len, found))} differ", *[f"# {len(f)}: {f[:12]}" for f in found], sep="\n"
    )
    return len(found)


def show(seed):
    """Print a program and what PyTorch says to it."""
    statements, run = written(seed)
    for statement, line in zip(statements, run.lines):
        print(statement, *[f"    # {entry}" for entry in line if not entry[0].startswith("v")], sep="\n")


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
