"""The functions that make tensors on the default device, and a mode that names it in their calls.

In PyTorch: `torch/utils/_device.py`. Explained in the chapter "Modes, subclasses, fake tensors".
"""

import functools

import readtorch
from readtorch.c10.device import as_context
from readtorch.overrides import (
    TorchFunctionMode,
    _get_current_function_mode_stack,
    _len_torch_function_stack,
    _pop_mode,
    _push_mode,
    find_public,
)

CURRENT_DEVICE = None  # of the DeviceContext that lies at the bottom

_NAMES = """
    empty empty_permuted empty_strided empty_quantized ones arange bartlett_window blackman_window eye fft.fftfreq fft.rfftfreq full
    hamming_window hann_window kaiser_window linspace logspace nested.nested_tensor rand randn randint randperm range
    sparse_coo_tensor sparse_compressed_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor
    tril_indices triu_indices zeros asarray tensor as_tensor scalar_tensor
"""


@functools.cache
def _device_constructors():
    """The functions whose argument `device` is the default device if it is None; `zeros_like` and its like are not among them."""
    return {function for function in map(find_public, _NAMES.split()) if function is not None}


class DeviceContext(TorchFunctionMode):
    """A mode in which tensors are made on `device` where the caller names none.

    Entered by itself it goes to the bottom of the stack, so that `set_default_device` inside of another mode does not end with
    that mode; only one lies there. `with device(...)` puts one on top. One a thread, and no call of an operator inside of another
    one asks it, as for every mode.
    """

    def __init__(self, device):
        self.device = readtorch.device(device)
        self.prev_mode = None

    def __enter__(self):
        global CURRENT_DEVICE
        self.old_device, CURRENT_DEVICE = CURRENT_DEVICE, self.device
        above = [_pop_mode() for _ in range(_len_torch_function_stack())]
        if above and isinstance(above[-1], DeviceContext):
            self.prev_mode = above.pop()
        for mode in [self, *reversed(above)]:
            _push_mode(mode)

    def __exit__(self, *exception):
        global CURRENT_DEVICE
        CURRENT_DEVICE = self.old_device
        above = [_pop_mode() for _ in range(_len_torch_function_stack())]
        if above and not isinstance(above.pop(), DeviceContext):
            raise AssertionError("Expected a DeviceContext at the bottom of the mode stack")
        previous = [] if self.prev_mode is None else [self.prev_mode]
        for mode in [*previous, *reversed(above)]:
            _push_mode(mode)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in _device_constructors() and kwargs.get("device") is None:
            kwargs["device"] = self.device
        return func(*args, **kwargs)


def current_context():
    """The innermost DeviceContext of this thread, or None."""
    found = [mode for mode in _get_current_function_mode_stack() if isinstance(mode, DeviceContext)]
    return found[-1] if found else None


as_context[:] = (lambda device: _push_mode(DeviceContext(device)), _pop_mode)
