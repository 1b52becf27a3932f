"""Several modes at once: the order of the stack, what a mode's own calls reach, function modes above dispatch modes."""

import torch
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils import _python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes, _pop_mode_temporarily

trail = []


class Dispatch(TorchDispatchMode):
    def __init__(self, name, extra=None):
        super().__init__()
        self.name, self.extra = name, extra

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        trail.append(f"{self.name}:{func.overloadpacket.__name__}")
        if self.extra and func is torch.ops.aten.add.Tensor:
            self.extra(self, *args)
        return func(*args, **(kwargs or {}))


class Function(TorchFunctionMode):
    def __init__(self, name):
        self.name = name

    def __torch_function__(self, func, types, args=(), kwargs=None):
        trail.append(f"{self.name}:{getattr(func, '__name__', func)}")
        return func(*args, **(kwargs or {}))


def show(what, function):
    trail.clear()
    function()
    print(f"{what:<42}", *trail)


a = torch.ones(2)
A, B, F, G = Dispatch("A"), Dispatch("B"), Function("F"), Function("G")
with A, B:
    show("A then B", lambda: a + 1)
    show("composite", lambda: a.reshape(2, 1) @ a.reshape(1, 2))
with B, A:
    show("B then A", lambda: a * 2)
with A, A:
    show("A twice", lambda: a - 1)
with F, A, G, B:
    show("functions first", lambda: torch.add(a, 1))
    show("whatever the order of entering", lambda: a.sum().item())
with A, Dispatch("C", lambda self, *args: torch.exp(a)):
    show("a call inside reaches the modes below", lambda: a + 1)


def with_itself(self, *args):
    with self:
        torch.exp(a)


with A, Dispatch("D", with_itself):
    show("unless the mode enters itself", lambda: a + 1)
with A, B:
    with _pop_mode_temporarily() as popped:
        show(f"without {popped.name}", lambda: a + 1)
    with _disable_current_modes():
        show("without any", lambda: a + 1)
    print([mode.name for mode in _python_dispatch._get_current_dispatch_mode_stack()])
    print(_python_dispatch._get_current_dispatch_mode().name, torch._C._len_torch_dispatch_stack())
with F, G:
    print([mode.name for mode in _get_current_function_mode_stack()], torch._C._len_torch_function_stack())
    with torch._C.DisableTorchFunction():
        show("functions switched off", lambda: torch.add(a, 1))
    show("and on again", lambda: torch.add(a, 1))
try:
    with A, B:
        raise KeyError("out of both")
except KeyError as error:
    print(error, torch._C._len_torch_dispatch_stack(), torch._C._len_torch_function_stack())
with A:
    show("nothing is done that needs no operator", lambda: (a.shape, a.dtype, a.stride(), a.is_contiguous(), a.dim()))
with F:
    show("what a function mode sees more", lambda: (a.shape, a.dtype, a.dim(), a.grad, a.T, len(a), a[0], -a))
with A, torch.no_grad(), torch.inference_mode():
    show("grad modes are no modes of this kind", lambda: a + 1)
w = torch.ones(2, requires_grad=True)
with A:
    y = (w * w).sum()
show("backward after the mode", lambda: y.backward(retain_graph=True))
with A:
    show("backward inside the mode", lambda: y.backward())
