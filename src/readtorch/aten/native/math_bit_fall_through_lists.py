"""Operators that no fallback of a math bit serves: they leave the bit to the kernel below, or to the view that they make.

In PyTorch: `aten/src/ATen/native/MathBitFallThroughLists.h`. Explained in the chapter "One operator call".
"""

from readtorch.aten.dispatcher import registry
from readtorch.c10.dispatch_key import MATH_BITS
from readtorch.c10.tensor_impl import storage_impl

VIEW_FUNCTIONS = (
    "alias as_strided_ chunk conj _conj detach detach_ diagonal dsplit.array dsplit.int expand expand_as hsplit.array "
    "hsplit.int imag movedim.int movedim.intlist narrow permute real reshape resize_ select.int split.Tensor "
    "split_with_sizes squeeze squeeze_ swapaxes swapdims t t_ transpose.int transpose_ unbind.int unflatten.int unfold "
    "unsqueeze unsqueeze_ _unsafe_view view_as view_as_real vsplit.array vsplit.int"
).split()

# ZeroTensor has kernels of its own for these two.
VIEW_FUNCTIONS_WITH_KERNELS = ["as_strided", "view"]

UTILITIES_AND_CONSTRUCTORS = (
    "empty.memory_format empty.out empty_like empty_strided full_like is_complex is_floating_point requires_grad_ "
    "size.int stride.int"
).split()

# Those among them whose kernel changes sizes and strides alone, though their schema does not say that they make views.
GEOMETRY = "as_strided_ resize_ squeeze_ t_ transpose_ unsqueeze_".split()


def fall_through(key, names):
    """Let the operators of these names, where they are declared, fall through at `key`."""
    for name in names:
        if f"aten::{name}" in registry:
            registry[f"aten::{name}"].fallthroughs.add(key)


for _name in GEOMETRY:
    registry[f"aten::{_name}"].math_bits_kernel = lambda kernel: kernel


def unsafe_view_given_bits(kernel):
    def unsafe_view(self, size):
        result = kernel(self, size)
        result._storage_impl = storage_impl(self)
        result._keys |= self._keys & MATH_BITS
        return result

    return unsafe_view


registry["aten::_unsafe_view"].math_bits_kernel = unsafe_view_given_bits
