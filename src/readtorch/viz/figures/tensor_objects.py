"""What a short program does to the objects behind its tensors: fields, counts, owners (the chapter "The tensor as an
object").

In PyTorch: `c10/core/TensorImpl.h`, `c10/util/intrusive_ptr.h`. `tests/viz/test_tensor_objects.py` runs random
programs with PyTorch and reads its objects' memory.
"""

import re
from dataclasses import dataclass, field

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Expression, Refusal
from readtorch.viz.picture import box, drawing, text

NAMES = ["w", "x", "y", "z"]
LONGEST = 14  # statements
MODES = {"": "as usual", "no_grad": "under no_grad", "inference_mode": "under inference_mode"}
FIRST = "x = torch.ones(2, 3); x.note = 'mine'; w = torch.ones(2, 3); w.requires_grad_(); y = x * w; del x; z = y.grad_fn._saved_self"

N = "([wxyz])"
GRAMMAR = [
    ("ones", rf"{N} = torch\.ones\(2, 3\)"),
    ("leaf", rf"{N} = torch\.ones\(2, 3, requires_grad=True\)"),
    ("complex", rf"{N} = torch\.ones\(2, 3, dtype=torch\.complex64\)"),
    ("name", rf"{N} = {N}"),
    ("view", rf"{N} = {N}\.view\(6\)"),
    ("detach", rf"{N} = {N}\.detach\(\)"),
    ("data", rf"{N} = {N}\.data"),
    ("conj", rf"{N} = {N}\.conj\(\)"),
    ("clone", rf"{N} = {N}\.clone\(\)"),
    ("mul", rf"{N} = {N} \* {N}"),
    ("exp", rf"{N} = {N}\.exp\(\)"),
    ("backward", rf"{N}\.backward\(\)"),
    ("sum_backward", rf"{N}\.sum\(\)\.backward\(\)"),
    ("saved", rf"{N} = {N}\.grad_fn\._saved_self"),
    ("result", rf"{N} = {N}\.grad_fn\._saved_result"),
    ("base", rf"{N} = {N}\._base"),
    ("require", rf"{N}\.requires_grad_\((?:True)?\)"),
    ("forbid", rf"{N}\.requires_grad_\(False\)"),
    ("add", rf"{N}\.add_\(1\)"),
    ("note", rf"{N}\.note = 'mine'"),
    ("del", rf"del {N}"),
]
MODE = re.compile(r"with torch\.(no_grad|inference_mode)\(\): (.*)")
HOW = "Statements are those of the buttons, with ; between them."
NO_GRAPH = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
TWICE = (
    "RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors after they "
    "have already been freed)."
)


def normal(statement):
    """A statement with its blanks and quotes as the buttons write them."""
    text = re.sub(" ?([().,*:=]) ?", r"\1", re.sub("[ \t]+", " ", statement.replace('"', "'").strip()))
    text = text.replace(",", ", ").replace("*", " * ").replace(":", ": ")
    return re.sub(r"^(with [^:]*: )?([\w.]+)=", r"\1\2 = ", text)


@dataclass
class Node:
    """A node of the graph, and what it holds. An AccumulateGrad has a variable; other nodes have saved tensors."""

    kind: str
    next: list = field(default_factory=list)
    saved: dict = field(default_factory=dict)  # "self" -> (tensor, version)
    variable: object = None
    copy: object = None  # of an ExpBackward0: the tensor that it made, of which it holds a copy over the same storage
    copied_at: int = 0  # the version of that tensor
    never: tuple = ()  # attributes that were never saved: None, before backward and after it
    released: bool = False  # backward has been here
    number: int = 0  # in the order in which nodes were made


@dataclass
class Tensor:
    """A TensorImpl with its Python object."""

    id: int
    shape: list
    complex: bool
    storage: int
    counter: int | None
    inference: bool = False  # its keys lack ADInplaceOrView and Autograd
    conj: bool = False
    note: bool = False
    grad: bool = False  # `.grad` is there
    made: bool = False  # AutogradMeta
    requires_grad: bool = False  # the flag of a leaf
    grad_fn: Node | None = None
    base: object = None
    made_at: int = 0  # of a view: the version when it was made
    captured: object = None  # of a conj(): the operand, which the function that undoes the view holds, too
    accumulator: Node | None = None

    @property
    def wants_grad(self):
        """`t.requires_grad`: of a view also what its base says."""
        return self.requires_grad or self.grad_fn is not None or bool(self.base and self.base.wants_grad)


