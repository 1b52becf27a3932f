"""Capture by bytecode: whatever changes between two calls, the result is that of the function as it is written."""

import copy
import json
import logging
import sys

import pytest
import torch

import readtorch
from readtorch import _dynamo, nn
from readtorch._dynamo import eval_frame, trace_rules, utils
from readtorch._dynamo.exc import FailOnRecompileLimitHit, Unsupported
from readtorch._higher_order_ops.utils import _compiled
from tests.dynamo import (
    changing_programs,
    comprehension_programs,
    control_fuzz,
    more_programs,
    page,
    shape_fuzz,
    table,
    world_fuzz,
)
from tests.dynamo.fuzz import differs
from tests.dynamo.known_differences import DIFFERENCES
from tests.dynamo.models import MODELS, run_of
from tests.dynamo.programs import PROGRAMS
from tests.jit import mutations
from tests.jit.test_mutations import assert_same, plain

# Shares of programs: graphs and recompilations as many as PyTorch's, where its results are those of the program as it is
# written; fullgraph where PyTorch's passes.
SAME_COUNTS, SAME_FULLGRAPH = 0.9, 0.95


@pytest.fixture(autouse=True)
def quiet(caplog):
    caplog.set_level(logging.CRITICAL, logger="readtorch._dynamo")


def by_bytecode(function, **options):
    return eval_frame.optimize_call(function, **{"backend": "eager"} | options)


def told(compiled):
    return eval_frame.report(compiled)


# -------------------------------------------------------------------------------------------- the mutation table


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_changes_is_noticed(name):
    assert table.compiled_here(PROGRAMS[name])[0] == table.as_written(PROGRAMS[name])


@pytest.mark.parametrize("name", changing_programs.PROGRAMS)
def test_what_few_programs_change(name):
    program = changing_programs.PROGRAMS[name]
    assert table.compiled_here(program)[0] == table.as_written(program)


@pytest.mark.parametrize("name", comprehension_programs.PROGRAMS)
def test_comprehensions_and_what_versions_of_python_write_differently(name):
    program = comprehension_programs.PROGRAMS[name]
    assert table.compiled_here(program)[0] == table.as_written(program) == table.as_written(program, torch)


OTHERWISE_WITH_INDUCTOR = {
    "backward_twice": "gradients that Inductor has compiled have none, in PyTorch neither",
    "strides_of_one_element": "Inductor's stride of a dimension of one element is PyTorch's, an eager quotient's is not",
}


@pytest.mark.parametrize("name", more_programs.PROGRAMS)
def test_more_programs(name):
    program = more_programs.PROGRAMS[name]

    def run(lib, compile, out):
        program(compile, out)

    expected = table.play(run, readtorch, lambda f: f)
    assert table.play(run, readtorch, by_bytecode) == expected
    if name not in OTHERWISE_WITH_INDUCTOR:
        assert table.play(run, readtorch, eval_frame.optimize_call) == expected


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_changes_is_noticed_with_inductor_behind_it(name):
    assert table.play(PROGRAMS[name], readtorch, eval_frame.optimize_call) == table.as_written(PROGRAMS[name])


@pytest.mark.parametrize("name", mutations.PROGRAMS)
def test_programs_without_effects(name):
    def compile(function):
        return (eval_frame.OptimizedModule if isinstance(function, nn.Module) else by_bytecode)(function)

    program = mutations.PROGRAMS[name]
    assert_same(plain(program(readtorch, compile)), plain(program(readtorch, lambda f: f)))


def test_it_compiles_where_pytorch_does():
    """And where it does not, the list of differences says why."""
    rows = page.rows()
    assert len(rows) >= 120
    judged = [(ours, theirs) for _, theirs, _, ours, _ in rows if theirs["equal"]]
    same = [all(ours[key] == theirs[key] for key in page.COUNTED) for ours, theirs in judged]
    assert sum(same) >= SAME_COUNTS * len(same)
    whole = [passes for _, theirs, _, _, passes in rows if theirs["fullgraph"]]
    assert sum(whole) >= SAME_FULLGRAPH * len(whole)
    assert {name for name, theirs, _, ours, passes in rows if page.differs(theirs, ours, passes)} == set(DIFFERENCES)


