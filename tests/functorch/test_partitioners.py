"""The partitioners: what they save, beside PyTorch's, on random joint graphs; and the minimum cut, beside networkx's."""

import importlib
import math
import random

import networkx
import pytest
import torch

import readtorch as rt
from readtorch._functorch import config
from readtorch._functorch._activation_checkpointing import knapsack
from readtorch._functorch.min_cut import SINK, SOURCE, FlowGraph
from readtorch._functorch.op_types import get_default_op_list
from tests.functorch.test_aot_autograd import Compiled, part_of, tensors_of

# ------------------------------------------------------------------------------------------------------ minimum cut


@pytest.mark.parametrize("seed", range(200))
def test_minimum_cut(seed):
    chosen = random.Random(seed)
    names = [SOURCE, SINK, *map(str, range(chosen.randint(1, 12)))]
    ours, theirs = FlowGraph(), networkx.DiGraph()
    theirs.add_nodes_from([SOURCE, SINK])
    for _ in range(chosen.randint(1, 40)):
        u, v = chosen.sample(names, 2)
        capacity = chosen.choice([math.inf, chosen.randint(0, 9), chosen.randint(0, 100)])
        if v != SOURCE and u != SINK:
            ours.add_edge(u, v, capacity)
            theirs.add_edge(u, v, capacity=capacity)
    try:
        value, (above, below) = networkx.minimum_cut(theirs, SOURCE, SINK)
    except networkx.NetworkXUnbounded:
        with pytest.raises(ValueError):
            ours.minimum_cut()
        return
    assert ours.minimum_cut()[0] == value
    assert set(ours.minimum_cut()[1]) == {(u, v) for u in above for v in theirs[u] if v in below}


# -------------------------------------------------------------------------------------------------- random programs

UNARY = "exp sin tanh sigmoid neg abs relu square sqrt_of log_of rsqrt_of erf".split()
STEPS = [
    *UNARY,
    *"add mul sub div".split(),
    *"mm linear softmax norm sum mean amax view transpose cat slices dropout gelu silu".split(),
]


def step(T, name, x, y, w):
    """One operator of a program. x, y: 4 × 8, w: 8 × 8."""
    F = T.nn.functional
    if name in ("sqrt_of", "log_of", "rsqrt_of"):
        return getattr(T, name.removesuffix("_of"))(x * x + 1)
    if name in UNARY:
        return getattr(T, name)(x)
    return {
        "add": lambda: x + y,
        "mul": lambda: x * y,
        "sub": lambda: x - 2 * y,
        "div": lambda: x / (y * y + 1),
        "mm": lambda: x @ w,
        "linear": lambda: F.linear(x, w),
        "softmax": lambda: x.softmax(-1),
        "norm": lambda: F.layer_norm(x, (8,)),
        "sum": lambda: x + y.sum(1, keepdim=True),
        "mean": lambda: x - x.mean(0),
        "amax": lambda: x - y.amax(1, keepdim=True).detach(),
        "view": lambda: x.view(2, 16).sin().view(4, 8),
        "transpose": lambda: (x.t() @ y).cos()[:4],
        "cat": lambda: T.cat([x, y], 1)[:, 4:12] * 2,
        "slices": lambda: T.cat([x[:2], y[2:]]),
        "dropout": lambda: F.dropout(x, 0.25),
        "gelu": lambda: F.gelu(x),
        "silu": lambda: F.silu(y),
    }[name]()


def random_program(seed):
    """A function of (T, x, y, w): some results of a random sequence of operators on results before."""
    chosen = random.Random(seed)
    steps = [(chosen.choice(STEPS), chosen.random(), chosen.random()) for _ in range(chosen.randint(3, 30))]
    returned = [chosen.random() for _ in range(chosen.randint(1, 3))]

    def program(T, x, y, w):
        results = [x, y]
        for name, first, second in steps:
            a, b = (results[int(len(results) * place**0.5)] for place in (first, second))
            results.append(step(T, name, a, b, w))
        made = results[2:]
        return [made[-1].sum(), *(made[int(len(made) * place)] for place in returned)]

    return program


def inputs(T):
    return [
        (T.arange(4 * 8.0).view(4, 8) / 32 - 0.3).requires_grad_(),
        T.ones(4, 8).requires_grad_(),
        T.eye(8).requires_grad_(),
    ]


@pytest.fixture
def settings():
    """Sets settings of both packages, and puts them back."""
    theirs = importlib.import_module("torch._functorch.config")
    before = {}

    def change(**values):
        for name, value in values.items():
            before.setdefault(name, (getattr(config, name), getattr(theirs, name)))
            setattr(config, name, value)
            setattr(theirs, name, value)

    yield change
    for name, (our_value, their_value) in before.items():
        setattr(config, name, our_value)
        setattr(theirs, name, their_value)


def graphs_of(T, program, partition="min_cut_rematerialization_partition"):
    compiled = Compiled(T, program, partition)
    results = compiled(*inputs(T))
    results[0].backward()
    return compiled.graphs


