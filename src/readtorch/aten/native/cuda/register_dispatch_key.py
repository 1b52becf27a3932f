"""How an operator gets its CUDA kernel.

    @cuda_kernel(mm)
    def mm_cuda(self, mat2): ...        takes the schema's arguments, as a CPU kernel does

Around each kernel: its tensors must be on one device, which becomes the current one, and errors of that
device tell the operator's name besides. Operators without a kernel of their own get one here if it follows
from others: views, in-place and out= forms.

In PyTorch: `aten/src/ATen/templates/RegisterDispatchKey.cpp`.
"""

import contextlib

from readtorch.aten.common_device import COPIES, common_device, engine_of, launched, resolve, wait_for_copy
from readtorch.aten.dispatcher import registry, structured_kernels, writers
from readtorch.aten.native_function import below_autograd
from readtorch.aten.register_dispatch_key import functional_kernel, write_out, write_result
from readtorch.c10.cuda.cuda_exception import AcceleratorError
from readtorch.c10.cuda.cuda_stream import DeviceGuard
from readtorch.c10.cuda.device_memory import empty_on, tensor_within
from readtorch.c10.device import cuda_device, current_device
from readtorch.c10.dispatch_key import CPU, CUDA
from readtorch.c10.tensor_impl import TensorImpl, detached


def cuda_kernel(*operators):
    """Decorator: the function is the kernel of these operators for CUDA tensors."""

    def register(function):
        for operator in operators:
            if CUDA in operator.kernels:  # the first would be dead code
                raise RuntimeError(f"'{operator.name}' has a CUDA kernel already")
            operator.kernel(on_device(operator, function), key=CUDA)
        return function

    return register


def cuda_impl(*operators):
    """Decorator: the function fills the outputs of these structured operators on CUDA. It takes the schema's arguments and
    then the outputs, which are there as the operators' shape rules describe them: nothing is left to refuse or to allocate.
    """

    def register(function):
        for operator in operators:
            if CUDA in operator.kernels:  # the first would be dead code
                raise RuntimeError(f"'{operator.name}' has a CUDA kernel already")
            operator.impl(CUDA)(function)
        return function

    return register


def structured_on_device(operator):
    """The kernel of a structured operator on the device of its tensors."""
    return on_device(operator, functional_kernel(operator, operator.impls[CUDA], empty_here))


def empty_here(output):
    """A new tensor on the current device as `output`, a TensorMeta, says."""
    return empty_on(here(), output.shape, output.dtype.numpy, output.strides)


structured_kernels[CUDA] = structured_on_device


def on_device(operator, function, below=below_autograd, launches=True):
    """`function` on the device of the operator's tensors, or on the one that its `device` argument names.
    What it calls stays `below` autograd; a view must know whether autograd follows it, and calls nothing.
    launches: whether it launches kernels itself, which take a simulated device time."""
    arguments = operator.schema.arguments
    places = [i for i, a in enumerate(arguments) if a.type.is_tensor]
    device_place = next((i for i, a in enumerate(arguments) if a.name == "device"), None)
    generator_place = next((i for i, a in enumerate(arguments) if a.name == "generator"), None)

    copies = operator.schema.name in COPIES

    def kernel(*values):
        if device_place is not None and (values[device_place] is not None or not places):
            place = resolve(values[device_place])
        else:
            place = common_device(operator, [values[i] for i in places])
        if generator_place is not None:
            engine = engine_of(values[generator_place], place)
            values = (*values[:generator_place], engine, *values[generator_place + 1 :])
        with DeviceGuard(place.index), below():
            try:
                results = function(*values)
                if launches:
                    launched(operator, values, results, place)
                if copies:
                    wait_for_copy(operator, values, place)
            except AcceleratorError as error:
                if not hasattr(error, "__notes__"):  # an operator inside has said so
                    error.add_note(f"It came to light in the operator '{operator.name}'.")
                raise
        return results

    kernel.__name__ = f"{operator.schema.name}_cuda"
    return kernel


def here():
    """The current device."""
    return cuda_device(current_device.index)


def empty(shape, numpy_dtype, strides=None):
    """A new tensor on the current device; strides in elements."""
    return empty_on(here(), shape, numpy_dtype, strides)


def owned(t):
    """The elements of a view as a tensor that is none: for results that were shaped by views."""
    return detached(t)


def is_on_device(t):
    return t._keys & CUDA


def follow(operator, keys):
    """The kernel for CUDA:
    one that follows from others, or None."""
    compute = operator.kernels.get(CPU)
    if compute is not None and (operator.schema.is_view or hasattr(compute, "only_geometry")):
        below = contextlib.nullcontext if operator.schema.is_view else below_autograd
        return on_device(operator, lambda *values: still_on_device(compute(*values)), below)
    if compute is not None and hasattr(compute, "any_device") and operator.variant_of is None:
        return on_device(operator, compute, launches=False)
    functional = operator.variant_of
    if functional is None or not may_run(functional):
        return None
    if functional.inplace is operator:
        return on_device(operator, lambda self, *rest: write_result(self, functional.call(self, *rest)), launches=False)
    if not getattr(compute, "any_device", False):
        count = len(operator.schema.returns)
        compute = lambda *values: write_out(functional.call(*values[:-count]), values[-count:])
    return on_device(operator, with_device_here(functional, compute))


def with_device_here(functional, compute):
    """`compute`, with the current device for the functional form's argument `device`: an out= call has none."""
    places = [i for i, a in enumerate(functional.schema.arguments) if a.name == "device"]
    if not places:
        return compute

    def compute_here(*values):
        return compute(*[here() if i in places else value for i, value in enumerate(values)])

    return compute_here


writers[CUDA] = follow


def may_run(operator):
    any_device = getattr(operator.kernels.get(CPU), "any_device", False)
    return CUDA in operator.kernels or any_device or operator.composite is not None or operator.schema.is_view


def still_on_device(results):
    """Results of geometry, with the key of the device whose memory they look at."""
    if isinstance(results, TensorImpl):
        if is_on_device(results):
            return results
        array = results._array
        return tensor_within(array) if array.size else empty(array.shape, array.dtype)
    return type(results)(map(still_on_device, results)) if isinstance(results, (tuple, list)) else results


def operator_named(name):
    return registry[f"aten::{name}"]
