"""Four modules that import one another, line by line, as Python's import runs them (the chapter "import torch").

In CPython: `Lib/importlib/_bootstrap.py`, `Python/import.c`, `Python/ceval.c` (`import_from`, `import_all_from`).
`tests/viz/test_imports_half_made.py` runs random packages with Python.
"""

from dataclasses import dataclass, field

from readtorch.viz.figure_kit import Figure
from readtorch.viz.import_programs import parsed, sample
from readtorch.viz.inputs import Choice, Expression, Refusal, Switch, Text
from readtorch.viz.picture import box, drawing, text

SLOTS = ("one", "two", "three", "four")
LONGEST = 14  # lines of a module
DEEPEST = 20  # lines that run at the same time
MOST = 400  # steps

# ---- values


@dataclass(eq=False)
class Value:
    """Anything that a name can stand for. kind: "int", "str", "list", "NoneType", "function", "class", "instance" or "module".

    data: the number, the text, the elements, the body of a function, the base of a class, the class of an instance.
    """

    kind: str
    name: str = ""
    data: object = None
    module: object = None  # where a function or class was defined
    names: dict = field(default_factory=dict)
    history: dict = field(default_factory=dict)  # of a module: name -> who set it, one after the other
    state: str = ""  # of a module: "half made", "done", "failed"
    package: bool = False
    loading: list = field(default_factory=list)  # of a package: the children that are being loaded


NONE = Value("NoneType")


class Raised(Exception):
    """An exception of the program. missing: the module that was not found."""

    def __init__(self, kind, words, missing=""):
        super().__init__(f"{kind}: {words}" if words else kind)
        self.kind = kind
        self.missing = missing
        self.told = False


def file_of(module):
    path = module.name.replace(".", "/")
    return f"…/{path}/__init__.py" if module.package else f"…/{path}.so" if is_c(module.name) else f"…/{path}.py"


def is_c(name):
    return name.rpartition(".")[2] == "_C"


def repr_of(value):
    if value.kind == "int":
        return value.data
    if value.kind == "str":
        quote = '"' if "'" in value.data and '"' not in value.data else "'"
        return quote + (value.data.replace("'", "\\'") if quote == "'" else value.data) + quote
    if value.kind == "list":
        return f"[{', '.join(map(repr_of, value.data))}]"
    if value.kind == "NoneType":
        return "None"
    if value.kind == "function":
        return f"<function {value.name}>"
    if value.kind == "module":
        return f"<module '{value.name}' from '{file_of(value)}'>"
    full = f"{value.module.name}.{value.name}"
    return f"<class '{full}'>" if value.kind == "class" else f"<{full} object>"


def short(value):
    """What stands beside a name in a dictionary."""
    if value.kind == "module":
        return f"module {value.name}"
    return f"{value.kind} {value.name}" if value.kind in ("function", "class") else repr_of(value)


def quoted(words):
    return f"'{words}'"


# ---- running


@dataclass
class Frame:
    """A place where something runs: a module, a function or the body of a class. names: its own, if it has some."""

    module: Value
    line: int = 0
    function: str = ""
    names: dict | None = None
    own: tuple = ()  # names that are local to a function
    body: bool = False  # of a class


