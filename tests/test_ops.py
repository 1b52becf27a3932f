"""Operators as Python objects, their schemas and tags, against torch.ops; texts that are no schemas."""

import copy
import re

import pytest
import torch

import readtorch as rt
from readtorch.aten.dispatcher import registry
from tests.test_library import alike


def pairs():
    """(ours, theirs) for every operator that both sides have."""
    for name in registry:
        namespace, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        packet = getattr(getattr(torch.ops, namespace), base, None)
        theirs = getattr(packet, overload or "default", None)
        if theirs is not None:
            yield getattr(getattr(getattr(rt.ops, namespace), base), overload or "default"), theirs


# What is known to differ: names of outputs that are derived, arguments of forms that only others call.
OTHER_SCHEMAS = re.compile(
    r"aten::(linalg_eigh\.eigvals|slice_backward|max\.dim_max|min\.dim_min|_sparse_coo_tensor_with_dims_and_tensors$|"
    r"_native_batch_norm_legit\.out|(empty|zeros|ones|full|eye|arange|range|linspace|logspace|fft_r?fftfreq)\.\w*out$)"
)


def test_schemas_and_tags_of_all_operators():
    compared = 0
    for ours, theirs in pairs():
        assert [str(tag) for tag in ours.tags] == [str(tag) for tag in theirs.tags], ours
        assert (str(ours), repr(ours), ours.name(), ours.__name__) == (
            str(theirs),
            repr(theirs),
            theirs.name(),
            theirs.__name__,
        )
        assert (ours.namespace, ours._opname, ours._overloadname) == (
            theirs.namespace,
            theirs._opname,
            theirs._overloadname,
        )
        if OTHER_SCHEMAS.match(ours.name()):
            continue
        compared += 1
        mine, reference = ours._schema, theirs._schema
        assert str(mine) == str(reference)
        assert (ours.is_view, mine.is_mutable, mine._is_view_op()) == (
            theirs.is_view,
            reference.is_mutable,
            reference._is_view_op(),
        )
        assert list(map(facts, mine.arguments)) == list(map(facts, reference.arguments))
    assert compared > 1700


def facts(argument):
    alias = argument.alias_info
    default = argument.default_value
    return (
        argument.name,
        str(argument.type),
        argument.N,
        str(default) if isinstance(default, (rt.device, torch.device)) else default,
        argument.has_default_value(),
        argument.kwarg_only,
        argument.is_out,
        argument.is_write,
        None if alias is None else alias.is_write,
    )


def test_one_object_an_operator():
    for T in (rt, torch):
        packet = T.ops.aten.add
        assert (
            packet is T.ops.aten.add
            and packet.Tensor is packet.Tensor is T.ops.aten.add.op_overloads()[packet.overloads().index("Tensor")]
        )
        assert packet.Tensor.overloadpacket is packet and copy.deepcopy(packet.Tensor) is packet.Tensor
        assert hash(packet.Tensor) == hash(packet.Tensor.op) and "Tensor" in list(packet) and "aten" in list(T.ops)
        assert T.ops.aten.__name__ == "torch.ops.aten" and repr(T.ops).startswith("<module 'torch.ops'")
        assert packet.Tensor.__module__.removeprefix("read") == "torch._ops.aten"
        assert packet._schemas["Tensor"].name == "aten::add"


