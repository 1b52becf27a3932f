"""What `torch._C._nn` has beside operators.

In PyTorch: `tools/autograd/templates/python_nn_functions.cpp`. Explained in the chapter "import torch".
"""

from readtorch.aten.native.copy import parse_to


def _parse_to(*args, **kwargs):
    """What the arguments of `Module.to` mean: (device, dtype, non_blocking, memory_format). RuntimeError if they speak of a copy:
    a module is moved, not copied.
    """
    device, dtype, non_blocking, copy, memory_format = parse_to(*args, **kwargs)
    if copy is not None:
        raise RuntimeError(".to() does not accept copy argument")
    return device, dtype, non_blocking, memory_format
