"""compile: when a call runs as a graph, when it is captured anew, and when it runs as it is written."""

import copy
import io
import logging
import operator
import pickle
import random
import threading

import pytest
import torch

import readtorch
from readtorch import _dynamo, nn
from readtorch._dynamo.eval_frame import _compiling as compiling
from readtorch._dynamo.exc import FailOnRecompileLimitHit, InvalidBackend, Unsupported
from readtorch._inductor.compile_fx import recording
from tests.jit.fused_programs import chain
from tests.reference import assert_close, to_torch


def graphs(compiled):
    return _dynamo.report(compiled).graph_count


def reasons(compiled):
    return [each.reason.partition("\n")[0] for each in _dynamo.report(compiled).break_reasons]


def pointwise(x, y):
    return readtorch.tanh((x * y + 1.0) * 0.5 - y) * readtorch.sigmoid(x) + readtorch.exp(-y)


def test_results_and_gradients_are_those_of_the_function():
    compiled = readtorch.compile(pointwise)
    for shape in [(7,), (7,), (2, 3), (5,), (0,), ()]:
        values = [torch.randn(shape) for _ in range(2)]
        x, y = (readtorch.tensor(v.tolist()).reshape(shape).requires_grad_() for v in values)
        for value, tensor in zip(values, (x, y)):
            value.copy_(to_torch(tensor.detach())).requires_grad_()
        expected = chain(torch, *values)
        result = compiled(x, y)
        assert_close(result.detach(), expected.detach(), rtol=2e-5, atol=2e-6)
        theirs = torch.autograd.grad(expected.sum(), values)
        mine = readtorch.autograd.grad(result.sum(), (x, y))
        for a, b in zip(mine, theirs):
            assert_close(a, b, rtol=1e-4, atol=1e-5)
    assert reasons(compiled) == []
    assert (
        graphs(compiled) == 5
    )  # one dimension, two and none; sizes that have changed are left open, but not to nothing


def test_the_first_call_has_its_effects_once():

    def function(x):
        x.add_(1)
        return x * 2 + 1

    compiled = readtorch.compile(function)
    x = readtorch.zeros(3)
    assert compiled(x).tolist() == [3, 3, 3] and x.tolist() == [1, 1, 1]
    assert compiled(x).tolist() == [5, 5, 5] and x.tolist() == [2, 2, 2]
    assert graphs(compiled) == 1


def test_python_values_are_guarded():
    @readtorch.compile
    def power(x, n=2, *, scale=1.0, negate=False):
        for _ in range(n):
            x = x * scale
        return {"x": -x if negate else x, "n": [n, x.sum()]}

    x = readtorch.ones(3)
    assert power(x)["x"].tolist() == [1, 1, 1]
    assert power(x, 3, scale=2.0)["x"].tolist() == [8, 8, 8]
    assert power(x, 3, scale=2.0, negate=True)["x"].tolist() == [-8, -8, -8]
    assert power(x, 3, scale=3.0)["x"].tolist() == [27, 27, 27]
    for _ in range(2):
        result = power(x, 3, scale=2.0)
        assert result["n"][0] == 3 and result["n"][1].item() == 24
    assert graphs(power) == 3  # `scale` has become an input; `n` decides how long the loop is


SCALE = 2.0


def test_a_gradient_has_no_gradient():
    def error_of(lib, **options):
        compiled, x = lib.compile(lambda x, y: lib.exp(x) * y * y, **options), lib.ones(3, requires_grad=True)
        (first,) = lib.autograd.grad(compiled(x, x * 1.0).sum(), x, create_graph=True)
        with pytest.raises(RuntimeError) as failure:
            lib.autograd.grad((first * first).sum(), x)
        return str(failure.value)

    assert error_of(readtorch) == error_of(torch, backend="aot_eager")