class Machine:
    """The objects of a program, statement by statement."""

    def __init__(self):
        self.names = {}  # name -> Tensor
        self.tensors = []
        self.versions = []
        self.storages = 0
        self.made_nodes = 0
        self.mode = ""

    def run(self, statement):
        """Do one statement. Returns what happened, as a sentence. Raises Refusal."""
        mode, rest = MODE.fullmatch(statement).groups() if MODE.fullmatch(statement) else ("", statement)
        for kind, pattern in GRAMMAR:
            found = re.fullmatch(pattern, rest)
            if found:
                self.mode = mode
                return getattr(self, f"do_{kind}")(*found.groups())
        raise Refusal(f"“{statement}” is none of this figure's statements. {HOW}")

    def get(self, name):
        if name not in self.names:
            raise Refusal(f"NameError: name '{name}' is not defined")
        return self.names[name]

    @property
    def recording(self):
        return self.mode == ""

    # ---- making

    def new(self, shape, complex, storage=None, counter=None, inference=False):
        if storage is None:
            self.storages += 1
            storage = self.storages
        if counter is None and not inference:
            self.versions.append(0)
            counter = len(self.versions)
        made = Tensor(len(self.tensors) + 1, shape, complex, storage, counter, inference)
        self.tensors.append(made)
        return made

    def fresh(self, shape, complex):
        return self.new(shape, complex, inference=self.mode == "inference_mode")

    def alias(self, t, shape):
        """Another tensor over the same storage, with the same counter and bits."""
        made = self.new(shape, t.complex, t.storage, None if t.inference else t.counter, t.inference)
        made.conj = t.conj
        return made

    def edge(self, t):
        """The node to which a gradient of `t` goes, or None: a view may require grad for its base's sake alone."""
        if t.grad_fn or not t.requires_grad:
            return t.grad_fn
        t.accumulator = t.accumulator or self.node("AccumulateGrad", variable=t)
        return t.accumulator

    def node(self, kind, next=(), **parts):
        self.made_nodes += 1
        return Node(kind, list(next), number=self.made_nodes, **parts)

    def edges(self, *tensors):
        return [edge for edge in map(self.edge, tensors) if edge]

    def followed_view(self, t, shape, kind):
        """A view that autograd follows: it holds its base, and has a node if `t` requires grad."""
        if t.captured or (t.base and kind == "ConjBackward0"):
            raise Refusal("A view of a view, of which one is a conj(), holds more than this figure follows.")
        made = self.alias(t, shape)
        if t.inference:
            return made
        made.made = True
        made.base = t.base or t
        made.made_at = self.versions[t.counter - 1]
        if t.wants_grad and self.recording:
            made.grad_fn = self.node(kind, self.edges(t))
        return made

    # ---- statements

    def do_ones(self, name):
        made = self.names[name] = self.fresh([2, 3], False)
        return f"T{made.id} is made, with a storage and {counter_text(made)}."

    def do_leaf(self, name):
        if self.mode == "inference_mode":
            raise Refusal("A gradient of an inference tensor is more than this figure follows.")
        made = self.names[name] = self.fresh([2, 3], False)
        made.made = made.requires_grad = True
        return (
            f"T{made.id} is made, with a storage, {counter_text(made)} and an AutogradMeta with the flag requires_grad."
        )

    def do_complex(self, name):
        made = self.names[name] = self.fresh([2, 3], True)
        return f"T{made.id} is made, with a storage and {counter_text(made)}."

    def do_name(self, name, other):
        t = self.names[name] = self.get(other)
        return f"No tensor is made: T{t.id} has one more name."

    def do_view(self, name, other):
        t = self.get(other)
        made = self.names[name] = self.followed_view(t, [6], "ViewBackward0")
        return f"T{made.id} is made: the same storage{shares(made)}.{holds_base(made)}"

    def do_detach(self, name, other):
        t = self.get(other)
        made = self.names[name] = self.alias(t, t.shape)
        if t.inference and self.mode != "inference_mode":  # detach gives it a counter, and takes no key back
            self.versions.append(0)
            made.counter = len(self.versions)
        own = f", {counter_text(made)} of its own" if made.counter != t.counter else shares(made)
        return f"T{made.id} is made: the same storage{own}. Autograd knows nothing of it."

    def do_data(self, name, other):
        t = self.get(other)
        made = self.names[name] = self.alias(t, t.shape)
        if t.inference and self.mode == "inference_mode":
            return f"T{made.id} is made: the same storage, and no version counter."
        self.versions.append(0)
        made.counter = len(self.versions)
        return (
            f"T{made.id} is made: the same storage, and a version counter of its own: no node notices what is written."
        )

    def do_conj(self, name, other):
        t = self.get(other)
        if not t.complex:
            self.names[name] = t
            return f"T{t.id} is real: conj() returns the tensor itself."
        made = self.names[name] = self.followed_view(t, t.shape, "ConjBackward0")
        made.conj = not t.conj
        made.captured = made.base
        held = f" It holds T{t.id} twice: as its base, and in the function that undoes the view." if made.base else ""
        return f"T{made.id} is made: the same storage, and the other state of the key Conjugate.{held}"

    def do_clone(self, name, other):
        t = self.get(other)
        made = self.names[name] = self.fresh(t.shape, t.complex)
        if t.wants_grad and self.recording:
            made.made, made.grad_fn = True, self.node("CloneBackward0", self.edges(t))
        if t.inference and not made.inference:  # no kernel above the CPU's runs, so the copy in it is counted
            self.versions[made.counter - 1] = 1
        return f"T{made.id} is made, with a storage and {counter_text(made)}."

    def do_mul(self, name, left, right):
        a, b = self.get(left), self.get(right)
        recorded = self.recording and (a.wants_grad or b.wants_grad)
        saved = {}
        if recorded and self.edge(b):
            saved["self"] = a
        if recorded and self.edge(a):
            saved["other"] = b
        if any(t.inference for t in saved.values()):
            raise Refusal("RuntimeError: Inference tensors cannot be saved for backward.")
        if a.shape != b.shape:
            sizes = f"The size of tensor a ({a.shape[-1]}) must match the size of tensor b ({b.shape[-1]})"
            raise Refusal(f"RuntimeError: {sizes} at non-singleton dimension {max(len(a.shape), len(b.shape)) - 1}")
        made = self.fresh(a.shape, a.complex or b.complex)
        if recorded:
            versions = {key: (t, self.versions[t.counter - 1]) for key, t in saved.items()}
            never = () if "self" in saved else ("_saved_self",)
            made.made, made.grad_fn = True, self.node("MulBackward0", self.edges(a, b), saved=versions, never=never)
        self.names[name] = made
        kept = " and ".join(f"T{t.id} as {key}" for key, t in saved.items())
        return f"T{made.id} is made." + (f" Its node MulBackward0 saves {kept}." if saved else "")

    def do_exp(self, name, other):
        t = self.get(other)
        made = self.names[name] = self.fresh(t.shape, t.complex)
        if not (t.wants_grad and self.recording):
            return f"T{made.id} is made, with a storage and {counter_text(made)}."
        made.made, made.grad_fn = True, self.node("ExpBackward0", self.edges(t), copy=made)
        return f"T{made.id} is made. Its node ExpBackward0 saves a copy of T{made.id}, over the same storage."

    def do_backward(self, name):
        t = self.get(name)
        raise Refusal(
            "RuntimeError: grad can be implicitly created only for scalar outputs" if t.wants_grad else NO_GRAPH
        )

    def do_sum_backward(self, name):
        t = self.get(name)
        if not (t.wants_grad and self.recording):
            raise Refusal(NO_GRAPH)
        if t.complex:
            raise Refusal(
                "RuntimeError: grad can be implicitly created only for real scalar outputs but got torch.complex64"
            )
        nodes, waiting = [], [self.edge(t)] if self.edge(t) else []
        while waiting:
            node = waiting.pop()
            if not any(node is seen for seen in nodes):
                nodes.append(node)
                waiting += node.next
        freed = sum(self.back_through(node) for node in sorted(nodes, key=lambda node: -node.number))
        leaves = sorted(node.variable.id for node in nodes if node.variable)
        got = (
            f" {' and '.join(f'T{i}' for i in leaves)} {'have' if len(leaves) > 1 else 'has'} a .grad."
            if leaves
            else ""
        )
        kept = f" The nodes let go what they had saved ({freed})." if freed else ""
        return f"The gradient is computed.{got}{kept}"

    def back_through(self, node):
        """Run a node. Returns how many tensors it let go."""
        if node.released:
            raise Refusal(TWICE)
        for key in sorted(node.saved):
            self.check_version(*node.saved[key], self.maker_of(node.saved[key][0]))
        if node.copy:
            self.check_version(node.copy, node.copied_at, node)
        if node.variable:
            node.variable.grad = True
        freed = len(node.saved) + bool(node.copy)
        node.saved, node.copy, node.released = {}, None, freed > 0
        return freed

    @staticmethod
    def maker_of(t):
        return t.grad_fn

    def check_version(self, t, version, maker):
        """What a node asks of a tensor that it has saved."""
        now = self.versions[t.counter - 1]
        if now == version:
            return
        kind = "torch.ComplexFloatTensor" if t.complex else "torch.FloatTensor"
        which = f", which is output 0 of {maker.kind.removesuffix('Backward0')}," if maker else ""
        raise Refusal(
            "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[{kind} {t.shape}]{which} is at version {now}; expected version {version} instead."
        )

    def node_with(self, t, kind, attribute):
        if t.grad_fn is None or t.grad_fn.kind != kind:
            has = t.grad_fn.kind if t.grad_fn else "NoneType"
            raise Refusal(f"AttributeError: '{has}' object has no attribute '{attribute}'")
        if t.grad_fn.released and attribute not in t.grad_fn.never:
            raise Refusal(TWICE)
        return t.grad_fn

    def do_result(self, name, other):
        t = self.get(other)
        node = self.node_with(t, "ExpBackward0", "_saved_result")
        self.check_version(node.copy, node.copied_at, node)
        made = self.alias(node.copy, node.copy.shape)
        made.made, made.grad_fn = True, node
        self.names[name] = made
        return f"The node makes T{made.id} from its copy: the same storage and counter, and a Python object without a note."

    def do_saved(self, name, other):
        t = self.get(other)
        node = self.node_with(t, "MulBackward0", "_saved_self")
        if "self" not in node.saved:
            raise Refusal(f"{other}.grad_fn._saved_self is None: the gradient does not need it")
        back, version = node.saved["self"]
        self.check_version(back, version, self.maker_of(back))
        self.names[name] = back
        return f"The node returns T{back.id}, and with it the Python object that T{back.id} always had."

    def do_base(self, name, other):
        t = self.get(other)
        if t.base is None:
            raise Refusal(f"{other}._base is None: autograd knows of no base")
        self.names[name] = t.base
        return f"The base of T{t.id} is T{t.base.id}."

    def do_require(self, name):
        t = self.get(name)
        if t.inference and self.mode != "inference_mode":
            raise Refusal(
                "RuntimeError: Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
            )
        if t.inference:
            raise Refusal("A gradient of an inference tensor is more than this figure follows.")
        if t.grad_fn:
            return f"T{t.id} requires grad already: nothing changes."
        if any(view.base is t and view.made_at != self.versions[t.counter - 1] for view in self.alive()):
            raise Refusal(
                "A view that was made before the last write would get another node: the chapter Autograd shows it."
            )
        t.made = t.requires_grad = True
        return f"T{t.id} has an AutogradMeta, with the flag requires_grad."

    def do_forbid(self, name):
        t = self.get(name)
        if t.grad_fn:
            raise Refusal("RuntimeError: you can only change requires_grad flags of leaf variables.")
        had, t.requires_grad = t.requires_grad, False
        if not t.made:
            return f"T{t.id} has no AutogradMeta, and needs none to say no: nothing changes."
        return f"{'A flag is cleared' if had else 'Nothing changes'}: the AutogradMeta of T{t.id} stays."

    def do_add(self, name):
        t = self.get(name)
        if t.counter is None:
            if self.mode != "inference_mode":
                raise Refusal("RuntimeError: Inplace update to inference tensor outside InferenceMode is not allowed.")
            return "Written, and not counted: there is no counter."
        if t.inference and self.mode == "inference_mode":
            return "Written, and not counted: its keys do not lead to the kernel that counts."
        if self.recording and t.requires_grad and t.base is None:
            raise Refusal("RuntimeError: a leaf Variable that requires grad is being used in an in-place operation.")
        kin = [other for other in self.alive() if other.counter == t.counter]
        if self.recording and t.wants_grad or any(one.wants_grad and one.base is not None for one in kin):
            raise Refusal("Writing in place to what has a graph changes the graph: the chapter Autograd shows it.")
        self.versions[t.counter - 1] += 1
        shared = f" of {len(kin)} tensors" if len(kin) > 1 else ""
        return f"Written. The counter V{t.counter}{shared} is at {self.versions[t.counter - 1]}."

    def do_note(self, name):
        t = self.get(name)
        t.note = True
        return f"The Python object of T{t.id} has an attribute. The TensorImpl is unchanged."

    def do_del(self, name):
        t = self.get(name)
        del self.names[name]
        return f"T{t.id} has one name less."

    # ---- who is there, and who holds whom

    def alive(self):
        """The tensors that can be reached from a name, through bases, nodes and what nodes hold."""
        found, nodes = [], []
        waiting = list(self.names.values())
        while waiting:
            one = waiting.pop()
            if any(one is seen for seen in found + nodes):
                continue
            if isinstance(one, Node):
                nodes.append(one)
                waiting += [*one.next, *(t for t, _ in one.saved.values())]
                waiting += [one.variable] if one.variable else []
            else:
                found.append(one)
                waiting += [part for part in (one.base, one.grad_fn) if part]
        self.nodes = nodes
        return sorted(found, key=lambda t: t.id)

    def owners(self, t, alive):
        """Who holds the TensorImpl, its Python object first."""
        held = []
        for node in sorted(self.nodes, key=lambda node: self.maker(node, alive)):
            maker = self.maker(node, alive)
            whose = f"{node.kind} of T{maker}" if maker else node.kind
            held += [f"{whose} saves {key}" for key, (saved, _) in node.saved.items() if saved is t]
        if any(node.variable is t for node in self.nodes):
            held.append("AccumulateGrad")
        for view in alive:
            held += [f"T{view.id}, its view"] if view.base is t else []
            held += [f"T{view.id}, to undo conj()"] if view.captured is t else []
        return ["Python object", *held]

    def copies(self):
        """What nodes have copied, one for each: tensors over the same storage that no Python object holds."""
        return [node.copy for node in self.nodes if node.copy]

    @staticmethod
    def maker(node, alive):
        """The number of the tensor whose `grad_fn` it is, or 0."""
        return next((t.id for t in alive if t.grad_fn is node), 0)

    def state(self):
        alive = self.alive()
        return [self.described(t, alive) for t in alive]

    def described(self, t, alive):
        owners = self.owners(t, alive)
        names = [name for name in NAMES if self.names.get(name) is t]
        strides, step = [], 1
        for size in reversed(t.shape):
            strides.insert(0, step)
            step *= size
        keys = ["CPU", *(["Conjugate"] if t.conj else []), *([] if t.inference else ["ADInplaceOrView", "AutogradCPU"])]
        return {
            "id": t.id,
            "names": names,
            "note": t.note,
            "python": len(names) + (len(owners) > 1),
            "strong": len(owners),
            "owners": owners,
            "storage": t.storage,
            "sharers": sum(one.storage == t.storage for one in [*alive, *self.copies()]),
            "meta": meta_text(t),
            "requires_grad": t.wants_grad,
            "counter": t.counter,
            "version": None if t.counter is None else self.versions[t.counter - 1],
            "shape": t.shape,
            "strides": strides,
            "keys": [*keys, "AutocastCPU"],
        }


