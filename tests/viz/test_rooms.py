"""The house map's survey, on a small package whose answers are known and on readtorch itself."""

from readtorch.viz.rooms import FLOORS, counterpart_in, first_sentence, floor_of, survey, trace_rooms
from readtorch.viz.watch_calls import PACKAGE

FILES = {
    "__init__.py": '''"""tiny: A package. In PyTorch: `torch/__init__.py`. Explained in the chapter "One"."""
from .nn import Layer
''',
    "nn/__init__.py": '''"""Layers.

In PyTorch: `torch/nn`,
`torch/nn/modules`. Explained in the chapter "Two"."""
from .layer import Layer
''',
    "nn/layer.py": '''"""One layer."""
from ..c10 import size
import tiny.aten.ops
class Layer: pass
def _private(): pass
''',
    "aten/ops.py": '''"""Operators."""
def late():
    from ..c10.size import Size
''',
    "c10/__init__.py": '"""Ground."""\nimport math\n',
    "c10/size.py": '"""Sizes."""\nclass Size: pass\n',
    "random.py": "",
}


def lay_out(tmp_path):
    package = tmp_path / "tiny"
    for name, text in FILES.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    return package


def rooms_of(record):
    return {room["path"]: room for floor in record["floors"] for room in floor["rooms"]}


def test_rooms_and_imports(tmp_path):
    rooms = rooms_of(survey(lay_out(tmp_path)))
    assert set(rooms) == {"", "nn", "aten", "c10", "random"}
    assert {path: room["imports"] for path, room in rooms.items()} == {
        "": {"nn": ["__init__"]},
        "nn": {"c10": ["layer"], "aten": ["layer"]},
        "aten": {"c10": ["ops"]},
        "c10": {},
        "random": {},
    }
    assert rooms["c10"]["imported_by"] == ["aten", "nn"]


def test_what_a_room_says_of_itself(tmp_path):
    rooms = rooms_of(survey(lay_out(tmp_path)))
    assert (rooms["nn"]["about"], rooms["nn"]["counterpart"], rooms["nn"]["chapter"]) == (
        "Layers.",
        "torch/nn, torch/nn/modules",
        "Two",
    )
    assert rooms[""]["about"] == "A package."
    defines = {file["name"]: file["defines"] for file in rooms["nn"]["files"]}
    assert defines == {"__init__.py": [], "layer.py": ["Layer"]}
    assert rooms["aten"]["about"] == "" and rooms["aten"]["files"][0]["about"] == "Operators."


def test_sentences():
    text = "`Size`: what `x.shape` is, e.g. here. And more.\n\nNot this."
    assert first_sentence(text) == "What x.shape is, e.g. here."
    assert counterpart_in("In PyTorch: `c10/core/Device.h` and `b.cpp`.") == "c10/core/Device.h and b.cpp"
    assert counterpart_in("nothing of the kind") is None


def test_the_package_itself():
    rooms = rooms_of(survey())
    assert {"c10", "aten", "aten/native", "csrc/autograd", "nn", "viz"} <= set(rooms)
    assert sum(len(room["files"]) for room in rooms.values()) == len(list(PACKAGE.rglob("*.py")))
    assert rooms["c10"]["counterpart"].startswith("c10/core")
    names = [name for name, _ in FLOORS]
    assert [names[floor_of(path)] for path in ("viz", "nn/modules", "csrc/autograd", "aten", "c10")] == [
        "pictures and quotations",
        "public faces",
        "engine",
        "operators",
        "ground",
    ]


def test_a_walk_names_rooms_functions_and_lines():
    def walk():
        from readtorch.viz.tensor_notes import note

        note("a", 1)
        for _ in range(3):
            note("b", 2)

    record = trace_rooms(walk)
    lines, first = record["source"]["lines"], record["source"]["first"]
    steps = [
        (step["room"], step["function"], lines[step["line"] - first].strip(), step["times"])
        for step in record["steps"]
        if step["function"] == "note"
    ]
    assert steps == [("viz", "note", 'note("a", 1)', 1), ("viz", "note", 'note("b", 2)', 3)]


def test_one_training_step_walks_down_to_the_ground():
    import readtorch

    net = readtorch.nn.Linear(4, 2)
    x = readtorch.ones(3, 4)

    def step():
        loss = net(x).sum()
        loss.backward()

    entered = {s["room"] for s in trace_rooms(step)["steps"]}
    assert {"nn/modules", "aten", "aten/native", "csrc/autograd"} <= entered