def test_a_list_is_not_taken_for_its_elements():
    def program(xs, scale=2.0):
        return xs[0] * scale + xs[1]

    compiled = readtorch.compile(program)
    t = readtorch.rand(2, 3)
    for arguments in [(t,), ([t, t + 1],), (t, 3.0), ([t + 1, t], 3.0), ((t, t),), (t,)]:
        for _ in range(2):
            assert_close(compiled(*arguments), to_torch(program(*arguments)))
    assert_close(compiled(xs=t, scale=1.0), to_torch(program(t, 1.0)))


def test_globals_and_closures_are_guarded():
    global SCALE
    shift = 1.0

    def function(x):
        return x * SCALE + shift

    compiled = readtorch.compile(function)
    x = readtorch.ones(2)
    assert compiled(x).tolist() == compiled(x).tolist() == [3, 3]
    SCALE = 5.0
    try:
        assert compiled(x).tolist() == [6, 6]
    finally:
        SCALE = 2.0
    shift = 4.0
    assert compiled(x).tolist() == [6, 6]
    assert graphs(compiled) == 3


def test_dtype_grad_and_grad_mode_are_guarded():
    compiled = readtorch.compile(pointwise)
    x, y = readtorch.randn(4), readtorch.randn(4)
    assert compiled(x, y).dtype is readtorch.float32 and graphs(compiled) == 1
    assert compiled(x.double(), y.double()).dtype is readtorch.float64 and graphs(compiled) == 2
    assert compiled(x.requires_grad_(), y).requires_grad and graphs(compiled) == 3
    with readtorch.no_grad():
        assert not compiled(x, y).requires_grad and graphs(compiled) == 4
    assert compiled(x, y).requires_grad and graphs(compiled) == 4


def test_sizes_that_the_function_read_are_guarded():
    @readtorch.compile
    def mean(x):
        return x.sum() / x.shape[0]

    assert mean(readtorch.ones(4)).item() == mean(readtorch.ones(8)).item() == mean(readtorch.ones(4)).item() == 1
    assert graphs(mean) == 2  # the second serves every size
    static = readtorch.compile(pointwise, dynamic=False)
    for n in (2, 3, 2):
        static(readtorch.ones(n), readtorch.ones(n))
    assert graphs(static) == 2


# ------------------------------------------------------------------------------------------- why not compiled


def by_value(x):
    return x * 2 if x.sum() > 0 else x - 1


def by_item(x):
    return x * float(x[0])


def prints(x):
    print("called")
    return x + 1


COUNT = 0


def counts(x):
    global COUNT
    COUNT += 1
    return x + COUNT


rt_optimizer = readtorch.optim.SGD([readtorch.ones(1)], lr=0.5)


@readtorch.compiler.disable
def excluded(x):
    return x + 1


def calls_excluded(x):
    return excluded(x) * 2


@pytest.mark.parametrize(
    "function, why",
    [
        (by_value, "Data-dependent branching"),
        (by_item, "Failed to trace builtin operator"),
        (prints, "Attempted to call function marked as skipped"),
        (calls_excluded, "Skip calling `torch.compiler.disable()`d function"),
    ],
)
def test_what_cannot_be_captured_breaks_the_graph_and_says_why(function, why, capsys):
    compiled, found = readtorch.compile(function), []
    for f in (compiled, function):
        values = [f(readtorch.tensor([v, 1.0])).tolist() for v in (3.0, -3.0, 2.0)]
        found.append([*values, capsys.readouterr().out])
    assert found[0] == found[1]
    assert any(reason.startswith(why) for reason in reasons(compiled)), reasons(compiled)
    with pytest.raises(Unsupported):
        readtorch.compile(function, fullgraph=True)(readtorch.tensor([3.0, 1.0]))


@pytest.mark.parametrize(
    "function", [counts, lambda x: ({1, 2}, x + 1)[0], lambda x: rt_optimizer.param_groups[0]["lr"] * x]
)
def test_effects_sets_and_settings_are_captured(function):
    global COUNT
    found = []
    for f in (readtorch.compile(function, fullgraph=True), function):
        COUNT = 0
        values = [f(readtorch.tensor([v, 1.0])) for v in (3.0, -3.0, 2.0)]
        found.append([v.tolist() if isinstance(v, readtorch.Tensor) else v for v in values])
    assert found[0] == found[1]


