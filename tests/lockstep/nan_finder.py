"""Where does the nan come from? A mode that looks at each result and names the first culprit, forward and backward."""

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

CREATES_NOTHING = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided"}


class NotFinite(RuntimeError):
    pass


def finite(value):
    return not (isinstance(value, torch.Tensor) and value.is_floating_point()) or bool(value.isfinite().all())


class FindNan(TorchDispatchMode):
    def __init__(self, stop=True):
        super().__init__()
        self.stop, self.found, self.seen = stop, [], 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.seen += 1
        if func.overloadpacket.__name__ in CREATES_NOTHING or all(map(finite, tree_leaves(result))):
            return result
        if all(map(finite, tree_leaves((args, kwargs)))):
            self.found.append(f"{func} of {[tuple(a.shape) for a in args if isinstance(a, torch.Tensor)]}")
            if self.stop:
                raise NotFinite(f"call {self.seen}: {self.found[-1]}")
        return result


def attempt(what, function):
    try:
        with FindNan():
            function()
        print(f"{what}: every number is finite")
    except NotFinite as error:
        print(f"{what}: {error}")


class Normalise(nn.Module):
    def forward(self, x):
        return (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), Normalise(), nn.Linear(4, 2), nn.LogSoftmax(-1))
good, constant = torch.randn(2, 3), torch.zeros(2, 3)
attempt("good input", lambda: net(good).sum().backward())
net[0].bias.data.zero_()
attempt("constant input", lambda: net(constant))
x = torch.tensor([0.0, 1.0], requires_grad=True)
attempt("root at 0, forward", lambda: x.sqrt())
attempt("root at 0, backward", lambda: x.sqrt().sum().backward())
attempt("norm at 0", lambda: torch.zeros(2, requires_grad=True).norm().backward())
attempt("masked too late", lambda: torch.where(x > 0, x.log(), 0.0).sum().backward())
attempt("masked in time", lambda: torch.where(x > 0, x, 1.0).log().sum().backward())
attempt("too large", lambda: torch.tensor([1.0, 90.0]).exp())
attempt("a softmax of its own", lambda: (lambda e: e / e.sum())(torch.tensor([100.0, 1.0]).exp()))
attempt("cast", lambda: torch.tensor([70000.0]).half())
attempt("memory without numbers", lambda: torch.empty(3).fill_(1.0))
with FindNan(stop=False) as finder:
    y = torch.tensor([1.0, -1.0]).log() + torch.tensor([0.0, 0.0]) / 0
    z = y.sum() * 0
print(finder.found, z.item(), "finder left:", torch.tensor(-1.0).log().item())
