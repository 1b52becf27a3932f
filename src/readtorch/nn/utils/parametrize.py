"""Parametrization: a parameter computed from others whenever it is read. In PyTorch: `torch/nn/utils/parametrize.py`.

`register_parametrization(linear, "weight", f)` moves the weight to `linear.parametrizations.weight.original` and turns
`linear.weight` into a property that gives `f(original)`. A property lives in a class, so the module gets a class of its
own, `ParametrizedLinear`, that inherits from Linear.
"""

import collections.abc
import contextlib
import copy
import copyreg

import readtorch
from readtorch import Tensor
from readtorch.nn.modules.container import ModuleDict, ModuleList
from readtorch.nn.parameter import Parameter

__all__ = [
    "cached",
    "ParametrizationList",
    "register_parametrization",
    "is_parametrized",
    "remove_parametrizations",
    "type_before_parametrizations",
    "transfer_parametrizations_and_params",
]

_cache_enabled = 0
_cache = {}


@contextlib.contextmanager
def cached():
    """Inside, a parametrized tensor is computed when first read, and kept until the outermost `cached` ends."""
    global _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache.clear()


def _register_parameter_or_buffer(module, name, tensor):
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


_OVERRIDE = ", unless `unsafe` flag is enabled.\n"


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, applied in order, and the tensor they start from.

    That is `original`; or `original0`, `original1`, … if the `right_inverse` of the first returns several. Made by
    `register_parametrization`; `modules` must not be empty.
    """

    def __init__(self, modules, original, unsafe=False):
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        new = self._first_inverse(original)
        if not isinstance(new, (Tensor, collections.abc.Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            self._keep_one(original, new)
        else:
            self._keep_several(original, new)
        if not unsafe:
            self._check_result(shape, dtype)

    @readtorch.no_grad()
    def _first_inverse(self, value):
        """`value` through every right_inverse, last first; one that is missing is the identity."""
        for module in reversed(self):
            if hasattr(module, "right_inverse"):
                with contextlib.suppress(NotImplementedError):
                    value = module.right_inverse(value)
        return value

    def _keep_one(self, original, new):
        """The parameter object stays the same, so that an optimizer that holds it need not be changed."""
        for what in ("dtype", "device"):
            if getattr(original, what) != getattr(new, what):
                raise ValueError(
                    f"When `right_inverse` outputs one tensor, it may not change the {what}.\n"
                    f"original.{what}: {getattr(original, what)}\n"
                    f"right_inverse(original).{what}: {getattr(new, what)}"
                )
        with readtorch.no_grad():
            original.set_(new)
        _register_parameter_or_buffer(self, "original", original)

    def _keep_several(self, original, new):
        for i, tensor in enumerate(new):
            if not isinstance(tensor, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                    f"Got element {i} of the sequence with type {type(tensor).__name__}."
                )
            if isinstance(original, Parameter):
                tensor = Parameter(tensor, original.requires_grad)
            tensor.requires_grad_(original.requires_grad)
            _register_parameter_or_buffer(self, f"original{i}", tensor)

    def _check_result(self, shape, dtype):
        result = self()
        if not isinstance(result, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
        for what, old, new in (("dtype", dtype, result.dtype), ("shape", shape, result.shape)):
            if old != new:
                raise ValueError(
                    f"Registering a parametrization may not change the {what} of the tensor{_OVERRIDE}"
                    f"unparametrized {what}: {old}\nparametrized {what}: {new}"
                )

    @readtorch.no_grad()
    def right_inverse(self, value):
        """Set the originals so that reading the tensor gives `value`. Raises RuntimeError where that is not known."""
        for module in reversed(self):
            if not hasattr(module, "right_inverse"):
                raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
            value = module.right_inverse(value)
        if self.is_tensor:
            self._set_one(value)
        else:
            self._set_several(value)

    def _set_one(self, value):
        if not isinstance(value, Tensor):
            raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
        if value.dtype != self.original.dtype:
            raise ValueError(
                f"The tensor returned by `right_inverse` has dtype {value.dtype} "
                f"while `original` has dtype {self.original.dtype}"
            )
        self.original.set_(value)

    def _set_several(self, value):
        if not isinstance(value, collections.abc.Sequence):
            raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
        if len(value) != self.ntensors:
            raise ValueError(
                "'right_inverse' must return a sequence of tensors of length "
                f"{self.ntensors}. Got a sequence of length {len(value)}."
            )
        for i, tensor in enumerate(value):
            original = getattr(self, f"original{i}")
            if not isinstance(tensor, Tensor):
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors or reference-type opaques. "
                    f"Got element {i} of type {type(tensor).__name__}."
                )
            if original.dtype != tensor.dtype:
                raise ValueError(
                    f"Tensor {i} returned by `right_inverse` has dtype {tensor.dtype} "
                    f"while `original{i}` has dtype {original.dtype}"
                )
            original.set_(tensor)

    def forward(self):
        if self.is_tensor:
            x = self[0](self.original)
        else:
            x = self[0](*[getattr(self, f"original{i}") for i in range(self.ntensors)])
        i = 1
        while hasattr(self, str(i)):
            x = self[i](x)
            i += 1
        return x


# ------------------------------------------------------------------------------- the module's class of its own


def _deepcopy(self, memo):
    """What copy.deepcopy does for an object without `__deepcopy__`, but without `__getstate__`, which refuses."""
    replica = self.__new__(self.__class__)
    memo[id(self)] = replica
    replica.__dict__ = copy.deepcopy(self.__dict__, memo)
    for slot in copyreg._slotnames(self.__class__):
        if hasattr(self, slot):
            setattr(replica, slot, copy.deepcopy(getattr(self, slot), memo))
    return replica


def _getstate(self):
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def _inject_new_class(module):
    """Give `module` a class of its own, a subclass of the one it has."""
    cls = type(module)
    members = {"__getstate__": _getstate}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = _deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _inject_property(module, tensor_name):
    """Reading `module.<tensor_name>` computes it; assigning to it sets the originals."""
    if hasattr(module, tensor_name):
        raise AssertionError(f"Module already has an attribute named '{tensor_name}'")

    def get_parametrized(self):
        compute = self.parametrizations[tensor_name]
        if not _cache_enabled:
            return compute()
        key = (id(self), tensor_name)
        if key not in _cache:
            _cache[key] = compute()
        return _cache[key]

    def set_original(self, value):
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(type(module), tensor_name, property(get_parametrized, set_original))


# -------------------------------------------------------------------------------------------- the public functions


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """From now on `module.<tensor_name>` is `parametrization` of what it was. Returns the module.

    parametrization: a Module whose forward gives a tensor of the same shape and dtype (any, with `unsafe`); its
    `right_inverse`, if it has one, says how to assign. Several registrations are applied one after the other. Raises
    ValueError if the tensor does not exist or a check fails.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_another(getattr(module, tensor_name), tensor_name, parametrization)
        existing = module.parametrizations[tensor_name]
        existing.append(parametrization)
        existing.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        _parametrize_first(module, tensor_name, parametrization, unsafe)
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a "
            f"parametrized element with name '{tensor_name}'"
        )
    return module