def counter_text(t):
    return "no version counter" if t.counter is None else "a version counter"


def shares(t):
    return "" if t.counter is None else ", the same counter"


def holds_base(t):
    return f" It holds T{t.base.id}, its base." if t.base else ""


def meta_text(t):
    """What the AutogradMeta has to say."""
    if not t.made:
        return "null"
    parts = [f"view of T{t.base.id}"] if t.base else []
    parts += [t.grad_fn.kind] if t.grad_fn else []
    parts += ["flag requires_grad"] if t.requires_grad else []
    parts += [".grad"] if t.grad else []
    return ", ".join(parts) or "empty"


def model(inputs):
    statements = [normal(part) for part in inputs["program"].split(";") if part.strip()]
    if len(statements) > LONGEST:
        raise Refusal(f"A program has at most {LONGEST} statements.")
    machine = Machine()
    steps, say = (
        [[]],
        ["Before the first statement: no tensor yet." if statements else "An empty program: press a button."],
    )
    for done, statement in enumerate(statements, 1):
        try:
            sentence = machine.run(statement)
        except Refusal as refusal:
            rest = " What follows is not run." if done < len(statements) else ""
            say.append(f"{statement}: {refusal}{'' if str(refusal).endswith('.') else '.'}{rest}")
            return {"statements": statements[:done], "steps": [*steps, steps[-1]], "say": say, "failed": True}
        steps.append(machine.state())
        before, after = ({t["id"] for t in state} for state in steps[-2:])
        gone = [f"T{i}" for i in sorted(before - after)]
        freed = f" Nobody holds {' and '.join(gone)} any more: freed." if gone else ""
        say.append(f"{statement}: {sentence}{freed}{survivors(steps)}")
    return {"statements": statements, "steps": steps, "say": say, "failed": False}