@pytest.mark.parametrize(
    "ask",
    [
        lambda T: T.ops.aten.nothing,
        lambda T: T.ops.nothing.add,
        lambda T: T.ops.aten.add.nothing,
        lambda T: T.ops.aten.__origin__,
        lambda T: T.ops.higher_order.nothing,
        lambda T: hasattr(T.ops.aten.add, "__nothing"),
        lambda T: T.ops.aten.add.Tensor.py_impl(3)(len),
        lambda T: T.ops.aten.add.Tensor.py_impl(T._C.DispatchKey.Python)(len),
        lambda T: T.ops.aten.add.Tensor.decompose(T.ones(1), T.ones(1)),
        lambda T: T.ops.aten.dropout.default.decompose(T.ones(1), 0.0, True),
        lambda T: T.ops.aten.sin.default.redispatch(
            T._C.DispatchKeySet(T._C.DispatchKey.CPU), T.ones(1, requires_grad=True)
        ),
        lambda T: T.ops.aten.sin.default._op_dk(T._C.DispatchKey.CPU, T.ones(1, requires_grad=True)),
        lambda T: T.ops.aten.sin.default.has_kernel_for_dispatch_key(T._C.DispatchKey.CPU),
        lambda T: T.ops.aten.sin.default.has_kernel_for_dispatch_key(T._C.DispatchKey.CompositeImplicitAutograd),
        lambda T: T.ops.aten.dropout.default.has_kernel_for_dispatch_key(T._C.DispatchKey.CompositeImplicitAutograd),
        lambda T: T.ops.aten.sin.default.has_kernel_for_any_dispatch_key(T._C.DispatchKeySet(T._C.DispatchKey.CPU)),
        lambda T: T.ops.aten.random_.default(T.zeros(2)).shape,
        lambda T: T.ops.aten.split.Tensor(T.ones(4), 2),
        lambda T: T.ops.aten.sum.dim_IntList(T.ones(2, 2), [0], dtype=T.float64),
        lambda T: T.ops.aten.add.Tensor(self=T.ones(1), other=T.ones(1), alpha=3),
        lambda T: T.Tag.pointwise,
        lambda T: (str(T.Tag.core), int(T.Tag.core), T.Tag.core.name, sorted(T.Tag.__members__)),
    ],
)
def test_what_an_operator_answers(ask):
    def said(T):
        try:
            return alike(repr(ask(T)))
        except Exception as error:
            return type(error).__name__, alike(str(error))

    assert said(rt) == said(torch)


def test_implementations_for_python():
    for T in (rt, torch):
        lib = T.library.Library("pyimpl", "FRAGMENT")
        lib.define("f(Tensor x) -> Tensor")
        op, key = T.ops.pyimpl.f.default, T._C.DispatchKey.CompositeImplicitAutograd
        assert op.decompose(T.ones(1)) is NotImplemented and not op._can_decompose()
        op.py_impl(key)(lambda x: "decomposed")
        assert op.decompose(T.ones(1)) == "decomposed" and op._can_decompose() and op.has_kernel_for_dispatch_key(key)
        with pytest.raises(
            RuntimeError, match="Trying to override a python impl for DispatchKey.Comp.* on operator pyimpl::f"
        ):
            op.py_impl(key)(len)


def test_libraries_of_c_are_refused_by_name():
    assert rt.ops.loaded_libraries == torch.ops.loaded_libraries == set()
    with pytest.raises(OSError, match=r"torch.ops.load_library\('a.so'\)"):
        rt.ops.load_library("a.so")
    with pytest.raises(NotImplementedError, match="triton"):
        rt.library.triton_op("mylib::f", mutates_args=())
    with pytest.raises(NotImplementedError, match="Triton"):
        rt.library.wrap_triton(len)


def test_what_waits_for_others_is_refused_by_name():
    op = rt.library.custom_op("made::waits", lambda x: x.clone(), mutates_args=(), schema="(Tensor x) -> Tensor")
    for call, what in [(lambda: op.register_effect(None), "effects")]:
        with pytest.raises(NotImplementedError, match=what):
            call()


# ------------------------------------------------------------------------------------------------------------ schemas

