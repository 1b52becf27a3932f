"""Fake tensors on devices that are not there: which device a result has, what is refused, which constants are still known."""

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode


def attempt(what, function):
    try:
        result = function()
        if isinstance(result, torch.Tensor):
            result = f"{type(result).__name__} {tuple(result.shape)} {result.dtype} {result.device}"
        print(f"{what:<26}", result)
    except (RuntimeError, AssertionError, DataDependentOutputException, DynamicOutputShapeException) as error:
        print(
            f"{what:<26}",
            f"{type(error).__name__}:",
            str(error).splitlines()[0].split(", found")[0].split(". Found")[0].split(" x.fake_mode")[0],
        )


with FakeTensorMode() as mode:
    a = torch.ones(2, 3)
    g = torch.ones(3, 4, device="cuda")
    scalar = torch.tensor(2.0)
    print(a, g, scalar, sep="\n")
    print("devices")
    attempt("cpu", lambda: a + 1)
    attempt("cuda", lambda: g.relu())
    attempt("a number from the cpu", lambda: g * scalar)
    attempt("its other side", lambda: scalar / g)
    attempt("two devices", lambda: a @ g)
    attempt("meta", lambda: torch.ones(2, device="meta") + 1)
    attempt("meta with cpu", lambda: torch.ones(2, 3, device="meta") + a)
    attempt("like", lambda: torch.zeros_like(g))
    attempt("new_", lambda: g.new_empty(2, 2))
    attempt("cat", lambda: torch.cat([g, g.double()]))
    attempt("in place", lambda: a.add_(1))
    attempt("in place, other device", lambda: a.add_(torch.ones(2, 3, device="cuda")))
    attempt("out=", lambda: torch.add(a, 1, out=torch.empty(0)))
    print("shapes and types")
    attempt("promotes", lambda: torch.ones(2, dtype=torch.int32) + torch.ones(2, dtype=torch.int64))
    attempt(
        "convolution", lambda: torch.nn.functional.conv2d(torch.ones(1, 3, 8, 8), torch.ones(5, 3, 3, 3), padding=1)
    )
    attempt("sort", lambda: a.sort(1).indices)
    attempt("stays a view", lambda: (a.t().stride(), a.t()._is_view(), a.t()._base is a))
    print("what depends on numbers")
    attempt("item", lambda: a.sum().item())
    attempt("item of a constant", lambda: scalar.item())
    attempt("of a constant's result", lambda: (scalar + 1).item())
    attempt("truth", lambda: bool(a.sum() > 0))
    attempt("nonzero", lambda: a.nonzero())
    attempt("mask", lambda: a[a > 0])
    attempt("unique", lambda: torch.unique(a))
    attempt("where", lambda: torch.where(a > 0, a, 0.0))
    attempt("as numbers", lambda: a.tolist())
    attempt("repeat", lambda: a.repeat_interleave(torch.tensor([1, 2]), 0))
    attempt("equal", lambda: torch.equal(a, a))
    attempt("allclose", lambda: torch.allclose(a, a))
    inside = a
real = torch.arange(6.0).reshape(2, 3)
part, turned = real.t()[1:], real.t()
print("real and fake")
attempt("outside the mode", lambda: inside + 1)
attempt("with a real one", lambda: inside + real)
attempt("with a number", lambda: inside * torch.tensor(2.0))
with mode:
    attempt("inside with a real one", lambda: real + 1)
    attempt("converted", lambda: mode.from_tensor(part) + 1)
    view = mode.from_tensor(turned)
    print(
        view.shape,
        view.stride(),
        view.storage_offset(),
        view.is_contiguous(),
        mode.from_tensor(real) is mode.from_tensor(real),
    )
other = FakeTensorMode()
with other:
    attempt("of another mode", lambda: inside + torch.ones(2, 3))