def _parametrize_first(module, tensor_name, parametrization, unsafe):
    parametrizations = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _inject_new_class(module)
        module.parametrizations = ModuleDict()
    _inject_property(module, tensor_name)
    module.parametrizations[tensor_name] = parametrizations


def _check_another(current, tensor_name, parametrization):
    """One more parametrization must map tensors of this shape and dtype to such tensors, and so must its inverse."""
    result = parametrization(current)
    if not isinstance(result, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
    _check_same_kind(
        current,
        result,
        tensor_name,
        "Registering a parametrization may not change the {what} of the tensor",
        f"parametrization(module.{tensor_name}).{{what}}",
    )
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        inverse = parametrization.right_inverse(result)
    except NotImplementedError:
        return
    if not isinstance(inverse, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(inverse).__name__}")
    _check_same_kind(
        current,
        inverse,
        tensor_name,
        f"The tensor returned by parametrization.right_inverse must have the same {{what}} as module.{tensor_name}",
        "returned {what}",
    )


def _check_same_kind(current, other, tensor_name, complaint, other_name):
    """Raises ValueError unless both have one dtype and shape; `complaint` names the one that differs by "{what}"."""
    for what in ("dtype", "shape"):
        old, new = getattr(current, what), getattr(other, what)
        if old != new:
            raise ValueError(
                f"{complaint.format(what=what)}, unless the `unsafe` flag is enabled.\n"
                f"module.{tensor_name}.{what}: {old}\n{other_name.format(what=what)}: {new}"
            )


def is_parametrized(module, tensor_name=None):
    """Whether `module` has a parametrization, of `tensor_name` if that is given."""
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Make `module.<tensor_name>` a plain parameter or buffer again. Returns the module.

    It keeps the computed value; with `leave_parametrized=False` the original one, if there is but one original. Raises
    ValueError if it is not parametrized.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    original = _left_behind(module, tensor_name, leave_parametrized)
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register_parameter_or_buffer(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def _left_behind(module, tensor_name, leave_parametrized):
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with readtorch.no_grad():  # the same object: an optimizer may hold it
                original.set_(getattr(module, tensor_name))
        return original
    if not leave_parametrized:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in "
            "terms of a sequence of tensors."
        )
    value = getattr(module, tensor_name)
    return Parameter(value) if value.requires_grad else value


def type_before_parametrizations(module):
    """The module's class without the one that parametrizing put before it."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Parametrize `to_module` as `from_module` is, with the same originals; all tensors, or `tensor_name` alone."""
    if not is_parametrized(from_module):
        return to_module
    for name in from_module.parametrizations if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        source = from_module.parametrizations[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for original in ["original"] if source.is_tensor else [f"original{i}" for i in range(source.ntensors)]:
            setattr(target, original, getattr(source, original))
    return to_module