@pytest.mark.parametrize("seed", range(120))
def test_random_programs(seed):
    """The same results are saved and the same are computed again, in the same order."""
    ours, theirs = (graphs_of(T, random_program(seed)) for T in (rt, torch))
    assert ours == theirs


@pytest.mark.parametrize("budget", [0.0, 0.2, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("seed", range(12))
def test_budgets(settings, seed, budget):
    settings(activation_memory_budget=budget)
    ours, theirs = (graphs_of(T, random_program(seed)) for T in (rt, torch))
    assert ours["forward"] == theirs["forward"] and ours["backward"] == theirs["backward"]


SETTINGS = [
    {"aggressive_recomputation": True},
    {"recompute_views": True},
    {"cse": False},
    {"ban_recompute_used_far_apart": False},
    {"ban_recompute_materialized_backward": False, "ban_recompute_reductions": False},
    {"ban_recompute_not_in_allowlist": False},
    {"max_dist_from_bw": 3},
    {"activation_memory_budget": 0.3, "activation_memory_budget_solver": "greedy"},
    {"activation_memory_budget": 0.3, "activation_memory_budget_runtime_estimator": "testing"},
]


@pytest.mark.parametrize("changed", SETTINGS, ids=str)
@pytest.mark.parametrize("seed", range(100, 104))
def test_settings(settings, seed, changed):
    settings(**changed)
    ours, theirs = (graphs_of(T, random_program(seed)) for T in (rt, torch))
    assert ours["forward"] == theirs["forward"] and ours["backward"] == theirs["backward"]


@pytest.mark.parametrize("partition", ["default_partition", "min_cut_rematerialization_partition"])
@pytest.mark.parametrize("seed", range(8))
def test_gradients(seed, partition):
    """Cut or not, the gradients are eager's."""
    program = random_program(seed)
    grads = []
    for run in (Compiled(rt, program, partition), lambda *args: program(rt, *args)):
        rt.manual_seed(0)
        given = inputs(rt)
        sum(r.sum() for r in tensors_of(rt, run(*given)) if r.requires_grad).backward()
        grads.append([g.grad for g in given])
    drops = any("dropout" in line for line in graphs_of(rt, program)["joint"])  # draws other numbers than eager's
    for ours, eager in zip(*grads):
        assert (ours is None) == (eager is None)
        assert drops or ours is None or rt.allclose(ours, eager, atol=1e-5, rtol=1e-4)


def test_long_chains():
    """A chain of more than a hundred operators that fuse is not computed again from its beginning."""

    def program(T, x, y, w):
        for _ in range(130):
            x = x.sin() + y
        return [x.sum()]

    ours, theirs = (graphs_of(T, program) for T in (rt, torch))
    assert ours == theirs


# -------------------------------------------------------------------------------------------------------- knowledge


def test_operators():
    """The sets of operators, as far as both have them: those of PyTorch's list and of its tags."""
    theirs = part_of(torch, "partitioners").get_default_op_list()
    ours = get_default_op_list()
    for name in ("view_ops", "recomputable_ops", "random_ops", "compute_intensive_ops", "fusible_ops"):
        known = {n for n in map(name_of, getattr(theirs, name)) if hasattr(rt.ops.aten, n) and not n.endswith("_")}
        found = {n for n in map(name_of, getattr(ours, name)) if not n.endswith("_")}
        assert known - found <= {"__and__", "__or__", "__xor__"} and found - known <= {"_conj_physical", "getitem"}, (
            name
        )


def name_of(operator):
    return str(getattr(operator, "__name__", operator)).split(".")[-1]


@pytest.mark.parametrize("solver", ["dp_knapsack", "greedy_knapsack"])
@pytest.mark.parametrize("seed", range(20))
def test_knapsack(solver, seed):
    theirs = importlib.import_module("torch._functorch._activation_checkpointing.knapsack")
    chosen = random.Random(seed)
    count = chosen.randint(1, 12)
    memory, runtime = ([chosen.random() / 4 for _ in range(count)] for _ in range(2))
    room = chosen.random()
    gained, saved, recomputed = getattr(knapsack, solver)(memory, runtime, room)
    their_gain, *their_choice = getattr(theirs, solver)(memory, runtime, room)
    assert [saved, recomputed] == their_choice and gained == pytest.approx(their_gain)


WRONG = [
    {"activation_memory_budget": 1.5},
    {"activation_memory_budget": 0.1, "activation_memory_budget_solver": "luck"},
    {"activation_memory_budget": 0.1, "activation_memory_budget_runtime_estimator": "luck"},
]


@pytest.mark.parametrize("changed", WRONG, ids=str)
def test_wrong_settings(settings, changed):
    settings(**changed)
    errors = []
    for T in (torch, rt):
        with pytest.raises(RuntimeError) as raised:
            graphs_of(T, matmuls)
        errors.append(str(raised.value))
    assert errors[0] == errors[1]


def matmuls(T, x, y, w):
    """A program whose activations cannot be brought within a small budget by cheap operators alone."""
    for _ in range(3):
        x = (x @ w).sin() * y
    return [x.sum()]