class Machine:
    """sys.modules, the frames that run, and what there is to see after each step."""

    def __init__(self, texts, early, removed):
        self.texts = texts  # name -> lines, parsed
        self.early, self.removed = early, removed
        self.modules = {}  # sys.modules
        self.newest = {}  # name -> the module that was made last
        self.frames = [Frame(Value("module", "__main__", state="done"))]
        self.output = []
        self.steps, self.say = [], []

    # ---- what there is to see

    def see(self, sentence, error=False):
        if len(self.steps) == MOST:
            raise Refusal(f"These modules take more than {MOST} steps.")
        self.say.append(sentence)
        stack = [
            {"module": f.module.name, "line": f.line, "function": f.function}
            for f in self.frames
            if f.line or f.module.name != "__main__"
        ]
        self.steps.append(
            {
                "stack": stack,
                "modules": [self.seen(name) for name in self.texts],
                "names": entries(self.frames[0].module),
                "output": [*self.output],
                "error": error,
            }
        )

    def seen(self, name):
        module = self.modules.get(name)
        shown = module or self.newest.get(name)
        return {"state": module.state if module else "absent", "names": entries(shown) if shown else []}

    @property
    def frame(self):
        return self.frames[-1]

    def where(self):
        frame = self.frame
        inside = f", in {frame.function}" if frame.function else ""
        return f"{'the program' if frame.module.name == '__main__' else frame.module.name}, line {frame.line}{inside}"

    def tell(self, words, error=False):
        sentence = f"{self.where()}: {words}"
        self.see(sentence[:1].upper() + sentence[1:] if sentence.startswith("the ") else sentence, error)

    # ---- names

    def bind(self, name, value):
        """`name = value` in the frame that runs. Returns what is told."""
        frame = self.frame
        if frame.names is not None:
            frame.names[name] = value
            return name
        return self.put(frame.module, name, value)

    def put(self, module, name, value, by=""):
        """Sets a name of a module, and notes who did it."""
        before = module.names.get(name)
        module.names[name] = value
        note = {"module": self.frame.module.name, "line": self.frame.line, "value": short(value), "by": by}
        module.history.setdefault(name, []).append(note)
        return f"{name} again" if before and before is not value else name

    def look_up(self, name):
        frame = self.frame
        if frame.function and not frame.body and name in frame.own:
            if name not in frame.names:
                words = f"cannot access local variable {quoted(name)} where it is not associated with a value"
                raise Raised("UnboundLocalError", words)
            return frame.names[name]
        for names in (frame.names if frame.body else None, frame.module.names):
            if names is not None and name in names:
                return names[name]
        raise Raised("NameError", f"name {quoted(name)} is not defined")

    def attribute(self, value, name):
        found = held(value, name)
        if found is not None:
            return found
        if value.kind == "module" and value.state != "half made" and name in value.loading:
            words = f"cannot access submodule {quoted(name)} of module {quoted(value.name)} (most likely due to a circular import)"
            raise Raised("AttributeError", words)
        if value.kind == "module":
            begun = "partially initialized module" if value.state == "half made" else "module"
            reason = " (most likely due to a circular import)" if value.state == "half made" else ""
            raise Raised("AttributeError", f"{begun} {quoted(value.name)} has no attribute {quoted(name)}{reason}")
        if value.kind == "class":
            raise Raised("AttributeError", f"type object {quoted(value.name)} has no attribute {quoted(name)}")
        if value.kind == "instance":
            raise Raised("AttributeError", f"{quoted(value.name)} object has no attribute {quoted(name)}")
        raise Refusal(f"The attributes of a {value.kind}, such as {name}, are not known here.")

    # ---- expressions

    def value(self, expression):
        kind, *rest = expression
        if kind == "name":
            return self.look_up(rest[0])
        if kind == "attribute":
            return self.attribute(self.value(rest[0]), rest[1])
        if kind == "call":
            return self.call(self.value(rest[0]))
        if kind == "list":
            return Value("list", data=[self.value(one) for one in rest[0]])
        return Value(kind, data=rest[0])

    def call(self, called):
        if called.kind == "class":
            return Value("instance", called.name, called, called.module)
        if called.kind != "function":
            name = called.name if called.kind == "instance" else called.kind
            raise Raised("TypeError", f"{quoted(name)} object is not callable")
        body, line = called.data
        own = tuple(name for statement in body for name in bound_by(statement))
        self.enter(Frame(called.module, line, called.name, {}, own))
        result = NONE
        for statement in body:
            if statement[0] == "return":
                result = self.value(statement[1])
                break
            self.run(statement)
        self.frames.pop()
        return result

    def enter(self, frame):
        if len(self.frames) >= DEEPEST:
            raise Raised("RecursionError", "maximum recursion depth exceeded")
        self.frames.append(frame)

    # ---- statements

    def run(self, statement):
        kind, *rest = statement
        getattr(self, f"run_{kind}")(*rest)

    def run_pass(self):
        self.tell("nothing.")

    def run_expression(self, expression):
        value = self.value(expression)
        if self.frame.module.name == "__main__" and not self.frame.function and value.kind != "NoneType":
            self.output.append(repr_of(value))
        self.tell("it is evaluated.")

    def run_print(self, expressions):
        values = [self.value(one) for one in expressions]
        self.output.append(" ".join(one.data if one.kind == "str" else repr_of(one) for one in values))
        self.tell("prints.")

    def run_set(self, target, expression):
        value = self.value(expression)
        if target[0] == "name":
            self.tell(f"sets {self.bind(target[1], value)}.")
            return
        owner = self.value(target[1])
        if owner.kind == "module":
            self.tell(f"sets {self.put(owner, target[2], value)} in {owner.name}.")
        elif owner.kind in ("class", "instance"):
            owner.names[target[2]] = value
            self.tell(f"sets {target[2]} in {owner.name}.")
        else:
            raise Refusal(f"The attributes of a {owner.kind}, such as {target[2]}, are not known here.")

    def run_del(self, names):
        for name in names:
            if name not in self.frame.module.names:
                raise Raised("NameError", f"name {quoted(name)} is not defined")
            del self.frame.module.names[name]
        self.tell(f"takes {', '.join(names)} away.")

    def run_def(self, name, body):
        function = Value("function", name, (body, self.frame.line), self.frame.module)
        self.tell(f"sets {self.bind(name, function)}.")

    def run_class(self, name, base, body):
        base = self.value(base) if base else None
        if base and base.kind != "class":
            raise Refusal(f"The base of {name} is a {base.kind}; here it is a class.")
        made = Value("class", name, base, self.frame.module)
        self.enter(Frame(self.frame.module, self.frame.line, name, made.names, body=True))
        for statement in body:
            if statement[0] == "set":
                made.names[statement[1][1]] = self.value(statement[2])
        self.frames.pop()
        self.tell(f"sets {self.bind(name, made)}.")

    def run_import(self, wanted):
        for name, other in wanted:
            module = self.import_module(name)
            parts = name.split(".")
            if other:
                module = self.import_module(parts[0], quiet=True)
                for part in parts[1:]:
                    module = self.import_from(module, part)
            elif len(parts) > 1:
                module = self.import_module(parts[0], quiet=True)
            self.tell(f"sets {self.bind(other or parts[0], module)}.")

    def run_from(self, level, name, wanted):
        module = self.import_module(self.absolute(level, name))
        if wanted == "*":
            names = self.all_of(module)
            if module.package and names is not None:
                self.submodules(module, names)
            told = [self.bind(one, self.attribute(module, one)) for one in self.star(module)]
            self.tell(f"sets {', '.join(told)}." if told else f"{module.name} has no name to give: nothing is set.")
            return
        if module.package:
            self.submodules(module, [one for one, _ in wanted])
        told = [self.bind(other or one, self.import_from(module, one)) for one, other in wanted]
        self.tell(f"sets {', '.join(told)}.")

    # ---- import

    def absolute(self, level, name):
        """The full name behind `from ..name import`."""
        if not level:
            return name
        own = self.frame.module
        base = own.name if own.package else own.name.rpartition(".")[0]
        if not base:
            raise Raised("ImportError", "attempted relative import with no known parent package")
        for _ in range(level - 1):
            base = base.rpartition(".")[0]
            if not base:
                raise Raised("ImportError", "attempted relative import beyond top-level package")
        return f"{base}.{name}" if name else base

    def import_module(self, name, quiet=False):
        if name not in self.modules:
            return self.find_and_load(name)
        module = self.modules[name]
        if not quiet:
            ends = ", half made: the import gets it as it is." if module.state == "half made" else "."
            if module.state == "failed":
                ends = ", as its failure left it: no error."
            self.tell(f"{name} is in sys.modules{ends}")
        return module

    def find_and_load(self, name):
        parent, _, child = name.rpartition(".")
        if parent:
            if parent not in self.modules:
                self.find_and_load(parent)
            if name in self.modules:
                return self.modules[name]
            if not self.modules[parent].package:
                words = f"No module named {quoted(name)}; {quoted(parent)} is not a package"
                raise Raised("ModuleNotFoundError", words, name)
        if name not in self.texts:
            raise Raised("ModuleNotFoundError", f"No module named {quoted(name)}", name)
        above = self.modules.get(parent)
        if above:
            above.loading.append(child)
        try:
            module = self.load(name)
        finally:
            if above:
                above.loading.pop()
        ends = ""
        if parent:
            self.put(self.modules[parent], child, module, "the import")
            ends = f" It becomes the name {child} of {parent}."
        self.tell(f"{name} has run to its end.{ends}")
        return module

    def load(self, name):
        package = any(other.startswith(f"{name}.") for other in self.texts)
        module = self.newest[name] = Value("module", name, package=package, state="half made")
        early = self.early and not is_c(name)
        ends = (
            "an empty module is entered."
            if early
            else "an empty module is made, but not entered before its code has run."
        )
        if is_c(name):
            ends = "it is an extension. C code makes the module; it is entered when that has run."
        if early:
            self.modules[name] = module
        self.tell(f"{name} is not in sys.modules. A finder finds {file_of(module)}; {ends}")
        depth = len(self.frames)
        try:
            self.enter(Frame(module))
            for self.frame.line, statements in self.texts[name]:
                for statement in statements:
                    self.run(statement)
        except Raised as raised:
            self.fail(module, raised, depth)
            raise
        self.frames.pop()
        module.state = "done"
        self.modules[name] = module
        return module

    def fail(self, module, raised, depth):
        """A module's code has raised an error."""
        self.tell_error(raised)
        del self.frames[depth:]
        module.state = "failed"
        if self.modules.get(module.name) is not module:
            words = "it was not entered."
        elif self.removed:
            del self.modules[module.name]
            words = "its entry is removed."
        else:
            words = "its entry stays."
        self.tell(f"{module.name} has failed; {words}", True)

    def tell_error(self, raised):
        if not raised.told:
            self.tell(f"{raised}{'' if str(raised).endswith('.') else '.'}", True)
        raised.told = True

    def submodules(self, module, names):
        """Imports those that are not names of the package; what is not there either is left to the statement. (_handle_fromlist)"""
        for name in names:
            full = f"{module.name}.{name}"
            if name in module.names:
                continue
            try:
                if full not in self.modules:
                    self.find_and_load(full)
            except Raised as raised:
                if raised.missing != full:
                    raise

    def all_of(self, module):
        listed = module.names.get("__all__")
        if listed is None:
            return None
        if listed.kind != "list" or any(one.kind != "str" for one in listed.data):
            raise Refusal("__all__ is a list of strings here.")
        return [one.data for one in listed.data]

    def star(self, module):
        names = self.all_of(module)
        return [name for name in module.names if not name.startswith("_")] if names is None else names

    def import_from(self, module, name):
        if name in module.names:
            return module.names[name]
        if f"{module.name}.{name}" in self.modules:
            return self.modules[f"{module.name}.{name}"]
        begun, reason = "", ""
        if module.state == "half made":
            begun, reason = "partially initialized module ", " (most likely due to a circular import)"
        words = f"cannot import name {quoted(name)} from {begun}{quoted(module.name)}{reason} ({file_of(module)})"
        raise Raised("ImportError", words)

    # ---- the program

    def run_program(self, lines):
        """As at Python's prompt: an error ends a line, and the next is run."""
        self.see("Nothing has run yet: none of these modules is in sys.modules.")
        for self.frame.line, statements in lines:
            try:
                for statement in statements:
                    self.run(statement)
            except Raised as raised:
                self.tell_error(raised)
                self.output.append(str(raised))
                del self.frames[1:]
                self.tell("the error ends the line.", True)


