"""Changing all tensors of a module at once: dtype, device, memory.

In PyTorch: part of `torch/nn/modules/module.py`. The chapter "Module and __setattr__" shows `_apply`, from
which the rest follows.
"""
import warnings
from typing import Self

import readtorch
from readtorch.aten.native.copy import parse_to
from readtorch.nn.modules._parts import part_of_module
from readtorch.nn.parameter import Parameter
from readtorch.utils import swap_tensors


@part_of_module
class _Convert:
    """The part of `Module` that moves and casts."""

    def apply(self, fn) -> Self:
        """Call `fn(module)` for every module below this one, children first, and for this one last."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn, recurse=True):
        """Replace the contents of every parameter, gradient and buffer by `fn` of it. Returns self.

        Parameters stay the same objects: an optimizer that holds them goes on working.
        """
        if recurse:
            for module in self.children():
                module._apply(fn)
        for key, param in self._parameters.items():
            if param is not None:
                self._parameters[key] = _convert_param(fn, param, f"{self._get_name()}.{key}")
        for key, buf in self._buffers.items():
            if buf is not None:
                self._buffers[key] = fn(buf)
        return self

    def type(self, dst_type) -> Self:
        """Cast all parameters and buffers to `dst_type`."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Cast all floating point parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Self:
        """Cast all floating point parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Self:
        """Cast all floating point parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Self:
        """Cast all floating point parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def cpu(self) -> Self:
        """Move all parameters and buffers to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device=None) -> Self:
        """Move all parameters and buffers to a GPU, the current one by default."""
        return self._apply(lambda t: t.cuda(device))

    def ipu(self, device=None) -> Self:
        """Move all parameters and buffers to an IPU."""
        return self._apply(lambda t: t.ipu(device))

    def xpu(self, device=None) -> Self:
        """Move all parameters and buffers to an XPU."""
        return self._apply(lambda t: t.xpu(device))

    def mtia(self, device=None) -> Self:
        """Move all parameters and buffers to an MTIA device."""
        return self._apply(lambda t: t.mtia(device))

    def to_empty(self, *, device, recurse=True) -> Self:
        """Give all tensors uninitialized memory on `device`: how a module leaves the meta device."""
        return self._apply(lambda t: readtorch.empty_like(t, device=device), recurse=recurse)

    def share_memory(self) -> Self:
        """Put all parameters and buffers into memory that other processes can see."""
        return self._apply(lambda t: t.share_memory_())

    def to(self, *args, **kwargs) -> Self:
        """`to(device, dtype, non_blocking)`, `to(dtype)`, `to(tensor)`, `to(memory_format=…)`. Returns self.

        Only floating point and complex tensors change their dtype; TypeError for a dtype that is neither.
        """
        device, dtype, non_blocking, copy, convert_to_format = parse_to(*args, **kwargs)
        if copy or "copy" in kwargs:
            raise RuntimeError(".to() does not accept copy argument")
        if dtype is not None:
            _check_dtype(dtype)

        def convert(t):
            new_dtype = dtype if t.is_floating_point() or t.is_complex() else None
            try:
                if convert_to_format is not None and t.dim() in (4, 5):
                    return t.to(device, new_dtype, non_blocking, memory_format=convert_to_format)
                return t.to(device, new_dtype, non_blocking)
            except NotImplementedError as e:
                if str(e) != "Cannot copy out of meta tensor; no data!":
                    raise
                raise NotImplementedError(
                    f"{e} Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() "
                    f"when moving module from meta to a different device."
                ) from None

        return self._apply(convert)


def _check_dtype(dtype):
    if not (dtype.is_floating_point or dtype.is_complex):
        raise TypeError(
            f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
        )
    if dtype.is_complex:
        warnings.warn(
            "Complex modules are a new feature under active development whose design may change, "
            "and some modules might not work as expected when using complex tensors as parameters "
            "or buffers. "
            "Please file an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml "
            "if a complex module does not work as expected.",
            stacklevel=3,
        )


# Note [ Three ways to convert a parameter ]
#
# An optimizer, a tied module or a variable of the user may hold the parameter, so it stays the same
# object: its `.data` becomes the converted tensor. Only where that is not allowed a new Parameter takes its
# place. `readtorch.__future__` can ask for a new Parameter always, or for `swap_tensors`: this too keeps the
# object, but gives it everything of the converted tensor, so it works where `.data` cannot be set. A gradient
# goes the same way.


def _convert_param(fn, param, name):
    """The parameter with `fn` of its contents. See Note [ Three ways to convert a parameter ]."""
    with readtorch.no_grad():  # parameters are leaves: moving one is no operation that autograd shall see
        applied = fn(param)
    if readtorch.__future__.get_swap_module_params_on_conversion():
        return _convert_by_swap(fn, param, applied, name)
    grad = param.grad
    if _may_set_data(param, applied):
        param.data = applied
        result = param
    else:
        result = Parameter(applied, param.requires_grad)
    if grad is not None:
        _convert_grad(fn, grad, result)
    return result


def _convert_grad(fn, grad, param):
    with readtorch.no_grad():
        applied = fn(grad)
    if _may_set_data(grad, applied):
        grad.data = applied
    else:
        param.grad = applied.requires_grad_(grad.requires_grad)


def _may_set_data(tensor, applied):
    """Whether `tensor.data = applied` shall be used, and can: not between memory and the meta device."""
    # in PyTorch: `torch._has_compatible_shallow_copy_type`, which compares dispatch keys
    overwrite = readtorch.__future__.get_overwrite_module_params_on_conversion()
    return tensor.is_meta == applied.is_meta and not overwrite


def _convert_by_swap(fn, param, applied, name):
    grad, param.grad = param.grad, None
    try:
        swap_tensors(param, Parameter(applied, requires_grad=param.requires_grad))
    except Exception as e:
        param.grad = grad
        raise RuntimeError(f"_apply(): Couldn't swap {name}") from e
    if grad is not None:
        with readtorch.no_grad():
            applied_grad = fn(grad)
        try:
            swap_tensors(grad, applied_grad.requires_grad_(grad.requires_grad))
        except Exception as e:
            raise RuntimeError(f"_apply(): Couldn't swap {name}.grad") from e
        param.grad = grad
    return param
