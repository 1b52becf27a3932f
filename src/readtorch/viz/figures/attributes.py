"""Where an assignment to a module puts its value: the questions that `Module.__setattr__` asks, one after the other, and the
dictionaries (the chapter "Module and __setattr__").

In PyTorch: `torch/nn/modules/module.py`, whose line numbers stand beside the questions. `tests/viz/test_attributes.py` runs
random programs with PyTorch.
"""

import re

from readtorch.viz.attribute_values import (
    CONTAINERS,
    DICT_METHODS,
    LAYERS,
    Parser,
    Value,
    layer,
    module,
    no_more,
    option,
    plain,
    refuse_call,
    sizes_of,
    statements_of,
    tensor_of,
)
from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Expression, Refusal
from readtorch.viz.picture import box, drawing, text

LONGEST, LETTERS = 12, 800  # statements; in all of them
NAMES = ["x", "y", "train"]
FIRST = (
    "m.x = [nn.Linear(2, 1)]; m.x = nn.Linear(2, 1); m.y = m.x; m.x = nn.Parameter(torch.ones(2)); m.x = 3; m.x = None"
)
FILES = ["__dict__", "_parameters", "_buffers", "_modules"]
TRIED = ["train", "eval", "forward"]  # methods whose names a program may use
TAKEN = (
    "T_destination add_module apply bfloat16 buffers call_super_init children compile cpu cuda double dump_patches "
    "extra_repr float get_buffer get_extra_state get_parameter get_submodule half ipu load_state_dict modules mtia "
    "named_buffers named_children named_modules named_parameters parameters register_backward_hook register_buffer "
    "register_forward_hook register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook "
    "register_load_state_dict_post_hook register_load_state_dict_pre_hook register_module register_parameter "
    "register_state_dict_post_hook register_state_dict_pre_hook requires_grad_ set_extra_state set_submodule "
    "share_memory state_dict to to_empty type xpu zero_grad"
).split()

NAME = re.compile("[A-Za-z0-9_.]{0,12}")
MOST_VISITS = 200  # modules that state_dict() visits
NOT_FLOAT = "RuntimeError: Only Tensors of floating point and complex dtype can require gradients"
LEAF = "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation."


class Raised(Exception):
    """An error that the statement raises."""


class Endless(Exception):
    """state_dict() comes to a module that is inside of itself."""


