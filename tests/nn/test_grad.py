"""`nn.grad` next to the reference."""

import pytest
import torch

from tests.reference import both

SETTINGS = [{}, {"stride": 2}, {"padding": 1, "dilation": 2}, {"groups": 2, "stride": 2, "padding": 1}]


@pytest.mark.parametrize("kwargs", SETTINGS, ids=str)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_both_gradients(dims, kwargs):
    groups = kwargs.get("groups", 1)
    x, w = torch.randn(2, 4, *[6] * dims), torch.randn(6, 4 // groups, *[3] * dims)
    y = getattr(torch.nn.functional, f"conv{dims}d")(x, w, **kwargs)
    for name, arguments in (("input", (x.shape, w)), ("weight", (x, w.shape))):
        both(
            lambda T, a, b, g: getattr(T.nn.grad, f"conv{dims}d_{name}")(a, b, g, **kwargs),
            *arguments,
            torch.randn(y.shape),
            rtol=1e-4,
            atol=1e-4,
        )
