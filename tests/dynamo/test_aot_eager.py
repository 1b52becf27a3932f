"""torch.compile(backend="aot_eager"): Dynamo, then AOTAutograd with the min-cut partitioner, then the operators one by one."""

import pytest
import torch

import readtorch as rt


@pytest.mark.parametrize("backend", ["aot_eager", "aot_eager_decomp_partition", "inductor"])
def test_numbers_that_change(backend):
    compiled = rt.compile(lambda x, k: x * k + k, backend=backend)
    for k in (1.5, 2.5, 3.5, 1, 2, 3):
        assert compiled(rt.ones(2), k).tolist() == [2 * k, 2 * k]


class Residual:
    """Made anew for each package: a small model with everything that a cut decides about."""

    def __new__(cls, T):
        F = T.nn.functional

        class Model(T.nn.Module):
            def __init__(self):
                super().__init__()
                self.into, self.norm, self.out = T.nn.Linear(8, 8), T.nn.LayerNorm(8), T.nn.Linear(8, 3)
                self.batch = T.nn.BatchNorm1d(8)
                self.register_buffer("calls", T.zeros(()))

            def forward(self, x):
                self.calls.add_(1)
                x = x + F.gelu(self.norm(self.into(x)))
                return self.out(self.batch(x)).log_softmax(-1)

        model = Model()
        with T.no_grad():
            for p in model.parameters():
                p.copy_(T.linspace(-1, 1, p.numel()).view(p.shape))
        return model


def trained(T, backend, sizes):
    model = Residual(T)
    optimizer = T.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    run = T.compile(model, backend=backend) if backend else model
    losses = []
    for n in sizes:
        x = T.linspace(-2, 2, 8 * n).view(n, 8)
        loss = T.nn.functional.nll_loss(run(x), T.arange(n) % 3)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    state = {name: value.tolist() for name, value in model.state_dict().items()}
    return losses, state, [p._version for p in model.parameters()], model.calls._version


@pytest.mark.parametrize("backend", ["aot_eager", "aot_eager_decomp_partition"])
@pytest.mark.parametrize("sizes", [[5, 5, 5], [5, 6, 7, 5]], ids=["one size", "several sizes"])
def test_training(sizes, backend):
    ours, eager, theirs = trained(rt, backend, sizes), trained(rt, None, sizes), trained(torch, "aot_eager", sizes)
    assert ours[0] == pytest.approx(eager[0], rel=1e-5) and ours[0] == pytest.approx(theirs[0], rel=1e-4)
    for name, value in eager[1].items():
        assert rt.allclose(rt.tensor(ours[1][name]), rt.tensor(value), atol=1e-4), name
    assert ours[2:] == theirs[2:]


PROGRAMS = {
    "writes to its input": lambda T, x: x.mul_(2) + 1,
    "returns a view": lambda T, x: (x.view(-1), x[0]),
    "no_grad inside": lambda T, x: x * T.no_grad()(lambda: x.sum())(),
    "a number is taken out": lambda T, x: x * x.sum().item(),
    "no tensor": lambda T, x: 3,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    def run(T, backend):
        leaf = (T.arange(6.0).view(2, 3) - 2).requires_grad_()
        x = leaf * 1
        function = PROGRAMS[name]
        compiled = T.compile(lambda x: function(T, x), backend=backend) if backend else lambda x: function(T, x)
        out = compiled(x)
        tensors = [t for t in (out if isinstance(out, tuple) else (out,)) if isinstance(t, T.Tensor)]
        if tensors:
            sum(t.sum() for t in tensors).backward()
        return [t.tolist() for t in tensors], x.tolist(), x._version, None if leaf.grad is None else leaf.grad.tolist()

    assert run(rt, "aot_eager") == run(rt, None) == run(torch, None)


def test_graphs_are_of_operators():
    """The compiled function has one node of autograd for all of it."""
    x = rt.ones(3, requires_grad=True)
    out = rt.compile(lambda x: x.sin().cos(), backend="aot_eager")(x)
    assert type(out.grad_fn).__name__ == "CompiledFunctionBackward"
