"""Replacing functions under a model's feet: a TorchFunctionMode that gives gelu for relu, one that casts, one that refuses."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode, resolve_name


class Replace(TorchFunctionMode):
    def __init__(self, swaps):
        self.swaps, self.hits = swaps, 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in self.swaps:
            self.hits += 1
            kwargs = {k: v for k, v in (kwargs or {}).items() if k != "inplace"}
            return self.swaps[func](*args, **kwargs)
        return func(*args, **(kwargs or {}))


class MatmulsIn(TorchFunctionMode):
    """As autocast does it, in ten lines."""

    def __init__(self, dtype):
        self.dtype = dtype

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in (F.linear, torch.matmul, torch.Tensor.matmul, torch.mm):
            result = func(*(a.to(self.dtype) if isinstance(a, torch.Tensor) else a for a in args), **(kwargs or {}))
            return result.float()
        return func(*args, **(kwargs or {}))


class Forbid(TorchFunctionMode):
    def __init__(self, *functions):
        self.functions = functions

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in self.functions:
            raise RuntimeError(f"{resolve_name(func)} is not allowed here")
        return func(*args, **(kwargs or {}))


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(inplace=True), nn.Linear(8, 2))
smooth = nn.Sequential(net[0], nn.GELU(), net[2], nn.GELU(), net[4])
x = torch.randn(3, 4)
with Replace({F.relu: F.gelu, torch.relu: F.gelu}) as replace:
    swapped = net(x)
    print("functions written otherwise", torch.allclose(torch.relu(x), F.gelu(x)), x.relu().min().item())
print(replace.hits, "replaced;", torch.allclose(swapped, smooth(x)), torch.allclose(swapped, net(x)))
print([f"{v:.4f}" for v in swapped.flatten().tolist()])
swapped.sum().backward()
print(f"gradient {net[0].weight.grad.norm().item():.4f}", swapped.grad_fn.next_functions[0][0].name())

with MatmulsIn(torch.float64):
    precise = net(x)
    product = x @ x.t()
with MatmulsIn(torch.bfloat16):
    coarse = net(x)
print(precise.dtype, torch.allclose(precise, net(x)), coarse.dtype, 1e-5 < (coarse - precise).abs().max().item() < 0.1)
print("operators are methods, too:", f"{(product - x @ x.t()).abs().max().item():.1f}")

with Forbid(torch.Tensor.item, torch.Tensor.tolist, torch.Tensor.__bool__, torch.Tensor.cpu):
    for what in (
        lambda: x.sum().item(),
        lambda: x.tolist(),
        lambda: bool(x.sum() > 0),
        lambda: x.cpu(),
        lambda: float(x[0, 0]),
    ):
        try:
            print("allowed:", what())
        except RuntimeError as error:
            print("RuntimeError:", error)

with Replace({torch.add: torch.sub}), Replace({torch.sub: torch.mul}):
    print("the inner mode sees it first:", torch.add(torch.tensor(5), 3).item(), torch.sub(torch.tensor(5), 3).item())
with Replace({torch.sub: torch.mul}), Replace({torch.add: torch.sub}):
    print("and what a mode calls goes to the modes below it:", torch.add(torch.tensor(5), 3).item())
