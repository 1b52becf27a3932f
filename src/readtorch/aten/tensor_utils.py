"""What kernels have in common: checks of the sizes of gradients, with the words of each family, and memory to compute in.

In PyTorch: `check_dim_size` in `aten/src/ATen/TensorUtils.cpp`, `upsample_2d_common_check` in
`aten/src/ATen/native/UpSample.h`, `aten/src/ATen/native/AdaptivePooling.h`, `aten/src/ATen/native/Pool.h`.
"""

import numpy as np

from readtorch.aten.expand_utils import broadcast_error


def memory_for(out, dtype):
    """Contiguous memory of `dtype` in which to compute an output on the CPU: its own, if it is like that; see `put`."""
    array = out._array
    return array if array.flags.c_contiguous and array.dtype is dtype else np.empty(array.shape, dtype)


def put(result, out):
    """What was computed there, to the output."""
    if result is not out._array:
        np.copyto(out._array, result, casting="unsafe")


def check_broadcasts(grad_output, sizes):
    """Raises RuntimeError unless a gradient broadcasts to `sizes`, that is, does not make the result larger."""
    shape = grad_output._array.shape
    error = broadcast_error(sizes, shape)
    if error is not None:
        raise error
    if (found := np.broadcast_shapes(sizes, shape)) != tuple(sizes):
        raise RuntimeError(f"output with shape {list(sizes)} doesn't match the broadcast shape {list(found)}")


def check_dim_sizes(t, sizes):
    """Raises RuntimeError for the first dimension that is not as in `sizes`."""
    shape = t._array.shape
    for dim, size in enumerate(sizes):
        if len(shape) != len(sizes) or shape[dim] != size:
            found = shape[dim] if dim < len(shape) else 1
            raise RuntimeError(
                f"Expected a tensor of dimension {len(sizes)} and tensor.size[{dim}] == {size} but got: "
                f"dimension {len(shape)} and tensor.size[{dim}] = {found}"
            )


def check_pooled(sizes, dims, *tensors):
    """The same for gradients and indices of pooling windows, whose batch is checked last."""
    order = [*range(len(sizes) - dims - 1, len(sizes)), *range(len(sizes) - dims - 1)]
    for t in tensors:
        shape = t._array.shape
        for dim in order:
            if len(shape) != len(sizes) or shape[dim] != sizes[dim]:
                raise RuntimeError(
                    f"Expected a tensor of dimension {len(sizes)} and tensor.size[{dim}] == "
                    f"{sizes[dim]} but got: dimension {len(shape)} and tensor.size[{dim}] = "
                    f"{shape[dim] if dim < len(shape) else 1}"
                )


def check_resized(grad_output, sizes):
    """Of an interpolation's result: those of one dimension have words of their own."""
    if len(sizes) == 3:
        return check_dim_sizes(grad_output, sizes)
    shape = grad_output._array.shape
    if len(shape) != len(sizes):
        raise RuntimeError(
            f"Expected grad_output to be a tensor of dimension {len(sizes)} but got: dimension {len(shape)}"
        )
    for dim, (found, size) in enumerate(zip(shape, sizes)):
        if found != size:
            raise RuntimeError(
                f"Expected grad_output to have the same shape as output; output.size({dim}) = {size} "
                f"but got grad_output.size({dim}) = {found}"
            )


def check_adaptive(caller, grad_output, self, dims, name):
    """Of an adaptive average, whose windows follow from the gradient's sizes."""
    found, own = grad_output._array.shape, self._array.shape
    if len(found) != len(own):
        raise RuntimeError(f"{caller}: Expected dimensions {len(own)} for `{name}` but got dimensions {len(found)}")
    if found[:-dims] != own[:-dims]:  # (in PyTorch: not checked)
        raise RuntimeError(
            f"{caller}: expected {name} to have the batch and channels of the input, "
            f"{list(own[:-dims])}, but got {list(found[:-dims])}"
        )


def check_like_indices(caller, grad_output, indices, self, dims, name):
    """Of an adaptive maximum: as many as there are indices."""
    found, expected = grad_output._array.shape, indices._array.shape
    if len(found) not in (dims + 1, dims + 2):
        raise RuntimeError(f"{caller}(): Expected {dims + 1}D or {dims + 2}D {name}, but got: {list(found)}")
    if found != expected:
        raise RuntimeError(f"expected sizes {list(expected)} for `{name}` but got sizes {list(found)}")
    check_picked(caller, grad_output, indices, self, dims)


def check_picked(caller, grad_output, indices, self, dims):
    """A gradient and an index for each place that a maximum was taken from, in the planes of `self`."""
    expected = self._array.shape[:-dims]
    for name, t in (("grad_output", grad_output), ("indices", indices)):
        if t._array.shape[:-dims] != expected or t._array.shape != indices._array.shape:
            raise RuntimeError(
                f"{caller}(): gradOutput sizes unexpected: {name} is {list(t._array.shape)}, the input "
                f"{list(self._array.shape)}"
            )
