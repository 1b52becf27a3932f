"""The model of the stride figure against PyTorch and readtorch: sizes, strides, offsets, copies, refusals, sentences."""

import random
import warnings

import pytest
import torch

import readtorch
from readtorch.viz.figures.strides import FIGURE
from readtorch.viz.inputs import Refusal
from readtorch.viz.view_operations import ITEMSIZES

LIMITS = ("The figure draws", "Write ")  # what the figure alone refuses


def theirs(T, inputs):
    """The program run with a library: its tensor, or the text of the error."""
    warnings.simplefilter("ignore")  # x.T of other than two dimensions
    cells = [-1 - cell if cell in inputs["marks"] else cell for cell in range(inputs["count"])]
    storage = T.tensor(cells).to(getattr(T, inputs["dtype"]))
    try:
        x = storage.as_strided(inputs["sizes"], inputs["strides"], inputs["offset"])
        return eval(inputs["program"], {"x": x})
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}".replace("readtorch.", "torch.")


def ours(inputs):
    try:
        return FIGURE.model(inputs)
    except Refusal as refusal:
        return str(refusal)


def cases(T, count, seed=1):
    """(inputs, what the figure says, what the library says), without those that only the figure refuses"""
    generator = random.Random(seed)
    drawn = [FIGURE.random_inputs(generator) for _ in range(count)]
    answers = ((inputs, ours(inputs), theirs(T, inputs)) for inputs in drawn)
    return [case for case in answers if not (isinstance(case[1], str) and case[1].startswith(LIMITS))]


def test_programs_give_what_pytorch_gives():
    refused = 0
    for inputs, found, wanted in cases(torch, 3000):
        if isinstance(wanted, str) or isinstance(found, str):
            assert found == wanted, inputs
            refused += 1
            continue
        last = found["stages"][-1]
        numbers = (last["sizes"], last["strides"], last["offset"])
        assert numbers == (list(wanted.shape), list(wanted.stride()), wanted.storage_offset()), inputs
        if inputs["dtype"] != "bool":  # of which there are only two
            shown = [value % 256 if inputs["dtype"] == "uint8" else value for value in last["values"]]
            if inputs["copied_by"] != inputs["program"]:
                assert shown == [int(value) for value in wanted.flatten().tolist()], inputs
        assert len(found["places"]) * ITEMSIZES[inputs["dtype"]] == wanted.untyped_storage().nbytes()
    assert 300 < refused < 2400


def test_programs_give_what_readtorch_gives():
    """Where there are elements: readtorch does not keep the offset of an empty tensor."""
    compared = 0
    for inputs, found, wanted in cases(readtorch, 1000):
        if isinstance(found, str) or isinstance(wanted, str):
            continue
        if any(0 in stage["sizes"] for stage in found["stages"]):
            continue
        last = found["stages"][-1]
        assert (last["sizes"], last["offset"]) == (list(wanted.shape), wanted.storage_offset()), inputs
        stepped = [(ours, theirs) for n, ours, theirs in zip(last["sizes"], last["strides"], wanted.stride()) if n != 1]
        assert all(ours == theirs for ours, theirs in stepped), inputs  # a copy's stride of size 1 is not PyTorch's
        compared += 1
    assert compared > 300


def test_what_is_said_of_a_tensor_is_so():
    seen = set()
    for inputs, found, tensor in cases(torch, 2000, seed=2):
        if isinstance(found, str):
            continue
        facts = dict(found["facts"])
        assert facts["contiguous"].startswith("yes") == tensor.is_contiguous(), inputs
        assert facts["view"].startswith("any shape") == can_view(tensor, tensor.numel()), inputs
        cells = len(set(places(tensor)))
        assert ("some share a cell" in facts["memory"]) == (cells < tensor.numel()), inputs
        if tensor.numel():
            address = tensor[tuple(found["index"])].data_ptr() - tensor.untyped_storage().data_ptr()
            assert found["cell"] * tensor.itemsize == address, inputs
        seen.add(facts["view"].partition(":")[0][:10])
    assert len(seen) == 2


def can_view(tensor, size):
    try:
        tensor.view(size)
    except RuntimeError:
        return False
    return True


def places(tensor):
    cells = torch.arange(len(tensor.untyped_storage()) // tensor.itemsize)
    return cells.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).flatten().tolist()


def test_a_mark_arrives_where_pytorch_writes():
    """Written to the picked element, it is seen in x, in the result and in the storage where PyTorch shows a new number."""
    copies = 0
    generator = random.Random(3)
    for _ in range(1500):
        inputs = {**FIGURE.random_inputs(generator), "marks": [], "copied_marks": [], "copied_by": "", "dtype": "int64"}
        found = ours(inputs)
        if isinstance(found, str) or found["cell"] is None:
            continue
        copied = found["stages"][-1]["storage"] > 0
        written = (
            {"copied_marks": [found["cell"]], "copied_by": inputs["program"]} if copied else {"marks": [found["cell"]]}
        )
        after = ours({**inputs, **written})
        x = torch.arange(inputs["count"]).as_strided(inputs["sizes"], inputs["strides"], inputs["offset"])
        result = eval(inputs["program"], {"x": x})
        result[tuple(found["index"])] = -1
        for stage, tensor in ((after["stages"][0], x), (after["stages"][-1], result)):
            assert [max(value, -1) for value in stage["values"]] == tensor.flatten().tolist(), inputs
        storage = torch.empty(0, dtype=torch.int64).set_(result.untyped_storage())
        assert [max(value, -1) for value in after["places"]] == storage.tolist(), inputs
        copies += copied
        about = dict(found["facts"])["write"]
        assert about.startswith("what is written" if copied else f"cell {found['cell']} is seen as"), inputs
        if not copied:
            tensors = [x] if result is x or inputs["program"] == "x" else [x, result]
            times = sum(int((tensor == -1).sum()) for tensor in tensors)
            assert about.count("x") - about.count("expand") >= min(times, 4) or times > 4
    assert copies > 60


@pytest.mark.parametrize(
    "program, said",
    [
        ("y.t()", "A program begins with x, such as x.t().reshape(12)."),
        ("x.t() + 1", 'The program cannot be read from "+ 1" on.'),
        ("x.relu()", "The figure does not know relu; it knows t, transpose, "),
        ("x.narrow(1)", "Write narrow as in x.narrow(0, 1, 2)."),
        ("x[[0, 2]]", "The figure does not read lists of indices; x[[0, 2]] is a copy."),
        ("x[x>5]", "The figure does not read masks; x[x>5] is a copy."),
        ("x.view(torch.int32)", "The figure does not reinterpret bytes."),
        ("x.view(int16)", "The figure does not reinterpret bytes."),
        ("x.mT", "The figure does not know mT; use .t() or .transpose(-2, -1)."),
        ("x.view(a)", '"a" is not a whole number.'),
        ("x.expand(9, 3, 4)", "The figure draws 100 elements; this tensor has 108."),
        ("x[None, None, None, None]", "The figure draws 5 dimensions; this tensor has 6."),
        ("x[..., ...]", "The figure reads one ... in an index."),
    ],
)
def test_what_only_the_figure_refuses(program, said):
    with pytest.raises(Refusal) as refusal:
        FIGURE.result(program=program)
    assert str(refusal.value).startswith(said)
