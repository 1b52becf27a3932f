"""The derivative of convolution_backward, made of convolutions.

The three gradients of y = conv(x, w) + b are linear in each of their inputs, so their own gradients are convolutions
again, with a stride where the dilation was and the batch where the channels were.

In PyTorch: `_convolution_double_backward` in `aten/src/ATen/native/Convolution.cpp`.
"""

from readtorch.aten.functions import at

from .convolution import _convolution_double_backward, convolution
from .params import geometry_of


@_convolution_double_backward.compose
def double_backward(
    ggI, ggW, ggb, gO, weight, self, stride, padding, dilation, transposed, output_padding, groups, output_mask
):
    """Gradients for (grad_output, input, weight), from those for the gradients of (input, weight, bias)."""
    geometry = geometry_of(weight, stride, padding, dilation, transposed, output_padding, groups)
    ggO = _of_grad_output(ggI, ggW, ggb, gO, weight, self, geometry)
    gW = None if ggI is None else _of_weight(ggI, gO, weight, geometry)
    gI = None if ggW is None else _of_input(ggW, gO, weight, self, geometry)
    return tuple(
        [
            at.zeros_like(like) if wanted and g is None else g
            for g, like, wanted in zip((ggO, gI, gW), (gO, self, weight), output_mask)
        ]
    )


def _convolve(input, weight, geometry):
    return convolution.call(input, weight, None, *geometry)


def _of_grad_output(ggI, ggW, ggb, gO, weight, self, geometry):
    """conv(ggI, w) + conv(x, ggW) + ggb: what the forward pass makes of changes of its three inputs."""
    terms = []
    if ggI is not None:
        terms.append(_convolve(ggI, weight, geometry))
    if ggW is not None:
        terms.append(_convolve(self, ggW, geometry))
    if ggb is not None:
        plane = ggb.contiguous().view((1, ggb._array.shape[0], *[1] * (gO._array.ndim - 2)))
        terms.append(plane.expand(gO._array.shape))
    return sum_of(terms)


def sum_of(terms):
    """The sum of tensors, or None if there are none."""
    total = terms[0] if terms else None
    for t in terms[1:]:
        total = total + t
    return total


def _of_weight(ggI, gO, weight, geometry):
    """conv(ggI, gO) with batch and channels exchanged: the sum over the batch becomes a sum over channels."""
    exchanged = _exchanged(geometry, transposed=False)
    gOt, ggIt = gO.transpose(0, 1), ggI.transpose(0, 1)
    pair = (gOt, ggIt) if geometry.transposed else (ggIt, gOt)
    parts = [_convolve(*group, exchanged) for group in _groups(pair, (0, 0), geometry.groups)]
    return _narrowed(_joined(parts, 1).transpose(0, 1), weight)


def _of_input(ggW, gO, weight, self, geometry):
    """The gradient with respect to the input of conv(x, ggW)."""
    if geometry.transposed:
        return _narrowed(_convolve(gO, ggW, geometry._replace(transposed=False)), self)
    exchanged = _exchanged(geometry, transposed=True)
    exchanged = exchanged._replace(output_padding=_missing_rows(gO, weight, self, exchanged))
    pair = ggW.transpose(0, 1), gO.transpose(0, 1)
    parts = [_convolve(*group, exchanged) for group in _groups(pair, (1, 0), geometry.groups)]
    return _joined(parts, 0).transpose(0, 1)


def _exchanged(geometry, transposed):
    """Strides and dilations exchanged; groups are computed one by one."""
    return geometry._replace(stride=geometry.dilation, dilation=geometry.stride, groups=1, transposed=transposed)


def _missing_rows(gO, weight, self, g):
    """How many rows at the end of the input no window has reached."""
    reached = [
        (k - 1) * s - 2 * p + d * (n - 1) + 1
        for k, n, s, p, d in zip(weight._array.shape[2:], gO._array.shape[2:], g.stride, g.padding, g.dilation)
    ]
    return tuple([n - r for n, r in zip(self._array.shape[2:], reached)])


def _groups(pair, dims, groups):
    """The two tensors cut into `groups` parts along their dims."""
    if groups == 1:
        return [pair]
    sizes = [t._array.shape[dim] // groups for t, dim in zip(pair, dims)]
    return [[t.narrow(dim, n * group, n) for t, dim, n in zip(pair, dims, sizes)] for group in range(groups)]


def _joined(parts, dim):
    return parts[0] if len(parts) == 1 else at.cat(parts, dim)


def _narrowed(t, like):
    """`t` cut to the spatial sizes of `like`: what a stride has skipped at the end is left over."""
    for dim in range(2, t._array.ndim):
        if t._array.shape[dim] > like._array.shape[dim]:
            t = t.narrow(dim, 0, like._array.shape[dim])
    return t
