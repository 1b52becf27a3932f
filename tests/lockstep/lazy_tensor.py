"""A tensor that is not there until somebody asks for its numbers: operators are written down, shapes come from Meta tensors."""

import torch
from torch.utils._pytree import tree_map_only


class Lazy(torch.Tensor):
    runs = 0

    @staticmethod
    def __new__(cls, recipe, like):
        return torch.Tensor._make_wrapper_subclass(
            cls, like.shape, strides=like.stride(), dtype=like.dtype, device="cpu", requires_grad=False
        )

    def __init__(self, recipe, like):
        self.recipe, self.like, self.value = recipe, like, None

    @classmethod
    def of(cls, t):
        lazy = cls(None, t.to("meta"))
        lazy.value = t
        return lazy

    def force(self):
        if self.value is None:
            func, args, kwargs = self.recipe
            args, kwargs = tree_map_only(Lazy, Lazy.force, (args, kwargs))
            self.value = func(*args, **kwargs)
            Lazy.runs += 1
        return self.value

    def depth(self):
        if self.recipe is None or self.value is not None:
            return 0
        return 1 + max((a.depth() for a in self.recipe[1] if isinstance(a, Lazy)), default=0)

    def __repr__(self):
        return f"Lazy({tuple(self.shape)}, {self.dtype}, {self.depth()} operators deep)"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.ops.aten._local_scalar_dense.default:
            return args[0].force().item()
        if func._schema.is_mutable:
            raise RuntimeError(f"{func} writes; a Lazy cannot be written to")
        shapes = tree_map_only(Lazy, lambda a: a.like, (args, kwargs))
        like = func(*shapes[0], **shapes[1])
        if isinstance(like, (tuple, list)):
            whole = cls((func, args, kwargs), like[0])
            return type(like)(cls((lambda w, i: w[i], (whole, i), {}), m) for i, m in enumerate(like))
        return cls((func, args, kwargs), like)


torch.manual_seed(0)
x, w = torch.randn(6, 4), torch.randn(4, 3)
a, b = Lazy.of(x), Lazy.of(w)
y = (a @ b).relu().sum(0)
print(y, y.shape, y.stride(), "runs so far", Lazy.runs)
print("forced", [f"{v:.4f}" for v in y.force().tolist()], "runs", Lazy.runs)
print(y, "a second time runs", (y.force(), Lazy.runs)[1])
z = (y * 2).max()
print(z, "item", f"{z.item():.4f}", "equal", torch.allclose(z.force(), (x @ w).relu().sum(0).max() * 2), Lazy.runs)
print("what nobody asks for", a.t().reshape(3, 8).unsqueeze(-1).expand(3, 8, 5), Lazy.runs)
print("too large for any machine", Lazy.of(x[:, :1]).expand(6, 10**13) + 1)
print("dtypes", a > 0, a.to(torch.float64), a.long() / 2)
for wrong in (lambda: a.view(5, 5), lambda: a.add_(1), lambda: torch.cat([a, b])):
    try:
        print(wrong())
    except RuntimeError as error:
        print("RuntimeError:", str(error).split(". ")[0])
values, indices = a.topk(2, dim=1)
print(values, indices, type(values).__name__)
print("branches ask", "positive" if a.sum() > 0 else "negative", Lazy.runs)
