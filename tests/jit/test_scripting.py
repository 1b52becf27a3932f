"""Scripted functions and modules next to the reference: operators of the graph, text, results, archives;
errors.
"""

import contextlib
import importlib
import io
import warnings

import pytest
import torch

import readtorch
import readtorch.jit
from tests.jit.both_libraries import load, module_from_text, operators

warnings.filterwarnings("ignore", category=DeprecationWarning)


def paired(name):
    """(name, the reference's function or module, its arguments, ours, its arguments) of every case of a file."""
    found = []
    for (reference, given), (own, own_given) in zip(load(name, "torch").cases(), load(name, "readtorch").cases()):
        title = getattr(reference, "__name__", type(reference).__name__)
        found.append(pytest.param(reference, given, own, own_given, id=f"{title}-{len(found)}"))
    return found


def plain(value):
    """Without tensors: their numbers, rounded, with shape and dtype."""
    if hasattr(value, "detach"):
        numbers = value.detach().reshape(-1).tolist()
        return (
            str(value.dtype).rpartition(".")[2],
            tuple(value.shape),
            [pytest.approx(n, rel=1e-4, abs=1e-6) for n in numbers],
        )
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value if isinstance(value, (int, float, str, bool, type(None))) else str(value)


def numbers(value):
    if hasattr(value, "detach"):
        return str(value.dtype).rpartition(".")[2], tuple(value.shape), value.detach().reshape(-1).tolist()
    if isinstance(value, (list, tuple)):
        return [numbers(v) for v in value]
    if isinstance(value, dict):
        return {k: numbers(v) for k, v in value.items()}
    return value if isinstance(value, (int, float, str, bool, type(None))) else str(value)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def saved_and_loaded(module, writer, reader):
    buffer = io.BytesIO()
    writer.jit.save(module, buffer)
    buffer.seek(0)
    return reader.jit.load(buffer)


@pytest.mark.parametrize("reference, given, own, own_given", paired("scripted_programs"))
def test_function(reference, given, own, own_given):
    theirs, ours = torch.jit.script(reference), readtorch.jit.script(own)
    assert operators(ours.graph) == operators(theirs.graph)
    expected = plain(theirs(*given))
    assert numbers(ours(*own_given)) == expected
    if own.__name__ != "is_scripting_branch":
        assert numbers(own(*own_given)) == expected
    ours.graph.lint()


# Enums and named tuples as arguments belong to the classes of one process; a saved function has no defaults.
ONE_PROCESS = ("enums", "named_tuple_argument")


@pytest.mark.parametrize(
    "reference, given, own, own_given",
    [p for p in paired("scripted_programs") if p.id.rpartition("-")[0] not in ONE_PROCESS and p.values[1] != (None,)],
)
def test_function_in_an_archive(reference, given, own, own_given):
    theirs, ours = torch.jit.script(reference), readtorch.jit.script(own)
    expected = plain(theirs(*given))
    assert numbers(saved_and_loaded(theirs, torch, readtorch)(*own_given)) == expected
    assert numbers(saved_and_loaded(ours, readtorch, torch)(*given)) == expected
    assert numbers(saved_and_loaded(ours, readtorch, readtorch)(*own_given)) == expected


@pytest.mark.parametrize("reference, given, own, own_given", paired("scripted_modules"))
def test_module(reference, given, own, own_given):
    theirs, ours = torch.jit.script(reference), readtorch.jit.script(own)
    assert operators(ours.graph) == operators(theirs.graph)
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for _ in range(2):  # the second call sees what the first has changed
        assert numbers(ours(*own_given)) == plain(theirs(*given))


@pytest.mark.parametrize("reference, given, own, own_given", paired("scripted_modules"))
def test_module_in_an_archive(reference, given, own, own_given):
    theirs, ours = torch.jit.script(reference), readtorch.jit.script(own)
    here, there = saved_and_loaded(theirs, torch, readtorch), saved_and_loaded(ours, readtorch, torch)
    assert numbers(here(*own_given)) == plain(theirs(*given))
    assert plain(there(*given)) == numbers(ours(*own_given))
    assert list(here.state_dict()) == list(theirs.state_dict())


def test_code_is_the_reference_s_text():
    """Names of the functions' modules aside, which are as long as the library's name."""
    checked = 0
    for reference, given, own, own_given in (p.values for p in paired("scripted_programs")):
        theirs, ours = torch.jit.script(reference).code, readtorch.jit.script(own).code
        if "__torch__." not in theirs:
            assert ours == theirs
            checked += 1
    assert checked > 40