@pytest.mark.parametrize("name", ["closure_dict", "print_between", "argument_attribute"])
def test_the_record_is_what_pytorch_does(name):
    recorded = json.loads(table.RECORD.read_text(encoding="utf8"))
    _, counts = table.compiled_by_torch(PROGRAMS[name])
    assert counts.items() <= recorded[name].items()


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_programs(first):
    assert [seed for seed in range(first, first + 20) if differs(seed)] == []


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_changes_of_a_world(first):
    assert [seed for seed in range(first, first + 20) if world_fuzz.differs(seed)] == []


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_random_sizes(first):
    assert [seed for seed in range(first, first + 20) if shape_fuzz.differs(seed)] == []


def test_random_control_flow():
    """Over tensors, forward and backward."""
    assert [seed for seed in range(20) if control_fuzz.differs(seed)] == []


# --------------------------------------------------------------------------------------------- models and gradients


class Attention(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.register_buffer("mask", readtorch.tril(readtorch.ones(8, 8)).view(1, 1, 8, 8))

    def forward(self, x):
        b, n, d = x.size()
        parts = self.qkv(x).split(d, dim=2)
        q, k, v = (t.view(b, n, self.heads, d // self.heads).transpose(1, 2) for t in parts)
        scores = (q @ k.transpose(-2, -1)) * (d // self.heads) ** -0.5
        scores = scores.masked_fill(self.mask[:, :, :n, :n] == 0, float("-inf"))
        return self.out((nn.functional.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(b, n, d))


BREAKS = {"exit", "ctc"}  # a branch on a tensor, elements that decide


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    """Results, gradients and buffers, in training and evaluation."""
    readtorch.manual_seed(0)
    model, arguments = MODELS[name]()
    mine = copy.deepcopy(model)
    compiled = by_bytecode(mine)
    for seed in range(4):
        if seed == 3:
            model.eval(), mine.eval()
        expected, reached = run_of(model, model, arguments, seed), run_of(compiled, mine, arguments, seed)
        assert len(expected) == len(reached)
        assert all(readtorch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(expected, reached))
    assert (told(compiled).break_reasons == []) == (name not in BREAKS)


@pytest.mark.parametrize("options", [{}, {"momentum": 0.9, "weight_decay": 0.1}, {"nesterov": True, "momentum": 0.5}])
def test_steps_of_sgd_are_captured(options):
    """In one graph; the second capture is for the state that the first step has made. A scheduler's rates are inputs then."""

    def train(compile):
        readtorch.manual_seed(0)
        model = nn.Linear(3, 2)
        optimizer = readtorch.optim.SGD(model.parameters(), lr=0.1, **options)
        scheduler = readtorch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        step = compile(lambda: optimizer.step())
        for _ in range(5):
            optimizer.zero_grad()
            model(readtorch.rand(4, 3)).square().sum().backward()
            step()
            scheduler.step()
        return [p.detach() for p in model.parameters()], step

    expected, _ = train(lambda f: f)
    reached, step = train(by_bytecode)
    assert all(readtorch.equal(a, b) for a, b in zip(reached, expected))
    assert told(step).break_reasons == [] and told(step).graph_count <= 3
    assert all(len(operators) > 1 for operators in told(step).ops_per_graph)


ADAMS = {
    "Adam": ("Adam", {}),
    "the loop": ("Adam", {"foreach": False, "weight_decay": 0.1}),
    "amsgrad": ("Adam", {"amsgrad": True}),
    "AdamW": ("AdamW", {"maximize": True}),
    "Adagrad": ("Adagrad", {"lr_decay": 0.1}),
    "Adagrad for lists": ("Adagrad", {"foreach": True}),
    "Adam for lists": ("Adam", {"foreach": True}),
    "AdamW for lists": ("AdamW", {"foreach": True, "amsgrad": True}),
    "the kernel": ("Adam", {"fused": True}),
    "amsgrad in the loop": ("Adam", {"foreach": False, "amsgrad": True}),
    "NAdam": ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    "NAdam for lists": ("NAdam", {"foreach": True}),
    "RAdam": ("RAdam", {"weight_decay": 0.1}),
    "RAdam for lists": ("RAdam", {"foreach": True}),
    "Adamax": ("Adamax", {"maximize": True}),
    "Adamax for lists": ("Adamax", {"foreach": True}),
    "ASGD": ("ASGD", {"t0": 3}),
    "ASGD for lists": ("ASGD", {"t0": 3, "foreach": True}),
    "Rprop": ("Rprop", {}),
    "SGD for lists": ("SGD", {"foreach": True, "momentum": 0.9}),
    "RMSprop": ("RMSprop", {"centered": True, "momentum": 0.5}),
    "Adadelta": ("Adadelta", {}),
}
STEPS = 8  # RAdam's variance is known well enough from the sixth step on


def trained_by(lib, name, options, compile):
    """The parameters after some steps with a scheduler, the counts, and the compiled step."""
    weights = [lib.tensor([0.5, -1.0, 2.0], requires_grad=True), lib.tensor([1.5], requires_grad=True)]
    optimizer = getattr(lib.optim, name)(weights, lr=0.1, **options)
    scheduler = lib.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    step = compile(lambda: optimizer.step())
    for i in range(STEPS):
        optimizer.zero_grad()
        ((weights[0] * (i + 1)).sin() + weights[1]).square().sum().backward()
        step()
        scheduler.step()
    counts = [state["step"].item() for state in optimizer.state.values() if "step" in state]
    return [weight.tolist() for weight in weights], counts, step


@pytest.mark.parametrize("compile", [by_bytecode, eval_frame.optimize_call], ids=["graph", "fuser"])
@pytest.mark.parametrize("kind", ADAMS)
def test_steps_of_adam_are_captured(kind, compile):
    """As those of SGD; every number is the eager step's, with the rate of a scheduler and the count of the step that runs."""
    expected = trained_by(readtorch, *ADAMS[kind], lambda f: f)
    reached = trained_by(readtorch, *ADAMS[kind], compile)
    assert reached[:2] == expected[:2] and expected[1] in ([STEPS, STEPS], [])
    assert told(reached[2]).break_reasons == [] and told(reached[2]).graph_count == 2


def test_a_capturable_step_of_adam_is_that_of_pytorch():
    """Compiled, it may be capturable on the CPU; the count stays a tensor. As many graphs as PyTorch's."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    case = "Adam", {"capturable": True}
    expected = trained_by(torch, *case, lambda f: torch.compile(f, backend="eager"))
    reached = trained_by(readtorch, *case, by_bytecode)
    assert reached[1] == expected[1] == [STEPS, STEPS]
    for ours, theirs in zip(reached[0], expected[0]):
        assert ours == pytest.approx(theirs, rel=1e-5)
    assert told(reached[2]).graph_count <= torch._dynamo.utils.counters["stats"]["unique_graphs"]


@pytest.mark.parametrize("name", ["Adam", "AdamW", "RMSprop", "Adagrad"])
def test_steps_of_other_optimizers_are_right(name):
    def train(compile):
        readtorch.manual_seed(0)
        model = nn.Linear(3, 2)
        optimizer = getattr(readtorch.optim, name)(model.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().sum()
            loss.backward()
            optimizer.step()
            return loss

        step = compile(step)
        losses = [step(readtorch.rand(4, 3)).item() for _ in range(4)]
        return losses + [p.tolist() for p in model.parameters()]

    assert train(by_bytecode) == train(lambda f: f)


def test_attention_is_one_graph():
    compiled = by_bytecode(Attention(8, 2), fullgraph=True)
    compiled(readtorch.rand(2, 5, 8))
    assert told(compiled).graph_count == 1 and told(compiled).break_reasons == []


# ------------------------------------------------------------------------------------------------ what is captured


def test_a_graph_holds_the_operators():
    compiled = by_bytecode(lambda x, k: (x * k).relu() + 1)
    compiled(readtorch.ones(2), 2)
    (operators,) = told(compiled).ops_per_graph
    assert [getattr(target, "__name__", target) for target in operators] == ["mul", "relu", "add"]


def test_a_break_and_its_reason_are_those_of_pytorch():
    def program(x):
        y = x * 2
        print(end="")
        return y + 1

    def of(lib, explained, x):
        output = explained(program)(x)
        return output.graph_count, output.graph_break_count, output.op_count

    ours = of(readtorch, eval_frame.explain, readtorch.ones(2))
    assert ours == of(torch, torch._dynamo.explain, torch.ones(2)) == (2, 1, 2)


@pytest.mark.parametrize(
    "function",
    [lambda x: x * 2 if x.sum() > 0 else x, lambda x: (print(end=""), x)[1], lambda x: x + len(x.tolist())],
    ids=["branch", "print", "tolist"],
)
def test_fullgraph_raises_where_pytorch_does(function):
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(function, backend="eager", fullgraph=True)(torch.ones(2))
    with pytest.raises(Unsupported):
        by_bytecode(function, fullgraph=True)(readtorch.ones(2))


def test_messages_are_pytorchs():
    def branch(x):
        return x if x.sum() > 0 else -x

    with pytest.raises(torch._dynamo.exc.Unsupported) as theirs:
        torch.compile(branch, backend="eager", fullgraph=True)(torch.ones(2))
    with pytest.raises(Unsupported) as ours:
        by_bytecode(branch, fullgraph=True)(readtorch.ones(2))
    assert str(ours.value).splitlines()[0] == str(theirs.value).splitlines()[0] == "Data-dependent branching"


def test_the_recompile_limit():
    compiled = by_bytecode(lambda x: x * len(x.shape), recompile_limit=3)
    for k in range(5):
        assert compiled(readtorch.ones([1] * k)).sum().item() == k
    assert told(compiled).graph_count == 3
    whole = by_bytecode(lambda x: x * 2, recompile_limit=1, fullgraph=True)
    whole(readtorch.ones(2))
    with pytest.raises(FailOnRecompileLimitHit, match=r"hit config.recompile_limit \(1\)"):
        whole(readtorch.ones(3))


def scaled_unless_one(x, factor):
    return x if factor == "1" else x * len(factor)


def printed_in_a_loop(x, factor):
    for _ in range(2):
        x = x * len(factor)
        if factor == "1":
            print(end="")
    return x


def runs_of_graphs(lib, function, factors):
    """How often a graph has run, after each call."""
    runs, seen = [], []

    def counting(graph_module, example_inputs):
        return lambda *args: seen.append(0) or graph_module.forward(*args)

    compiled = lib.compile(function, backend=counting)
    for factor in factors:
        compiled(lib.ones(2), factor)
        runs.append(len(seen))
    return runs


@pytest.mark.parametrize("function", [scaled_unless_one, printed_in_a_loop])
def test_a_function_that_is_given_up_uses_none_of_its_entries(function):
    for factors in (("22", "333", "1", "22", "4444"), ("1", "22", "1", "22")):
        torch.compiler.reset()
        _dynamo.reset()
        assert runs_of_graphs(readtorch, function, factors) == runs_of_graphs(torch, function, factors)


class Kept(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines += [line.strip() for line in record.getMessage().splitlines()]


def reasons(lib, set_logs, logger, compile):
    """What a log says of recompilations."""
    kept = Kept()
    set_logs(recompiles=True)
    logging.getLogger(logger).addHandler(kept)
    try:
        compiled = compile(lambda x, k: x * k)
        for x in (lib.ones(2), lib.ones(3), lib.ones(3, 1), lib.ones(2, dtype=lib.float64)):
            compiled(x, 2.0)
        by_number = compile(lambda x, k: x + k)
        by_number(lib.ones(2), 2.0)
        by_number(lib.ones(2), 4.0)
    finally:
        logging.getLogger(logger).removeHandler(kept)
        set_logs()
    return [line.partition("#")[0].strip() for line in kept.lines if " tensor " in line or " == " in line]


def test_logs_say_why_it_recompiles(caplog):
    caplog.set_level(logging.WARNING, logger="readtorch._dynamo")
    compile = lambda f: torch.compile(f, backend="eager", dynamic=False)
    theirs = reasons(torch, torch._logging.set_logs, "torch._dynamo.guards.__recompiles", compile)
    ours = reasons(readtorch, utils.set_logs, "readtorch._dynamo", by_bytecode)
    shown = [line.partition("- ")[2].partition(": ")[2] for line in ours]
    assert len(ours) == 7 and shown == [line.partition("- ")[2].partition(": ")[2] for line in theirs]
    with pytest.raises(ValueError, match="Unrecognized log or artifact name: nothing"):
        utils.set_logs(nothing=True)


def test_logs_show_bytecode(caplog):
    """Of the function PyTorch's text, letter by letter; of what stands in its place the instructions of the generated function."""
    caplog.set_level(logging.WARNING, logger="readtorch._dynamo")

    def f(x):
        return x + 1

    def shown(set_logs, logger, compile, x):
        kept, logger = Kept(), logging.getLogger(logger)
        set_logs(bytecode=True)
        logger.addHandler(kept)
        try:
            compile(f)(x)
        finally:
            logger.removeHandler(kept)
            set_logs()
        at = next(i for i, line in enumerate(kept.lines) if "MODIFIED BYTECODE" in line)
        return kept.lines[:at], kept.lines[at:]

    torch._dynamo.reset()
    compile = lambda f: torch.compile(f, backend="eager")
    theirs, _ = shown(torch._logging.set_logs, "torch._dynamo.convert_frame.__bytecode", compile, torch.ones(2))
    ours, made = shown(utils.set_logs, "readtorch._dynamo", by_bytecode, readtorch.ones(2))
    assert [line.removeprefix("[__bytecode] ") for line in ours] == theirs
    assert any("RETURN_VALUE" in line for line in made) and any(
        "(__closure)" in line or "(L_x)" in line for line in made
    )


def test_a_python_whose_bytecode_is_not_known(caplog, monkeypatch):
    """There functions run as they are written, and the log says so, once."""
    caplog.set_level(logging.WARNING, logger="readtorch._dynamo")
    eval_frame.warn_of_python.cache_clear()
    monkeypatch.setattr(trace_rules, "VERSIONS", {})
    calls = []

    def f(x, k=2):
        calls.append(k)
        return {"y": readtorch.cond(x.sum() > 0, lambda d: d["x"] * k, lambda d: d["x"] - k, ({"x": x},))}

    _compiled.cache_clear()
    for compiled in (readtorch.compile(f), readtorch.compile(f, fullgraph=True)):
        assert compiled(readtorch.ones(2))["y"].tolist() == [2, 2]
        assert compiled(-readtorch.ones(2), k=3)["y"].tolist() == [-4, -4]
    module = readtorch.compile(nn.Linear(2, 2))
    module(readtorch.ones(1, 2)).sum().backward()
    assert calls == [2, 3] * 2 and module.weight.grad is not None
    assert told(readtorch.compile(f)).graph_count == 0
    _compiled.cache_clear()
    assert [r.getMessage() for r in caplog.records] == [
        f"compile knows the bytecode of Python 3.11 to 3.13, and this is 3.{sys.version_info[1]}: functions run as they are written."
    ]


def test_a_backend_gets_the_graph_and_tensors():
    seen = []

    def backend(module, inputs):
        seen.append((type(module).__name__, [tuple(t.shape) for t in inputs]))
        return module.forward

    compiled = by_bytecode(lambda x, y: x @ y, backend=backend)
    assert compiled(readtorch.ones(2, 3), readtorch.ones(3, 1)).tolist() == [[3], [3]]
    assert seen == [("GraphModule", [(2, 3), (3, 1)])]


def test_inductor_as_a_backend():
    compiled = by_bytecode(lambda x, y: readtorch.tanh(x * y + 1.0) * 0.5, backend="inductor")
    for _ in range(3):
        x, y = readtorch.rand(5), readtorch.rand(5)
        assert readtorch.allclose(compiled(x, y), readtorch.tanh(x * y + 1.0) * 0.5)


def test_what_is_read_and_not_looked_at_must_still_be_there():
    class Box:
        pass

    def program(x, box, table):
        if hasattr(box, "k"):
            del box.k
            return x + 1
        table["a"]
        return x - 1

    compiled = by_bytecode(program)
    for has_field, given in ((True, {}), (False, {"a": 1}), (True, {}), (False, {"a": 1})):
        box = Box()
        if has_field:
            box.k = object()
        assert compiled(readtorch.ones(1), box, given).item() == (2 if has_field else 0)
        assert not hasattr(box, "k")
    with pytest.raises(KeyError, match="a"):
        compiled(readtorch.ones(1), Box(), {})


# -------------------------------------------------------------------------------------------------------- numbers


def test_a_number_that_changes_becomes_an_input():
    """As in PyTorch: the first graph has the number, the second an input in its place, and there is no third."""

    def program(x, k):
        y = x * k
        return (y + 1 if k > 3 else y - 1), k * 2 + 1

    counts = {}
    for lib, compile in ((readtorch, by_bytecode), (torch, lambda f: torch.compile(f, backend="eager"))):
        torch._dynamo.reset()
        compiled = compile(program)
        for k in (5, 6, 7, 50, 2, 1, 0, -3):
            result, number = compiled(lib.ones(2), k)
            expected, expected_number = program(lib.ones(2), k)
            assert result.tolist() == expected.tolist() and number == expected_number
        counts[lib] = told(compiled).graph_count if lib is readtorch else compiled_graphs(compiled, program)
    assert counts[readtorch] == counts[torch] == 3  # static; above three; below


def compiled_graphs(compiled, program):
    return len(torch._dynamo.eval_frame._debug_get_cache_entry_list(program.__code__))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x.sum(0) / x.shape[0], x.relu() + 1),
        lambda x: x.view(x.shape[0], -1) * len(x),
        lambda x: x.size(0) * x if x.size(0) > 3 else x - x.size()[0],
        lambda x: sum(x.split(2)[-1]),
        lambda x: [row * i for i, row in enumerate(x)],
        lambda x: (x * 2).shape[0] + x,
        lambda x: (x[1:].squeeze(), x[:2].squeeze(0).dim()),
        lambda x: (x.contiguous() is x, x.sum_to_size(4, 2) is x if len(x) == 4 else None, x + 1),
        lambda x: (x.t() @ x, x.stride(), x.numel(), x.is_contiguous()),
        lambda x: (x.t().contiguous().is_contiguous(), x.mean(0, keepdim=True).expand(len(x), 2).shape),
    ],
)
def test_sizes_that_change(function):
    compiled = by_bytecode(function)
    for size in (4, 3, 5, 2, 7, 1, 0, 4):
        for x in (readtorch.rand(size, 2), readtorch.rand(2, size).t()):
            try:
                expected = table.plain(function(x))
            except Exception as error:
                with pytest.raises(type(error)):
                    compiled(x)
            else:
                assert repr(table.plain(compiled(x))) == repr(expected)  # nan is nan


def test_sizes_are_left_open_as_in_pytorch():
    """One graph for the first size, one for all others above one, and one each for one and nothing."""
    counts = {}
    for lib, compile in ((readtorch, by_bytecode), (torch, lambda f: torch.compile(f, backend="eager"))):
        torch._dynamo.reset()
        program = lambda x: (x * 2).sum(0) / x.shape[0]
        compiled = compile(program)
        for size in (4, 3, 5, 7, 9, 1):
            compiled(lib.ones(size, 2))
        counts[lib] = told(compiled).graph_count if lib is readtorch else compiled_graphs(compiled, program)
    assert counts[readtorch] == counts[torch] == 3
    marked = by_bytecode(lambda x: x * 2)
    for size in (4, 3, 5):
        x = readtorch.ones(size)
        _dynamo.maybe_mark_dynamic(x, 0)
        marked(x)
    assert told(marked).graph_count == 1
    static = by_bytecode(lambda x: x * 2, dynamic=False)
    for size in (4, 3, 5):
        static(readtorch.ones(size))
    assert told(static).graph_count == 3


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize(
    "function, graphs",
    [
        (lambda x: (x * 2).view(-1).shape[0] * x, 2),
        (lambda x: (x * 2).reshape((x + 1).shape[0], -1).sum(0) / (x * 2).size(0), 2),
        (lambda x: readtorch.zeros((x + 1).shape[0]) + x[:, 0], 2),
        (lambda x: (x @ x.t()).shape, 2),
        (lambda x: x + 1 if (x * 2).shape[0] > 3 else x - 1, 5),  # Python decides: each size has its graph
    ],
)
def test_sizes_of_results(function, graphs, backend):
    compiled = by_bytecode(function, backend=backend)
    for size in (4, 5, 7, 3, 9, 5):
        x = readtorch.rand(size, 2)
        assert repr(table.plain(compiled(x))) == repr(table.plain(function(x)))
    assert told(compiled).graph_count == graphs


def test_marked_sizes():
    """One that must stay open and does not is an error, in the same words; one that must not gets a graph each time."""
    messages = []
    for lib, compile in ((readtorch, by_bytecode), (torch, lambda f: torch.compile(f, backend="eager"))):
        torch._dynamo.reset()
        x = lib.ones(4, 2)
        lib._dynamo.mark_dynamic(x, 0)
        with pytest.raises(RuntimeError) as failure:
            compile(lambda x: x * 2 if x.shape[0] == 4 else x)(x)
        messages.append((type(failure.value).__name__, str(failure.value).partition("\n\n")[0]))
        for mark, expected in ((lib._dynamo.mark_dynamic, 1), (lib._dynamo.mark_static, 3)):
            program = lambda x: x * 2
            compiled = compile(program)
            for size in (4, 5, 6):
                mark(x := lib.ones(size), 0)
                compiled(x)
            counted = told(compiled).graph_count if lib is readtorch else compiled_graphs(compiled, program)
            assert counted == expected
            torch._dynamo.reset()
    assert messages[0] == messages[1]


def test_a_number_whose_value_is_needed_is_guarded_by_value():
    table = {k: k * 10 for k in range(10)}
    compiled = by_bytecode(lambda x, k: x + table[k])
    for k in (3, 4, 5, 4):
        assert compiled(readtorch.ones(1), k).item() == 1 + 10 * k


def test_known_elements_do_not_outlive_their_number():
    def program(x, k):
        if readtorch.tensor(2.0) * k > 5:
            return x + 1
        return x - 1

    compiled = by_bytecode(program)
    for k in (3.0, 4.0, 1.0, 5.0, 2.0):
        assert compiled(readtorch.ones(1), k).item() == (2 if 2 * k > 5 else 0)


def test_numbers_in_tensors_with_fullgraph():
    compiled = by_bytecode(lambda x: x * x.max().item() + 1, fullgraph=True)
    for scale in (1.0, 3.0):
        assert compiled(readtorch.ones(2) * scale).tolist() == [scale**2 + 1] * 2


@pytest.mark.parametrize("value", [3.0, 1.0])
def test_a_number_in_a_tensor_that_may_not_divide(value):
    """What stands for it while nothing is known may be the one by which nothing can be divided. The error is the run's."""

    def program(x):
        number = x.max().item()
        return x / (1.0 - number) + 5 % (number - 1), number // (1.0 - number)

    compiled, x = by_bytecode(program, fullgraph=True), readtorch.tensor([0.5, value])
    if value == 1.0:
        compiled(x + 1)
        with pytest.raises(ZeroDivisionError):
            compiled(x)
    else:
        assert repr(compiled(x)) == repr(program(x))


# ----------------------------------------------------------------------------------------- what a program may say


def test_disabled_allowed_and_constant_functions():
    calls = []

    @readtorch.compiler.disable
    def disabled(x):
        calls.append("disabled")
        return x + 1

    @readtorch.compiler.allow_in_graph
    def allowed(x):
        return x * 3

    @readtorch.compiler.assume_constant_result
    def constant():
        calls.append("constant")
        return len(calls)

    def program(x):
        y = allowed(x) * constant()
        return disabled(y)

    compiled = by_bytecode(program)
    assert [compiled(readtorch.ones(1)).item() for _ in range(2)] == [4, 4]
    assert calls.count("disabled") == 2 and calls.count("constant") == 1
    assert allowed in told(compiled).ops_per_graph[0]


def test_graph_break_on_demand():
    def program(x):
        y = x + 1
        _dynamo.graph_break()
        return y * 2

    compiled = by_bytecode(program)
    assert compiled(readtorch.ones(1)).item() == 4
    assert told(compiled).graph_count == 2


def test_is_compiling():
    compiled = by_bytecode(lambda x: x * (2 if readtorch.compiler.is_compiling() else 3))
    assert compiled(readtorch.ones(1)).item() == 2 and not readtorch.compiler.is_compiling()


def test_compile():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    compiled = readtorch.compile(model, backend="eager")
    x = readtorch.ones(1, 2)
    assert readtorch.equal(compiled(x), model(x))
    assert compiled.state_dict().keys() == {f"_orig_mod.{name}" for name in model.state_dict()}
    function = readtorch.compile(lambda x: x.cos() + 1, backend="eager")
    assert readtorch.equal(function(x), x.cos() + 1)
    assert _dynamo.report(function).graph_count == _dynamo.report(compiled).graph_count == 1
    _dynamo.reset()
    assert _dynamo.report(function).graph_count == 0


def test_the_generated_function_is_the_one_that_its_module_shows():
    compiled = by_bytecode(lambda x, box: x * box["k"])
    compiled(readtorch.ones(2), {"k": 2.0})
    (code,) = eval_frame.codes_of(compiled)
    lines = code.text.splitlines()
    assert lines[0] == "def entry(__closure, L_x, L_box):"
    assert any(line.strip().startswith("if type(L_x) is not") for line in lines)
    assert lines[-1].strip() == "return g0"
