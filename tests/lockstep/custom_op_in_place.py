"""Operators that write to their arguments: `mutates_args`, version counters, what autograd and views notice of it."""

import torch
from torch import Tensor
from torch.library import custom_op


@custom_op("lockstep::add_noise_", mutates_args=("x",))
def add_noise_(x: Tensor, amount: float) -> None:
    x.copy_(x + amount * torch.arange(x.numel()).reshape(x.shape))


@custom_op("lockstep::split_sign", mutates_args={"positive", "negative"})
def split_sign(x: Tensor, positive: Tensor, negative: Tensor) -> None:
    positive.copy_(x.clamp(min=0))
    negative.copy_(x.clamp(max=0))


@custom_op("lockstep::running_mean", mutates_args=("state",))
def running_mean(x: Tensor, state: list[Tensor], momentum: float = 0.1) -> Tensor:
    mean, count = state
    mean.lerp_(x.mean(0), momentum)
    count.add_(1)
    return x - mean


@custom_op("lockstep::anything", mutates_args="unknown")
def anything(x: Tensor, y: Tensor | None = None) -> None:
    x.zero_()


for op in (add_noise_, split_sign, running_mean, anything):
    print(op._opoverload._schema, "mutable", op._opoverload._schema.is_mutable)

a = torch.zeros(4)
view = a[1:3]
add_noise_(a, 0.5)
print(a.tolist(), view.tolist(), "versions", a._version, view._version)
add_noise_(view, 10.0)
print("through the view", a.tolist(), "versions", a._version, view._version)
positive, negative = torch.empty(4), torch.empty(4)
split_sign(a - 1, positive, negative)
print(positive.tolist(), negative.tolist(), positive._version, negative._version, a._version)
state = [torch.zeros(2), torch.zeros((), dtype=torch.int64)]
for batch in (torch.ones(3, 2), 3 * torch.ones(3, 2)):
    centred = running_mean(batch, state, momentum=0.5)
print(centred.tolist(), [t.tolist() for t in state], [t._version for t in state])

x = torch.ones(3, requires_grad=True)
y = x * 2
z = y * y
add_noise_.register_fake(lambda x, amount: None)
for what in (lambda: add_noise_(y.detach(), 1.0), lambda: z.sum().backward()):
    try:
        print("no error", what())
    except RuntimeError as error:
        print("RuntimeError:", str(error).split(";")[0].split(": [")[0])
for what in (lambda: add_noise_(x, 1.0), lambda: add_noise_(x * 1, 1.0)):
    try:
        print("no error", what())
    except RuntimeError as error:
        print("RuntimeError:", str(error).split(";")[0])
with torch.no_grad():
    add_noise_(x, 1.0)
print("without gradients", x.tolist(), x._version, x.requires_grad)
with torch.inference_mode():
    quick = torch.zeros(2)
    add_noise_(quick, 1.0)
    print("in inference mode", quick.tolist(), quick.is_inference())
meta = torch.zeros(3, device="meta")
add_noise_(meta, 1.0)
print("on the Meta device", meta.shape, meta._version)

wrong = {
    "returns what it was given": lambda: custom_op(
        "lockstep::wrong1", lambda x: x, mutates_args=(), schema="(Tensor x) -> Tensor"
    ),
    "an argument that is not there": lambda: custom_op("lockstep::wrong2", anything._init_fn, mutates_args=("z",)),
    "no types": lambda: custom_op("lockstep::wrong3", lambda x: None, mutates_args=()),
    "mutates_args left out": lambda: custom_op("lockstep::wrong4", anything._init_fn),
}
for what, make in wrong.items():
    try:
        print(what, make()(torch.ones(1)))
    except (ValueError, TypeError, RuntimeError) as error:
        print(f"{what}: {type(error).__name__}:", str(error).rpartition("): ")[2].split(". ")[0].split("Got")[0])