def test_an_exponent_that_is_true():
    compiled = readtorch.compile(lambda x: (x * 1) ** True)
    assert compiled(readtorch.tensor([2.0, 3.0])).tolist() == [2, 3]


@pytest.mark.parametrize(
    "function", [lambda x: no_grad_inside(x), lambda x: x * random.randint(1, 1)], ids=["no_grad", "random"]
)
def test_graphs_that_are_not_traced_run_operator_by_operator(function):
    compiled = readtorch.compile(function)
    with recording() as compiled_graphs:
        for _ in range(3):
            assert compiled(readtorch.ones(2)).tolist() == function(readtorch.ones(2)).tolist()
    assert compiled_graphs == [] and graphs(compiled) > 0


@readtorch.no_grad()
def no_grad_inside(x):
    return x * 2 + 1


def test_what_does_not_depend_on_a_parameter_has_no_history():
    """Though one kernel computes both."""

    def function(x, y):
        return x * y + 1, (y + 1) * 2, (x > 0).float() * y

    compiled, x = readtorch.compile(function), readtorch.ones(3, requires_grad=True)
    for _ in range(3):
        y = readtorch.rand(3)
        found, expected = compiled(x, y), function(x, y)
        assert [t.requires_grad for t in found] == [t.requires_grad for t in expected] == [True, False, False]
        assert_close(found[1], to_torch(expected[1]))


def test_numbers_that_are_computed_from_sizes_stay_numbers():
    compiled = readtorch.compile(lambda x, n: (x + 1, (x + 1).shape[0] * n))
    for size, n in ((3, 1), (4, 2), (5, 3), (5, 4), (7, 4)):
        assert compiled(readtorch.ones(size), n)[1] == size * n


def test_a_number_that_changes_is_an_input_of_the_kernel():
    compiled = readtorch.compile(lambda x, k: readtorch.tanh(x * k + 1) * 0.5)
    with recording() as compiled_graphs:
        for k in (2.0, 3.0, 4.0, 4.0, -1.0):
            x = readtorch.rand(5)
            assert_close(compiled(x, k), to_torch(readtorch.tanh(x * k + 1) * 0.5), rtol=2e-6, atol=1e-6)
    assert graphs(compiled) == len(compiled_graphs) == 2


def test_sizes_are_compiled_for_when_they_come_again():
    compiled = readtorch.compile(lambda x: x * 2, dynamic=True)
    with recording() as compiled_graphs:
        for size in (3, 4, 5, 4, 4):
            assert compiled(readtorch.ones(size)).tolist() == [2] * size
    assert graphs(compiled) == len(compiled_graphs) == 1


def test_a_written_input_that_shares_its_memory():
    """The write shows in the other: each call looks at the memory that it is given."""

    def program(x, y):
        x.add_(1)
        return y * 2

    compiled = readtorch.compile(program)
    for _ in range(2):
        x = readtorch.zeros(4)
        assert compiled(x[:2], readtorch.ones(2)).tolist() == [2, 2]
        assert compiled(x[:2], x[1:3]).tolist() == [4, 0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x * 2 + 1).relu().sum(0) / x.shape[0],
        lambda x: (x.view(len(x), 2) + 1) * 2,
        lambda x: x.flip(0) * 2 + 1,
    ],
)
def test_sizes_that_are_left_open(function):
    compiled = readtorch.compile(function)
    for size in (3, 4, 5, 4, 7, 1, 0):
        x = readtorch.rand(size, 2)
        assert_close(compiled(x), to_torch(function(x)), rtol=2e-6, atol=1e-6)
    assert graphs(compiled) <= 4


def test_errors_of_the_function_are_raised():
    compiled = readtorch.compile(pointwise)
    with pytest.raises(RuntimeError, match="The size of tensor a"):
        compiled(readtorch.ones(3), readtorch.ones(4))
    assert compiled(readtorch.ones(3), readtorch.ones(3)).shape == (3,)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        compiled(readtorch.ones(3))


