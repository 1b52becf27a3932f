"""FakeTensor: a tensor on the Meta device that remembers the device which it stands for; FakeTensorMode: the mode under which
every call gives such tensors, by the kernels of the Meta device.

In PyTorch: `torch/_subclasses/fake_tensor.py`. Sizes that depend on elements are left out. Explained in the chapter "One operator call".
"""

import contextlib
import itertools
import threading
import weakref
from dataclasses import dataclass

from readtorch._C import DisableTorchFunctionSubclass, DispatchKey, _DisableTorchDispatch, _TorchDispatchModeKey, device
from readtorch._ops import ops
from readtorch._tensor import Tensor
from readtorch.aten.native.tensor_shape.view import alias_
from readtorch.autograd import Function
from readtorch.c10.dispatch_key import WRAPPED_NUMBER
from readtorch.c10.local_dispatch_key_set import AutoGradMode
from readtorch.c10.scalar_type import uint8
from readtorch.c10.sym_int import SYM_TYPES
from readtorch.c10.tensor_impl import key_set, set_key_set, storage_impl, strides_of
from readtorch.c10.torch_dispatch_mode_tls import get_mode, set_mode, unset_mode
from readtorch.nn.parameter import Parameter
from readtorch.overrides import TorchFunctionMode
from readtorch.utils._mode_utils import no_dispatch
from readtorch.utils._python_dispatch import TorchDispatchMode, is_inplace_view, is_traceable_wrapper_subclass
from readtorch.utils._pytree import arg_tree_leaves, tree_flatten, tree_leaves, tree_map, tree_map_only, tree_unflatten

aten = ops.aten
CONSTANT_NUMEL_LIMIT = 1


# ------------------------------------------------------------------------------------------------------- errors


@dataclass
class UnsupportedFakeTensorException(RuntimeError):
    reason: str


class FakeTensorDeviceMismatchError(RuntimeError):
    def __init__(self, func, common_device, device):
        self.func, self.common_device, self.device = func, common_device, device
        super().__init__(
            "Expected all tensors to be on the same device, but found "
            f"at least two devices, {common_device} and {device}!"
        )


@dataclass
class DynamicOutputShapeException(RuntimeError):
    """The sizes of a result depend on elements: those of `nonzero`."""

    func: object


@dataclass
class DataDependentOutputException(RuntimeError):
    """A result is a number that depends on elements: that of `item`."""

    func: object


@dataclass
class UnsupportedOperatorException(RuntimeError):
    func: object


@dataclass
class UnsupportedMutationAliasingException(RuntimeError):
    reason: str


@dataclass
class MetadataMismatchError(RuntimeError):
    reason: str


class FakeTensorTLS(threading.local):
    """allow_non_fake_inputs_override: what counts for this thread in place of each mode's `allow_non_fake_inputs`."""

    allow_non_fake_inputs_override = None


fake_tensor_tls = FakeTensorTLS()


# ------------------------------------------------------------------------------------------------ is it a fake?


@contextlib.contextmanager
def unset_fake_temporarily():
    """`with unset_fake_temporarily() as mode:` no FakeTensorMode is active."""
    old = unset_mode(_TorchDispatchModeKey.FAKE)
    try:
        yield old
    finally:
        if old is not None:
            set_mode(old, _TorchDispatchModeKey.FAKE)


def is_fake(x):
    """Whether `x` is a FakeTensor, or a wrapper of FakeTensors."""
    if isinstance(x, FakeTensor):
        return True
    if not is_traceable_wrapper_subclass(x):
        return False
    found = {is_fake(inner) for inner in _inner_tensors(x)}
    if len(found) > 1:
        raise AssertionError("got mixed fake and real tensors!")
    return found == {True}


def maybe_get_fake_mode(t):
    """The mode of a FakeTensor, or of those that a wrapper holds; else None."""
    if isinstance(t, FakeTensor):
        return t.fake_mode
    if not is_traceable_wrapper_subclass(t):
        return None
    modes = [maybe_get_fake_mode(inner) for inner in _inner_tensors(t)]
    if any(mode is not modes[0] for mode in modes):
        raise AssertionError("All fake tensor modes must be the same")
    return modes[0] if modes else None


