"""What the kernels of ADInplaceOrView do: versions are counted, views know their base. Random programs, compared with PyTorch."""

import warnings
import weakref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import readtorch
from tests.programs import same

VIEWS = {
    "row": lambda T, x: x[0],
    "slice": lambda T, x: x[:, 1:],
    "t": lambda T, x: x.t(),
    "transpose": lambda T, x: x.transpose(0, 1),
    "permute": lambda T, x: x.permute(1, 0),
    "reshape": lambda T, x: x.reshape(-1),
    "view": lambda T, x: x.view(-1),
    "expand": lambda T, x: x.expand(2, *x.shape),
    "unsqueeze": lambda T, x: x.unsqueeze(0),
    "squeeze": lambda T, x: x.squeeze(),
    "diagonal": lambda T, x: x.diagonal(),
    "narrow": lambda T, x: x.narrow(0, 0, 1),
    "split": lambda T, x: x.split(1)[0],
    "chunk": lambda T, x: x.chunk(2)[-1],
    "unbind": lambda T, x: x.unbind()[0],
    "detach": lambda T, x: x.detach(),
    "data": lambda T, x: x.data,
    "bits": lambda T, x: x.view(T.int64),
    "alias": lambda T, x: T.ops.aten.alias(x),
    "as_strided": lambda T, x: x.as_strided((2,), (1,)),
    "exp": lambda T, x: x.exp(),
    "double": lambda T, x: x.to(T.float64),
    "contiguous": lambda T, x: x.contiguous(),
    "mul": lambda T, x: x * 2,
    "view_as": lambda T, x: x.view_as(x),
    "unfold": lambda T, x: x.unfold(0, 1, 1),
}
WRITES = {
    "add_": lambda T, x, y: x.add_(1),
    "mul_": lambda T, x, y: x.mul_(y.sum()),
    "zero_": lambda T, x, y: x.zero_(),
    "fill_": lambda T, x, y: x.fill_(3),
    "copy_": lambda T, x, y: x.copy_(y.sum()),
    "square_": lambda T, x, y: x.square_(),
    "relu_": lambda T, x, y: T.relu_(x),
    "relu6": lambda T, x, y: T.nn.functional.relu6(x, inplace=True),
    "selu": lambda T, x, y: T.nn.functional.selu(x, inplace=True),
    "abs_": lambda T, x, y: x.abs_(),
    "clamp_": lambda T, x, y: x.clamp_(0, 1),
    "masked_fill_": lambda T, x, y: x.masked_fill_(x > 0, 2.0),
    "index": lambda T, x, y: x.__setitem__(0, 1.0),
    "mask": lambda T, x, y: x.__setitem__(x > 0.5, 1.0),
    "float_power_": lambda T, x, y: x.float_power_(2),
    "foreach": lambda T, x, y: T._foreach_mul_([x], 1.0),
    "foreach twice": lambda T, x, y: T._foreach_mul_([x, x], 2.0),
    "add out": lambda T, x, y: T.add(x.detach(), 1, out=x.detach()),
    "add into": lambda T, x, y: T.add(T.ones(2), 1, out=x),
    "max out": lambda T, x, y: T.max(T.ones(2, 2, dtype=T.float64), 1, out=(x, T.zeros(2, dtype=T.int64))),
    "empty out": lambda T, x, y: T.ops.aten.empty.out(x.shape, out=x),
    "empty larger": lambda T, x, y: T.ops.aten.empty.out([3, 2], out=x),
    "ones out": lambda T, x, y: T.ops.aten.ones.out([2], out=x),
    "resize_": lambda T, x, y: x.resize_(2, 2),
    "resize larger": lambda T, x, y: x.resize_(3, 3),
    "t_": lambda T, x, y: x.t_(),
    "squeeze_": lambda T, x, y: x.squeeze_(),
    "unsqueeze_": lambda T, x, y: x.unsqueeze_(0),
    "requires_grad_": lambda T, x, y: y.requires_grad_(),
    "uniform_": lambda T, x, y: x.uniform_(),
    "tril_": lambda T, x, y: x.tril_(),
    "baddbmm_": lambda T, x, y: x.baddbmm_(T.ones(1, 2, 2, dtype=T.float64), T.ones(1, 2, 2, dtype=T.float64)),
    "data": lambda T, x, y: x.data.add_(1),
}
MODES = {
    "grad": lambda T: T.enable_grad(),
    "no_grad": lambda T: T.no_grad(),
    "inference": lambda T: T.inference_mode(),
    "below autograd": lambda T: T._C._AutoDispatchBelowAutograd(),
    "below views": lambda T: T._C._AutoDispatchBelowADInplaceOrView(),
}


def node_of(t):
    """Whether the tensor is a leaf, and the name of its node; the error of asking for it, which a view has that was written to behind autograd's back."""
    try:
        return t.is_leaf, None if t.grad_fn is None else type(t.grad_fn).__name__.removeprefix("torch.")
    except RuntimeError as error:
        return type(error).__name__


def facts(tensors, t):
    """What a program can ask of a tensor; its base by the number that it has in the program."""
    base = t._base
    return (
        str(t.dtype).rpartition(".")[2],
        tuple(t.shape),
        "inference" if t.is_inference() else t._version,
        t._is_view(),
        None if base is None else [i for i, other in enumerate(tensors) if other is base],
        t.requires_grad,
        node_of(t),
        [i for i, other in enumerate(tensors) if other.untyped_storage().data_ptr() == t.untyped_storage().data_ptr()],
    )


