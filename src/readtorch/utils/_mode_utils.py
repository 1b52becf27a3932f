"""Calls that no dispatch mode and no `__torch_dispatch__` sees.

In PyTorch: `torch/utils/_mode_utils.py`. Explained in the chapter "One operator call".
"""

from readtorch._C import _DisableTorchDispatch


def all_same_mode(modes):
    """Whether all are the same object."""
    return all(mode == modes[0] for mode in modes)


no_dispatch = _DisableTorchDispatch
