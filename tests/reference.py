"""Tools for tests that compare readtorch with its reference, PyTorch.

Conversion. `to_readtorch(x)` and `to_torch(x)` carry tensors (values, strides, offset, requires_grad),
dtypes, sizes and any nesting of list, tuple, dict and slice from one side to the other, always copying the
numbers.

Comparison. `assert_close(ours, theirs)` checks dtype, shape and values (within the reference's own
tolerances for the dtype; integers and bools exactly) through any nesting; `exact=True` wants equal numbers,
`strides=True` equal strides.

One expression on both sides. `both(fn, *args)` calls `fn(torch, *args)` and `fn(readtorch, *converted_args)`
and compares everything that can be seen: the results, their strides, grad_fn names and aliasing with the
inputs, the changed inputs, how often each was written to, the gradients of all inputs that require grad, or the
type and text of the error.

    def test_add():
        both(lambda T, a, b: T.add(a, b, alpha=2), torch.randn(3, 4, requires_grad=True), torch.randn(4))

    def test_softmax_wants_an_existing_dim():
        both(lambda T, a: T.softmax(a, 5), torch.randn(3))         # the same error with the same words

    @given(tensors(requires_grad=True))
    def test_tanh(a):
        both(lambda T, a: T.tanh(a), a)

Strategies of hypothesis come from tests/strategies.py and can be imported from here: `shapes()`,
`broadcastable(n)`, `dtypes(kinds)`, `tensors(...)`, `tensor_lists(n, ...)` make tensors of the reference in
every layout: contiguous, permuted, sliced with a step and an offset, expanded.
"""

import contextlib
import dataclasses
import random
import warnings

import numpy as np
import torch

import readtorch as rt
from tests.strategies import COMPLEX, DTYPES, FLOATS, INTS, broadcastable, dtypes, shapes, tensor_lists, tensors  # noqa: F401

# Conversion

place_of_tensors = None  # where `to_readtorch` puts tensors; None: on the CPU


@contextlib.contextmanager
def tensors_on(device):
    """Inside, `to_readtorch` makes tensors on `device`."""
    global place_of_tensors
    place_of_tensors = device
    try:
        yield
    finally:
        place_of_tensors = None


def to_readtorch(value, share=None):
    """`value` with torch's objects replaced by readtorch's. Tensors that share a storage still share it."""
    share = {} if share is None else share
    if isinstance(value, torch.Tensor):
        return _tensor_to_readtorch(value, share)
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return getattr(rt, str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return rt.device(str(value))
    if isinstance(value, torch.Size):
        return rt.Size(value)
    if isinstance(value, torch.Generator):
        generator = rt.Generator()
        generator.set_state(to_readtorch(value.get_state()))
        return generator
    return rebuild(value, lambda v: to_readtorch(v, share))


def to_torch(value):
    """`value` with readtorch's objects replaced by torch's. Strides are kept, shared storages are not."""
    if isinstance(value, rt.Tensor):
        return _tensor_to_torch(value)
    if isinstance(value, (rt.dtype, rt.layout, rt.memory_format)):
        return getattr(torch, str(value).rpartition(".")[2])
    if isinstance(value, rt.device):
        return torch.device(str(value))
    if isinstance(value, rt.Size):
        return torch.Size(value)
    return rebuild(value, to_torch)


def rebuild(value, convert):
    """`value` with `convert` applied to the parts of a list, tuple, dict or slice; anything else as it is."""
    if isinstance(value, tuple):
        parts = [convert(v) for v in value]
        return type(value)(*parts) if hasattr(value, "_make") else type(value)(parts)
    if isinstance(value, list):
        return [convert(v) for v in value]
    if isinstance(value, dict):
        return {k: convert(v) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(convert(value.start), convert(value.stop), convert(value.step))
    return value


def _tensor_to_readtorch(tensor, share):
    """`share` remembers, for one conversion, the tensors made so far and our tensor over each storage."""
    if id(tensor) not in share and tensor.is_sparse:
        parts = [to_readtorch(part.detach()) for part in (tensor._indices(), tensor._values())]
        made = rt.sparse_coo_tensor(*parts, tuple(tensor.shape), is_coalesced=tensor.is_coalesced())
        share[id(tensor)] = made.requires_grad_(tensor.requires_grad)
    if id(tensor) not in share:
        made = _make(tensor.detach(), share).data  # with a version counter of its own, which stands at 0
        assert tensor.numel() == 0 or _place(made) == _place(tensor)
        share[id(tensor)] = made.requires_grad_() if tensor.requires_grad else made
    return share[id(tensor)]


def _place(tensor):
    return tensor.stride(), tensor.storage_offset()


def _make(tensor, share):
    if tensor.is_conj():
        return rt.conj(_make(tensor.conj(), share))
    if tensor.is_neg():
        return rt._neg_view(_make(torch._neg_view(tensor), share))
    storage = tensor.untyped_storage()
    key = (storage.data_ptr(), tensor.dtype)
    whole = share.get(key)
    if whole is None or storage.nbytes() == 0:  # every empty storage has the address 0
        numbers = _numpy_copy(torch.empty(0, dtype=tensor.dtype).set_(storage))
        if tensor.storage_offset() == 0 and numbers.size == _span(tensor) and place_of_tensors is None:
            strides = [s * numbers.itemsize for s in tensor.stride()]
            numbers = np.lib.stride_tricks.as_strided(numbers, tuple(tensor.shape), strides)
            whole = share[key] = _from_numpy(numbers, tensor.dtype)
            return whole
        whole = share[key] = _from_numpy(numbers, tensor.dtype)
    # A window into a larger storage: what lies outside it must exist on our side too.
    return rt.as_strided(whole, tuple(tensor.shape), tensor.stride(), tensor.storage_offset())


def _numpy_copy(tensor):
    """The numbers, bfloat16 as int16 bits. `numpy()` forbids a storage to be resized: only the clone's."""
    return (tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor).clone().numpy()


def _from_numpy(numbers, dtype):
    result = rt.from_numpy(numbers)
    result.untyped_storage()._impl.resizable = True  # as the tensor's that the numbers come from
    result = result.view(rt.bfloat16).detach() if dtype == torch.bfloat16 else result
    return result if place_of_tensors is None else result.to(place_of_tensors)


def _span(tensor):
    """How many elements of storage a tensor at offset 0 reaches."""
    if tensor.numel() == 0:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))