def run(T, program, leaf):
    """The facts about all tensors after each step, and the steps' errors."""
    tensors = [T.ones(2, 2, dtype=T.float64, requires_grad=leaf), T.full((2, 2), 0.5, dtype=T.float64)]
    shown = []
    for mode, name, first, second in program:
        x, y = tensors[first % len(tensors)], tensors[second % len(tensors)]
        try:
            with MODES[mode](T):
                if name in VIEWS:
                    result = VIEWS[name](T, x)
                    if all(result is not t for t in tensors):
                        tensors.append(result)
                else:
                    WRITES[name](T, x, y)
            shown.append("done")
        except Exception as error:  # which message an error has is the matter of other tests
            shown.append(type(error).__name__)
        shown.append([facts(tensors, t) for t in tensors])
    return shown


steps = st.tuples(
    st.sampled_from(sorted(MODES)),
    st.sampled_from([*sorted(VIEWS), *sorted(WRITES)]),
    st.integers(0, 5),
    st.integers(0, 5),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(steps, min_size=1, max_size=6), st.booleans())
def test_random_programs(program, leaf):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = run(torch, program, leaf), run(readtorch, program, leaf)
    for step, (expected, found) in enumerate(zip(theirs, ours)):
        assert found == expected, f"after step {step // 2}"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [*VIEWS, *WRITES])
@pytest.mark.parametrize("leaf", [False, True])
def test_one_operator(name, mode, leaf):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = [(mode, name, 1, 0), ("grad", "add_", 1, 0), (mode, name, 2, 1), ("no_grad", "mul_", 2, 1)]
        assert run(readtorch, program, leaf) == run(torch, program, leaf)


def test_inference_tensors_outside_their_mode():
    def program(T):
        with T.inference_mode():
            x = T.ones(2, 2)
            inside = x[0]
        outside, shown = x[1], []
        for t in (x, inside, outside, outside[:1]):
            shown.append((t.is_inference(), t._is_view(), t._base is None))
            with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
                t.add_(1)
        with T.inference_mode():
            outside.mul_(3)
        return shown, x.tolist()

    assert program(torch) == program(readtorch)


def test_the_object_of_a_storage_lives_as_long_as_the_memory():
    def program(T):
        gone, t = [], T.ones(4)
        seen = weakref.ref(t.untyped_storage(), gone.append)
        shown = [seen() is t.untyped_storage(), t.untyped_storage()._cdata == t[1:].untyped_storage()._cdata]
        shown.append(t.untyped_storage()._cdata == (t + 1).untyped_storage()._cdata)
        view = t[1:]
        del t
        shown.append(seen() is view.untyped_storage())
        held = view.untyped_storage()
        del view
        shown += [seen() is held, len(gone), held.nbytes(), held[3]]
        again = T.empty(0).set_(held)
        shown += [again.untyped_storage() is held, again.untyped_storage()._cdata == held._cdata]
        del again, held
        return shown, len(gone)

    assert program(torch) == program(readtorch)


def test_a_stale_view_of_which_nobody_has_asked_counts_as_a_leaf():
    def program(T, show):
        def write(ask, forward=False):
            base = T.zeros(2, 3)
            base = T.autograd.forward_ad.make_dual(base, T.ones(2, 3)) if forward else base
            view = base.view(6)
            base.add_(T.ones(2, 3, requires_grad=True))
            ask(view)
            show.error(lambda: view.sin_())
            show(view.grad_fn.name())

        for ask in (
            lambda view: None,
            lambda view: view.requires_grad,
            lambda view: view.grad_fn,
            lambda view: view * 2,
        ):
            write(ask)
            with T.autograd.forward_ad.dual_level():
                write(ask, forward=True)

    same(program)


def test_what_was_saved_and_then_cut_off_by_detach_():
    def program(T, show):
        class Square(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, grad):
                return grad * 2 * ctx.saved_tensors[0]

        x = T.ones(3, requires_grad=True)
        with_hooks = T.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
        for use in (
            lambda y: y * y,
            lambda y: y.sin(),
            lambda y: y.exp(),
            lambda y: y * 3,
            Square.apply,
            lambda y: T.stack([y, y]),
        ):
            for afterwards in (lambda y: y, lambda y: y.requires_grad_(), lambda y: y.mul_(x)):
                y = x * 2
                z = use(y)
                y.detach_()
                afterwards(y)
                show.error(lambda: z.sum().backward())
            y = x * 2
            with with_hooks:
                z = use(y)
            y.detach_()
            show.error(lambda: z.sum().backward())
            y = (x * 2).detach_().requires_grad_()  # it was a leaf when it was saved
            z = use(y)
            y.detach_()
            show.error(lambda: z.sum().backward())
        y = x * 2
        z = y.sin()
        y.detach_()
        show(z.grad_fn._saved_self, x.grad)
        show.error(lambda: z.sum().backward())
        y = x.exp()
        z = y.clone()
        y.detach_()
        z.sum().backward()
        show(x.grad)

    same(program)
