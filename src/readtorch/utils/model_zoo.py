"""The older name of `hub.load_state_dict_from_url`.

In PyTorch: `torch/utils/model_zoo.py`.
"""

from readtorch.hub import load_state_dict_from_url as load_url

try:
    from tqdm import tqdm
except ImportError:  # PyTorch has a bar of its own then, under this name
    __all__ = ["load_url"]
else:
    __all__ = ["load_url", "tqdm"]
