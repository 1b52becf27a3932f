"""Autograd above a wrapper subclass: gradients are wrapped, too, and can be differentiated again; what each layer records."""

import torch
from torch.utils._pytree import tree_map_only

calls = []


class Counted(torch.Tensor):
    """Autograd is above: the wrapper has the graph, what it holds has none."""

    @staticmethod
    def __new__(cls, inner, requires_grad=False):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            dtype=inner.dtype,
            device=inner.device,
            strides=inner.stride(),
            requires_grad=requires_grad,
        )

    def __init__(self, inner, requires_grad=False):
        self.inner = inner

    def __repr__(self):
        return f"Counted({[round(v, 4) for v in self.inner.flatten().tolist()]})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        calls.append(func.overloadpacket.__name__)
        args, kwargs = tree_map_only(cls, lambda c: c.inner, (args, kwargs or {}))
        return tree_map_only(torch.Tensor, cls, func(*args, **kwargs))


def show(what, *values):
    print(f"{what}:", *values)
    print("   ", len(calls), "calls", *calls)
    calls.clear()


torch.manual_seed(0)
a = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
x = Counted(a, requires_grad=True)
y = (x.sin() * x).sum()
show("forward", y, y.grad_fn.name(), y.inner.requires_grad)
(first,) = torch.autograd.grad(y, x, create_graph=True)
show("first derivative", first, first.grad_fn.name(), type(first).__name__)
(second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
show("second derivative", second)
(third,) = torch.autograd.grad(second.sum(), x)
show("third derivative", third, third.requires_grad)

z = a.clone().requires_grad_()
w = (z.sin() * z).sum()
plain = [w]
for _ in range(3):
    (w,) = torch.autograd.grad(w.sum(), z, create_graph=True)
    plain.append(w)
print("as without a wrapper", [torch.allclose(c.inner, p.detach()) for c, p in zip((y, first, second, third), plain)])

m = Counted(torch.randn(3, 2, dtype=torch.float64), requires_grad=True)
v = Counted(torch.randn(2, dtype=torch.float64), requires_grad=True)
penalty = torch.autograd.grad(torch.tanh(m @ v).sum(), (m, v), create_graph=True)
loss = sum(g.square().sum() for g in penalty)
calls.clear()
loss.backward()
show("gradient penalty", f"{loss.inner.item():.5f}", m.grad, v.grad)

inside = torch.ones(2, requires_grad=True)
outer = Counted(inside.detach())
both = outer * inside
show("a plain tensor that requires grad", both.requires_grad, type(both).__name__, both.grad_fn.name())
both.sum().backward()
show("its gradient", type(inside.grad).__name__, inside.grad)
hooked = []
h = Counted(torch.ones(2), requires_grad=True)
h.register_hook(lambda g: hooked.append(type(g).__name__))
middle = h * 3
middle.retain_grad()
middle.register_hook(lambda g: g * 10)
(middle * middle).sum().backward()
calls.clear()
show("hooks", hooked, h.grad, middle.grad, h.is_leaf, middle.is_leaf)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x


s = Square.apply(Counted(torch.ones(2), requires_grad=True))
show("a function of one's own", s, type(s).__name__, s.grad_fn.name())
try:
    torch.autograd.grad(y.detach(), x)
except RuntimeError as error:
    print("RuntimeError:", error)