def _inner_tensors(t):
    names, _ = t.__tensor_flatten__()
    return [getattr(t, name) for name in names]


# -------------------------------------------------------------------------------------------- from real to fake


class FakeTensorConverter:
    """Makes the FakeTensor of a real tensor, once: of a tensor always the same one, and of a storage the same storage.

    Neither keeps the other alive. In PyTorch: the work is that of MetaConverter in `torch/_subclasses/meta_utils.py`.
    """

    def __init__(self):
        self._fakes = {}  # id of a tensor -> (weak reference to it, weak reference to its FakeTensor)
        self._storages = {}  # id of a StorageImpl -> (weak reference to it, that of its FakeTensors)
        self.constant_storage_mapping = {}  # id of a StorageImpl -> (it, weak references to FakeTensors with it as constant)

    @property
    def tensor_memo(self):
        """id of a real tensor -> its FakeTensor."""
        return {key: fake() for key, (_, fake) in self._fakes.items() if fake() is not None}

    def _get_memo(self, t):
        real, fake = self._fakes.get(id(t), (None, None))
        return fake() if real is not None and real() is t else None

    def set_tensor_memo(self, t, fake):
        self._fakes[id(t)] = weakref.ref(t, lambda _, key=id(t): self._fakes.pop(key, None)), weakref.ref(fake)

    def from_real_tensor(self, fake_mode, t, make_constant=False, *, source=None, symbolic_context=None):
        """The FakeTensor of `t`: sizes, strides, offset, dtype, device, and its part in autograd. make_constant: it
        keeps `t` as the elements that it is known to have. source: the name of what it is, if sizes are left open, as
        `symbolic_context` says. Raises UnsupportedFakeTensorException.
        """
        found = self._get_memo(t)
        if found is not None:
            return found
        if t.is_quantized:
            raise UnsupportedFakeTensorException("quantized nyi in meta tensors")
        if t.is_sparse:
            raise UnsupportedFakeTensorException("meta converter nyi")
        if source is not None:
            fake = self._with_open_sizes(fake_mode, t, source, symbolic_context)
        else:
            fake = self._fake_of(fake_mode, t, t if make_constant else None)
        self.set_tensor_memo(t, fake)
        if make_constant:
            self.add_constant_storage_mapping(fake)
        if t.grad is not None if t.is_leaf else False:
            fake.grad = self.from_real_tensor(fake_mode, t.grad)
        return fake

    def _fake_of(self, fake_mode, t, constant):
        if t._is_view() and constant is None:
            base = self.from_real_tensor(fake_mode, t._base)
            is_leaf = t.is_leaf  # a view may be one: of a base without a gradient, or made where nothing is recorded
            with fake_mode, AutoGradMode(t.requires_grad and not is_leaf):
                view = base.as_strided(t.size(), t.stride(), t.storage_offset())
            return view.requires_grad_() if t.requires_grad and is_leaf else view
        with no_dispatch():
            fake = FakeTensor(fake_mode, self._on_meta(t), t.device, constant=constant)
        return self._as_in_autograd(fake, t)

    def _with_open_sizes(self, fake_mode, t, source, symbolic_context):
        """In PyTorch: views of another tensor stay views of its FakeTensor; here they only share its storage."""
        with no_dispatch():
            layout = fake_mode.shape_env.create_symbolic_sizes_strides_storage_offset(
                t, source, symbolic_context=symbolic_context
            )
            fake = FakeTensor(fake_mode, self._on_meta(t, layout), t.device)
        return self._as_in_autograd(fake, t)

    def _as_in_autograd(self, fake, t):
        if type(t) is Parameter:
            fake._is_param = True
        if t.requires_grad:
            fake.requires_grad_()
            return fake if t.is_leaf else _backward_error(fake)
        return fake

    def _on_meta(self, t, layout=None):
        """A tensor on the Meta device laid out as `t` is, over the storage that stands for the one of `t`."""
        storage = storage_impl(t)
        real, made = self._storages.get(id(storage), (None, None))
        if real is None or real() is not storage:
            made = storage_impl(_empty_meta(storage.nbytes))
            reference = weakref.ref(storage, lambda _, key=id(storage): self._storages.pop(key, None))
            self._storages[id(storage)] = reference, made
        return _meta_over(made, t, *(layout or (t._array.shape, strides_of(t), t.storage_offset())))

    def from_meta_and_device(self, fake_mode, t, device):
        """The FakeTensor that is made of `t`, a tensor on the Meta device, and stands for one on `device`."""
        if t.device.type != "meta":
            raise AssertionError(f"tensor's device must be `meta`, got {t.device.type} instead")
        found = self._get_memo(t)
        if found is None:
            found = FakeTensor(fake_mode, t, device)
            self.set_tensor_memo(t, found)
        return found

    def add_constant_storage_mapping(self, fake):
        """Remember that the elements of `fake` are known as long as nobody writes to this storage."""
        storage = storage_impl(fake.constant)
        self.constant_storage_mapping.setdefault(id(storage), (storage, []))[1].append(weakref.ref(fake))

    def invalidate_constant_aliases(self, tensor):
        """Somebody has written to the storage of `tensor`: no FakeTensor knows its elements any more."""
        if isinstance(tensor, FakeTensor):
            raise AssertionError("Expected a real tensor, not a FakeTensor")
        for reference in self.constant_storage_mapping.pop(id(storage_impl(tensor)), (None, []))[1]:
            fake = reference()
            if fake is not None:
                fake.constant = None