def test_the_recompile_limit(caplog):
    compiled = readtorch.compile(lambda x, n: x * n, dynamic=False)
    with caplog.at_level(logging.WARNING):
        for n in range(12):
            assert compiled(readtorch.ones(2), n).tolist() == [n, n]
    assert graphs(compiled) == _dynamo.config.recompile_limit == torch._dynamo.config.recompile_limit
    assert "hit config.recompile_limit (8)" in caplog.text and "last reason: n == 7" in caplog.text
    strict = readtorch.compile(lambda x, n: x * n, fullgraph=True, dynamic=False, recompile_limit=2)
    strict(readtorch.ones(2), 0), strict(readtorch.ones(2), 1)
    with pytest.raises(FailOnRecompileLimitHit):
        strict(readtorch.ones(2), 2)


# ---------------------------------------------------------------------------------------------------- modules


def network():
    readtorch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(0.5), nn.BatchNorm1d(8), nn.Linear(8, 2))


def test_module_compile_is_in_place_and_leaves_the_module_what_it_is():
    net, plain = network(), network()
    net.compile()
    x = readtorch.randn(5, 4)
    for mode in (False, True, False, True):
        net.train(mode), plain.train(mode)
        for _ in range(2):
            readtorch.manual_seed(7)
            a = net(x)
            readtorch.manual_seed(7)
            b = plain(x)
            assert_close(a.detach(), to_torch(b.detach()), rtol=2e-5, atol=2e-6)
    a.sum().backward(), b.sum().backward()
    for p, q in zip(net.parameters(), plain.parameters()):
        assert_close(p.grad, to_torch(q.grad), rtol=1e-4, atol=1e-5)
    assert list(net.state_dict()) == list(plain.state_dict())
    assert_close(net[3].running_mean, to_torch(plain[3].running_mean))
    assert graphs(net._compiled_call_impl) == 2 and reasons(net._compiled_call_impl) == []


def test_a_compiled_call_is_not_pickled():
    net = network().eval()
    net.compile()
    net(readtorch.ones(2, 4))
    for again in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net)):
        assert again._compiled_call_impl is None
        assert_close(again(readtorch.ones(2, 4)).detach(), to_torch(net(readtorch.ones(2, 4)).detach()))
    readtorch.save(net.state_dict(), io.BytesIO())


def test_a_replaced_parameter_is_noticed():
    net = nn.Linear(2, 1, bias=False)
    net.compile()
    x = readtorch.ones(1, 2)
    net(x), net(x)
    with readtorch.no_grad():
        net.weight.fill_(3)
    assert net(x).item() == 6  # written in place: the same graph
    assert graphs(net._compiled_call_impl) == 1
    net.weight = nn.Parameter(readtorch.full((1, 2), 5.0))
    assert net(x).item() == 10
    assert graphs(net._compiled_call_impl) == 1  # an input of the graph like the other, and like it


def test_hooks_run():
    net = nn.Linear(2, 1)
    net.compile()
    net(readtorch.ones(1, 2)), net(readtorch.ones(1, 2))
    seen = []
    net.register_forward_hook(lambda module, args, output: seen.append(1))
    net(readtorch.ones(1, 2)), net(readtorch.ones(1, 2))
    assert len(seen) == 2 and reasons(net._compiled_call_impl) == []


def test_optimized_module():
    net = network().eval()
    compiled = readtorch.compile(net)
    x = readtorch.randn(3, 4)
    for _ in range(2):
        assert_close(compiled(x).detach(), to_torch(net(x).detach()), rtol=2e-5, atol=2e-6)
    reference = torch.compile(torch.nn.Sequential(torch.nn.Linear(2, 2)))
    small = readtorch.compile(nn.Sequential(nn.Linear(2, 2)))
    assert list(small.state_dict()) == list(reference.state_dict())
    assert compiled[0] is net[0] if hasattr(type(compiled), "__getitem__") else True
    assert len(compiled) == 5 and compiled._orig_mod is net


