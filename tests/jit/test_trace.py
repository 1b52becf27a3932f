"""Traces of the same functions and modules, here and in the reference: results, graphs, warnings, errors."""

import io
import re
import warnings

import numpy as np
import pytest
import torch

import readtorch as rt
import readtorch.jit
from readtorch.csrc.jit.ir import parse_ir
from tests.jit.traced_programs import FUNCTIONS, X, modules
from tests.reference import assert_close


def with_tensors(library, value):
    if isinstance(value, np.ndarray):
        return library.from_numpy(value.copy())
    if isinstance(value, dict):
        return {key: with_tensors(library, each) for key, each in value.items()}
    return type(value)(with_tensors(library, each) for each in value)


def flat(value):
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for each in value for leaf in flat(each)] if isinstance(value, (list, tuple)) else [value]


def operators(graph):
    """The kinds of a graph's nodes in order, constants aside."""
    return [node.kind() for node in graph.nodes() if node.kind() != "prim::Constant"]


def quietly(library, function, inputs, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return library.jit.trace(function, inputs, **options)


def of_library(library, function, count):
    """The program as a function of tensors only, with names for its parameters."""
    return (lambda x: function(library, x)) if count == 1 else (lambda x, y: function(library, x, y))


@pytest.mark.parametrize("function, inputs", [pytest.param(f, i, id=f.__name__) for f, i in FUNCTIONS])
def test_functions(function, inputs):
    theirs = of_library(torch, function, len(inputs))
    ours = of_library(rt, function, len(inputs))
    their_trace = quietly(torch, theirs, with_tensors(torch, tuple(inputs)), check_trace=False, strict=False)
    our_trace = quietly(rt, ours, with_tensors(rt, tuple(inputs)), check_trace=False, strict=False)
    our_trace.graph.lint()
    assert operators(our_trace.graph) == operators(their_trace.graph)
    other = [i if isinstance(i, (tuple, dict, list)) else i * 1.5 + 0.25 for i in inputs]
    assert_close(
        flat(our_trace(*with_tensors(rt, tuple(other)))), flat(their_trace(*with_tensors(torch, tuple(other))))
    )
    text = str(our_trace.graph)
    assert str(parse_ir(text)) == text


@pytest.mark.parametrize("function, inputs", [pytest.param(f, i, id=f.__name__) for f, i in FUNCTIONS[:6]])
def test_types_and_names_are_the_references(function, inputs):
    graphs = []
    for library in (torch, rt):
        program = of_library(library, function, len(inputs))
        graph = quietly(library, program, with_tensors(library, tuple(inputs)), check_trace=False).graph
        graphs.append(
            [
                (n.kind(), [str(o.type()) if library is torch else o.type().annotation_str for o in n.outputs()])
                for n in graph.nodes()
            ]
        )
    assert graphs[0] == graphs[1]


@pytest.mark.parametrize("name", list(modules(torch)))
def test_modules(name):
    torch.manual_seed(0)
    (theirs, inputs), (ours, _) = modules(torch)[name], modules(rt)[name]
    theirs.eval(), ours.eval()
    ours.load_state_dict({key: rt.from_numpy(value.numpy().copy()) for key, value in theirs.state_dict().items()})
    their_inputs, our_inputs = with_tensors(torch, tuple(inputs)), with_tensors(rt, tuple(inputs))
    their_trace, our_trace = (quietly(torch, theirs, their_inputs, check_trace=False), quietly(rt, ours, our_inputs))
    for graph in ("graph", "inlined_graph"):
        getattr(our_trace, graph).lint()
        assert operators(getattr(our_trace, graph)) == operators(getattr(their_trace, graph)), graph
    expected, found = flat(their_trace(*their_inputs)), flat(our_trace(*our_inputs))
    for ours_, theirs_ in zip(found, expected):
        np.testing.assert_allclose(ours_.detach().numpy(), theirs_.detach().numpy(), rtol=1e-4, atol=1e-5)
    assert [n for n, _ in our_trace.named_parameters()] == [n for n, _ in their_trace.named_parameters()]


def test_gradients_reach_parameters_and_inputs():
    model = rt.nn.Sequential(rt.nn.Linear(3, 4), rt.nn.Tanh(), rt.nn.Linear(4, 1))
    x = rt.from_numpy(X.copy()).requires_grad_()
    trace = quietly(rt, model, x)
    trace(x).sum().backward()
    found, gradient = [p.grad.clone() for p in model.parameters()], x.grad.clone()
    model.zero_grad()
    x.grad = None
    model(x).sum().backward()
    for a, b in zip(found, model.parameters()):
        assert rt.equal(a, b.grad)
    assert rt.equal(gradient, x.grad)


# --------------------------------------------------------------------------------------------------- warnings


def leaks(library, x):
    if x.sum() > 0:
        pass
    a, b, c = int(x[0, 0]), float(x[0, 0]), x[0, 0].item()
    x.tolist(), len(x), x.numpy()
    for row in x:
        row = row + a + b + c
    return x * library.tensor([1.0, 2.0, 3.0]) + row


def warnings_of(library, function, *inputs, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        library.jit.trace(function, inputs, check_trace=False, **options)
    return [
        (w.category.__name__, str(w.message), w.filename == __file__)
        for w in caught
        if w.category is not DeprecationWarning
    ]


def test_warns_where_python_values_leak():
    found = warnings_of(rt, lambda x: leaks(rt, x), rt.from_numpy(X.copy()))
    assert found == warnings_of(torch, lambda x: leaks(torch, x), torch.from_numpy(X.copy()))
    assert len(found) == 9


@pytest.mark.parametrize("name", ["resize_", "resize_as_"])
def test_a_tensor_that_is_resized_becomes_a_constant(name):
    traces = []
    for lib in (torch, rt):
        size = 1 if name == "resize_" else lib.zeros(1)
        with pytest.warns(lib.jit.TracerWarning, match=f"{name} can't be represented in the JIT at the moment"):
            traces.append(lib.jit.trace(lambda x: getattr(x.clone(), name)(size) * 2, lib.ones(2)))
    theirs, ours = traces
    assert operators(ours.graph) == operators(theirs.graph) == ["aten::mul"]
    assert ours(rt.zeros(2)).tolist() == theirs(torch.zeros(2)).tolist() == [2.0]


def test_script_if_tracing_keeps_both_branches_and_the_inputs_name():
    def double_or_flip(x):
        if x.sum() > 0:
            return x * 2
        return -x

    traces = [lib.jit.trace(lib.jit.script_if_tracing(double_or_flip), lib.ones(2)) for lib in (torch, rt)]
    theirs, ours = traces
    assert str(ours.graph) == str(theirs.graph)
    for values in ([1.0, 1.0], [-1.0, -1.0]):
        assert ours(rt.tensor(values)).tolist() == theirs(torch.tensor(values)).tolist()


def test_warns_of_lists():
    ours = warnings_of(rt, lambda x: [x, x + 1], rt.ones(2))
    theirs = warnings_of(torch, lambda x: [x, x + 1], torch.ones(2))
    assert [w[:2] for w in ours] == [w[:2] for w in theirs] and ours


# ----------------------------------------------------------------------------------------------------- errors


def error_of(library, function, inputs, **options):
    with pytest.raises(Exception) as caught:
        quietly(library, function, inputs, **options)
    return caught.type.__name__, str(caught.value)


@pytest.mark.parametrize(
    "program",
    [
        lambda T: (lambda x: 3, (T.ones(1),)),
        lambda T: (lambda x: (x, 3), (T.ones(1),)),
        lambda T: (lambda x: None, (T.ones(1),)),
        lambda T: (lambda x: {"a": x}, (T.ones(1),)),
        lambda T: (lambda x: x, (1,)),
    ],
    ids="int pair None dict input".split(),
)
def test_errors_have_the_references_words(program):
    assert error_of(rt, *program(rt)) == error_of(torch, *program(torch))


def test_a_tensor_that_requires_grad_is_no_constant():
    for library in (torch, rt):
        w = library.ones(3, requires_grad=True)
        kind, message = error_of(library, lambda x: x * w, (library.ones(3),))
        assert kind == "RuntimeError"
        assert message.startswith(
            "Cannot insert a Tensor that requires grad as a constant. Consider making it a parameter or "
            "input, or detaching the gradient\nTensor:\n"
        )


def test_wrong_arguments_of_a_trace():
    calls = [(), (3,), (1, 2, 3)]
    for args in calls:
        texts = []
        for library in (torch, rt):
            trace = quietly(library, lambda x, y: x + y, (library.ones(1), library.ones(1)))
            with pytest.raises(RuntimeError) as caught:
                trace(*args)
            texts.append(str(caught.value))
        assert texts[0] == texts[1]


# ------------------------------------------------------------------------------------------------ check_trace


def test_check_trace_finds_what_differs_from_run_to_run():
    state = []

    def counts(x):
        state.append(0)
        return x * len(state)

    with pytest.raises(rt.jit.TracingCheckError, match="Tensor-valued Constant nodes differed"):
        quietly(rt, counts, (rt.ones(2),))


def test_check_trace_finds_another_graph():
    state = []

    def grows(x):
        state.append(0)
        return x + 1 if len(state) % 2 else x - 1

    with pytest.raises(rt.jit.TracingCheckError, match="Graphs differed across invocations"):
        quietly(rt, grows, (rt.ones(2),))


def test_check_trace_warns_of_random_nodes():
    with pytest.warns(rt.jit.TracerWarning, match="Trace had nondeterministic nodes"):
        rt.jit.trace(lambda x: rt.dropout(x, 0.5, True), (rt.ones(50),))


def test_check_inputs_take_the_other_branch():
    def branch(x):
        return x * 2 if x.sum() > 0 else x - 1

    with pytest.warns(rt.jit.TracerWarning, match="does not match"), pytest.raises(rt.jit.TracingCheckError):
        rt.jit.trace(branch, (rt.ones(2),), check_inputs=[(-rt.ones(2) * 3,)])


# ----------------------------------------------------------------------------------------------------- others


def test_trace_module_has_several_methods():
    class Two(rt.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = rt.nn.Linear(2, 2)

        def forward(self, x):
            return self.fc(x)

        def weighted(self, w):
            return w * self.fc.weight

    model = Two()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace = rt.jit.trace_module(model, {"forward": rt.ones(1, 2), "weighted": rt.ones(2, 2)})
    assert rt.equal(trace(rt.ones(3, 2)), model(rt.ones(3, 2)))
    assert rt.equal(trace.weighted(rt.ones(2, 2) * 3), model.weighted(rt.ones(2, 2) * 3))


def test_keyword_inputs():
    trace = quietly(rt, lambda a, b: a - b, None, example_kwarg_inputs={"b": rt.ones(2), "a": rt.zeros(2)})
    assert trace(b=rt.ones(2), a=rt.ones(2) * 3).tolist() == [2, 2]


def test_a_trace_inside_of_a_trace_is_a_call():
    inner = quietly(rt, lambda x: x * 2, (rt.ones(2),))
    outer = quietly(rt, lambda x: inner(x) + 1, (rt.ones(2),))
    assert operators(outer.graph) == ["prim::CallFunction", "aten::add"]
    assert operators(outer.inlined_graph) == ["aten::mul", "aten::add"]
    assert outer(rt.ones(2) * 3).tolist() == [7, 7]


def test_is_tracing():
    seen = []
    quietly(rt, lambda x: (seen.append(rt.jit.is_tracing()), x + 1)[1], (rt.ones(1),), check_trace=False)
    assert seen == [True] and not rt.jit.is_tracing()


def test_an_error_inside_ends_the_trace():
    with pytest.raises(ZeroDivisionError):
        quietly(rt, lambda x: x / (1 // 0), (rt.ones(1),))
    assert not rt.jit.is_tracing() and isinstance(rt.ones(2).shape[0], int)


def test_force_outplace():
    trace = quietly(rt, lambda x: x.clone().add_(1).mul_(2), (rt.ones(2),), _force_outplace=True, check_trace=False)
    assert operators(trace.graph) == ["aten::clone", "aten::add", "aten::mul"]


# ------------------------------------------------------------------------------------------- autograd Functions


def functions_of(library):
    """Programs that call autograd Functions whose backward is not the derivative of forward."""

    class Scaled(library.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor, name, y):
            ctx.save_for_backward(y)
            return x * factor + y if name == "sum" else x

        @staticmethod
        def backward(ctx, grad):
            (y,) = ctx.saved_tensors
            return grad * 100, None, None, grad * y

    class Pair(library.autograd.Function):
        @staticmethod
        def forward(x, factor):
            return x * factor, x + 1

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.factor = inputs[1]

        @staticmethod
        def backward(ctx, first, second):
            return first * 7 * ctx.factor + second, None

    class Outer(library.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return Scaled.apply(x, 3, "sum", x) + 1

        @staticmethod
        def backward(ctx, grad):
            return grad * 11

    class Same(library.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 13

    def two_results(x):
        first, second = Pair.apply(x, 2.5)
        return first * 2, second

    def unused(x):
        Scaled.apply(x, 2, "sum", x)
        return x + 1

    return {
        "one_result": lambda x: Scaled.apply(x, 2, "sum", x * 3) * 2,
        "two_results": two_results,
        "nested": lambda x: Outer.apply(x),
        "returns_its_input": lambda x: Same.apply(x) * 2,
        "a_size_among_the_arguments": lambda x: Scaled.apply(x, 2, "sum", x.shape[0] * x),
        "unused": unused,
    }


@pytest.mark.parametrize("name", list(functions_of(rt)))
def test_the_backward_of_a_function_is_kept(name):
    graphs, found = [], []
    for library in (rt, torch):
        trace = quietly(library, functions_of(library)[name], library.ones(2))
        text = re.sub(r" # \S+:\d+:\d+|, Subgraph=<Graph>", "", str(trace.graph))
        graphs.append(text)
        for values in ([1.0, 2.0], [-1.0, 3.0]) * 2:  # PyTorch's second run is the optimized one
            x = library.tensor(values, requires_grad=True)
            results = flat(trace(x))
            sum(result.sum() for result in results).backward()
            found.append([result.tolist() for result in results] + [x.grad.tolist()])
    assert graphs[0] == graphs[1]
    assert str(parse_ir(graphs[0])) == graphs[0]
    assert found[:4] == found[4:]


def test_a_function_in_a_submodule_trains_its_layer_and_cannot_be_saved():
    grads, graphs = [], []
    for library in (rt, torch):

        class Gate(library.nn.Module):
            def forward(self, x, library=library):
                return functions_of(library)["returns_its_input"](x)

        net = library.nn.Sequential(library.nn.Linear(2, 2), Gate())
        with library.no_grad():
            net[0].weight.fill_(0.5)
        trace = quietly(library, net, library.ones(2))
        trace(library.tensor([1.0, -2.0])).sum().backward()
        grads.append(net[0].weight.grad.tolist())
        graphs.append(operators(trace.inlined_graph))
        with pytest.raises(RuntimeError, match="Could not export Python function call 'Same'"):
            library.jit.save(trace, io.BytesIO())
    assert grads == [[[26.0, -52.0]] * 2] * 2 and graphs[0] == graphs[1]


def test_a_function_that_writes_to_its_input_is_refused_when_it_runs():
    for library in (rt, torch):

        class Writes(library.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x.add_(1)

            @staticmethod
            def backward(ctx, grad):
                return grad

        trace = quietly(library, lambda x, F=Writes: F.apply(x * 1) * 2, library.ones(2), check_trace=False)
        with pytest.raises(RuntimeError, match="inplace Writes not supported in the JIT"):
            trace(library.ones(2))


def warnings_and_graph(library, function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trace = library.jit.trace(function, library.ones(2), check_trace=False)
    messages = [str(each.message) for each in caught if issubclass(each.category, library.jit.TracerWarning)]
    return messages, re.sub(r" # \S+:\d+:\d+", "", str(trace.graph))


def test_operators_that_return_a_bool_warn_of_nothing():
    for name, call in {
        "equal": lambda library, x: library.equal(x.abs(), x),
        "allclose": lambda library, x: library.allclose(x.abs(), x),
        "is_nonzero": lambda library, x: library.is_nonzero(x.sum() > 0),
    }.items():
        ours, theirs = (
            warnings_and_graph(library, lambda x, library=library: x * 2 if call(library, x) else -x)
            for library in (rt, torch)
        )
        assert ours == theirs and not ours[0], name
    assert "boolean" in warnings_and_graph(rt, lambda x: x * 2 if rt.allclose(x, x) and x.sum() > 0 else -x)[0][0]


def test_as_tensor_of_numbers_is_a_constant_and_warns():
    for make in (lambda library, x: library.as_tensor([1.0, 2.0]), lambda library, x: library.as_tensor(x)):
        ours, theirs = (
            warnings_and_graph(library, lambda x, library=library: x + make(library, x)) for library in (rt, torch)
        )
        assert ours == theirs and len(ours[0]) == 1