def _tensor_to_torch(tensor):
    if tensor.is_sparse:
        parts = to_torch(tensor._indices()), to_torch(tensor._values())
        made = torch.sparse_coo_tensor(*parts, tensor.shape, is_coalesced=tensor.is_coalesced())
        return made.requires_grad_(tensor.requires_grad)
    plain = tensor.detach().resolve_conj().resolve_neg().cpu()
    if plain.dtype == rt.bfloat16:
        result = torch.from_numpy(plain.view(rt.int16).numpy().copy()).view(torch.bfloat16)
    else:
        result = torch.from_numpy(np.array(plain.numpy(), order="K"))
    return result.requires_grad_() if tensor.requires_grad else result


# Comparison


def assert_close(ours, theirs, *, rtol=None, atol=None, exact=False, strides=False, where="result"):
    """Raise AssertionError unless `ours` (of readtorch) and `theirs` (of torch) are the same thing."""
    again = dict(rtol=rtol, atol=atol, exact=exact, strides=strides)
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, rt.Tensor), f"{where}: a {type(ours).__name__} instead of a tensor"
        _assert_tensor_close(ours, theirs, where=where, **again)
    elif isinstance(theirs, (torch.dtype, torch.device, torch.layout, torch.memory_format)):
        assert _short(ours) == _short(theirs), f"{where}: {ours} instead of {theirs}"
    elif isinstance(theirs, torch.Size):
        assert isinstance(ours, rt.Size), f"{where}: a {type(ours).__name__} instead of a Size"
        assert tuple(ours) == tuple(theirs), f"{where}: {ours} instead of {theirs}"
    elif isinstance(theirs, (list, tuple)):
        kind = list if isinstance(theirs, list) else tuple
        assert isinstance(ours, kind), f"{where}: a {type(ours).__name__} instead of a {kind.__name__}"
        assert len(ours) == len(theirs), f"{where}: {len(ours)} items instead of {len(theirs)}"
        for i, (a, b) in enumerate(zip(ours, theirs)):
            assert_close(a, b, where=f"{where}[{i}]", **again)
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs), f"{where}: keys {list(ours)} instead of {list(theirs)}"
        for k in theirs:
            assert_close(ours[k], theirs[k], where=f"{where}[{k!r}]", **again)
    elif isinstance(theirs, (float, complex)):
        assert type(ours) is type(theirs), f"{where}: {ours!r} instead of {theirs!r}"
        wide = torch.complex128 if isinstance(theirs, complex) else torch.float64
        _assert_values(
            torch.tensor(ours, dtype=wide),
            torch.tensor(theirs, dtype=wide),
            1.3e-6 if rtol is None else rtol,
            1e-5 if atol is None else atol,
            exact,
            where,
        )
    elif callable(theirs) or dataclasses.is_dataclass(theirs):  # torch's own and its counterpart here
        assert type(ours).__name__ == type(theirs).__name__, f"{where}: {ours!r} instead of {theirs!r}"
    else:
        shown = "a tensor" if isinstance(ours, rt.Tensor) else repr(ours)
        assert type(ours) is type(theirs) and ours == theirs, f"{where}: {shown} instead of {theirs!r}"


