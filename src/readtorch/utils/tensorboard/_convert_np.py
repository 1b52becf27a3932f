"""Whatever a user logs, as a NumPy array. In PyTorch: `torch/utils/tensorboard/_convert_np.py`."""

import numpy as np

import readtorch


def make_np(x):
    """The array of a tensor, an array, or a number (which gets one dimension). NotImplementedError for
    others.
    """
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    if isinstance(x, readtorch.Tensor):
        return _array_of(x)
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")


def _array_of(tensor):
    if tensor.device.type == "meta":
        return np.random.randn(1)  # there are no numbers to log
    if tensor.dtype == readtorch.bfloat16:
        tensor = tensor.to(readtorch.float16)
    return tensor.detach().cpu().numpy()
