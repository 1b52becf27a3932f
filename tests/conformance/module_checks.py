"""One module on both implementations: its class, how it is constructed, what it computes and learns.

The inputs are ModuleInfos: module_db's, and our own for the classes that module_db lacks (more_modules.py).
The findings are those of checks.py, and "bases": isinstance with a base class would answer differently.
"""

import copy
import dataclasses
import inspect
import pickle
import re

import torch

import readtorch as rt
from tests.conformance.checks import (
    Finding,
    compare_errors,
    compare_strides,
    describe_arguments,
    guarded,
    only_ours,
    tolerance_of,
    translate_all,
)
from tests.conformance.translate import Missing
from tests.reference import (
    FUSES,
    Outcome,
    assert_close,
    assert_same_aliasing,
    assert_same_grad_fn,
    assert_same_gradients,
    own_copy,
    rebuild,
    seed_both,
    to_readtorch,
)


@dataclasses.dataclass
class Call:
    """A module's construction and what it is then called with, in the place of an operator's sample."""

    name: str
    construction: object
    forward: object
    dtype: torch.dtype = torch.float32
    training: bool = True

    def __repr__(self):
        parts = self.construction, self.forward
        made, called = (describe_arguments(part.args, part.kwargs) for part in parts)
        return f"{made}{called}{'' if self.training else ' in eval'}"


def calls_of(info, dtype, training):
    """The sample inputs of a ModuleInfo. All floating inputs require grad."""
    seed_both(0)
    inputs = info.module_inputs_func(info, "cpu", dtype, True, training)
    name = info.module_cls.__name__
    return [Call(name, i.constructor_input, i.forward_input, dtype, training) for i in inputs]


def runs_here(call):
    """Whether a call uses nothing but what readtorch has."""
    return all(only_ours((part.args, part.kwargs)) for part in (call.construction, call.forward))


def our_class(name):
    """readtorch.nn's class of that name, or Missing."""
    if not hasattr(rt.nn, name):
        raise Missing(f"readtorch.nn.{name}")
    return getattr(rt.nn, name)


# The class


def check_class(name):
    """What can be seen without constructing anything."""
    return guarded("class", name, _check_class, name)


def _check_class(name):
    ours, theirs = our_class(name), getattr(torch.nn, name)
    for method in ("__init__", "forward") if issubclass(theirs, torch.nn.Module) else ("__init__",):
        assert signature(ours, method) == signature(theirs, method), (
            f"{method}{signature(ours, method)} instead of {method}{signature(theirs, method)}"
        )
    constants = [getattr(cls, "__constants__", None) for cls in (ours, theirs)]
    assert constants[0] == constants[1], f"__constants__ {constants[0]} instead of {constants[1]}"
    bases = [[base.__name__ for base in cls.__mro__] for cls in (ours, theirs)]
    if set(bases[1]) - set(bases[0]):
        return [Finding("bases", "", f"{' < '.join(bases[0])} instead of {' < '.join(bases[1])}")]
    return []


def signature(cls, method):
    """Names, kinds and default values; annotations are comments."""
    parameters = inspect.signature(getattr(cls, method)).parameters.values()
    plain = [p.replace(annotation=p.empty, default=_plain_default(p.default)) for p in parameters]
    return str(inspect.Signature(plain))


def _plain_default(default):
    if callable(default) and default is not inspect.Parameter.empty:
        return default.__name__
    return default


# One call


def check_call(info, call, deep=True):
    """Construct on both sides, call, differentiate. `deep`: also copies, pickles, calls without gradients."""
    findings = guarded("construct", call, check_construction, call)
    if any(f.kind == "FAIL" for f in findings):
        return findings
    findings += guarded("forward", call, check_forward, info, call)
    if deep:
        findings += guarded("inference", call, check_inference, call)
        findings += guarded("deepcopy", call, check_copies, call, copy.deepcopy)
        findings += guarded("pickle", call, check_copies, call, through_pickle)
        findings += guarded("load_state_dict", call, check_loading, call)
    return findings


def through_pickle(module):
    return pickle.loads(pickle.dumps(module))


