"""`.pt2` files: PyTorch's load here and give the same results, ours load in PyTorch."""

import io
import json
import zipfile

import numpy as np
import pytest
import torch

import readtorch as rt
import readtorch.export
from readtorch._export.serde.schema import SCALAR_TYPES
from readtorch.export.pt2_archive import is_pt2_package
from tests.reference import assert_close

from . import test_dynamic_shapes as dynamic
from .programs import PROGRAMS
from .twins import MODELS, RANDOM, copy_state, decomposed, exported, operators, same

# Operators that are left in our graphs and that PyTorch, when it loads them, finds no kernel for.
NOT_FOR_PYTORCH = {("bag", True)}
# Classes that a file names must be registered where it is loaded.
NAMED_CLASSES = {"named_tuples"}


def written(library, program, **options):
    buffer = io.BytesIO()
    library.export.save(program, buffer, **options)
    buffer.seek(0)
    return buffer


def there_and_back(program, other):
    """A program that the one library has written, read by the other."""
    ours = isinstance(program, rt.export.ExportedProgram)
    return other.export.load(written(rt if ours else torch, program))


@pytest.mark.parametrize("decompose", [False, True], ids=["traced", "decomposed"])
@pytest.mark.parametrize("name", [name for name in MODELS if name not in RANDOM])
def test_models(name, decompose):
    ours, arguments, theirs, arguments_of_torch, twin = exported(name)
    if decompose:
        ours, theirs = decomposed(name)
    expected = twin(*arguments_of_torch)
    here = there_and_back(theirs, rt)
    assert operators(here) == operators(theirs)
    assert str(here.graph_signature) == str(theirs.graph_signature)
    same(here.module()(*arguments), expected)
    if (name, decompose) not in NOT_FOR_PYTORCH:
        there = there_and_back(ours, torch)
        same(there.module()(*arguments_of_torch), expected)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in NAMED_CLASSES])
def test_programs(name):
    (ours, *inputs), (theirs, *inputs_of_torch) = PROGRAMS[name](rt), PROGRAMS[name](torch)
    copy_state(ours, theirs)
    ours, theirs = rt.export.export(ours, *inputs), torch.export.export(theirs, *inputs_of_torch)
    here, there, again = there_and_back(theirs, rt), there_and_back(ours, torch), there_and_back(ours, rt)
    assert str(here.graph_signature) == str(there.graph_signature) == str(again.graph_signature)
    assert str(here.call_spec) == str(there.call_spec) == str(again.call_spec)
    assert here.module().code == there.module().code == again.module().code
    kwargs, kwargs_of_torch = inputs[1], inputs_of_torch[1]
    modules = here.module(), again.module(), there.module()
    for _ in range(2):
        results = [m(*PROGRAMS[name](rt)[1], **kwargs) for m in modules[:2]]
        expected = modules[2](*PROGRAMS[name](torch)[1], **kwargs_of_torch)
        same(results[0], expected)
        same(results[1], expected)
    same(list(here.module().buffers()), list(there.module().buffers()))


@pytest.mark.parametrize("name", dynamic.PROGRAMS)
def test_sizes_that_may_change(name):
    """The text, ranges and refusals of programs that the other library, and the same one, has read."""
    theirs, ours = (dynamic.exported(T, name) for T in dynamic.SIDES)
    here, there, again = there_and_back(theirs, rt), there_and_back(ours, torch), there_and_back(ours, rt)
    if name != "attention":  # where PyTorch has one node for what is computed three times
        assert dynamic.plain(here) == dynamic.plain(there) == dynamic.plain(again) == dynamic.plain(theirs)
    assert str(here.range_constraints) == str(there.range_constraints) == str(theirs.range_constraints)
    modules = [theirs.module(), there.module(), here.module(), again.module()]
    for sizes in dynamic.PROGRAMS[name][3]:
        expected, *results = [
            dynamic.outcome(lambda m=m, T=T: m(*dynamic.tensors(T, sizes)))
            for m, T in zip(modules, (torch, torch, rt, rt))
        ]
        if isinstance(expected, tuple) and isinstance(expected[0], str):
            assert results == [expected] * 3
        else:
            for result in results[1:]:
                assert_close(result, expected)
                assert_close(result, results[0])


