"""What the reader's program can do at the end of a chapter, with the files of that stage alone, is what PyTorch does."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tools import mini

from .test_extract import run_alone


def views():
    x = torch.arange(12).view(3, 4)
    corner = x.t()[1:3, ::2]
    corner += torch.tensor([[100], [200]])
    return f"{x.tolist()}\n{corner.stride()} {corner.is_contiguous()}\n{(corner * corner[0]).tolist()}\n"


def versions():
    z = torch.tensor([[1 + 2j, 3 - 4j]])
    c = z.conj()
    column = c.transpose(0, 1)
    column += 1
    kin = [z, c, column, z.detach(), c.conj(), z + 1]
    return f"{z.tolist()} {c.tolist()}\n{[t._version for t in kin]} {z.requires_grad}\n"


def entry():
    p = torch.tensor([3.0, 5.0], requires_grad=True)
    q = torch.tensor([4.0, 12.0])
    r = p**2 + q**2
    r.sum().backward()
    return f"{r.tolist()} SquareSumBackward0\n{[p.grad.tolist(), (2 * q).tolist()]}\n{(2 * q**2).tolist()}\n"


def dispatch():
    """A mode sees the calls after the conjugates have become numbers, which takes clones: those are left out."""
    calls = []

    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            calls.append(function.overloadpacket.__name__)
            return function(*args, **(kwargs or {}))

    z = torch.tensor([[1 + 2j, 3 - 4j]])
    c = z.conj()
    with Names():
        y = c * z + c
        c += z
    calls = [name for name in calls if name in ("add", "add_", "mul", "mul_")]
    return f"{calls} {y.tolist()}\n{z.tolist()} {c.tolist()} {[t._version for t in (z, c, y)]}\n"


def modes():
    lines = []

    class Named(TorchDispatchMode):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            lines.append(f"{self.name} {func.overloadpacket.__name__} {tuple(args[0].shape)}")
            result = func(*args)
            return func(result, args[1]) if self.name == "inner" else result

    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    t = x.transpose(0, 1)
    with Named("outer"), Named("inner"):
        y = x + x
        y *= t
    return "\n".join([*lines, f"{y.tolist()} {y._version}\n"])


# the name of a cell's tag -> what PyTorch prints
MILESTONES = {"views": views, "versions": versions, "entry": entry, "dispatch": dispatch, "modes": modes}


def test_each_milestone_is_in_the_book():
    assert mini.milestones().keys() == MILESTONES.keys()


@pytest.mark.parametrize("name", MILESTONES)
def test_milestone(name, tmp_path):
    chapter, program = mini.milestones()[name]
    assert run_alone(mini.stages()[chapter], program, tmp_path) == MILESTONES[name]()
