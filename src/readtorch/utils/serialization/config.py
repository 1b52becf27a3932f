"""`config.load.mmap = True` and the like: the defaults of `load` and `save`.

In PyTorch: `torch/utils/serialization/config.py`. Explained in the chapter "state_dict, save and load".
"""

from readtorch.serialization.config import load, save  # noqa: F401