def construct(call):
    """(ours, theirs) as Outcomes, from one seed, with the dtype of the call."""
    theirs_class, ours_class = getattr(torch.nn, call.name), our_class(call.name)
    named = dict(call.construction.kwargs)
    if "dtype" in inspect.signature(theirs_class.__init__).parameters:
        named.setdefault("dtype", call.dtype)
    their_args = own_copy((call.construction.args, named))
    our_args = translate_all(their_args)
    seed_both(0)
    theirs = Outcome(_constructed, theirs_class, their_args, call.dtype, call.training)
    ours = Outcome(_constructed, ours_class, our_args, translate_all(call.dtype), call.training)
    return ours, theirs


def _constructed(cls, args, dtype, training):
    return cls(*args[0], **args[1]).to(dtype).train(training)


def constructed(call):
    """(ours, theirs), where the construction is known to succeed."""
    ours, theirs = construct(call)
    if ours.error is not None:
        raise AssertionError(f"raised {ours.describe_error()}") from ours.error
    their_state = theirs.value.state_dict(keep_vars=True)
    if not (
        FUSES or any(map(is_lazy, their_state.values()))
    ):  # the last bits of what was drawn differ: go on with the reference's numbers
        ours.value.load_state_dict(to_readtorch(theirs.value.state_dict()))
    return ours.value, theirs.value


def check_construction(call):
    ours, theirs = construct(call)
    if theirs.error is not None:
        return compare_errors(ours, theirs, None)
    if ours.error is not None:
        raise AssertionError(f"raised {ours.describe_error()}") from ours.error
    assert_same_module(ours.value, theirs.value, exact=True)
    return []


def assert_same_module(ours, theirs, **close):
    """Equal repr, attributes, parameters, buffers and state_dict, by name and number."""
    assert_equal("repr", repr(ours), repr(theirs))
    assert_equal("extra_repr", ours.extra_repr(), theirs.extra_repr())
    assert_equal("attributes", *map(_public_attributes, (ours, theirs)))
    assert_equal("parameters", *([_described(p) for p in m.named_parameters()] for m in (ours, theirs)))
    assert_equal("buffers", *([_described(b) for b in m.named_buffers()] for m in (ours, theirs)))
    our_state, their_state = ours.state_dict(), theirs.state_dict()
    assert_equal("state_dict keys", list(our_state), list(their_state))
    assert_equal("state_dict metadata", dict(our_state._metadata), dict(their_state._metadata))
    for name, value in theirs.state_dict(keep_vars=True).items():
        if not is_lazy(value):
            assert_close(our_state[name], value.detach(), where=name, **close)


def assert_equal(what, ours, theirs):
    ours, theirs = map(_in_torchs_words, (ours, theirs))
    assert ours == theirs, f"{what}: {ours} instead of {theirs}"


def _in_torchs_words(value):
    text = value if isinstance(value, str) else repr(value)
    return re.sub(r" at 0x[0-9a-f]+", "", re.sub(r"\breadtorch\b", "torch", text))


def _public_attributes(module):
    return {name: _plain(value) for name, value in sorted(vars(module).items()) if not name.startswith("_")}


def _plain(value):
    if isinstance(value, (torch.Tensor, rt.Tensor)):
        return tuple(value.shape)
    return getattr(value, "__name__", value) if callable(value) else value


def is_lazy(value):
    """Whether a parameter or buffer of either side waits for the first input to learn its shape."""
    return type(value).__name__.startswith("Uninitialized")


def _described(item):
    name, value = item
    size = type(value).__name__ if is_lazy(value) else tuple(value.shape)
    return name, type(value).__name__, size, str(value.dtype), value.requires_grad


@dataclasses.dataclass
class Run:
    """One call of one side's module."""

    leaves: list  # what may get gradients
    given: object  # what the module was called with
    outcome: Outcome


def check_forward(info, call):
    """Results, changed inputs, gradients of inputs and parameters, and the buffers afterwards."""
    modules = constructed(call)
    ours, theirs = run_both(call, *modules)
    if theirs.outcome.error is not None:
        return compare_errors(ours.outcome, theirs.outcome, None)
    results = ours.outcome.value, theirs.outcome.value
    close = tolerance_of(call.dtype)
    assert_close(*results, **close)
    assert_close(ours.given, theirs.given, where="inputs afterwards", **close)
    assert_same_module(*modules, **close)
    findings = compare_strides(*results)
    assert_same_aliasing(*results, ours.given, theirs.given)
    assert_same_grad_fn(*results)
    orders = 2 if info.supports_gradgrad and call.dtype == torch.float64 else 1
    assert_same_gradients(*results, ours.leaves, theirs.leaves, orders=orders, **close)
    return findings


