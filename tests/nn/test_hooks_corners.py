"""Corner cases of hooks next to the reference: order, arguments, exceptions, removal, refusals, handles. One function is one case."""

import copy
import inspect
import pickle
import weakref
from collections import OrderedDict, namedtuple
from importlib import import_module

import pytest

from tests.programs import same

CORNERS = {}


def corner(program):
    """`program(T, show)` is a case: with both libraries it has to show the same."""
    CORNERS[program.__name__] = program
    return program


def hooks_of_all(T):
    """The module in which hooks of all modules are registered."""
    return import_module(T.__name__ + ".nn.modules.module")


def plain(value):
    """Tensors as lists, whatever they stand in."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [plain(v) for v in value]
    return value


def noting(show, name, result=None):
    """A hook that shows what it is called with, but for the module, and returns `result`."""

    def hook(module, *args):
        show(name, plain(args))
        return result

    return hook


def module_of(T, function):
    class Own(T.nn.Module):
        def forward(self, *args, **kwargs):
            return function(*args, **kwargs)

    return Own()


def leaf(T, *values):
    return T.tensor([float(v) for v in values], requires_grad=True)


# ---- names and signatures


@corner
def signatures_of_all_that_registers(T, show):
    module = hooks_of_all(T)
    for owner in (T.nn.Module, module):
        for name in sorted(n for n in dir(owner) if n.startswith("register_") and n.endswith("hook")):
            parameters = inspect.signature(getattr(owner, name)).parameters.values()
            show(name, [(p.name, p.kind.name, p.default is p.empty or p.default) for p in parameters])


@corner
def options_of_forward_hooks_go_by_keyword(T, show):
    m = T.nn.Identity()
    show.error(lambda: m.register_forward_hook(print, True))
    show.error(lambda: m.register_forward_pre_hook(print, True))
    show.error(lambda: m.register_forward_pre_hook(print, always_call=True))
    show.error(lambda: hooks_of_all(T).register_module_forward_hook(print, prepend=True))
    show.error(lambda: m.register_full_backward_hook(print, with_kwargs=True))
    show(len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks))


@corner
def options_of_backward_hooks_go_by_position_too(T, show):
    m = T.nn.Tanh()
    m.register_full_backward_hook(noting(show, "second"))
    m.register_full_backward_hook(noting(show, "first"), True)
    m.register_full_backward_pre_hook(noting(show, "pre second"))
    m.register_full_backward_pre_hook(noting(show, "pre first"), True)
    m(leaf(T, 0)).backward()


@corner
def what_is_registered_is_not_looked_at(T, show):
    m = T.nn.Identity()
    with m.register_forward_hook(None):
        show.error(lambda: m(1))
    with m.register_forward_hook("text"):
        show.error(lambda: m(1))
    with m.register_forward_pre_hook(lambda module: None):
        show.error(lambda: m(1))
    show(m(1))


@corner
def dictionaries_and_numbers_of_hooks(T, show):
    m, other = T.nn.Identity(), T.nn.Identity()
    handles = [
        m.register_forward_hook(print),
        other.register_forward_pre_hook(print),
        m.register_full_backward_hook(print),
        m.register_full_backward_pre_hook(print),
        other.register_forward_hook(print, with_kwargs=True, always_call=True),
        leaf(T, 1).register_hook(print),
    ]
    show([h.id - handles[0].id for h in handles], [type(h).__name__ for h in handles])
    for name in sorted(n for n in vars(m) if "hook" in n):
        show(name, type(getattr(m, name)).__name__, len(getattr(other, name) or ()))


# ---- order


@corner
def prepended_hooks_stand_in_reverse(T, show):
    m = T.nn.Identity()
    for name, prepend in (("a", False), ("b", True), ("c", False), ("d", True)):
        m.register_forward_pre_hook(noting(show, "pre " + name), prepend=prepend)
        m.register_forward_hook(noting(show, "post " + name), prepend=prepend)
    m(1)


@corner
def hooks_of_all_modules_come_first_even_before_prepended(T, show):
    module, m = hooks_of_all(T), T.nn.Tanh()
    for kind in ("forward_pre", "forward", "full_backward_pre", "full_backward"):
        getattr(m, f"register_{kind}_hook")(noting(show, f"own {kind}"), prepend=True)
    kinds = ("forward_pre", "forward", "full_backward_pre", "full_backward")
    handles = [getattr(module, f"register_module_{kind}_hook")(noting(show, f"all {kind}")) for kind in kinds]
    m(leaf(T, 0)).backward()
    for handle in handles:
        handle.remove()
    m(leaf(T, 0)).backward()


@corner
def container_and_children(T, show):
    net = T.nn.Sequential(T.nn.Tanh(), T.nn.Sequential(T.nn.Tanh()))
    for name, m in net.named_modules():
        for kind in ("forward_pre", "forward", "full_backward_pre", "full_backward"):
            getattr(m, f"register_{kind}_hook")(noting(show, f"{name!r} {kind}"))
    net(leaf(T, 0)).backward()


@corner
def one_function_twice(T, show):
    m, hook = T.nn.Identity(), noting(show, "hook")
    first = m.register_forward_hook(hook)
    m.register_forward_hook(hook)
    m(1)
    first.remove()
    show("one is left")
    m(1)


@corner
def one_module_twice_in_a_net(T, show):
    m = T.nn.Tanh()
    m.register_forward_hook(noting(show, "forward"))
    m.register_full_backward_pre_hook(noting(show, "backward pre"))
    m.register_full_backward_hook(noting(show, "backward"))
    T.nn.Sequential(m, m)(leaf(T, 0)).backward()


@corner
def forward_by_itself_runs_no_hooks(T, show):
    m = T.nn.Tanh()
    m.register_forward_pre_hook(noting(show, "pre"))
    m.register_forward_hook(noting(show, "post"))
    m.register_full_backward_hook(noting(show, "backward"))
    m.forward(leaf(T, 0)).backward()
    show("nothing was called")


# ---- arguments


@corner
def what_a_pre_hook_may_return(T, show):
    m = module_of(T, lambda *args: args)
    Pair = namedtuple("Pair", "a b")
    for result in (0, False, "", [1, 2], (1, 2), (), {"a": 1}, Pair(1, 2), ((1, 2),)):
        with m.register_forward_pre_hook(lambda module, args: result):
            show(result, m("x"))


@corner
def what_a_forward_hook_may_return(T, show):
    m = T.nn.Identity()
    for result in (0, False, "", (), [], {}, NotImplemented, T.float32):
        with m.register_forward_hook(lambda module, args, output: result):
            show(result, m("x"))


@corner
def keyword_arguments_are_not_seen_without_asking(T, show):
    m = module_of(T, lambda x, k=1: (x, k))
    m.register_forward_pre_hook(noting(show, "pre"))
    m.register_forward_hook(noting(show, "post"))
    m.register_forward_pre_hook(noting(show, "pre, kwargs"), with_kwargs=True)
    m.register_forward_hook(noting(show, "post, kwargs"), with_kwargs=True)
    m(1, k=2)
    m(x=1, k=2)
    m(1)


@corner
def a_hook_with_kwargs_must_return_a_pair(T, show):
    m = module_of(T, lambda *args, **kwargs: (args, kwargs))
    for result in (1, [(), {}], ((),), ((), {}, ()), (), {"k": 2}, ((5,), {"k": 6}), ([5, 6], {}), (5, {}), ((5,), 6)):
        with m.register_forward_pre_hook(lambda module, args, kwargs: result, with_kwargs=True):
            show.error(lambda: show(m("x", k=1)))


@corner
def keyword_arguments_can_be_changed_in_place(T, show):
    m = module_of(T, lambda **kwargs: sorted(kwargs.items()))
    m.register_forward_pre_hook(lambda module, args, kwargs: kwargs.update(a=10, b=2), with_kwargs=True)
    m.register_forward_hook(noting(show, "post"), with_kwargs=True)
    mine = {"a": 1}
    show(m(**mine), mine)


@corner
def later_hooks_see_what_earlier_ones_replaced(T, show):
    m = module_of(T, lambda x, k: (x, k))
    m.register_forward_pre_hook(lambda module, args, kwargs: ((2,), {"k": 20}), with_kwargs=True)
    m.register_forward_pre_hook(noting(show, "pre", 3))
    m.register_forward_pre_hook(noting(show, "pre, kwargs"), with_kwargs=True)
    m.register_forward_hook(noting(show, "post", "replaced"))
    m.register_forward_hook(noting(show, "post, kwargs"), with_kwargs=True)
    show(m(1, k=10))


@corner
def keyword_arguments_for_hooks_of_all_modules(T, show):
    module, m = hooks_of_all(T), module_of(T, lambda x, k: (x, k))
    before = len(module._global_forward_hooks_with_kwargs)
    with module.register_module_forward_hook(noting(show, "all"), with_kwargs=True):
        m(1, k=2)
    show.error(lambda: module.register_module_forward_pre_hook(print, with_kwargs=True))
    show(len(module._global_forward_hooks), len(module._global_forward_hooks_with_kwargs) - before)


@corner
def a_list_of_arguments_and_a_backward_hook(T, show):
    m = module_of(T, lambda x: x * 2)
    m.register_forward_pre_hook(lambda module, args, kwargs: (list(args), kwargs), with_kwargs=True)
    show(m(leaf(T, 1)).requires_grad)
    m.register_full_backward_hook(noting(show, "backward"))
    show.error(lambda: m(leaf(T, 1)))


@corner
def a_bound_method_as_a_hook(T, show):
    class Own(T.nn.Module):
        def forward(self, x):
            return x

        def hook(self, module, args, output):
            show("method", self is module, args)

    m = Own()
    m.register_forward_hook(m.hook)
    m(1)
    show(copy.deepcopy(m)(2))


# ---- exceptions and always_call


def failing(T, error=ValueError):
    def forward(x, fail=True):
        if fail:
            raise error("in forward")
        return x

    return module_of(T, forward)


@corner
def always_called_once(T, show):
    m = failing(T)
    m.register_forward_hook(noting(show, "always"), always_call=True)
    m.register_forward_hook(noting(show, "else"))
    show.error(lambda: m(1))
    show.error(lambda: m(1, fail=False))


@corner
def a_pre_hook_raises(T, show):
    m = failing(T)

    def breaks(module, args):
        raise KeyError("in the pre-hook")

    m.register_forward_pre_hook(lambda module, args: (2,))
    m.register_forward_pre_hook(breaks)
    m.register_forward_hook(noting(show, "always"), always_call=True)
    show.error(lambda: m(1))


@corner
def a_forward_hook_raises(T, show):
    m = T.nn.Identity()

    def breaks(module, args, output):
        raise KeyError("in the hook")

    m.register_forward_hook(noting(show, "before, always", "replaced"), always_call=True)
    m.register_forward_hook(breaks)
    m.register_forward_hook(noting(show, "behind, always"), always_call=True)
    m.register_forward_hook(noting(show, "behind"))
    show.error(lambda: m(1))


@corner
def an_always_called_hook_raises_when_nothing_else_did(T, show):
    m = T.nn.Identity()

    def breaks(module, args, output):
        show("breaks")
        raise KeyError("in the hook")

    m.register_forward_hook(breaks, always_call=True)
    m.register_forward_hook(noting(show, "always"), always_call=True)
    show.warnings(lambda: show.error(lambda: m(1)))


@corner
def an_error_behind_an_error_is_a_warning(T, show):
    module, m = hooks_of_all(T), failing(T)

    def breaks(module, args, output):
        raise KeyError("in the hook")

    with module.register_module_forward_hook(breaks, always_call=True):
        m.register_forward_hook(breaks, always_call=True)
        m.register_forward_hook(noting(show, "still called"), always_call=True)
        show.warnings(lambda: show.error(lambda: m(1)))


@corner
def what_always_called_hooks_return_after_an_exception(T, show):
    m = failing(T)
    m.register_forward_hook(noting(show, "first", "made up"), always_call=True)
    m.register_forward_hook(noting(show, "second"), always_call=True)
    show.error(lambda: m(1))


@corner
def always_called_with_kwargs(T, show):
    m = failing(T)
    m.register_forward_hook(noting(show, "own"), always_call=True, with_kwargs=True)
    show.error(lambda: m(1, fail=True))
    hook = lambda module, args, kwargs, output: show("never", kwargs)  # noqa: E731
    with hooks_of_all(T).register_module_forward_hook(hook, always_call=True, with_kwargs=True):
        show.warnings(lambda: show.error(lambda: m(1, fail=True)))  # without kwargs: one argument is missing


@corner
def what_is_no_exception_skips_all_hooks(T, show):
    class Stop(BaseException): ...

    m = failing(T, Stop)
    m.register_forward_hook(noting(show, "always"), always_call=True)
    try:
        m(1)
    except Stop as stop:
        show("stopped:", stop)


@corner
def always_called_from_the_inside_out(T, show):
    net = T.nn.Sequential(T.nn.Identity(), T.nn.Sequential(failing(T)))
    for name, m in net.named_modules():
        m.register_forward_hook(noting(show, repr(name)), always_call=True)
    show.error(lambda: net(1))


@corner
def an_always_called_hook_that_removes_itself_after_an_exception(T, show):
    m, handles = failing(T), []

    def once(module, args, output):
        show("once")
        handles.pop().remove()

    handles.append(m.register_forward_hook(once, always_call=True))
    show.error(lambda: m(1))
    handles.append(m.register_forward_hook(once, always_call=True))
    m.register_forward_hook(noting(show, "another"), always_call=True)
    show.error(lambda: m(1))  # the loop runs over the dictionary itself


# ---- removal and registration while hooks run


@corner
def a_hook_removes_itself(T, show):
    m, handles = T.nn.Identity(), {}

    def once(module, args, output):
        show("once", output)
        handles["once"].remove()

    handles["once"] = m.register_forward_hook(once)
    m.register_forward_hook(noting(show, "behind it"))
    m(1), m(2)


@corner
def a_removed_hook_runs_once_more(T, show):
    m = T.nn.Identity()
    m.register_forward_hook(lambda module, args, output: late.remove())
    late = m.register_forward_hook(noting(show, "late"))
    m(1), m(2)


@corner
def a_removed_hook_loses_its_keyword_arguments_at_once(T, show):
    m = T.nn.Identity()
    m.register_forward_hook(lambda module, args, output: late.remove())
    late = m.register_forward_hook(lambda module, args, kwargs, output: show("late", kwargs), with_kwargs=True)
    show.error(lambda: m(1))
    m.register_forward_pre_hook(lambda module, args: pre.remove())
    pre = m.register_forward_pre_hook(noting(show, "pre"), with_kwargs=True)
    m(1)


@corner
def hooks_registered_by_hooks(T, show):
    m = T.nn.Tanh()

    def pre(module, args):
        handle.remove()
        show("pre")
        module.register_forward_pre_hook(noting(show, "new pre"))
        module.register_forward_hook(noting(show, "new post"))
        module.register_full_backward_hook(noting(show, "new backward"))

    handle = m.register_forward_pre_hook(pre)
    for _ in range(2):
        m(leaf(T, 0)).backward()


@corner
def a_forward_hook_registers_a_forward_hook(T, show):
    m, new = T.nn.Identity(), noting(show, "new")
    m.register_forward_hook(lambda module, args, output: module.register_forward_hook(new) and None)
    m(1), m(2)


@corner
def backward_hooks_are_those_of_the_call(T, show):
    m = T.nn.Tanh()
    early = m.register_full_backward_hook(noting(show, "early"))
    y = m(leaf(T, 0))
    early.remove()
    m.register_full_backward_hook(noting(show, "late"))
    y.backward()
    m(leaf(T, 0)).backward()


# ---- hooks of registration


@corner
def registration_of_parameters_buffers_and_modules(T, show):
    module = hooks_of_all(T)
    noted = lambda kind: lambda m, name, value: show(kind, type(m).__name__, name, type(value).__name__)  # noqa: E731
    with (
        module.register_module_parameter_registration_hook(noted("parameter")),
        module.register_module_buffer_registration_hook(noted("buffer")),
        module.register_module_module_registration_hook(noted("module")),
    ):
        m = T.nn.Sequential(T.nn.BatchNorm1d(2), T.nn.Linear(2, 2, bias=False))
        m[1].weight = T.nn.Parameter(T.ones(1))
        m[0].running_mean = T.ones(1)
        m.extra = T.nn.Identity()
        m.register_buffer("none", None)
        m.extra = None


@corner
def registration_hooks_replace_in_turn(T, show):
    module = hooks_of_all(T)
    doubled = lambda m, name, value: value * 2  # noqa: E731
    with module.register_module_buffer_registration_hook(doubled):
        with module.register_module_buffer_registration_hook(doubled):
            m = T.nn.Identity()
            m.register_buffer("b", T.ones(1))
            show(m.b)
            m.b = T.ones(1) * 3
    show(m.b)
    with module.register_module_parameter_registration_hook(lambda m, name, value: T.ones(3)):
        m.p = T.nn.Parameter(T.ones(1))
    show(plain(m._parameters["p"]), type(m._parameters["p"]).__name__)


# ---- backward hooks


@corner
def wrong_numbers_of_gradients(T, show):
    m = module_of(T, lambda x, y: (x * y, x + y))
    backward = lambda: sum(m(leaf(T, 1), leaf(T, 2))).backward()  # noqa: E731
    for result in ((), (T.ones(1),), [T.ones(1)] * 3):
        with m.register_full_backward_hook(noting(show, "backward", result)):
            show.error(backward)
        with m.register_full_backward_pre_hook(noting(show, "pre", result)):
            show.error(backward)


@corner
def a_tensor_instead_of_a_tuple_of_gradients(T, show):
    m = module_of(T, lambda x: x * 2)
    for result in (T.tensor([[7.0, 8.0]]), T.tensor([7.0, 8.0]), 5.0):
        for register in (m.register_full_backward_hook, m.register_full_backward_pre_hook):
            with register(lambda module, *grads: result):
                x = leaf(T, 1, 2)
                show.error(lambda: m(x).sum().backward())
                show(x.grad)


@corner
def lists_and_none_instead_of_gradients(T, show):
    m = module_of(T, lambda x, y: x * y)
    for result in ([T.ones(1), T.ones(1) * 2], (None, T.ones(1) * 2), (None, None)):
        with m.register_full_backward_hook(lambda module, grad_input, grad_output: result):
            m.register_full_backward_hook(noting(show, "behind it"))
            x, y = leaf(T, 3), leaf(T, 4)
            show.error(lambda: m(x, y).backward())
            show(x.grad, y.grad)


@corner
def gradients_of_the_wrong_shape(T, show):
    m = module_of(T, lambda x: x * 2)
    with m.register_full_backward_hook(lambda module, grad_input, grad_output: (T.ones(3),)):
        show.error(lambda: m(leaf(T, 1, 2)).sum().backward())
    with m.register_full_backward_hook(lambda module, grad_input, grad_output: ("text",)):
        show.error(lambda: m(leaf(T, 1, 2)).sum().backward())


@corner
def a_pre_hook_changes_what_all_see(T, show):
    m = T.nn.Linear(1, 1, bias=False)
    T.nn.init.constant_(m.weight, 3.0)
    m.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 10,))
    m.register_full_backward_pre_hook(noting(show, "pre"))
    m.register_full_backward_hook(noting(show, "backward"))
    x = leaf(T, 2)
    m(x).backward()
    show(x.grad, m.weight.grad)


@corner
def no_input_requires_a_gradient(T, show):
    m = T.nn.Embedding(3, 2)
    T.nn.init.ones_(m.weight)
    backward = lambda: m(T.tensor([0, 2])).sum().backward()  # noqa: E731
    for result in (None, (None,), [None], (T.ones(1),), T.ones(1), ()):
        with m.register_full_backward_hook(noting(show, "backward", result)):
            show.warnings(lambda: show.error(backward))
    with m.register_full_backward_pre_hook(noting(show, "pre")):
        show.warnings(backward)
    with T.no_grad(), m.register_full_backward_hook(noting(show, "under no_grad")):
        show(m(T.tensor([0])).requires_grad)


@corner
def arguments_that_are_no_tensors(T, show):
    m = module_of(T, lambda x, n, y, k=None: (x * n, "text", y * n + (k if k is not None else 0)))
    m.register_full_backward_pre_hook(noting(show, "pre"))
    m.register_full_backward_hook(noting(show, "backward"))
    x, y, k = leaf(T, 1), T.ones(1), leaf(T, 3)
    a, text, b = m(x, 2, y, k=k)
    show(text, a.requires_grad, b.requires_grad)
    (a + b).backward()
    show(x.grad, y.grad, k.grad)
    m(x, 2, y)[0].backward()  # of the other output there is no gradient


@corner
def inputs_and_outputs_in_containers(T, show):
    x = leaf(T, 1)
    for function in (lambda v: v[0], lambda v: v, lambda v: {"a": v[0]}, lambda v: None):
        m = module_of(T, function)
        m.register_full_backward_hook(noting(show, "backward"))
        show.warnings(lambda: show.error(lambda: show(type(m([x])).__name__)))
    Pair = namedtuple("Pair", "a b")
    m = module_of(T, lambda x: Pair(x * 2, 3))
    m.register_full_backward_hook(noting(show, "backward"))
    result = m(x)
    show(type(result).__name__, result.b)
    result.a.backward()


@corner
def named_results_cannot_be_made_again_behind_the_fence(T, show):
    functions = [
        lambda x: x.max(0),  # of a vector: scalars, which are no sequence
        lambda x: x.expand(2, 3).sort(0),  # two matrices: the second is no dictionary
        lambda x: T.linalg.svd(x.expand(2, 3)),  # three results
        lambda x: T.return_types.max((x, {})),
    ]
    for function in functions:
        m = module_of(T, function)
        m.register_full_backward_hook(noting(show, "backward"))
        show.error(lambda: m(leaf(T, 1, 3, 2)))
        with T.no_grad():
            show(type(m(leaf(T, 1, 3, 2))).__name__)
    m = module_of(T, lambda *args: args[0])
    m.register_full_backward_pre_hook(noting(show, "backward"))
    m.register_full_backward_hook(noting(show, "backward"))
    m.register_forward_pre_hook(lambda module, args: args[0].max(0))
    show.error(lambda: m(leaf(T, 1, 3, 2)))
    for args in ((1, 2),), ((1, 2), {}), ((1, 2), {"x": 1}), ((1, 2), {}, 3), ((1, 2, 3),), (1,), ():
        show.error(lambda: show(T.return_types.max(*args)))


@corner
def writing_in_place_around_the_fence(T, show):
    m = T.nn.Tanh()
    m.register_full_backward_hook(noting(show, "backward"))
    show.error(lambda: m(leaf(T, 0)).add_(1))
    show.error(lambda: T.nn.Sequential(m, T.nn.ReLU(inplace=True))(leaf(T, 0)))
    inside = module_of(T, lambda x: x.mul_(2))
    inside.register_full_backward_hook(noting(show, "backward"))
    show.error(lambda: inside(leaf(T, 1) * 1))
    pre = T.nn.Tanh()
    pre.register_full_backward_pre_hook(noting(show, "pre"))
    show.error(lambda: pre(leaf(T, 0)).add_(1))


@corner
def nodes_of_the_fence(T, show):
    for kind in ("full_backward_pre", "full_backward", None):
        m = T.nn.Tanh()
        if kind:
            getattr(m, f"register_{kind}_hook")(lambda *args: None)
        node = m(leaf(T, 0)).grad_fn
        while node is not None:
            show(node.name())
            node = node.next_functions[0][0] if node.next_functions else None


@corner
def backward_twice_and_in_parts(T, show):
    m = T.nn.Linear(1, 1)
    T.nn.init.ones_(m.weight)
    m.register_full_backward_pre_hook(noting(show, "pre"))
    m.register_full_backward_hook(noting(show, "backward"))
    x = leaf(T, 2)
    y = m(x)
    y.backward(retain_graph=True)
    y.backward(T.tensor([3.0]), retain_graph=True)
    show("of the weight alone")
    show(T.autograd.grad(y, m.weight, retain_graph=True))
    show("of the input alone")
    show(T.autograd.grad(y, x))


@corner
def one_tensor_as_two_arguments(T, show):
    m = module_of(T, lambda x, y: x * 2 + y * 3)
    m.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 10, None))
    x = leaf(T, 1)
    m(x, x).backward()
    show(x.grad)


@corner
def an_error_in_a_backward_hook(T, show):
    m = T.nn.Tanh()

    def breaks(module, grad_input, grad_output):
        raise KeyError("in the hook")

    handle = m.register_full_backward_hook(breaks)
    x = leaf(T, 0)
    y = m(x)
    show.error(lambda: y.backward(retain_graph=True))
    show(x.grad)
    handle.remove()
    show.error(lambda: y.backward())


@corner
def two_kinds_of_backward_hooks(T, show):
    old, new = T.nn.Tanh(), T.nn.Tanh()
    old.register_backward_hook(print).remove()
    new.register_full_backward_hook(print).remove()
    show.error(lambda: old.register_full_backward_hook(print))  # the kind outlives the hook
    show.error(lambda: new.register_backward_hook(print))
    show(old._is_full_backward_hook, new._is_full_backward_hook)
    old.register_full_backward_pre_hook(noting(show, "pre"))
    old.register_backward_hook(noting(show, "old"))
    show.warnings(lambda: old(leaf(T, 0)).backward())


@corner
def two_kinds_of_backward_hooks_of_all_modules(T, show):
    module, m = hooks_of_all(T), T.nn.Tanh()
    before = module._global_is_full_backward_hook
    try:
        module._global_is_full_backward_hook = None
        with module.register_module_backward_hook(noting(show, "all, old")):
            show.error(lambda: module.register_module_full_backward_hook(print))
            m.register_full_backward_hook(noting(show, "own, new"))
            show.warnings(lambda: m(leaf(T, 0) * 1).backward())
        module._global_is_full_backward_hook = None
        with module.register_module_full_backward_hook(noting(show, "all, new")):
            show.error(lambda: module.register_module_backward_hook(print))
            m(leaf(T, 0)).backward()
    finally:
        module._global_is_full_backward_hook = before


@corner
def the_hook_of_a_dead_module(T, show):
    m = T.nn.Tanh()
    m.register_backward_hook(noting(show, "old"))
    y = m(leaf(T, 0) * 1)
    alive = weakref.ref(m)
    del m
    show(alive() is None)
    show.error(lambda: y.backward())


# ---- handles and copies


def importable_hook(module, args, output):
    return output * 100


@corner
def handles_in_pickles(T, show):
    hooks = OrderedDict()
    Handle = import_module(T.__name__ + ".utils.hooks").RemovableHandle
    marks = OrderedDict()
    handle = Handle(hooks, extra_dict=[marks])
    hooks[handle.id] = "a hook"
    show(type(handle.__getstate__()).__name__, [type(part).__name__ for part in handle.__getstate__()])
    twins, twin = pickle.loads(pickle.dumps((hooks, handle)))
    show(twin.id == handle.id, len(twins), len(twin.extra_dict_ref))
    twin.remove()
    show(len(twins), len(hooks))
    alone = pickle.loads(pickle.dumps(handle))
    show(alone.hooks_dict_ref() is None, alone.remove())
    del marks
    show.error(lambda: pickle.loads(pickle.dumps(handle)))


@corner
def states_of_handles(T, show):
    Handle = import_module(T.__name__ + ".utils.hooks").RemovableHandle
    start, hooks = Handle.next_id, OrderedDict()
    for state in ((None, start + 5), (hooks, start + 7, None), (hooks, start + 2, (OrderedDict(),))):
        handle = Handle.__new__(Handle)
        handle.__setstate__(state)
        show(handle.hooks_dict_ref() is hooks, handle.id - start, Handle.next_id - start, len(handle.extra_dict_ref))
        handle.remove()
    show(Handle(hooks).id - start, Handle(hooks).id - start)


@corner
def what_a_handle_can_hold(T, show):
    Handle = import_module(T.__name__ + ".utils.hooks").RemovableHandle
    hooks, marks = OrderedDict(), OrderedDict()
    show(len(Handle(hooks).extra_dict_ref), len(Handle(hooks, extra_dict=marks).extra_dict_ref))
    show(
        len(Handle(hooks, extra_dict=[marks, hooks]).extra_dict_ref),
        len(Handle(hooks, extra_dict=(marks,)).extra_dict_ref),
    )
    show.error(lambda: Handle({}))
    show.error(lambda: Handle(hooks, extra_dict={}))
    show.error(lambda: Handle(hooks, marks))


@corner
def handles_used_twice_and_late(T, show):
    m = T.nn.Identity()
    with m.register_forward_hook(noting(show, "in the block")) as handle:
        m(1)
        handle.remove()
    handle.remove()
    m(1)
    try:
        with m.register_forward_hook(noting(show, "in another")):
            raise ValueError
    except ValueError:
        show(len(m._forward_hooks))
    late = m.register_forward_hook(print)
    alive = weakref.ref(m)
    del m
    show(alive() is None, late.hooks_dict_ref() is None, late.remove())


@corner
def copies_of_modules_with_hooks(T, show):
    m = T.nn.Identity()
    handle = m.register_forward_hook(importable_hook, always_call=True)
    twins = {"deepcopy": copy.deepcopy(m), "pickle": pickle.loads(pickle.dumps(m)), "copy": copy.copy(m)}
    handle.remove()
    for name, twin in twins.items():
        show(name, twin(1), len(twin._forward_hooks), len(twin._forward_hooks_always_called))
    m.register_forward_hook(lambda module, args, output: None)
    show.error(lambda: pickle.dumps(m))


@corner
def modules_from_before_there_were_such_hooks(T, show):
    m = T.nn.Identity()
    state = {k: v for k, v in m.__getstate__().items() if "hook" not in k or k in ("_forward_hooks", "_backward_hooks")}
    old = T.nn.Identity.__new__(T.nn.Identity)
    old.__setstate__(state)
    show(sorted(k for k in vars(old) if "hook" in k))
    old.register_forward_pre_hook(noting(show, "pre"), with_kwargs=True)
    old.register_full_backward_pre_hook(noting(show, "backward pre"))
    old(leaf(T, 1)).backward()


@corner
def hooks_of_tensors_in_pickles(T, show):
    hooks, x = import_module(T.__name__ + ".utils.hooks"), leaf(T, 1)
    x.register_hook(hooks.unserializable_hook(lambda grad: None))
    show.warnings(lambda: hooks.warn_if_has_hooks(x))
    x.register_hook(importable_hook)
    show.warnings(lambda: hooks.warn_if_has_hooks(x))
    show.warnings(lambda: pickle.dumps(T.nn.Parameter(x)))
    show.error(lambda: hooks.unserializable_hook(3))


# ---- hooks of checkpoints


@corner
def hooks_before_and_behind_state_dict(T, show):
    net = T.nn.Sequential(T.nn.Linear(1, 1), T.nn.Identity())
    for name, m in net.named_modules():
        m.register_state_dict_pre_hook(
            lambda m, prefix, keep_vars, n=name: show("pre", repr(n), repr(prefix), keep_vars)
        )
        m.register_state_dict_post_hook(
            lambda m, state, prefix, meta, n=name: show("post", repr(n), list(state), repr(prefix), meta)
        )
    net.state_dict(keep_vars=True)
    net[0].register_state_dict_post_hook(lambda m, state, prefix, meta: state)
    show.error(net.state_dict)
    show.error(lambda: net._register_state_dict_hook(next(iter(net._state_dict_hooks.values()))))


@corner
def hooks_before_and_behind_load_state_dict(T, show):
    m, state = T.nn.Linear(1, 1), T.nn.Linear(1, 1).state_dict()
    m.register_load_state_dict_pre_hook(lambda *args: show("pre", args[0] is m, list(args[1]), *map(plain, args[2:])))

    def behind(module, keys):
        show("post", keys)
        keys.missing_keys.clear()

    m.register_load_state_dict_post_hook(behind)
    state.pop("bias")
    show(m.load_state_dict(state))
    m.register_load_state_dict_post_hook(lambda module, keys: keys)
    show.error(lambda: m.load_state_dict(state))


@pytest.mark.parametrize("program", CORNERS.values(), ids=CORNERS)
def test_corner(program):
    same(program)
