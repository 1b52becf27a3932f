"""Programs with operators of their own, for tests/test_library.py: each is given torch or readtorch, and says what it sees."""

import contextlib
import importlib
import threading
import warnings
from typing import List, Optional, Sequence, Tuple

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


# ------------------------------------------------------------------------------------------------------------ Library


@program
def namespaces_and_kinds(T, say):
    Library = T.library.Library
    first = Library("space", "DEF")
    say(first)
    for arguments in [
        ("space", "DEF"),
        ("space", "FOO"),
        ("prim", "DEF"),
        ("prim", "FRAGMENT"),
        ("_", "FRAGMENT"),
        ("space", "IMPL", "Foo"),
    ]:
        say(lambda: Library(*arguments))
    first._destroy()
    say(lambda: Library("space", "DEF").ns)
    say(lambda: first.define("f() -> ()"))
    say(lambda: first.impl("f", len))


@program
def definitions(T, say):
    fragment, only_kernels = T.library.Library("defs", "FRAGMENT"), T.library.Library("defs", "IMPL")
    say(lambda: fragment.define("f(Tensor x) -> Tensor"))
    say(lambda: fragment.define("f(Tensor x) -> Tensor"))
    say(lambda: fragment.define("f.two(Tensor x, int n) -> Tensor"))
    say(lambda: T.ops.defs.f.overloads())
    say(lambda: fragment.define("other::f(Tensor x) -> Tensor"))
    say(lambda: fragment.define("g(Tensor x -> Tensor"))
    say(lambda: fragment.define("g(t x) -> t"))
    say(lambda: fragment.define("g(Tensor x) -> Tensor", "PURE_FUNCTION"))
    say(lambda: fragment.define("g(Tensor x) -> Tensor", "CONSERVATIVE"))
    say(lambda: only_kernels.define("h(Tensor x) -> Tensor"))
    say(lambda: fragment.define("p(Tensor x) -> Tensor", tags=(T.Tag.pointwise, T.Tag.core)))
    say(lambda: T.ops.defs.p.default.tags)
    say(lambda: fragment.define("q(Tensor x) -> Tensor", tags=T.Tag.pointwise))
    say(lambda: T.ops.defs.q.default.tags)
    say(lambda: [T.ops.defs.f.default._defined_in_python, T.ops.aten.add.Tensor._defined_in_python])
    fragment._destroy()
    say(lambda: T.ops.defs.f)


@program
def schemas_of_tags(T, say):
    lib = T.library.Library("tagged", "FRAGMENT")
    for text in [
        "a(Tensor x) -> Tensor",
        "b(Tensor(a!) x) -> Tensor(a!)",
        "c(Tensor x, *, Tensor(a!)? out) -> Tensor(a!)",
        "d(Tensor x, *, Tensor(a!) out) -> ()",
        "e(Tensor x, *, Tensor(a!) out) -> Tensor",
        "f(Tensor x, *, Tensor(a!) out) -> Tensor(a)",
        "g(Tensor x, *, Tensor(a!) out, Tensor(b!) two) -> (Tensor(b!), Tensor(a!))",
        "h(Tensor x, *, Tensor(a!) out, Tensor(b!) two) -> (Tensor(a!), Tensor(b!))",
    ]:
        say(lambda: lib.define(text, tags=T.Tag.out))
    for text in [
        "a() -> ()",
        "b(*, Tensor(a!) x) -> Tensor(a!)",
        "c(Tensor x) -> Tensor",
        "d(Tensor(a!)[] x) -> ()",
        "e(Tensor(a!) x) -> ()",
        "f(Tensor(a!) x) -> int",
        "g(Tensor(a!) x) -> Tensor",
        "i(Tensor(a!) x) -> Tensor(a)",
        "j(Tensor(a!) x, Tensor(b!) y) -> Tensor(b!)",
        "k(Tensor(a!) x, Tensor(b!) y) -> Tensor(a!)",
        "l(Tensor(a!) x, Tensor y) -> Tensor(a!)",
    ]:
        say(lambda: lib.define(text, tags=T.Tag.inplace))


@program
def kernels(T, say):
    lib, x = T.library.Library("kern", "FRAGMENT"), T.ones(2)
    lib.define("f(Tensor x) -> Tensor")
    say(lambda: T.ops.kern.f(x))
    say(lambda: lib.impl("f", 3, "CPU"))
    say(lambda: lib.impl("f", lambda x: x, "Foo"))
    say(lambda: lib.impl("aten::f", lambda x: x, "CPU"))
    say(lambda: lib.impl(3, lambda x: x, "CPU"))
    say(lambda: lib.impl("f", lambda x: x + 1, "CPU"))
    say(lambda: T.ops.kern.f(x))
    say(lambda: lib.impl("f", lambda x: x + 2, "CPU", allow_override=False))
    other = T.library.Library("kern", "IMPL", "CPU")
    say(lambda: other.impl("f", lambda x: x, "CUDA"))
    say(lambda: other.impl("later", lambda x: x * 10))
    say(lambda: T.ops.kern.later(x))
    lib.define("later(Tensor x) -> Tensor")
    say(lambda: T.ops.kern.later(x))
    other._destroy()
    say(lambda: T.ops.kern.later(x))
    say(lambda: (lib.define("c(Tensor x) -> Tensor"), lib.impl("c", lambda x: x * 2)))
    say(lambda: lib.impl("c", lambda x: x, "Meta"))
    say(lambda: T.ops.kern.c(x.clone().requires_grad_()).grad_fn.name())
    say(lambda: T.ops.kern.f(x.to("meta")))
    say(lambda: lib.impl(T.ops.kern.f.default, lambda x: x - 5, "Meta"))
    say(lambda: T.ops.kern.f(x.to("meta")).device)


