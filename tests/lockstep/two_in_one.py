"""One tensor object that holds two: a pair of high and low parts, taken apart and put together by `__tensor_flatten__`."""

import copy

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass, transform_subclass
from torch.utils._pytree import tree_map_only


class Pair(torch.Tensor):
    """high + low is the number: twice the digits of a float32."""

    @staticmethod
    def __new__(cls, high, low):
        assert high.shape == low.shape and high.device == low.device
        return torch.Tensor._make_wrapper_subclass(cls, high.shape, dtype=torch.float64, device=high.device)

    def __init__(self, high, low):
        self.high, self.low = high, low

    @classmethod
    def of(cls, exact):
        high = exact.to(torch.float32)
        return cls(high, (exact - high.double()).to(torch.float32))

    def exact(self):
        return self.high.double() + self.low.double()

    def __tensor_flatten__(self):
        return ["high", "low"], None

    @staticmethod
    def __tensor_unflatten__(parts, context, outer_size, outer_stride):
        return Pair(parts["high"], parts["low"])

    def __repr__(self):
        return f"Pair({self.exact().tolist()})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in ALIKE:
            return cls(func(args[0].high, *args[1:], **kwargs), func(args[0].low, *args[1:], **kwargs))
        if func is torch.ops.aten.add.Tensor and all(isinstance(a, Pair) for a in args):
            return add(*args)
        if func is torch.ops.aten.copy_.default:
            for name in ("high", "low"):
                getattr(args[0], name).copy_(getattr(args[1], name))
            return args[0]
        print(f"    {func} by way of float64")
        args, kwargs = tree_map_only(Pair, Pair.exact, (args, kwargs))
        result = func(*args, **kwargs)
        return tree_map_only(torch.Tensor, lambda t: cls.of(t) if t.dtype == torch.float64 else t, result)


def add(a, b):
    """Knuth's sum: what was lost in rounding is kept."""
    total = a.high + b.high
    back = total - a.high
    lost = (a.high - (total - back)) + (b.high - back)
    return Pair(total, lost + a.low + b.low)


aten = torch.ops.aten
ALIKE = {aten.view.default, aten.neg.default, aten.clone.default, aten.t.default, aten.detach.default, aten.select.int}

third = torch.full((2, 2), 1 / 3, dtype=torch.float64)
p = Pair.of(third)
print(p, p.dtype, p.shape)
print(
    "error in one part",
    f"{(p.high.double() - third).abs().max().item():.1e}",
    "in both",
    f"{(p.exact() - third).abs().max().item():.1e}",
)
q = p + p + p
print(
    "three thirds",
    f"{(q.exact() - 1).abs().max().item():.1e}",
    "of single precision",
    f"{(p.high * 3 - 1).abs().max().item():.1e}",
)
print("sum", p.sum(), "row", (-p)[1], "cosine", type(torch.cos(p)).__name__, "comparison", type(p > 0).__name__)
print("traceable", is_traceable_wrapper_subclass(p), is_traceable_wrapper_subclass(third))
names, context = p.__tensor_flatten__()
print(names, context, [getattr(p, n).dtype for n in names])
doubled = transform_subclass(p, lambda name, part: part * 2)
print("each part by itself", doubled, type(doubled).__name__)
twin = copy.deepcopy(p)
twin.high.zero_()
print("deepcopy", type(twin).__name__, p.high.sum().item() > 0, twin.high.sum().item())
with torch.no_grad():
    twin.copy_(p)
print("copy_", twin, twin.clone() is twin)
w = torch.nn.Parameter(Pair.of(torch.tensor([1.0, 2.0], dtype=torch.float64)))
print(type(w).__name__, isinstance(w, torch.nn.Parameter), w.requires_grad, w.is_leaf)
(w + w).sum().backward()
print("gradient", w.grad, type(w.grad).__name__)
