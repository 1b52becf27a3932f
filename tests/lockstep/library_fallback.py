"""A kernel for every operator at once: sparse tensors that become dense where nobody wrote a sparse kernel; and fallthrough."""

import torch
from torch import DispatchKey
from torch.utils._pytree import tree_map_only

everything = torch.library.Library("_", "IMPL")
aten = torch.library.Library("aten", "IMPL")
own = torch.library.Library("lockstep_fall", "DEF")
own.define("twice(Tensor x) -> Tensor")
trail = []


def densify(operator, *args, **kwargs):
    trail.append(operator.name())
    dense = tree_map_only(torch.Tensor, lambda t: t.to_dense() if t.is_sparse else t, (args, kwargs))
    result = operator(*dense[0], **dense[1])
    return tree_map_only(torch.Tensor, lambda t: t.to_sparse() if t.ndim else t, result)


def show(what, function):
    trail.clear()
    try:
        result = function()
        if isinstance(result, torch.Tensor):
            result = f"{result.layout} {result.to_dense().tolist()}"
    except (RuntimeError, NotImplementedError) as error:
        result = f"{type(error).__name__}: " + str(error).split(" with arguments")[0][:110]
    print(f"{what:<26}", *trail, "->", result)


x = torch.tensor([[0.0, 1.0], [2.0, 0.0]]).to_sparse()
print("has a fallback", torch._C._dispatch_has_backend_fallback(DispatchKey.SparseCPU))
show("has a sparse kernel", lambda: torch.sin(x))
show("has none", lambda: torch.exp(x))
show("composite", lambda: torch.square(x))
everything.fallback(densify, "SparseCPU")
print("has a fallback", torch._C._dispatch_has_backend_fallback(DispatchKey.SparseCPU))
show("has a sparse kernel", lambda: torch.sin(x))
show("had none", lambda: torch.exp(x))
show("with numbers", lambda: torch.clamp(x, min=0.5, max=1.5))
show("two operands, one sparse", lambda: torch.atan2(x, torch.ones(2, 2)))
show("several results", lambda: torch.max(x, dim=1)[0])
show("dense tensors", lambda: torch.exp(torch.zeros(1)))
w = torch.tensor([[0.0, 3.0]]).to_sparse().requires_grad_()
show("under autograd", lambda: torch.cosh(w))
print(torch.cosh(w).grad_fn.name(), torch.cosh(w).requires_grad)

aten.impl("exp", lambda t: torch.sparse_coo_tensor(t.indices(), t.values().exp(), t.shape), "SparseCPU")
show("a kernel goes before it", lambda: torch.exp(x.coalesce()))
show("cosh has still none", lambda: torch.cosh(x))
own.impl("twice", lambda t: (trail.append("CPU"), t + t)[1], "CPU")
show("one's own operator", lambda: torch.ops.lockstep_fall.twice(x))
show("one's own, dense", lambda: torch.ops.lockstep_fall.twice(torch.ones(2)))
own.impl("twice", torch.library.fallthrough_kernel, "AutogradCPU")
y = torch.ops.lockstep_fall.twice(torch.ones(2, requires_grad=True))
print("autograd fallen through, the CPU's kernel calls add below it:", y.requires_grad, y.grad_fn.name())
for op, key in (
    ("aten::exp", "SparseCPU"),
    ("aten::cosh", "SparseCPU"),
    ("lockstep_fall::twice", "SparseCPU"),
    ("lockstep_fall::twice", "AutogradCPU"),
    ("lockstep_fall::twice", "ADInplaceOrView"),
):
    line = [part for part in torch._C._dispatch_dump_table(op).splitlines() if part.startswith(f"{key}:")][0]
    own_kernel = torch._C._dispatch_has_kernel_for_dispatch_key(op, key)
    computed = torch._C._dispatch_has_computed_kernel_for_dispatch_key(op, key)
    print(f"{op:<22} {key:<16} own {own_kernel}, any {computed}, {line.rpartition('[')[2]}", "fallthrough" in line)
for wrong in (
    lambda: everything.fallback(densify, "SparseCPU"),
    lambda: everything.fallback(densify, "AutocastCPU"),
    lambda: own.fallback(densify, "SparseCPU"),
):
    try:
        wrong()
        print("no error")
    except RuntimeError as error:
        print("RuntimeError:", str(error).split(";")[0][:100])
aten._destroy()
show("exp has none again", lambda: torch.exp(x))
everything._destroy()
print("has a fallback", torch._C._dispatch_has_backend_fallback(DispatchKey.SparseCPU))
show("nobody is left", lambda: torch.exp(x))
