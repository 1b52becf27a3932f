"""An operator of one's own with a gradient, a shape rule and kernels by device, through `torch.library.custom_op`."""

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


@torch.library.custom_op("lockstep::softclip", mutates_args=())
def softclip(x: Tensor, limit: float, sharpness: float = 1.0) -> tuple[Tensor, Tensor]:
    """limit * tanh(sharpness * x / limit), and how many elements were near the limit."""
    numbers = limit * np.tanh(sharpness * x.numpy() / limit)
    near = int((np.abs(numbers) > 0.9 * limit).sum())
    return torch.from_numpy(numbers), torch.tensor(near)


@softclip.register_fake
def _(x, limit, sharpness=1.0):
    return torch.empty_like(x), x.new_empty((), dtype=torch.int64)


def setup_context(ctx, inputs, output):
    x, ctx.limit, ctx.sharpness = inputs
    ctx.save_for_backward(output[0])
    ctx.mark_non_differentiable(output[1])


def backward(ctx, gradient, _):
    (result,) = ctx.saved_tensors
    return gradient * ctx.sharpness * (1 - (result / ctx.limit) ** 2), None, None


softclip.register_autograd(backward, setup_context=setup_context)

print(softclip, softclip._opoverload, softclip._opoverload._schema)
x = torch.tensor([0.0, 1.0, -3.0, 10.0], dtype=torch.float64, requires_grad=True)
y, near = softclip(x, 2.0)
print([f"{v:.5f}" for v in y.tolist()], near.item(), y.requires_grad, near.requires_grad)
y.sum().backward()
print([f"{v:.5f}" for v in x.grad.tolist()], y.grad_fn.name())
print("gradcheck", torch.autograd.gradcheck(lambda x: softclip(x, 2.0, 0.5)[0], (x,)))
print("second derivative", torch.autograd.gradgradcheck(lambda x: softclip(x, 2.0, 0.5)[0], (x,)))
again = torch.ops.lockstep.softclip(x, limit=2.0, sharpness=1.0)
print("as torch.ops", torch.equal(again[0], y), torch.ops.lockstep.softclip.overloads(), torch.ops.lockstep.softclip)
with torch.no_grad():
    print("no_grad", softclip(x, 2.0)[0].requires_grad)
print("meta", [tuple(t.shape) for t in softclip(torch.empty(10**6, 10**7, device="meta"), 1.0)])


class Names(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        print("    mode sees", func, len(args), kwargs)
        return func(*args, **(kwargs or {}))


with Names():
    softclip(x, 2.0)
for wrong in (
    lambda: softclip(x),
    lambda: softclip("x", 2.0),
    lambda: softclip(x, 2.0, steepness=3),
    lambda: torch.ops.lockstep.hardclip(x),
):
    try:
        wrong()
    except (RuntimeError, AttributeError, TypeError) as error:
        print(f"{type(error).__name__}:", str(error).splitlines()[0])


@torch.library.custom_op("lockstep::same", mutates_args=())
def same(x: Tensor) -> Tensor:
    return x


@torch.library.custom_op("lockstep::no_gradient", mutates_args=())
def no_gradient(x: Tensor, others: list[Tensor], mode: str = "up") -> Tensor:
    return x.clone() + sum(others)


result = no_gradient(x, [x, x])
print(no_gradient._opoverload._schema, result.requires_grad)
for wrong in (
    lambda: same(torch.ones(2)),
    lambda: result.sum().backward(),
    lambda: no_gradient(torch.ones(2, device="meta"), []),
):
    try:
        wrong()
    except (RuntimeError, NotImplementedError) as error:
        print(f"{type(error).__name__}:", str(error).rpartition("): ")[2].split(". ")[0])


@softclip.register_kernel("cpu")
def _(x, limit, sharpness=1.0):
    return torch.full_like(x, 7.0), torch.tensor(-1)


print("another kernel for the CPU", softclip(x, 2.0)[0].tolist())
with softclip.set_kernel_enabled("cpu", enabled=False):
    print("switched off", [f"{v:.5f}" for v in softclip(x, 2.0)[0].tolist()])
