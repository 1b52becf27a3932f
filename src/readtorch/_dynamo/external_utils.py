"""What compiled programs ask. In PyTorch: `torch/_dynamo/external_utils.py`."""

import readtorch


def is_compiling():
    """An older name of `compiler.is_compiling`."""
    return readtorch.compiler.is_compiling()