ERRORS = {
    "unknown method": "def f(y):\n    return y.no_such_method()\n",
    "unknown name": "def f(x):\n    return foo(x)\n",
    "type of a variable": "def f(x, n: int):\n    if n > 1:\n        x = 1\n    return x\n",
    "one branch only": "def f(x, n: int):\n    if n > 1:\n        y = x\n    return y\n",
    "return types": "def f(n: int):\n    if n > 1:\n        return 1\n    return 'a'\n",
    "annotated return": "def f(n: int) -> str:\n    return n\n",
    "missing return": "def f(n: int) -> int:\n    if n > 1:\n        return n\n",
    "break outside": ("def f(n: int):\n    for i in (1, 2):\n        if i > n:\n            break\n    return n\n"),
    "too many values": "def f(t: Tuple[int, int]):\n    a, b, c = t\n    return a\n",
    "tuple index": "def f(t: Tuple[int, int]):\n    return t[2]\n",
    "wrong argument": "def f(x):\n    return torch.relu(x, 3)\n",
    "annotation": "def f(n: int):\n    x: str = n\n    return x\n",
    "range of floats": "def f(x: float):\n    for i in range(x):\n        pass\n    return x\n",
    "not iterable": "def f(n: int):\n    for i in n:\n        pass\n    return n\n",
    "global variable": "G = 3\ndef f(n: int):\n    return n + G\n",
    "recursion": "def f(n: int) -> int:\n    return f(n - 1)\n",
    "callee": "def g(x):\n    return x.nothing()\ndef f(x):\n    y = x + 1\n    return g(y)\n",
    "try": "def f(x):\n    try:\n        return x\n    finally:\n        pass\n",
    "set": "def f(n: int):\n    y = {n, 2}\n    return n\n",
    "lambda": "def f(n: int):\n    y = (lambda: n)()\n    return n\n",
    "varargs": "def f(x, *args):\n    return x\n",
    "comprehension if": "def f(xs: List[int]):\n    return [x for x in xs if x > 1]\n",
    "else of a loop": (
        "def f(n: int):\n    for i in range(n):\n        n += 1\n    else:\n        n = 0\n    return n\n"
    ),
    "list of two types": "def f(n: int) -> List[int]:\n    x: List[int] = [n, 'a']\n    return x\n",
}


@pytest.mark.parametrize("source", ERRORS.values(), ids=ERRORS)
def test_error(source):
    """The same class, the same first line, the same underlined source line."""
    seen = []
    for library in ("torch", "readtorch"):
        header = f"from typing import *\nimport {library} as torch\n"
        module = module_from_text(header + source, f"error_{len(source)}_{hash(source) % 10**8}")
        script = torch.jit.script if library == "torch" else readtorch.jit.script
        with pytest.raises(Exception) as error:
            script(module.f)
        seen.append((error.type.__name__, str(error.value)))
    (their_class, theirs), (our_class, ours) = seen
    assert our_class == their_class
    assert ours.strip().splitlines()[0] == theirs.strip().splitlines()[0]
    if their_class in ("RuntimeError", "UnsupportedNodeError"):
        assert underlined(ours) == underlined(theirs)


def underlined(text):
    """The lines of the program above `<--- HERE`, and the marks."""
    lines = text.splitlines()
    return [(lines[i - 1], line) for i, line in enumerate(lines) if line.endswith("<--- HERE")][:1]


def test_exceptions_of_a_program():
    module = load("scripted_programs", "readtorch")
    scripted = readtorch.jit.script(module.raises)
    with pytest.raises(readtorch.jit.Error, match="negative: -1"):
        scripted(readtorch.ones(2), -1)


def test_ignored_and_unused_methods():
    class M(readtorch.nn.Module):
        @readtorch.jit.ignore
        def python(self, x) -> readtorch.Tensor:
            return x * [2][0]

        @readtorch.jit.unused
        def never(self, x):
            return [y for y in x if y]

        def forward(self, x):
            if x.dim() > 5:
                return self.never(x)
            return self.python(x)

    scripted = readtorch.jit.script(M())
    assert scripted(readtorch.ones(2)).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="Could not export Python function call 'python'"):
        readtorch.jit.save(scripted, io.BytesIO())


def test_a_scripted_module_is_a_module():
    module = load("scripted_modules", "readtorch").Net()
    scripted = readtorch.jit.script(module)
    assert scripted.scale == 0.5 and scripted.training
    scripted.eval()
    assert not scripted.training and not scripted.fc.training
    scripted.scale = 2.0
    assert scripted.scale == 2.0
    assert scripted.fc.weight is module.fc.weight
    scripted.load_state_dict({k: v * 0 for k, v in scripted.state_dict().items()})
    assert scripted(readtorch.ones(1, 3)).tolist() == [[0, 0]]
    assert repr(scripted).startswith("RecursiveScriptModule(\n  original_name=Net\n  (fc): RecursiveScriptModule(")
    loss = scripted(readtorch.ones(1, 3)).sum()
    loss.backward()
    assert module.fc.weight.grad is not None


