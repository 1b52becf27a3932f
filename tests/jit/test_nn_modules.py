"""Every layer of `nn`, scripted and traced here and in the reference: what compiles, what it computes, the
operators of its trace.
"""

import contextlib
import inspect
import io
import warnings
from functools import cache

import pytest
import torch
from torch.testing._internal.common_modules import module_db

import readtorch as rt
import readtorch.jit
from tests.conformance import more_modules
from tests.conformance.checks import translate_all
from tests.conformance.module_checks import calls_of, construct, runs_here
from tests.reference import assert_close, own_copy, seed_both

# What the reference cannot script: most use Python that TorchScript has not, a few are its bugs.
NOT_THERE = (
    "AdaptiveLogSoftmaxWithLoss",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "GaussianNLLLoss",
    "LinearCrossEntropyLoss",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "SyncBatchNorm",
    "TripletMarginWithDistanceLoss",
)
# Its scripted recurrent layers have no `forward` to call: two overloads stand in its place.
NOT_CALLED_THERE = ("GRU", "LSTM", "RNN")

# Operators of the traces that differ, and why.
OTHER_TRACE = {
    "AdaptiveLogSoftmaxWithLoss": "rows are counted in place: dead code elimination keeps that here",
    "BCELoss": "broadcast_shapes is computed here, of expanded zeros there",
    "GRUCell": "the cell writes in place there",
    "LSTMCell": "the cell writes in place there",
    "LinearCrossEntropyLoss": "an operator there, a function in Python here",
    "RNNCell": "the cell writes in place there",
    "Upsample": "recomputed sizes go through tensors there",
}


@cache
def infos():
    """Name -> ModuleInfo; lazy layers aside, which become others at the first call."""
    found = {}
    for info in module_db:
        if getattr(torch.nn, info.module_cls.__name__, None) is info.module_cls:
            found.setdefault(info.module_cls.__name__, info)
    for name, info in more_modules.infos().items():
        found.setdefault(name, info)
    return {name: info for name, info in sorted(found.items()) if not name.startswith("Lazy")}


def calls(name, count=3):
    """A few calls, spread over all there are; the last in eval mode."""
    found, count = [], 2 if name.startswith("Transformer") else count
    for training in (True, False):
        found += [c for c in calls_of(infos()[name], torch.float32, training) if runs_here(c)]
    step = max(1, (len(found) - 1) // (count - 1))
    found = [c for c in found[::step][:count] if all(m.error is None for m in construct(c))]
    # The reference's scripted embedding bag looks the rows up before it shortens them.
    return [c for c in found if name != "EmbeddingBag" or "max_norm" not in c.construction.kwargs]


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def outcome(function, *args, **kwargs):
    """(result, error)"""
    try:
        return function(*args, **kwargs), None
    except Exception as error:
        return None, error


def arguments(call, translated):
    given = own_copy((call.forward.args, call.forward.kwargs))
    return translate_all(given) if translated else given


def modules(call):
    ours, theirs = construct(call)
    return ours.value, theirs.value


CONTAINERS = ("ModuleDict", "ModuleList", "ParameterDict", "ParameterList")


def names():
    return [name for name in infos() if name not in CONTAINERS]


@pytest.mark.parametrize("name", [n for n in names() if n not in NOT_THERE + NOT_CALLED_THERE])
def test_scripted(name):
    compared = 0
    for call in calls(name):
        ours, theirs = modules(call)
        theirs, error = outcome(torch.jit.script, theirs)
        if error is not None:
            torch.jit._recursive.concrete_type_store.type_store.clear()  # else it cannot try the class again
            continue
        ours = rt.jit.script(ours)
        (their_args, their_kwargs), (our_args, our_kwargs) = arguments(call, False), arguments(call, True)
        seed_both(0)
        expected, error = outcome(theirs, *their_args, **their_kwargs)
        if error is None:
            seed_both(0)
            assert_close(ours(*our_args, **our_kwargs), expected, rtol=1e-4, atol=1e-5)
        else:
            with pytest.raises(Exception):
                ours(*our_args, **our_kwargs)
        compared += 1
    assert compared


def traced(library, module, args, kwargs):
    """The operators of a module's trace, every call inlined."""
    names = inspect.signature(module.forward).parameters
    given = {"example_inputs": args}
    if kwargs:
        given = {"example_kwarg_inputs": {**dict(zip(names, args)), **kwargs}}
    graph = library.jit.trace(module, check_trace=False, strict=False, **given).inlined_graph
    return [n.kind() for n in graph.nodes() if n.kind() not in ("prim::Constant", "prim::GetAttr")]


def differing_traces(name):
    """(calls that both can trace, how many of them give other operators here)"""
    compared = differing = 0
    for call in calls(name):
        ours, theirs = modules(call)
        expected, error = outcome(traced, torch, theirs, *arguments(call, False))
        if error is None:
            found, error = outcome(traced, rt, ours, *arguments(call, True))
            compared += 1
            differing += error is not None or found != expected
    return compared, differing


@pytest.mark.parametrize("name", [n for n in names() if n not in OTHER_TRACE])
def test_traced(name):
    assert differing_traces(name)[1] == 0


@pytest.mark.parametrize("name", OTHER_TRACE)
def test_known_differences_of_traces(name):
    """Strict: a trace that has become the reference's leaves the list."""
    assert differing_traces(name)[1] > 0


ATTENTION = [{}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"kdim": 3, "vdim": 5}, {"batch_first": True}]