class Machine:
    """A module m: its dictionaries, and how the statement under way came to what it does."""

    def __init__(self):
        self.rows, self.numbers = [], 0
        self.new(True)

    @property
    def files(self):
        """The dictionaries of m; before __init__ there is only __dict__."""
        return self.m.files

    def text(self, value):
        if value is self.m:
            return "m itself"
        if value.text:
            return value.text
        if not value.number:
            self.numbers += 1
            value.number = self.numbers
        return f"{value.kind} {value.number}{', with a grad_fn' if value.grad_fn else ''}"

    # ---- what the reader is shown of a statement

    def row(self, line, code, answer):
        self.rows.append({"line": line, "code": code, "answer": answer})

    def ask(self, line, code, answer):
        self.row(line, code, "yes" if answer else "no")
        return answer

    def fail(self, line, error, code="raise"):
        self.row(line, code, error)
        raise Raised(error)

    # ---- Python's part

    def new(self, initialized):
        self.m = Value("Module", "torch.nn.modules.module.Module", files={"__dict__": {}})
        self.unsaved = []
        if initialized:
            self.initialize()

    def initialize(self):
        self.row(505, 'super().__setattr__("training", True)', "__dict__")
        self.files["__dict__"]["training"] = plain("bool", "True")
        for line, name in ((506, "_parameters"), (507, "_buffers"), (521, "_modules")):
            had = self.files.get(name, {})
            self.row(line, f'super().__setattr__("{name}", {{}})', f"{len(had)} forgotten" if had else "")
            self.files[name] = {}
        self.unsaved = []

    def look_up(self, name):
        """The value, or None; and where it was found."""
        if name in self.files["__dict__"]:
            return self.files["__dict__"][name], "__dict__"
        if name in TRIED:
            return None, "the class"
        for file in FILES[1:]:
            if name in self.files.get(file, {}):
                return self.files[file][name], file
        return None, ""

    def has(self, name):
        return self.look_up(name)[1] != ""

    def get(self, name):
        """m.name as an expression."""
        value, where = self.look_up(name)
        self.ask(0, f'"{name}" in m.__dict__', where == "__dict__")
        if where != "__dict__":
            self.ask(0, f'"{name}" in the class', where == "the class")
        if where not in ("__dict__", "the class"):
            for line, file in ((1955, "_parameters"), (1959, "_buffers"), (1963, "_modules")):
                table = "modules" if file == "_modules" else file
                if self.ask(line, f'"{file}" in self.__dict__', file in self.files) and self.ask(
                    line + 2, f"name in {table}", where == file
                ):
                    break
            else:
                self.fail(1967, no_attribute(name))
        return value, where

    # ---- Module's part

    def drive_out(self, line, name, files):
        gone = [file for file in files if name in self.files[file]]
        for file in gone:
            del self.files[file][name]
        if name in self.unsaved:
            self.unsaved.remove(name)
        self.row(line, "remove_from(…", f"out of {gone[0]}" if gone else "nothing there")
        return f"{gone[0]} loses {name}. " if gone else ""

    def put(self, line, code, file, name, value):
        self.files[file][name] = value
        self.row(line, code, self.text(value))

    def assign(self, name, value):
        if self.ask(1981, "isinstance(value, Parameter)", value.kind == "Parameter"):
            if self.ask(1982, "params is None", "_parameters" not in self.files):
                self.fail(1983, "AttributeError: cannot assign parameters before Module.__init__() call")
            lost = self.drive_out(1986, name, ["__dict__", "_buffers", "_modules"])
            self.row(1992, "self.register_parameter(name, value)", "")
            return lost + self.register_parameter(name, value)
        if self.ask(1993, "name in params", name in self.files.get("_parameters", {})):
            if self.ask(1994, "value is not None", not value.is_none):
                expected = "(torch.nn.Parameter or None expected)"
                self.fail(1995, f"TypeError: cannot assign '{value.type}' as parameter '{name}' {expected}")
            self.row(1999, "self.register_parameter(name, value)", "")
            return self.register_parameter(name, value)
        if self.ask(2002, "isinstance(value, Module)", value.is_module):
            if self.ask(2003, "modules is None", "_modules" not in self.files):
                self.fail(2004, "AttributeError: cannot assign module before Module.__init__() call")
            lost = self.drive_out(2007, name, ["__dict__", "_parameters", "_buffers"])
            self.put(2017, "modules[name] = value", "_modules", name, value)
            return lost + f"{name} is in _modules."
        if self.ask(2018, "name in modules", name in self.files.get("_modules", {})):
            if self.ask(2019, "value is not None", not value.is_none):
                expected = "(torch.nn.Module or None expected)"
                self.fail(2020, f"TypeError: cannot assign '{value.type}' as child module '{name}' {expected}")
            self.put(2028, "modules[name] = value", "_modules", name, value)
            return f"{name} stays in _modules, as None."
        return self.assign_further(name, value)

    def assign_further(self, name, value):
        named = name in self.files.get("_buffers", {})
        if not self.ask(
            2031, "isinstance(value, Buffer) or buffers is not None and name in buffers", value.is_buffer or named
        ):
            self.put(2074, "super().__setattr__(name, value)", "__dict__", name, value)
            return f"{name} is an ordinary attribute, in __dict__."
        if self.ask(2032, "value is not None and not (…", not value.is_none and not value.is_tensor):
            expected = "(torch.nn.Buffer, torch.Tensor or None expected)"
            self.fail(2036, f"TypeError: cannot assign '{value.type}' as buffer '{name}' {expected}")
        persistent = value.kind == "Buffer" if value.is_buffer else name not in self.unsaved
        source = "value.persistent" if value.is_buffer else "name not in self._non_persistent_buffers_set"
        self.row(2041 if value.is_buffer else 2043, f"persistent = {source}", "True" if persistent else "False")
        self.row(2056, "self.register_buffer(name, value, persistent)", "")
        return self.register_buffer(name, value, persistent)

    def check_name(self, lines, kind, file, name):
        """What both register_… methods ask. lines: of three questions"""
        if self.ask(lines[0], '"." in name', "." in name):
            self.fail(lines[0] + 1, f'KeyError: {kind} name can\'t contain "."')
        if self.ask(lines[1], 'name == ""', name == ""):
            self.fail(lines[1] + 1, f'KeyError: {kind} name can\'t be empty string ""')
        taken = self.has(name) and name not in self.files[file]
        if self.ask(lines[2], f"hasattr(self, name) and name not in self.{file}", taken):
            self.fail(lines[2] + 1, f"KeyError: attribute '{name}' already exists")

    def register_parameter(self, name, value):
        if self.ask(605, '"_parameters" not in self.__dict__', "_parameters" not in self.files):
            self.fail(606, "AttributeError: cannot assign parameter before Module.__init__() call")
        self.check_name((614, 616, 618), "parameter", "_parameters", name)
        if self.ask(621, "param is None", value.is_none):
            self.put(622, "self._parameters[name] = None", "_parameters", name, value)
            return f"{name} is in _parameters, as None."
        if self.ask(623, "not isinstance(param, Parameter)", value.kind != "Parameter"):
            required = "(torch.nn.Parameter or None required)"
            self.fail(624, f"TypeError: cannot assign '{value.type}' object to parameter '{name}' {required}")
        if self.ask(628, "param.grad_fn", value.grad_fn):
            self.fail(629, f"ValueError: Cannot assign non-leaf Tensor to parameter '{name}'. {explicitly(name)}")
        self.put(640, "self._parameters[name] = param", "_parameters", name, value)
        return f"{name} is in _parameters."

    def register_buffer(self, name, value, persistent=True):
        if self.ask(562, '"_buffers" not in self.__dict__', "_buffers" not in self.files):
            self.fail(563, "AttributeError: cannot assign buffer before Module.__init__() call")
        self.check_name((568, 570, 572), "buffer", "_buffers", name)
        if self.ask(574, "tensor is not None and not (…", not value.is_none and not value.is_tensor):
            required = "(torch Tensor or None required)"
            self.fail(577, f"TypeError: cannot assign '{value.type}' object to buffer '{name}' {required}")
        self.put(586, "self._buffers[name] = tensor", "_buffers", name, value)
        self.ask(587, "persistent", persistent)
        if name in self.unsaved:
            self.unsaved.remove(name)
        if not persistent:
            self.unsaved.append(name)
        saved = "will be saved" if persistent else "will not be saved"
        return f"{name} is in _buffers, {'as None; a tensor put there' if value.is_none else 'and'} {saved}."

    def add_module(self, name, value):
        if self.ask(
            652, "not isinstance(module, Module) and module is not None", not value.is_module and not value.is_none
        ):
            self.fail(653, f"TypeError: {value.type} is not a Module subclass")
        if self.has(name) and "_modules" not in self.files:
            self.fail(658, no_attribute("_modules"), "name not in self._modules")
        taken = self.has(name) and name not in self.files.get("_modules", {})
        if self.ask(658, "hasattr(self, name) and name not in self._modules", taken):
            self.fail(659, f"KeyError: attribute '{name}' already exists")
        if self.ask(660, '"." in name', "." in name):
            self.fail(661, f'KeyError: module name can\'t contain ".", got: {name}')
        if self.ask(662, 'name == ""', name == ""):
            self.fail(663, 'KeyError: module name can\'t be empty string ""')
        if "_modules" not in self.files:
            self.fail(668, no_attribute("_modules"), "self._modules[name] = module")
        self.put(668, "self._modules[name] = module", "_modules", name, value)
        return f"{name} is in _modules."

    def delete(self, name):
        if "_parameters" not in self.files:
            self.fail(2077, no_attribute("_parameters"), "name in self._parameters")
        for line, file in ((2077, "_parameters"), (2079, "_buffers"), (2082, "_modules")):
            if self.ask(line, f"name in self.{file}", name in self.files[file]):
                del self.files[file][name]
                if file == "_buffers" and name in self.unsaved:
                    self.unsaved.remove(name)
                return f"{name} is gone from {file}."
        if name not in self.files["__dict__"]:
            self.fail(2085, no_attribute(name), "super().__delattr__(name)")
        self.row(2085, "super().__delattr__(name)", "__dict__")
        del self.files["__dict__"][name]
        return f"{name} is gone from __dict__."

    # ---- expressions

    def evaluate(self, tree):
        kind, *parts = tree
        if kind == "plain":
            return plain(*parts)
        if kind == "m":
            return self.m
        if kind == "items":
            values = [self.evaluate(one) for one in parts[1]]
            return Value(parts[0], parts[0], items=None if parts[0] == "set" else values, keys=parts[2])
        if kind == "call":
            values = [self.evaluate(one) for one in parts[1]]
            return self.call(parts[0], values, {name: self.evaluate(one) for name, one in parts[2].items()})
        value = self.evaluate(parts[0])
        if kind == "attribute":
            return self.attribute(value, parts[1])
        if kind == "item":
            return item(value, parts[1])
        if kind == "in place" and not value.is_tensor:
            raise Refusal("mul_ and add_ are methods of tensors.")
        other = self.evaluate(parts[1])
        return computed(value, other) if kind == "computed" else self.in_place(value, other)

    def attribute(self, value, name):
        if value is self.m:
            found, where = self.get(allowed(name))
            if where == "the class":
                raise Refusal(f"m.{name} is a method here: no value of this figure.")
            return found
        for file in FILES[1:] if value.is_module else ():
            if name in value.files[file]:
                return value.files[file][name]
        raise Refusal(f"This figure finds no {name} there: it knows parameters, buffers and modules only.")

    def in_place(self, value, other):
        """value.mul_(other)"""
        requires = computed(value, other).requires_grad
        if value.requires_grad and not value.grad_fn:
            self.fail(0, LEAF, "mul_ or add_")
        if requires:
            value.requires_grad = value.grad_fn = True
        return value

    def call(self, function, values, named):
        library, name = function.split(".")
        if library == "torch":
            return self.tensor(function, values, named)
        if name in LAYERS:
            return layer(name, values, named)
        if name in CONTAINERS:
            no_more(function, named)
            return self.container(name, values)
        return self.parameter(values, named) if name == "Parameter" else self.buffer(values, named)

    def tensor(self, function, values, named):
        requires = option(function, named, "requires_grad", False)
        no_more(function, named)
        if function == "torch.tensor":
            made = tensor_of(function, values)
        else:
            made = Value("tensor", "torch.FloatTensor", sizes=sizes_of(function, values))
        return self.requiring(made, requires)

    def requiring(self, value, requires):
        if requires and value.type != "torch.FloatTensor":
            self.fail(0, NOT_FLOAT, "requires_grad=True")
        value.requires_grad = requires
        return value

    def parameter(self, values, named):
        if len(values) == 2 and "requires_grad" not in named:
            named["requires_grad"] = values.pop()
        requires = option("nn.Parameter", named, "requires_grad", True)
        no_more("nn.Parameter", named)
        if len(values) != 1 or not values[0].is_tensor:
            refuse_call("nn.Parameter", "a tensor")
        return self.requiring(Value("Parameter", values[0].type, sizes=values[0].sizes), requires)

    def buffer(self, values, named):
        persistent = option("nn.Buffer", named, "persistent", True)
        no_more("nn.Buffer", named)
        if len(values) != 1 or not values[0].is_tensor:
            refuse_call("nn.Buffer", "a tensor")
        kind, data = "Buffer" if persistent else "Buffer, not saved", values[0]
        return Value(kind, data.type, sizes=data.sizes, requires_grad=data.requires_grad)

    def container(self, kind, values):
        made = module(kind, "container")
        if kind != "Sequential" and values:
            right = ("dict",) if kind == "ModuleDict" else ("list", "tuple")
            if len(values) > 1 or values[0].kind not in right:
                refuse_call(f"nn.{kind}", f"a {right[0]}")
        entries = values if kind == "Sequential" or not values else values[0].items
        names = values[0].keys if kind == "ModuleDict" and values else [f'"{i}"' for i in range(len(entries))]
        for name, value in dict(zip(map(key, names), entries)).items():
            self.check_entry(kind, name, value)
            made.files["_modules"][name] = value
        return made

    def check_entry(self, kind, name, value):
        """What add_module asks when a container is built."""
        if not value.is_module and not value.is_none:
            self.fail(653, f"TypeError: {value.type} is not a Module subclass")
        if kind == "ModuleDict" and name in (*TAKEN, *TRIED, "training", *DICT_METHODS):
            self.fail(659, f"KeyError: attribute '{name}' already exists")
        if "." in name:
            self.fail(661, f'KeyError: module name can\'t contain ".", got: {name}')
        if name == "":
            self.fail(663, 'KeyError: module name can\'t be empty string ""')

    # ---- who finds what

    def parameters(self):
        """The names in named_parameters()."""
        seen, found = set(), []

        def visit(one, prefix):
            seen.add(one)
            for name, value in one.files["_parameters"].items():
                if not value.is_none and value not in seen:
                    seen.add(value)
                    found.append(joined(prefix, name))
            for name, child in one.files["_modules"].items():
                if not child.is_none and child not in seen:
                    visit(child, joined(prefix, name))

        visit(self.m, "")
        return found

    def saved(self):
        """The names in state_dict(). Raises Endless."""
        visits, found = [], []

        def visit(one, prefix, above):
            if one in above:
                raise Endless
            visits.append(one)
            if len(visits) > MOST_VISITS:
                raise Refusal(f"state_dict() visits more than {MOST_VISITS} modules: too many for this figure.")
            for file in ("_parameters", "_buffers"):
                for name, value in one.files[file].items():
                    if not value.is_none and not (one is self.m and file == "_buffers" and name in self.unsaved):
                        found.append(prefix + name)
            for name, child in one.files["_modules"].items():
                if not child.is_none:
                    visit(child, f"{prefix}{name}.", [*above, one])

        visit(self.m, "", [])
        return found

    def saved_or_error(self):
        try:
            return self.saved()
        except Endless:
            return "RecursionError"

    def state(self):
        """All that the figure draws; lists of dictionaries that are not there are None."""
        there = "_parameters" in self.files
        return {
            "files": [
                [[name, self.text(value)] for name, value in self.files[file].items()] if file in self.files else None
                for file in FILES
            ],
            "unsaved": list(self.unsaved),
            "parameters": self.parameters() if there else None,
            "saved": self.saved_or_error() if there else None,
        }