def test_arithmetic_of_sizes():
    """Each expression and each operator of sizes that files hold; an int that may change."""

    def program(T):
        def forward(self, x, y, n):
            a, b = x.shape[0], y.shape[0]
            sizes = (2 * a + b - 1, b // 3 + 1, a * a * b, a % 3 + 2, T.sym_max(a, b), T.sym_min(a, b))
            return [x.new_ones(size).sum() for size in sizes], -a, a * n

        Dim = T.export.Dim
        specification = ({0: Dim("a", min=4, max=20)}, {0: Dim("b", min=5)}, Dim.DYNAMIC)
        model = dynamic.module(T, forward)
        return T.export.export(model, (T.ones(6), T.ones(8), 5), dynamic_shapes=specification)

    theirs, ours = program(torch), program(rt)
    here, there, again = there_and_back(theirs, rt), there_and_back(ours, torch), there_and_back(ours, rt)
    assert str(here.range_constraints) == str(theirs.range_constraints)
    assert str(there.range_constraints) == str(again.range_constraints) == str(ours.range_constraints)
    for a, b, n in ((4, 9, 3), (20, 5, 7)):
        sums, negative, scaled = theirs.module()(torch.ones(a), torch.ones(b), n)
        expected = [s.item() for s in sums], negative, scaled
        for T, loaded in ((rt, here), (torch, there), (rt, again)):
            sums, negative, scaled = loaded.module()(T.ones(a), T.ones(b), n)
            assert ([s.item() for s in sums], negative, scaled) == expected


def test_decompositions_of_what_was_read():
    """They keep ranges and guards."""
    loaded = there_and_back(dynamic.exported(torch, "branch"), rt).run_decompositions()
    assert loaded.module()(rt.ones(6, 3)).tolist() == [[2.0] * 3] * 6
    with pytest.raises(AssertionError, match="Guard failed"):
        loaded.module()(rt.ones(4, 3))


def test_records_are_pytorchs():
    ours, _, theirs, *_ = exported("res")
    names = []
    for library, program in ((rt, ours), (torch, theirs)):
        with zipfile.ZipFile(written(library, program)) as archive:
            names.append(sorted(archive.namelist()))
            assert archive.testzip() is None
    assert names[0] == names[1]


def test_json_is_pytorchs():
    ours, _, theirs, *_ = exported("mha")
    programs = []
    for library, program in ((rt, ours), (torch, theirs)):
        with zipfile.ZipFile(written(library, program)) as archive:
            programs.append(json.loads(archive.read("archive/models/model.json")))
    for program in programs:
        for node in program["graph_module"]["graph"]["nodes"]:
            node["metadata"] = None  # stacks of other files
        program["torch_version"] = None
    assert programs[0] == programs[1]


def test_tensors_share_memory_again():
    module, args, kwargs = PROGRAMS["tied"](rt)
    program = rt.export.load(written(rt, rt.export.export(module, args, kwargs)))
    state = program.state_dict
    assert state["a.weight"].data_ptr() == state["b.weight"].data_ptr()
    base = rt.arange(6.0)
    model = rt.nn.Module()
    model.register_buffer("part", base[2:4])
    model.register_buffer("turned", base.view(2, 3).t())
    model.forward = lambda x: x + model.part.sum() + model.turned.sum()
    for loaded in (rt, torch):
        state = loaded.export.load(written(rt, rt.export.export(model, (rt.ones(1),)))).state_dict
        assert state["part"].tolist() == [2, 3] and state["turned"].tolist() == [[0, 3], [1, 4], [2, 5]]
        assert state["part"].untyped_storage().data_ptr() == state["turned"].untyped_storage().data_ptr()
        assert state["turned"].stride() == (1, 3)


DTYPES = [
    name
    for name in SCALAR_TYPES
    if hasattr(rt, name) and not name.startswith(("uint16", "uint32", "uint64", "complex32", "float8"))
]


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes(name):
    model = rt.nn.Module()
    model.register_buffer("t", rt.tensor([0, 1, 1]).to(getattr(rt, name)))
    model.register_buffer("nothing", rt.zeros(0, 3, dtype=getattr(rt, name)))
    model.forward = lambda x: (model.t, model.nothing, x.to(getattr(rt, name)))
    program = rt.export.export(model, (rt.ones(2),))
    theirs, ours = there_and_back(program, torch), there_and_back(program, rt)
    for loaded in (theirs, ours):
        assert str(loaded.state_dict["t"].dtype).endswith(f".{name}")
        assert loaded.state_dict["nothing"].shape == (0, 3)
    results = ours.module()(rt.ones(2)), theirs.module()(torch.ones(2))
    np.testing.assert_array_equal(results[0][0].to(rt.complex64).numpy(), results[1][0].to(torch.complex64).numpy())
    assert there_and_back(theirs, rt).module()(rt.ones(2))[2].tolist() == results[0][2].tolist()


def test_files_and_extra_files(tmp_path):
    ours, arguments, *_ = exported("mlp")
    path = tmp_path / "program.pt2"
    rt.export.save(ours, path, extra_files={"notes.txt": "Ä"})
    assert is_pt2_package(str(path)) and is_pt2_package(path.read_bytes()) and not is_pt2_package(b"nothing")
    for library in (rt, torch):
        found = {"notes.txt": ""}
        loaded = library.export.load(path, extra_files=found)
        assert found == {"notes.txt": "Ä"}
        assert operators(loaded) == operators(ours)
    torch.export.save(exported("mlp")[2], str(path), extra_files={"more": "x"})
    found = {}
    same(rt.export.load(str(path), extra_files=found).module()(*arguments), ours.module()(*arguments))
    assert found == {"more": "x"}


def test_example_inputs_come_back():
    module, args, kwargs = PROGRAMS["keywords"](rt)
    program = there_and_back(rt.export.export(module, args, kwargs), rt)
    assert program.example_inputs[1].keys() == kwargs.keys()
    program.example_inputs = None
    assert there_and_back(program, rt).example_inputs is None


@pytest.mark.parametrize("value", [None, "no program"])
def test_what_is_no_program(value):
    errors = []
    for library in (rt, torch):
        with pytest.raises(TypeError) as error:
            library.export.save(value, io.BytesIO())
        errors.append(str(error.value))
    assert errors[0] == errors[1]