@pytest.mark.parametrize(
    "made, shape",
    [
        (lambda: nn.LSTM(8, 3), (2, 4, 8)),
        (lambda: nn.GRU(8, 3, 2, bidirectional=True), (2, 4, 8)),
        (lambda: nn.Conv2d(4, 2, 3, padding=1, padding_mode="reflect"), (2, 4, 8, 8)),
        (lambda: nn.Sequential(nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()), (2, 4, 8, 8)),
        (lambda: nn.GroupNorm(2, 4), (2, 4, 8)),
        (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 2), (2, 4, 8)),
        (lambda: nn.Upsample(scale_factor=2), (2, 4, 8)),
        (lambda: nn.Sequential(nn.PReLU(), nn.GLU(), nn.Softmax(-1), nn.LogSoftmax(-1)), (2, 4, 8)),
    ],
)
def test_layers_are_compiled(made, shape):
    """Every field that a layer's code may read has a guard: none is of a kind that is not known."""
    net, x = made(), readtorch.rand(shape)
    compiled = readtorch.compile(net)
    for _ in range(3):
        found, expected = compiled(x), net(x)
    for a, b in zip(*[[r] if isinstance(r, readtorch.Tensor) else [r[0]] for r in (found, expected)]):
        assert_close(a.detach(), to_torch(b.detach()), rtol=2e-5, atol=2e-6)
    told = _dynamo.report(compiled.forward)
    assert (told.graph_count, told.break_reasons) == (1, [])


def test_threads_compile_at_once():
    """Each with its own grad mode, from cold."""
    compiled, found = readtorch.compile(lambda x: readtorch.tanh(x) * 2.125 + 1), {}

    def run(number):
        with readtorch.no_grad() if number % 2 else readtorch.enable_grad():
            found[number] = [compiled(readtorch.ones(2, requires_grad=True)).requires_grad for _ in range(10)]

    threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [number % 2 == 0] * 10 for number in range(6)}


