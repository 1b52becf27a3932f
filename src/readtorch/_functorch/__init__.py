"""The Python part of the function transforms, whose public names are in `readtorch.func`.

In PyTorch: `torch/_functorch/__init__.py`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from . import autograd_function  # noqa: F401  (says what `Function.apply` is under a transform)
