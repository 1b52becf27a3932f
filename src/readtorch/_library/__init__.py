"""What is behind `torch.library`. In PyTorch: `torch/_library/__init__.py`. Explained in the chapter "One operator call"."""

from . import autograd, fake_impl, simple_registry, utils
