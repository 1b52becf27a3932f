"""FunctionalTensor and FunctionalTensorMode: a program that writes to tensors runs as one that does not.

Under the mode every operator call is one of these:

    a view               its result remembers how it is seen in the memory of its base
    a write              `x.add_(1)` becomes `y = x.add(1)`, and `y` is from here on the value of `x`
    anything else        is called on values that are up to date

In PyTorch: `torch/_subclasses/functional_tensor.py`; the kernels are C++ that `torchgen/gen_functionalization_type.py` writes.
"""

import functools

from readtorch._C import _TorchDispatchModeKey
from readtorch._ops import ops
from readtorch._tensor import Tensor
from readtorch.aten.native.native_function_generation import functional_name
from readtorch.c10.sym_int import SYM_TYPES, is_symbolic
from readtorch.c10.tensor_impl import contiguous_strides, storage_impl
from readtorch.c10.torch_dispatch_mode_tls import get_mode
from readtorch.csrc.autograd.wrapper_subclass import _functionalize_unsafe_set
from readtorch.csrc.utils.python_dispatch import bind
from readtorch.utils._python_dispatch import TorchDispatchMode, autograd_would_have_decomposed, is_inplace_view
from readtorch.utils._pytree import tree_leaves, tree_map_only

from .fake_tensor import FakeTensor
from .functional_inverses import INVERSES
from .functional_tensor_wrapper import FunctionalTensorWrapper, ViewMeta

aten = ops.aten


class FunctionalTensor(Tensor):
    """A tensor of a program under a FunctionalTensorMode. elem: the FunctionalTensorWrapper that knows its value."""

    _mode_key = _TorchDispatchModeKey.FUNCTIONAL

    @staticmethod
    def __new__(cls, elem, mode):
        value = elem.value
        out = Tensor._make_wrapper_subclass(
            cls,
            value.shape,
            value.stride(),
            value.storage_offset(),
            dtype=value.dtype,
            device=value.device,
            requires_grad=value.requires_grad,
        )
        out.elem = elem
        return out

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise RuntimeError(
            "Attempting to use FunctionalTensor on its own. Instead, please use it with a corresponding FunctionalTensorMode()"
        )

    def __repr__(self, *, tensor_contents=None):
        return f"FunctionalTensor({self.elem.value!r})"

    @staticmethod
    def to_functional(x):
        """The FunctionalTensor of a tensor. A FunctionalTensorMode has to be active."""
        return FunctionalTensor(FunctionalTensorWrapper(x), get_mode(_TorchDispatchModeKey.FUNCTIONAL))

    def from_functional(self):
        """Its value, up to date."""
        self.elem.sync()
        return self.elem.value


def to_functional(tree):
    return tree_map_only(
        Tensor, lambda t: t if isinstance(t, FunctionalTensor) else FunctionalTensor.to_functional(t), tree
    )


def from_functional(tree):
    """The values, up to date, in place of FunctionalTensors."""
    return tree_map_only(FunctionalTensor, FunctionalTensor.from_functional, tree)


class FunctionalTensorMode(TorchDispatchMode):
    """`with FunctionalTensorMode():` tensors that are made are FunctionalTensors, and writes to such make new values.

    reapply_views: views stay views; else they become copies (`view_copy`). Entered twice it is one.
    """

    def __init__(self, reapply_views=True):
        super().__init__()
        self._mode_key = _TorchDispatchModeKey.FUNCTIONAL
        self.reapply_views = reapply_views
        self._entered = []

    def __enter__(self):
        self._entered.append(get_mode(_TorchDispatchModeKey.FUNCTIONAL) is None)
        return super().__enter__() if self._entered[-1] else self

    def __exit__(self, *error):
        if self._entered.pop():
            super().__exit__(*error)

    @classmethod
    def is_infra_mode(cls):
        return True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if any(kind is not Tensor and not issubclass(kind, FakeTensor | FunctionalTensor) for kind in types):
            return NotImplemented
        if self._can_decompose(func, args, kwargs):
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        return kernel_of(func)(self, func, args, kwargs)

    def _can_decompose(self, func, args, kwargs):
        """A composition that writes or looks is taken apart, for its parts are known; another one where autograd would have done so."""
        if not func._can_decompose():
            return False
        schema = func._operator.schema
        if schema.name.startswith("_foreach_"):
            return False  # a loop, and in PyTorch no composition that autograd takes apart
        aliases = any(a.type.alias for a in schema.arguments)
        return aliases or autograd_would_have_decomposed(func, tree_leaves((args, kwargs)))

    def wrap(self, tree):
        return tree_map_only(Tensor, lambda t: FunctionalTensor(FunctionalTensorWrapper(t), self), tree)


