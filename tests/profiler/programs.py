"""Programs that are profiled on both sides, and how the trees of their events are compared."""

import torch

import readtorch as rt

# Calls that PyTorch makes and readtorch does not. An operator's kernel in readtorch calls no other operators, so what is inside a
# call that has nothing inside here is not compared; these stand beside calls that are.
NOT_DISPATCHED = {
    "aten::lift_fresh": "torch.tensor makes its tensor in one go",
    "aten::detach_": "the same",
    "aten::to": "a tensor that has the dtype already is returned by the binding",
    "aten::item": "the binding reads the number itself",
    "aten::detach": "AccumulateGrad takes the gradient without an operator",
    "aten::zero_": "a kernel of its own fills what it makes",
    "aten::view": "sum_to_size gives the sum its shape",
    "aten::empty_strided": "a kernel allocates by itself",
    "aten::empty": "a kernel allocates by itself",
}
# What has another name in PyTorch: sums of gradients that meet are written into the first one there.
RENAMED = {"aten::sum_to_size": "aten::sum", "aten::_to_copy": "aten::to", "aten::add": "aten::add_"}
# What calls other operators than in PyTorch: `flatten` calls `reshape`, which calls `view`; the loss calls `_log_softmax` directly.
# Some operators write in place what the functional one gives.
COMPOSED_OTHERWISE = {"aten::flatten", "aten::cross_entropy_loss", "aten::lerp_", "aten::addcmul_", "aten::addcdiv_"}


def collected(T, program, **settings):
    """The EventList of `program()` under T's profiler."""
    activities = [T.profiler.ProfilerActivity.CPU]
    with T.profiler.profile(activities=activities, acc_events=True, **settings) as prof:
        program()
    return prof


def roots(events):
    return [event for event in events if event.cpu_parent is None and event.name != "[memory]"]


def children(event):
    return [child for child in event.cpu_children if child.name != "[memory]"]


def assert_same_tree(ours, theirs, inside="the program", facts=()):
    """Our events are PyTorch's: the same names in the same order and nesting, but for what NOT_DISPATCHED says.

    facts: functions of an event that must give the same on both sides.
    """
    waiting = list(ours)
    for their in theirs:
        our = waiting[0] if waiting else None
        if our is None or their.name not in (our.name, RENAMED.get(our.name)):
            assert their.name in NOT_DISPATCHED, f"{their.name} inside {inside}: next here is {our and our.name}"
            continue
        waiting.pop(0)
        for fact in facts:
            assert fact(our) == fact(their), (our.name, inside)
        if children(our) and our.name not in COMPOSED_OTHERWISE:
            assert_same_tree(children(our), children(their), f"{inside}, {our.name}", facts)
    assert not waiting, f"{[event.name for event in waiting]} inside {inside}, not there in PyTorch"


class Both:
    """The same weights and inputs on both sides."""

    def __init__(self, T):
        self.T = T
        T.manual_seed(0)
        self.x = T.randn(4, 3)
        self.w = T.randn(3, 5, requires_grad=True)
        self.image = T.randn(2, 1, 6, 6)
        self.labels = T.tensor([0, 2])
        self.linear = T.nn.Linear(3, 2)
        nn = T.nn
        self.net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 3))
        self.sgd = T.optim.SGD(self.linear.parameters(), 0.1, momentum=0.9)
        self.adam = T.optim.Adam(self.net.parameters(), foreach=False)


def add(b):
    b.x + b.x


def numbers(b):
    b.x * b.x - b.x


def products(b):
    b.x @ b.w
    b.T.mm(b.x, b.w)
    b.T.addmm(b.w[0], b.x, b.w)
    b.T.bmm(b.x[None], b.w[None])


def views(b):
    b.x.view(12).reshape(3, 4).transpose(0, 1)
    b.x.unsqueeze(0).squeeze(0).permute(1, 0).expand(3, 4)
    b.x[1:]
    b.x[:, 0]


def joins(b):
    b.T.cat([b.x, b.x])
    b.T.stack([b.x, b.x])


def unary(b):
    b.x.exp().relu().sigmoid().tanh().sqrt().neg()


def reductions(b):
    b.x.sum(), b.x.sum(1), b.x.mean(), b.x.amax(0), b.x.argmax()


def factories(b):
    b.T.zeros(3), b.T.ones(3), b.T.empty(2), b.T.full((2,), 1.5), b.T.zeros_like(b.x)


def softmax(b):
    b.T.softmax(b.x, 1)
    b.T.nn.functional.log_softmax(b.x, 1)


def in_place(b):
    x = b.x.clone()
    x.add_(x)
    x.mul_(x)


def linear(b):
    b.linear(b.x)


def simple_backward(b):
    (b.w * b.w).sum().backward()


def two_roots(b):
    y = b.w * b.w
    b.T.autograd.backward([y.sum(), y.sum()])


def gradients_of_inputs(b):
    b.T.autograd.grad((b.x @ b.w).sum(), b.w)


def training_step(b):
    b.sgd.zero_grad()
    b.linear(b.x).sum().backward()
    b.sgd.step()


def network_step(b):
    b.adam.zero_grad()
    b.T.nn.functional.cross_entropy(b.net(b.image), b.labels).backward()
    b.adam.step()


def named(b):
    record = b.T.profiler.record_function
    with record("outer"):
        b.x + b.x
        with record("inner"):
            b.x.exp()

    @record("decorated")
    def function():
        return b.x * b.x

    function()


def custom_function(b):
    class Triple(b.T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x + x + x

        @staticmethod
        def backward(ctx, grad):
            return grad + grad + grad

    Triple.apply(b.w).sum().backward()


def exception(b):
    with b.T.profiler.record_function("fails"):
        try:
            b.x + b.T.ones(7)
        except RuntimeError:
            pass
        b.x.exp()


def data_loader(b):
    data = b.T.utils.data.TensorDataset(b.x)
    for (batch,) in b.T.utils.data.DataLoader(data, batch_size=2):
        batch.exp()


def without_grad(b):
    with b.T.no_grad():
        b.linear(b.x)
        b.w.exp()


PROGRAMS = [
    *(add, numbers, products, views, joins, unary, reductions, factories, softmax, in_place, linear, simple_backward),
    *(two_roots, gradients_of_inputs, training_step, network_step, named, custom_function, exception, data_loader),
    without_grad,
]


def on_both_sides(program, **settings):
    """(our profiler, PyTorch's) after `program`, which has run once before."""
    return tuple([_warm(T, program, settings) for T in (rt, torch)])


def _warm(T, program, settings):
    b = Both(T)
    program(b)
    return collected(T, lambda: program(b), **settings)
