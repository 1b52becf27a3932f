"""Every optimizer of the reference's optim_db, with every setting that it lists: fifty steps on three problems.

Parameters and state must agree after twenty-five steps. Then each side goes on from the other's checkpoint,
and both must agree again. The numbers of a tensor may differ by 1e-6 of its largest element (float64) or 1e-4
(float32).
"""

import contextlib
import copy
import math

import pytest
import torch

import readtorch
from tests.conformance import catalog, optimizer_checks
from tests.reference import FUSES, to_readtorch, to_torch

STEPS = 25
BOUND = {torch.float64: 1e-6, torch.float32: 1e-4}
INFOS = {name: info for name, info in catalog.optimizer_infos().items() if hasattr(readtorch.optim, name)}


class Quadratic:
    """½ |A x - b|² for a matrix and a vector."""

    shapes = [(4, 3), (5,)]

    def loss(self, data, parameters):
        x, y = parameters
        return (data[0] @ x).sub(data[1]).square().sum() / 2 + (data[2] @ y.reshape(5, 1)).square().sum() / 2

    def data(self):
        return torch.eye(4) + torch.randn(4, 4) / 4, torch.randn(4, 3), torch.eye(5) + torch.randn(5, 5) / 4


class LogisticRegression:
    shapes = [(6, 3), (3,)]

    def loss(self, data, parameters):
        inputs, targets = data
        weight, bias = parameters
        logits = inputs @ weight + bias
        size = weight.square().sum() + bias.square().sum()
        return (logits.logsumexp(1) - (logits * targets).sum(1)).mean() + size / 10

    def data(self):
        return torch.randn(12, 6), torch.nn.functional.one_hot(torch.arange(12) % 3).float()


class SmallNetwork:
    shapes = [(3, 8), (8,), (8, 2), (2,)]

    def loss(self, data, parameters):
        inputs, targets = data
        w1, b1, w2, b2 = parameters
        outputs = (inputs @ w1 + b1).tanh() @ w2 + b2
        return (outputs - targets).square().mean() + sum(p.square().sum() for p in parameters) / 10

    def data(self):
        return torch.randn(10, 3), torch.randn(10, 2)


PROBLEMS = {problem.__name__: problem for problem in (Quadratic, LogisticRegression, SmallNetwork)}


class Run:
    """One side: parameters, an optimizer, and the problem's data."""

    def __init__(self, T, name, settings, problem, data, parameters):
        convert = (lambda value: value) if T is torch else to_readtorch
        self.problem, self.data = problem, convert(data)
        self.parameters = [T.nn.Parameter(convert(p.clone())) for p in parameters]
        self.optimizer = getattr(T.optim, name)(self.parameters, **convert(settings))
        self.wants_sparse = name == "SparseAdam"

    def steps(self, count):
        for _ in range(count):
            self.optimizer.step(self.closure)

    def closure(self):
        self.optimizer.zero_grad()
        loss = self.problem.loss(self.data, self.parameters)
        loss.backward()
        if self.wants_sparse:
            for p in self.parameters:
                p.grad = p.grad.to_sparse()
        return loss

    def checkpoint(self):
        return [p.detach().clone() for p in self.parameters], self.optimizer.state_dict()


def bound_of(name, dtype):
    if name == "Muon":  # its direction is computed in bfloat16: another order of a sum may round otherwise
        return 1e-3
    return BOUND[dtype]


def fifty_steps(name, settings, problem, dtype):
    torch.manual_seed(0)
    data = [t.to(dtype) for t in problem.data()]
    # Muon takes matrices only
    start = [torch.randn(shape if name != "Muon" else (1, *shape)[-2:], dtype=dtype) for shape in problem.shapes]
    ours = Run(readtorch, name, settings, problem, data, start)
    theirs = Run(torch, name, settings, problem, data, start)
    agree_after(STEPS, ours, theirs, bound_of(name, dtype))

    (our_numbers, our_state), (their_numbers, their_state) = ours.checkpoint(), theirs.checkpoint()
    ours = Run(readtorch, name, settings, problem, data, their_numbers)
    theirs = Run(torch, name, settings, problem, data, to_torch(our_numbers))
    ours.optimizer.load_state_dict(to_readtorch(their_state))
    theirs.optimizer.load_state_dict(to_torch(our_state))
    agree_after(STEPS, ours, theirs, bound_of(name, dtype))


def agree_after(steps, ours, theirs, bound):
    for run in (ours, theirs):
        run.steps(steps)
    agree(to_torch(ours.checkpoint()), theirs.checkpoint(), bound, "(parameters, state)")


def agree(mine, reference, bound, where):
    """The same structure, the same types, and numbers within the bound."""
    assert type(mine) is type(reference), where
    if isinstance(reference, dict):
        assert list(mine) == list(reference), where
        for key in reference:
            agree(mine[key], reference[key], bound, f"{where}[{key!r}]")
    elif isinstance(reference, (list, tuple)):
        assert len(mine) == len(reference), where
        for i, (a, b) in enumerate(zip(mine, reference)):
            agree(a, b, bound, f"{where}[{i}]")
    elif isinstance(reference, torch.Tensor):
        assert mine.dtype == reference.dtype and mine.shape == reference.shape, where
        size = reference.detach().abs().max().item()
        difference = (mine.detach() - reference.detach()).abs().max().item()
        smallest = torch.finfo(reference.dtype).eps  # gradients near 0 are differences of numbers near 1
        assert difference <= bound * size + smallest, f"{where}: {difference} of {size}"
    elif isinstance(reference, float):
        assert math.isclose(mine, reference, rel_tol=bound), f"{where}: {mine} instead of {reference}"
    else:
        assert mine == reference, where


