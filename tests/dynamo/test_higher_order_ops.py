"""`cond` and `while_loop`: called from Python, captured as nodes with graphs, with gradients, and what they refuse."""

import logging
import warnings

import pytest
import torch

import readtorch
from readtorch import _dynamo  # noqa: F401  `readtorch._dynamo` is there


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def outcome(lib, call):
    """What a call gives, or its error: for those of the compiler the lines that PyTorch and we have in common."""
    lib._dynamo.reset()
    try:
        return plain(lib, call(lib))
    except Exception as error:
        kind, text = type(error).__name__, str(error)
        if kind == "UncapturedHigherOrderOpError":
            shown = [line for line in text.split("\n") if line][:4]
            left_out = ("  Higher Order", "from user code", "   File")
            text = "\n".join(line.split(" Found in")[0] for line in shown if not line.startswith(left_out))
        if kind == "TorchRuntimeError":
            text = text.partition("\n")[0]
        return kind, text.replace("readtorch._tensor.Tensor", "torch.Tensor").replace(", <class 'torch.SymInt'>", "")


def plain(lib, value):
    if isinstance(value, lib.Tensor):
        node = type(value.grad_fn).__name__ if value.grad_fn is not None else None
        return str(value.dtype).rpartition(".")[2], rounded(value.detach().tolist()), value.requires_grad, node
    if isinstance(value, (tuple, list)):
        return type(value)(plain(lib, each) for each in value)
    return {key: plain(lib, each) for key, each in value.items()} if isinstance(value, dict) else value


def rounded(found):
    if isinstance(found, list):
        return [rounded(each) for each in found]
    return round(found, 4) if isinstance(found, float) else found


def ones(lib):
    return lib.ones(3)


CALLS = {
    "true": lambda T: T.cond(ones(T).sum() > 0, lambda a: a + 1, lambda a: a - 1, (ones(T),)),
    "false": lambda T: T.cond(ones(T).sum() < 0, lambda a: a + 1, lambda a: a - 1, (ones(T),)),
    "a bool": lambda T: T.cond(True, lambda a: a, lambda a: 1, ("anything",)),
    "a float element": lambda T: T.cond(ones(T)[:1], lambda a: a + 1, lambda a: a - 1, (ones(T),)),
    "text": lambda T: T.cond("s", lambda a: a, lambda a: a, (ones(T),)),
    "three elements": lambda T: T.cond(ones(T) > 0, lambda a: a, lambda a: a, (ones(T),)),
    "no function": lambda T: T.cond(ones(T).sum() > 0, 3, lambda a: a, (ones(T),)),
    "operands that are none": lambda T: T.cond(ones(T).sum() > 0, lambda a: a + 1, lambda a: a, (3,)),
    "a tuple on one side": lambda T: T.cond(ones(T).sum() > 0, lambda a: (a + 1,), lambda a: a - 1, (ones(T),)),
    "other sizes": lambda T: T.cond(ones(T).sum() > 0, lambda a: a[:2] + 1, lambda a: a - 1, (ones(T),)),
    "other numbers": lambda T: T.cond(ones(T).sum() > 0, lambda a: (a + 1, 3), lambda a: (a, 4), (ones(T),))[1:],
    "other nests": lambda T: T.cond(ones(T).sum() > 0, lambda a: {"k": a + 1}, lambda a: (a - 1,), (ones(T),)),
    "None": lambda T: T.cond(ones(T).sum() > 0, lambda a: None, lambda a: None, (ones(T),)),
    "bools": lambda T: T.cond(ones(T).sum() > 0, lambda a: (a + 1, True), lambda a: (a - 1, False), (ones(T),)),
    "floats": lambda T: T.cond(ones(T).sum() > 0, lambda a: (a + 1, 1.5), lambda a: (a - 1, 2.5), (ones(T),)),
    "another dtype": lambda T: T.cond(ones(T).sum() > 0, lambda a: (a + 1).int(), lambda a: a - 1, (ones(T),)),
    "an input returned": lambda T: T.cond(ones(T).sum() > 0, lambda a: a, lambda a: a - 1, (ones(T),)),
    "a view returned": lambda T: T.cond(ones(T).sum() > 0, lambda a: a.view(-1), lambda a: a - 1, (ones(T),)),
    "an input written": lambda T: T.cond(ones(T).sum() > 0, lambda a: a.add_(1) + 1, lambda a: a - 1, (ones(T),)),
    "operators": lambda T: T.cond(ones(T).sum() > 0, T.sin, T.cos, (ones(T),)),
    "a key that is missing": lambda T: T.cond(ones(T).sum() > 0, lambda a: {}["k"], lambda a: a - 1, (ones(T),)),
    "sizes that do not fit": lambda T: T.cond(ones(T).sum() > 0, lambda a: a + T.ones(5), lambda a: a, (ones(T),)),
    "the operator": lambda T: T.ops.higher_order.cond(ones(T).sum() > 0, lambda a: (a,), lambda a: (a,), (ones(T),)),
    "loop": lambda T: T.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (T.tensor(0), ones(T))),
    "loop with a number": lambda T: T.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, ones(T))),
    "loop without a turn": lambda T: T.while_loop(
        lambda i, x: i < 0, lambda i, x: (i + 1, x * 2), (T.tensor(0), ones(T))
    ),
    "loop that never ends": lambda T: T.while_loop(lambda x: True, lambda x: (x * 2,), (ones(T),)),
    "a condition of one element": lambda T: T.while_loop(lambda x: x[:1] > 0, lambda x: (x * 2,), (ones(T),)),
    "a condition that is a float": lambda T: T.while_loop(lambda x: x.sum(), lambda x: (x * 2,), (ones(T),)),
    "one result too few": lambda T: T.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1,), (T.tensor(0), ones(T))),
    "another size": lambda T: T.while_loop(lambda x: x.sum() < 9, lambda x: (x[:-1] * 2,), (ones(T),)),
    "a carried text": lambda T: T.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x), ("a", ones(T))),
    "a carried float": lambda T: T.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x), (0.5, ones(T))),
    "no body": lambda T: T.while_loop(lambda x: x.sum() < 3, 3, (ones(T),)),
    "an alias in a loop": lambda T: T.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x), (T.tensor(0), ones(T))),
}


