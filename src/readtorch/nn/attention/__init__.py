"""The choice among implementations of `scaled_dot_product_attention`. In PyTorch: `torch/nn/attention/__init__.py`.

In PyTorch: also `bias.py`, masks that are classes of tensors, and `flex_attention`, whose masks are compiled
functions.
"""

import contextlib

from readtorch.aten.context import context
from readtorch.aten.sdp_backend import SDPBackend

__all__ = ["SDPBackend", "sdpa_kernel"]


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """`with sdpa_kernel(SDPBackend.MATH):` only this backend, or these, may be used; RuntimeError if none can.

    backends: an SDPBackend or a list of them. set_priority: whether their order matters; a CPU has one
    fast backend.
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, "
            f"got {type(backends).__name__}"
        )
    previous = context.sdp_backends
    context.sdp_backends = tuple(backends) if isinstance(backends, list) else (backends,)
    try:
        yield {}
    finally:
        context.sdp_backends = previous
