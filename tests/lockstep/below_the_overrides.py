"""Where `__torch_function__` ends: DisableTorchFunctionSubclass, super(), as_subclass, what views and in-place calls return."""

import torch
from torch._C import DisableTorchFunction, DisableTorchFunctionSubclass
from torch.overrides import TorchFunctionMode

trail = []


class Logged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        trail.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


class Other(Logged):
    pass


class Stranger(torch.Tensor):
    pass


class Mode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        trail.append(f"mode:{func.__name__}")
        return func(*args, **(kwargs or {}))


def show(what, function):
    trail.clear()
    try:
        result = function()
    except TypeError as error:
        result = f"TypeError {str(error).splitlines()[0]}"
    kind = type(result).__name__ if isinstance(result, torch.Tensor) else result
    print(f"{what:<34} {kind!s:<10}", *trail)


a = torch.tensor([1.0, -2.0, 3.0]).as_subclass(Logged)
b = torch.ones(3).as_subclass(Other)
show("an operator", lambda: a + 1)
show("from the right", lambda: 1 - a)
show("a function", lambda: torch.relu(a))
show("nn.functional asks, then calls", lambda: torch.nn.functional.relu(a))
show("a view", lambda: a[1:])
show("two classes, the finer one first", lambda: torch.add(a, b))
show("and the result is of its class", lambda: b * a)
show("no subclass of each other", lambda: a + torch.ones(3).as_subclass(Stranger))
show("in place", lambda: a.mul_(2))
show("out=", lambda: torch.neg(torch.ones(3), out=a))
show("a tuple of results", lambda: type(a.max(0)).__name__ + " of " + type(a.max(0).values).__name__)
show("a list of results", lambda: [type(t).__name__ for t in a.chunk(3)])
show("an attribute", lambda: a.shape)
show("an attribute that is a tensor", lambda: a.T)
show("writing an attribute", lambda: setattr(a, "requires_grad", False))
show("attributes of one's own", lambda: (setattr(a, "mine", 5), a.mine)[1])
show("numbers", lambda: (len(a), float(a[0]), a.tolist(), a.sum().item()))
show("text", lambda: repr(a))
with DisableTorchFunctionSubclass():
    show("switched off", lambda: a + 1)
    show("its attributes", lambda: a.shape)
    with Mode():
        show("but not the modes", lambda: a + 1)
with DisableTorchFunction(), Mode():
    show("modes, too", lambda: a + 1)
with Mode():
    show("mode first, then class", lambda: a + 1)
    show("a mode sees plain tensors", lambda: torch.ones(1) * 2)
show("on again", lambda: a + 1)
print(torch._C._is_torch_function_enabled(), torch._C._is_torch_function_all_disabled())
w = torch.tensor([1.0, 2.0, 3.0]).as_subclass(Logged).requires_grad_()
loss = (w * w).sum()
show("backward", lambda: loss.backward())
show("the gradient", lambda: w.grad)
print(type(w.grad).__name__, type(w.detach()).__name__, type(w.as_subclass(torch.Tensor)).__name__, w.is_leaf)
