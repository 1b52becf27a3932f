"""Inference tensors: what they lack, what may be done with them, and which version counters run."""

import torch
from torch import nn


def attempt(what, function):
    try:
        print(f"{what:<34}", function())
    except RuntimeError as error:
        print(f"{what:<34}", "RuntimeError:", str(error).split(".")[0].split(" Do not")[0])


def keys(t):
    known = ("CPU", "ADInplaceOrView", "AutogradCPU")
    return [name for name in known if torch._C._dispatch_keys(t).has(getattr(torch.DispatchKey, name))]


normal = torch.ones(3)
weight = torch.ones(3, requires_grad=True)
with torch.inference_mode():
    i = torch.ones(3)
    j = weight * 2
    view_of_normal = normal[1:]
    print(keys(i), keys(normal), keys(j), keys(view_of_normal))
    print([t.is_inference() for t in (i, j, normal, view_of_normal, i[1:], i + 1, normal + 1, normal.detach())])
    print(j.requires_grad, j.is_leaf, j.grad_fn, torch.is_inference_mode_enabled(), torch.is_grad_enabled())
    i.add_(1)
    normal.add_(1)
    view_of_normal.add_(1)
    attempt("version of an inference tensor", lambda: i._version)
    attempt("of a normal one", lambda: (normal._version, view_of_normal._version, view_of_normal._is_view()))
    with torch.inference_mode(False):
        print("inside out", torch.is_inference_mode_enabled(), keys(torch.ones(1)), (weight * 2).requires_grad)
        attempt("view outside", lambda: i[1:].is_inference())
    with torch.enable_grad():
        attempt("enable_grad does not help", lambda: (weight * 2).requires_grad)

print("outside")
attempt("reading", lambda: (i + 1).tolist())
attempt("a view of it", lambda: (i[1:].is_inference(), i[1:]._is_view(), keys(i[1:])))
attempt("writing to it", lambda: i.add_(1))
attempt("writing to a view of it", lambda: i[1:].zero_())
attempt("writing it into another", lambda: torch.zeros(3).copy_(i).tolist())
attempt("out=", lambda: torch.add(normal, 1, out=i))
attempt("requires_grad_", lambda: i.requires_grad_())
attempt("requires_grad of a result", lambda: (i * weight).requires_grad)
attempt("saved for backward", lambda: (weight * i).sum().backward())
attempt("not saved", lambda: (weight + i).sum().backward())
attempt("a copy", lambda: (weight * i.clone()).sum().backward())
print(weight.grad.tolist(), i.clone().is_inference(), i.detach().is_inference(), keys(i.clone()))
attempt("view made inside, written outside", lambda: view_of_normal.mul_(2).tolist())
weightless = weight.detach()
with torch.inference_mode():
    inside = weight[1:]
attempt("of a leaf that requires grad", lambda: (inside.requires_grad, inside.is_inference(), inside._is_view()))
attempt("and written outside", lambda: inside.mul_(2))
attempt("swap of data", lambda: setattr(normal, "data", i))

net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Flatten(0))
with torch.inference_mode():
    made = nn.Linear(2, 2)
    out = net(torch.ones(4, 2))
attempt("module made inside", lambda: (made.weight.is_inference(), made.weight.requires_grad))
attempt("trains outside?", lambda: made(torch.ones(1, 2)).sum().backward())
attempt("running statistics", lambda: (net[1].running_mean._version, net[1].num_batches_tracked.item()))
attempt("trains still", lambda: (net(torch.ones(4, 2)).sum().backward(), net[0].weight.grad.shape)[1])


@torch.inference_mode()
def decorated(x):
    return x * 2


print(decorated(weight).is_inference(), decorated.__name__, torch.is_inference(out), out.requires_grad)