@pytest.mark.parametrize("name", CALLS)
def test_called_from_python(name):
    assert outcome(readtorch, CALLS[name]) == outcome(torch, CALLS[name])


def gradients(lib):
    x, w, u = (lib.tensor(v, requires_grad=True) for v in ([1.0, 2.0, -0.5], 2.0, 3.0))
    found = []
    for limit in (0.0, 9.0):
        y = lib.cond(x.sum() > limit, lambda a, b, u: (a * w).sin(), lambda a, b, u: a + b * b, (x, w, u))
        found += [plain(lib, y), [plain(lib, g) for g in lib.autograd.grad(y.sum(), (x, w))]]
        twice = lib.cond(x.sum() > limit, lambda a: a**3 * w, lambda a: a**2, (x,))
        found.append(plain(lib, lib.autograd.grad(twice.sum(), x, create_graph=True)))
    n, z = lib.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * a * w), (lib.tensor(0), x))
    return found + [plain(lib, n)[1], plain(lib, z), [plain(lib, g) for g in lib.autograd.grad(z.sum(), (x, w))]]


def test_gradients():
    """Of the function that was taken; zeros for what it does not read."""
    assert gradients(readtorch) == gradients(torch)


def test_without_grad_mode_a_branch_may_write():
    def program(lib):
        x = lib.ones(3)
        with lib.no_grad():
            y = lib.cond(x.sum() > 0, lambda a: a.add_(1), lambda a: a - 1, (x,))
            same = lib.cond(x.sum() > 0, lambda a: a, lambda a: a - 1, (x,)) is x
        return plain(lib, (x, y)), same

    assert program(readtorch) == program(torch)


def graphs_of(lib, function, *args):
    """The nodes of the graph and of those within, by what they call."""
    seen = []

    def backend(module, inputs):
        seen.append(module)
        return module.forward

    lib._dynamo.reset()
    lib.compile(function, backend=backend)(*args)
    return [nodes_of(module) for module in seen]


def nodes_of(module):
    nodes = [
        (node.op, shown(node), len(node.all_input_nodes)) for node in module.graph.nodes if node.op != "placeholder"
    ]
    places = len([node for node in module.graph.nodes if node.op == "placeholder"])
    return places, nodes, {name: nodes_of(each) for name, each in module.named_children()}


def shown(node):
    return node.target if isinstance(node.target, str) else node.target.__name__


def branches(lib):
    def f(x, y):
        z, w = x * 2, 3
        return lib.cond(x.sum() > 0, lambda a: a.sin() + z, lambda a: a.cos() * y * w, (x,))

    return f, lib.ones(3), lib.ones(3)


def nested(lib):
    def f(x):
        def inner(a):
            return lib.cond(a.max() > 2, lambda q: q.sin(), lambda q: q.cos(), (a,))

        return lib.cond(x.sum() > 0, inner, lambda a: a - 1, (x,))

    return f, lib.ones(3)


def loop(lib):
    def f(x, k):
        return lib.while_loop(lambda x: x.sum() < 20, lambda x: (x * 2 + k,), (x,))

    return f, lib.ones(3), lib.ones(3)


def loop_with_a_number(lib):
    def f(x):
        n, x = lib.while_loop(lambda n, x: n < 3, lambda n, x: (n + 1, x * 2), (0, x))
        return n, x

    return f, lib.ones(3)


@pytest.mark.parametrize("program", [branches, nested, loop, loop_with_a_number])
def test_the_graph_is_pytorchs(program):
    """One node, whose functions are graphs with the same operands. (PyTorch reads the results of a loop in another order.)"""
    reached, expected = (graphs_of(lib, *program(lib)) for lib in (readtorch, torch))
    assert reached == expected


def test_code_of_the_graph():
    seen = []
    f, *args = branches(readtorch)
    readtorch.compile(f, backend=lambda module, inputs: seen.append(module) or module.forward)(*args)
    assert "torch.ops.higher_order.cond(gt, cond_true_0, cond_false_0, (l_x_, mul, l_y_))" in seen[0].code


def test_a_predicate_that_is_known():
    """One of the functions is chosen for good, with a warning."""

    def caught(lib):
        lib._dynamo.reset()
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            f = lib.compile(lambda x: lib.cond(x.dim() > 0, lambda a: a + 1, lambda a: a - 1, (x,)), backend="eager")
            result = f(lib.ones(3)).tolist()
        return result, [str(w.message) for w in found if "Pred is" in str(w.message)]

    assert caught(readtorch) == caught(torch)


def test_functions_made_for_a_call_are_known_by_their_code():
    """Each call of `cond` gets new functions: they are captured once."""
    from readtorch._dynamo.utils import counters

    readtorch._dynamo.reset()
    counters.clear()
    for i in range(20):
        x = readtorch.full((3,), float(i))
        assert (
            readtorch.cond(x.sum() > 30, lambda a: a + 1, lambda a: a - 1, (x,)).tolist()
            == [i + 1 if i > 10 else i - 1] * 3
        )
    assert counters["stats"]["unique_graphs"] == 1
