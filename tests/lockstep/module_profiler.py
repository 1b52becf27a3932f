"""Which module calls which operators: a dispatch mode and forward hooks, forward and backward."""

from collections import Counter, defaultdict

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode


class ByModule(TorchDispatchMode):
    def __init__(self, model):
        super().__init__()
        self.inside = ["(model)"]
        self.calls = defaultdict(Counter)
        self.handles = []
        for name, module in model.named_modules():
            if name:
                self.follow(name, module)

    def follow(self, name, module):
        def enter(*_):
            self.inside.append(name)

        def leave(*_):
            assert self.inside.pop() == name

        self.handles += [module.register_forward_pre_hook(enter), module.register_forward_hook(leave)]
        self.handles += [module.register_full_backward_pre_hook(enter), module.register_full_backward_hook(leave)]

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if torch.Tag.core not in func.tags:
            self.calls[self.inside[-1]]["other"] += 1
        else:
            self.calls[self.inside[-1]][func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))

    def report(self):
        for name, calls in sorted(self.calls.items()):
            print(f"    {name:<14}", ", ".join(f"{n} {what}" for what, n in sorted(calls.items())))
        self.calls.clear()


class Attention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.out = nn.Linear(d, d)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        weights = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(-1)
        return self.out(weights @ v)


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.attention = Attention(d)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return x + self.mlp(x)


torch.manual_seed(0)
model = Block(8)
x = torch.randn(2, 5, 8)
with ByModule(model) as profile:
    y = model(x)
    print("forward")
    profile.report()
    y.square().mean().backward()
    print("backward")
    profile.report()
    with torch.no_grad():
        model.eval()(x)
    print("forward without gradients")
    profile.report()
for handle in profile.handles:
    handle.remove()
print(len(profile.inside), f"{y.norm().item():.4f} {model.mlp[0].weight.grad.norm().item():.6f}")