# ------------------------------------------------------------------------------------------------- the kernels


@functools.cache
def kernel_of(func):
    """How an operator is called under the mode, by its schema. In PyTorch each has a generated kernel, or the boxed fallback."""
    schema = func._operator.schema
    if func is aten.resize_.default:
        return resize
    if is_inplace_view(func):
        return mutate_view
    if any(a.type.writes for a in schema.arguments):
        return mutate
    if func._operator.schema.full_name in INVERSES:
        return look
    return call


def call(mode, func, args, kwargs):
    """What neither writes nor looks: called on values that are up to date."""
    tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
    results = func(*from_functional(args), **from_functional(kwargs))
    if tensors and not any(isinstance(t, FunctionalTensor) for t in tensors):
        return results
    return mode.wrap(results)


def look(mode, func, args, kwargs):
    """A view."""
    base = args[0]
    if not isinstance(base, FunctionalTensor):
        return mode.wrap(func(*args, **kwargs)) if func is aten.lift_fresh.default else func(*args, **kwargs)
    meta = view_meta(func, mode, args[1:], kwargs)
    values = meta.forward(base.elem.value)
    if isinstance(values, Tensor):
        return view_of(mode, base, values, meta)
    parts = (view_meta(func, mode, args[1:], kwargs, number) for number in range(len(values)))
    return type(values)(view_of(mode, base, value, part) for value, part in zip(values, parts))


@functools.cache
def viewing(func, reapply_views):
    """The operator that makes a view, or the copy that stands for it."""
    schema = func._operator.schema
    packet = None if reapply_views else getattr(aten, f"{schema.name}_copy", None)
    return func if packet is None else getattr(packet, schema.overload or "default")


def view_meta(func, mode, args, kwargs, number=None):
    """The ViewMeta of a call without its base. number: of which of several results."""
    view, reverse = viewing(func, mode.reapply_views), INVERSES[func._operator.schema.full_name]
    which = () if number is None else (number,)

    def forward(base):
        seen = view(base, *args, **kwargs)
        return seen if number is None else seen[number]

    def backward(base, view):
        return reverse(base, view, mode.reapply_views, *which, *args, **kwargs)

    symbolic = any(isinstance(leaf, SYM_TYPES) for leaf in tree_leaves((args, kwargs)))
    return ViewMeta(forward, backward, func is aten.as_strided.default, number is not None, symbolic)


def view_of(mode, base, value, meta):
    """The FunctionalTensor of a view, which has the storage of its base."""
    view = FunctionalTensor(base.elem.view(value, meta), mode)
    _functionalize_unsafe_set(view, base)
    return view


def mutate_view(mode, func, args, kwargs):
    """An operator such as `t_`, which changes how a tensor sees its memory."""
    tensor = args[0]
    if not isinstance(tensor, FunctionalTensor):
        return func(*args, **kwargs)
    tensor.elem.mutate_view_meta(view_meta(without_write(func), mode, args[1:], kwargs))
    set_geometry(tensor)
    return tensor