def joined(prefix, name):
    return f"{prefix}.{name}" if prefix else name


def item(value, index):
    """value[index]"""
    listed = value.kind in ("list", "tuple")
    entries = value.items if listed else list(value.files["_modules"].values()) if value.is_module else []
    if not listed and value.kind not in ("ModuleList", "Sequential") or index >= len(entries):
        raise Refusal(f"This figure finds no [{index}] there.")
    return entries[index]


def computed(value, other):
    """value * other, of which the figure knows what kind of thing it is."""
    tensors = [one for one in (value, other) if one.is_tensor and one.type == "torch.FloatTensor"]
    numbers = [one for one in (value, other) if one.kind in ("int", "float")]
    if not tensors or len(tensors) + len(numbers) < 2:
        raise Refusal("This figure computes with float tensors and numbers only.")
    sizes = tensors[0].sizes
    if len(tensors) == 2 and (sizes is None or sizes != tensors[1].sizes):
        raise Refusal("This figure computes with tensors of equal sizes only.")
    requires = any(one.requires_grad for one in tensors)
    return Value("tensor", "torch.FloatTensor", sizes=sizes, requires_grad=requires, grad_fn=requires)


def key(written):
    """The name that an entry of a ModuleDict gets."""
    if written[0] not in "\"'" or not NAME.fullmatch(written[1:-1]) or written[1:2] == "_":
        raise Refusal("nn.ModuleDict takes names of at most 12 letters, digits and underscores here.")
    return written[1:-1]


