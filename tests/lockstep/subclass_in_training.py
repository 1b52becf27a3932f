"""A Tensor subclass as a parameter: modules, optimizers, state_dict, deepcopy, pickle and saving keep what it is."""

import copy
import io
import pickle

import torch
from torch import nn


class Labelled(torch.Tensor):
    """A tensor with a label, which results of operators lose and copies keep."""

    label = ""

    @staticmethod
    def __new__(cls, data, label="", requires_grad=False):
        return torch.Tensor._make_subclass(cls, data, requires_grad)

    def __init__(self, data, label="", requires_grad=False):
        self.label = label

    def __deepcopy__(self, memo):
        return type(self)(self.detach().as_subclass(torch.Tensor).clone(), self.label + "'", self.requires_grad)


class Scale(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.factor = nn.Parameter(Labelled(torch.full((n,), 2.0), "factor"))
        self.register_buffer("seen", Labelled(torch.zeros(()), "seen"))

    def forward(self, x):
        self.seen += 1
        return x * self.factor


def kind(t):
    return f"{type(t).__name__} {getattr(t, 'label', None)!r} parameter {isinstance(t, nn.Parameter)}"


def attributes(**where):
    print({name: kind(t) for name, t in where.items()})


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), Scale(4), nn.Linear(4, 1))
scale = net[1]
attributes(parameter=scale.factor, buffer=scale.seen)
print([(name, type(p).__name__, tuple(p.shape)) for name, p in net.named_parameters()])
x = torch.randn(5, 3)
out = scale(net[0](x))
attributes(out=out, mean=out.mean(), item=out[0, 0], detached=scale.factor.detach(), data=scale.factor.data)
print("written with factors:", out.grad_fn.name(), out.requires_grad, scale.seen.item())

for make in (lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), lambda p: torch.optim.Adam(p, 0.1, foreach=False)):
    optimizer = make(net.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        loss = (net(x) - 1).square().mean()
        loss.backward()
        optimizer.step()
    print(type(optimizer).__name__, f"{loss.item():.5f}", type(loss).__name__, kind(scale.factor.grad))
    state = optimizer.state[scale.factor]
    print("   state", {k: (type(v).__name__, tuple(v.shape)) for k, v in sorted(state.items()) if hasattr(v, "shape")})

state = net.state_dict()
print({k: type(v).__name__ for k, v in state.items()})
other = nn.Sequential(nn.Linear(3, 4), Scale(4), nn.Linear(4, 1))
print(other.load_state_dict(state), torch.equal(other(x), net(x)), kind(other[1].factor))
twin = copy.deepcopy(scale)
attributes(copied=twin.factor, buffer=twin.seen)
twin.factor.data.zero_()
print("its own memory", scale.factor.abs().sum().item() > 0, twin.factor.sum().item())
double = copy.deepcopy(net).double()
print(double[1].factor.dtype, kind(double[1].factor), kind(double.half()[1].factor))

kept = Labelled(torch.arange(3.0), "kept", requires_grad=True)
again = pickle.loads(pickle.dumps(kept))
print("pickle", kind(again), again.tolist(), again.requires_grad)
memory = io.BytesIO()
torch.save({"t": kept, "p": nn.Parameter(Labelled(torch.ones(1), "p"))}, memory)
for safe in (True, False):
    memory.seek(0)
    try:
        print("load", {k: kind(v) for k, v in torch.load(memory, weights_only=safe).items()})
    except pickle.UnpicklingError as error:
        print("UnpicklingError:", next(line for line in str(error).splitlines() if "Labelled" in line).strip()[:90])