def _assert_tensor_close(ours, theirs, *, rtol, atol, exact, strides, where):
    assert _short(ours.dtype) == _short(theirs.dtype), f"{where}: {ours.dtype} instead of {theirs.dtype}"
    our_shape, their_shape = tuple(ours.shape), tuple(theirs.shape)
    assert our_shape == their_shape, f"{where}: shape {our_shape} instead of {their_shape}"
    assert ours.requires_grad == theirs.requires_grad, f"{where}: requires_grad is {ours.requires_grad}"
    assert ours.is_sparse == theirs.is_sparse, f"{where}: layout {ours.layout} instead of {theirs.layout}"
    if theirs.is_sparse:
        assert ours.is_coalesced() == theirs.is_coalesced(), f"{where}: is_coalesced is {ours.is_coalesced()}"
        parts = [(t._indices(), t._values()) for t in (ours.detach(), theirs.detach())]
        assert_close(*parts, rtol=rtol, atol=atol, exact=exact, where=f"(indices, values) of {where}")
        return
    if strides:
        assert same_strides(ours, theirs), f"{where}: strides {ours.stride()} instead of {theirs.stride()}"
    _assert_values(to_torch(ours.detach()), theirs.detach(), rtol, atol, exact, where)


def _assert_values(ours, theirs, rtol, atol, exact, where):
    if torch.equal(ours, theirs):  # the common case, much cheaper than the full comparison
        return
    if exact:
        rtol, atol = 0.0, last_bits(theirs)
    elif (rtol is None) != (atol is None):
        rtol, atol = (0.0 if one is None else one for one in (rtol, atol))
    torch.testing.assert_close(
        ours, theirs, rtol=rtol, atol=atol, equal_nan=True, check_stride=False, msg=lambda text: f"{where}: {text}"
    )


# Note [ Processors without FMA ]
# PyTorch's loops are compiled for several kinds of processor, and the kind is chosen when it starts
# (`torch.backends.cpu.get_cpu_capability()`, ATEN_CPU_CAPABILITY). Those for AVX2 and AVX-512 fuse a multiplication and an addition
# into one instruction that rounds once, and draw normal numbers eight at a time; the default ones round twice. So on a processor
# without AVX2 PyTorch itself gives other last bits from the same seed. readtorch gives those of AVX2; where the reference runs its
# default loops, "the same bits" means within a few units in the last place of the largest number.
FUSES = torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")


def last_bits(theirs):
    """How far numbers that should be equal may be apart: 0, see Note [ Processors without FMA ]."""
    if FUSES or theirs.numel() == 0 or not (theirs.dtype.is_floating_point or theirs.dtype.is_complex):
        return 0.0
    largest = theirs.detach().abs().nan_to_num(posinf=0, neginf=0).max().item()
    drawn = (
        torch.float32 if theirs.dtype == torch.float64 else theirs.dtype
    )  # a float64 layer's weights may be drawn in float32
    return 8 * torch.finfo(drawn).eps * max(largest, 1.0)


def same_strides(ours, theirs):
    """Equal strides, where they matter: dimensions of size 1 and empty tensors may have any."""
    if theirs.numel() == 0:
        return True
    return all(a == b for a, b, n in zip(ours.stride(), theirs.stride(), theirs.shape) if n != 1)


def _short(named):
    return str(named).rpartition(".")[2]


# One expression on both sides


class Outcome:
    """What a call did: its value, or its error. Warnings are left to tests of their own."""

    def __init__(self, fn, *args, **kwargs):
        self.value = self.error = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self.value = fn(*args, **kwargs)
            except Exception as error:
                self.error = error

    def describe_error(self):
        return f"{type(self.error).__name__}: {self.error}" if self.error is not None else "no error"


