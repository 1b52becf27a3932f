"""A mode and a wrapper subclass meet: who is asked first, what each can hand on, and what happens when nobody knows."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only


class Boxed(torch.Tensor):
    """A tensor in a box. `label` says which box."""

    label = "box"

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, device=inner.device, requires_grad=inner.requires_grad
        )

    def __init__(self, inner):
        self.inner = inner

    def __repr__(self):
        return f"{type(self).__name__}({self.inner.tolist()})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        print(f"    {cls.label}: {func}", sorted(t.__name__ for t in types))
        if not all(issubclass(t, (Boxed, torch.Tensor)) for t in types) or cls.refuses(types):
            return NotImplemented
        args, kwargs = tree_map_only(Boxed, lambda a: a.inner, (args, kwargs or {}))
        return tree_map_only(torch.Tensor, cls, func(*args, **kwargs))

    @classmethod
    def refuses(cls, types):
        return False


class Large(Boxed):
    label = "large box"


class Shy(Boxed):
    """Goes with its own kind only."""

    label = "shy box"

    @classmethod
    def refuses(cls, types):
        return any(t not in (cls, torch.Tensor) for t in types)


class ShyToo(Shy):
    label = "another shy box"


class Tell(TorchDispatchMode):
    def __init__(self, name, refuse=()):
        super().__init__()
        self.name, self.refuse = name, refuse

    def __repr__(self):
        return f"Tell({self.name!r})"

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        print(f"  {self.name}: {func}", sorted(t.__name__ for t in types))
        if func.overloadpacket in self.refuse:
            return NotImplemented
        return func(*args, **(kwargs or {}))


def attempt(what, function):
    print(what)
    try:
        print("  =", function())
    except TypeError as error:
        print("  TypeError:", str(error).replace("\n\n", "\n").replace("\n", "\n      "))


x = torch.tensor([1.0, 2.0])
b, l, s = Boxed(x), Large(x * 10), Shy(x * 100)
attempt("a subclass alone", lambda: b + 1)
attempt("subclass of subclass goes first", lambda: b * l)
attempt("whatever the order", lambda: torch.sub(l, b))
attempt("the second is asked when the first declines", lambda: torch.add(s, b))
attempt("nobody knows", lambda: torch.mul(s, ShyToo(x)))
with Tell("mode"):
    attempt("a mode before the subclass", lambda: b + 1)
    attempt("plain tensors", lambda: x + 1)
    attempt("composite", lambda: torch.nn.functional.linear(Boxed(torch.ones(1, 2)), x.reshape(1, 2)))
with Tell("mode", refuse=[torch.ops.aten.mul]):
    attempt("a mode that declines", lambda: x * 2)
    attempt("a mode that declines in front of a subclass", lambda: b * 2)
with Tell("outer", refuse=[torch.ops.aten.exp]), Tell("inner"):
    attempt("two modes and a box", lambda: b.neg())
    attempt("the outer declines", lambda: b.exp())
w = Boxed(torch.tensor([3.0, 4.0], requires_grad=True))
with Tell("mode"):
    print("forward")
    loss = (w * w).sum()
    print("backward")
    loss.backward()
print(w.grad, w.inner.grad)
