"""Zeros without memory: `torch._efficientzerotensor`, its rules for sums and products, and who makes such tensors."""

import torch


def facts(t):
    zero = torch._C._dispatch_keys(t).has(torch.DispatchKey.ZeroTensor)
    return f"{'zero' if zero else 'plain'} {tuple(t.shape)} {str(t.dtype).removeprefix('torch.')}"


def attempt(what, function):
    try:
        result = function()
        print(f"{what:<16}", facts(result) if isinstance(result, torch.Tensor) else result)
    except RuntimeError as error:
        print(f"{what:<16}", "RuntimeError:", str(error).splitlines()[0].split(". ")[0])


z = torch._efficientzerotensor((2, 3))
x = torch.arange(6.0).reshape(2, 3) + 1
print(facts(z), z._is_zerotensor(), z.is_contiguous(), z.stride(), z.device, z.untyped_storage().nbytes())
print(z.tolist() if not z._is_zerotensor() else "no numbers to list", z.data_ptr())
print("sums")
attempt("z + x", lambda: z + x)
attempt("x + z", lambda: x + z)
print("   the same memory?", (z + x).data_ptr() == x.data_ptr(), torch.equal(x + z, x))
attempt("z + z", lambda: z + z)
attempt("z + row", lambda: z + x[0])
attempt("2 x z + x", lambda: torch.add(x, z, alpha=2))
attempt("z - x", lambda: z - x)
print("   numbers", (z - x).tolist())
print("products")
attempt("z * x", lambda: z * x)
attempt("z * 2", lambda: z * 2)
attempt("z / x", lambda: z / x)
attempt("x / z", lambda: x / z)
attempt("double", lambda: z * x.double())
attempt("wider", lambda: z * torch.ones(4, 1, 3))
attempt("z.mm", lambda: z @ x.t())
attempt("dot", lambda: z[0].dot(x[0]))
print("views")
attempt("row", lambda: z[0])
attempt("transposed", lambda: z.t())
attempt("expanded", lambda: z.expand(5, 2, 3))
attempt("view", lambda: z.view(6))
attempt("copied", lambda: z.clone())
print("   numbers", z.clone().tolist())
print("others")
attempt("exp", lambda: z.exp())
attempt("neg", lambda: -z)
attempt("sum", lambda: z.sum())
attempt("cat", lambda: torch.cat([z, x]))
attempt("zeros_like", lambda: torch.zeros_like(z))
attempt("cosine", lambda: torch.cos(z))
print("   numbers", torch.cos(z).tolist())
print("writing")
attempt("z.add_(1)", lambda: z.add_(1))
attempt("x.add_(z)", lambda: x.clone().add_(z))
attempt("x.mul_(z)", lambda: x.clone().mul_(z))
attempt("x.copy_(z)", lambda: x.clone().copy_(z))
attempt("z.copy_(x)", lambda: z.copy_(x))
attempt("out=", lambda: torch.add(x, x, out=torch._efficientzerotensor((2, 3))))
meta = torch._efficientzerotensor((10**6, 10**6), device="meta")
attempt("meta", lambda: meta * 3)
attempt("int", lambda: torch._efficientzerotensor((2,), dtype=torch.int64) * 2.5)
attempt("complex", lambda: torch._efficientzerotensor((2,), dtype=torch.complex64).conj())