def test_extra_files():
    scripted = readtorch.jit.script(load("scripted_modules", "readtorch").Net())
    buffer = io.BytesIO()
    readtorch.jit.save(scripted, buffer, _extra_files={"note.txt": "hello"})
    for library in (torch, readtorch):
        buffer.seek(0)
        extra = {"note.txt": ""}
        library.jit.load(buffer, _extra_files=extra)
        assert extra["note.txt"] in (b"hello", "hello")


def test_interfaces():
    """An attribute that is annotated with an interface may hold any module that has its methods."""
    source = """
import {library} as torch
nn, Tensor = torch.nn, torch.Tensor

@torch.jit.interface
class Layer(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass

class Plus(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1

class Net(nn.Module):
    layer: Layer

    def __init__(self):
        super().__init__()
        self.layer = Plus()

    def forward(self, x: Tensor) -> Tensor:
        return self.layer.forward(x) * 2
"""
    made = []
    for library in (torch, readtorch):
        module = module_from_text(source.format(library=library.__name__), f"interfaces_{library.__name__}")
        made.append(library.jit.script(module.Net()))
    assert operators(made[1].graph) == operators(made[0].graph)
    assert made[1](readtorch.ones(2)).tolist() == [4, 4]
    assert saved_and_loaded(made[1], readtorch, torch)(torch.ones(2)).tolist() == [4, 4]
    assert saved_and_loaded(made[0], torch, readtorch)(readtorch.ones(2)).tolist() == [4, 4]


DATACLASSES = """
import torch
from dataclasses import InitVar, dataclass, field
from typing import List, Optional

@dataclass
class Point:
    x: float
    y: Optional[float] = None
    def norm(self) -> float:
        y = self.y
        return self.x if y is None else (self.x ** 2 + y ** 2) ** 0.5

@dataclass(order=True)
class Version:
    major: int
    minor: int = 3
    note: float = field(default=2.0, compare=False)
    def __post_init__(self):
        self.minor = self.minor + 1

@dataclass
class Scaled:
    t: torch.Tensor
    k: InitVar[int] = 2
    def __post_init__(self, k: int):
        self.t = self.t * k

@dataclass
class Same:
    x: int = 1
    def __eq__(self, other: "Same") -> bool:
        return True

@dataclass
class Made:
    x: List[int] = field(default_factory=list)

def points(x: float) -> List[float]:
    return [Point(x).norm(), Point(x, 4.0).norm(), float(Point(x) == Point(x)), float(Point(x) == Point(x, 1.0))]

def versions(n: int) -> List[bool]:
    a, b, c = Version(n), Version(n, 7), Version(n, 7, 9.0)
    return [a == b, b == c, a < b, a <= b, b <= c, b > c, b >= a]

def scaled(t: torch.Tensor) -> torch.Tensor:
    return Scaled(t).t + Scaled(t, 5).t

def same(n: int) -> bool:
    return Same(n) == Same(n + 1)
"""


def test_dataclasses(tmp_path, monkeypatch):
    """Their methods have no source: equality, order and `__init__` are written anew."""
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("points", "versions", "scaled", "same"):
        found = []
        for lib in (torch, readtorch):
            title = f"dataclasses_of_{lib.__name__}_{name}"  # PyTorch wants a file
            (tmp_path / f"{title}.py").write_text(
                DATACLASSES.replace("import torch", f"import {lib.__name__} as torch")
            )
            module = importlib.import_module(title)
            for each in (module.Point, module.Version, module.Scaled, module.Same):
                assert lib.jit.script(each) is each
            function = lib.jit.script(getattr(module, name))
            argument = {"points": 3.0, "scaled": lib.ones(2)}.get(name, 1)
            found.append((plain(function(argument)), function.code.replace(title, "")))
            with pytest.raises(NotImplementedError, match="Default factory initializers are not supported"):
                lib.jit.script(module.Made)
        assert found[0] == found[1]


@pytest.mark.parametrize("library", [readtorch, torch])
def test_the_warning_is_said_of_the_librarys_own_line(library):
    """So Python shows it to nobody who does not ask: of a program's own line it would show it always."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        library.jit.script(library.nn.ReLU())
        library.jit.trace(library.nn.ReLU(), library.ones(1))
    ours = [warning for warning in caught if warning.category is DeprecationWarning]
    assert len(ours) > 1 and all("/jit/_" in warning.filename for warning in ours)