def held(value, name):
    """A name of a value itself or of its classes, or None."""
    while value is not None:
        if name in value.names:
            return value.names[name]
        value = value.data if value.kind in ("class", "instance") else None
    return None


def entries(module):
    return [
        {"name": name, "value": short(value), "history": [*module.history.get(name, [])]}
        for name, value in module.names.items()
    ]


def bound_by(statement):
    """The names that a statement in a function makes local."""
    kind, *rest = statement
    if kind == "set":
        return [rest[0][1]] if rest[0][0] == "name" else []
    if kind == "import":
        return [other or name.split(".")[0] for name, other in rest[0]]
    return [other or name for name, other in rest[2]] if kind == "from" else []


# ---- examples


@dataclass(frozen=True)
class Example:
    """texts: name of a module -> its lines"""

    title: str
    program: str
    texts: dict


TINY = (
    "from tiny._C import *",
    "from tiny import _C",
    "del TensorBase",
    "from tiny._tensor import Tensor",
    "_C._initExtension()",
    "split = _C._VariableFunctions.split",
    "from tiny.functional import *",
)
PARTS = {
    "tiny._C": (
        "class TensorBase: dim = 0",
        'class _VariableFunctions: split = "C\'s"',
        "def _initExtension(): import tiny; tiny.float32 = 32",
    ),
    "tiny._tensor": ("import tiny", "class Tensor(tiny._C.TensorBase): pass"),
    "tiny.functional": ("import tiny", "default = tiny.float32", 'split = "Python\'s"'),
}


