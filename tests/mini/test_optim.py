"""`mini.optim`: AdamW's parameters after every step are PyTorch's."""

import numpy as np
import pytest
import torch

from readtorch.mini.autograd import Tensor
from readtorch.mini.optim import AdamW


@pytest.mark.parametrize("settings", [{}, {"lr": 0.1, "betas": (0.5, 0.9)}, {"weight_decay": 0.3, "eps": 1e-3}])
def test_steps_are_pytorchs(settings):
    draw = np.random.default_rng(0)
    start = [draw.normal(size=shape).astype(np.float32) for shape in ((3, 2), (4,))]
    ours = [Tensor.of(values).requires_grad_() for values in start]
    theirs = [torch.tensor(values, requires_grad=True) for values in start]
    optimizers = AdamW(ours, **settings), torch.optim.AdamW(theirs, **settings)
    for _ in range(20):
        weights = [draw.normal(size=values.shape).astype(np.float32) for values in start]
        for mine, real, w in zip(ours, theirs, weights, strict=True):
            (mine * Tensor.of(w)).backward()
            (real * torch.tensor(w)).sum().backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        for mine, real in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(mine.read(), real.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_a_parameter_without_gradient_stays():
    p, q = (Tensor.of([1.0]).requires_grad_() for _ in range(2))
    (p * p).backward()
    AdamW([p, q], lr=0.1).step()
    assert p.read() != 1 and q.read() == 1
