"""`__torch_dispatch__`: what modes and tensor subclasses see, and what becomes of what they return."""

import contextlib
import gc
import importlib
import textwrap
import time
import warnings

import pytest
import torch

import readtorch
import readtorch.utils._python_dispatch
from tests.dispatch_programs import ONE_CALL, PROGRAMS
from tests.programs import same

# ------------------------------------------------------------------------------------- what a mode is told


def shown(T, value):
    """An argument as both libraries show it: a tensor by its sizes."""
    if isinstance(value, T.Tensor):
        return f"T{tuple(value.shape)}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}[{', '.join(shown(T, v) for v in value)}]"
    return "Generator" if isinstance(value, T.Generator) else repr(value)


def calls_of(T, text):
    """What a mode around the program `text` is told, a line a call; an error is the last line."""
    T.manual_seed(0)
    lines = []

    class Log(importlib.import_module(f"{T.__name__}.utils._python_dispatch").TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func.namespace != "profiler":  # in readtorch the optimizers have no such marks
                told = [shown(T, a) for a in args], {k: shown(T, v) for k, v in kwargs.items()}
                lines.append(f"{func} {[t.__name__ for t in types]} {told}")
            return func(*args, **kwargs)

    x = T.arange(1.0, 7.0).reshape(2, 3) / 7
    names = {"torch": T, "x": x, "g": x.clone().requires_grad_()}
    with warnings.catch_warnings(), contextlib.suppress(AssertionError), Log():
        warnings.simplefilter("ignore")
        try:
            exec(textwrap.dedent(text.replace("from torch", f"from {T.__name__}")), names)
        except Exception as error:
            lines.append(f"{type(error).__name__}: {error}")
    return lines


# Programs in which readtorch calls other operators, and why.
DIFFERENT = {
    "torch.nn.functional.dropout(x, 0.5)": "empty_like of PyTorch's own has no pin_memory; div_.Scalar",
    "torch.nn.functional.batch_norm(x, torch.zeros(3), torch.ones(3), training=True)": "the empty `reserve`",
    "torch.nn.functional.one_hot(torch.tensor([0, 1]), 3)": "the smallest and largest class are not read by operators",
    "torch.nn.functional.cosine_similarity(x, x)": "clamp_min_ with a number; the order of two divisions",
    "torch._foreach_add([x, x], 1)": "foreach operators are composed",
    "dropout": "as above",
    "batch norm": "as above",
    "rms norm": "add, not add_; the order of two products",
    "bce": "div, not div_",
    "stack": "unbind, not select",
    "std": "the gradient calls other forms of mul and masked_fill",
    "max": "the order of two comparisons; zeros, not new_zeros",
    "clamp": "bitwise_and, not logical_and_",
    "gather": "new_zeros of PyTorch's own has no pin_memory",
    "attention": "an optional tensor that is not there is left out",
    "lstm": "the order in which gradients are delivered",
    "clip": "foreach operators are composed",
    "in place on a view": "new_empty_strided of PyTorch's own has no pin_memory",
    "setitem": "as above",
    "checkpoint": "what is saved is detached earlier",
    "transformer layer": "dropout",
}
ALL_PROGRAMS = {line: line for line in ONE_CALL} | PROGRAMS


@pytest.mark.parametrize("name", [name for name in ALL_PROGRAMS if name not in DIFFERENT])
def test_a_mode_is_told_the_same(name):
    assert calls_of(readtorch, ALL_PROGRAMS[name]) == calls_of(torch, ALL_PROGRAMS[name])


def test_the_list_of_differences_is_true():
    alike = [
        name for name in DIFFERENT if calls_of(torch, ALL_PROGRAMS[name]) == calls_of(readtorch, ALL_PROGRAMS[name])
    ]
    assert alike == []
    share = 1 - len(DIFFERENT) / len(ALL_PROGRAMS)
    print(f"{share:.0%} of {len(ALL_PROGRAMS)} programs call the same operators with the same arguments")
    assert share > 0.85


# --------------------------------------------------------------------------------------------- what modes return


def test_results_that_do_not_fit():
    def program(T, show):
        from_mode = importlib.import_module(f"{T.__name__}.utils._python_dispatch")
        x, one = T.ones(2, 3), T.ones(())

        def returning(value, run):
            class Mode(from_mode.TorchDispatchMode):
                def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                    return value

            def inside():
                with Mode():
                    return run()

            show.error(inside)

        for value in (None, "a", 3):
            returning(value, lambda: x.exp())
        returning((3,), lambda: x.exp())
        for value in (3, (x,), (x, "a"), None):
            returning(value, lambda: x.max(1))
        for value in ("a", None, 5.5):
            returning(value, lambda: one.item())
        returning("a", lambda: T.equal(x, x))
        returning(3, lambda: T.equal(x, x))
        returning("a", lambda: x.data)
        returning(None, lambda: x.data)
        returning(3, lambda: T.tensor([1.0]))
        returning(NotImplemented, lambda: x.exp())
        returning(NotImplemented, lambda: x + 1)
        show.error(lambda: from_mode.TorchDispatchMode().__torch_dispatch__(None, ()))

    same(program)


def test_the_stack_of_modes():
    def program(T, show):
        modes = importlib.import_module(f"{T.__name__}.utils._python_dispatch")
        C = T._C

        class Named(modes.TorchDispatchMode):
            def __init__(self, name, key=None):
                super().__init__()
                self.name = name
                if key is not None:
                    self._mode_key = key

            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                show(self.name, func, [m.name for m in modes._get_current_dispatch_mode_stack()], T.is_grad_enabled())
                return func(*args, **kwargs)

        x = T.ones(2, requires_grad=True)
        with Named("outer"), Named("inner"):
            show(modes.is_in_torch_dispatch_mode(), modes.is_in_torch_dispatch_mode(include_infra_modes=False))
            show((x * 2).requires_grad, modes._get_current_dispatch_mode().name)
            with modes._pop_mode_temporarily() as popped:
                show(popped.name, (x * 3).requires_grad)
            with modes._disable_current_modes() as popped:
                show([m.name for m in popped], (x * 4).requires_grad)
            with C._DisableTorchDispatch():
                show((x * 5).requires_grad)
        show(modes.is_in_torch_dispatch_mode(), modes._get_current_dispatch_mode())
        keys = C._TorchDispatchModeKey
        user, proxy, fake = Named("user"), Named("proxy", keys.PROXY), Named("fake", keys.FAKE)
        for mode in (user, proxy, fake):
            C._push_on_torch_dispatch_stack(mode)
        order = [C._get_dispatch_stack_at(i).name for i in range(C._len_torch_dispatch_stack())]
        problems = []
        for wrong in (
            lambda: C._push_on_torch_dispatch_stack(Named("second", keys.FAKE)),
            lambda: C._set_dispatch_mode(user),
            lambda: C._get_dispatch_stack_at(7),
        ):
            try:
                wrong()
            except RuntimeError as error:
                problems.append(str(error))
        found = [C._unset_dispatch_mode(keys.FUNCTIONAL), C._unset_dispatch_mode(keys.PROXY).name]
        found += [C._pop_torch_dispatch_stack(None).name, C._get_dispatch_mode(keys.FAKE).name]
        found += [C._pop_torch_dispatch_stack(None).name]
        show(order, problems, found)
        show.error(lambda: C._pop_torch_dispatch_stack(None))
        show(repr(keys.FAKE), str(keys.PROXY), int(keys.FUNCTIONAL.value))
        show.warnings(lambda: Named.push("a"))

    same(program)


def test_results_with_names_are_plain_tuples_below_autograd():
    def program(T, show):
        class Kinds(importlib.import_module(f"{T.__name__}.utils._python_dispatch").TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                result = func(*args, **(kwargs or {}))
                show(func, type(result).__name__)
                return result

        x, a = T.tensor([[3.0, 1.0], [2.0, 5.0]]), T.tensor([[2.0, 1.0], [1.0, 3.0]]).requires_grad_()
        calls = [
            lambda: x.max(0),
            lambda: a.sort(),
            lambda: T.linalg.slogdet(a),
            lambda: T.linalg.qr(x),
            lambda: T.linalg.eigh(a),
            lambda: T.topk(x, 1),
            lambda: T.max(x, 0, out=(T.empty(0), T.empty(0, dtype=T.int64))),
            lambda: T.ops.aten.max.dim(x, 0),
            lambda: T.split(x, 1),
            lambda: T.ops.aten.unbind(x),
            lambda: T.ops.aten.unbind.int(x),
            lambda: T.frexp(x),
            lambda: T.aminmax(x),
            lambda: x.mode(),
        ]
        for call in calls:
            with Kinds():
                inside = call()
            show(type(inside).__name__, type(call()).__name__)

    same(program)


# --------------------------------------------------------------------------------------------- wrapper subclasses


def wrapper_class(T, note=lambda *told: None):
    """A tensor that holds another and hands each call to it."""
    tree_map = importlib.import_module(f"{T.__name__}.utils._pytree").tree_map
    modes = importlib.import_module(f"{T.__name__}.utils._python_dispatch")

    class Wrapper(T.Tensor):
        @staticmethod
        def __new__(cls, inner, **kwargs):
            return T.Tensor._make_wrapper_subclass(
                cls,
                inner.shape,
                strides=inner.stride(),
                storage_offset=inner.storage_offset(),
                dtype=inner.dtype,
                **kwargs,
            )

        def __init__(self, inner, **kwargs):
            self.inner = inner

        def __repr__(self):
            return f"Wrapper({self.inner})"

        def __tensor_flatten__(self):
            return ["inner"], None

        @staticmethod
        def __tensor_unflatten__(inner_tensors, metadata, outer_size, outer_stride):
            return Wrapper(inner_tensors["inner"])

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            note(func, [t.__name__ for t in types])
            unwrapped = tree_map(lambda a: a.inner if isinstance(a, Wrapper) else a, (args, kwargs))
            out = func(*unwrapped[0], **unwrapped[1])
            out = tree_map(lambda a: Wrapper(a) if isinstance(a, T.Tensor) else a, out)
            return modes.return_and_correct_aliasing(func, args, kwargs, out)

    return Wrapper


def test_wrappers():
    def program(T, show):
        Wrapper = wrapper_class(T, show)
        modes = importlib.import_module(f"{T.__name__}.utils._python_dispatch")
        w = Wrapper(T.arange(6.0).reshape(2, 3))
        show(w.shape, w.stride(), w.dtype, w.device, w.layout, w.requires_grad, w.data_ptr(), w._version)
        show(w + 1, 2 * w, w.sum(), w.max(1).values, w[0], w.split(1), w.t(), w.view(-1))
        show(w.add_(1) is w, w._version, T.add(w, w, out=w) is w, w.t_() is w, w.shape, w.stride())
        show(w.sum().item(), bool(w.sum() > 0), [row.sum().item() for row in w])
        show(modes.is_traceable_wrapper_subclass(w), modes.is_traceable_wrapper_subclass(T.ones(2)))
        show(modes.transform_subclass(w, lambda name, inner: inner * 2))
        show(type(w.view(3, 2)), w.view(3, 2).untyped_storage().nbytes(), type(w.detach()), type(w.data))
        show(T.cat([w, T.ones(3, 2)]), w @ T.ones(2, 2), T.where(w > 20, w, w))
        for refused in (w.numpy, w.tolist, lambda: bool(w)):
            show.error(refused)

    with torch._C._PreserveDispatchKeyGuard():  # `t_` of a wrapper leaves PyTorch's thread with one key more
        same(program)


def test_gradients_of_wrappers():
    def program(T, show):
        Wrapper = wrapper_class(T, show)
        w = Wrapper(T.arange(6.0).reshape(2, 3)).requires_grad_()
        (w * w).exp().sum().backward()
        show(type(w.grad), w.grad, w.grad.grad_fn, w.is_leaf)
        w.sin().sum().backward()
        show(w.grad)
        y = w * 2
        y.mul_(3)
        show(y.grad_fn, y._version)
        y.sum().backward()
        [second] = T.autograd.grad((w * w * w).sum(), w, create_graph=True)
        show(second.requires_grad, type(second))
        show(T.autograd.grad(second.sum(), w))
        layer = T.nn.Linear(3, 2)
        with T.no_grad():
            for p in layer.parameters():
                p.fill_(0.5)
        layer.weight = T.nn.Parameter(Wrapper(layer.weight.detach()))
        layer(T.ones(1, 3)).sum().backward()
        show(type(layer.weight), type(layer.weight.grad), type(layer.bias.grad))
        T.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9).step()
        show(layer.weight)

    same(program)


def test_classes_beside_each_other():
    def program(T, show):
        def log(name, base, answers):
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                show(name, func, [t.__name__ for t in types])
                if not answers:
                    return NotImplemented
                with T._C._DisableTorchDispatch():
                    return func(*args, **kwargs)

            return type(name, (base,), {"__torch_dispatch__": classmethod(__torch_dispatch__)})

        Refuses = log("Refuses", T.Tensor, False)
        Answers = log("Answers", T.Tensor, True)
        Below = log("Below", Refuses, True)
        make = T.Tensor._make_subclass
        a, b, c = make(Refuses, T.ones(2)), make(Answers, T.ones(2)), make(Below, T.ones(2))
        show.error(lambda: T.add(a, a))
        show(T.add(a, b), T.add(a, c), T.add(b, c), T.add(c, b), type(b.add_(1)))
        show(type(T.add(b, b)) is T.Tensor, T.add(T.ones(2), b), b.exp(), b.sum())

        class Disabled(T.Tensor):
            __torch_dispatch__ = T._C._disabled_torch_dispatch_impl

        show((make(Disabled, T.ones(2)) + 1).tolist())
        make_wrapper = T.Tensor._make_wrapper_subclass
        for wrong in (
            lambda: make_wrapper(Disabled, (2,)),
            lambda: make_wrapper(T.Tensor, (2,)),
            lambda: make_wrapper(3, (2,)),
            lambda: make_wrapper(Answers),
            lambda: make_wrapper(Answers, "ab"),
            lambda: make_wrapper(Answers, (2,), storage_offset=3),
            lambda: make_wrapper(Answers, (2,), dtype=T.int64, requires_grad=True),
            lambda: make_wrapper(Answers, (2,), dispatch_sizes_strides_policy="other"),
            lambda: make(3, T.ones(2)),
        ):
            show.error(wrong)
        placed = make_wrapper(Answers, (2, 3), strides=(3, 1), storage_offset=3, storage_size=1000, device="cuda")
        show(placed.device, placed.storage_offset(), placed.untyped_storage().nbytes(), placed.is_leaf)

    same(program)


def test_no_kernel_reads_a_wrapper():
    Wrapper = wrapper_class(readtorch)
    w = Wrapper(readtorch.ones(2, 3))
    plain = readtorch.ones(2, 3)
    with readtorch._C._DisableTorchDispatch():
        assert w.view(-1).shape == (6,) and w[0].shape == (3,) and w.t().stride() == (1, 3)
        assert readtorch.zeros_like(w).tolist() == [[0, 0, 0], [0, 0, 0]]
        for reads in (
            lambda: w + 1,
            lambda: w.sum(),
            lambda: w.exp_(),
            lambda: plain.copy_(w),
            lambda: w @ w.t(),
            lambda: readtorch.cat([plain, w]),
            lambda: w.clone(),
            lambda: w[0, 0].item(),
            lambda: readtorch.add(plain, plain, out=w),
            lambda: w.uniform_(),
            lambda: w.view(-1) + 1,
            lambda: readtorch.nn.functional.linear(w, w),
        ):
            with pytest.raises(RuntimeError, match="Cannot access data pointer of Tensor that doesn't have storage"):
                reads()


def test_what_was_excluded_can_be_restored():
    def program(T, show):
        modes = importlib.import_module(f"{T.__name__}.utils._python_dispatch")
        x = T.ones(2, requires_grad=True)

        class Mode(modes.TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                show((x * 2).requires_grad)
                with T._C._RestorePythonTLSSnapshot():
                    show((x * 2).requires_grad)
                return func(*args, **kwargs)

        with Mode():
            x.sin()
        show.error(lambda: T._C._RestorePythonTLSSnapshot().__enter__())

    same(program)


@pytest.mark.alone
def test_a_mode_that_does_nothing_costs_at_most_what_pytorchs_costs():
    def seconds(T):
        class Mode(importlib.import_module(f"{T.__name__}.utils._python_dispatch").TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                return func(*args, **kwargs)

        x, y = T.ones(3), T.ones(3)

        def run():
            start = time.perf_counter()
            for _ in range(2000):
                x + y
            return time.perf_counter() - start

        with Mode():
            gc.collect()
            return min(run() for _ in range(15))

    assert min(seconds(readtorch) / seconds(torch) for _ in range(3)) <= 1


def test_out_is_returned_whatever_a_wrapper_answers():
    def program(T, show):
        def new():
            return wrapper(T.ones(2))

        wrapper = wrapper_class(T)
        out, x = new(), new()
        show(T.add(x, 1, out=out) is out, T.ops.aten.add.out(x, x, out=out) is out, x.add_(1) is x)
        show.error(lambda: x.untyped_storage().data_ptr())
        show(x.data_ptr())

    same(program)