def _empty_meta(nbytes):
    return aten.empty.memory_format([nbytes], dtype=uint8, device=_meta)


def _meta_over(storage, t, sizes, strides, offset):
    """A tensor on the Meta device over a storage, with the dtype of `t`."""
    made = _empty_meta(0)
    made._array = storage.as_strided(t._array.dtype, sizes, strides, offset)
    made._storage_impl = storage
    return made


class _BackwardError(Function):
    @staticmethod
    def forward(ctx, fake):
        return alias_.call(fake)

    @staticmethod
    def backward(ctx, grad):
        raise RuntimeError("trying to run backward through the fake of a tensor that has a history")


def _backward_error(fake):
    """`fake` as a tensor that was computed, like the one that it stands for; backward does not go on from it."""
    with fake.fake_mode:
        return _BackwardError.apply(fake)


# ------------------------------------------------------------------------------------------------------ the tensor


@contextlib.contextmanager
def in_kernel_invocation_manager(fake_mode):
    """Inside, FakeTensors are what they are made of: tensors on the Meta device, of whose class nobody asks."""
    before = fake_mode.in_kernel_invocation
    fake_mode.in_kernel_invocation = True
    try:
        with _DisableTorchDispatch():
            yield
    finally:
        fake_mode.in_kernel_invocation = before