@program
def an_override_and_its_end(T, say):
    x = T.tensor([0.0, 1.0])
    original = T.library.get_kernel("aten::sin", "CPU")
    with T.library._scoped_library("aten", "IMPL") as lib:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lib.impl("sin", lambda keys, x: original.call_boxed(keys, x) + 100, "CPU", with_keyset=True)
        say(lambda: T.sin(x))
        y = x.clone().requires_grad_()
        say(lambda: T.sin(y))
        say(lambda: T.autograd.grad(T.sin(y).sum(), y))
    say(lambda: T.sin(x))
    for arguments in [(3, "CPU"), ("aten::sinx", "CPU"), ("aten::sin", "Foo"), ("aten::sin", "Autograd")]:
        say(lambda: T.library.get_kernel(*arguments))


@program
def key_sets(T, say):
    lib, x = T.library.Library("keyed", "FRAGMENT"), T.ones(2)
    y = T.ones(2, requires_grad=True)
    seen = []
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda keys, x: (seen.append(str(keys)), x.clone())[1], "CPU", with_keyset=True)
    T.ops.keyed.f(x), T.ops.keyed.f(y)
    say(seen)

    def at_autograd(keys, x):
        seen.append(str(keys))
        with T._C._AutoDispatchBelowAutograd():
            return T.ops.keyed.f.default.redispatch(keys & T._C._after_autograd_keyset, x)

    lib.impl("f", at_autograd, "Autograd", with_keyset=True)
    say(lambda: T.ops.keyed.f(y))
    say(seen)
    lib.define("g(Tensor x) -> Tensor")
    lib.impl("g", lambda x: x * 3, "CPU")
    lib.impl("g", T.library.fallthrough_kernel, "AutogradCPU")
    say(lambda: T.ops.keyed.g(y))
    say(lambda: T.library.fallthrough_kernel())


@program
def a_fallback(T, say):
    say(lambda: T.library.Library("fall", "FRAGMENT").fallback(lambda *a: 1, "CPU"))
    say(lambda: T.library.Library("_", "IMPL").fallback(lambda op, *args: 1))
    with T.library._scoped_library("_", "IMPL") as lib:
        ops = T.library.Library("fall", "FRAGMENT")
        ops.define("f(Tensor x, int n=1, *, str s='a') -> Tensor")
        lib.fallback(
            lambda keys, op, *args, **kwargs: (say([str(op), keys, len(args), kwargs]), args[0] * 1)[1],
            "SparseCPU",
            with_keyset=True,
        )
        x = T.eye(2).to_sparse()
        say(lambda: T.ops.fall.f(x, 2, s="b").layout)
    say(lambda: T.ops.fall.f(x))


@program
def arguments(T, say):
    lib, x = T.library.Library("args", "FRAGMENT"), T.ones(2)
    lib.define("f(Tensor x, int y=2, *, float z=1.0, int[] l=[1,2], str? s=None) -> Tensor")

    def kernel(*args, **kwargs):
        shown = [type(a).__name__ if isinstance(a, T.Tensor) else a for a in args]
        say([shown, kwargs])
        return args[0].clone()

    lib.impl("f", kernel, "CPU")
    f = T.ops.args.f
    for call in [
        lambda: f(x),
        lambda: f(x, 2),
        lambda: f(x, 3, z=1),
        lambda: f(x, y=2, z=2),
        lambda: f(x, l=(3, 4), s="q"),
        lambda: f(x, l=[1, 2], s=None),
        lambda: f(x, 1, l=[1.0]),
        lambda: f(x, True),
        lambda: f(x, 1.5),
        lambda: f(x, T.tensor(3)),
        lambda: f(x, z=T.tensor(3.0)),
        lambda: f(x, s=3),
        lambda: f(),
        lambda: f(x, 1, 2),
        lambda: f(x, foo=1),
        lambda: f.default(3),
        lambda: f(x, x=x),
        lambda: f.default(x, y=1, x=x),
        lambda: f.bar,
        lambda: T.ops.args.nothing,
        lambda: f(1, 2, 3, 4, 5, 6),
    ]:
        say(call)


@program
def every_type(T, say):
    lib = T.library.Library("types", "FRAGMENT")
    values = [
        ("int", [1, True, 1.0, T.tensor(2), T.tensor(2.0), "a", None, 2**63]),
        ("SymInt", [1, 1.0]),
        ("float", [1, 1.5, True, T.tensor(2.5), "a"]),
        ("bool", [True, 1, 0.0, None, "a"]),
        ("str", ["a", 1]),
        ("Scalar", [1, 1.5, True, 1j, "a"]),
        ("ScalarType", [T.float32, "float32", None]),
        ("Device", [T.device("cpu"), "cpu", 3.5]),
        ("Layout", [T.strided, "strided"]),
        ("MemoryFormat", [T.contiguous_format, 3.5]),
        ("int?", [1, None, 1.5]),
        ("float?", [1, None]),
        ("Scalar?", [None, 2]),
        ("str?", [None, "x"]),
        ("ScalarType?", [None, T.int64]),
        ("Device?", [None, "cpu"]),
        ("int[]", [[1, 2], (1, 2), [], [1.5], 1, None]),
        ("SymInt[]", [[1, 2], (3,)]),
        ("int[2]", [3, (1, 2), [1]]),
        ("int[]?", [None, [1]]),
        ("float[]", [[1, 2.5], (1,), ["a"]]),
        ("bool[]", [[True, False], [1, 0]]),
        ("Scalar[]", [[1, 2.5], [True]]),
    ]
    for number, (kind, given) in enumerate(values):
        lib.define(f"t{number}({kind} v, Tensor x) -> Tensor")
        lib.impl(f"t{number}", lambda v, x: (say([kind, v, type(v).__name__]), x.clone())[1], "CPU")
        for value in given:
            say(lambda: getattr(T.ops.types, f"t{number}")(value, T.ones(1)))


