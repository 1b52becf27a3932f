"""A matrix as a product of two thin ones: what stays thin, what becomes dense, and how training moves the factors."""

import torch
from torch import nn
from torch.utils._pytree import tree_map_only

aten = torch.ops.aten


class LowRank(torch.Tensor):
    """left @ right, without ever writing it out where that can be helped."""

    @staticmethod
    def __new__(cls, left, right):
        shape = (left.shape[0], right.shape[1])
        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=left.dtype, device=left.device)

    def __init__(self, left, right):
        self.left, self.right = left, right

    def __repr__(self):
        return f"LowRank({self.shape[0]} x {self.left.shape[1]} x {self.shape[1]})"

    def numbers(self):
        return self.left.numel() + self.right.numel()

    def dense(self):
        return self.left @ self.right

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        rule = THIN.get(func)
        if rule is not None:
            result = rule(*args, **(kwargs or {}))
            if result is not NotImplemented:
                return result
        print(f"    {func.name()} made dense")
        args = tree_map_only(cls, cls.dense, args)
        return func(*args, **(kwargs or {}))


def product(a, b):
    if isinstance(a, LowRank) and isinstance(b, LowRank):
        return LowRank(a.left, (a.right @ b.left) @ b.right)
    if isinstance(a, LowRank):
        return a.left @ (a.right @ b)
    return (a @ b.left) @ b.right


def total(a, b, alpha=1):
    if not (isinstance(a, LowRank) and isinstance(b, LowRank)):
        return NotImplemented
    return LowRank(torch.cat([a.left, alpha * b.left], 1), torch.cat([a.right, b.right], 0))


THIN = {
    aten.mm.default: product,
    aten.addmm.default: lambda bias, a, b: product(a, b) + bias,
    aten.add.Tensor: total,
    aten.t.default: lambda a: LowRank(a.right.t(), a.left.t()),
    aten.detach.default: lambda a: LowRank(a.left.detach(), a.right.detach()),
    aten.neg.default: lambda a: LowRank(-a.left, a.right),
}

torch.manual_seed(1)
a = LowRank(torch.randn(50, 2), torch.randn(2, 40))
b = LowRank(torch.randn(50, 3), torch.randn(3, 40))
print(a, a.numbers(), "numbers instead of", a.numel())
print(a + b, -a.t(), b @ a.t(), torch.add(a, b, alpha=2).numbers())
exact = a.dense() @ torch.ones(40, 1)
print("times a vector", type(a @ torch.ones(40, 1)).__name__, f"{(a @ torch.ones(40, 1) - exact).abs().max():.4f}")
print("sum with a number", (a + 1).shape, "row", type(a[3]).__name__)
print("norm", f"{torch.linalg.norm(a).item():.3f} {torch.linalg.norm(a.dense()).item():.3f}")


class Adapter(nn.Module):
    """A frozen weight and a low-rank change that is learnt."""

    def __init__(self, n, rank):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n, n), requires_grad=False)
        self.left = nn.Parameter(torch.randn(n, rank) / n)
        self.right = nn.Parameter(torch.zeros(rank, n))

    def forward(self, x):
        return x @ self.weight + (x @ self.left) @ self.right

    def change(self):
        return LowRank(self.left.detach(), self.right.detach())


net = Adapter(8, 2)
x, target = torch.randn(32, 8), torch.randn(32, 8)
sgd = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.5)
for step in range(4):
    loss = nn.functional.mse_loss(net(x), target)
    sgd.zero_grad()
    loss.backward()
    sgd.step()
    print(f"step {step} loss {loss.item():.5f}", net.change())
