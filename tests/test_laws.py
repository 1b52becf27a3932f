"""The laws of the house, read from the imports: arrows point down, and the package runs without the reference."""

import ast
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
PACKAGE = SOURCE / "readtorch"

# The storeys, lowest first. A module may import from its own storey and from those below. What is not named
# is a public face (nn, optim, utils, cuda …); the front door, `readtorch` itself, stands with the faces. autograd is
# a face as well, but Tensor.backward calls it, here as in PyTorch: it stands beside _tensor.
STOREYS = [
    {"c10"},
    {"aten"},
    {"csrc"},
    {"_C"},
    {
        "autograd",
        "_vmap_internals",
        "_tensor",
        "_tensor_str",
        "_dim_order",
        "_linalg_utils",
        "_utils",
        "storage",
        "random",
        "serialization",
        "_weights_only_unpickler",
    },
    "faces",
    {"__main__", "_run", "_as_torch", "_inspect", "show", "viz"},
]
FACES = STOREYS.index("faces")
UPWARD = {  # where PyTorch's own layout asks for an arrow up, inside a function
    ("readtorch._tensor", "readtorch.utils.dlpack"),  # `__dlpack_device__`
    # a checkpoint names torch._utils._rebuild_parameter as what makes its Parameters
    ("readtorch._utils", "readtorch.nn.parameter"),
    ("readtorch.serialization._safe_globals", "readtorch.nn.parameter"),
    (
        "readtorch.serialization._legacy_save",
        "readtorch.nn.modules.module",
    ),  # an old checkpoint keeps the source of modules' classes
    ("readtorch.serialization._locations", "readtorch.cuda"),  # is there a GPU to bring the storage to?
    ("readtorch.serialization._load", "readtorch.utils.safetensors"),  # load("model.safetensors") reads that format
}
UPWARD_ROOMS = {  # the same for whole rooms, which `import readtorch` does not load
    # python_sugared_value.cpp asks torch.jit and torch._jit_internal what a Python value means to a script
    ("readtorch.csrc.jit.python", "readtorch.jit"),
    ("readtorch.csrc.jit.python", "readtorch._jit_internal"),
    ("readtorch.csrc.jit.frontend.resolver", "readtorch.jit.annotations"),
    # in PyTorch zip files and pickles are C++, below (caffe2/serialize); here `save` and `load` have them already
    ("readtorch.csrc.jit.serialization", "readtorch.serialization"),
    ("readtorch.csrc.jit.serialization", "readtorch.storage"),
    ("readtorch.csrc.jit.serialization", "readtorch._utils"),
    ("readtorch.csrc.jit.serialization", "readtorch._weights_only_unpickler"),
}
SHOWS_THE_REFERENCE = "readtorch.show._links"  # quotes PyTorch's source: imports it inside one function


@pytest.fixture(autouse=True)
def same_seed_everywhere():
    """In place of the suite's fixture of that name: source is read here, nothing is computed."""


def module_name(file):
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules():
    return {module_name(file): file for file in sorted(PACKAGE.rglob("*.py"))}


def imports(name):
    """Everything that a module imports, inside its functions too: (line, full name, inside a function)"""
    file = modules()[name]
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    return [
        (node.lineno, target, inside)
        for node, inside in statements(ast.parse(file.read_text(encoding="utf8")), False)
        for target in targets(node, package)
    ]


