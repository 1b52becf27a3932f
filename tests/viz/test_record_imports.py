"""What the import timeline draws: packages written for the occasion, imported by a fresh interpreter."""

import json
import sys

import pytest

from readtorch import viz
from readtorch.viz import record_imports as recorder
from readtorch.viz.record_imports import ABSENT, EXTENSION, KINDS, OTHER, OWN, STANDARD, record_imports
from readtorch.viz.watch_imports import Watch


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """write({file: text}) -> a folder in which a fresh interpreter looks first"""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(files):
        for name, text in files.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    return write


@pytest.fixture
def family(packages):
    packages(
        {
            "family/__init__.py": "import family.first\nfrom . import second\nimport friend",
            "family/first.py": "import wave, family.second\n",
            "family/second.py": "try:\n    import nowhere\nexcept ImportError:\n    pass\nprint('noise', end='')",
            "friend.py": "import time\ntime.sleep(0.02)",
        }
    )


def by_name(run):
    modules = [dict(zip(("name", "importer", "begin", "total", "kind", "file"), values)) for values in run["modules"]]
    return modules, {module["name"]: module for module in modules}


def test_who_imports_whom_in_which_order(family):
    recorded = record_imports({"all": "import family"})
    assert json.loads(json.dumps(recorded)) == recorded
    (run,) = recorded["runs"]
    assert (run["label"], run["program"], run["own"]) == ("all", "import family", "family")
    modules, named = by_name(run)
    importer = {name: modules[module["importer"]]["name"] for name, module in named.items() if name}
    assert importer["family"] == "" and importer["family.first"] == importer["friend"] == "family"
    assert importer["wave"] == importer["family.second"] == "family.first"
    assert importer["nowhere"] == "family.second"
    names = [module["name"] for module in modules]
    assert names.count("family.second") == 1, "only the first import runs it"
    assert names.index("family") < names.index("family.first") < names.index("family.second") < names.index("friend")


def test_kinds_and_files(family):
    _, named = by_name(record_imports("import family")["runs"][0])
    assert {name: named[name]["kind"] for name in ("family", "friend", "wave", "nowhere")} == {
        "family": OWN,
        "friend": OTHER,
        "wave": STANDARD,
        "nowhere": ABSENT,
    }
    assert (named["family"]["file"], named["family.first"]["file"], named["nowhere"]["file"]) == ("/", "", "")
    assert named[""]["kind"] == OWN


def test_an_extension_is_known_by_its_loader():
    assert recorder.kind_of("torch._C", "ExtensionFileLoader", "torch") == EXTENSION
    assert recorder.kind_of("numpy._core._multiarray_umath", "ExtensionFileLoader", "torch") == OTHER
    modules, named = by_name(record_imports("import numpy")["runs"][0])
    extension = named["numpy._core._multiarray_umath"]
    assert extension["kind"] == EXTENSION and extension["file"].startswith("numpy/_core/_multiarray_umath.")


def test_times_nest(family):
    modules, named = by_name(record_imports("import family")["runs"][0])
    for module in modules[1:]:
        outer = modules[module["importer"]]
        assert outer["begin"] <= module["begin"]
        assert module["begin"] + module["total"] <= outer["begin"] + outer["total"] + 1, "times are rounded"
    assert named["friend"]["total"] >= 20_000


def test_modules_find_their_own_loader(packages):
    packages(
        {
            "curious.py": "import importlib.machinery as m\n"
            "assert type(__loader__) is type(__spec__.loader) is m.SourceFileLoader"
        }
    )
    assert len(record_imports("import curious")["runs"]) == 1


def test_a_module_that_fails_ends_too(packages):
    packages({"broken.py": "import wave\nraise ValueError('broken')"})
    program = "try:\n    import broken\nexcept ValueError:\n    import sched"
    modules, named = by_name(record_imports(program)["runs"][0])
    assert modules[named["sched"]["importer"]]["name"] == ""
    with pytest.raises(RuntimeError, match="(?s)the program failed.*ValueError: broken"):
        record_imports("import broken")


def test_namespace_packages_have_no_loader(packages):
    packages({"roof/room/thing.py": "x = 1"})
    _, named = by_name(record_imports("import roof.room.thing")["runs"][0])
    assert {"roof", "roof.room", "roof.room.thing"} <= set(named)


def test_the_watch_leaves_nothing_behind():
    before = list(sys.meta_path)
    watch = Watch()
    with pytest.raises(ZeroDivisionError):
        watch.run("1 / 0")
    assert sys.meta_path == before and len(watch.records) == 1


@pytest.mark.parametrize("written", ["", "1"])
def test_what_is_recorded_is_compiled(packages, tmp_path, monkeypatch, written):
    """Whether or not bytecode is written outside: it is, in a folder of the recorder's own."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", written)
    packages({"plain.py": "x = 1"})
    program = f"""
from importlib.machinery import SourceFileLoader
compiled = SourceFileLoader.source_to_code
def noting(self, data, path, **options):
    if path.endswith("plain.py"):
        print("compiled", file=open({str(tmp_path / "log")!r}, "a"))
    return compiled(self, data, path, **options)
SourceFileLoader.source_to_code = noting
import plain
print("ran", file=open({str(tmp_path / "log")!r}, "a"))
"""
    record_imports(program)
    assert (tmp_path / "log").read_text().split() == ["compiled", "ran", "ran"]
    assert not (tmp_path / "__pycache__").exists()


@pytest.mark.parametrize("programs", [{}, {str(i): "pass" for i in range(9)}])
def test_how_many_programs(programs):
    with pytest.raises(ValueError, match=f"{len(programs)} programs"):
        record_imports(programs)


def test_the_widget_carries_it_and_its_choice(family):
    widget = viz.import_timeline("import family", selected="friend", zoom="family")
    assert widget.data["kinds"] == KINDS and (widget.selected, widget.zoom) == ("friend", "family")