@program
def tensor_arguments(T, say):
    lib, x = T.library.Library("tens", "FRAGMENT"), T.ones(2)
    lib.define("many(Tensor[] a, Tensor?[] b, Tensor? c=None, *, Tensor? d=None) -> Tensor")
    lib.impl(
        "many", lambda a, b, c=None, d=None: (say([type(a), type(b), len(a), c is None, d is None]), a[0] * 1)[1], "CPU"
    )
    many = T.ops.tens.many
    for call in [
        lambda: many([x, x], [None, x]),
        lambda: many((x,), (), x),
        lambda: many([x], [x], d=x),
        lambda: many([], []),
        lambda: many([None], []),
        lambda: many(x, []),
        lambda: many([x, 3], []),
        lambda: many([x], [3]),
        lambda: many([x], [], 3),
    ]:
        say(call)


@program
def odd_names(T, say):
    lib, x = T.library.Library("odd", "FRAGMENT"), T.ones(2)
    lib.define("f(Tensor table, int keys=1, int device=2, *, int t=3, int tls=4) -> Tensor")
    lib.impl("f", lambda table, keys=1, device=2, *, t=3, tls=4: table * keys * device * t * tls, "CPU")
    say(lambda: T.ops.odd.f(x))
    say(lambda: T.ops.odd.f(table=x, keys=2, device=3, tls=1))
    lib.define("g(Tensor from, int self=0, int args=1, int kwargs=2) -> Tensor")
    lib.impl("g", lambda *args: args[0] + len(args), "CPU")
    say(lambda: T.ops.odd.g(**{"from": x, "self": 2}))
    say(lambda: T.ops.odd.g(x, 1, 2, 3))


@program
def results(T, say):
    lib, x = T.library.Library("ret", "FRAGMENT"), T.ones(2)
    cases = [
        (3, "Tensor"),
        (None, "Tensor"),
        (None, "()"),
        (3, "()"),
        (3, "int"),
        (3.5, "int"),
        (True, "int"),
        (3, "float"),
        (3, "bool"),
        ("a", "str"),
        ((1, 2), "int[]"),
        ([1, 2.5], "int[]"),
        ((x, x), "(Tensor, Tensor)"),
        ([x, x], "(Tensor, Tensor)"),
        (x, "(Tensor, Tensor)"),
        ((x, x), "Tensor[]"),
        ([x, 3], "Tensor[]"),
        (3, "Scalar"),
        (True, "Scalar"),
        (x.sum(), "Scalar"),
        ("a", "Scalar"),
        (None, "Tensor?"),
        (T.float32, "ScalarType"),
        ("cpu", "Device"),
        ((x, 3), "(Tensor, int)"),
        ((x, None), "(Tensor, Tensor?)"),
        ({}, "Tensor"),
        (3, "SymInt"),
        ((x,), "(Tensor)"),
        ((1, [x]), "(int, Tensor[])"),
    ]
    for number, (value, returns) in enumerate(cases):
        lib.define(f"r{number}(Tensor x) -> {returns}")
        lib.impl(f"r{number}", lambda x: value, "CPU")
        say(lambda: getattr(T.ops.ret, f"r{number}")(x))


@program
def without_tensors(T, say):
    lib = T.library.Library("none", "FRAGMENT")
    lib.define("f(int n) -> int")
    say(lambda: T.ops.none.f(3))
    lib.impl("f", lambda n: n + 1, "CPU")
    say(lambda: T.ops.none.f(3))
    lib.impl("f", lambda n: n + 2, "CompositeExplicitAutograd")
    say(lambda: T.ops.none.f(3))
    lib.define("zeros(int n, Device device) -> Tensor")
    lib.impl("zeros", lambda n, device: T.zeros(n, device=device), "BackendSelect")
    say(lambda: T.ops.none.zeros(2, "cpu"))


@program
def without_an_autograd_kernel(T, say):
    lib = T.library.Library("noautograd", "FRAGMENT")
    for name, kernel in [
        ("clone", lambda x: x.clone()),
        ("same", lambda x: x),
        ("detached", lambda x: x.detach() * 2),
        ("ints", lambda x: x.detach().long()),
    ]:
        lib.define(f"{name}(Tensor x) -> Tensor")
        lib.impl(name, kernel, "CPU")
        y = T.ones(2, requires_grad=True)
        op = getattr(T.ops.noautograd, name)
        say(lambda: (op(y), op(y).requires_grad))
        say(lambda: op(y).sum().backward())
        say(lambda: y.grad)
        with T.no_grad():
            say(lambda: op(y).requires_grad)
        with set_mode(T, "nothing"):
            say(lambda: op(y))
    lib.define("pair(Tensor x, Tensor[] ys) -> (Tensor, Tensor[])")
    lib.impl("pair", lambda x, ys: (x.detach() + 1, [y.detach() for y in ys]), "CPU")
    y = T.ones(2, requires_grad=True)
    say(lambda: T.ops.noautograd.pair(y, [T.ones(1), T.ones(1, requires_grad=True)]))
    say(lambda: sum(t.sum() for t in T.ops.noautograd.pair(y, [T.ones(1)])[1]).backward())
    say(lambda: T._C._set_autograd_fallback_mode("error"))
    say(lambda: T._C._set_autograd_fallback_mode("foo"))
    say(T._C._get_autograd_fallback_mode())


@contextlib.contextmanager
def set_mode(T, mode):
    T._C._set_autograd_fallback_mode(mode)
    try:
        yield
    finally:
        T._C._set_autograd_fallback_mode("warn")