class FakeTensor(Tensor):
    """A tensor on the Meta device that says it were on `fake_device`.

    It carries the dispatch keys of that device, so that autograd treats it as it would treat the real one.
    constant: a tensor with its elements, if they are known. Made by a FakeTensorMode.
    """

    _mode_key = _TorchDispatchModeKey.FAKE

    @staticmethod
    def __new__(
        cls,
        fake_mode,
        elem,
        device=None,
        constant=None,
        real_tensor=None,
        pytype=None,
        dispatch_keys=None,
        *,
        requires_grad=None,
    ):
        if device is None:
            raise TypeError("FakeTensor.__new__() missing required argument: 'device' (or 'fake_device')")
        place = FakeTensor._normalize_fake_device(_device(device))
        if elem.device.type != "meta":
            raise AssertionError(f"elem.device.type must be 'meta', got {elem.device.type}")
        if not fake_mode.allow_meta and place.type == "meta":
            raise AssertionError("device.type must not be 'meta' when allow_meta is False")
        self = Tensor._make_subclass(cls, elem, device_for_backend_keys=place)
        self._fake_device, self.fake_mode, self.constant = place, fake_mode, constant
        self.pytype, self.dispatch_keys, self.real_tensor = pytype, dispatch_keys, real_tensor
        return self.requires_grad_() if (elem.requires_grad if requires_grad is None else requires_grad) else self

    def __init__(self, *args, **kwargs):
        super().__init__()

    @property
    def device(self):
        return _meta if self.fake_mode.in_kernel_invocation else self._fake_device

    @device.setter
    def device(self, _):
        raise NotImplementedError

    @property
    def fake_device(self):
        return self._fake_device

    @fake_device.setter
    def fake_device(self, place):
        self._fake_device = self._normalize_fake_device(place)

    @staticmethod
    def _normalize_fake_device(place):
        """A CUDA device with its number."""
        return _device("cuda:0") if place.type == "cuda" and place.index is None else place

    @staticmethod
    def from_tensor(t, fake_mode):
        return fake_mode.from_tensor(t)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        """A call outside of any FakeTensorMode: it is made again under that of its arguments."""
        kwargs = kwargs or {}
        if any(not issubclass(t, FakeTensor) and t is not Tensor for t in types):
            return NotImplemented
        mode = next((a.fake_mode for a in arg_tree_leaves(*args, **kwargs) if isinstance(a, FakeTensor)), None)
        if mode is None:
            raise AssertionError("Could not find a FakeTensor in the arguments")
        if get_mode(_TorchDispatchModeKey.FAKE):
            return NotImplemented
        if mode.in_kernel_invocation:
            raise AssertionError("fake_mode.in_kernel_invocation must be False")
        with mode:
            return func(*args, **kwargs)

    @staticmethod
    def _find_common_device(func, flat_args):
        """(the device of the results, whether there were no tensors, only numbers).

        Tensors must be on one device, but those on the CPU without dimensions may stand beside any. Raises
        FakeTensorDeviceMismatchError.
        """
        common, is_number = None, False
        for t in flat_args:
            if not isinstance(t, FakeTensor):
                continue
            own_number = t.device.type == "cpu" and t.dim() == 0
            if common is None:
                common, is_number = t.device, own_number
            elif t.device == common:
                is_number = is_number and own_number
            elif func is aten.nextafter.default or not (own_number or is_number):
                if not may_be_mixed(func, common, t.device):
                    raise FakeTensorDeviceMismatchError(func, common, t.device)
            elif is_number and not own_number:
                common, is_number = t.device, False
        if common is None and should_allow_numbers_as_tensors(func):
            return _device("cpu"), True
        if common is None:
            raise AssertionError(f"Could not find common device for {func}")
        return common, False

    def tolist(self):
        if self.dim() == 0:
            return self.item()
        return [element.item() if self.dim() == 1 else element.tolist() for element in self]


def may_be_mixed(func, common, other):
    """Whether an operator takes tensors of these two devices."""
    kinds = {common.type, other.type}
    return func is aten.add_.Tensor and "meta" in kinds


def should_allow_numbers_as_tensors(func):
    """Whether Python numbers may stand in the place of tensors."""
    name = func._operator.schema.name.removesuffix("_")
    return name in _NUMBERS


_NUMBERS = {"add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide", "copy", "to"}
_NUMBERS |= {"_to_copy"}
_device, _meta = device, device("meta")
_numbers = itertools.count()  # of tensors without a name


# -------------------------------------------------------------------------------------------------------- the mode