SCHEMAS = [
    *(
        "f(Tensor x",
        "f(Tensor x) -> ",
        "f(Tensor x) Tensor",
        "f",
        "f()",
        "(Tensor x) -> Tensor",
        "",
        "1f(Tensor x) -> Tensor",
    ),
    *("f(Foo x) -> Tensor", "f(Tensor) -> Tensor", "f(Tensor x, ) -> Tensor", "f(Tensor x Tensor y) -> Tensor"),
    *("f(Tensor x) -> Tensor Tensor", "f(Tensor x) -> (Tensor, ", "f(int x=a) -> Tensor", "f(int x=1.5) -> Tensor"),
    *(
        "f(Tensor x=1) -> Tensor",
        "f(Tensor x=None) -> Tensor",
        "f(Tensor? x=None) -> Tensor",
        "f(int x=1, int y) -> Tensor",
    ),
    *(
        "f(int x=1, Tensor y) -> ()",
        "f(int x=1, int[] y) -> ()",
        "f(int x=1, *, int y) -> ()",
        "f(Tensor(a x) -> Tensor",
    ),
    *(
        "f(Tensor(a!) x) -> Tensor(b!)",
        "f.default(Tensor x) -> Tensor",
        "f.__a(Tensor x) -> Tensor",
        "f.o(int x) -> ()",
    ),
    *(
        "a::b::c(Tensor x) -> Tensor",
        "f(Tensor x) -> Tensor;",
        "f(tensor x) -> Tensor",
        "f(t x) -> t",
        "aten::f(t x) -> t",
    ),
    *("f(Tensor[] x, int[2] y=[1,2], float[] z=[]) -> Tensor[]", "f(...) -> ...", "f(Tensor x, ..., int y) -> ()"),
    *("f(int x=1, ...) -> ()", "f(Tensor x) -> (..., Tensor)", "f(int[3] x=1) -> int", "f(int[1] x=1) -> int"),
    *("f(str x=abc) -> int", "f(str x='abc') -> int", "f(Device d='foo') -> int", 'f(Device d="cpu:1") -> int'),
    *(
        "f(Device d=None) -> ()",
        "f(Device? d=None) -> ()",
        "f(ScalarType d=float32) -> int",
        "f(ScalarType d=foo) -> int",
    ),
    *(
        "f(ScalarType? s=long) -> ()",
        "f(bool b=1) -> int",
        "f(bool b=True) -> int",
        "f(float b=1e-5) -> int",
        "f(int x=-1) -> ()",
    ),
    *("f(Scalar s=1.5) -> Scalar", "f(int? x=3) -> int?", "f(Dict(str, Tensor) d) -> int", "f((Tensor, int) x) -> int"),
    *(
        "f(Tensor(a!)[] x) -> ()",
        "f(Tensor(a!)? x) -> ()",
        "f(Tensor?[] x) -> Tensor",
        "f(SymInt[] x, SymInt y=1) -> SymInt",
    ),
    *(
        "f(SymInt[2] x=1) -> ()",
        "f(SymInt? z=None) -> ()",
        "f(Tensor x, int from) -> Tensor",
        "f g(Tensor x) -> Tensor",
    ),
    *(
        "f(Tensor x) - > Tensor",
        "f(Layout l=strided, MemoryFormat m=contiguous_format) -> ()",
        "f(Generator? g=None) -> ()",
    ),
    *("f(Tensor(a -> *) x) -> Tensor(a)[]", "f(float x=inf) -> ()", "f(int[] x=[1, 2) -> ()", "f(complex x=1j) -> ()"),
    *(
        "f(Tensor x)->Tensor",
        "f (Tensor x) -> Tensor",
        "f(Tensor  x , int   y = 1) -> Tensor",
        "f(Tensor x) -> Tensor\n",
    ),
    *("f(Tensor x) -> Tensor # why", "f(Tensor x) -> Tensor\nfoo", "f(True x) -> Tensor", "f(Tensor if) -> Tensor"),
    *(
        "f(int[a] x) -> Tensor",
        "f(int[2 x) -> Tensor",
        "f(List[int] x) -> ()",
        "f(double x) -> ()",
        "f(int64_t x) -> ()",
    ),
    *(
        "f(Tensor() x) -> ()",
        "f(Tensor(a!!) x) -> ()",
        "f(Tensor(A) x) -> ()",
        "f(str[] x=['a']) -> ()",
        "f(Tensor[] x=[]) -> ()",
    ),
    *(
        "f(int[] x=None) -> ()",
        "f(int[]? x=None) -> ()",
        "f(int[]? x=[1]) -> ()",
        "f(int x=Mean) -> ()",
        "f(int x=Sum) -> ()",
    ),
    *(
        "f(Future(int) x) -> ()",
        "f(Union(int, str) x) -> ()",
        "f(Tensor x) -> (Tensor a, Tensor b)",
        "f(Tensor x) -> ((Tensor))",
    ),
    *("f(__torch__.Foo x) -> ()", "f(bool[3] x=True) -> ()", "f(float[] x=[1, 2.5]) -> ()", "f(Tensor! x) -> ()"),
]


@pytest.mark.parametrize("text", SCHEMAS)
def test_a_schema_is_read_or_refused_as_by_pytorch(text):
    def said(T):
        try:
            return str(T._C.parse_schema(text))
        except Exception as error:
            return type(error).__name__, alike(f"E: {error}")

    assert said(rt) == said(torch)
