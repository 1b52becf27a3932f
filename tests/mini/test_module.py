"""`mini.module`: where an assignment puts a value, and the order of the names, as in PyTorch."""

import random

import torch

from readtorch.mini import module as mini

TABLES = ("_parameters", "_buffers", "_modules")


class PyTorch:
    Module = torch.nn.Module

    @staticmethod
    def parameter():
        return torch.nn.Parameter(torch.ones(1))

    @staticmethod
    def tensor():
        return torch.ones(1)


class Mini:
    Module = mini.Module

    @staticmethod
    def parameter():
        return mini.Parameter(mini.Tensor.of([1.0]))

    @staticmethod
    def tensor():
        return mini.Tensor.of([1.0])


def after(lib, program):
    """The tables in order, and the ordinary attributes, after each statement; or the error's class."""
    net, seen = lib.Module(), []
    own = set(vars(net))
    for name, value in program:
        made = {"parameter": lib.parameter, "module": lib.Module, "tensor": lib.tensor}.get(value, lambda v=value: v)()
        try:
            if value == "buffer":
                net.register_buffer(name, lib.tensor())
            else:
                setattr(net, name, made)
        except (TypeError, KeyError) as error:
            seen.append(type(error))
        seen.append([list(getattr(net, table)) for table in TABLES] + [[n for n in vars(net) if n not in own]])
    return seen


def test_places_and_order():
    random_ = random.Random(0)
    values = ["parameter", "module", "tensor", "buffer", None, 3]
    for _ in range(300):
        program = [(random_.choice("abc"), random_.choice(values)) for _ in range(6)]
        assert after(Mini, program) == after(PyTorch, program), program


def test_a_new_value_keeps_its_place():
    program = [("a", "parameter"), ("b", "parameter"), ("a", "parameter")]
    assert after(Mini, program)[-1][0] == ["a", "b"]
