"""Compilers for AOTAutograd that compile nothing. In PyTorch: `torch/_functorch/compilers.py`."""

from ._aot_autograd.utils import make_boxed_func

__all__ = ["nop", "print_compile"]


def nop(fx_g, _):
    """The graph as it is: its operators run one by one."""
    return make_boxed_func(fx_g.forward)


def print_compile(fx_g, _):
    """The same, and prints its code."""
    print(fx_g.code)
    return make_boxed_func(fx_g.forward)