class FakeTensorMode(TorchDispatchMode):
    """`with FakeTensorMode() as mode:` factories make FakeTensors, and operators of them make FakeTensors.

    `mode.from_tensor(t)` makes one of a real tensor. allow_non_fake_inputs: real tensors beside fakes are converted.
    allow_fallback_kernels: operators without a kernel for the Meta device run with zeros.
    """

    in_kernel_invocation = False
    implementation_of = None  # OpOverload -> its rule; fake_impls.py, which imports this module, puts its function here

    def __init__(
        self,
        *,
        allow_fallback_kernels=True,
        allow_non_fake_inputs=False,
        shape_env=None,
        static_shapes=None,
        export=False,
    ):
        super().__init__()
        self.allow_fallback_kernels = allow_fallback_kernels
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.allow_meta = True
        self.shape_env = shape_env
        self.static_shapes = shape_env is None if static_shapes is None else static_shapes
        self.fake_tensor_converter = FakeTensorConverter()
        self.enter_stack = []
        self._mode_key = _TorchDispatchModeKey.FAKE

    @classmethod
    def is_infra_mode(cls):
        return True

    def is_our_fake(self, t):
        return isinstance(t, FakeTensor) and t.fake_mode is self

    def __enter__(self):
        previous = unset_mode(self._mode_key)
        self.enter_stack.append((previous is not self, previous))
        if previous is not self:
            return super().__enter__()
        set_mode(self, self._mode_key)
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        entered, previous = self.enter_stack.pop()
        if entered:
            super().__exit__(exc_type, exc_val, exc_tb)
            if previous is not None:
                set_mode(previous, self._mode_key)

    def from_tensor(self, tensor, *, static_shapes=None, source=None, symbolic_context=None, trace=True):
        """The FakeTensor of a real tensor; of the same tensor always the same one.

        source: its name, by which its sizes' symbols are told apart. symbolic_context: which sizes are left open, all if it is
        None. static_shapes: none is; that of the mode if it is None.
        """
        static = self.static_shapes if static_shapes is None else static_shapes
        source = None if static or self.shape_env is None else source or f"__meta_utils_unknown_tensor{next(_numbers)}"
        return self.fake_tensor_converter.from_real_tensor(
            self, tensor, source=source, symbolic_context=symbolic_context
        )

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if get_mode(_TorchDispatchModeKey.FAKE) is not None:
            raise AssertionError(f"FakeTensorMode should not be set when dispatching {func}")
        return self.dispatch(func, types, args, kwargs or {})

    def dispatch(self, func, types, args=(), kwargs=None):
        """The result of `func`, with FakeTensors for tensors. NotImplemented for tensors of other classes."""
        flat_args, spec = tree_flatten((args, kwargs))
        if any(map(_is_other_subclass, flat_args)):
            return NotImplemented
        fakes = [a for a in flat_args if self.is_our_fake(a)]
        is_lift = func in (aten.lift_fresh.default, aten.lift_fresh_copy.default)
        if not fakes and any(isinstance(a, SYM_TYPES) for a in flat_args) and should_allow_numbers_as_tensors(func):
            args, kwargs = tree_map_only(SYM_TYPES, lambda n: n.node.guarded(), (args, kwargs))
        if not fakes and (is_lift or should_allow_numbers_as_tensors(func)) and not _moves(func, kwargs):
            made = self._constant_of(func(*args, **kwargs))
            if made is not None:
                return made
        if is_lift and type(args[0]) is Tensor:
            return self.fake_tensor_converter.from_real_tensor(self, args[0])
        flat_args, fakes = self.validate_and_convert_non_fake_tensors(func, flat_args, spec)
        if fakes and all(fake.constant is not None for fake in fakes) and _may_be_computed(func, kwargs):
            made = self._computed(func, flat_args, spec)
            if made is not NotImplemented:
                return made
        args, kwargs = tree_unflatten(flat_args, spec)
        self.invalidate_written_to_constants(func, fakes, args, kwargs)
        return self._run(func, flat_args, spec, args, kwargs)

    # ------------------------------------------------------------------------------------------------ constants

    def _constant_of(self, out):
        """A FakeTensor that knows the elements of `out`, a small real tensor; None for others."""
        if type(out) is not Tensor or not self.may_turn_const(out):
            return None
        with no_dispatch():
            kept = out.clone()
        return self.fake_tensor_converter.from_real_tensor(self, kept, make_constant=True)

    def may_turn_const(self, t):
        return t.numel() <= CONSTANT_NUMEL_LIMIT and not t.is_sparse and not self.is_our_fake(t) and not t.is_meta

    def _computed(self, func, flat_args, spec):
        """The call with the elements that the FakeTensors are known to have; NotImplemented if results are too large."""
        constants = [a.constant if self.is_our_fake(a) else a for a in flat_args]
        args, kwargs = tree_unflatten(constants, spec)
        with no_dispatch():
            out = func(*args, **kwargs)
        results = [t for t in tree_leaves(out) if isinstance(t, Tensor)]
        converter = self.fake_tensor_converter
        if all(map(self.may_turn_const, results)):
            return tree_map_only(Tensor, lambda t: converter.from_real_tensor(self, t, make_constant=True), out)
        for t in results:
            converter.invalidate_constant_aliases(t)
        return NotImplemented

    def invalidate_written_to_constants(self, func, fakes, args, kwargs):
        """What is written to without being computed is not known any more."""
        if not any(fake.constant is not None for fake in fakes):
            return
        arguments = func._operator.schema.arguments
        for a, value in [*zip(arguments, args), *((a, kwargs.get(a.name)) for a in arguments[len(args) :])]:
            if a.type.writes and self.is_our_fake(value) and value.constant is not None:
                self.fake_tensor_converter.invalidate_constant_aliases(value.constant)

    # -------------------------------------------------------------------------------------------------- the call

    def validate_and_convert_non_fake_tensors(self, func, flat_args, spec):
        """(the arguments, the FakeTensors among them). Raises AssertionError for a real tensor, unless such are allowed."""
        validated = [self._validated(func, a, flat_args, spec) if isinstance(a, Tensor) else a for a in flat_args]
        return validated, [a for a in validated if isinstance(a, Tensor)]

    def _validated(self, func, t, flat_args, spec):
        if self.is_our_fake(t):
            return t
        if key_set(t) & WRAPPED_NUMBER:
            fake = self.fake_tensor_converter.from_real_tensor(self, t)
            set_key_set(fake, key_set(fake) | WRAPPED_NUMBER)
            return fake
        if is_inplace_view(func):
            raise AssertionError(
                f"Can't call metadata mutating ops on non-Fake Tensor inputs. Found in {_render_call(func, flat_args, spec)}"
            )
        override = fake_tensor_tls.allow_non_fake_inputs_override
        if not (self.allow_non_fake_inputs if override is None else override):
            if isinstance(t, FakeTensor):
                raise AssertionError(f"Mixing fake modes NYI x.fake_mode={t.fake_mode} vs self={self}")
            raise AssertionError(
                "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode "
                f"with 'allow_non_fake_inputs'. Found in {_render_call(func, flat_args, spec)}"
            )
        return self.fake_tensor_converter.from_real_tensor(self, t)

    def _run(self, func, flat_args, spec, args, kwargs):
        """The results by the operator's parts, by what `register_fake` was given, by a rule of its own, or by its kernel for the
        Meta device."""
        if func.has_kernel_for_dispatch_key(DispatchKey.CompositeImplicitAutograd):
            with self:  # as registered: how an operator is taken apart elsewhere does not change its results
                return func._op_dk(DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
        if func._defined_in_python:
            result = self._registered_fake_impl(func, args, kwargs)
            if result is not NotImplemented:
                return result
        rule = self.implementation_of(func)
        if rule is not None:
            result = rule(self, func, *args, **kwargs)
            if result is not NotImplemented:
                return result
        try:
            with in_kernel_invocation_manager(self):
                result = func(*args, **kwargs)
        except NotImplementedError as error:
            if not self.allow_fallback_kernels or func.namespace not in ("aten", "prims"):
                raise UnsupportedOperatorException(func) from None
            return run_fallback_kernel(self, func, flat_args, spec, error)
        return self.wrap_meta_outputs_with_default_device_logic(result, func, flat_args, kwargs.get("device"))

    def _registered_fake_impl(self, func, args, kwargs):
        """What `torch.library.register_fake` was given, called; else NotImplemented."""
        from readtorch._library import fake_impl, simple_registry  # what `import readtorch` does not load

        entry = simple_registry.singleton.get(func._name)
        if entry is None or entry.fake_impl.kernel is None:
            return NotImplemented
        context = fake_impl.FakeImplCtx(self, func)
        with fake_impl.set_ctx_getter(lambda: context), self:
            return entry.fake_impl.kernel(*args, **kwargs)

    def wrap_meta_outputs_with_default_device_logic(self, r, func, flat_args, device=None):
        """The tensors among results as FakeTensors on `device`, or on the one that the arguments are on."""
        common = None

        def wrap(e):
            nonlocal common
            if not isinstance(e, Tensor):
                return e
            common = common or FakeTensor._find_common_device(func, flat_args)
            if self.is_our_fake(e):
                if e.device != common[0]:
                    raise RuntimeError(f"FakeTensor is wrapped to wrong device, found {e.device}, expected {common[0]}")
                return e
            if common[1]:
                return self.fake_tensor_converter.from_real_tensor(self, e)
            return self.fake_tensor_converter.from_meta_and_device(self, e, device or common[0])

        return tree_map(wrap, r)


def _is_other_subclass(x):
    """Whether `x` is a tensor of a class that must see the call before this mode."""
    if not isinstance(x, Tensor) or isinstance(x, FakeTensor) or type(x) is Tensor:
        return False
    return not (issubclass(type(x), Parameter) and type(x).__torch_dispatch__ is Tensor.__torch_dispatch__)


def _moves(func, kwargs):
    """Whether a call copies to a device that need not be there."""
    place = kwargs.get("device")
    return func is aten._to_copy.default and place is not None and place.type != "cpu"


def _may_be_computed(func, kwargs):
    """Whether a call whose operands are all known may be computed: no random numbers, no change of sizes."""
    tags = {getattr(tag, "name", tag) for tag in func.tags}
    return "nondeterministic_seeded" not in tags and "inplace_view" not in tags and not _moves(func, kwargs)


def _render_call(func, flat_args, spec):
    """A call as messages show it."""
    with no_dispatch():
        args, kwargs = tree_unflatten([_shown(a) for a in flat_args], spec)
    parts = [str(a) for a in args] + [f"{k}={v}" for k, v in kwargs.items()]
    return f"{func}({', '.join(parts)})"


class _shown:
    """An argument as messages show it: of a real tensor no elements."""

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        if isinstance(self.value, Tensor) and not isinstance(self.value, FakeTensor):
            return f"tensor([...], size={tuple(self.value.shape)})"
        return repr(self.value)


class FakeCopyMode(TorchFunctionMode):
    """`with FakeCopyMode(mode): copy.deepcopy(module)` makes a module of FakeTensors."""

    def __init__(self, fake_mode):
        self.fake_mode = fake_mode

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is Tensor.clone:
            return func(self.fake_mode.from_tensor(args[0]), **kwargs)
        if func is Tensor.__deepcopy__:
            tensor, memo = args
            if id(tensor) not in memo:
                memo[id(tensor)] = self.fake_mode.from_tensor(tensor)
            return memo[id(tensor)]
        with DisableTorchFunctionSubclass():
            return func(*args, **kwargs)


def run_fallback_kernel(fake_mode, func, flat_args, spec, error):
    """The call with zeros for the FakeTensors. Raises `error` if a result shares memory with one of them."""
    if is_inplace_view(func):
        raise error
    made = {}
    with no_dispatch():

        def real(e):
            if not fake_mode.is_our_fake(e):
                return e
            zeros = aten.zeros.default(list(e.shape), dtype=e.dtype, device=_device("cpu"))
            made[id(zeros)] = (zeros, e)
            return zeros

        args, kwargs = tree_unflatten([real(a) for a in flat_args], spec)
        result = func(*args, **kwargs)
    storages = {id(storage_impl(zeros)) for zeros, _ in made.values()}

    def fake(e):
        if not isinstance(e, Tensor):
            return e
        if id(e) in made:
            return made[id(e)][1]
        if id(storage_impl(e)) in storages:
            raise error
        return fake_mode.fake_tensor_converter.from_real_tensor(fake_mode, e)

    return tree_map(fake, result)
