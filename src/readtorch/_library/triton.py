"""Operators that call Triton kernels: refused by name, for there is no Triton here.

In PyTorch: `torch/_library/triton.py`.
"""


def triton_op(name, fn=None, /, *, mutates_args, schema=None, tags=None):
    """In PyTorch: an operator whose Triton kernels the compiler may look into. Raises NotImplementedError."""
    raise NotImplementedError(
        f'torch.library.triton_op("{name}"): there is no Triton here; use torch.library.custom_op'
    )


def wrap_triton(triton_kernel, /):
    """In PyTorch: a Triton kernel that can be traced. Raises NotImplementedError."""
    raise NotImplementedError("torch.library.wrap_triton: there is no Triton here")
