"""What a mode finds changed when it is asked: gradients, inference mode, excluded keys, hooks of saved tensors, other threads."""

import threading

import torch
from torch import DispatchKey
from torch.utils._python_dispatch import TorchDispatchMode


class State(TorchDispatchMode):
    def __init__(self, name="mode"):
        super().__init__()
        self.name, self.lines = name, []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        excluded = torch._C._dispatch_tls_local_exclude_set()
        facts = {
            "grad": torch.is_grad_enabled(),
            "inference": torch.is_inference_mode_enabled(),
            "autograd": not excluded.has(DispatchKey.AutogradOther),  # which says: autograd, whatever the backend
            "views": not excluded.has(DispatchKey.ADInplaceOrView),
            "modes": torch._C._len_torch_dispatch_stack(),
        }
        result = func(*args, **(kwargs or {}))
        known = isinstance(result, torch.Tensor) and (result.requires_grad, result._is_view())
        self.lines.append(
            f"{self.name} {func.overloadpacket.__name__:<12} {facts} result (requires_grad, view) {known}"
        )
        return result

    def report(self, what):
        print(what)
        print(*(f"    {line}" for line in self.lines), sep="\n")
        self.lines.clear()


w = torch.ones(2, 2, requires_grad=True)
x = torch.ones(2, 2)
with State() as state:
    y = w * 2
    state.report("recorded")
    print("   afterwards", y.requires_grad, y.grad_fn.name())
    with torch.no_grad():
        w * 2
    state.report("no_grad")
    with torch.inference_mode():
        i = w * 2
    state.report("inference mode")
    print("   afterwards", i.is_inference())
    x.view(4).add_(1)
    w.view(4)
    state.report("views")
    print("   afterwards", x._version, w.view(4).grad_fn.name(), x.view(4)._is_view())
    state.lines.clear()
    (w * w).sum().backward()
    state.report("backward")
    torch.autograd.grad((w * w * w).sum(), w, create_graph=True)
    state.report("backward with a graph")
with State("outer") as outer, State("inner") as inner:
    torch.neg(x)
outer.report("two modes")
inner.report("")


def elsewhere():
    print("another thread:", torch._C._len_torch_dispatch_stack(), torch.is_grad_enabled())
    x + 1


with torch.no_grad(), State() as state:
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    print("   calls that the mode saw", len(state.lines))


class Enabling(TorchDispatchMode):
    """Wants a graph of what it does itself."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is not torch.ops.aten.mul.Tensor:
            return func(*args, **(kwargs or {}))
        with torch.enable_grad():
            again = torch.ones(2, 2, requires_grad=True)
            result = func(again, *args[1:])
            print("inside, autograd excluded:", result.requires_grad)
            included, excluded = torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()
            with torch._C._ForceDispatchKeyGuard(included, excluded - torch._C.DispatchKeySet(DispatchKey.AutogradCPU)):
                result = func(again, *args[1:])
                print("inside, autograd let through:", result.requires_grad, result.grad_fn.name())
        return result.detach()


with Enabling():
    z = w * 3
    print("outside", z.requires_grad, z.grad_fn.name(), z.tolist())
with (
    torch.autograd.graph.saved_tensors_hooks(lambda t: (print("packed", tuple(t.shape)), t)[1], lambda t: t),
    State() as state,
):
    z = w * w
    state.report("hooks of saved tensors")
print(torch._C._dispatch_tls_local_exclude_set().has(DispatchKey.AutogradOther), torch._C._len_torch_dispatch_stack())
