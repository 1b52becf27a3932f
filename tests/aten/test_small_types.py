"""Devices, default dtypes, numbers that fill tensors, states of generators and bytes of storages: what is accepted, told and refused."""

import copy
import pickle

import pytest
import torch

import readtorch
from tests.programs import same


def test_devices():
    def program(T, show):
        made = [T.device("cpu"), T.device("cuda:1"), T.device("cuda", 1), T.device("meta"), T.device(T.device("cpu"))]
        made += [T.device("cpu", 0), T.device(type="cuda", index=3), T.device("cuda")]
        for d in made:
            show(repr(d), str(d), d.type, d.index, copy.copy(d) == d, pickle.loads(pickle.dumps(d)) == d)
        show([[a == b for b in made] for a in made], len(set(made)), made[0] == "cpu", made[0] != 3)
        for given in (("x",), ("cpu:x",), ("cuda:1", 1), ("cuda:-1",), ("",), ("cuda:01",), ("cpu:",)):
            show.error(lambda: T.device(*given))
        show.error(lambda: setattr(T.device("cpu"), "type", "cuda"))

    same(program)


def test_default_dtypes():
    def program(T, show):
        try:
            for dtype in (T.float64, T.float16, T.bfloat16, T.float32):
                T.set_default_dtype(dtype)
                show(T.get_default_dtype(), T.tensor(1.0).dtype, T.zeros(1).dtype, T.tensor([1, 2.5]).dtype)
                show(
                    (T.tensor(1) / 2).dtype,
                    (T.tensor([1]) * 0.5).dtype,
                    T.arange(3.0).dtype,
                    T.tensor([1]).sqrt().dtype,
                )
                if dtype in (T.float32, T.float64):
                    show(T.tensor(1j).dtype)
        finally:
            T.set_default_dtype(T.float32)
        for given in (T.int64, T.complex64, T.bool, "float32", None, 3, float):
            show.error(lambda: T.set_default_dtype(given))
        show(T.get_default_dtype())

    same(program)


def test_numbers_that_fill_tensors():
    """Python's numbers of every kind into tensors of every dtype, at and beyond the bounds."""

    def program(T, show):
        numbers = [True, 3, -3, 127, 128, 255, 256, -129, 2.5, -0.5, 65504.0]
        numbers += [float("nan"), float("inf"), 1 + 0j]
        dtypes = [
            "uint8",
            "int8",
            "int16",
            "int32",
            "int64",
            "float16",
            "bfloat16",
            "float32",
            "float64",
            "complex64",
            "bool",
        ]
        for name in dtypes:
            dtype = getattr(T, name)
            for number in numbers:
                show(name, number)
                for call in (
                    lambda: T.full((1,), number, dtype=dtype),
                    lambda: T.zeros(1, dtype=dtype).fill_(number),
                    lambda: T.zeros(1, dtype=dtype).masked_fill(T.ones(1, dtype=T.bool), number),
                    lambda: T.ones(1, dtype=dtype).eq(number),
                ):
                    try:
                        show(call().tolist())
                    except Exception as error:
                        show(type(error).__name__, error)

    same(program)


def test_states_of_generators():
    """After how many numbers of which kind so ever, a state goes on with the same numbers, also one of the other library."""

    draws = {
        "nothing": lambda T, g: None,
        "one normal": lambda T, g: T.randn(1, generator=g),
        "normals": lambda T, g: T.randn(17, generator=g),
        "one double": lambda T, g: T.randn(1, dtype=T.float64, generator=g),
        "uniform": lambda T, g: T.rand(3, generator=g),
        "many": lambda T, g: T.rand(700, generator=g),
        "ints": lambda T, g: T.randint(0, 2**40, (5,), generator=g),
        "permuted": lambda T, g: T.randperm(9, generator=g),
        "bernoulli": lambda T, g: T.zeros(2).bernoulli_(0.5, generator=g),
    }
    for first in draws.values():
        for second in draws.values():
            theirs, ours = (T.Generator().manual_seed(7) for T in (torch, readtorch))
            for T, g in ((torch, theirs), (readtorch, ours)):
                first(T, g), second(T, g)
            assert theirs.get_state().tolist() == ours.get_state().tolist()
            other = readtorch.Generator()
            other.set_state(readtorch.tensor(theirs.get_state().tolist(), dtype=readtorch.uint8))
            expected = torch.randn(3, dtype=torch.float64, generator=theirs).tolist()
            assert readtorch.randn(3, dtype=readtorch.float64, generator=other).tolist() == pytest.approx(expected)
            assert readtorch.randn(3, dtype=readtorch.float64, generator=ours).tolist() == pytest.approx(expected)


def test_states_that_are_refused():
    def program(T, show):
        g = T.Generator().manual_seed(3)
        T.rand(4, generator=g)
        for given in (
            T.zeros(5056, dtype=T.uint8),
            g.get_state()[1:],
            g.get_state().float(),
            T.zeros(3, dtype=T.uint8),
            None,
            "x",
        ):
            show.error(lambda: g.set_state(given))
        show(g.initial_seed(), T.rand(2, generator=g).tolist())
        for seed in (0, 1, -1, 2**63, 2**64 - 1, -(2**63), 2**64, 1.5, "x"):
            show.error(lambda: show(g.manual_seed(seed).initial_seed()))
        show.error(lambda: T.randn(2, generator=g.clone_state()).shape)

    same(program)


def test_storages_copied():
    def program(T, show):
        x = T.arange(6.0)
        pair = {"all": x, "part": x[2:5], "other": x.reshape(2, 3).t()}
        for copied in (copy.copy(pair), copy.deepcopy(pair)):
            copied["all"][3] = 70
            show(copied["part"], copied["other"], copied["part"].storage_offset(), copied["other"].stride())
        show(x)
        for t in (x[:0], x[5:], x[::2], x.expand(2, 6), T.empty(0, 3), T.tensor(1.0)):
            show(t.untyped_storage().nbytes(), t.storage_offset(), copy.deepcopy(t).untyped_storage().nbytes())

    same(program)
