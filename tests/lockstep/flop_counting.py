"""Counting multiplications: a mode that knows a formula for some operators, and takes the others apart first."""

from collections import Counter
from math import prod

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
FORMULAS = {
    aten.mm: lambda a, b: 2 * a.shape[0] * a.shape[1] * b.shape[1],
    aten.addmm: lambda bias, a, b: 2 * a.shape[0] * a.shape[1] * b.shape[1],
    aten.bmm: lambda a, b: 2 * prod(a.shape) * b.shape[2],
    aten.convolution: lambda x, w, bias, *rest: 2 * prod(w.shape) * x.shape[0] * rest_of(x, w, *rest),
}


def rest_of(x, w, stride, padding, dilation, transposed, output_padding, groups):
    """How many positions a kernel visits in each image."""
    sizes = zip(x.shape[2:], w.shape[2:], stride, padding, dilation)
    return prod((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in sizes)


class FlopCounting(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.flops = Counter()
        self.taken_apart = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        packet = func.overloadpacket
        if packet not in FORMULAS:
            with self:  # what it consists of, if it is a composite one, comes by again
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                self.taken_apart.append(str(packet))
                return parts
        else:
            self.flops[str(packet)] += FORMULAS[packet](*args)
        return func(*args, **kwargs)


torch.manual_seed(0)
mlp = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
with FlopCounting() as counter:
    y = mlp(torch.randn(4, 16))
print("forward", dict(counter.flops), "by hand", 2 * 4 * (16 * 32 + 32 * 8))
with counter:
    y.sum().backward()
print("and backward", dict(counter.flops))

images = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 3, stride=2))
with FlopCounting() as counter:
    out = images(torch.randn(2, 3, 8, 8))
print(tuple(out.shape), dict(counter.flops))

with FlopCounting() as counter, torch.no_grad():
    a, b = torch.randn(6, 2, 3, 4), torch.randn(6, 2, 4, 5)
    print(tuple((a @ b).shape), tuple(torch.einsum("bhij,bhjk->bik", a, b).shape))
print(dict(counter.flops))
with torch.inference_mode(), FlopCounting() as counter:  # composites are not taken apart above the mode here
    F.linear(torch.ones(3, 4), torch.ones(5, 4))
    torch.matmul(torch.ones(2, 3, 4), torch.ones(4, 5))
print(dict(counter.flops), counter.taken_apart)