@program
def by_name(T, say):
    define, impl = T.library.define, T.library.impl
    say(lambda: define(3, "(Tensor x) -> Tensor"))
    say(lambda: define("foo", "(Tensor x) -> Tensor"))
    say(lambda: define("named::foo", "foo(Tensor x) -> Tensor"))
    lib = T.library.Library("named", "FRAGMENT")
    say(lambda: define("named::foo", "(Tensor x) -> Tensor", lib=lib))
    say(lambda: impl("named::foo", "cpu", lambda x: x * 2, lib=lib))
    say(lambda: T.ops.named.foo(T.ones(2)))
    say(lambda: impl("named::foo", ["cuda", "default"], lambda x: x.clone(), lib=lib))
    say(lambda: impl("named::foo", "frob", lambda x: x.clone(), lib=lib))
    say(lambda: impl("foo", "cpu", lambda x: x.clone(), lib=lib))
    say(lambda: impl("named::foo", "CUDA")(lambda x: x))

    @define(lib, "bar(Tensor x) -> Tensor")
    def bar(x):
        return x + 5

    say(lambda: T.ops.named.bar(bar(T.ones(1))))
    define("named::baz", "(Tensor x) -> Tensor", lib=lib)

    @impl(lib, "baz", "CPU")
    def baz(x):
        return x + 7

    say(lambda: T.ops.named.baz(baz(T.ones(1))))
    fake = T.library.register_fake
    say(lambda: fake("named::foo", lambda x: T.empty_like(x), lib=lib).__name__)
    say(lambda: T.ops.named.foo(T.ones(3, device="meta")).shape)
    say(lambda: type(fake("named::foo", lambda x: T.empty_like(x), lib=lib, allow_override=False)))
    say(lambda: fake(3))
    say(lambda: T.library.impl_abstract("named::baz", lambda x: T.empty_like(x), lib=lib).__name__)
    autograd = T.library.register_autograd
    say(lambda: autograd("named::nothing", lambda ctx, g: g, lib=lib))
    say(lambda: autograd("named::foo", lambda ctx, g: g * 2, lib=lib))
    y = T.ones(2, requires_grad=True)
    say(lambda: T.autograd.grad(T.ops.named.foo(y).sum(), y))
    for name, schema in [
        ("writes", "(Tensor(a!) x) -> ()"),
        ("view", "(Tensor(a) x) -> Tensor(a)"),
        ("keyword", "(*, Tensor x) -> Tensor"),
        ("nothing_back", "(Tensor x) -> ()"),
    ]:
        define(f"named::{name}", schema, lib=lib)
        say(lambda: autograd(f"named::{name}", lambda ctx, g: g, lib=lib))
    say(lambda: T.library.register_kernel("named::view", "cpu", lambda x: x.view(-1), lib=lib))
    say(lambda: T.ops.named.view(T.ones(2, 2)).shape)
    say(lambda: T.library.get_ctx())


# ---------------------------------------------------------------------------------------------------- infer_schema


@program
def schemas_of_annotations(T, say):
    Tensor, infer, Tag = T.Tensor, T.library.infer_schema, T.Tag

    def everything(
        x: Tensor,
        y: int = 2,
        *,
        z: Optional[float] = None,
        s: str = "a",
        d: T.dtype = T.float32,
        e: T.device = T.device("cpu"),
        n: T.types.Number = 1.5,
        b: bool = True,
    ) -> Tensor: ...

    def lists(
        x: Tensor, ys: List[Tensor], zs: Sequence[Optional[Tensor]], i: Optional[List[int]]
    ) -> Tuple[Tensor, int]: ...
    def newer(
        x: Tensor | None, y: int | None = None, z: list[Tensor] = None, f: list[float] = None
    ) -> list[Tensor]: ...
    def no_annotation(x) -> Tensor: ...
    def no_return(x: Tensor): ...
    def a_dict(x: dict) -> Tensor: ...
    def a_tuple(x: Tuple[int, int]) -> Tensor: ...
    def dots(x: Tuple[int, ...]) -> Tensor: ...
    def variadic(*a: Tensor) -> Tensor: ...
    def positional(x: Tensor, /) -> Tensor: ...
    def unknown_name(x: "nope") -> Tensor: ...  # noqa: F821
    def a_str(x: Tensor) -> str: ...
    def nothing(x: Tensor) -> None: ...
    def one_tuple(x: Tensor) -> Tuple[Tensor]: ...
    def with_str(x: Tensor) -> Tuple[Tensor, str]: ...
    def default(x: Tensor, y: List[int] = (1,)) -> Tensor: ...
    def two(x: Tensor, y: Tensor) -> Tensor: ...
    def outs(x: Tensor, *, out: Tensor, more: Tensor) -> Tuple[Tensor, Tensor]: ...
    def number_first(n: int, x: Tensor) -> Tensor: ...

    for function in [
        everything,
        lists,
        newer,
        no_annotation,
        no_return,
        a_dict,
        a_tuple,
        dots,
        variadic,
        positional,
        unknown_name,
    ]:
        say(lambda: infer(function, mutates_args=()))
    for function in [a_str, nothing, one_tuple, with_str, default]:
        say(lambda: infer(function, mutates_args=(), op_name="op"))
    for mutates in [("x",), "unknown", ("q",), ("y",), "foo"]:
        say(lambda: infer(everything, mutates_args=mutates))
    say(lambda: infer(lists, mutates_args=("x", "ys")))
    for function, mutates, tags in [
        (two, ("x",), Tag.inplace),
        (two, ("y",), Tag.inplace),
        (two, "unknown", Tag.inplace),
        (nothing, ("x",), Tag.inplace),
        (number_first, ("x",), Tag.inplace),
        (two, ("y",), Tag.out),
        (outs, ("out", "more"), Tag.out),
        (outs, ("out",), Tag.out),
        (outs, (), Tag.out),
        (outs, (), [Tag.out, Tag.inplace]),
    ]:
        say(lambda: infer(function, mutates_args=mutates, tags=tags))


# ------------------------------------------------------------------------------------------------------- custom_op


def cube_of(T):
    @T.library.custom_op("made::cube", mutates_args=())
    def cube(x: T.Tensor, p: int = 3) -> T.Tensor:
        return T.tensor(x.detach().numpy() ** p)

    return cube