def statements(tree, inside):
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue  # for readers and checkers of types: nothing is imported
        yield node, inside
        yield from statements(node, inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def targets(node, package):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = package.rsplit(".", node.level - 1)[0] if node.level else ""
    base = ".".join(filter(None, [base, node.module]))
    # `from readtorch import nn` is an arrow to readtorch.nn, `from readtorch import tensor` one to the front door
    return [f"{base}.{alias.name}" if f"{base}.{alias.name}" in modules() else base for alias in node.names]


def storey(name):
    room = name.split(".")[1] if "." in name else None
    named = (i for i, rooms in enumerate(STOREYS) if rooms != "faces" and room in rooms)
    return next(named, FACES)


def ours(name):
    return name.split(".")[0] == "readtorch"


# -- law 1 --------------------------------------------------------------------------------------


def test_arrows_point_down():
    upward = [
        f"{name}:{line} imports {target}"
        for name in modules()
        for line, target, inside in imports(name)
        if ours(target) and storey(target) > storey(name) and not allowed(name, target, inside)
    ]
    assert upward == []


def allowed(name, target, inside):
    within = [f"{place}.".startswith for place in (name, target)]
    return (
        inside
        and (name, target) in UPWARD
        or any(within[0](f"{room}.") and within[1](f"{other}.") for room, other in UPWARD_ROOMS)
    )


def test_nothing_imports_the_pictures():
    """A cell imports viz and show; the package never does."""
    shown = ("readtorch.viz", "readtorch.show")
    wrong = [
        f"{name}:{line} imports {target}"
        for name in modules()
        if not name.startswith(shown)
        for line, target, _ in imports(name)
        if target.startswith(shown)
    ]
    assert wrong == []


# -- law 2 --------------------------------------------------------------------------------------


def test_the_engine_knows_no_operation():
    """python_variable and its like are not the engine: they bind operations to the names in Python."""
    engine_room = [name for name in modules() if name.startswith("readtorch.csrc.autograd.") and ".python_" not in name]
    wrong = [
        f"{name}:{line} imports {target}"
        for name in engine_room
        for line, target, _ in imports(name)
        if target.startswith("readtorch.aten.native.")
    ]
    assert wrong == []


def test_mini_stands_by_itself():
    """A copy of the reader's program runs without the house: `tests/mini` tries it, this says which line is wrong."""
    wrong = [
        f"{name}:{line} imports {target}"
        for name in modules()
        if name.startswith("readtorch.mini")
        for line, target, _ in imports(name)
        if ours(target) and not target.startswith("readtorch.mini")
    ]
    assert wrong == []


# -- law 7 --------------------------------------------------------------------------------------


def test_the_package_never_imports_the_reference():
    wrong = [
        f"{name}:{line} imports {target}"
        for name in modules()
        for line, target, inside in imports(name)
        if target.split(".")[0] in ("torch", "torchgen") and not (name == SHOWS_THE_REFERENCE and inside)
    ]
    assert wrong == []


def imported_by(statement):
    """The modules that a fresh interpreter has after this statement."""
    done = subprocess.run(
        [sys.executable, "-c", f"{statement}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "statement", ["import readtorch", "import readtorch.nn, readtorch.optim", "import readtorch.show"]
)
def test_importing_it_does_not_import_the_reference(statement):
    assert "torch" not in imported_by(statement)


def test_compilers_and_pictures_wait_until_they_are_needed():
    """`import readtorch` stays quick: numba takes half a second, the widgets' libraries more."""
    loaded = imported_by("import readtorch")
    assert "readtorch" in loaded
    assert loaded.isdisjoint({"numba", "llvmlite", "anywidget", "ipywidgets", "matplotlib", "pygments", "IPython"})


# -- law 9: circles -----------------------------------------------------------------------------

# Modules that import each other in a circle, inside of functions included, with the reason why they may. None may grow and
# none may be added; a circle that is cut leaves the list. The front door, `readtorch` itself, is no part of a circle: faces
# import it inside, as PyTorch's do.
CIRCLES = [
    (
        "a ScriptModule is an nn.Module, DataParallel asks jit whether it holds one, and the compiler asks torch.jit what a "
        "Python value means (py::module::import in python_sugared_value.cpp)",
        """
        csrc.jit.python.python_sugared_value csrc.jit.python.script_init jit jit._builtins jit._freeze jit._recursive
        jit._script jit._serialization jit._trace jit.annotations nn nn.parallel nn.parallel.data_parallel
        nn.parallel.replicate nn.utils nn.utils.memory_format""",
    ),
    (
        "the modules of a package whose `__init__` they import",
        """
        utils.data._utils utils.data._utils.collate utils.data._utils.pin_memory utils.data._utils.worker
        utils.data._utils.worker_pool""",
    ),
    ("the same", "autograd autograd.functional autograd.gradcheck"),
    ("the same", "cuda cuda.random cuda.streams"),
    ("a checkpoint names torch._utils._rebuild_parameter as what makes its Parameters", "_tensor _utils nn.parameter"),
    (
        "the gradient of a fused group is a graph that is fused in its turn",
        """
        csrc.jit.passes.tensorexpr_fuser csrc.jit.tensorexpr.autodiff csrc.jit.tensorexpr.kernel""",
    ),
    ("a node has blocks, a block has nodes: one ir.h in PyTorch", "csrc.jit.ir.block csrc.jit.ir.node"),
]
LARGEST_CIRCLE = 4  # files that are no public face


def circles(arrows):
    """The sets of modules that reach each other (strongly connected components), those of one module left out.

    arrows: module -> the set of modules that it imports.
    """
    reach = {name: reachable(arrows, name) for name in arrows}
    return {frozenset(m for m in reach[name] if name in reach[m]) for name in arrows if name in reach[name]}


def reachable(arrows, start):
    found, todo = set(), [start]
    while todo:
        new = arrows[todo.pop()] - found
        found |= new
        todo += new
    return found


@cache
def import_circles():
    inside = modules().keys() - {"readtorch"}
    return circles({name: {target for _, target, _ in imports(name) if target in inside - {name}} for name in inside})


def listed_circles():
    return {frozenset(f"readtorch.{name}" for name in names.split()) for _, names in CIRCLES}


def test_no_import_circle_is_added_or_grows():
    assert [sorted(c) for c in import_circles() - listed_circles()] == []


def test_circles_that_are_cut_leave_the_list():
    assert [sorted(c) for c in listed_circles() - import_circles()] == []


def test_import_circles_are_small_below_the_faces():
    below = [sorted(name for name in circle if storey(name) != FACES) for circle in import_circles()]
    assert [names for names in below if len(names) > LARGEST_CIRCLE] == []


def test_circles_are_found():
    arrows = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d"}, "f": {"a"}, "g": set()}
    assert circles(arrows) == {frozenset("abc"), frozenset("de")}
    assert circles({"a": {"b"}, "b": set()}) == set()


# -- the reader of imports reads them all -------------------------------------------------------


def test_every_way_to_import_is_read():
    tree = ast.parse("""
import readtorch.nn as a
from . import b
from .csrc import engine
from ..up import c
if TYPE_CHECKING:
    import never
def f():
    try:
        from torch.nn import Module
    except ImportError:
        import torch
""")
    found = [(target, inside) for node, inside in statements(tree, False) for target in targets(node, "readtorch.x")]
    assert found == [
        ("readtorch.nn", False),
        ("readtorch.x", False),
        ("readtorch.x.csrc", False),
        ("readtorch.up", False),
        ("torch.nn", True),
        ("torch", True),
    ]


def test_storeys():
    order = [
        "readtorch.c10.device",
        "readtorch.aten.native.add",
        "readtorch.csrc.autograd.engine",
        "readtorch._C",
        "readtorch._tensor",
        "readtorch.nn.modules",
        "readtorch.viz",
    ]
    assert [storey(name) for name in order] == list(range(len(STOREYS)))
    assert storey("readtorch") == storey("readtorch.optim") == FACES
