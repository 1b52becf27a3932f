"""Sequences of different lengths: padded to one length, or packed without padding.

Packed means sorted by time: first what every sequence says at time 0, longest sequence first, then at time 1,
and so on. `batch_sizes[t]` counts the sequences that are longer than t.

    padded (time × batch)     packed data        batch_sizes
    a b c                     a b c a b a        3 2 1
    a b .
    a . .

In PyTorch: `aten/src/ATen/native/PackedSequence.cpp`. Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native_function import below_autograd, native_function
from readtorch.c10.dispatch_key import META
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES
from readtorch.c10.tensor_impl import dtype_of, host_array, wrap

_pack_padded_sequence = native_function(
    "_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)"
)
_pack_padded_sequence_backward = native_function(
    "_pack_padded_sequence_backward(Tensor grad, SymInt[] input_size, Tensor batch_sizes, bool batch_first) -> Tensor",
    "",
)
_pad_packed_sequence = native_function(
    "_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, "
    "int total_length) -> (Tensor, Tensor)"
)
pad_sequence = native_function(
    "pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0.0, "
    'str padding_side="right") -> Tensor',
    module="nn",
)


def check_lengths(lengths):
    """Raises RuntimeError for lengths, and for batch sizes, which PyTorch reports by the same name."""
    array = lengths._array
    if array.ndim != 1 or array.dtype != np.int64 or lengths.device.type != "cpu":
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {array.ndim}D {lengths.device.type} "
            f"{SCALAR_TYPE_NAMES[dtype_of(lengths)]} tensor"
        )
    return host_array(lengths)


# ------------------------------------------------------------------------------------------------------ pack


def check_packable(shape, lengths):
    if lengths.size != shape[1]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {lengths.size} (batch_size={shape[1]})"
        )
    if lengths[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if (lengths[1:] > lengths[:-1]).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is "
            "True. You can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence "
            "to sidestep this requirement if you do not need ONNX exportability."
        )


def batch_sizes_of(shape, lengths):
    """How many sequences are longer than 0, 1, 2 …; shape: (time, batch, …)."""
    if 0 in shape:
        raise RuntimeError("Cannot pack empty tensors.")
    lengths = check_lengths(lengths)
    check_packable(shape, lengths)
    return np.count_nonzero(lengths[:, None] > np.arange(lengths[0]), axis=0)


@_pack_padded_sequence.kernel
def _pack_padded_sequence_cpu(input, lengths, batch_first):
    x = input._array.swapaxes(0, 1) if batch_first else input._array
    batch_sizes = batch_sizes_of(x.shape, lengths)
    data = np.concatenate([x[t, :size] for t, size in enumerate(batch_sizes[: len(x)])])
    return wrap(data), wrap(batch_sizes)


def pack_of_views(input, lengths, batch_first):
    """The same on another device. The lengths are on the host, and so are the batch sizes."""
    with below_autograd():
        x = input.transpose(0, 1) if batch_first else input
        sizes = batch_sizes_of(x._array.shape, lengths)
        return at.cat([x[t, :size] for t, size in enumerate(sizes[: x._array.shape[0]].tolist())]), wrap(sizes)


_pack_padded_sequence.kernel(pack_of_views, META)


@_pack_padded_sequence.backward
class PackPaddedSequenceBackward0:
    output_differentiability = [True, False]

    def input(grad, input_sym_sizes, result1, batch_first):
        return _pack_padded_sequence_backward.call(grad, input_sym_sizes, result1, batch_first)


@_pack_padded_sequence_backward.compose
def _pack_padded_sequence_backward_composite(grad, input_size, batch_sizes, batch_first):
    """Zeros, and every packed element back at its index."""
    sizes = (input_size[1], input_size[0], *input_size[2:]) if batch_first else input_size
    grad_input = at.zeros(sizes, dtype=grad.dtype, device=grad.device)
    start = 0
    for t, size in enumerate(check_lengths(batch_sizes).tolist()):
        grad_input[t].narrow(0, 0, size).copy_(grad.narrow(0, start, size))
        start += size
    return grad_input.transpose(0, 1) if batch_first else grad_input


# ----------------------------------------------------------------------------------------------------- unpack


@_pad_packed_sequence.compose
def _pad_packed_sequence_composite(data, batch_sizes, batch_first, padding_value, total_length):
    """A tensor full of padding, into which each run of equal batch sizes is copied as one block."""
    sizes = check_lengths(batch_sizes).tolist()
    length = len(sizes)
    if total_length > 0:
        if total_length < length:
            raise RuntimeError(
                "Expected total_length to be at least the length of the longest sequence in input, but "
                f"got total_length={total_length} and max sequence length being {length}"
            )
        length = total_length
    shape = (length, sizes[0], *data.shape[1:])
    padded = at.full(shape, padding_value, dtype=data.dtype, device=data.device)
    start = 0
    for first, last, size in runs(sizes):
        block = data.narrow(0, start, size * (last - first)).view((last - first, size, *data.shape[1:]))
        padded.narrow(0, first, last - first).narrow(1, 0, size).copy_(block)
        start += size * (last - first)
    lengths = np.count_nonzero(np.array(sizes)[:, None] > np.arange(sizes[0]), axis=0)
    return (padded.transpose(0, 1) if batch_first else padded), wrap(lengths)


def runs(values):
    """(first, last + 1, value) of each run of equal numbers."""
    found, first = [], 0
    for i in range(1, len(values) + 1):
        if i == len(values) or values[i] != values[first]:
            found.append((first, i, values[first]))
            first = i
    return found


# -------------------------------------------------------------------------------------------------------- pad


@pad_sequence.compose
def pad_sequence_composite(sequences, batch_first, padding_value, padding_side):
    """Sequences of shape (length, *) side by side: (longest, count, *), or (count, longest, *) with batch_first."""
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    first = sequences[0]
    longest = max([s.size(0) for s in sequences])
    leading = (len(sequences), longest) if batch_first else (longest, len(sequences))
    padded = at.full((*leading, *first.shape[1:]), padding_value, dtype=first.dtype, device=first.device)
    for i, sequence in enumerate(sequences):
        length = sequence.size(0)
        start = longest - length if padding_side == "left" else 0
        if batch_first:
            padded.select(0, i).narrow(0, start, length).copy_(sequence)
        else:
            padded.narrow(0, start, length).select(1, i).copy_(sequence)
    return padded
