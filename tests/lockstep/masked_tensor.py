"""Numbers of which some are missing: a wrapper of data and mask, pointwise, in reductions, and in autograd."""

import torch
from torch.utils._pytree import tree_map_only

aten = torch.ops.aten


class Masked(torch.Tensor):
    @staticmethod
    def __new__(cls, data, valid):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            data.shape,
            strides=data.stride(),
            dtype=data.dtype,
            device=data.device,
            requires_grad=data.requires_grad,
        )

    def __init__(self, data, valid):
        self.data_, self.valid = data.detach(), valid

    def __repr__(self):
        shown = [
            f"{v:g}" if ok else "--" for v, ok in zip(self.data_.flatten().tolist(), self.valid.flatten().tolist())
        ]
        return f"[{' '.join(shown)}] {tuple(self.shape)}"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in REDUCTIONS:
            return REDUCTIONS[func](*args, **kwargs)
        if func in (aten.ones_like.default, aten.zeros_like.default):
            return cls(func(args[0].data_, **kwargs), args[0].valid)
        data = tree_map_only(cls, lambda a: a.data_, args)
        if func in VIEWS:  # the same view of the mask
            return cls(func(*data, **kwargs), func(args[0].valid, *args[1:], **kwargs))
        if torch.Tag.pointwise in func.tags:
            result, valid = func(*data, **kwargs), torch.ones((), dtype=torch.bool)
            for a in args:
                if isinstance(a, cls):
                    valid = valid & a.valid
            return cls(result, valid.expand_as(result))
        raise NotImplementedError(f"{func} on a Masked")


VIEWS = {
    aten.view.default,
    aten.t.default,
    aten.expand.default,
    aten.select.int,
    aten.slice.Tensor,
    aten.detach.default,
}


def total(a, dims=None, keepdim=False, dtype=None):
    dims = tuple(range(a.ndim)) if dims is None else dims
    filled = torch.where(a.valid, a.data_, 0)
    return Masked(filled.sum(dims, keepdim), a.valid.any(dims[0], keepdim) if len(dims) == 1 else a.valid.any())


def mean(a, dtype=None):
    return Masked(a.data_[a.valid].mean(), a.valid.any())


REDUCTIONS = {aten.sum.default: total, aten.sum.dim_IntList: total, aten.mean.default: mean}

m = Masked(torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), torch.tensor([[True, False, True], [False, False, True]]))
n = Masked(torch.full((2, 3), 10.0), torch.tensor([True, True, False]).expand(2, 3))
print("m", m, "| n", n)
print("sum of both", m + n, "| product", m * n, "| times two", 2 * m)
print("exp of a row", m[0].exp().floor(), "| turned", m.t(), "| part", m[:, 1:])
print("sums", m.sum(), m.sum(0), m.sum(1), "mean", m.mean())
print("comparison", (m > 2).valid.tolist(), type(m > 2).__name__, (m > 2).dtype)
for wrong in (lambda: torch.linalg.norm(m), lambda: m @ m.t()):
    try:
        print(wrong())
    except NotImplementedError as error:
        print("NotImplementedError:", error)
x = Masked(torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.tensor([True, True, False]))
print(x.requires_grad, x.is_leaf, type(x).__name__)
y = (x * x * 3).sum()
y.backward()
print("gradient", x.grad, type(x.grad).__name__, y.grad_fn.name(), x.grad.shape)