def both(
    fn,
    *args,
    grad=True,
    strides=True,
    alias=True,
    grad_fn=True,
    message=True,
    versions=True,
    exact=False,
    rtol=None,
    atol=None,
    seed=0,
    **kwargs,
):
    """Call `fn(torch, …)` and `fn(readtorch, …)` on the same arguments and compare; returns (ours, theirs).

    `args` and `kwargs` are made of torch's objects. Each of these comparisons can be switched off: `grad`
    (gradients of the inputs for one random cotangent; grad=2 differentiates them once more), `strides`,
    `alias` (does a result share an input's storage, is it a view), `grad_fn` (names), `message` (the text
    of an error; its type always counts), `versions` (how often the results were written to; for new results of
    what PyTorch composes of operators, of which some write in place. Those of the inputs always count).
    """
    their_args = own_copy((args, kwargs))
    our_args = to_readtorch(their_args)
    seed_both(seed)
    theirs = Outcome(fn, torch, *their_args[0], **their_args[1])
    ours = Outcome(fn, rt, *our_args[0], **our_args[1])
    if theirs.error is not None:
        compare_errors(ours, theirs, message)
        return ours.error, theirs.error
    if ours.error is not None:
        raise AssertionError(f"readtorch raised {ours.describe_error()}") from ours.error
    close = dict(rtol=rtol, atol=atol, exact=exact)
    assert_close(ours.value, theirs.value, strides=strides, **close)
    assert_close(our_args, their_args, where="inputs afterwards", **close)
    assert_same_versions(our_args, their_args, "input")
    if versions:
        assert_same_versions(ours.value, theirs.value, "result")
    if alias:
        assert_same_aliasing(ours.value, theirs.value, our_args, their_args)
    if grad_fn:
        assert_same_grad_fn(ours.value, theirs.value)
    if grad:
        assert_same_gradients(ours.value, theirs.value, our_args, their_args, orders=int(grad), **close)
    return ours.value, theirs.value


def compare_errors(ours, theirs, message=True):
    """Both outcomes must be errors of the same type and, if `message`, with the same text."""
    assert ours.error is not None, f"no error instead of {theirs.describe_error()}"
    if type(ours.error).__name__ != type(theirs.error).__name__:
        raise AssertionError(f"{ours.describe_error()}\ninstead of {theirs.describe_error()}") from ours.error
    if message:
        differ = f"{ours.describe_error()}\ninstead of {theirs.describe_error()}"
        assert str(ours.error) == str(theirs.error), differ


def seed_both(seed):
    """The same random state everywhere: both implementations, numpy and the standard library."""
    torch.default_generator.manual_seed(seed)  # torch.manual_seed would note where it was called, for a GPU
    rt.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


