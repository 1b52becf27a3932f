"""`readtorch.mini.amp` against PyTorch's autocast: dtypes, and what its cache keeps."""

import pytest
import torch

from readtorch.mini import amp
from readtorch.mini.autograd import Tensor, matmul, no_grad
from readtorch.mini.dispatcher import add


def results_of(tensor, product, plus, region, without_gradients):
    """dtype and requires_grad of some results within a region; the gradient of the weight."""
    x, w = tensor([[1.0, 2.0]]), tensor([[3.0], [0.1]]).requires_grad_()
    found = []
    with region:
        with without_gradients:
            found.append(product(x, w))
        found += [product(x, w), plus(product(x, w), w), plus(product(x, w), product(x, w))]
    found[-1].backward()
    return [(str(one.dtype).removeprefix("torch."), one.requires_grad) for one in found[1:]], w.grad.tolist()


def test_dtypes_and_gradients_are_pytorchs_also_after_no_grad():
    ours = results_of(Tensor.of, matmul, add, amp.autocast(), no_grad())
    region = torch.autocast("cpu", dtype=torch.float16)
    assert ours == results_of(torch.tensor, torch.matmul, torch.add, region, torch.no_grad())


@pytest.mark.parametrize("inner", [amp.autocast, no_grad])
def test_the_cache_lives_until_the_outermost_region_ends(inner):
    x, w = Tensor.of([[1.0]]), Tensor.of([[2.0]]).requires_grad_()
    with amp.autocast():
        matmul(x, w)
        kept = amp.cache[id(w)][1]
        with inner():
            matmul(x, w)
        matmul(x, w)
        assert len(amp.cache) == 1 and amp.cache[id(w)][1] is kept
    assert amp.cache == {}