def survivors(steps):
    """Of tensors that have just lost their last name and live on."""
    named = {t["id"] for t in steps[-2] if t["names"]}
    kept = [t for t in steps[-1] if t["id"] in named and not t["names"]]
    return "".join(f" T{t['id']} has no name and lives on, held by {t['owners'][1]}." for t in kept)


def picture(result, step):
    tensors = result["steps"][step]
    lines = [text(result["statements"][step - 1] if step else "an empty program", 10, 22, "mono")]
    for row, t in enumerate(tensors):
        y = 36 + 30 * row
        lines.append(box(10, y, 50, 24, "pick" if t["names"] else "free", f"T{t['id']}"))
        words = f"{', '.join(t['names']) or 'no name'} · strong {t['strong']} · S{t['storage']} · autograd_meta_ {t['meta']}"
        lines.append(text(words, 70, y + 16, "mono"))
    return drawing(640, 50 + 30 * max(len(tensors), 1), *lines)


WEIGHTS = {
    "ones": 3, "leaf": 1, "complex": 1, "name": 1, "view": 3, "detach": 2, "data": 1, "conj": 2, "clone": 1, "mul": 4,
    "exp": 2, "backward": 0.2, "sum_backward": 1, "saved": 1, "result": 1, "base": 1, "require": 3, "forbid": 1, "add": 2,
    "note": 1, "del": 2,
}  # fmt: skip


