"""Programs as modules again: the hierarchy, the graph of each module, the state and the results are those of PyTorch."""

import io

import pytest
import torch

import readtorch as rt
import readtorch.export

from .programs import module
from .test_graphs import exports
from .twins import copy_state, exported, same, to_torch

PROGRAMS = (
    "counter assigned_buffer several_buffers constants one_constant_twice tied called_twice keywords nested several_arguments plain_values "
    "writes_to_its_input returns_what_it_gets ignores_an_argument several_results dtypes named_tuples"
).split()


def described(unflattened):
    """Each module's name, what it is, what it was, and its graph."""
    for name, m in unflattened.named_modules(remove_duplicate=False):
        was = m.type_name() if hasattr(m, "type_name") else None
        yield name, type(m).__name__, was and was.replace("readtorch", "torch"), str(getattr(m, "graph", ""))


def compare(ours, theirs):
    assert list(described(ours)) == list(described(theirs))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for named in ("named_parameters", "named_buffers"):
        assert [n for n, _ in getattr(ours, named)()] == [n for n, _ in getattr(theirs, named)()]
    same(list(ours.state_dict().values()), list(theirs.state_dict().values()))


@pytest.mark.parametrize("name", "mlp mha moe wn".split())
def test_models(name):
    ours, arguments, theirs, arguments_of_torch, _ = exported(name)
    ours, theirs = rt.export.unflatten(ours), torch.export.unflatten(theirs)
    compare(ours, theirs)
    same(ours(*arguments), theirs(*arguments_of_torch))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    ours, theirs, *_, (args, kwargs), (args_of_torch, kwargs_of_torch) = exports(name)
    ours, theirs = rt.export.unflatten(ours), torch.export.unflatten(theirs)
    compare(ours, theirs)
    for _ in range(2):
        same(ours(*args, **kwargs), theirs(*args_of_torch, **kwargs_of_torch))
    same(list(ours.buffers()), list(theirs.buffers()))


def blocks(T):
    """One block is called twice in two ways, one gives a result that nobody reads, one never runs, two share a weight."""

    class Block(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = T.nn.Sequential(T.nn.Linear(3, 3), T.nn.ReLU())
            self.register_buffer("count", T.zeros(1))
            self.scale = T.full((3,), 2.0)

        def forward(self, x, twice=False):
            self.count.add_(1)
            return (self.net(self.net(x)) if twice else self.net(x)) * self.scale, x

    def forward(self, x):
        for block in self.blocks:
            x, y = block(x)
        return self.tied(self.blocks[0](x, twice=True)[0] + y), self.once(x)[1]

    several = T.nn.ModuleList([Block(), Block()])
    m = module(T, forward, blocks=several, once=Block(), unused=Block(), tied=T.nn.Linear(3, 3))
    m.tied.weight = m.blocks[1].net[0].weight
    return m


@pytest.fixture(scope="module")
def of_blocks():
    """(our program, torch's, our input, torch's, torch's module)"""
    rt.manual_seed(0)
    ours, theirs, x = blocks(rt), blocks(torch), rt.randn(2, 3)
    copy_state(ours, theirs)
    y = to_torch(x)
    return rt.export.export(ours, (x,)), torch.export.export(theirs, (y,)), x, y, theirs


@pytest.mark.parametrize("decomposed", [False, True], ids=["as exported", "decomposed"])
def test_modules_that_are_called_again(of_blocks, decomposed):
    ours, theirs, x, y, _ = of_blocks
    if decomposed:
        ours, theirs = ours.run_decompositions(), theirs.run_decompositions()
    ours, theirs = rt.export.unflatten(ours), torch.export.unflatten(theirs)
    compare(ours, theirs)
    assert {"blocks.0", "blocks.0@1"} <= {name for name, _ in ours.named_modules()}
    for _ in range(2):
        same(ours(x), theirs(y))
    same(list(ours.buffers()), list(theirs.buffers()))


def test_training(of_blocks):
    """The parameters are copies, and one tensor under two names is one parameter."""
    program, _, x, y, eager = of_blocks
    ours = rt.export.unflatten(program)
    same(list(program.state_dict.values()), [ours.state_dict()[name] for name in program.state_dict])
    assert ours.tied.weight is ours.get_parameter("blocks.1.net.0.weight") is not program.state_dict["tied.weight"]
    for T, m, a in ((rt, ours, x), (torch, eager, y)):
        optimizer = T.optim.SGD(m.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            m(a)[0].square().sum().backward()
            optimizer.step()
    trained, of_eager = ours.state_dict(), eager.state_dict()
    assert {name.replace("@1", "") for name in trained} == set(
        of_eager
    )  # a second call that is another has its tensors, too
    same([trained[name] for name in of_eager], list(of_eager.values()))
    assert not rt.equal(ours.tied.weight, program.state_dict["tied.weight"])


def test_programs_of_torch(of_blocks):
    """From a file, and captured by Dynamo, which notes other keys in the stacks."""
    *_, x, y, eager = of_blocks
    file = io.BytesIO()
    torch.export.save(torch.export.export(eager, (y,), strict=True), file)
    file.seek(0)
    program = rt.export.load(file)
    file.seek(0)
    ours, theirs = rt.export.unflatten(program), torch.export.unflatten(torch.export.load(file))
    compare(ours, theirs)
    same(ours(x), theirs(y))


def adapter_of(T):
    class Joined(T.export.FlatArgsAdapter):
        def __init__(self, count=2):
            self.count = count

        def adapt(self, target_spec, input_spec, input_args, metadata=None, obj=None):
            return [input_args[0], input_args[0]][: self.count]

    return Joined


def add(T):
    return module(T, lambda self, x, y: x + y)


def calls(T):
    """What each call returns, or its error."""
    a, b = T.ones(2), T.ones(3)
    program = T.export.export(add(T), (a,), {"y": a})
    plain, adapted = T.export.unflatten(program), T.export.unflatten(program, adapter_of(T)())
    short = T.export.unflatten(program, adapter_of(T)(1))
    for call in (
        lambda: plain(a, y=b),
        lambda: plain(a),
        lambda: plain(a, a),
        lambda: plain(a, z=a),
        lambda: adapted(a, a),
        lambda: adapted(b, b),
        lambda: short(a, a),
        lambda: T.export.FlatArgsAdapter(),
        lambda: plain.type_name(),
    ):
        try:
            yield str(call()).replace("readtorch", "torch")
        except Exception as error:
            yield type(error).__name__, str(error)


def test_arguments():
    ours, theirs = list(calls(rt)), list(calls(torch))
    assert ours == theirs


def test_sizes_that_may_change():
    programs = []
    for T in (rt, torch):
        sizes = {"x": {0: T.export.Dim("n", max=8)}, "y": {0: T.export.Dim("n", max=8)}}
        programs.append(T.export.unflatten(T.export.export(add(T), (T.ones(3), T.ones(3)), dynamic_shapes=sizes)))
    ours, theirs = programs
    compare(ours, theirs)
    same(ours(rt.ones(5), rt.ones(5)), theirs(torch.ones(5), torch.ones(5)))
    errors = []
    for T, m in zip((rt, torch), programs):
        with pytest.raises(RuntimeError) as error:
            m(T.ones(9), T.ones(9))
        errors.append(str(error.value))
    assert errors[0] == errors[1]
