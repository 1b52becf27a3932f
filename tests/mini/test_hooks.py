"""`mini.hooks`: backward hooks where a module's place in the graph is not closed, and those of a second backward."""

import torch

from readtorch.mini.autograd import Tensor
from readtorch.mini.hooks import Module


class Pair(Module):
    def forward(self, x):
        return x * x, x


class Square(Module):
    def forward(self, x):
        self.inner = x * x
        return self.inner


def noting(lines):
    return lambda module, grad_input, grad_output: lines.append([g.tolist() for g in (*grad_input, *grad_output)])


def test_a_tuple_has_no_node():
    """The gradient flows on; no hook is called, as the chapter says."""
    lines, pair, x = [], Pair(), Tensor.of([1.0, 3.0]).requires_grad_()
    pair.register_full_backward_hook(noting(lines))
    pair(x)[0].backward()
    assert x.grad.tolist() == [2.0, 6.0] and lines == []


def test_backward_that_does_not_come_through_the_output():
    """Twice from the result: two calls. From within the module: none, as in PyTorch."""
    seen = {}
    for make, base in (Tensor.of, Module), (torch.tensor, torch.nn.Module):
        square = type("Square", (base,), {"forward": Square.forward})()
        lines, x = [], make([3.0]).requires_grad_()
        square.register_full_backward_hook(noting(lines))
        for _ in range(2):
            square(x).backward()
        square(x)
        square.inner.backward()
        seen[base] = lines, x.grad.tolist()
    assert seen[Module] == seen[torch.nn.Module] == ([[[6.0], [1.0]]] * 2, [18.0])


def test_a_second_backward_from_within():
    """After a backward from the result, one from within the module meets no old grad_output."""
    lines, square, x = [], Square(), Tensor.of([3.0]).requires_grad_()
    square.register_full_backward_hook(noting(lines))
    square(x).backward(retain_graph=True)
    square.inner.backward()
    assert lines == [[[6.0], [1.0]]] and x.grad.tolist() == [12.0]
