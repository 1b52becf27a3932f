"""One optimizer on both implementations: optim_db's settings for a few steps, its state, and its errors."""

import copy
import inspect
import pickle

import torch

import readtorch as rt
from tests.conformance.checks import compare_errors, guarded, translate_all
from tests.conformance.translate import Missing
from tests.reference import Outcome, assert_close, own_copy, seed_both, tensors_in

STEPS = 6

# Steps amplify rounding, so operators' tolerances are too narrow.
TOLERANCES = {torch.float32: dict(rtol=1e-4, atol=1e-4), torch.float64: dict(rtol=1e-6, atol=1e-7)}


def our_class(name):
    if not hasattr(rt.optim, name):
        raise Missing(f"readtorch.optim.{name}")
    return getattr(rt.optim, name)


def check_class(name):
    return guarded("class", name, _check_class, name)


def _check_class(name):
    ours, theirs = map(arguments, (our_class(name), getattr(torch.optim, name)))
    assert ours == theirs, f"arguments {ours} instead of {theirs}"
    return []


def arguments(cls):
    """Names, kinds and defaults; annotations are comments."""
    return str([p.replace(annotation=p.empty) for p in inspect.signature(cls).parameters.values()])


def check_settings(name, given, dtype):
    """Some steps with one setting of optim_db; the state is copied, pickled and loaded, and steps go on."""
    return guarded("steps", f"{name}({given.desc})", _check_settings, name, given.kwargs, dtype)


def _check_settings(name, named, dtype):
    theirs = _Run(torch, name, named, dtype)
    ours = _Run(rt, name, named, dtype)
    close = TOLERANCES[dtype]
    if name == "LBFGS" and dtype == torch.float32:  # its state is quotients of differences of gradients
        close = dict(rtol=5e-3, atol=1e-3)
    for run in (theirs, ours):
        for _ in range(STEPS):
            run.step()
    _assert_same_run(ours, theirs, close)
    for duplicate in (copy.deepcopy, lambda state: pickle.loads(pickle.dumps(state))):
        for run in (theirs, ours):
            run.optimizer.load_state_dict(duplicate(run.optimizer.state_dict()))
            run.step()
        _assert_same_run(ours, theirs, close)
    return []


class _Run:
    """A small regression: two groups of parameters, the second with another learning rate."""

    def __init__(self, T, name, named, dtype):
        seed_both(0)
        convert = (lambda value: value) if T is torch else translate_all
        numbers = [torch.randn(*shape, dtype=dtype) for shape in ((4, 3), (2, 4), (5, 3))]
        first, second, self.x = convert(numbers)
        self.parameters = [T.nn.Parameter(first), T.nn.Parameter(second)]
        groups = [{"params": [self.parameters[0]]}, {"params": [self.parameters[1]], "lr": 0.02}]
        self.wants_sparse = name == "SparseAdam"
        self.one_group = name == "LBFGS"  # it takes no groups, and wants to evaluate the loss itself
        # One iteration a step: each divides by a difference of gradients, and a few in a row make rounding large.
        named = convert(own_copy(named)) | (dict(max_iter=1) if self.one_group else {})
        self.optimizer = getattr(T.optim, name)(self.parameters if self.one_group else groups, **named)

    def step(self):
        self.loss = self.optimizer.step(self._closure)

    def _closure(self):
        first, second = self.parameters
        self.optimizer.zero_grad()
        loss = (self.x @ first.t()).tanh().matmul(second.t()).sub(1).square().mean()
        loss.backward()
        if self.wants_sparse:
            for p in self.parameters:
                p.grad = p.grad.to_sparse()
        return loss


def _assert_same_run(ours, theirs, close):
    assert_close(ours.loss.detach(), theirs.loss.detach(), where="loss", **close)
    assert_close(ours.parameters, theirs.parameters, where="parameters", **close)
    our_state, their_state = ours.optimizer.state_dict(), theirs.optimizer.state_dict()
    assert_close(_plain(our_state), _plain(their_state), where="state_dict", **close)
    our_words, their_words = repr(ours.optimizer), repr(theirs.optimizer)
    assert our_words == their_words, f"repr {our_words} instead of {their_words}"


def _plain(value):
    """The state, without the difference between a dict and its subclasses."""
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    return value


def check_error(name, error):
    return guarded("error input", f"{name}({error.optimizer_error_input.desc})", _check_error, name, error)


def _check_error(name, error):
    from torch.testing._internal.common_optimizers import OptimizerErrorEnum

    given = error.optimizer_error_input
    args = given.params, given.kwargs
    their_args, our_args = args, translate_all(args)
    for ours, theirs in zip(tensors_in(our_args), tensors_in(their_args)):
        ours.grad = translate_all(theirs.grad)
    theirs = Outcome(getattr(torch.optim, name), their_args[0], **their_args[1])
    ours = Outcome(our_class(name), our_args[0], **our_args[1])
    if error.error_on == OptimizerErrorEnum.STEP_ERROR:
        theirs, ours = Outcome(theirs.value.step), Outcome(ours.value.step)
    if theirs.error is None:  # it only warns
        return []
    return compare_errors(ours, theirs, error.error_regex)