@program
def a_custom_op(T, say):
    cube = cube_of(T)
    x = T.tensor([1.0, 2.0, 3.0])
    y = x.clone().requires_grad_()
    say(lambda: (cube, cube._opoverload, cube._opoverload.tags, cube._opoverload._schema))
    for call in [
        lambda: cube(x),
        lambda: cube(x, 2),
        lambda: cube(x, p=2),
        lambda: T.ops.made.cube(x),
        lambda: cube("a"),
    ]:
        say(call)
    say(lambda: cube(x, 1.5))
    say(lambda: cube(y))
    say(lambda: cube(y).sum().backward())
    say(lambda: cube(x.to("meta")))
    cube.register_fake(lambda x, p=3: T.empty_like(x))
    say(lambda: cube(x.to("meta")))
    with T.no_grad():
        say(lambda: cube(y).requires_grad)
    with T.inference_mode():
        say(lambda: cube(y).requires_grad)


@program
def its_gradient(T, say):
    cube = cube_of(T)
    y = T.tensor([1.0, 2.0, 3.0], requires_grad=True)

    def setup_context(ctx, inputs, output):
        x, ctx.p = inputs
        ctx.save_for_backward(x)
        say([len(inputs), output.requires_grad])

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        say(ctx.needs_input_grad)
        return grad * ctx.p * x ** (ctx.p - 1), None

    cube.register_autograd(backward, setup_context=setup_context)
    say(lambda: cube(y).grad_fn.name())
    say(lambda: T.autograd.grad(cube(y).sum(), y))
    say(lambda: T.autograd.grad(cube(y, 2).sum(), y))
    (g,) = T.autograd.grad(cube(y).sum(), y, create_graph=True)
    say(lambda: T.autograd.grad(g.sum(), y))
    say(lambda: cube(y.detach()).requires_grad)
    cube.register_autograd(lambda ctx, grad: grad, setup_context=None)
    say(lambda: T.autograd.grad(cube(y).sum(), y))


@program
def a_gradient_that_is_checked(T, say):
    square = T.library.custom_op("made::square", mutates_args=(), schema="(Tensor x) -> Tensor")(
        lambda x: x.detach() ** 2
    )

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    square.register_autograd(lambda ctx, g: 2 * g * ctx.saved_tensors[0], setup_context=setup_context)
    x = T.tensor([0.5, -1.5], dtype=T.float64, requires_grad=True)
    say(lambda: (T.autograd.gradcheck(square, x), T.autograd.gradgradcheck(square, x)))


@program
def results_that_are_inputs(T, say):
    x = T.ones(2)
    for number, function in enumerate([lambda x: x, lambda x: x.view(-1), lambda x: x[:1], lambda x: x.clone()]):
        op = T.library.custom_op(f"made::alias{number}", mutates_args=(), schema="(Tensor x) -> Tensor")(function)
        say(lambda: op(x))
    twice = T.library.custom_op("made::twice", mutates_args=(), schema="(Tensor x) -> (Tensor, Tensor)")
    op = twice(lambda x: (x.clone(),) * 2)
    say(lambda: op(x))


@program
def writing(T, say):
    @T.library.custom_op("made::inc", mutates_args=("x",))
    def inc(x: T.Tensor, by: int = 1) -> None:
        x.detach().add_(by)

    z = T.zeros(2)
    before = z._version
    say(lambda: (inc(z), inc(z, by=3), z, z._version - before))
    with T.inference_mode():
        inner = T.zeros(2)
        say(lambda: (inc(inner), inner))
    a = T.ones(2, requires_grad=True)
    b = a * 2
    c = b * b
    say(lambda: inc(b))
    say(lambda: c.sum().backward())
    say(lambda: inc(a))
    say(lambda: inc.register_autograd(lambda ctx: None))
    say(lambda: inc(T.zeros(2, device="meta")))

    @T.library.custom_op("made::unknown", mutates_args="unknown")
    def unknown(x: T.Tensor, ys: List[T.Tensor]) -> None:
        x.add_(1)
        for y in ys:
            y.add_(2)

    x, y = T.zeros(1), T.zeros(1)
    say(lambda: (unknown._opoverload._schema, unknown(x, [y]), x, y, x._version, y._version))


@program
def tags_of_custom_ops(T, say):
    @T.library.custom_op("made::sin_", mutates_args=("x",), tags=T.Tag.inplace)
    def sin_(x: T.Tensor) -> T.Tensor:
        return x.sin_()

    z = T.ones(2)
    say(lambda: (sin_(z) is z, z, sin_._opoverload._schema, sin_._opoverload.tags))
    say(lambda: sin_(z.to("meta")))
    say(lambda: sin_.register_fake(lambda x: x).__name__)

    @T.library.custom_op("made::sin_out", mutates_args=("out",), tags=T.Tag.out)
    def sin_out(x: T.Tensor, *, out: T.Tensor) -> T.Tensor:
        return out.copy_(x.sin())

    out = T.ones(2)
    say(lambda: (sin_out(T.ones(2), out=out) is out, out, sin_out._opoverload._schema))
    say(lambda: sin_out(T.ones(2, requires_grad=True), out=out))
    say(lambda: sin_out.register_autograd(lambda ctx, g: g))

    @T.library.custom_op("made::bad_out", mutates_args=("out",), tags=T.Tag.out)
    def bad_out(x: T.Tensor, *, out: T.Tensor) -> T.Tensor:
        return x.sin()

    say(lambda: bad_out(T.ones(2), out=T.ones(2)))

    @T.library.custom_op("made::bad_", mutates_args=("x",), tags=T.Tag.inplace)
    def bad_(x: T.Tensor) -> T.Tensor:
        return x.sin()

    say(lambda: bad_(T.ones(2)))