@contextlib.contextmanager
def told(description):
    """Which of the settings it was that failed."""
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{description}: {error}") from error


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("dtype", BOUND, ids=str)
@pytest.mark.parametrize("name", [name for name in INFOS if name != "LBFGS"])
def test_fifty_steps(name, dtype, problem):
    for given in INFOS[name].optim_inputs_func("cpu", dtype):
        with told(given.desc):
            fifty_steps(name, given.kwargs, PROBLEMS[problem](), dtype)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_lbfgs(problem):
    for given in INFOS["LBFGS"].optim_inputs_func("cpu", torch.float64):
        with told(given.desc):
            fifty_steps("LBFGS", given.kwargs | {"max_iter": 1}, PROBLEMS[problem](), torch.float64)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_lbfgs_in_float32(problem):
    """One step at a time, each from the reference's state. LBFGS divides by differences of gradients, which hold only a few
    of float32's digits, and which few depends on the order in which a processor's BLAS sums: what is divided is compared
    loosely, the loss and the gradient closely. The formulas are tested in float64.
    """
    for given in INFOS["LBFGS"].optim_inputs_func("cpu", torch.float32):
        torch.manual_seed(0)
        data = [t.float() for t in PROBLEMS[problem]().data()]
        numbers, state = [torch.randn(shape) for shape in PROBLEMS[problem].shapes], None
        for _ in range(5):
            runs = []
            for T, convert in ((readtorch, to_readtorch), (torch, lambda value: value)):
                run = Run(T, "LBFGS", given.kwargs | {"max_iter": 1}, PROBLEMS[problem](), data, numbers)
                if state is not None:
                    run.optimizer.load_state_dict(convert(copy.deepcopy(state)))
                run.steps(1)
                runs.append(run)
            mine, reference = to_torch(runs[0].checkpoint()), runs[1].checkpoint()
            numbers, state = copy.deepcopy(reference)
            with told(given.desc):
                agree(*(divided(checkpoint) for checkpoint in (mine, reference)), 0.1, "divided by differences")
                agree(mine, reference, 1e-4, "(parameters, state)")


def divided(checkpoint):
    """What follows from a division by differences of gradients, taken out of the checkpoint. `al` is scratch space that the
    next step overwrites: of it only the length is kept."""
    numbers, state = checkpoint
    state = state["state"][0]
    taken = [list(numbers)] + [state.pop(key) for key in ("d", "ro", "H_diag", "old_dirs")]
    numbers.clear()
    return taken, len(state.pop("al", ()))


@pytest.mark.parametrize("line_search_fn", [None, "strong_wolfe"])
def test_lbfgs_with_many_iterations_a_step(line_search_fn):
    """The loss of every evaluation, and how many there are, until it has converged."""
    for problem in PROBLEMS.values():
        torch.manual_seed(0)
        data = [t.double() for t in problem().data()]
        start = [torch.randn(shape, dtype=torch.float64) for shape in problem.shapes]
        losses = []
        for T in (readtorch, torch):
            losses.append([])
            settings = {"line_search_fn": line_search_fn, "max_iter": 8, "history_size": 4}
            run = Run(T, "LBFGS", settings, problem(), data, start)

            def closure():
                losses[-1].append(run.closure().item())
                return torch.tensor(losses[-1][-1]) if T is torch else readtorch.tensor(losses[-1][-1])

            for _ in range(2):
                run.optimizer.step(closure)
        assert losses[0] == pytest.approx(losses[1], rel=1e-9)


class Rosenbrock:
    """The valley that PyTorch's own tests of optimizers go along."""

    def loss(self, data, parameters):
        (x,) = parameters
        return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


@pytest.mark.skipif(not FUSES, reason="the default loops of PyTorch round otherwise")
@pytest.mark.parametrize("settings", [{}, {"line_search_fn": "strong_wolfe"}, {"lr": 0.3, "history_size": 3}], ids=str)
def test_lbfgs_evaluates_as_often_in_float32(settings):
    """Sums of two numbers have no order: nearly all steps are PyTorch's to the last bit."""
    chance = torch.Generator().manual_seed(0)
    for _ in range(5):
        start, counts, ends = [torch.randn(2, generator=chance)], [], []
        for T in (readtorch, torch):
            run = Run(T, "LBFGS", settings, Rosenbrock(), (), start)
            run.steps(4)
            state = run.optimizer.state[run.parameters[0]]
            counts.append((state["func_evals"], state["n_iter"]))
            ends.append(run.parameters[0].tolist())
        assert counts[0] == counts[1]
        assert ends[0] == pytest.approx(ends[1], rel=1e-5)


@pytest.mark.parametrize("name", INFOS)
def test_arguments_and_errors(name):
    findings = optimizer_checks.check_class(name)
    for error in INFOS[name].optim_error_inputs_func("cpu", torch.float32):
        findings += optimizer_checks.check_error(name, error)
    assert not findings, [(f.sample, f.reason) for f in findings]