def tensors_in(value, kind=(torch.Tensor, rt.Tensor)):
    """All tensors in any nesting, in order."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    if isinstance(value, slice):
        value = (value.start, value.stop, value.step)
    if isinstance(value, (list, tuple, type({}.values()))):
        return [t for v in value for t in tensors_in(v, kind)]
    return []


def assert_same_aliasing(our_results, their_results, our_inputs, their_inputs):
    """Results are the same inputs, share storage with the same inputs, and are views or not, on both sides."""
    ours, theirs = tensors_in(our_results), tensors_in(their_results)
    our_inputs, their_inputs = tensors_in(our_inputs), tensors_in(their_inputs)
    for i, (a, b) in enumerate(zip(ours, theirs)):
        shared, expected = _shared(a, our_inputs), _shared(b, their_inputs)
        assert shared == expected, f"result {i} shares storage with inputs {shared} instead of {expected}"
        itself, expected = _position(a, our_inputs), _position(b, their_inputs)
        assert itself == expected, f"result {i} is the input {itself} itself, instead of {expected}"
        if itself:
            continue
        is_view = a._base is not None
        assert is_view == (b._base is not None), f"result {i} is {'' if is_view else 'not '}a view"


def assert_same_versions(ours, theirs, kind="tensor"):
    """The version counters, by which backward notices that a saved tensor was overwritten: of all tensors in
    any nesting, and of the tensors that they are views of."""
    for i, (a, b) in enumerate(zip(tensors_in(ours), tensors_in(theirs))):
        version, expected = _version(a), _version(b)
        assert version == expected, f"{kind} {i} has version {version} instead of {expected}"
        if a._base is not None and b._base is not None:
            version, expected = _version(a._base), _version(b._base)
            assert version == expected, f"the base of {kind} {i} has version {version} instead of {expected}"


def _version(tensor):
    """None for a tensor of inference mode, which has no counter."""
    return None if tensor.is_inference() else tensor._version


def _position(tensor, inputs):
    return [i for i, t in enumerate(inputs) if t is tensor]


def _shared(tensor, inputs):
    if tensor.numel() == 0 or tensor.is_sparse:  # nothing to share, and addresses mean nothing
        return []
    address = tensor.untyped_storage().data_ptr()
    return [i for i, t in enumerate(inputs) if not t.is_sparse and t.untyped_storage().data_ptr() == address]


def assert_same_grad_fn(our_results, their_results):
    for i, (a, b) in enumerate(zip(tensors_in(our_results), tensors_in(their_results))):
        ours, theirs = (t.grad_fn.name() if t.grad_fn is not None else None for t in (a, b))
        assert ours == theirs, f"grad_fn of result {i} is {ours} instead of {theirs}"
        assert a.is_leaf == b.is_leaf, f"result {i}: is_leaf is {a.is_leaf}"


def assert_same_gradients(our_results, their_results, our_inputs, their_inputs, orders=1, **close):
    """One backward with the same random cotangents; the gradients of all leaves among the inputs must agree.

    With `orders=2` the gradients are differentiated once more, by the inputs and by the cotangents.
    """
    outputs = [(a, b) for a, b in zip(tensors_in(our_results), tensors_in(their_results)) if b.requires_grad]
    leaves = [(a, b) for a, b in zip(tensors_in(our_inputs), tensors_in(their_inputs)) if b.requires_grad]
    generator = torch.Generator().manual_seed(1234)
    for order in range(1, orders + 1):
        if not outputs or not leaves:
            return
        again = order < orders
        cotangents = [_cotangent(b, generator).requires_grad_(again) for _, b in outputs]
        cotangents = list(zip(to_readtorch(cotangents), cotangents))
        ours, theirs = (
            Outcome(
                T.autograd.grad,
                [o[side] for o in outputs],
                [leaf[side] for leaf in leaves],
                [c[side] for c in cotangents],
                create_graph=again,
                allow_unused=True,
            )
            for side, T in enumerate((rt, torch))
        )
        if theirs.error is not None:  # an operator whose derivative has no derivative, for example
            return compare_errors(ours, theirs)
        if ours.error is not None:
            raise AssertionError(f"readtorch raised {ours.describe_error()}") from ours.error
        where = "gradient" if order == 1 else "second gradient"
        assert_close(tuple(ours.value), tuple(theirs.value), where=where, **close)
        outputs = [(a, b) for a, b in zip(ours.value, theirs.value) if b is not None and b.requires_grad]
        leaves = leaves + cotangents


def _cotangent(like, generator):
    real = torch.float64 if not like.dtype.is_complex else torch.complex128
    return torch.randn(like.shape, generator=generator, dtype=real).to(like.dtype)


def own_copy(value, share=None):
    """`value` with tensors that a call may change: leaves stay leaves, layouts and shared storages stay."""
    share = {} if share is None else share
    if not isinstance(value, torch.Tensor):
        return rebuild(value, lambda v: own_copy(v, share))
    if id(value) not in share and value.is_sparse:
        share[id(value)] = value.detach().clone().requires_grad_(value.requires_grad)
    if id(value) not in share:
        plain = value.detach()
        bits = [torch.Tensor.conj] * plain.is_conj() + [torch._neg_view] * plain.is_neg()
        for bit in bits:  # conj and neg are bits on the tensor, not in the storage: off, and on again below
            plain = bit(plain)
        storage = plain.untyped_storage()
        key = storage.data_ptr() if storage.nbytes() else id(value)
        share.setdefault(key, storage.clone())
        copy = torch.empty(0, dtype=value.dtype)
        copy.set_(share[key], value.storage_offset(), value.shape, value.stride())
        for bit in bits:
            copy = bit(copy)
        share[id(value)] = copy.data.requires_grad_(value.requires_grad)  # data: its version counter stands at 0
    return share[id(value)]


@contextlib.contextmanager
def default_dtype(dtype):
    """Both implementations with another default dtype."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    rt.set_default_dtype(to_readtorch(dtype))
    try:
        yield
    finally:
        torch.set_default_dtype(before)
        rt.set_default_dtype(to_readtorch(before))