def explicitly(name):
    return (
        f"Model parameters must be created explicitly. To express '{name}' as a function of another Tensor, compute the "
        "value in the forward() method."
    )


def no_attribute(name):
    return f"AttributeError: 'Module' object has no attribute '{name}'"


# ---- the program


def allowed(name):
    if name in TAKEN:
        raise Refusal(f"Module needs its own {name}. Methods whose names this figure lets you use: {', '.join(TRIED)}.")
    if name.startswith("_"):
        raise Refusal("Names that begin with _ are Module's own.")
    if not NAME.fullmatch(name):
        raise Refusal("A name has at most 12 letters, digits, underscores and dots here.")
    return name


def run(machine, statement):
    """Do one statement. Returns what happened, as a sentence. Raises Raised, Refusal."""
    kind, *parts = Parser(statement).parse()
    if kind == "new":
        machine.new(parts[0])
        return "A new module." if parts[0] else "A new object, without the call of __init__."
    if kind == "initialize":
        machine.initialize()
        return "The dictionaries are made anew, and empty."
    if kind == "delete":
        return machine.delete(allowed(parts[0]))
    if kind == "assign":
        name = allowed(parts[0])
        return machine.assign(name, machine.evaluate(parts[1]))
    if kind == "register":
        return register(machine, *parts)
    return show(machine, parts[0])