@program
def lists_in_custom_ops(T, say):
    y = T.tensor([1.0, 2.0, 3.0], requires_grad=True)

    @T.library.custom_op("made::split", mutates_args=())
    def split(x: T.Tensor, n: int) -> List[T.Tensor]:
        return [t.clone() for t in x.detach().chunk(n)]

    def backward(ctx, grads):
        say([None if g is None else g.shape for g in grads])
        return T.cat([T.zeros(1) if g is None else g for g in grads]), None

    split.register_autograd(backward)
    say(lambda: split(y, 3))
    say(lambda: T.autograd.grad((split(y, 3)[0] * 2 + split(y, 3)[2]).sum(), y))

    @T.library.custom_op("made::weighted", mutates_args=())
    def weighted(ts: List[T.Tensor], ws: List[float]) -> T.Tensor:
        return sum(t.detach() * w for t, w in zip(ts, ws))

    def setup_context(ctx, inputs, output):
        ctx.ws = inputs[1]

    def weighted_backward(ctx, grad):
        say(ctx.needs_input_grad)
        return [grad * w for w in ctx.ws], None

    weighted.register_autograd(weighted_backward, setup_context=setup_context)
    a, b = T.ones(2, requires_grad=True), T.ones(2)
    say(lambda: T.autograd.grad(weighted([a, b], [2.0, 3.0]).sum(), a))
    weighted.register_autograd(lambda ctx, grad: (grad, None))
    say(lambda: T.autograd.grad(weighted([a, b], [2.0, 3.0]).sum(), a))


@program
def several_results(T, say):
    y = T.ones(3, requires_grad=True)

    @T.library.custom_op("made::several", mutates_args=())
    def several(x: T.Tensor) -> Tuple[T.Tensor, T.Tensor, int]:
        return x.detach() + 1, x.detach() + 2, 3

    several.register_autograd(lambda ctx, a, b, c: a + 2 * b)
    say(lambda: several(y))
    say(lambda: T.autograd.grad(sum(t.sum() for t in several(y)[:2]), y))

    @T.library.custom_op("made::optional", mutates_args=())
    def optional(x: T.Tensor, w: Optional[T.Tensor] = None, *, s: float = 2.0) -> T.Tensor:
        return x.detach() * s if w is None else x.detach() * w.detach() * s

    def setup_context(ctx, inputs, keyword_only_inputs, output):
        say([len(inputs), inputs[1] is None, keyword_only_inputs])
        ctx.w, ctx.s = inputs[1], keyword_only_inputs["s"]

    def backward(ctx, g):
        return g * ctx.s, None if ctx.w is None else g * 5

    optional.register_autograd(backward, setup_context=setup_context)
    w = T.ones(3, requires_grad=True)
    say(lambda: T.autograd.grad(optional(y).sum(), y))
    say(lambda: T.autograd.grad(optional(y, w, s=4.0).sum(), (y, w)))


@program
def devices(T, say):
    @T.library.custom_op("made::make", mutates_args=(), device_types="cpu")
    def make(n: int, device: T.device) -> T.Tensor:
        return T.ones(n)

    say(lambda: (make(2, T.device("cpu")), make(2, "cpu"), make(n=3, device="cpu")))
    say(lambda: make(2, "cuda"))

    def no_device(n: int) -> T.Tensor: ...

    say(lambda: T.library.custom_op("made::nodevice", no_device, mutates_args=(), device_types="cpu"))

    @T.library.custom_op("made::two", mutates_args=(), device_types="cuda")
    def two(x: T.Tensor) -> T.Tensor:
        return x + 1

    x = T.zeros(1)
    say(lambda: two(x))
    say(lambda: two.register_kernel("cpu")(lambda x: x + 2)(x))
    say(lambda: two(x))
    with two.set_kernel_enabled("cpu", False):
        say(lambda: two(x))
    say(lambda: two(x))
    two.register_kernel(["cpu", "cuda"], lambda x: x + 3)
    say(lambda: two(x))
    say(lambda: T.library.register_kernel("made::two", "cpu", lambda x: x + 4)(x))
    say(lambda: two(x))
    say(lambda: two.register_kernel("frob", lambda x: x))


@program
def what_custom_op_refuses(T, say):
    op = T.library.custom_op

    def keyword(x: T.Tensor, *, w: T.Tensor) -> T.Tensor: ...
    def plain(x: T.Tensor) -> T.Tensor: ...

    say(lambda: op("made::keyword", keyword, mutates_args=()))
    say(lambda: op("noname", plain, mutates_args=()))
    say(lambda: op("made::written", lambda x: None, mutates_args=(), schema="(Tensor(a!) x) -> ()"))
    say(lambda: op("made::spelled", lambda x: None, mutates_args=(), schema="Tensor x -> ()"))
    say(lambda: op("prim::f", plain, mutates_args=()))