def resize(mode, func, args, kwargs):
    """`resize_`: to more elements it is a write, to fewer a view of the first ones."""
    tensor = args[0]
    if not isinstance(tensor, FunctionalTensor):
        return func(*args, **kwargs)
    value = aten.resize.default(tensor.from_functional(), *args[1:], **kwargs)
    size, strides = list(value.shape), list(contiguous_strides(value.shape))
    if value.nbytes > tensor.elem.value.untyped_storage().nbytes():
        tensor.elem.maybe_replace_storage(value)
    else:
        view = viewing(aten.as_strided.default, mode.reapply_views)
        tensor.elem.mutate_view_meta(
            ViewMeta(
                lambda base: view(base, size, strides),
                lambda base, part: aten.as_strided_scatter.default(base, part, size, strides),
                has_symbolic_inputs=is_symbolic(size),
            )
        )
    set_geometry(tensor)
    return tensor


def mutate(mode, func, args, kwargs):
    """A write: the operator without it makes the new values of what was written to."""
    schema = func._operator.schema
    given = dict(zip((a.name for a in schema.arguments), bind(schema, args, kwargs)))
    written = [given[a.name] for a in schema.arguments if a.type.writes]
    written = [t for t in written if t is not None]
    refuse_write_to_plain(written, given)
    values = from_functional(given)
    if not any(isinstance(t, FunctionalTensor) for t in tree_leaves(written)):
        return called(func, values)
    results = called(without_write(func), values)
    results = results if isinstance(results, tuple) else (results,)
    returned = len(results) - len(written)  # an operator may have results of its own, which come first
    for target, value in zip(written, results[returned:]):
        for t, v in zip(*(([x] if isinstance(x, Tensor) else x) for x in (target, value))):
            write(t, v)
    own = mode.wrap(list(results[:returned]))
    out = [given[name] for name in returned_arguments(schema)]
    out = [*own, *out]
    return None if not out else out[0] if len(out) == 1 else tuple(out)


def refuse_write_to_plain(written, given):
    if any(not isinstance(t, FunctionalTensor) for t in tree_leaves(written) if isinstance(t, Tensor)):
        if any(isinstance(t, FunctionalTensor) for t in tree_leaves(given)):
            raise RuntimeError(
                "mutating a non-functional tensor with a functional tensor is not allowed. "
                "Please ensure that all of your inputs are wrapped inside of a functionalize() call."
            )


def write(tensor, value):
    """From here on `tensor` has this value, and what shares its memory sees it."""
    tensor.elem.replace_(value)
    tensor.elem.commit_update()
    tensor.elem.sync()
    if tensor.shape != value.shape:
        set_geometry(tensor)


def set_geometry(tensor):
    """Give a FunctionalTensor the sizes and strides of its value."""
    value = tensor.elem.value
    tensor._array = storage_impl(tensor).as_strided(
        tensor._array.dtype, value.shape, value.stride(), value.storage_offset()
    )


# ------------------------------------------------------------------------------------------- operators without a write


@functools.cache
def without_write(func):
    """The operator that computes what `func` writes: add for add_ and add.out. Raises RuntimeError if there is none."""
    schema = func._operator.schema
    wanted = [(a.name, a.type.base) for a in schema.arguments if not (a.type.writes and a.keyword_only)]
    names = schema.name.removesuffix("_"), functional_name(schema)
    packets = [packet for name in names if (packet := getattr(aten, name, None)) is not None]
    for found in (getattr(packet, overload) for packet in packets for overload in packet.overloads()):
        arguments = found._operator.schema.arguments
        if not any(a.type.writes for a in arguments) and [(a.name, a.type.base) for a in arguments] == wanted:
            return found
    raise RuntimeError(f"Found a custom (non-ATen) operator whose output has alias annotations: {func._schema}")


def called(func, values):
    """The operator, called with the values of its arguments by name."""
    arguments = func._operator.schema.arguments
    by_name = {a.public_name: values[a.name] for a in arguments if a.keyword_only}
    return func(*(values[a.name] for a in arguments if not a.keyword_only), **by_name)


def returned_arguments(schema):
    """The names of the arguments that an operator returns because it wrote to them."""
    by_letter = {a.type.alias: a.name for a in schema.arguments if a.type.writes}
    return [by_letter[r.type.alias] for r in schema.returns if r.type.alias in by_letter]