def register(machine, method, name, tree, persistent):
    name, value = allowed(name), machine.evaluate(tree)
    if method == "register_buffer":
        return machine.register_buffer(name, value, persistent)
    return (
        machine.register_parameter(name, value) if method == "register_parameter" else machine.add_module(name, value)
    )


def show(machine, tree):
    """An expression as a statement."""
    if tree[:2] != ("attribute", ("m",)):
        return f"Its value: {machine.text(machine.evaluate(tree))}."
    value, where = machine.get(allowed(tree[2]))
    return f"Found in {where}: {machine.text(value) if value else 'a method'}."


def model(inputs):
    statements = statements_of(inputs["program"])
    if len(statements) > LONGEST:
        raise Refusal(f"A program has at most {LONGEST} statements.")
    machine = Machine()
    steps = [{"rows": [], "error": "", **machine.state()}]
    say = [
        "At first, m = nn.Module(): three dictionaries, all empty."
        if statements
        else "An empty program: press a button."
    ]
    for statement in statements:
        machine.rows = []
        error = ""
        try:
            sentence = run(machine, statement)
        except Raised as raised:
            error = str(raised)
            sentence = error if error.endswith(".") else f"{error}."
        steps.append({"rows": machine.rows, "error": error, **machine.state()})
        say.append(f"{statement}: {sentence}")
    return {"statements": statements, "steps": steps, "say": say}