@program
def a_name_that_is_used_again(T, say):
    x = T.ones(2)
    first = T.library.custom_op("made::again", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor")
    held = T.ops.made.again.default
    second = T.library.custom_op("made::again", lambda x: x * 3, mutates_args=(), schema="(Tensor x) -> Tensor")
    say(lambda: [first(x), second(x), held(x), T.ops.made.again(x)])


@program
def views(T, say):
    made = T.library.custom_op("made::flat", lambda x: x.view(-1), mutates_args=(), schema="(Tensor(a) x) -> Tensor(a)")
    say(lambda: made(T.ones(2, 2))._is_view())
    say(lambda: made._opoverload.is_view)
    made.register_autograd(lambda ctx, g: g.view(2, 2) * 3)
    y = T.ones(2, 2, requires_grad=True)
    say(lambda: T.autograd.grad(made(y).sum(), y))


# --------------------------------------------------------------------------------------------------------- traces


@program
def in_a_trace(T, say):
    cube = cube_of(T)

    def double(x):
        return cube(x, 2) * 2

    traced = T.jit.trace(double, T.ones(2))
    say(lambda: [node.kind() for node in traced.graph.nodes()])
    say(lambda: traced(T.tensor([3.0, 4.0])))


# ---------------------------------------------------------------------------------------------- modes, classes, opcheck


@program
def under_a_mode(T, say):
    from_mode = T.utils._python_dispatch.TorchDispatchMode

    class Log(from_mode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            say([str(func), len(args), kwargs])
            return func(*args, **(kwargs or {}))

    cube = cube_of(T)
    cube.register_autograd(lambda ctx, g: g)
    x = T.tensor([2.0], requires_grad=True)
    with Log():
        say(lambda: cube(x, 3))
    with Log():
        say(lambda: T.ops.made.cube.default(x.detach(), p=2))
    lib = T.library.Library("modes", "FRAGMENT")
    lib.define("f(Tensor[] xs, int n=1, *, str s='a', float f=1.) -> Tensor")
    lib.impl("f", lambda xs, n=1, *, s="a", f=1.0: xs[0] * n, "CPU")
    with Log():
        say(lambda: T.ops.modes.f([x.detach()], 2, s="b"))


def checked(T, say, op, *arguments, **options):
    tests = ("test_schema", "test_autograd_registration", "test_faketensor")
    say(lambda: T.library.opcheck(op, arguments, test_utils=tests, **options))
    results = T.library.opcheck(op, arguments, test_utils=tests, raise_exception=False, **options)
    say({name: f"{type(found).__name__}: {found}" for name, found in results.items()})


@program
def opcheck_of_good_operators(T, say):
    cube = cube_of(T)
    cube.register_fake(lambda x, p=3: T.empty_like(x))
    checked(T, say, cube, T.ones(2))
    checked(T, say, cube, T.ones(2, requires_grad=True), 2)
    checked(T, say, T.ops.made.cube, T.ones(2))
    checked(T, say, T.ops.aten.sin.default, T.ones(2, requires_grad=True))
    checked(T, say, T.ops.aten.add_.Tensor, T.ones(2), T.ones(2))
    say(lambda: T.library.opcheck(len, ()))
    say(lambda: T.library.opcheck(cube, (), test_utils="foo"))
    say(lambda: T.library.opcheck(cube, (), rtol=1))


@program
def opcheck_of_bad_operators(T, say):
    lib = T.library.Library("bad", "FRAGMENT")
    Function = T.autograd.Function

    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    kernels = {
        "writes(Tensor x) -> Tensor": (lambda x: x.add_(1).clone(), lambda x: T.empty_like(x)),
        "same(Tensor x) -> Tensor": (lambda x: x, lambda x: T.empty_like(x)),
        "view(Tensor x) -> Tensor": (lambda x: x.view(-1), lambda x: T.empty_like(x)),
        "shape(Tensor x) -> Tensor": (lambda x: x.clone(), lambda x: T.empty(5)),
        "dtype(Tensor x) -> Tensor": (lambda x: x.clone(), lambda x: T.empty_like(x, dtype=T.int64)),
        "strides(Tensor x) -> Tensor": (lambda x: x.clone().t(), lambda x: T.empty(2, 2)),
        "number(Tensor x) -> (Tensor, Tensor)": (lambda x: (x + 1, x + 2), lambda x: (T.empty_like(x),) * 2),
        "twice(Tensor x) -> (Tensor, Tensor)": (
            lambda x: (x.clone(),) * 2,
            lambda x: (T.empty_like(x), T.empty_like(x)),
        ),
        "function(Tensor x) -> Tensor": (lambda x: Double.apply(x), lambda x: T.empty_like(x)),
        "honest(Tensor(a!) x) -> Tensor(a!)": (lambda x: x.add_(1), lambda x: x),
    }
    for schema, (kernel, fake) in kernels.items():
        name = lib.define(schema)
        lib.impl(name, kernel, "CPU")
        T.library.register_fake(f"bad::{name}", fake, lib=lib)
        checked(T, say, getattr(T.ops.bad, name), T.ones(2, 2))
        checked(T, say, getattr(T.ops.bad, name), T.ones(2, 2, requires_grad=True))


@program
def on_fake_tensors(T, say):
    FakeTensorMode = importlib.import_module(f"{T.__name__}._subclasses.fake_tensor").FakeTensorMode
    cube = cube_of(T)
    chosen = T.library.custom_op("made::chosen", lambda x: x[x > 0], mutates_args=(), schema="(Tensor x) -> Tensor")
    chosen.register_fake(lambda x: x.new_empty([T.library.get_ctx().new_dynamic_size()]))
    inc = T.library.custom_op(
        "made::inc", lambda x: x.add_(1) and None, mutates_args=("x",), schema="(Tensor(a!) x) -> ()"
    )
    lib = T.library.Library("faked", "FRAGMENT")
    for name, key in [
        ("raw", "CPU"),
        ("implicit", "CompositeImplicitAutograd"),
        ("explicit", "CompositeExplicitAutograd"),
    ]:
        lib.define(f"{name}(Tensor x) -> Tensor")
        lib.impl(name, lambda x: x + 1, key)
    with FakeTensorMode():
        x = T.ones(2, 3)
        say(lambda: cube(x))
        cube.register_fake(lambda x, p=3: T.empty_like(x))
        for op in [cube, chosen, inc, T.ops.faked.raw, T.ops.faked.implicit, T.ops.faked.explicit]:
            say(lambda: op(x))
        say(lambda: cube(T.ones(2, requires_grad=True)))
        T.library.register_fake("faked::raw", lambda x: T.empty(5, device=x.device), lib=lib)
        say(lambda: T.ops.faked.raw(x))
    lib.define("nofake(Tensor x) -> Tensor")
    lib.impl("nofake", lambda x: x.clone(), "CPU")
    checked(T, say, T.ops.faked.nofake, T.ones(2, 2))


@program
def a_rule_for_a_class(T, say):
    class Wrapper(T.Tensor):
        @staticmethod
        def __new__(cls, inner):
            made = T.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype)
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            say([cls.__name__, str(func)])
            unwrapped = [a.inner if isinstance(a, Wrapper) else a for a in args]
            return Wrapper(func(*unwrapped, **(kwargs or {})))

    cube = cube_of(T)
    w = Wrapper(T.full((2,), 2.0))
    say(lambda: cube(w).inner)

    def rule(cls, func, types, args, kwargs):
        say([cls.__name__, str(func), [t.__name__ for t in types]])
        return args[0].inner * 100

    cube.register_torch_dispatch(Wrapper, rule)
    say(lambda: cube(w, 4))
    say(lambda: T.ops.aten.add.Tensor(w, w).inner)


@program
def a_rule_for_a_mode(T, say):
    cube = cube_of(T)
    Mode = T.utils._python_dispatch.TorchDispatchMode

    class MyMode(Mode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    def rule(mode, func, types, args, kwargs):
        say([type(mode).__name__, str(func), len(args), kwargs])
        return args[0] * 100

    cube.register_torch_dispatch(MyMode, rule)
    with MyMode():
        say(lambda: cube(T.ones(2)))
    say(lambda: T.library.register_torch_dispatch("made::cube", MyMode, rule) is rule)
    lib = T.library.Library("rules", "FRAGMENT")
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x + 1, "CPU")
    T.library.register_torch_dispatch("rules::f", MyMode, rule, lib=lib)
    with MyMode():
        say(lambda: T.ops.rules.f(T.ones(2)))
    say(lambda: T.library.register_torch_dispatch("rules::f", MyMode, rule, lib=lib))
    say(lambda: T.library.register_torch_dispatch(3, MyMode, rule))


# ----------------------------------------------------------------------------------------------------- in programs


@program
def operators_in_operators(T, say):
    inner = T.library.custom_op("made::inner", lambda x: x.detach() * 2, mutates_args=(), schema="(Tensor x) -> Tensor")
    inner.register_autograd(lambda ctx, g: g * 2)
    outer = T.library.custom_op("made::outer", lambda x: inner(x) + 1, mutates_args=(), schema="(Tensor x) -> Tensor")
    outer.register_autograd(lambda ctx, g: inner(g))
    y = T.ones(3, requires_grad=True)
    say(lambda: (outer(y), T.autograd.grad(outer(y).sum(), y)))

    class Net(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = T.nn.Parameter(T.tensor([1.0, 2.0, 3.0]))

        def forward(self, x):
            return outer(self.w * x)

    net = Net()
    optimizer = T.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net(T.ones(3)).pow(2).sum().backward()
        optimizer.step()
    say(lambda: net.w)
    threads = []
    runner = threading.Thread(target=lambda: threads.append(outer(T.ones(2))))
    runner.start()
    runner.join()
    say(threads)
    for wrong in [lambda ctx, g: g[:1], lambda ctx, g: (g, g), lambda ctx, g: None, lambda ctx, g: 3]:
        inner.register_autograd(wrong)
        say(lambda: T.autograd.grad(inner(y).sum(), y))


@program
def writes_through_views(T, say):
    T.library.custom_op(
        "made::add_one", lambda x: x.add_(1) and None, mutates_args=("x",), schema="(Tensor(a!) x) -> ()"
    )
    add_one = T.ops.made.add_one
    base = T.zeros(4)
    view = base[1:3]
    say(lambda: (add_one(view[:1]), base, base._version, view._version))
    base = T.ones(4, requires_grad=True) * 1
    view = base[1:3]
    say(lambda: (add_one(view[:1]), view.grad_fn.name(), base.grad_fn.name()))
    with T.inference_mode():
        inner = T.ones(1)
    say(lambda: add_one(inner))


@program
def composed_operators(T, say):
    lib = T.library.Library("composed", "FRAGMENT")
    y = T.ones(3, requires_grad=True)
    for name, key in [("implicit", "CompositeImplicitAutograd"), ("explicit", "CompositeExplicitAutograd")]:
        lib.define(f"{name}(Tensor x) -> Tensor")
        lib.impl(name, lambda x: x.sin() + x, key)
        op = getattr(T.ops.composed, name)
        say(lambda: (op(y), T.autograd.grad(op(y).sum(), y)))
        say(lambda: op.default.decompose(y))
        say(lambda: op(T.ones(2, device="meta")).shape)
        with T.inference_mode():
            say(lambda: op(T.ones(2)).is_inference())


@program
def defaults_of_every_type(T, say):
    lib = T.library.Library("defaults", "FRAGMENT")
    say(
        lambda: lib.define(
            "f(Tensor x, ScalarType? d=None, ScalarType e=float64, Device v='cpu', Layout l=strided, int[2] s=1, float f=1, "
            "bool b=True, str t='hi', *, MemoryFormat m=contiguous_format, SymInt[] z=[3]) -> Tensor"
        )
    )
    lib.impl("f", lambda *args, **kwargs: (say([args[1:], kwargs]), args[0].clone())[1], "CPU")
    op, x = T.ops.defaults.f, T.ones(1)
    say(lambda: op(x))
    say(lambda: op(x, T.float32, T.float64, "cpu", T.strided, [1, 1], 1.0, True, "ho", z=[4]))
    say(lambda: op(x, e=T.float32, m=T.channels_last))
    say(lambda: (op.default._schema, [a.default_value for a in op.default._schema.arguments]))


# ------------------------------------------------------------------------------------------------ __torch_function__


@program
def overridden(T, say):
    class Mine(T.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            say([str(func), type(func).__name__, [t.__name__ for t in types], len(args), kwargs])
            return super().__torch_function__(func, types, args, kwargs or {})

    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return [str(func), kwargs]

    class Mode(T.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            say(["mode", str(func), len(types)])
            return func(*args, **(kwargs or {}))

    cube = cube_of(T)
    x = T.ones(2)
    m = x.as_subclass(Mine)
    for call in [
        lambda: type(cube(m)),
        lambda: T.ops.aten.add.Tensor(m, x, alpha=2),
        lambda: T.ops.aten.add(x, m),
        lambda: T.ops.aten.cat([x, m], dim=0),
        lambda: T.ops.aten.add(Duck(), 1, alpha=3),
        lambda: T.ops.aten.add.Tensor(x, other=Duck()),
        lambda: cube(Duck()),
    ]:
        say(call)
    with Mode():
        say(lambda: T.ops.aten.add.Tensor(x, x))
        say(lambda: cube(x))
    with T._C.DisableTorchFunctionSubclass():
        say(lambda: type(T.ops.aten.add.Tensor(m, x)).__name__)
