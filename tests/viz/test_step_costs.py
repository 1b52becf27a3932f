"""The figure "One step, three times" counts the operators that PyTorch runs, and its tables are those of the header."""

import re
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from readtorch.viz.figures import step_costs as figure

SIZE = 50
KINDS = pytest.mark.parametrize("kind", figure.LINES)
MAKE = {
    "SGD": lambda p, **way: torch.optim.SGD(p, **way),
    "momentum": lambda p, **way: torch.optim.SGD(p, momentum=0.9, **way),
    "Adam": lambda p, **way: torch.optim.Adam(p, **way),
    "AdamW": lambda p, **way: torch.optim.AdamW(p, **way),
    "AMSGrad": lambda p, **way: torch.optim.AdamW(p, amsgrad=True, **way),
}


class Lines(TorchDispatchMode):
    """(name, lists, whether with numbers of their own, tensors read and written, bytes made) of operators on parameters."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        given = [a if isinstance(a, (list, tuple)) else [a] for a in args]
        lists = [a for a in given if a and all(isinstance(t, torch.Tensor) and t.numel() == SIZE for t in a)]
        if lists:
            makes = not func._schema.is_mutable
            made = (list(out) if isinstance(out, (list, tuple)) else [out]) if makes else []
            name = func._schema.name.removeprefix("aten::").removeprefix("_foreach_")
            reads = len({a[0].data_ptr() for a in lists})
            own = "ScalarList" in func._overloadname
            self.lines.append((name, len(lists) + makes, own, reads + 1, sum(t.nbytes for t in made)))
        return out


def lines_of(kind, count=3, **way):
    params = [torch.nn.Parameter(torch.ones(SIZE)) for _ in range(count)]
    for p in params:
        p.grad = torch.ones(SIZE)
    optimizer = MAKE[kind](params, **way)
    optimizer.step()
    with Lines() as seen:
        optimizer.step()
    return seen.lines


@KINDS
def test_the_lines_are_those_of_the_list_form(kind):
    seen = lines_of(kind, foreach=True)
    assert [(name.strip("_"), *rest) for name, *rest, _ in seen] == [
        (n.strip("_"), *rest) for n, *rest in figure.LINES[kind]
    ]
    _, foreach, _ = figure.FIGURE.result(optimizer=kind, tensors=3, numbers=SIZE)["rows"]
    assert foreach["kept"] == sum(made for *_, made in seen)
    assert foreach["moved"] == 4 * 3 * SIZE * sum(passes for _, _, _, passes, _ in seen)


@KINDS
def test_the_loop_runs_each_line_for_each_parameter(kind):
    seen = lines_of(kind, foreach=False)
    loop, _, _ = figure.FIGURE.result(optimizer=kind, tensors=3, numbers=SIZE)["rows"]
    assert loop["kernels"] == len(seen)
    assert loop["kept"] == sum(made for *_, made in seen) / 3


@KINDS
def test_the_fused_step_reads_and_writes_each_tensor_once(kind):
    params = [torch.nn.Parameter(torch.ones(SIZE))]
    params[0].grad = torch.ones(SIZE)
    optimizer = MAKE[kind](params, fused=True)
    optimizer.step()
    kept = [value for value in optimizer.state[params[0]].values() if value is not None and value.ndim]
    depth = 2 + len(kept)
    assert figure.FUSED[kind] == (depth, depth + depth - 1)  # the gradient is not written
    assert (kind in figure.COUNTED) is ("step" in optimizer.state[params[0]])


def test_the_tables_are_the_headers():
    header = Path(torch.__file__).parent / "include/ATen/native/cuda/MultiTensorApply.cuh"
    found = re.findall(r"depth_to_max_(\w+)\[5\]\s*=\s*\{([\d, ]+)\}", header.read_text())
    tables = [[int(n) for n in numbers.split(",")] for _, numbers in found]
    assert [name for name, _ in found] == 2 * ["tensors", "blocks", "tensors_scalarlist"]
    for version, (tensors, blocks, scalars) in zip(("13", "12"), (tables[:3], tables[3:]), strict=True):
        assert figure.LIMITS[version] == (tensors, scalars, blocks[0])
    assert f"kChunkSize = {figure.CHUNK}" in header.read_text()


@pytest.mark.parametrize(
    "tensors, numbers, kernels",
    [(110, 10, 1), (111, 10, 2), (1, 320 * 65536, 1), (1, 320 * 65536 + 1, 2), (4, 80 * 65536, 1), (5, 80 * 65536, 2)],
)
def test_a_kernel_is_launched_when_a_table_is_full(tensors, numbers, kernels):
    assert figure.launches(tensors, numbers, 1, False, "12") == kernels
    assert figure.launches(tensors, numbers, 1, False, "13") == 1


def test_what_the_sentence_says():
    said = figure.FIGURE.result(tensors=100, numbers=64)["say"]
    assert "100 × 64 numbers" in said and "loop 800, launching; foreach 8, launching; fused 2, launching" in said
    assert "loop 800, moving bytes" in figure.FIGURE.result(tensors=100, numbers=10_000_000)["say"]
