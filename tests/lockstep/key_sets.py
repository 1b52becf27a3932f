"""Key sets: what tensors carry, how sets are added, cut and asked, and what each mode of the thread includes and excludes."""

import torch
from torch import DispatchKey
from torch._C import DispatchKeySet

SHOWN = ("CPU", "Meta", "SparseCPU", "Python", "Conjugate", "Negative", "ZeroTensor", "ADInplaceOrView", "AutogradCPU")
SHOWN += ("AutogradMeta", "AutogradOther", "AutocastCPU", "PythonTLSSnapshot", "BackendSelect")


def names(keys):
    return " ".join(name for name in SHOWN if keys.has(getattr(DispatchKey, name)))


def carried(what, t):
    print(f"{what:<22}", names(torch._C._dispatch_keys(t)))


class Sub(torch.Tensor):
    pass


class Wrapper(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError


x, w = torch.ones(2), torch.ones(2, requires_grad=True)
print("whole", torch._C._dispatch_keys(x), torch._C._dispatch_keys(torch.ones(1, device="meta")))
carried("plain", x)
carried("requires grad", w)
carried("has a history", w * 2)
carried("view", x[1:])
carried("integers", torch.ones(2, dtype=torch.int64))
carried("parameter", torch.nn.Parameter(x))
carried("meta", torch.ones(2, device="meta"))
carried("sparse", x.to_sparse())
carried("conjugate", torch.ones(2, dtype=torch.complex64).conj())
carried("negative", torch._neg_view(x))
carried("zero", torch._efficientzerotensor(2))
carried("subclass", x.as_subclass(Sub))
carried("__torch_dispatch__", Wrapper._make_wrapper_subclass(Wrapper, (2,)))
with torch.no_grad():
    carried("in no_grad", torch.ones(2) * w)
with torch.inference_mode():
    carried("in inference mode", torch.ones(2))
    carried("a view in it", x[1:])
    carried("a result in it", x + 1)
    kept = torch.ones(2, dtype=torch.complex64).conj()
carried("kept from it", kept)

print("thread")


def thread(what):
    print(
        f"{what:<22} includes: {names(torch._C._dispatch_tls_local_include_set())}",
        f"| excludes: {names(torch._C._dispatch_tls_local_exclude_set())}",
    )


class Mode(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        thread("  inside the mode")
        return func(*args, **(kwargs or {}))


thread("plain")
with torch.no_grad():
    thread("no_grad")
with torch.inference_mode():
    thread("inference_mode")
with torch._C._AutoDispatchBelowAutograd():
    thread("below autograd")
with torch._C._AutoDispatchBelowADInplaceOrView():
    thread("below ADInplaceOrView")
with torch._C._ExcludeDispatchKeyGuard(DispatchKeySet(DispatchKey.Conjugate)):
    thread("excluded by hand")
with torch._C._IncludeDispatchKeyGuard(DispatchKey.Negative):
    thread("included by hand")
    print("   ", torch._C._dispatch_tls_is_dispatch_key_included(DispatchKey.Negative))
with Mode():
    thread("a mode")
    x + 1
thread("plain again")

print("sets")
a = DispatchKeySet(DispatchKey.CPU).add(DispatchKey.AutogradCPU)
b = DispatchKeySet(DispatchKey.ADInplaceOrView).add(DispatchKey.CPU)
print(a, b, a | b, a & b, a - b, sep="\n")
print(
    a.highestPriorityTypeId(),
    (a | b).highestPriorityTypeId(),
    (a | b).remove(DispatchKey.AutogradCPU).highestPriorityTypeId(),
)
print(a == DispatchKeySet(DispatchKey.AutogradCPU).add(DispatchKey.CPU), a == b, a.has(DispatchKey.Meta))
print(
    names(torch._C._dispatch_keyset_full_after(DispatchKey.ADInplaceOrView)),
    "| below Python:",
    names(torch._C._dispatch_keyset_full_after(DispatchKey.Python)),
)
print(
    torch._C._dispatch_key_name(DispatchKey.Conjugate),
    torch._C._parse_dispatch_key("AutogradCPU"),
    torch._C._dispatch_key_for_device("cpu"),
)
print(names(torch._C._after_autograd_keyset), "|", names(torch._C._after_ADInplaceOrView_keyset))
for alias in (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd, DispatchKey.CompositeExplicitAutograd):
    members = [
        k
        for k in (DispatchKey.CPU, DispatchKey.Meta, DispatchKey.AutogradCPU)
        if torch._C._dispatch_is_included_in_alias(k, alias)
    ]
    print(alias, torch._C._dispatch_is_alias_key(alias), members)
