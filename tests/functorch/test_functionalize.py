"""torch.func.functionalize: programs that write become ones that do not, with PyTorch's graphs, values and refusals."""

import importlib

import pytest
import torch

import readtorch as rt

SIDES = (torch, rt)
REMOVE = ("mutations", "mutations_and_views")


def view_of_a_view(T, x):
    y = x.view(4)
    z = y[0]
    z.add_(1)
    x.mul_(2)
    return y + 1


def input_written(T, x):
    x.add_(1)
    return x * 2


def diagonal_and_t(T, x):
    t = T.zeros(2, 2)
    t.diagonal().copy_(x[0])
    return t, x.t().relu_()


def slice_and_fill(T, x):
    y = x[:1]
    y += 1
    x[1] = 3.0
    return x.sum(), y


def out_argument(T, x):
    out = T.empty(2, 2)
    T.add(x, x, out=out)
    return out


def split(T, x):
    a, b = x.split(1)
    a.zero_()
    return x + 1, b


def unbind(T, x):
    y = x.clone()
    y.unbind(1)[1].mul_(3)
    return y


def transposed_in_place(T, x):
    y = x + 0
    y.t_()
    y.add_(1)
    return y


def expanded(T, x):
    y = x * 1
    z = y.expand(3, 2, 2)
    w = y.unsqueeze(0).squeeze(0)
    w.sub_(1)
    return z + 1


def batch_norm(T, x):
    mean, var = T.zeros(2), T.ones(2)
    return T.nn.functional.batch_norm(x, mean, var, training=True), mean


def resized_to_fewer(T, x):
    y = x.clone()
    y.resize_(2)
    y += 1
    return y


def resized_to_more(T, x):
    y = x.clone()
    y.resize_(6)
    y.fill_(1)
    return y, y.shape


def detached(T, x):
    y = x.detach()
    y.mul_(2)
    return x


def drawn(T, x):
    y = T.empty_like(x)
    y.uniform_(0, 0)
    y.fill_(2)
    return y, y.normal_(0, 0)


def activation(T, x):
    return T.nn.functional.relu(x - 1, inplace=True).clamp_(max=1).chunk(2)[0].squeeze_(0)


def reshape_that_copies(T, x):
    y = x.permute(1, 0)
    z = y.reshape(4)
    y[0, 0] = 5
    return z


def unfolded(T, x):
    y = x.unfold(0, 1, 1)
    y.add_(1)
    return x


def as_other_type(T, x):
    y = x.clone()
    y.view(T.int32).mul_(2)
    return y


PROGRAMS = [
    view_of_a_view, input_written, diagonal_and_t, slice_and_fill, out_argument, split, unbind, transposed_in_place, expanded,
    batch_norm, resized_to_fewer, detached, drawn, activation, reshape_that_copies, unfolded,
]  # fmt: skip


def of(T, module):
    return importlib.import_module(f"{T.__name__}.{module}")


def example(T):
    return T.arange(4.0).view(2, 2)


def functional(T, program, remove):
    def run(x):
        return program(T, x)

    return of(T, "func").functionalize(run, remove=remove)


def lists(T, tree):
    return [t.tolist() if isinstance(t, T.Tensor) else t for t in of(T, "utils._pytree").tree_leaves(tree)]


@pytest.mark.parametrize("remove", REMOVE)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_as_pytorch(program, remove):
    theirs, ours = (
        of(T, "fx.experimental.proxy_tensor").make_fx(functional(T, program, remove))(example(T)).code for T in SIDES
    )
    assert ours == without_reserve(theirs)


def without_reserve(code):
    """Without the buffer that PyTorch's batch norm makes for cuDNN, which nobody uses."""
    return "\n".join(line for line in code.split("\n") if "empty.memory_format([0], dtype = torch.uint8" not in line)


@pytest.mark.parametrize("remove", REMOVE)
@pytest.mark.parametrize("program", [*PROGRAMS, resized_to_more, as_other_type], ids=lambda f: f.__name__)
def test_as_the_program_itself(program, remove):
    if program is reshape_that_copies and remove == "mutations_and_views":
        pytest.skip("a copy of a permuted view is contiguous, so that its reshape is a view: in PyTorch, too")
    x, y = example(rt), example(rt)
    assert lists(rt, functional(rt, program, remove)(x)) == lists(rt, program(rt, y))
    assert x.tolist() == y.tolist()


def test_sizes_and_strides_after_a_view_in_place():
    def run(T, seen):
        def program(x):
            y = T.ones(2, 3) + x.sum()
            y.t_()
            seen.append((tuple(y.shape), y.stride(), y.is_contiguous()))
            y.unsqueeze_(1)
            seen.append((tuple(y.shape), y.stride(), y.is_contiguous()))
            return y

        of(T, "func").functionalize(program)(example(T))
        return seen

    assert run(rt, []) == run(torch, [])


@pytest.mark.parametrize("remove", REMOVE)
def test_a_gradient(remove):
    """The backward pass writes, too, and is functional."""

    def loss(T, x):
        y = x * 2
        y[0].mul_(3)
        return (y * y).sum()

    def code(T):
        gradient = of(T, "func").grad(lambda x: loss(T, x))
        function = of(T, "func").functionalize(gradient, remove=remove)
        return function(example(T)).tolist()

    assert code(rt) == code(torch)


def test_no_writes_are_left():
    graph = (
        of(rt, "fx.experimental.proxy_tensor")
        .make_fx(functional(rt, batch_norm, "mutations_and_views"))(example(rt))
        .graph
    )
    schemas = [
        node.target._schema for node in graph.nodes if node.op == "call_function" and hasattr(node.target, "_schema")
    ]
    assert schemas and not any(schema.is_mutable for schema in schemas)


def view_then_as_strided(T, x):
    y = x.contiguous().view(-1).as_strided((2,), (2,), 1)
    y.neg_()


def view_resized(T, x):
    y = x.clone()[0]
    y.resize_(8)


def write_to_the_outside(T, x):
    OUTSIDE[T].add_(x)


OUTSIDE = {T: T.zeros(2, 2) for T in SIDES}


@pytest.mark.parametrize("program", [view_then_as_strided, view_resized, write_to_the_outside])
def test_refusals(program):
    said = []
    for T in SIDES:
        with pytest.raises(RuntimeError) as error:
            functional(T, program, "mutations")(example(T))
        said.append(str(error.value))
    assert said[0].endswith(said[1])  # one of PyTorch's is an internal assertion, with a place in its source before it


def test_an_unknown_form():
    said = []
    for T in SIDES:
        with pytest.raises(RuntimeError) as error:
            of(T, "func").functionalize(abs, remove="everything")
        said.append(str(error.value))
    assert said[0] == said[1]
