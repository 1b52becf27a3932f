"""The bit that says minus: `_neg_view`, the imaginary part of a conjugate, and what each call makes of it."""

import torch

KEYS = torch.DispatchKey


def facts(t):
    keys = torch._C._dispatch_keys(t)
    bits = [name for name in ("Conjugate", "Negative", "ZeroTensor") if keys.has(getattr(KEYS, name))]
    return f"{'+'.join(bits) or 'plain'}{' view' if t._is_view() else ''} v{t._version}"


x = torch.tensor([1.0, -2.0, 3.0])
n = torch._neg_view(x)
print(n, facts(n), n.is_neg(), n.data_ptr() == x.data_ptr(), n._base is x)
print("real minus", facts(-x), "twice", facts(torch._neg_view(n)), torch._neg_view(n).tolist())
print("resolved", facts(n.resolve_neg()), n.resolve_neg().tolist(), x.resolve_neg() is x)
x.add_(1)
print("follows", n.tolist(), facts(n))
n.fill_(7)
print("filled through", x.tolist(), facts(x))
n[0] = 1.0
n.mul_(2)
print("and multiplied", x.tolist(), n.tolist(), facts(n))
print(
    "read",
    n.sum().item(),
    n.max().item(),
    n[1].item(),
    float(n[0]),
    n.tolist(),
    (n + x).tolist(),
    bool((n == -x).all()),
)
for name, view in (
    ("slice", n[1:]),
    ("view", n.view(3, 1)),
    ("flip", n.flip(0)),
    ("expand", n.expand(2, 3)),
    ("clone", n.clone()),
):
    print(f"{name:<8}", facts(view), view.flatten().tolist())
for name, result in (
    ("as", n.to(torch.float64)),
    ("like", torch.zeros_like(n)),
    ("detach", n.detach()),
    ("cat", torch.cat([n, x])),
):
    print(f"{name:<8}", facts(result), result.tolist())
out = torch._neg_view(torch.zeros(3))
torch.add(x, 1, out=out)
print("out=", facts(out), out.tolist(), torch._neg_view(out).tolist())
torch._neg_view(out).copy_(x)
print("copied into", out.tolist(), "from", out.copy_(n).tolist())

z = torch.tensor([1 + 2j, 3 - 4j])
both = torch._neg_view(z.conj())
print("both bits", facts(both), both.tolist(), facts(both.resolve_conj()), facts(both.resolve_neg()), facts(both + 0))
print(
    "imag of conj",
    facts(z.conj().imag),
    z.conj().imag.tolist(),
    facts(z.conj().real),
    facts(both.real),
    both.real.tolist(),
)
imaginary = z.conj().imag
imaginary.add_(10)
print("changes z", z.tolist(), facts(imaginary), facts(z))
for wrong in (lambda: n.numpy(), lambda: both.numpy(), lambda: torch.view_as_real(both)):
    try:
        print("no error", wrong())
    except RuntimeError as error:
        print("RuntimeError:", str(error).split(". ")[0])
print("for NumPy", n.resolve_neg().numpy(), n.numpy(force=True))

w = torch.tensor([1.0, 2.0], requires_grad=True)
y = torch._neg_view(w)
print("history", y.grad_fn.name(), y.requires_grad, facts(y))
(y * y * y).sum().backward()
print("gradient", w.grad.tolist())
print("gradient of a view", torch.autograd.grad(torch._neg_view(w).sum(), w)[0].tolist())
with torch.inference_mode():
    i = torch._neg_view(torch.ones(2))
    print("inference", i.is_inference(), i.is_neg(), (i + 1).tolist(), torch._C._dispatch_keys(i).has(KEYS.Negative))
meta = torch._neg_view(torch.empty(2, 3, device="meta"))
print("meta", meta.is_neg(), (meta + 1).is_neg(), meta.t().is_neg(), meta.resolve_neg().is_neg())