def random_statement(random):
    names = (random.choice("xyz") for _ in range(3))
    kind = random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    mode = random.choice(["", "", "", "with torch.no_grad(): ", "with torch.inference_mode(): "])
    return mode + written(kind, *names)


def sample(random):
    """A program of statements of which all, or all but the last, can be run."""
    statements, machine = [], Machine()
    for _ in range(random.randint(1, 60)):
        statement = random_statement(random)
        try:
            machine.run(statement)
        except Refusal:
            if random.random() < 0.02:
                return {"program": "; ".join([*statements, statement])}
            continue
        statements.append(statement)
        if len(statements) == LONGEST:
            break
    return {"program": "; ".join(statements)}


def written(kind, a, b, c):
    """A statement of a kind, with the names filled in."""
    return {
        "ones": f"{a} = torch.ones(2, 3)",
        "leaf": f"{a} = torch.ones(2, 3, requires_grad=True)",
        "complex": f"{a} = torch.ones(2, 3, dtype=torch.complex64)",
        "name": f"{a} = {b}",
        "view": f"{a} = {b}.view(6)",
        "detach": f"{a} = {b}.detach()",
        "data": f"{a} = {b}.data",
        "conj": f"{a} = {b}.conj()",
        "clone": f"{a} = {b}.clone()",
        "mul": f"{a} = {b} * {c}",
        "exp": f"{a} = {b}.exp()",
        "backward": f"{a}.backward()",
        "sum_backward": f"{a}.sum().backward()",
        "result": f"{a} = {b}.grad_fn._saved_result",
        "saved": f"{a} = {b}.grad_fn._saved_self",
        "base": f"{a} = {b}._base",
        "require": f"{a}.requires_grad_()",
        "forbid": f"{a}.requires_grad_(False)",
        "add": f"{a}.add_(1)",
        "note": f"{a}.note = 'mine'",
        "del": f"del {a}",
    }[kind]


FIGURE = Figure(
    name="tensor_objects",
    title="A program and its tensors",
    inputs=(
        Expression("program", "program", FIRST, longest=1200),
        Choice("target", "result", "y", NAMES),
        Choice("operand", "operand", "x", NAMES),
        Choice("second", "second", "w", NAMES),
        Choice("mode", "mode", "", MODES),
    ),
    model=model,
    picture=picture,
    sample=sample,
)
