"""`Tensor(…)`, the old constructor, and `new_tensor`, next to the reference."""

import numpy as np
import pytest
import torch

import readtorch as rt
from tests.programs import same


def test_the_old_constructor():
    def program(T, show):
        x, y = T.tensor([1, 2]), T.ones(2, requires_grad=True)
        for args in ((), ([2, 3],), ((2, 3),), (y,), (x,), ([1.5, 2],), (np.ones(2),), ([],), (T.tensor(3),)):
            show(T.Tensor(*args))
        for args in ((2, 3), (0,), (T.Size([2, 3]),)):
            show(T.Tensor(*args).shape, T.Tensor(*args).dtype)
        for args in ((3.5,), ("a",), (None,), ([[1], [2, 3]],), (-1,), (True,)):
            show.error(lambda: T.Tensor(*args))
        alias = T.Tensor(y)
        show(alias is y, alias.data_ptr() == y.data_ptr(), alias.grad_fn.name())

        class Mine(T.Tensor):
            pass

        show(type(Mine([1.0])).__name__, type(Mine(2)).__name__, T.Tensor([1], device="cpu"))

    same(program)


def test_new_tensor():
    def program(T, show):
        x = T.tensor([1, 2])
        show(x.new_tensor([1.7, 2]), x.double().new_tensor(3), x.new_tensor([1.0], dtype=T.float64, requires_grad=True))

    same(program)


@pytest.mark.parametrize("depth", [129, 100_000])
def test_nested_too_deeply(depth):
    data = 1
    for _ in range(depth):
        data = [data]
    for lib in (torch, rt):
        with pytest.raises(ValueError, match="too many dimensions 'list'"):
            lib.tensor(data)