def test_a_training_run_is_the_same():
    losses = []
    for compiled in (False, True):
        net = network()
        if compiled:
            net.compile()
        optimizer = readtorch.optim.SGD(net.parameters(), lr=0.1)
        readtorch.manual_seed(2)
        x, y = readtorch.randn(16, 4), readtorch.randn(16, 2)
        for _ in range(6):
            loss = nn.functional.mse_loss(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append(loss.detach())
    assert_close(losses[0], to_torch(losses[1]), rtol=1e-4, atol=1e-5)


# --------------------------------------------------------------------------------------------- the rest of it


def test_options():
    def function(x):
        return x * 2 + 1

    with pytest.raises(InvalidBackend, match="Invalid backend: 'nobody'"):
        readtorch.compile(function, backend="nobody")
    with pytest.raises(RuntimeError, match="Either mode or options can be specified"):
        readtorch.compile(function, mode="default", options={"a": 1})
    messages = []
    for library in (torch, readtorch):
        with pytest.raises(RuntimeError) as failure:
            library.compile(function, mode="nothing")
        messages.append(str(failure.value))
    assert messages[0] == messages[1]
    assert readtorch.compile(function, mode="nothing", backend="eager")(readtorch.ones(1)).item() == 3
    assert readtorch.compile(function, mode="max-autotune")(readtorch.ones(1)).item() == 3
    assert readtorch.compile(function, disable=True)(readtorch.ones(1)).item() == 3
    assert readtorch.compile(backend="eager")(function)(readtorch.ones(1)).item() == 3
    seen = []

    def backend(module, inputs):
        seen.append([n.target for n in module.graph.nodes if n.op == "call_function"])
        return lambda x: x * 100

    own = readtorch.compile(function, backend=backend)
    assert own(readtorch.ones(1)).item() == own(readtorch.ones(1)).item() == 100
    assert seen == [[operator.mul, operator.add]]


def test_is_compiling():
    def function(lib, x):
        return x + lib.compiler.is_compiling()

    for lib in (torch, readtorch):
        f = lib.compile(lambda x, lib=lib: function(lib, x), **({"backend": "eager"} if lib is torch else {}))
        assert [f(lib.ones(1)).item() for _ in range(2)] == [2, 2] and function(lib, lib.ones(1)).item() == 1


def test_nothing_needs_to_be_returned():
    """An update in place is a graph, too, also where a graph is demanded."""

    def step(p, g):
        p.add_(g, alpha=-0.5)

    for lib, options in ((torch, {"backend": "eager"}), (readtorch, {})):
        compiled, p = lib.compile(step, fullgraph=True, **options), lib.ones(3)
        assert [compiled(p, lib.ones(3)) for _ in range(4)] == [None] * 4
        assert p.tolist() == [-1, -1, -1]
        assert lib.compile(lambda x: 3, fullgraph=True, **options)(lib.ones(1)) == 3
    compiled = readtorch.compile(step, fullgraph=True)
    for _ in range(2):
        compiled(p, readtorch.ones(3))
    assert graphs(compiled) == 1


def test_each_thread_has_its_own_compiling():
    """One capture begins while another is under way, and ends after it: neither sees the other, and nothing is left."""
    first_is_in, second_is_in, first_is_done = threading.Event(), threading.Event(), threading.Event()
    seen = []

    def second():
        assert first_is_in.wait(60)
        seen.append(readtorch.compiler.is_compiling())
        with compiling():
            second_is_in.set()
            assert first_is_done.wait(60)
        seen.append(readtorch.compiler.is_compiling())

    thread = threading.Thread(target=second)
    thread.start()
    with compiling():
        first_is_in.set()
        assert second_is_in.wait(60)
    first_is_done.set()
    thread.join()
    assert seen == [False, False] and not readtorch.compiler.is_compiling()


def test_switched_off_by_the_environment(monkeypatch):
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    for lib in (torch, readtorch):
        seen = []
        lib.compile(lambda x: (seen.append(lib.compiler.is_compiling()), x * 2)[1], fullgraph=True)(lib.ones(1))
        assert seen == [False]
        net = lib.nn.Linear(1, 1)
        assert lib.compile(net) is net
        net.compile()
        assert net(lib.ones(1)).shape == (1,)


def test_a_compiled_function_inside_another_is_part_of_its_graph():
    inner = readtorch.compile(lambda x: x * 2)
    outer = readtorch.compile(lambda x: inner(x) + 1)
    assert outer(readtorch.ones(2)).tolist() == outer(readtorch.ones(2)).tolist() == [3, 3]
    assert graphs(outer) == 1 and graphs(inner) == 0


def test_explain():
    told = _dynamo.explain(by_value)(readtorch.ones(2))
    assert told.graph_count == 2 and told.graph_break_count == 1
    assert told.break_reasons[0].reason.startswith("Data-dependent branching")
    told = _dynamo.explain(pointwise)(readtorch.ones(2), readtorch.ones(2))
    assert told.graph_count == 1 and told.ops_per_graph[0].count(operator.mul) == 3
    assert any("check_tensor(L['x'], torch.float32" in guard for guard in told.out_guards) and "Graph Count: 1" in str(
        told
    )


def test_reset():
    compiled = readtorch.compile(by_value)
    compiled(readtorch.ones(2))
    assert graphs(compiled) > 0
    readtorch.compiler.reset()
    assert graphs(compiled) == 0 and reasons(compiled) == []


def test_a_removed_hook_of_all_modules_is_no_hook():
    """Its mark "with keyword arguments" stays, here as in PyTorch."""
    register = nn.modules.module.register_module_forward_hook
    register(lambda module, args, kwargs, output: None, with_kwargs=True).remove()
    net, x = nn.Linear(2, 2), readtorch.ones(1, 2)
    compiled = readtorch.compile(net)
    assert compiled(x).equal(net(x)) and compiled(x).equal(net(x))
    found = _dynamo.report(compiled.forward)
    assert (found.graph_count, found.break_reasons) == (1, [])