class Attended:
    """Scripted attention with masks and weights, per library."""

    def __init__(self, library, settings):
        class Attend(library.nn.Module):
            def __init__(self):
                super().__init__()
                self.attention = library.nn.MultiheadAttention(4, 2, **settings)

            def forward(self, q, k, v):
                return self.attention(q, k, v, need_weights=True)

        library.manual_seed(0)
        self.module = Attend()
        self.inputs = (
            library.randn(3, 2, 4),
            library.randn(5 if "batch_first" not in settings else 3, 2, settings.get("kdim", 4)),
            library.randn(5 if "batch_first" not in settings else 3, 2, settings.get("vdim", 4)),
        )


@pytest.mark.parametrize("settings", ATTENTION, ids=str)
def test_attention(settings):
    theirs, ours = Attended(torch, settings), Attended(rt, settings)
    operators = [traced(lib, each.module, each.inputs, {}) for lib, each in ((torch, theirs), (rt, ours))]
    assert operators[0] == operators[1]
    their_script, our_script = torch.jit.script(theirs.module.attention), rt.jit.script(ours.module.attention)
    causal = [lib.triu(lib.full((3, 5), float("-inf")), diagonal=1) for lib in (torch, rt)]
    for their_given, our_given in (
        ({}, {}),
        ({"need_weights": False}, {"need_weights": False}),
        ({"average_attn_weights": False}, {"average_attn_weights": False}),
    ):
        assert_close(
            our_script(*ours.inputs, **our_given), their_script(*theirs.inputs, **their_given), rtol=1e-4, atol=1e-5
        )
    if "batch_first" not in settings:
        assert_close(
            our_script(*ours.inputs, attn_mask=causal[1]),
            their_script(*theirs.inputs, attn_mask=causal[0]),
            rtol=1e-4,
            atol=1e-5,
        )
    for scripted, eager in zip(our_script(*ours.inputs), ours.module.attention(*ours.inputs)):
        assert rt.allclose(scripted, eager, rtol=1e-5, atol=1e-6)


def test_encoder_with_padding():
    def results(library):
        library.manual_seed(0)
        layer = library.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        encoder = library.nn.TransformerEncoder(layer, 2).eval()
        x, padding = library.randn(2, 3, 4), library.tensor([[False, False, True], [False, False, False]])
        scripted = library.jit.script(encoder)
        with library.no_grad():
            return scripted(x), scripted(x, src_key_padding_mask=padding)

    assert_close(results(rt), results(torch), rtol=1e-4, atol=1e-5)


def test_the_grad_mode_is_asked_for_at_each_run():
    """It is no constant of the program, though it has no input."""

    def graph_is_recorded(x):
        return rt.is_grad_enabled()

    for _ in range(2):
        scripted = rt.jit.script(graph_is_recorded)
        assert scripted(rt.ones(1)) is True
        with rt.no_grad():
            assert scripted(rt.ones(1)) is False


def test_a_failed_class_can_be_compiled_again():
    class Fails(rt.nn.Module):
        def forward(self, x):
            return x.no_such_method()

    for _ in range(2):
        with pytest.raises(RuntimeError, match="no_such_method"):
            rt.jit.script(Fails())


def test_functions_of_functional_alone():
    x, y = torch.tensor([1.0, -2.0, 3.0]), rt.tensor([1.0, -2.0, 3.0])
    for name in ("relu", "mse_loss", "softsign"):
        theirs = torch.jit.script(getattr(torch.nn.functional, name))
        ours = rt.jit.script(getattr(rt.nn.functional, name))
        given = ((x,), (y,)) if name != "mse_loss" else ((x, x * 2), (y, y * 2))
        assert_close(ours(*given[1]), theirs(*given[0]))


def test_autograd_function_in_a_program():
    """It stays a call to Python, and its backward runs."""
    module = rt.nn.CrossMapLRN2d(3)
    scripted = rt.jit.script(module)
    assert "^CrossMapLRN2d[]()(" in str(scripted.graph) and "^CrossMapLRN2d()(input" in scripted.code
    grads = []
    for each in (module, scripted):
        x = rt.arange(8.0).reshape(1, 2, 2, 2).requires_grad_()
        each(x).sum().backward()
        grads.append(x.grad)
    assert rt.equal(*grads)