def picture(result, step):
    now = result["steps"][step]
    parts = []
    for i, statement in enumerate(result["statements"]):
        parts.append(text(f"{'→' if i + 1 == step else '  '} {statement}", 10, 22 + 18 * i, "mono"))
    top = 30 + 18 * len(result["statements"])
    for i, (file, entries) in enumerate(zip(FILES, now["files"])):
        words = "not there" if entries is None else ", ".join(f"{name}: {value}" for name, value in entries) or "empty"
        parts += [text(file, 10, top + 19 + 30 * i, "mono"), box(110, top + 30 * i, 480, 26, "plain", words)]
    return drawing(600, top + 30 * len(FILES) + 8, *parts)


VALUES = (  # of random programs
    "nn.Parameter(torch.ones(2))", "nn.Parameter(torch.rand(3, 4), requires_grad=False)", "nn.Parameter(torch.tensor([1, 2]))",
    "nn.Parameter(torch.ones(2), False).mul_(torch.ones(2, requires_grad=True))", "nn.Buffer(torch.ones(2))",
    "nn.Buffer(torch.ones(2), persistent=False)", "torch.ones(2)", "torch.zeros((3, 4))", "torch.tensor(3)",
    "nn.Linear(2, 1)", "nn.Linear(3, 4, bias=False)", "nn.ReLU()", "nn.Conv2d(1,1,1)", "nn.BatchNorm1d(4)", "nn.Dropout(0.5)",
    "nn.Module()", "nn.ModuleList([nn.Linear(2, 1)])", "nn.ModuleList(['relu'])", "nn.Sequential(m, nn.ReLU(), None)",
    "nn.Sequential(nn.Linear(3, 4), nn.Tanh())", "nn.ModuleDict({'a': nn.LayerNorm(4)})", "nn.ModuleDict({'train': nn.ReLU()})",
    "[nn.Linear(2, 1)]", "(m.y, 3)", "{}", "{'a': nn.ReLU()}", "None", "3", "-0.5", "True", "'hello; you'", "m",
    "m.x", "m.y", "m.x", "m.y", "m.x * 2", "m.x.mul_(m.y)", "m.x.weight", "m.y.bias", "m.y[0]", "nn.Parameter(m.x)", "nn.Buffer(m.y)",
)  # fmt: skip
WRONG = [*"()[]{}.,=:*+-;'\" m3\té\\_", "0", "nn.", "True", "None", "1.5", "del ", "m.y", ""]