def tiny(title, *order):
    """The package of the chapter, with the lines of `tiny` in this order."""
    return Example(title, "import tiny; tiny.split", {"tiny": [TINY[at] for at in order], **PARTS})


def circle(title, first, second):
    return Example(title, "import tiny_a", {"tiny_a": first, "tiny_b": second})


FIRST = ("import tiny_b", "x = 1")
EXAMPLES = {
    "order": tiny("PyTorch's order", *range(7)),
    "too_early": tiny("too early", 0, 1, 2, 3, 6, 4, 5),
    "too_late": tiny("too late", 0, 1, 2, 3, 4, 6, 5),
    "torch_py": Example("a file torch.py", "import torch", {"torch": ("import torch", "print(torch.ones)")}),
    "A": circle("circle A", FIRST, ("import tiny_a", "y = tiny_a.x")),
    "B": circle("circle B", ("x = 1", "import tiny_b"), ("import tiny_a", "y = tiny_a.x")),
    "C": circle("circle C", FIRST, ("import tiny_a", "def y(): return tiny_a.x")),
    "D": circle("circle D", FIRST, ("from tiny_a import x",)),
    "E": circle("circle E", FIRST, ("from tiny_a import *", "y = 2")),
    "twice": Example("fails, and is asked for again", "import a\nimport a\na.x", {"a": ("x = 1", "y = missing")}),
}
UNSEEN = {"hidden": True, "undone": True}