def run_both(call, ours, theirs):
    """Both modules with their own copies of the arguments: (our Run, their Run)."""
    their_args = own_copy((call.forward.args, call.forward.kwargs))
    our_args = translate_all(their_args)
    their_run, our_run = _run(theirs, their_args), _run(ours, our_args)
    if their_run.outcome.error is None and our_run.outcome.error is not None:
        raise AssertionError(f"raised {our_run.outcome.describe_error()}") from our_run.outcome.error
    return our_run, their_run


def _run(module, args):
    given = positional, named = not_leaves(args)
    seed_both(0)
    outcome = Outcome(module, *positional, **named)
    return Run([args, list(module.parameters())], given, outcome)


def not_leaves(value):
    """A module may work in place, which a leaf that requires grad forbids: it gets a copy in the graph."""
    if isinstance(value, (torch.Tensor, rt.Tensor)):
        return value.clone() if value.requires_grad else value
    if hasattr(value, "batch_sizes"):
        return value  # a PackedSequence checks its parts when it is made anew
    return rebuild(value, not_leaves)


def check_inference(call):
    """In eval and without gradients, where PyTorch's transformer layers take another way."""
    ours, theirs = constructed(dataclasses.replace(call, training=False))
    with torch.no_grad(), rt.no_grad():
        ours, theirs = run_both(call, ours, theirs)
    if theirs.outcome.error is not None:
        return compare_errors(ours.outcome, theirs.outcome, None)
    assert_close(ours.outcome.value, theirs.outcome.value, **tolerance_of(call.dtype))
    return []


def check_copies(call, duplicate):
    """A copy is the same module and computes the same, and the original does not notice."""
    ours, theirs = constructed(call)
    their_copy = Outcome(duplicate, theirs)
    our_copy = Outcome(duplicate, ours)
    if their_copy.error is not None:
        return compare_errors(our_copy, their_copy, None)
    if our_copy.error is not None:
        raise AssertionError(f"raised {our_copy.describe_error()}") from our_copy.error
    assert_same_module(our_copy.value, their_copy.value, exact=True)
    our_run, their_run = run_both(call, our_copy.value, their_copy.value)
    if their_run.outcome.error is None:
        assert_close(our_run.outcome.value, their_run.outcome.value, **tolerance_of(call.dtype))
    for module in (our_copy.value, their_copy.value):
        for parameter in module.parameters():
            if not is_lazy(parameter):
                parameter.detach().zero_()
    assert_same_module(ours, theirs, exact=True)
    return []


def check_loading(call):
    """What PyTorch's module has after a call, with other numbers, can be loaded into new modules."""
    _, teacher = constructed(call)
    _run(teacher, own_copy((call.forward.args, call.forward.kwargs)))  # gives lazy parameters their shapes
    if any(map(is_lazy, teacher.state_dict(keep_vars=True).values())):
        return []
    for parameter in teacher.parameters():
        parameter.data.uniform_()
    ours, theirs = constructed(call)
    state = teacher.state_dict()
    loaded = ours.load_state_dict(translate_all(dict(state)))
    assert_equal("what load_state_dict returns", repr(loaded), repr(theirs.load_state_dict(state)))
    assert_same_module(ours, theirs, exact=True)
    return []


# Errors


def error_calls(info):
    """(call, whether the construction fails, the pattern of the message) for each error input."""
    from torch.testing._internal.common_modules import ModuleErrorEnum

    if info.module_error_inputs_func is None:
        return []
    seed_both(0)
    name, found = info.module_cls.__name__, []
    for error in info.module_error_inputs_func(info, "cpu", torch.float32, False, True):
        given = error.module_error_input
        call = Call(name, given.constructor_input, given.forward_input)
        found.append((call, error.error_on == ModuleErrorEnum.CONSTRUCTION_ERROR, error.error_regex))
    return found


def check_error_call(call, in_construction, pattern):
    return guarded("error input", call, _check_error_call, call, in_construction, pattern)


def _check_error_call(call, in_construction, pattern):
    ours, theirs = construct(call)
    if not in_construction:
        assert ours.error is None, f"raised {ours.describe_error()}"
        ours, theirs = (run.outcome for run in run_both(call, ours.value, theirs.value))
    if theirs.error is None:
        return []
    return compare_errors(ours, theirs, pattern)
