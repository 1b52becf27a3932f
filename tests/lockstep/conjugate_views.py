"""`conj()` computes nothing: a bit in the key set, a view, and a kernel that does the work when it must."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Log(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        bits = "".join("c" if isinstance(a, torch.Tensor) and a.is_conj() else "." for a in args)
        print(f"    {func} {bits}")
        return func(*args, **(kwargs or {}))


def facts(t):
    return f"conj {t.is_conj()} neg {t.is_neg()} view {t._is_view()} version {t._version}"


z = torch.tensor([[1 + 2j, 3 - 1j], [0.5j, 2]])
w = z.conj()
print(w, facts(w), w.data_ptr() == z.data_ptr(), w._base is z)
print(
    torch._C._dispatch_keys(z).has(torch.DispatchKey.Conjugate),
    torch._C._dispatch_keys(w).has(torch.DispatchKey.Conjugate),
)
print("twice", facts(w.conj()), "resolved", facts(w.resolve_conj()), w.resolve_conj().data_ptr() == z.data_ptr())
print("nothing to resolve", z.resolve_conj() is z, torch.ones(2).conj().is_conj(), torch.conj_physical(z).is_conj())
print("adjoint", facts(z.mH), z.mH.shape, torch.equal(z.H, z.t().conj()), z.adjoint().is_conj())
z[0, 0] = 5 + 5j
print("written below", w[0, 0].item(), facts(w))
w[0, 1] = 1 + 1j
print("written through", z[0, 1].item(), facts(z), facts(w))
w.mul_(1j)
print("in place on the view", z.tolist(), facts(w))
print("views keep the bit", facts(w[0]), facts(w.t()), facts(w.reshape(4)), facts(w.view(4)))
print("operators do not", facts(w + 1), facts(w.clone()), facts(w.contiguous()), facts(w.exp()))
print(
    "parts", facts(torch.view_as_real(w.resolve_conj())), w.real.tolist(), w.imag.tolist(), facts(w.imag), facts(w.real)
)
print("imag of a conjugate is a negative view:", w.imag.is_neg(), w.imag.data_ptr() == z.imag.data_ptr())
for what in (
    lambda: torch.view_as_real(w),
    lambda: w.numpy(),
    lambda: w.view(torch.float32),
    lambda: torch.conj(torch.tensor([1, 2])).is_conj(),
    lambda: torch._neg_view(w).is_neg(),
):
    try:
        print("no error", what())
    except (RuntimeError, TypeError) as error:
        print("RuntimeError:", str(error).split(". ")[0])
a, b = torch.randn(3, 4, dtype=torch.complex128), torch.randn(3, 5, dtype=torch.complex128)
print("product", torch.allclose(a.mH @ b, torch.conj_physical(a).t() @ b), (a.mH @ b).is_conj())
print("what a mode sees of it:")
with Log():
    w.conj(), w + 1, w.resolve_conj(), a.mH @ b, w.mul_(2), torch.cat([w, z])
leaf = torch.tensor([1 + 1j, 2 - 1j], requires_grad=True)
loss = (leaf.conj() * leaf).real.sum()
loss.backward()
print("gradient", leaf.grad.tolist(), leaf.conj().grad_fn.name(), leaf.conj().resolve_conj().grad_fn.name())
print("gradients may be lazy", torch.autograd.grad(leaf.conj().sum().real, leaf)[0].is_conj())
with torch.no_grad():
    print("out=", torch.add(z, 1, out=w) is w, facts(w), torch.equal(w, z.conj()))
print(
    torch.is_conj(w), w.is_complex(), torch.equal(w, w.resolve_conj()), w.storage().data_ptr() == z.storage().data_ptr()
)