def sample(random):
    """A random program whose statements mostly mean something; in some a letter or sign is wrong."""
    names = ["x", "y", "x", "y", *TRIED, "training"]

    def statement():
        name, value = random.choice(names), random.choice(VALUES)
        method = random.choice(["register_buffer", "register_parameter", "add_module"])
        asked = random.choice([name, name, "", "a.b"])
        given = ", persistent=False" if method == "register_buffer" and random.random() < 0.5 else ""
        kinds = [f"m.{name} = {value}"] * 8 + [f"del m.{name}", f"m.{name}", f"m.{name}", value]
        kinds += [f"m.{method}('{asked}', {value}{given})", f"setattr(m, '{asked}', {value})"] * 2
        kinds += [f"getattr(m, '{asked}')", f'delattr(m, "{asked}")']
        kinds += ["m.__init__()"] + [random.choice(["m = nn.Module()", "m = nn.Module.__new__(nn.Module)"])]
        return random.choice(kinds)

    program = "; ".join(statement() for _ in range(random.randint(0, random.choice([3, LONGEST]))))
    if random.random() < 0.25:
        at = random.randint(0, len(program))
        program = program[:at] + random.choice(WRONG) + program[at + random.randint(0, 2) :]
    return {"program": program[:LETTERS]}


FIGURE = Figure(
    name="attributes",
    title="Where does it go?",
    inputs=(
        Expression(
            "program", "a program", FIRST, longest=LETTERS,
            examples=(
                "m.x = None; m.x = nn.Linear(2, 1)", "m.train = nn.ReLU(); m.train",
                "m.x = nn.Buffer(torch.ones(2), persistent=False); m.x = torch.ones(2); del m.x",
                "m.x = nn.Parameter(torch.ones(2), False).mul_(torch.ones(2, requires_grad=True))",
                "m.x = m; m.x = nn.Linear(3, 4); m.y = m.x.weight; setattr(m, 'a.b', nn.ReLU()); m.x = 'hello'",
                "m = nn.Module.__new__(nn.Module); m.x = 3; m.x = nn.Parameter(torch.ones(2)); m.__init__()",
            ),
        ),
        Choice("target", "the buttons write m.", "x", NAMES),
    ),
    model=model,
    picture=picture,
    sample=sample,
    helpers=("models/attribute_values",),
)  # fmt: skip
