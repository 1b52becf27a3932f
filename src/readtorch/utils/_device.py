"""The functions that make tensors on the default device, and a mode that names it in their calls.

In PyTorch: `torch/utils/_device.py`. `with torch.device(...)` and `set_default_device` push a DeviceContext there; here they
set `c10.device.default_device`, which factories read. Explained in the chapter "One operator call".
"""

import functools

import readtorch
from readtorch.overrides import TorchFunctionMode

_NAMES = """
    empty empty_permuted empty_strided empty_quantized ones arange bartlett_window blackman_window eye fft.fftfreq fft.rfftfreq full
    hamming_window hann_window kaiser_window linspace logspace nested.nested_tensor rand randn randint randperm range
    sparse_coo_tensor sparse_compressed_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor
    tril_indices triu_indices zeros asarray tensor as_tensor scalar_tensor
"""


def _find(name):
    """The function of this name below `readtorch`; None if there is none."""
    found = readtorch
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


@functools.cache
def _device_constructors():
    """The functions whose argument `device` is the default device if it is None; `zeros_like` and its like are not among them."""
    return {function for function in map(_find, _NAMES.split()) if function is not None}


class DeviceContext(TorchFunctionMode):
    """A mode in which tensors are made on `device` where the caller names none."""

    def __init__(self, device):
        self.device = readtorch.device(device)

    def __enter__(self):
        self.device.__enter__()
        return super().__enter__()

    def __exit__(self, *exception):
        super().__exit__(*exception)
        self.device.__exit__(*exception)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func in _device_constructors() and kwargs.get("device") is None:
            kwargs["device"] = self.device
        return func(*args, **kwargs)
