"""Quantization schemes: how numbers and small integers correspond, for a whole tensor or for each channel.

In PyTorch: `c10/core/QScheme.h`.
"""


class qscheme:
    """A name that observers and layers of integers compare with. Raises TypeError when it is called: there are no others."""

    __slots__ = ("name",)

    def __new__(cls, *args, **kwargs):
        raise TypeError("cannot create 'torch.qscheme' instances")

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return self.name


def _scheme(name):
    scheme = object.__new__(qscheme)
    scheme.name = name
    return scheme


per_tensor_affine = _scheme("per_tensor_affine")
per_channel_affine = _scheme("per_channel_affine")
per_tensor_symmetric = _scheme("per_tensor_symmetric")
per_channel_symmetric = _scheme("per_channel_symmetric")
per_channel_affine_float_qparams = _scheme("per_channel_affine_float_qparams")