def resolved(inputs):
    """The program, and name -> text of each module: of an example, or the reader's own."""
    if inputs["example"]:
        example = EXAMPLES[inputs["example"]]
        return example.program, {name: "\n".join(lines) for name, lines in example.texts.items()}
    return inputs["program"], {name: inputs[slot] for name, slot in zip(module_names(inputs["names"]), SLOTS)}


# ---- the figure

# Of CPython 3.11 as its own Makefile builds it.
BUILT_IN = (
    "_abc _ast _codecs _collections _functools _imp _io _locale _operator _signal _sre _stat _string _symtable _thread _tokenize "
    "_tracemalloc _warnings _weakref atexit builtins errno faulthandler gc itertools marshal ntpath posix pwd runpy sys "
    "time xxsubtype"
).split()
LOADED = (
    "__main__ _collections_abc _frozen_importlib _frozen_importlib_external _sitebuiltins abc codecs encodings genericpath io os "
    "posixpath site stat zipimport"
).split()
MODULE_NAME = "a name, or names joined by dots, such as tiny.functional"


def module_names(words):
    names = [name.strip(" ") for name in words.split(",") if name.strip(" ")]
    if not names or len(names) > len(SLOTS):
        raise Refusal("Name one to four modules, separated by commas.")
    for name in names:
        if not all(part.isascii() and part.isidentifier() for part in name.split(".")):
            raise Refusal(f"{name} is not {MODULE_NAME}.")
        root = name.split(".")[0]
        if root in BUILT_IN:
            raise Refusal(f"{root} is built into Python, which looks for no file of that name.")
        if root in LOADED:
            raise Refusal(f"{root} is in sys.modules when Python starts: no file of that name is looked for.")
        parent = name.rpartition(".")[0]
        if parent and parent not in names:
            raise Refusal(f"{name} needs a module {parent}.")
        if is_c(parent):
            raise Refusal(f"{parent} stands for an extension, which is no package.")
    if len(set(names)) < len(names):
        raise Refusal("Two modules have the same name.")
    return names


def model(inputs):
    words, texts = resolved(inputs)
    machine = Machine({}, inputs["early"], inputs["removed"])
    for name, lines_of_it in texts.items():
        machine.texts[name] = parsed(name, lines_of_it, LONGEST)
    machine.run_program(parsed("The program", words, LONGEST))
    return {"program": words, "names": [*texts], "texts": [*texts.values()], "steps": machine.steps, "say": machine.say}


COLOURS = {"absent": "free", "half made": "gold", "done": "pale", "failed": "free"}


def picture(result, step):
    """sys.modules at this step, and below each module its names."""
    parts, height = [], 40
    for at, (name, seen) in enumerate(zip(result["names"], result["steps"][step]["modules"])):
        x = 5 + 165 * at
        parts.append(box(x, 5, 155, 40, COLOURS[seen["state"]], name))
        parts.append(text(seen["state"], x + 78, 60, "dim mid"))
        for row, entry in enumerate(seen["names"]):
            parts.append(text(entry["name"], x + 8, 80 + 18 * row, "mono"))
            height = max(height, 80 + 18 * row)
    return drawing(5 + 165 * len(result["names"]), height + 30, *parts)


FIGURE = Figure(
    name="imports_half_made",
    title="Half made: modules that import one another",
    inputs=(
        Switch("early", "enter a module before it runs", True),
        Switch("removed", "remove one that fails", True),
        Choice(
            "example",
            "example",
            "order",
            options={"": "your own", **{key: one.title for key, one in EXAMPLES.items()}},
            **UNSEEN,
        ),
        Text("program", "program", "", longest=200, **UNSEEN),
        Expression("names", "modules", "", longest=120, **UNSEEN),
        *(Text(slot, f"module {slot}", "", longest=900, **UNSEEN) for slot in SLOTS),
        Text("shown", "the module that is looked at", "", longest=60, hidden=True),
        Text("entry", "the name that is looked at", "", longest=90, hidden=True),
    ),
    model=model,
    picture=picture,
    helpers=("models/import_programs",),
    sample=sample,
)
